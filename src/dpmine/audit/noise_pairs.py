"""Audit pairs of noisy numbers: counts, histograms, sums; and of what narrows a table before it is counted."""

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

import numpy as np

from dpmine.audit.laws import (
    Buckets,
    binomial_law,
    by_group,
    independent,
    laplace_between,
    phantom_law,
    private_tree_law,
)
from dpmine.audit.pairs import COPY, ROUNDS, AuditPair, Outcome, answers, copied_schema
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.dates import Date
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.columns import col
from dpmine.language.keys import AttributeKey, Bins, ByCalendar, Group, Groups, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit
from dpmine.language.views import LEAF, Split
from dpmine.questions.histogram import Histogram
from dpmine.questions.moments import Moments
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import CutRule, PrivateTree
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.questions.total import Total
from dpmine.tables.private_table import PrivateTable

COPIES = 1_000
NOISE = "dpmine.kernel.samplers.laplace.ExactNoise"
TOTAL = "dpmine.questions.total.Total"
HISTOGRAM = "dpmine.questions.histogram.Histogram"
SPARSE = ("dpmine.questions.sparse_histogram.SparseHistogram", "dpmine.kernel.samplers.sparse.sparse_counts")
CELL = "dpmine.language.views.Cell"
ATTRIBUTE = "dpmine.language.keys.AttributeKey"
LETTERS = Nominal("letter", ("a", "b"), "a", missing="a")
FEW_EDGES = (-1, 1, 2, 4)  # where an outcome has several numbers: many outcomes make it hard to choose an event


def noise_pairs() -> Iterator[AuditPair]:
    yield _count("count", "1")
    yield _count("count-small-epsilon", "0.1", runs=25_000, rounds=80)
    yield _count("count-large-epsilon", "5")
    yield _count("count-tiny-epsilon", "0.01", distance=100, runs=20_000)
    yield _count("count-by-opendp", "1", noise="opendp", runs=10_000)
    yield _histogram()
    yield _sparse_histogram()
    yield _many_combinations()
    yield _keys()
    yield _calendar()
    yield _cells_with_different_epsilons()
    yield _where()
    yield _composition()
    yield _partition()
    yield _parts()
    yield _persons()
    yield _models_as_keys()
    yield _sum("sum", 100)
    yield _sum("sum-of-an-outlier", 10**9)
    yield _small_grid()
    yield _sum_with_gaps()
    yield _moments("mean", ("size",), lambda x, y: (x, 60 - x))
    yield _moments("variance", ("size", "size"), lambda x, y: (x * x, 2 * x * (60 - x), (60 - x) ** 2))
    yield _moments("covariance", ("size", "weight"), lambda x, y: (x * y, x * (4 - y), (60 - x) * y, (60 - x) * (4 - y)))
    yield _mean_of_a_gap()
    yield _nearest_centres()
    yield _offset_sums()
    yield _offset_of_an_outlier()
    yield _private_tree()


