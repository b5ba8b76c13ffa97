"""Audit pairs of statistics through designed noise, and of several sums at once."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from dpmine.audit.laws import Buckets, box_law, independent
from dpmine.audit.pairs import COPY, AuditPair, Outcome, Row, answers, copied_schema
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.views import LEAF
from dpmine.noise.finite_tables import LatticeNoise
from dpmine.questions.designed_statistic import DesignedStatistic
from dpmine.questions.vector_sums import VectorSums
from dpmine.tables.private_table import PrivateTable

COPIES = 50
DESIGNED = "dpmine.questions.designed_statistic.DesignedStatistic"
VECTOR = "dpmine.questions.vector_sums.VectorSums"
FINITE = "dpmine.kernel.samplers.finite_rows.drawn_output"
STAIRCASE = "dpmine.kernel.samplers.staircase.box_staircase"
NOISE = "dpmine.kernel.samplers.laplace.ExactNoise"


def designed_pairs() -> Iterator[AuditPair]:
    yield _largest_value_by_a_finite_mechanism()
    yield _count_by_a_finite_mechanism()
    yield _median_by_geometric_noise()
    yield _mean_by_a_staircase()
    yield _sums_in_a_box()
    yield _sums_in_a_cross()
    yield _means_with_gaps()


def _answered(private: PrivateTable, question: DesignedStatistic | VectorSums) -> list[tuple[int, ...]]:
    """These are questions about a whole view: each copy is a cell of one partition."""
    return [answers(view, question, 1, LEAF)[0] for view in private.partition(COPY).values()]


def _numeric(name: str, low: int, step: int, points: int) -> Numeric:
    return Numeric(name, Decimal(low), Decimal(low + step * (points - 1)), Decimal(step), Decimal(low))


def _geometric_on_three_points(low: int, step: int) -> FiniteMechanism:
    """Truncated geometric with a = p / q just above exp(-1), as whole numbers."""
    p, q = 36_788, 100_000
    first, middle = (q * q, (q - p) * p, p * p), (p * q, (q - p) * q, p * q)
    outputs = tuple(str(low + step * place) for place in range(3))
    return FiniteMechanism(str(low), str(step), outputs, (first, middle, first[::-1]))


def _law_of_a_row(mechanism: FiniteMechanism, place: int) -> dict[Outcome, float]:
    row = mechanism.weights[place]
    return {output: weight / sum(row) for output, weight in enumerate(row)}


def _largest_value_by_a_finite_mechanism() -> AuditPair:
    """The talk's heuristic: values -5 and 5 lie one sensitivity apart, and go to 0 and 10 by the floor rule."""
    mechanism = _geometric_on_three_points(-10, 10)

    def ask(private: PrivateTable) -> list[Outcome]:
        return [output for (output,) in _answered(private, DesignedStatistic("max", "size", mechanism, None))]

    return AuditPair(
        "designed-max-by-a-finite-mechanism",
        (DESIGNED, FINITE),
        "The row lifts the largest value from one end of the range to the other, and both ends are halves of a step.",
        "1",
        copied_schema(COPIES, _numeric("size", -5, 10, 2)),
        ([{"size": -5}], [{"size": -5}, {"size": 5}]),
        ask,
        laws=(_law_of_a_row(mechanism, 1), _law_of_a_row(mechanism, 2)),
        tight=True,
        runs=1_500,
    )


def _count_by_a_finite_mechanism() -> AuditPair:
    mechanism = _geometric_on_three_points(0, 1)

    def ask(private: PrivateTable) -> list[Outcome]:
        return [output for (output,) in _answered(private, DesignedStatistic("count", None, mechanism, None))]

    return AuditPair(
        "designed-count-by-a-finite-mechanism",
        (DESIGNED, FINITE),
        "A count within public bounds moves by one with every row, here from nobody to one.",
        "1",
        copied_schema(COPIES, _numeric("size", 0, 1, 2)),
        ([], [{"size": 1}]),
        ask,
        laws=(_law_of_a_row(mechanism, 0), _law_of_a_row(mechanism, 1)),
        tight=True,
        runs=1_500,
    )


def _median_by_geometric_noise() -> AuditPair:
    buckets = Buckets((1, 8))
    question = DesignedStatistic("median", "size", LatticeNoise("1", "geometric", 0), None)

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([steps for (steps,) in _answered(private, question)]))

    return AuditPair(
        "designed-median-by-geometric-noise",
        (DESIGNED, NOISE),
        "Of two rows at the ends of the range the lower one is the median, so the row moves it by the whole range.",
        "1",
        copied_schema(COPIES, _numeric("size", 0, 8, 2)),
        ([{"size": 8}], [{"size": 8}, {"size": 0}]),
        ask,
        laws=(buckets.law(8, 8.0), buckets.law(0, 8.0)),
        tight=True,
        runs=1_500,
    )


