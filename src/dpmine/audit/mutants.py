"""Planted bugs: each patches the real code of this process for a while, and an audit that is worth its name must find it.

Every bug here has been made somewhere: in a paper, in a public library, or in the list of mistakes that this project keeps.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.codes.designed_statistic import sensitivity_of
from dpmine.codes.domain import Domain, Values
from dpmine.codes.histogram import ResolvedHistogram
from dpmine.codes.moments import ResolvedMoments
from dpmine.codes.offset_sums import ResolvedOffsetSums
from dpmine.codes.queries import ResolvedQuery
from dpmine.codes.rows import Cells, Rounded
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import MemoryEngine, offsets, opening, rows
from dpmine.facts.encoding import Codes
from dpmine.facts.kinds import numeric_columns
from dpmine.facts.kinds.numeric import Numeric
from dpmine.kernel import door
from dpmine.kernel.ledger.odometer import Charge, charge_of
from dpmine.kernel.mechanisms import (
    designed_statistic,
    histogram,
    mechanism,
    offset_sums,
    private_tree,
    quantile,
    sparse_histogram,
    total,
    vector_sums,
)
from dpmine.kernel.mechanisms.counted import counted_share
from dpmine.kernel.samplers import laplace, sparse, staircase
from dpmine.kernel.samplers.choice import _coins
from dpmine.kernel.samplers.laplace import ExactNoise, Integers
from dpmine.kernel.scores import GainScore, GiniScore, InfoGainPerRow, RankScore, Score
from dpmine.mining.trees.growing import Growth
from dpmine.noise.finite_tables import FiniteTable
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.laws import laplace as calibrated

no_bug = nullcontext


@dataclass(frozen=True)
class Mutant:
    """A planted bug, and the audit pairs that must find it."""

    name: str
    bug: str
    caught_by: tuple[str, ...]
    plant: Callable[[], AbstractContextManager[None]]
    effort: float = 0.5
    """Of the pair's runs: most bugs show in far fewer than a sound mechanism needs to look tight."""


def all_mutants() -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in MUTANTS}


def mutant_named(name: str) -> Mutant:
    if name not in all_mutants():
        raise RequestError(f"There is no mutant {name!r}. There are: {', '.join(all_mutants())}.")
    return all_mutants()[name]


@contextmanager
def patched(owner: Any, name: str, planted: Any) -> Iterator[None]:
    """The owner's attribute replaced for a while."""
    before = vars(owner)[name]
    setattr(owner, name, planted)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def planted_in(owners: Sequence[Any], name: str, planted: Any) -> Iterator[None]:
    """The same attribute of several modules replaced for a while: each imported it under that name."""
    with ExitStack() as all_of_them:
        for owner in owners:
            all_of_them.enter_context(patched(owner, name, planted))
        yield


# -- noise -------------------------------------------------------------------------------------------------------------

_draw = ExactNoise.discrete_laplace
_add_noise = laplace.add_noise


def _halved_noise() -> AbstractContextManager[None]:
    def half(self: ExactNoise, scale: Fraction, size: int) -> Integers:
        return _draw(self, scale / 2, size)

    return patched(ExactNoise, "discrete_laplace", half)


def _noise_shared_by_bins() -> AbstractContextManager[None]:
    def shared(self: ExactNoise, scale: Fraction, size: int) -> Integers:
        return np.full(size, _draw(self, scale, 1)[0], dtype=np.int64)

    return patched(ExactNoise, "discrete_laplace", shared)


@contextmanager
def _noise_shared_by_queries() -> Iterator[None]:
    """As a generator does that is seeded anew for every query."""
    known: dict[tuple[Fraction, int], tuple[int, Integers]] = {}

    def again(self: ExactNoise, scale: Fraction, size: int) -> Integers:
        turn, laplace = known.get((scale, size), (0, np.zeros(0, dtype=np.int64)))
        if turn % 2 == 0:
            laplace = _draw(self, scale, size)
        known[scale, size] = (turn + 1, laplace)
        return laplace

    with patched(ExactNoise, "discrete_laplace", again):
        yield


def _last_field_without_noise() -> AbstractContextManager[None]:
    def mostly(exact_counts: Integers, source: Any, scale: Fraction) -> Integers:
        noisy = _add_noise(exact_counts, source, scale)
        noisy[..., -1] = exact_counts[..., -1]
        return noisy

    return planted_in((histogram, mechanism), "add_noise", mostly)