def count_edges(exact: int, epsilon: float, distance: int = 1) -> tuple[int, ...]:
    """Edges in steps of the noise's scale, with one where the larger table's count lies: more would blur the event."""
    step = max(distance // 4, round(1 / epsilon), 1)
    reach = max(round(4 / epsilon / step), 4)
    return tuple(exact + distance + step * place for place in range(-reach - distance // step, reach + 1))


def _count(
    name: str, epsilon: str, *, distance: int = 1, noise: str = "exact", runs: int = 20_000, rounds: int = ROUNDS
) -> AuditPair:
    buckets = Buckets(count_edges(1, float(epsilon), distance))
    scale = 1 / float(epsilon)
    group = (
        f"{distance} rows more, since epsilon-DP says distance times epsilon for a group" if distance > 1 else "one row more"
    )

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([count for (count,) in answers(private, Histogram(()), epsilon)]))

    return AuditPair(
        name,
        (HISTOGRAM, CELL, ATTRIBUTE, NOISE if noise == "exact" else "dpmine.owner.opendp_noise.OpenDPNoise"),
        f"A count moves by its whole sensitivity with every row: {group}.",
        epsilon,
        copied_schema(COPIES, LETTERS),
        ([{"letter": "a"}], [{"letter": "a"}] * (1 + distance)),
        ask,
        laws=(buckets.law(1, scale), buckets.law(1 + distance, scale)),
        distance=distance,
        noise=noise,
        needs="opendp" if noise == "opendp" else None,
        runs=runs,
        rounds=rounds,
        tight=True,
    )


def _histogram() -> AuditPair:
    buckets = Buckets(FEW_EDGES)
    around = buckets.law(0, 1.0)

    def ask(private: PrivateTable) -> list[Outcome]:
        counts = answers(private, Histogram((AttributeKey("letter"),)), 1)
        return _tuples(buckets, counts)

    return AuditPair(
        "histogram",
        (HISTOGRAM, NOISE, ATTRIBUTE),
        "The row falls into the last bin; both bins are the outcome, so that noise which two bins share shows.",
        "1",
        copied_schema(COPIES, LETTERS),
        ([{"letter": "b"}], [{"letter": "b"}] * 2),
        ask,
        laws=(independent(around, buckets.law(1, 1.0)), independent(around, buckets.law(2, 1.0))),
        tight=True,
    )


def _sparse_histogram() -> AuditPair:
    """Threshold 1, and a row in a combination that was empty: its being shown must not prove that somebody is there."""
    at_least = 1
    buckets = Buckets((at_least, 3))  # 0 is hidden
    letters = Nominal("letter", ("a", "b", "c", "d"), "a", missing="a")

    def ask(private: PrivateTable) -> list[Outcome]:
        shown = answers(private, SparseHistogram((AttributeKey("letter"),), at_least), 1)
        counts = np.zeros((len(shown), letters.size), dtype=np.int64)
        for copy, numbers in enumerate(shown):
            counts[copy, list(numbers[::2])] = numbers[1::2]
        return _tuples(buckets, counts[:, [0, 2, 3]].tolist())

    empty, one, two = (buckets.law(exact, 1.0) for exact in (0, 1, 2))
    return AuditPair(
        "sparse-histogram",
        (*SPARSE, NOISE, ATTRIBUTE),
        "The row is the first in its combination, beside one that holds two rows and one that stays empty.",
        "1",
        copied_schema(500, letters),
        ([{"letter": "a"}] * 2, [*[{"letter": "a"}] * 2, {"letter": "c"}]),
        ask,
        laws=(independent(two, empty, empty), independent(two, one, empty)),
        tight=True,
        runs=10_000,
    )


def _many_combinations() -> AuditPair:
    """A million combinations and a high threshold, which the row's own combination reaches by that row."""
    at_least = 12
    buckets = Buckets((at_least, at_least + 2))
    points = Numeric("size", Decimal(0), Decimal(999), Decimal(1), Decimal(0))
    keys = (AttributeKey("size"), AttributeKey("weight"))
    own = 998 * 1000 + 1

    def ask(private: PrivateTable) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for numbers in answers(private, SparseHistogram(keys, at_least), 1):
            shown = dict(zip(numbers[::2], numbers[1::2], strict=True))
            (place,) = buckets.of([shown.pop(own, 0)])
            outcomes.append((place, min(len(shown), 8)))
        return outcomes

    row = {"size": 998, "weight": 1}
    phantoms = phantom_law(10**6 - 1, 1.0, at_least, 8)
    return AuditPair(
        "sparse-histogram-of-many-combinations",
        (*SPARSE, NOISE, ATTRIBUTE),
        "The row lifts its combination to the threshold, next to a million empty ones of which noise shows four or five.",
        "1",
        copied_schema(250, points, Numeric("weight", Decimal(0), Decimal(999), Decimal(1), Decimal(0))),
        ([row] * (at_least - 1), [row] * at_least),
        ask,
        laws=(
            independent(buckets.law(at_least - 1, 1.0), phantoms),
            independent(buckets.law(at_least, 1.0), phantoms),
        ),
        tight=True,
        runs=6_000,
    )


def _keys() -> AuditPair:
    keys = (
        Bins("size", ("5",)),
        Groups("letter", (Group("b", ("b",)),), rest="others"),
        Test(col("size") >= 7),
    )
    buckets = Buckets((0, 1, 2))

    def ask(private: PrivateTable) -> list[Outcome]:
        table = np.array(answers(private, Histogram(keys), 1)).reshape(-1, 2, 2, 2)
        counts = table[:, 1, 0, 1], table[:, 0, 0, 0]  # the row's own cell (size >= 5, b, size >= 7), and another
        return list(zip(*(buckets.of(column.tolist()) for column in counts), strict=True))

    return AuditPair(
        "histogram-by-derived-keys",
        (HISTOGRAM, "dpmine.language.keys.Bins", "dpmine.language.keys.Groups", "dpmine.language.keys.Test"),
        "A row has one label under every key, so exactly one combination gains one.",
        "1",
        copied_schema(200, LETTERS, Numeric("size", Decimal(0), Decimal(9), Decimal(1), Decimal(0))),
        ([{"letter": "b", "size": 8}], [{"letter": "b", "size": 8}] * 2),
        ask,
        laws=(
            independent(buckets.law(1, 1.0), buckets.law(0, 1.0)),
            independent(buckets.law(2, 1.0), buckets.law(0, 1.0)),
        ),
        tight=True,
        runs=10_000,
    )


def _calendar() -> AuditPair:
    keys = (ByCalendar("admitted", "weekday"), ByCalendar("admitted", "month"))
    buckets = Buckets((0, 1, 2))
    admitted = {"admitted": "2013-03-06"}  # a Wednesday

    def ask(private: PrivateTable) -> list[Outcome]:
        table = np.array(answers(private, Histogram(keys), 1)).reshape(-1, 8, 13)  # seven days and twelve months, and gaps
        counts = table[:, 2, 2], table[:, 0, 0]  # the row's own cell, and another
        return list(zip(*(buckets.of(column.tolist()) for column in counts), strict=True))

    return AuditPair(
        "histogram-by-the-calendar",
        (HISTOGRAM, "dpmine.language.keys.ByCalendar"),
        "A row has one weekday and one month, so exactly one combination gains one.",
        "1",
        copied_schema(200, Date("admitted", "2013-01-01", "2013-12-31", "month")),
        ([admitted], [admitted] * 2),
        ask,
        laws=(
            independent(buckets.law(1, 1.0), buckets.law(0, 1.0)),
            independent(buckets.law(2, 1.0), buckets.law(0, 1.0)),
        ),
        tight=True,
        runs=10_000,
    )


def _cells_with_different_epsilons() -> AuditPair:
    buckets = Buckets(FEW_EDGES)
    copies = 100
    both = Split(AttributeKey("letter"), (LEAF, LEAF))
    rules = Split(AttributeKey(COPY), (both,) * copies)

    def ask(private: PrivateTable) -> list[Outcome]:
        numbers = np.array(answers(private, Histogram(()), ["0.5", "1"] * copies, rules)).reshape(-1, 2)
        return _tuples(buckets, numbers.tolist())

    return AuditPair(
        "cells-with-different-epsilons",
        (HISTOGRAM, CELL, NOISE),
        "The row lies in the cell with the larger epsilon, which is what the partition costs.",
        "1",
        copied_schema(copies, LETTERS),
        ([{"letter": "b"}], [{"letter": "b"}] * 2),
        ask,
        laws=(
            independent(buckets.law(0, 2.0), buckets.law(1, 1.0)),
            independent(buckets.law(0, 2.0), buckets.law(2, 1.0)),
        ),
        tight=True,
        runs=5_000,
    )


def _where() -> AuditPair:
    buckets = Buckets(FEW_EDGES)
    wide = buckets.law(0, 2.0), buckets.law(1, 2.0)

    def ask(private: PrivateTable) -> list[Outcome]:
        others = answers(private.where(col("letter") == "a"), Histogram(()), "0.5")
        everyone = answers(private, Histogram(()), "0.5")
        return _tuples(buckets, [(one, all_) for (one,), (all_,) in zip(others, everyone, strict=True)])

    return AuditPair(
        "where",
        ("dpmine.language.views.Where", HISTOGRAM, NOISE),
        "The row is in the table and not in the view, so noise that two queries share cancels in their difference.",
        "1",
        copied_schema(COPIES, LETTERS),
        ([], [{"letter": "b"}]),
        ask,
        laws=(independent(wide[0], wide[0]), independent(wide[0], wide[1])),
        runs=8_000,
    )


def _composition() -> AuditPair:
    buckets = Buckets(FEW_EDGES)
    law = [buckets.law(exact, 2.0) for exact in (1, 2)]

    def ask(private: PrivateTable) -> list[Outcome]:
        inside = answers(private.where(col("letter") == "b"), Histogram(()), "0.5")
        everyone = answers(private, Histogram(()), "0.5")
        return _tuples(buckets, [(one, all_) for (one,), (all_,) in zip(inside, everyone, strict=True)])

    return AuditPair(
        "composition",
        ("dpmine.language.views.Where", HISTOGRAM, NOISE),
        "Both queries see the row, so their epsilons add up to the whole claim.",
        "1",
        copied_schema(COPIES, LETTERS),
        ([{"letter": "b"}], [{"letter": "b"}] * 2),
        ask,
        laws=(independent(law[0], law[0]), independent(law[1], law[1])),
        tight=True,
        runs=10_000,
    )


def _partition() -> AuditPair:
    buckets = Buckets(FEW_EDGES)

    def ask(private: PrivateTable) -> list[Outcome]:
        views = private.partition("letter")
        counts = [answers(view, Histogram(()), 1) for view in views.values()]
        return _tuples(buckets, [(one, other) for (one,), (other,) in zip(*counts, strict=True)])

    law = [buckets.law(exact, 1.0) for exact in (0, 1, 2)]
    return AuditPair(
        "partition",
        (CELL, HISTOGRAM, NOISE),
        "The views are disjoint: the row moves one of the two counts, and both cost epsilon once.",
        "1",
        copied_schema(COPIES, LETTERS),
        ([{"letter": "b"}], [{"letter": "b"}] * 2),
        ask,
        laws=(independent(law[0], law[1]), independent(law[0], law[2])),
        tight=True,
        runs=10_000,
    )


def _parts() -> AuditPair:
    """Rows c alternate with rows b; a row a is put in front of them."""
    key = Part("audit", (1, 1))
    letters = Nominal("letter", ("a", "b", "c"), "a", missing="a")
    at_least_one, several = Buckets((1,)), Buckets((3,))
    crowd = [{"letter": letter} for _ in range(6) for letter in ("b", "c")]

    def ask(private: PrivateTable) -> list[Outcome]:
        outcomes: list[list[int]] = []
        for view in private.partition(key).values():
            counts = np.array(answers(view, Histogram((AttributeKey("letter"),)), 1))
            outcomes += [at_least_one.of(counts[:, 0].tolist()), several.of(counts[:, 2].tolist())]
        return list(zip(*outcomes, strict=True))

    return AuditPair(
        "keyed-hash-parts",
        ("dpmine.language.keys.Part", CELL, HISTOGRAM, NOISE),
        "The row is inserted in front of rows of two kinds in turn: parts by row position would swap them all.",
        "1",
        copied_schema(COPIES, letters),
        (crowd, [{"letter": "a"}, *crowd]),
        ask,
        asks=1,
        runs=8_000,
    )


def _persons() -> AuditPair:
    buckets = Buckets(count_edges(1, 0.5, 3))

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([count for (count,) in answers(private, Histogram(()), "0.5")]))

    extra = [{"letter": "b", "who": "new"}] * 5
    return AuditPair(
        "persons-with-several-rows",
        (HISTOGRAM, NOISE, "dpmine.facts.facts.Unit"),
        "The new person owns five rows, of which three count: a query at 0.5 costs 1.5.",
        "1.5",
        copied_schema(500, LETTERS, unit=Unit("who", 3)),
        ([{"letter": "a", "who": "old"}], [{"letter": "a", "who": "old"}, *extra]),
        ask,
        laws=(buckets.law(1, 2.0), buckets.law(4, 2.0)),
        tight=True,
        runs=12_000,
    )


def _models_as_keys() -> AuditPair:
    tree = ScoreSplit(AttributeKey("letter"), (ScoreLeaf((900, 100)), ScoreLeaf((200, 800))))
    keys = Predicted((tree,), ("no", "yes")), ScoreBands((tree,), 1, (500,))
    buckets = Buckets((0, 1, 2))
    ill = Nominal("ill", ("no", "yes"), "no", missing="no")

    def ask(private: PrivateTable) -> list[Outcome]:
        counts = np.array(answers(private, Histogram((*keys, AttributeKey("ill"))), 1)).reshape(-1, 2, 2, 2)
        columns = counts[:, 1, 1, 1], counts[:, 0, 0, 0]
        return list(zip(*(buckets.of(column.tolist()) for column in columns), strict=True))

    row = {"letter": "b", "ill": "yes"}
    around = buckets.law(0, 1.0)
    return AuditPair(
        "models-as-keys",
        ("dpmine.language.model_keys.Predicted", "dpmine.language.model_keys.ScoreBands", HISTOGRAM, NOISE),
        "A model gives a row one label and one band, so one combination gains one.",
        "1",
        copied_schema(500, LETTERS, ill, class_attribute="ill"),
        ([row], [row] * 2),
        ask,
        laws=(independent(buckets.law(1, 1.0), around), independent(buckets.law(2, 1.0), around)),
        tight=True,
        runs=10_000,
    )


def _sum(name: str, value: int) -> AuditPair:
    """A row at the bound, or far outside it: either way the sum moves by all that clamping allows."""
    size = Numeric("size", Decimal(-50), Decimal(100), Decimal(1), Decimal(0))
    buckets = Buckets(tuple(range(-300, 525, 25)))

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([total for (total,) in answers(private, Total("size"), 1)]))

    return AuditPair(
        name,
        (TOTAL, NOISE),
        "The new value lies at the bound that is farther from 0"
        if value == 100
        else "The new value lies far outside the bounds, where only clamping keeps it from moving the sum by more",
        "1",
        copied_schema(250, size),
        ([{"size": 0}], [{"size": 0}, {"size": value}]),
        ask,
        laws=(buckets.law(0, 100.0), buckets.law(100, 100.0)),
        tight=True,
        runs=6_000,
    )


