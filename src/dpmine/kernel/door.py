"""The door: the only way from exact numbers to the outside.

    plan      check the query on codes, price every cell, state every law  (spends nothing)
    reserve   charge the ledger, durably                                   (from here on the charge stands)
    compute   ask the engine for exact integers, add noise or choose privately
    store     keep the answer's bytes
    release   return the stored bytes

Queries come on codes. Whoever made them from names is not trusted: all that a guarantee rests on is checked here anew.

Any failure after `reserve` looks the same from outside: a data-dependent error must not be a message.
"""

from collections.abc import Callable
from fractions import Fraction

import dpmine.kernel.mechanisms  # noqa: F401 (all of them declare themselves)
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import AnswerError, RequestError
from dpmine.base.wire import from_wire, to_wire, value_hash
from dpmine.codes.aggregates import Engine
from dpmine.codes.answers import Answer, Quote, Reply
from dpmine.codes.domain import Domain
from dpmine.codes.queries import ResolvedQuery
from dpmine.kernel.ledger.accounts import Request, Reservation, Stored
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.odometer import charge_of, root_node
from dpmine.kernel.mechanisms.mechanism import Asked, laws_of, mechanism_of
from dpmine.kernel.samplers.choice import exponential, permute_and_flip
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import ExactNoise, Integers, NoiseSource

PLAN_PREFIX = "plan:"  # of the keys of requests that name none
TOO_DEEP = "There is too little stack left here for a question that is nested so deeply."
FRAMES = 600  # of Python's stack: answering takes fewer, as at most 100 steps and 200 nested rules and tests are asked
NOT_ANSWERED = "The query was charged but could not be answered. Ask the data owner."


class Kernel:
    """Answers queries on the codes of one table version, under one ledger."""

    def __init__(
        self,
        domain: Domain,
        engine: Engine,
        ledger: Ledger,
        *,
        version: str,
        encoding: str,
        entropy: Entropy | None = None,
        noise: NoiseSource | None = None,
        checkpoint: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.domain = domain
        self.ledger = ledger
        self.version = version
        self._encoding = encoding
        self._engine = engine
        self._entropy = entropy or Entropy()
        self._noise = noise or ExactNoise(self._entropy)
        self._checkpoint = checkpoint

    def answer(self, query: bytes, *, asked: str, analyst: str, key: str | None = None) -> Reply:
        """Answer one query on codes, as it travels (`dpmine.base.wire`): charge, compute, store, release.

        `asked` is the query in names, for the ledger's readers: it decides nothing.
        """
        plan, request = self._plan(query, asked, analyst, key)
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
        plan, request = self._plan(query, "", analyst, None)
        cost, dataset_suffices, cached = self.ledger.preview(request)
        remaining = self.ledger.account(analyst).remaining
        laws = laws_of(plan.question, self.domain, plan.units)
        return Quote(Epsilon(cost), Epsilon(remaining), dataset_suffices, cached, tuple(laws.values()), _price(plan))

    def _plan(self, text: bytes, asked: str, analyst: str, key: str | None) -> tuple[ResolvedQuery, Request]:
        """Read the query anew from its text: no object that a caller made is ever looked at again."""
        try:
            plan = from_wire(text, ResolvedQuery)
            plan.check(self.domain)
            charge, name = charge_of(plan).times(self.domain.rows_per_unit), value_hash(plan)
            _descend(FRAMES)  # a stack that is used up after the charge would tell whether there are rows to go through
        except RecursionError:
            raise RequestError(TOO_DEEP) from None
        laws_of(plan.question, self.domain, plan.units)  # refuses what cannot be answered
        root = root_node(self.version, self.domain.fingerprint, self._encoding)
        name += "@" + root
        if key is not None and not (1 <= len(key) <= 200 and key.isprintable() and not key.startswith(PLAN_PREFIX)):
            raise RequestError(f"A request key has 1 to 200 printable characters and does not begin with {PLAN_PREFIX!r}.")
        return plan, Request(analyst, key or PLAN_PREFIX + name, name, root, asked, charge, self.domain.drafted)

    def _compute_behind_the_door(self, plan: ResolvedQuery) -> tuple[Answer, bytes]:
        """The answer and its text. What fails in here leaves no trace: exceptions and their frames hold exact numbers."""
        answer = None
        failure: BaseException = AnswerError(NOT_ANSWERED)
        try:
            answer = self._compute(plan)
            return answer, to_wire(answer)
        except Exception:
            pass
        except BaseException as interruption:  # Ctrl-C, say
            failure = _without_traces(interruption)
        del answer
        raise failure  # out here, where nothing is remembered as its context

    def _compute(self, plan: ResolvedQuery) -> Answer:
        laws = laws_of(plan.question, self.domain, plan.units)
        within = self.domain, self._engine, self._noise, self._entropy, self._choose
        asked = Asked(plan.question, plan.cells, plan.units, laws, *within)
        numbers = mechanism_of(plan.question).release(asked)
        return Answer(tuple(numbers), tuple(laws.values()), _price(plan))

    def _choose(self, mechanism: str, scores: Integers, masses: Integers, rate: Fraction) -> int:
        if mechanism == "exponential":
            return exponential(self._entropy, scores, masses, rate=rate)
        return permute_and_flip(self._entropy, scores, rate=rate)


def _descend(frames: int) -> None:
    if frames:
        _descend(frames - 1)


def _price(plan: ResolvedQuery) -> tuple[Epsilon, ...]:
    """Of each cell."""
    return tuple(map(Epsilon, plan.units))


def _without_traces(error: BaseException) -> BaseException:
    """The error without the frames that it came through and what it came from."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _reply(stored: Stored) -> Reply:
    return Reply(from_wire(stored.answer, Answer), Epsilon(stored.cost), stored.head)
