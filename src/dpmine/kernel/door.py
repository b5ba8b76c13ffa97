"""The door: the only way from exact numbers to the outside.

    plan      check the query against the public schema, price every cell           (spends nothing)
    reserve   charge the ledger, durably                                            (from here on the charge stands)
    compute   ask the engine for exact integers, add noise or choose privately
    store     keep the answer's bytes
    release   return the stored bytes

Any failure after `reserve` looks the same from outside: a data-dependent error must not be a message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpmine.epsilon import UNITS, Epsilon, format_units
from dpmine.errors import AnswerError, RequestError
from dpmine.finite import FiniteMechanism
from dpmine.intervals import BoxNoise, noise_deviation, noise_half_width, noise_scale
from dpmine.kernel.accounts import Request, Reservation, Stored
from dpmine.kernel.choice import exponential, permute_and_flip
from dpmine.kernel.entropy import Entropy
from dpmine.kernel.finite_rows import drawn_output
from dpmine.kernel.ledger import Ledger
from dpmine.kernel.noise import LIMIT, ExactNoise, Integers, NoiseSource, add_noise
from dpmine.kernel.odometer import charge_of, root_node
from dpmine.kernel.private_tree import Cutting, decay_of, grow_private_tree
from dpmine.kernel.scores import (
    RankScore,
    Score,
    children_scores,
    multiway_scores,
    score_named,
    subset_scores,
    threshold_scores,
    whole_scores,
)
from dpmine.kernel.sparse import sparse_counts
from dpmine.kernel.staircase import box_staircase
from dpmine.plans import (
    BestLabel,
    BestModel,
    BestRank,
    BestSplit,
    ByChildren,
    ByDivision,
    ByLabel,
    BySubset,
    ByThreshold,
    Cells,
    ClippedSums,
    Counts,
    GrownCuts,
    Plan,
    PowerSums,
    RowKey,
    RowSplits,
    RowStep,
    SparseCounts,
    ToldStatistic,
    VectorOfSums,
    Whole,
)
from dpmine.queries import Answer, Preview, Query, Reply, phantoms, shares
from dpmine.resolution import CELLS_AT_ONCE, KnownKeys, resolve
from dpmine.schema import Schema
from dpmine.told_statistics import exact_statistic, lattice_point
from dpmine.values import canonical, from_text, value_hash
from dpmine.wire import from_wire

FAMILY_MASS = 2**32  # of the base measure; shared evenly by the candidates of a family
PLAN_PREFIX = "plan:"  # of the keys of requests that name none
NOT_ANSWERED = "The query was charged but could not be answered. Ask the data owner."


class Engine(Protocol):
    """What the kernel asks of an engine: exact integers, nothing else."""

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> list[Integers]:
        """For each group of keys the exact row counts, of shape [cells, *key sizes]."""
        ...

    def occupied(self, cells: Cells, keys: tuple[RowKey, ...]) -> tuple[Integers, Integers]:
        """The numbers of the combinations (cell, key values) that hold rows, rising, and how many rows each holds."""
        ...

    def clipped_sums(self, cells: Cells, question: ClippedSums) -> Integers:
        """For each centre the exact sums of its rows' clipped offsets, of shape [centres, attributes]."""
        ...

    def cutting(self, steps: tuple[RowStep, ...], attributes: tuple[str, ...]) -> Cutting:
        """A tree of halves of a view, which will be cut at codes of these attributes."""
        ...

    def ready(self) -> None:
        """Raise, before anything is charged, if the table is no longer the one that was opened."""
        ...