def _small_grid() -> AuditPair:
    buckets = Buckets(tuple(range(-8, 14, 2)))

    def ask(private: PrivateTable) -> list[Outcome]:
        return list(buckets.of([total for (total,) in answers(private, Total("size"), 1)]))

    return AuditPair(
        "sum-on-a-small-grid",
        (TOTAL, NOISE),
        "With values 0, 1 and 2 the sensitivity is 2, and one too few is half of it.",
        "1",
        copied_schema(250, Numeric("size", Decimal(0), Decimal(2), Decimal(1), Decimal(0))),
        ([], [{"size": 2}]),
        ask,
        laws=(buckets.law(0, 2.0), buckets.law(2, 2.0)),
        tight=True,
        runs=6_000,
    )


def _sum_with_gaps() -> AuditPair:
    """Values in steps of 1/4 and codes for two halves: a sum in quarters for 19/20 of epsilon, and a count for the rest."""
    size = Numeric("size", Decimal(0), Decimal(10), Decimal(5), resolution=Decimal("0.25"))
    total, rows = Buckets((40,)), Buckets((1,))

    def ask(private: PrivateTable) -> list[Outcome]:
        sums, counts = zip(*answers(private, Total("size"), 1), strict=True)
        return list(zip(total.of(sums), rows.of(counts), strict=True))

    return AuditPair(
        "sum-with-gaps",
        (TOTAL, NOISE),
        "The row with a value moves the sum by all it can, and with it the number of rows; the row without moves neither.",
        "1",
        copied_schema(250, size),
        ([{"size": None}], [{"size": None}, {"size": 10}]),
        ask,
        laws=(
            independent(total.law(0, 40 / 0.95), rows.law(0, 20.0)),
            independent(total.law(40, 40 / 0.95), rows.law(1, 20.0)),
        ),
        tight=True,
        runs=6_000,
    )