def _mean_by_a_staircase() -> AuditPair:
    """From nobody, where the mean is the middle 4, to one row at the upper end 8: half the range."""
    edges = (5, 8)
    buckets = Buckets(edges)
    question = DesignedStatistic("mean", "size", LatticeNoise("1", "staircase", 0), None)

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([steps for (steps,) in _answered(private, question)]))

    laws = [{place: chance for (place,), chance in box_law((4,), (0,), 1.0, (mean,), (edges,)).items()} for mean in (4, 8)]
    return AuditPair(
        "designed-mean-by-a-staircase",
        (DESIGNED, STAIRCASE),
        "The first row of an empty view moves the mean from the middle to an end; with more rows it moves less.",
        "1",
        copied_schema(COPIES, _numeric("size", 0, 1, 9)),
        ([], [{"size": 8}]),
        ask,
        laws=(laws[0], laws[1]),
        tight=True,
        runs=1_500,
    )


SIZES = _numeric("x", -2, 1, 5), _numeric("y", 0, 1, 4)
CORNER = {"x": -2, "y": 3}


def _vectors(question: VectorSums, buckets: Sequence[Buckets]) -> Callable[[PrivateTable], list[Outcome]]:
    """Ask for several sums at once, and put each into its own buckets."""

    def ask(private: PrivateTable) -> list[Outcome]:
        columns = zip(*_answered(private, question), strict=True)
        return list(zip(*(one.of(list(column)) for one, column in zip(buckets, columns, strict=True)), strict=True))

    return ask


def _sums_in_a_box() -> AuditPair:
    """Both sums move by all they can at once, and the box hides both for one epsilon."""
    edges = ((-1,), (3,))
    buckets = [Buckets(listed) for listed in edges]
    question = VectorSums(("x", "y"), False, False, "l-infinity", (0, 1))

    laws = [box_law((2, 3), (0, 1), 1.0, exact, edges) for exact in ((0, 0), (-2, 3))]
    return AuditPair(
        "sums-in-a-box",
        (VECTOR, STAIRCASE),
        "The row lies at a corner of the box of values, so every sum moves by its whole length at the same time.",
        "1",
        copied_schema(COPIES, *SIZES),
        ([], [CORNER]),
        _vectors(question, buckets),
        laws=(laws[0], laws[1]),
        tight=True,
        runs=2_500,
    )


def _sums_in_a_cross() -> AuditPair:
    """Independent noise for half of epsilon each."""
    buckets = Buckets((-1,)), Buckets((3,))
    question = VectorSums(("x", "y"), False, False, "l1", ())

    laws = [
        independent(*(one.law(number, scale) for one, number, scale in zip(buckets, exact, (4.0, 6.0), strict=True)))
        for exact in ((0, 0), (-2, 3))
    ]
    return AuditPair(
        "sums-in-a-cross",
        (VECTOR, NOISE),
        "The row lies at a corner of the box of values, so both sums lose their whole share of epsilon.",
        "1",
        copied_schema(COPIES, *SIZES),
        ([], [CORNER]),
        _vectors(question, buckets),
        laws=(laws[0], laws[1]),
        tight=True,
        runs=2_500,
    )


def _means_with_gaps() -> AuditPair:
    """From the middle of both ranges, over rows that have both values, of which there is none before."""
    edges = ((1,), (-1,), (2,))
    buckets = [Buckets(listed) for listed in edges]
    question = VectorSums(("x", "y"), True, True, "l-infinity", (0, 0, 1))
    sizes = [Numeric(one.name, one.low, one.high, one.step) for one in SIZES]

    laws = [box_law((1, 2, 2), (0, 0, 1), 1.0, exact, edges) for exact in ((0, 0, 0), (1, -2, 2))]
    others: list[Row] = [{"x": 2, "y": None}, {"x": None, "y": 3}, {"x": None, "y": None}]
    return AuditPair(
        "means-in-a-box-with-gaps",
        (VECTOR, STAIRCASE),
        "The only row that has all values lies at a corner, so both sums and their number of rows move by all they can.",
        "1",
        copied_schema(COPIES, *sizes),
        (others, [*others, CORNER]),
        _vectors(question, buckets),
        laws=(laws[0], laws[1]),
        tight=True,
        runs=2_500,
    )