class Kernel:
    """Answers queries on one table version under one schema and one ledger."""

    def __init__(
        self,
        schema: Schema,
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
        """Answer one query, as it travels (`dpmine.wire`): charge, compute, store, release."""
        plan, request = self._plan(query, analyst, key)
        self._engine.ready()
        self._checkpoint("planned")
        outcome = self.ledger.reserve(request)
        if not isinstance(outcome, Reservation):
            return _reply(outcome)
        return self._computed_and_stored(plan, outcome)

    def _computed_and_stored(self, plan: Plan, reservation: Reservation) -> Reply:
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

    def preview(self, query: bytes, *, analyst: str) -> Preview:
        """What the query would cost and how far off it would be. Looks at no row and spends nothing."""
        plan, request = self._plan(query, analyst, None)
        cost, dataset_suffices, cached = self.ledger.preview(request)
        remaining = self.ledger.account(analyst).remaining
        return Preview(Epsilon(cost), Epsilon(remaining), dataset_suffices, cached, expected_error(plan))

    def _plan(self, query: bytes, analyst: str, key: str | None) -> tuple[Plan, Request]:
        """Read the query anew from its text: no object that a caller made is ever looked at again."""
        try:
            plan = resolve(from_wire(query, Query), self.schema, self._known_keys)
            charge, name = charge_of(plan), value_hash(plan)
        except RecursionError:
            raise RequestError("There is too little stack left here for a question that is nested so deeply.") from None
        root = root_node(self.version, self.schema.fingerprint, self._encoding)
        name += "@" + root
        if key is not None and not (1 <= len(key) <= 200 and key.isprintable() and not key.startswith(PLAN_PREFIX)):
            raise RequestError(f"A request key has 1 to 200 printable characters and does not begin with {PLAN_PREFIX!r}.")
        request = Request(
            analyst=analyst,
            key=key or PLAN_PREFIX + name,
            plan=name,
            root=root,
            charge=charge,
            rows_per_unit=self.schema.rows_per_unit,
            what=describe(plan),
            drafted=self.schema.drafted,
        )
        return plan, request

    def _compute_behind_the_door(self, plan: Plan) -> tuple[Answer, bytes]:
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

    def _compute(self, plan: Plan) -> Answer:
        epsilon = tuple(Epsilon(units) for units in plan.units)
        question = plan.question
        if isinstance(question, Counts):
            return Answer(self._noisy_counts(plan, question), epsilon, 1)
        if isinstance(question, SparseCounts):
            return Answer(self._sparse_counts(plan, question), epsilon, 1)
        if isinstance(question, PowerSums):
            return Answer(self._noisy_sums(plan, question), epsilon, max(question.sensitivities))
        if isinstance(question, ToldStatistic):
            return Answer(((self._told(plan, question),),), epsilon, question.steps)
        if isinstance(question, VectorOfSums):
            return Answer((self._vector_of_sums(plan, question),), epsilon, max(question.lengths))
        if isinstance(question, ClippedSums):
            return Answer((self._clipped_sums(plan, question),), epsilon, max(question.radii))
        if isinstance(question, GrownCuts):
            return Answer((self._grown_cuts(plan, question),), epsilon, 1)
        if isinstance(question, BestRank):
            return Answer(self._best_ranks(plan, question), epsilon, RankScore(*_order(question)).range)
        if isinstance(question, BestLabel):
            return Answer(self._best_labels(plan, question), epsilon, 1)
        if isinstance(question, BestModel):
            return Answer(self._best_models(plan, question), epsilon, 1)
        assert isinstance(question, BestSplit)
        score = score_named(question.score, question.rows_at_most)
        return Answer(self._best_splits(plan, question, score), epsilon, score.range(question.calibration))

    def _noisy_counts(self, plan: Plan, question: Counts) -> tuple[tuple[int, ...] | None, ...]:
        (exact_counts,) = self._engine.counts(plan.cells, [question.keys])
        exact_counts = exact_counts.reshape(len(plan.units), question.bins)
        numbers: list[tuple[int, ...] | None] = [None] * len(plan.units)
        cells_at: dict[int, list[int]] = {}
        for cell, units in enumerate(plan.units):
            cells_at.setdefault(units, []).append(cell)
        cells_at.pop(0, None)  # not asked
        for units, asked in cells_at.items():
            noisy_counts = add_noise(exact_counts[asked], self._noise, noise_scale(1, Epsilon(units)))
            for cell, row in zip(asked, noisy_counts.tolist(), strict=True):
                numbers[cell] = tuple(row)
        return tuple(numbers)

    def _sparse_counts(self, plan: Plan, question: SparseCounts) -> tuple[tuple[int, ...] | None, ...]:
        """For each cell place, count, place, count, ... of what reaches the threshold."""
        places, exact_counts = self._engine.occupied(plan.cells, question.keys)
        numbers: list[tuple[int, ...] | None] = []
        for cell, units in enumerate(plan.units):
            if not units:
                numbers.append(None)
                continue
            here = slice(*np.searchsorted(places, (cell * question.bins, (cell + 1) * question.bins)))
            shown = sparse_counts(
                self._entropy,
                self._noise,
                places[here] - cell * question.bins,
                exact_counts[here],
                question.bins,
                scale=noise_scale(1, Epsilon(units)),
                at_least=question.at_least,
            )
            numbers.append(tuple(np.stack(shown, axis=1).ravel().tolist()))
        return tuple(numbers)

    def _noisy_sums(self, plan: Plan, question: PowerSums) -> tuple[tuple[int, ...] | None, ...]:
        """Exact sums of powers from the counts of every grid point, then noise for each power's own share of epsilon."""
        (exact_counts,) = self._engine.counts(plan.cells, [(question.key,)])
        codes = np.arange(question.key.size, dtype=np.int64)
        values = question.first + question.step * codes  # powers are below 2^30, sums over fewer than 2^31 rows below 2^61
        numbers: list[tuple[int, ...] | None] = []
        for cell, units in enumerate(plan.units):
            if not units:
                numbers.append(None)
                continue
            noisy = []
            paid = shares(units, len(question.powers))
            for power, sensitivity, share in zip(question.powers, question.sensitivities, paid, strict=True):
                exact_sum = np.array([np.sum(exact_counts[cell] * values**power)], dtype=np.int64)
                noisy.append(int(add_noise(exact_sum, self._noise, noise_scale(sensitivity, Epsilon(share)))[0]))
            numbers.append(tuple(noisy))
        return tuple(numbers)

    def _told(self, plan: Plan, question: ToldStatistic) -> int:
        """The number of the output of a finite mechanism, or the answer in steps of a lattice."""
        (exact_counts,) = self._engine.counts(plan.cells, [() if question.key is None else (question.key,)])
        numbers = exact_counts.reshape(-1).tolist()  # Python's integers: sums and quotients stay exact
        exact_value = exact_statistic(question.statistic, numbers, Fraction(question.low), Fraction(question.step))
        epsilon = Epsilon(plan.units[0])
        if isinstance(question.noise, FiniteMechanism):
            return drawn_output(self._entropy, question.noise, exact_value)
        exact_steps = lattice_point(exact_value, Fraction(question.noise.step))
        if question.noise.kind == "staircase":
            ((noise,),) = box_staircase(self._entropy, (question.steps,), (question.noise.inner,), epsilon=epsilon.fraction)
            return _clipped(exact_steps + noise)
        exact_number = np.array([exact_steps], dtype=np.int64)
        return int(add_noise(exact_number, self._noise, noise_scale(question.steps, epsilon))[0])

    def _vector_of_sums(self, plan: Plan, question: VectorOfSums) -> tuple[int, ...]:
        """The exact sums of all attributes, after the number of rows if wanted, with one noise for all of them."""
        groups: list[tuple[RowKey, ...]] = [(key,) for key in question.keys]
        exact_counts = [counts.reshape(-1).tolist() for counts in self._engine.counts(plan.cells, groups)]
        exact_sums = [sum(exact_counts[0])] if question.with_count else []
        for counts, first, step in zip(exact_counts, question.firsts, question.steps, strict=True):
            exact_sums.append(sum(count * (first + step * code) for code, count in enumerate(counts)))
        if question.ball == "l-infinity":
            epsilon = Epsilon(plan.units[0]).fraction
            (noise,) = box_staircase(self._entropy, question.lengths, question.inner, epsilon=epsilon)
            return tuple(_clipped(exact + more) for exact, more in zip(exact_sums, noise, strict=True))
        paid = shares(plan.units[0], len(exact_sums))
        noisy = [
            add_noise(np.array([exact], dtype=np.int64), self._noise, noise_scale(length, Epsilon(share)))
            for exact, length, share in zip(exact_sums, question.lengths, paid, strict=True)
        ]
        return tuple(int(number[0]) for number in noisy)

    def _clipped_sums(self, plan: Plan, question: ClippedSums) -> tuple[int, ...]:
        """The sums of cluster after cluster, each with noise for its own radius: a row is in one cluster."""
        exact_sums = self._engine.clipped_sums(plan.cells, question)
        epsilon = Epsilon(plan.units[0])
        noisy = [
            add_noise(sums, self._noise, noise_scale(radius, epsilon))
            for sums, radius in zip(exact_sums, question.radii, strict=True)
        ]
        return tuple(int(number) for sums in noisy for number in sums)

    def _grown_cuts(self, plan: Plan, question: GrownCuts) -> tuple[int, ...]:
        cutting = self._engine.cutting(plan.cells.steps, tuple(rule.attribute for rule in question.rules))
        root = grow_private_tree(cutting, question.rules, question.deepest, self._noise, Epsilon(plan.units[0]))
        return tuple(int(node.cut is not None) for node in root.nodes())

    def _best_ranks(self, plan: Plan, question: BestRank) -> tuple[tuple[int, ...] | None, ...]:
        (exact_counts,) = self._engine.counts(plan.cells, [(question.key,)])
        score = RankScore(*_order(question))
        masses = np.ones(question.key.size, dtype=np.int64)
        rate_of_one = Fraction(1, UNITS * score.range)
        return tuple(
            (exponential(self._entropy, score.of(exact_counts[cell]), masses, rate=units * rate_of_one),) if units else None
            for cell, units in enumerate(plan.units)
        )

    def _best_labels(self, plan: Plan, question: BestLabel) -> tuple[tuple[int, ...] | None, ...]:
        (exact_counts,) = self._engine.counts(plan.cells, [(question.key,)])
        score = score_named("count", 0)
        masses = np.ones(question.key.size, dtype=np.int64)
        rate_of_one = Fraction(1, UNITS * score.range(question.calibration))
        return tuple(
            (self._choose(question.mechanism, exact_counts[cell], masses, units * rate_of_one),) if units else None
            for cell, units in enumerate(plan.units)
        )

    def _best_splits(self, plan: Plan, question: BestSplit, score: Score) -> tuple[tuple[int, ...] | None, ...]:
        keys = list({family.key: None for families in question.families for family in families})
        exact = dict(zip(keys, self._engine.counts(plan.cells, [(question.target, key) for key in keys]), strict=True))
        rate_of_one = Fraction(1, UNITS * score.range(question.calibration))
        chosen: list[tuple[int, ...] | None] = []
        for start in range(0, len(plan.units), CELLS_AT_ONCE):
            block = {key: counts[start : start + CELLS_AT_ONCE] for key, counts in exact.items()}
            scorer = _BlockScores(score, block)
            for cell in range(start, min(start + CELLS_AT_ONCE, len(plan.units))):
                if not plan.units[cell]:
                    chosen.append(None)
                    continue
                families = question.families_of(cell)
                scores = np.concatenate([scorer.of(family, cell - start) for family in families])
                masses = np.concatenate([family_masses(family) for family in families])
                chosen.append((self._choose(question.mechanism, scores, masses, plan.units[cell] * rate_of_one),))
        return tuple(chosen)

    def _best_models(self, plan: Plan, question: BestModel) -> tuple[tuple[int, ...] | None, ...]:
        """The score of a model is the number of rows whose class it predicts: the diagonal of prediction by class."""
        groups = [(question.target, model) for model in question.models]
        right = [np.trace(counts, axis1=1, axis2=2) for counts in self._engine.counts(plan.cells, groups)]
        exact_counts = np.stack(right, axis=1).astype(np.int64)
        score = score_named("count", 0)
        masses = np.ones(len(question.models), dtype=np.int64)
        rate_of_one = Fraction(1, UNITS * score.range(question.calibration))
        return tuple(
            (self._choose(question.mechanism, exact_counts[cell], masses, units * rate_of_one),) if units else None
            for cell, units in enumerate(plan.units)
        )

    def _choose(self, mechanism: str, scores: Integers, masses: Integers, rate: Fraction) -> int:
        if mechanism == "exponential":
            return exponential(self._entropy, scores, masses, rate=rate)
        return permute_and_flip(self._entropy, scores, rate=rate)


class _BlockScores:
    """Scores of candidate splits for a block of cells, each key's computed once for all cells."""

    def __init__(self, score: Score, exact_counts: dict[RowKey, Integers]) -> None:
        self._score = score
        self._exact_counts = exact_counts
        self._done: dict[object, Integers] = {}

    def of(self, family: RowSplits, cell: int) -> Integers:
        exact_counts = self._exact_counts[family.key]
        if isinstance(family, ByThreshold):
            # Cells may ask for different stretches of one attribute: all thresholds are scored once, then cut.
            every = self._once((ByThreshold, family.key), lambda: threshold_scores(self._score, exact_counts))
            stretch: Integers = every[cell, family.first - 1 : family.first - 1 + family.points]
            return stretch
        if isinstance(family, ByLabel):
            single: Integers = self._once((ByLabel, family.key), lambda: multiway_scores(self._score, exact_counts))[cell]
            return single
        if isinstance(family, Whole):
            whole = self._once(Whole, lambda: whole_scores(self._score, exact_counts))[cell]
            with_bonus: Integers = whole + family.bonus * self._score.unit
            return with_bonus
        if isinstance(family, ByChildren):
            specialised: Integers = self._once(family, lambda: children_scores(self._score, exact_counts, family.children))[
                cell
            ]
            return specialised
        if isinstance(family, ByDivision):
            inside = exact_counts[:, :, family.first : family.end]
            divided: Integers = self._once(family, lambda: threshold_scores(self._score, inside))[cell]
            return divided
        assert isinstance(family, BySubset)
        members = np.zeros((len(family.subsets), family.key.size), dtype=bool)
        for number, subset in enumerate(family.subsets):
            members[number, list(subset)] = True
        row: Integers = self._once(family, lambda: subset_scores(self._score, exact_counts, members))[cell]
        return row

    def _once(self, name: object, compute: Callable[[], Integers]) -> Integers:
        if name not in self._done:
            self._done[name] = compute()
        return self._done[name]


def _without_traces(error: BaseException) -> BaseException:
    """The error without the frames that it came through and what it came from."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _clipped(noisy_number: int) -> int:
    """As `add_noise` clips: post-processing that keeps every answer inside 64 bits."""
    return max(-LIMIT, min(noisy_number, LIMIT))


def _order(question: BestRank) -> tuple[int, int]:
    return question.numerator, question.denominator


def family_masses(family: RowSplits) -> Integers:
    """The base measure: public, the same for every family in all, even within it (up to rounding, which is public too)."""
    return np.full(family.candidates, FAMILY_MASS // family.candidates, dtype=np.int64)


def _reply(stored: Stored) -> Reply:
    return Reply(from_text(stored.answer, Answer), Epsilon(stored.cost), stored.head)


def describe(plan: Plan) -> str:
    """The question in a few public words, for statements."""
    question, cells = plan.question, len(plan.units)
    asked = sorted({units for units in plan.units if units})
    where = (
        (f" in {cells} cells" if cells > 1 else "")
        + " at epsilon "
        + " to ".join(dict.fromkeys(format_units(units) for units in (asked[0], asked[-1])))
    )
    if isinstance(question, Counts):
        if not question.keys:
            return "count" + where
        return "histogram by " + ", ".join(_key_name(key) for key in question.keys) + where
    if isinstance(question, SparseCounts):
        by = ", ".join(_key_name(key) for key in question.keys)
        return f"sparse histogram by {by}, from {question.at_least} on" + where
    if isinstance(question, PowerSums):
        names = {(1,): "sum", (0, 1): "mean", (0, 1, 2): "variance"}
        return f"{names[question.powers]} of {_key_name(question.key)}" + where
    if isinstance(question, ToldStatistic):
        of = "" if question.key is None else f" of {_key_name(question.key)}"
        return f"{question.statistic}{of} told by {_noise_name(question)}" + where
    if isinstance(question, VectorOfSums):
        counted = "number of rows and " if question.with_count else ""
        by = ", ".join(_key_name(key) for key in question.keys)
        return f"{counted}sums of {by} at once, noise by the {question.ball} ball" + where
    if isinstance(question, ClippedSums):
        return f"sums of offsets from {len(question.radii)} centres" + where
    if isinstance(question, GrownCuts):
        return "private tree by " + ", ".join(rule.attribute for rule in question.rules) + where
    if isinstance(question, BestRank):
        return f"quantile {question.numerator}/{question.denominator} of {_key_name(question.key)}" + where
    if isinstance(question, BestModel):
        return f"choice among {len(question.models)} models" + where
    if isinstance(question, BestLabel):
        return f"choice of the most frequent {_key_name(question.key)}" + where
    assert isinstance(question, BestSplit)
    return f"choice of a split by {question.score}" + where


def _noise_name(question: ToldStatistic) -> str:
    if isinstance(question.noise, FiniteMechanism):
        points, outputs = len(question.noise.weights), len(question.noise.outputs)
        return f"a finite mechanism of {points} points and {outputs} answers"
    return f"{question.noise.kind} noise in steps of {question.noise.step}"


def _key_name(key: RowKey) -> str:
    return str(getattr(key, "attribute", "a test, part or model"))


def expected_error(plan: Plan) -> str:
    """How far off the answer is expected to be, in one public sentence."""
    smallest = Epsilon(min(units for units in plan.units if units))
    question = plan.question
    if isinstance(question, Counts):
        scale = noise_scale(1, smallest)
        width = noise_half_width(scale, 0.95)
        each = "Each count" if question.keys or len(plan.units) > 1 else "The count"
        return (
            f"{each} will be off by {noise_deviation(scale):.3g} (standard deviation), within {width} in 95 % of the cases."
        )
    if isinstance(question, SparseCounts):
        shown = sum(phantoms(question.bins, Epsilon(units), question.at_least) for units in plan.units if units)
        return (
            f"Each count shown will be off by {noise_deviation(noise_scale(1, smallest)):.3g} (standard deviation); about "
            f"{shown:.3g} combinations without any row will be shown, and counts below {question.at_least} left out."
        )
    if isinstance(question, PowerSums):
        return _expected_error_of_sums(question, smallest)
    if isinstance(question, ToldStatistic):
        return _expected_error_of_told(question, smallest)
    if isinstance(question, VectorOfSums):
        return _expected_error_of_vector(question, smallest)
    if isinstance(question, ClippedSums):
        widths = sorted({noise_deviation(noise_scale(radius, smallest)) for radius in question.radii})
        return f"Standard deviations of the noise of each sum, in positions: {widths[0]:.3g} to {widths[-1]:.3g}."
    if isinstance(question, GrownCuts):
        rows = decay_of(smallest)
        return f"A node is cut about where it holds more rows than {rows} for each level above it, give or take {2 * rows}."
    if isinstance(question, BestRank):
        away = 2 * max(question.numerator, question.denominator - question.numerator) / question.denominator
        loss = away / float(smallest) * (math.log(question.key.size) + math.log(20))
        return f"In 95 % of the cases the answer is at most {loss:.3g} rows away from being that quantile."
    if isinstance(question, BestLabel):
        candidates, scope, score = question.key.size, "rows", score_named("count", 0)
    elif isinstance(question, BestModel):
        candidates, scope, score = len(question.models), "right predictions", score_named("count", 0)
    else:
        assert isinstance(question, BestSplit)
        score = score_named(question.score, question.rows_at_most)
        candidates = max(len(families) * max(f.candidates for f in families) for families in question.families)
        scope = f"of the {question.score} score"
    range_in_units = score.range(question.calibration) / score.unit
    loss = range_in_units / float(smallest) * (math.log(candidates) + math.log(20))
    return f"In 95 % of the cases the choice is at most {loss:.3g} {scope} below the best."


def _expected_error_of_sums(question: PowerSums, epsilon: Epsilon) -> str:
    paid = shares(epsilon.units, len(question.powers))
    names = {0: "count", 1: "sum", 2: "sum of squares"}
    parts = []
    for power, sensitivity, share in zip(question.powers, question.sensitivities, paid, strict=True):
        parts.append(f"{names[power]} {noise_deviation(noise_scale(sensitivity, Epsilon(share))):.3g}")
    return f"Standard deviations of the noise, in units of the grid: {', '.join(parts)}."


def _expected_error_of_told(question: ToldStatistic, epsilon: Epsilon) -> str:
    if isinstance(question.noise, FiniteMechanism):
        losses = question.noise.losses("absolute")
        return (
            f"Over the points of its grid the {question.statistic} will be off by {losses.mean():.3g} on average, and by "
            f"{losses.max():.3g} where it is worst (mean absolute error)."
        )
    step = float(Fraction(question.noise.step))
    if question.noise.kind == "staircase":
        box = BoxNoise((question.steps,), (question.noise.inner,), epsilon)
        deviation, width = box.deviation(), box.half_width(0.95)
    else:
        scale = noise_scale(question.steps, epsilon)
        deviation, width = noise_deviation(scale), noise_half_width(scale, 0.95)
    return (
        f"The {question.statistic} will be off by {deviation * step:.3g} (standard deviation), within {width * step:.6g} in "
        "95 % of the cases."
    )


def _expected_error_of_vector(question: VectorOfSums, epsilon: Epsilon) -> str:
    if question.ball == "l-infinity":
        box = BoxNoise(question.lengths, question.inner, epsilon)
        deviations = [box.deviation(place) for place in range(len(question.lengths))]
    else:
        paid = shares(epsilon.units, len(question.lengths))
        scales = [noise_scale(length, Epsilon(share)) for length, share in zip(question.lengths, paid, strict=True)]
        deviations = [noise_deviation(scale) for scale in scales]
    names = ["number of rows"] * question.with_count + [_key_name(key) for key in question.keys]
    parts = [f"{name} {deviation:.3g}" for name, deviation in zip(names, deviations, strict=True)]
    return f"Standard deviations of the noise, in units of the grids: {', '.join(parts)}."