def _moments(name: str, attributes: tuple[str, ...], parts: Callable[[int, int], tuple[int, ...]]) -> AuditPair:
    """A row in the middle of the range moves all parts at once, and together by as much as any other row."""
    sizes = Numeric("size", Decimal(-20), Decimal(40), Decimal(1), Decimal(0)), _points("weight", 5)
    moves, scale = parts(30, 2), float(sum(parts(30, 2)))
    buckets = [Buckets((move,)) for move in moves]

    def ask(private: PrivateTable) -> list[Outcome]:
        columns = zip(*answers(private, Moments(attributes), 1), strict=True)
        return list(zip(*(one.of(column) for one, column in zip(buckets, columns, strict=True)), strict=True))

    laws = [independent(*(one.law(rows * move, scale) for one, move in zip(buckets, moves, strict=True))) for rows in (0, 1)]
    return AuditPair(
        name,
        ("dpmine.questions.moments.Moments", NOISE),
        "The row lies in the middle: each part moves by a share, and all together by the whole range (or its product).",
        "1",
        copied_schema(250, *sizes),
        ([], [{"size": 10, "weight": 2}]),
        ask,
        laws=(laws[0], laws[1]),
        tight=True,
        runs=10_000,
    )


def _mean_of_a_gap() -> AuditPair:
    """Bounds far from 0, so that a gap which counts as 0 would lie outside."""
    size = Numeric("size", Decimal(20), Decimal(30), Decimal(1), "drop")
    buckets = Buckets((-20, 0, 10)), Buckets((0, 10, 30))

    def ask(private: PrivateTable) -> list[Outcome]:
        columns = zip(*answers(private, Moments(("size",)), 1), strict=True)
        return list(zip(*(one.of(column) for one, column in zip(buckets, columns, strict=True)), strict=True))

    law = independent(buckets[0].law(0, 10.0), buckets[1].law(10, 10.0))
    return AuditPair(
        "mean-of-a-gap",
        ("dpmine.questions.moments.Moments", NOISE),
        "The row that is added has no value, so it must move neither sum, wherever the bounds lie.",
        "1",
        copied_schema(250, size),
        ([{"size": 20}], [{"size": 20}, {"size": None}]),
        ask,
        laws=(law, law),
        runs=4_000,
    )


