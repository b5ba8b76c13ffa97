"""The door: the only way from exact numbers to the outside.

    plan      check the query against the public schema, price every cell, state every law  (spends nothing)
    reserve   charge the ledger, durably                                                    (from here on the charge stands)
    compute   ask the engine for exact integers, add noise or choose privately
    store     keep the answer's bytes
    release   return the stored bytes

Any failure after `reserve` looks the same from outside: a data-dependent error must not be a message.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import dpmine.kernel.mechanisms  # noqa: F401 (all of them declare themselves)
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import AnswerError, RequestError
from dpmine.base.wire import from_wire, to_wire
from dpmine.base.wire_values import canonical, from_text, value_hash
from dpmine.facts.facts import Facts
from dpmine.kernel.ledger.accounts import Request, Reservation, Stored
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.odometer import charge_of, root_node
from dpmine.kernel.mechanisms.mechanism import Asked, laws_of, mechanism_of
from dpmine.kernel.samplers.choice import exponential, permute_and_flip
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import ExactNoise, Integers, NoiseSource
from dpmine.language.aggregates import Engine
from dpmine.language.answers import Answer, Quote, Reply
from dpmine.language.queries import Query, ResolvedQuery, resolve
from dpmine.language.resolver import KnownKeys

PLAN_PREFIX = "plan:"  # of the keys of requests that name none
NOT_ANSWERED = "The query was charged but could not be answered. Ask the data owner."


class Kernel:
    """Answers queries on one table version under one schema and one ledger."""

    def __init__(
        self,
        schema: Facts,
        engine: Engine,
        ledger: Ledger,
        *,
        version: str,
        encoding: str,
        entropy: Entropy | None = None,
        noise: NoiseSource | None = None,
        checkpoint: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.schema = schema
        self.ledger = ledger
        self.version = version
        self._encoding = encoding
        self._known_keys: KnownKeys = {}
        self._engine = engine
        self._entropy = entropy or Entropy()
        self._noise = noise or ExactNoise(self._entropy)
        self._checkpoint = checkpoint

    def answer(self, query: bytes, *, analyst: str, key: str | None = None) -> Reply:
        """Answer one query, as it travels (`dpmine.base.wire`): charge, compute, store, release."""
        plan, request = self._plan(query, analyst, key)
        self._engine.ready()
        self._checkpoint("planned")
        outcome = self.ledger.reserve(request)
        if not isinstance(outcome, Reservation):
            return _reply(outcome)
        return self._computed_and_stored(plan, outcome)

    def _computed_and_stored(self, plan: ResolvedQuery, reservation: Reservation) -> Reply:
        """A draw that could not be stored may be drawn again, so nobody may find it in an error's frames either."""
        answer, text = self._compute_behind_the_door(plan)
        try:
            self._checkpoint("computed")
            stored = self.ledger.store(reservation, text)
            # Only what was stored is released. If it is what we have just written, it need not be read again.
            return Reply(answer, Epsilon(stored.cost), stored.head) if stored.answer == text else _reply(stored)
        except BaseException as error:
            del answer, text
            failure = _without_traces(error)
        raise failure

    def preview(self, query: bytes, *, analyst: str) -> Quote:
        """What the query would cost, and by which laws it would be answered. Looks at no row and spends nothing."""
        plan, request = self._plan(query, analyst, None)
        cost, dataset_suffices, cached = self.ledger.preview(request)
        remaining = self.ledger.account(analyst).remaining
        laws = laws_of(plan.question, self.schema, plan.units)
        return Quote(Epsilon(cost), Epsilon(remaining), dataset_suffices, cached, tuple(laws.values()), _price(plan))

    def _plan(self, text: bytes, analyst: str, key: str | None) -> tuple[ResolvedQuery, Request]:
        """Read the query anew from its text: no object that a caller made is ever looked at again."""
        try:
            asked = from_wire(text, Query)
            plan = resolve(asked, self.schema, self._known_keys)
            charge, name = charge_of(plan).times(self.schema.rows_per_unit), value_hash(plan)
        except RecursionError:
            raise RequestError("There is too little stack left here for a question that is nested so deeply.") from None
        laws_of(plan.question, self.schema, plan.units)  # refuses what cannot be answered
        root = root_node(self.version, self.schema.fingerprint, self._encoding)
        name += "@" + root
        if key is not None and not (1 <= len(key) <= 200 and key.isprintable() and not key.startswith(PLAN_PREFIX)):
            raise RequestError(f"A request key has 1 to 200 printable characters and does not begin with {PLAN_PREFIX!r}.")
        request = Request(
            analyst=analyst,
            key=key or PLAN_PREFIX + name,
            plan=name,
            root=root,
            question=to_wire(asked).decode("ascii"),
            charge=charge,
            price_of_one=self.schema.rows_per_unit,
            drafted=self.schema.drafted,
        )
        return plan, request

    def _compute_behind_the_door(self, plan: ResolvedQuery) -> tuple[Answer, bytes]:
        """The answer and its text. What fails in here leaves no trace: exceptions and their frames hold exact numbers."""
        answer = None
        failure: BaseException = AnswerError(NOT_ANSWERED)
        try:
            answer = self._compute(plan)
            return answer, canonical(answer)
        except Exception:
            pass
        except BaseException as interruption:  # Ctrl-C, say
            failure = _without_traces(interruption)
        del answer
        raise failure  # out here, where nothing is remembered as its context

    def _compute(self, plan: ResolvedQuery) -> Answer:
        laws = laws_of(plan.question, self.schema, plan.units)
        asked = Asked(
            question=plan.question,
            cells=plan.cells,
            units=plan.units,
            laws=laws,
            facts=self.schema,
            engine=self._engine,
            noise=self._noise,
            entropy=self._entropy,
            choose=self._choose,
        )
        numbers = mechanism_of(plan.question).release(asked)
        return Answer(tuple(numbers), tuple(laws.values()), _price(plan))

    def _choose(self, mechanism: str, scores: Integers, masses: Integers, rate: Fraction) -> int:
        if mechanism == "exponential":
            return exponential(self._entropy, scores, masses, rate=rate)
        return permute_and_flip(self._entropy, scores, rate=rate)


def _price(plan: ResolvedQuery) -> tuple[Epsilon, ...]:
    """Of each cell."""
    return tuple(map(Epsilon, plan.units))


def _without_traces(error: BaseException) -> BaseException:
    """The error without the frames that it came through and what it came from."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _reply(stored: Stored) -> Reply:
    return Reply(from_text(stored.answer, Answer), Epsilon(stored.cost), stored.head)