# -- sensitivities -----------------------------------------------------------------------------------------------------


def _sensitivity_off_by_one() -> AbstractContextManager[None]:
    def off(sensitivity: int, epsilon: Epsilon) -> DiscreteLaplace:
        return calibrated(max(sensitivity - 1, 1), epsilon)

    return patched(total, "laplace", off)


def _one_row_a_person_too_few() -> AbstractContextManager[None]:
    times = Charge.times
    return patched(Charge, "times", lambda self, rows: times(self, max(rows - 1, 1)))


def _missing_clamp() -> AbstractContextManager[None]:
    """Values as they stand in the rows, however far outside the bounds."""

    def unclamped(numbers: NDArray[np.float64], attribute: Numeric) -> Codes:
        found: Codes = np.floor((numbers - float(attribute.low)) / float(attribute.finest) + 0.5).astype(np.uint32)
        return found

    return patched(numeric_columns, "encode_numbers", unclamped)


def _gap_as_zero() -> AbstractContextManager[None]:
    """A row without a value counts as 0, wherever the bounds are."""
    exact_sums = MemoryEngine.sums

    def with_zeros(self: MemoryEngine, cells: Cells, amounts: tuple[Rounded, ...], powers: Sequence[Any]) -> Integers:
        numeric = self._rows.table.schema.numeric(amounts[0].attribute, "")
        zero = int(-numeric.low / numeric.finest)
        (exact_counts,) = self.counts(cells, [(amounts[0],)])
        gaps = exact_counts[:, -1:] if amounts[0].size > amounts[0].steps + 1 else 0
        zeros: Integers = gaps * np.array([[zero ** sum(power) for power in powers]])
        return exact_sums(self, cells, amounts, powers) + zeros

    return patched(MemoryEngine, "sums", with_zeros)