def _points(name: str, points: int) -> Numeric:
    return Numeric(name, Decimal(0), Decimal(points - 1), Decimal(1), Decimal(0))


def _nearest_centres() -> AuditPair:
    nearest = Nearest(("x", "y"), (4, 4), (10, 20), ((0, 0), (40, 60)))
    keys = nearest, NearestBands(nearest, (100, 500))
    buckets = Buckets((0, 1, 2))

    def ask(private: PrivateTable) -> list[Outcome]:
        counts = np.array(answers(private, Histogram(keys), 1)).reshape(-1, 2, 3)
        columns = counts[:, 1, 1], counts[:, 0, 2]
        return list(zip(*(buckets.of(column.tolist()) for column in columns), strict=True))

    row = {"x": 4, "y": 4}  # at (40, 80): 400 from the second centre
    around = buckets.law(0, 1.0)
    return AuditPair(
        "nearest-centres-as-keys",
        ("dpmine.language.model_keys.Nearest", "dpmine.language.model_keys.NearestBands", HISTOGRAM, NOISE),
        "A row has one nearest centre and one band of distance to it, so one combination gains one.",
        "1",
        copied_schema(500, _points("x", 5), _points("y", 5)),
        ([row], [row] * 2),
        ask,
        laws=(independent(buckets.law(1, 1.0), around), independent(buckets.law(2, 1.0), around)),
        tight=True,
        runs=10_000,
    )


def _views(private: PrivateTable) -> list[PrivateTable]:
    """What is asked of a whole view cannot be asked of all copies at once: each is a cell of one partition."""
    return list(private.partition(COPY).values())


def _offset_sums() -> AuditPair:
    """Ten numbers each move by a tenth of the radius: how many of them reach where the row puts them."""
    names = tuple(f"n{place}" for place in range(10))
    nearest = Nearest(names, (1,) * 10, (1_000,) * 10, ((0,) * 10,))
    radius, own = 1_000, 100
    question = OffsetSums(nearest, ((0,) * 10,), (radius,))

    def ask(private: PrivateTable) -> list[Outcome]:
        sums = [answers(view, question, 1, LEAF)[0] for view in _views(private)]
        return [sum(number >= own for number in numbers) for numbers in sums]

    chances = [laplace_between(own - exact, math.inf, float(radius)) for exact in (0, own)]
    return AuditPair(
        "offset-sums",
        ("dpmine.questions.offset_sums.OffsetSums", NOISE),
        "An extreme point (r, ..., r) in ten dimensions moves every sum, and all together by the radius, an L1 bound.",
        "1",
        copied_schema(50, *(_points(name, 2) for name in names)),
        ([], [dict.fromkeys(names, 1)]),
        ask,
        laws=(binomial_law(10, chances[0]), binomial_law(10, chances[1])),
        runs=1_500,
    )