def _half_the_range_of_moments() -> AbstractContextManager[None]:
    """The sensitivity of sums around the middle, for sums that are not around it."""
    whole = vars(ResolvedMoments)["together"].fget
    return patched(ResolvedMoments, "together", property(lambda self: max(whole(self) // 2, 1)))


def _number_of_rows_for_nothing() -> AbstractContextManager[None]:
    """Statistics of rows with a value and the number of these rows, each paid with all of epsilon."""

    def twice(amount: Rounded, domain: Domain, epsilon: Epsilon) -> tuple[Epsilon, ...]:
        return (epsilon,) * len(counted_share(amount, domain, epsilon))

    return planted_in((total, quantile), "counted_share", twice)


def _points_that_rows_have() -> AbstractContextManager[None]:
    """A quantile chosen among the rows' own values: no public domain."""
    stretches = quantile.stretches_of_points

    def occupied(points: Integers, exact_counts: Integers, size: int) -> tuple[Integers, Integers, Integers]:
        firsts, lengths, counts = stretches(points, exact_counts, size)
        own = counts > 0 if len(points) else lengths > 0
        return firsts[own], lengths[own], counts[own]

    return patched(quantile, "stretches_of_points", occupied)


def _missing_cap_of_persons() -> AbstractContextManager[None]:
    def uncapped(table: EncodedTable, split_key: bytes) -> EncodedTable:
        return table

    return patched(opening, "capped", uncapped)


def _gini_as_if_its_range_were_one() -> AbstractContextManager[None]:
    return patched(GiniScore, "sensitivity", GiniScore.unit)


def _missing_factor_two_of_a_quantile() -> AbstractContextManager[None]:
    once = property(lambda self: max(self.numerator, self.denominator - self.numerator))
    return patched(RankScore, "range", once)


def _half_the_range_of_choices() -> AbstractContextManager[None]:
    """Twice the rate: what a factor 2 on the wrong side of the fraction does."""

    def half(self: Score, calibration: str) -> Any:
        whole = self.sensitivity if calibration == "monotone" else 2 * self.sensitivity
        return whole // 2 if whole > 1 else Fraction(whole, 2)

    return patched(Score, "range", half)


def _printed_split_point_formula() -> AbstractContextManager[None]:
    """Friedman and Schuster print exp(epsilon score), without 1 / (2 S)."""

    def printed(self: Score, calibration: str) -> int:
        return self.unit if calibration == "generic" else self.sensitivity

    return patched(Score, "range", printed)


def _gain_as_if_monotone() -> AbstractContextManager[None]:
    """R = S, as for scores of which all candidates move the same way."""
    return patched(GainScore, "monotone", True)


def _half_a_bit() -> AbstractContextManager[None]:
    return patched(InfoGainPerRow, "sensitivity", InfoGainPerRow.unit // 2)


# -- sparse histograms -------------------------------------------------------------------------------------------------


def _empty_combinations_dropped() -> AbstractContextManager[None]:
    """Only combinations with rows are noised and shown, as GROUP BY returns them."""
    return patched(sparse, "_successes", lambda entropy, trials, rate, at_least: np.zeros(0, dtype=np.int64))


def _threshold_before_noise() -> AbstractContextManager[None]:
    """Small groups are left out first, by their exact counts."""
    noised = sparse.sparse_counts

    def filtered(
        entropy: Any, source: Any, places: Integers, exact_counts: Integers, combinations: int, *, scale: Any, at_least: int
    ) -> tuple[Integers, Integers]:
        large = exact_counts >= at_least
        return noised(entropy, source, places[large], exact_counts[large], combinations, scale=scale, at_least=at_least)

    return patched(sparse_histogram, "sparse_counts", filtered)


# -- clusters ----------------------------------------------------------------------------------------------------------


def _noise_of_clusters_by(radius: Callable[[ResolvedOffsetSums], int]) -> AbstractContextManager[None]:
    """Sums of offsets noised for another radius than their cluster's."""

    def wrong(self: Any, question: ResolvedOffsetSums, domain: Domain, epsilon: Epsilon) -> tuple[DiscreteLaplace, ...]:
        numbers = len(question.radii) * len(question.nearest.places)
        return (calibrated(radius(question), epsilon),) * numbers

    return patched(offset_sums.ClippedOffsets, "laws", wrong)


def _domain_of_one_coordinate() -> AbstractContextManager[None]:
    """The slides' "Dom" taken as the reach of one coordinate, where the sums need that of all d together."""
    return _noise_of_clusters_by(lambda question: max(max(question.radii) // len(question.nearest.places), 1))


def _smallest_radius() -> AbstractContextManager[None]:
    return _noise_of_clusters_by(lambda question: min(question.radii))


def _clipped_coordinate_by_coordinate() -> AbstractContextManager[None]:
    return patched(offsets, "shortened", lambda offsets, radii: np.clip(offsets, -radii, radii))


def _no_decay() -> AbstractContextManager[None]:
    return patched(private_tree, "decay_of", lambda noise: 0)


def _noise_of_one_comparison() -> AbstractContextManager[None]:
    """As if only one node of a path could tell anything."""
    return patched(private_tree, "laplace", lambda sensitivity, epsilon: calibrated(1, epsilon))


def _no_floor() -> AbstractContextManager[None]:
    without = SimpleNamespace(**{**vars(np), "maximum": lambda numbers, floor: numbers})
    return patched(private_tree, "np", without)


# -- designed noise ----------------------------------------------------------------------------------------------------


def _mean_of_many_rows() -> AbstractContextManager[None]:
    """The sensitivity (u - l) / n of a mean, as if the number of rows were known: here for n = 8."""

    def of_many(statistic: str, numbers: Values | None) -> Fraction:
        return sensitivity_of(statistic, numbers) / (4 if statistic == "mean" else 1)

    return patched(designed_statistic, "sensitivity_of", of_many)


def _staircase_of_half_the_length() -> AbstractContextManager[None]:
    def half(entropy: Any, lengths: Sequence[int], inner: Sequence[int], *, epsilon: Fraction) -> Any:
        shorter = tuple((length + 1) // 2 for length in lengths)
        return staircase.box_staircase(entropy, shorter, (0,) * len(shorter), epsilon=epsilon)

    return patched(mechanism, "box_staircase", half)


def _halves_away_from_zero() -> AbstractContextManager[None]:
    """As round() does in many languages (erratum E9)."""

    def away(self: FiniteTable, x: Fraction) -> int:
        step = Fraction(self.step)
        steps = int(abs(x) / step + Fraction(1, 2)) * (1 if x >= 0 else -1)
        return max(0, min(steps - int(Fraction(self.low) / step), len(self.weights) - 1))

    return patched(FiniteTable, "input_of", away)


def _all_of_epsilon_for_every_sum() -> AbstractContextManager[None]:
    return patched(vector_sums, "shares", lambda units, parts: (units,) * parts)


# -- choices and parts -------------------------------------------------------------------------------------------------


def _weighted_permute_and_flip() -> AbstractContextManager[None]:
    """An order drawn by the masses of the candidates, and one flip each."""
    choose = door.Kernel._choose
    random = np.random.default_rng()

    def weighted(self: door.Kernel, mechanism: str, scores: Integers, masses: Integers, rate: Fraction) -> int:
        if mechanism == "exponential":
            return choose(self, mechanism, scores, masses, rate)
        order = np.argsort(random.exponential(size=masses.size) / masses)
        accepted = _coins(self._entropy, (scores.max() - scores)[order], rate)
        return int(order[np.argmax(accepted)])

    return patched(door.Kernel, "_choose", weighted)


def _parts_by_row_position() -> AbstractContextManager[None]:
    def by_position(
        table: EncodedTable, split_key: bytes, salt: str, weights: tuple[int, ...]
    ) -> NDArray[np.unsignedinteger]:
        return (np.arange(table.rows) % len(weights)).astype(np.uint8)

    return patched(rows, "row_parts", by_position)


# -- prices ------------------------------------------------------------------------------------------------------------


def _stale_price() -> AbstractContextManager[None]:
    """The ledger charges what the query asked for before its epsilon was doubled."""

    def stale(plan: ResolvedQuery) -> Charge:
        return charge_of(replace(plan, units=tuple(units // 2 for units in plan.units)))

    return patched(door, "charge_of", stale)


def _free_class_counts() -> AbstractContextManager[None]:
    """The price of a tree forgets the counts in its leaves."""

    def forgetful(plan: ResolvedQuery) -> Charge:
        return Charge() if isinstance(plan.question, ResolvedHistogram) and plan.question.keys else charge_of(plan)

    return patched(door, "charge_of", forgetful)


def _tree_that_asks_for_more() -> AbstractContextManager[None]:
    """Class counts at twice the epsilon that the plan states: the grant runs out, and the run is refused."""
    count_classes = Growth.count_classes

    def greedy(self: Growth, asked: Any, epsilon: Any) -> None:
        each = [epsilon] * len(asked) if isinstance(epsilon, Epsilon) else epsilon
        count_classes(self, asked, [Epsilon(2 * amount.units) for amount in each])

    return patched(Growth, "count_classes", greedy)


MUTANTS: Sequence[Mutant] = (
    Mutant("halved-noise", "noise of half the scale", ("count", "count-small-epsilon", "histogram"), _halved_noise),
    Mutant(
        "halved-noise-end-to-end",
        "noise of half the scale, seen through a whole tree",
        ("tree-classifier-leaves",),
        _halved_noise,
        1.0,
    ),
    Mutant("sensitivity-off-by-one", "a sum's sensitivity one too small", ("sum-on-a-small-grid",), _sensitivity_off_by_one),
    Mutant(
        "one-row-a-person-too-few",
        "the price is for one row a person fewer than count",
        ("persons-with-several-rows",),
        _one_row_a_person_too_few,
        1.0,
    ),
    Mutant("missing-clamp", "values not clamped where the sensitivity thinks", ("sum-of-an-outlier",), _missing_clamp),
    Mutant("gap-as-zero", "a row without a value counts as 0", ("mean-of-a-gap",), _gap_as_zero),
    Mutant(
        "half-the-range-of-moments",
        "noise for half the range, as if sums were around the middle",
        ("mean", "variance", "covariance"),
        _half_the_range_of_moments,
        1.0,
    ),
    Mutant(
        "number-of-rows-for-nothing",
        "a statistic and the number of its rows, each paid with all of epsilon",
        ("sum-with-gaps", "quantile-with-gaps"),
        _number_of_rows_for_nothing,
        1.0,
    ),
    Mutant(
        "points-that-rows-have",
        "a quantile among the rows' own values, without a public domain",
        ("quantile-with-gaps",),
        _points_that_rows_have,
    ),
    Mutant(
        "missing-cap-of-persons",
        "all rows of a person count, not k of them",
        ("persons-with-several-rows",),
        _missing_cap_of_persons,
    ),
    Mutant("missing-factor-2-quantile", "R = m instead of 2 m", ("quantile",), _missing_factor_two_of_a_quantile, 1.0),
    Mutant(
        "missing-factor-2-choice",
        "choices at twice their rate",
        ("label-by-exponential", "label-by-exponential-generic", "label-by-permute-and-flip"),
        _half_the_range_of_choices,
    ),
    Mutant("noise-shared-by-bins", "one draw for all bins", ("histogram",), _noise_shared_by_bins),
    Mutant("noise-shared-by-queries", "two queries, the same noise", ("where",), _noise_shared_by_queries),
    Mutant("field-without-noise", "the last bin has no noise", ("histogram",), _last_field_without_noise),
    Mutant(
        "printed-split-point-formula",
        "exp(epsilon score) as printed (erratum E2)",
        ("split-points-by-gini-generic",),
        _printed_split_point_formula,
        1.0,
    ),
    Mutant("gini-with-range-1", "R = 1 for Gini, which needs 2", ("split-by-gini",), _gini_as_if_its_range_were_one, 1.0),
    Mutant(
        "gain-as-if-monotone",
        "R = S for a gain, which needs 2S",
        ("specialisations-by-gain", "specialisations-by-gini-gain", "specialisations-by-gain-by-permute-and-flip"),
        _gain_as_if_monotone,
        1.0,
    ),
    Mutant(
        "half-a-bit",
        "half the sensitivity of the information gain a row",
        ("specialisations-by-infogain-per-row",),
        _half_a_bit,
        2.0,
    ),
    Mutant(
        "empty-combinations-dropped",
        "a sparse histogram noises only combinations with rows",
        ("sparse-histogram", "sparse-histogram-of-many-combinations"),
        _empty_combinations_dropped,
    ),
    Mutant(
        "threshold-before-noise",
        "a sparse histogram leaves small groups out by their exact counts",
        ("sparse-histogram-of-many-combinations",),
        _threshold_before_noise,
    ),
    Mutant(
        "domain-of-one-coordinate",
        "sums of d coordinates noised for the reach of one (erratum E4)",
        ("offset-sums", "offset-sums-of-an-outlier"),
        _domain_of_one_coordinate,
    ),
    Mutant(
        "smallest-radius",
        "all clusters noised for the smallest radius",
        ("offset-sums-of-an-outlier",),
        _smallest_radius,
    ),
    Mutant(
        "clipped-per-coordinate",
        "each coordinate clipped to the radius, not their sum",
        ("offset-sums",),
        _clipped_coordinate_by_coordinate,
    ),
    Mutant("private-tree-without-decay", "a level costs no rows", ("private-tree",), _no_decay),
    Mutant(
        "private-tree-noise-of-one-comparison",
        "noise of scale 1 / epsilon, where a path needs 3 / epsilon",
        ("private-tree",),
        _noise_of_one_comparison,
    ),
    Mutant("private-tree-without-floor", "empty nodes sink with every level", ("private-tree",), _no_floor, 0.6),
    Mutant(
        "mean-of-many-rows",
        "a mean's sensitivity (u - l) / n, where rows may be few",
        ("designed-mean-by-a-staircase",),
        _mean_of_many_rows,
    ),
    Mutant(
        "staircase-of-half-the-length",
        "stairs of half the sensitivity",
        ("designed-mean-by-a-staircase", "sums-in-a-box"),
        _staircase_of_half_the_length,
        1.0,
    ),
    Mutant(
        "halves-away-from-zero",
        "values rounded to the grid by round() (erratum E9)",
        ("designed-max-by-a-finite-mechanism",),
        _halves_away_from_zero,
        1.0,
    ),
    Mutant(
        "all-of-epsilon-for-every-sum",
        "each of several sums noised for the whole epsilon",
        ("sums-in-a-cross",),
        _all_of_epsilon_for_every_sum,
        1.0,
    ),
    Mutant(
        "weighted-permute-and-flip",
        "an order by masses, and one flip a candidate",
        ("families-by-permute-and-flip",),
        _weighted_permute_and_flip,
    ),
    Mutant("row-position-subsets", "parts by row position (erratum E14)", ("keyed-hash-parts",), _parts_by_row_position),
    Mutant("stale-price", "the ledger charges half of what the noise uses", ("count",), _stale_price),
    Mutant(
        "leaf-counts-left-out",
        "class counts of leaves are not charged",
        ("tree-classifier-leaves",),
        _free_class_counts,
        0.6,
    ),
    Mutant(
        "leaves-asked-at-twice-their-price",
        "a tree asks for more than its plan states",
        ("tree-classifier-leaves",),
        _tree_that_asks_for_more,
    ),
)