def _offset_of_an_outlier() -> AuditPair:
    """Two clusters of different radii; the row is far out along one axis of the wider one."""
    nearest = Nearest(("x", "y"), (9, 9), (100, 100), ((0, 0), (900, 0)))
    question = OffsetSums(nearest, ((0, 0), (900, 0)), (10, 40))
    narrow, wide = Buckets((0,)), Buckets((-20, 1, 20, 40, 60))

    def ask(private: PrivateTable) -> list[Outcome]:
        sums = [answers(view, question, 1, LEAF)[0] for view in _views(private)]
        columns = narrow.of([numbers[0] for numbers in sums]), wide.of([numbers[3] for numbers in sums])
        return list(zip(*columns, strict=True))

    other = narrow.law(0, 10.0)
    return AuditPair(
        "offset-sums-of-an-outlier",
        ("dpmine.questions.offset_sums.OffsetSums", NOISE),
        "The row lies far outside its cluster's radius along one axis, so one sum moves by all that clipping allows.",
        "1",
        copied_schema(50, _points("x", 10), _points("y", 10)),
        ([], [{"x": 9, "y": 9}]),
        ask,
        laws=(independent(other, wide.law(0, 40.0)), independent(other, wide.law(40, 40.0))),
        tight=True,
        runs=1_500,
    )


def _private_tree() -> AuditPair:
    """Three rows at one end, whose node below the root is at its threshold and the next at the floor; 20 at the other."""
    deepest = 4
    question = PrivateTree((CutRule("x", (0,), (0,), (0,), 1),), deepest)
    few, many = 3, 20  # as many rows as one level costs at this epsilon, and more than all levels

    def seen(bits: Sequence[int]) -> Outcome:
        """How many nodes are cut on the row's own path, which comes first, and how many elsewhere."""
        own = (*bits, 0).index(0)
        return min(own, 3), min(sum(bits) - own, 6)

    def law(rows: int) -> dict[Outcome, float]:
        structures = private_tree_law([rows, *[0] * 14, many], 1.0, deepest)
        return by_group(np.array(list(structures.values())), [seen(bits) for bits in structures])

    def ask(private: PrivateTable) -> list[Outcome]:
        return [seen(answers(view, question, 1, LEAF)[0]) for view in _views(private)]

    return AuditPair(
        "private-tree",
        ("dpmine.questions.private_tree.PrivateTree", "dpmine.kernel.mechanisms.private_tree.grow_private_tree", NOISE),
        "On the row's path threshold and floor are a level's cost apart, where it moves both comparisons by all it can.",
        "1",
        copied_schema(50, _points("x", 16)),
        ([{"x": 15}] * many + [{"x": 0}] * few, [{"x": 15}] * many + [{"x": 0}] * (few + 1)),
        ask,
        laws=(law(few), law(few + 1)),
        runs=1_000,
    )


def _tuples(buckets: Buckets, rows: Sequence[Sequence[int]]) -> list[Outcome]:
    return [
        tuple(places) for places in np.array(buckets.of(np.array(rows).ravel().tolist())).reshape(len(rows), -1).tolist()
    ]
