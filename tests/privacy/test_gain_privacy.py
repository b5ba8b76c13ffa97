"""Gains, whose candidates move both ways, and specialisations, whose candidates are about different rows: by brute force."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny_tables import KINDS, SCHEMA, Row, all_tables, encoded
from test_choice_privacy import EPSILON, MECHANISMS, SLACK, Watched, loss, query, watched

from dpmine.base.errors import RequestError
from dpmine.kernel.scores import GainScore, InfoGainPerRow, Score, score_named
from dpmine.language.columns import col as column
from dpmine.language.keys import AttributeKey, Bins, Group, Groups
from dpmine.language.keys import Test as TestKey
from dpmine.language.queries import Query, resolve
from dpmine.language.splits import Divide, Multiway, Specialise, Splits, Stay
from dpmine.questions.choose_split import ChooseSplit

GAINS = ("gain", "gini-gain", "infogain-per-row")
ADDED_UP = ("max", "gini", "infogain", "mixed")
SIZES = Bins("size", ("1", "2"))
LARGE = Specialise(SIZES, (1, 2))  # of the rows of size 1 and 2, the split between them
FAMILIES: tuple[Splits, ...] = (
    LARGE,
    Specialise(AttributeKey("colour"), (0, 1)),
    Specialise(Bins("size", ("1",)), (0, 1)),
    Specialise(SIZES, (1, 0)),
    Divide("size", "0", "2"),
    Divide("size", "1", "2"),
    Multiway(AttributeKey("colour")),
    Stay(1),
)


def named(score: str) -> Score:
    return score_named(score, SCHEMA.rows_at_most)


def choice(score: str, families: tuple[Splits, ...] = FAMILIES, mechanism: str = "exponential") -> Query:
    return query(ChooseSplit((families,), score, mechanism, "monotone"))


# -- the functions: every small table of class counts ------------------------------------------------------------------

SHAPES = {(2, 2): 7, (2, 3): 5, (3, 2): 5, (3, 3): 4, (2, 5): 4, (4, 4): 3}


@cache
def all_parts(branches: int, classes: int, rows: int) -> np.ndarray:
    """Every table [branches, classes] of at most that many rows."""
    places = branches * classes
    tables = []
    for count in range(rows + 1):
        for chosen in itertools.combinations_with_replacement(range(places), count):
            tables.append(np.bincount(np.array(chosen, dtype=np.intp), minlength=places))
    return np.array(tables, dtype=np.int64).reshape(-1, branches, classes)


def changes_of(score: Score, parts: np.ndarray) -> np.ndarray:
    """By how much a row in each place moves each table's score."""
    before = score.split(parts)
    moved = []
    for branch, label in itertools.product(range(parts.shape[1]), range(parts.shape[2])):
        more = parts.copy()
        more[:, branch, label] += 1
        moved.append(score.split(more) - before)
    return np.stack(moved, axis=1)


def keeps_its_sensitivity(score: Score, claimed: int) -> bool:
    return all(np.abs(changes_of(score, all_parts(*shape, rows))).max() <= claimed for shape, rows in SHAPES.items())


@pytest.mark.parametrize("name", GAINS)
def test_one_row_moves_a_gain_by_at_most_its_sensitivity_either_way(name: str) -> None:
    score = named(name)
    assert not score.monotone
    assert score.range("monotone") == score.range("generic") == 2 * score.sensitivity
    assert keeps_its_sensitivity(score, score.sensitivity)
    moved = changes_of(score, all_parts(2, 2, 7))
    assert moved.min() < 0 < moved.max()


def test_the_sensitivities_are_attained() -> None:
    """One row of Max's gain; one bit of information from one row to two, whatever the classes; of Gini nearly two rows."""
    for shape, rows in SHAPES.items():
        gains = changes_of(named("gain"), all_parts(*shape, rows))
        assert (gains.min(), gains.max()) == (-1, 1)
        assert changes_of(InfoGainPerRow(), all_parts(*shape, rows)).max() == 2**20
    pure = np.array([[[1000, 0], [0, 0]]], dtype=np.int64)
    assert changes_of(named("gini-gain"), pure).max() > 1.99 * 2**20
    beside = np.array([[[30, 0], [0, 30_000]]], dtype=np.int64)
    assert changes_of(named("gini-gain"), beside).min() < -1.9 * 2**20


def test_the_check_of_sensitivities_catches_half_a_bit_and_half_of_gini() -> None:
    assert not keeps_its_sensitivity(InfoGainPerRow(), 2**19)
    assert not keeps_its_sensitivity(InfoGainPerRow(), 2**20 - 1)
    assert not keeps_its_sensitivity(named("gini-gain"), 2**20)
    assert not keeps_its_sensitivity(named("gain"), 0)


@settings(deadline=None, max_examples=150)
@given(st.integers(2, 4), st.integers(2, 6), st.data(), st.sampled_from(GAINS), st.sampled_from([3, 50, 10**4, 2**31 // 24]))
def test_one_row_moves_a_gain_of_a_large_table_by_at_most_its_sensitivity(
    branches: int, classes: int, data: st.DataObject, name: str, most: int
) -> None:
    counts = st.lists(st.integers(0, most) | st.just(0), min_size=branches * classes, max_size=branches * classes)
    parts = np.array(data.draw(counts), dtype=np.int64).reshape(1, branches, classes)
    score = named(name)
    assert np.abs(changes_of(score, parts)).max() <= score.sensitivity


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 5), st.integers(2, 5), st.data())
def test_the_information_gain_is_off_by_less_than_its_rounding(branches: int, classes: int, data: st.DataObject) -> None:
    """Against 50 decimals, up to 2^31 rows: what doubles add to half a step is far below the step that S leaves for it."""
    size = branches * classes
    parts = data.draw(st.lists(st.integers(0, 2**31 // size) | st.integers(0, 3), min_size=size, max_size=size))
    table = np.array(parts, dtype=np.int64).reshape(branches, classes)

    def length_log(count: int) -> Decimal:
        return Decimal(count) * Decimal(count).ln() / Decimal(2).ln() if count else Decimal(0)

    with localcontext() as context:
        context.prec = 50
        total = sum(length_log(int(count)) for count in table.ravel()) + length_log(int(table.sum()))
        total -= sum(length_log(int(count)) for count in (*table.sum(axis=0), *table.sum(axis=1)))
        exact = total / max(int(table.sum()), 1) * 2**20
    assert abs(int(InfoGainPerRow().split(table[None])[0]) - exact) < Decimal("0.5") + Decimal(2) ** -15


@pytest.mark.parametrize("base", ["max", "gini"])
def test_a_gain_is_the_split_less_the_rows_unsplit(base: str) -> None:
    parts, score = all_parts(3, 2, 5), named(base)
    gained = score.branch(parts).sum(axis=1) - score.branch(parts.sum(axis=1))
    np.testing.assert_array_equal(GainScore(score).split(parts), gained)  # type: ignore[arg-type]
    assert np.all(gained >= (0 if base == "max" else -2))  # of Gini, each branch is floored


# -- mutual information: why one bit is enough -------------------------------------------------------------------------


def partitions(rows: int) -> Iterator[tuple[int, ...]]:
    """Every way to sort rows into unnamed groups: the first row is in group 0, each later one in an old or the next one."""

    def grown(start: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(start) == rows:
            yield start
        else:
            for group in range(max(start, default=-1) + 2):
                yield from grown((*start, group))

    return grown(())


def information(pairs: list[tuple[int, int]]) -> float:
    """The mutual information of branch and class over rows, in bits."""
    rows = len(pairs)

    def entropy(groups: Counter[object]) -> float:
        return -math.fsum(count / rows * math.log2(count / rows) for count in groups.values())

    branches, labels = (Counter(side) for side in zip(*pairs, strict=True)) if pairs else (Counter(), Counter())
    return entropy(branches) + entropy(labels) - entropy(Counter(pairs))  # type: ignore[arg-type]


def test_up_to_six_rows_no_row_moves_the_information_by_more_than_a_bit() -> None:
    """The part of the proof that is a finite check: every table of up to 5 rows, any branches and classes, one row more."""
    largest: dict[int, tuple[float, float]] = {}
    for rows in range(6):
        ways = list(partitions(rows + 1))
        moved = []
        for branches, labels in itertools.product(ways, repeat=2):
            pairs = list(zip(branches, labels, strict=True))
            moved.append(information(pairs) - information(pairs[:-1]))
        largest[rows] = min(moved), max(moved)
    assert largest[0] == (0, 0)
    assert largest[1] == (0, pytest.approx(1))
    assert all(low > -1 + 1e-9 and high < 1 - 1e-9 for rows, (low, high) in largest.items() if rows >= 2)


def test_from_six_rows_on_the_bound_of_the_proof_is_below_a_bit() -> None:
    """Rises are at most h(1/(n+1)) <= 1, falls at most (log n + (n+1) log(n+1) - n log n) / (n+1)."""
    n = np.concatenate((np.arange(6, 10_000), np.geomspace(10_000, 2**31, 1000)))
    falls = (np.log2(n) + (n + 1) * np.log2(n + 1) - n * np.log2(n)) / (n + 1)
    assert falls.max() < 0.98
    assert np.all(np.diff(falls) < 0)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_the_two_inequalities_of_the_proof(pairs: list[tuple[int, int]], row: tuple[int, int]) -> None:
    n, m = len(pairs), sum(label == row[1] for _, label in pairs)
    before, after = information(pairs), information([*pairs, row])
    share = 1 / (n + 1)
    surprise = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    assert after <= surprise + (1 - share) * before + 1e-9
    told = ((m + 1) * math.log2(m + 1) - (m * math.log2(m) if m else 0)) / (n + 1)
    assert (1 - share) * before <= after + told + 1e-9


# -- through the door: every small table and every row added to it -----------------------------------------------------

Tables = dict[tuple[Row, ...], Watched]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return {table: watched(encoded(table)) for table in all_tables(3)}


def neighbours(tables: Tables, asked: Query) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The scores of all candidates without a row and with it."""
    scores = {table: kernel.offers(asked)[0][1] for table, kernel in tables.items()}
    most = max(map(len, tables))
    for table, before in scores.items():
        if len(table) < most:
            for row in KINDS:
                yield before, scores[tuple(sorted((*table, row), key=KINDS.index))]


def spreads(tables: Tables, score: str) -> tuple[int, int]:
    """The largest move of a candidate, and by how much more one candidate moves than another, over all neighbours."""
    moved = [np.subtract(after, before) for before, after in neighbours(tables, choice(score))]
    return max(int(np.abs(one).max()) for one in moved), max(int(np.ptp(one)) for one in moved)


@pytest.mark.parametrize("name", [*GAINS, *ADDED_UP])
def test_candidates_about_different_rows_keep_sensitivity_and_range(tables: Tables, name: str) -> None:
    score = named(name)
    largest, spread = spreads(tables, name)
    assert largest <= score.sensitivity
    assert spread <= score.range("monotone")


def test_the_range_of_the_gain_is_attained_so_that_half_of_it_would_be_wrong(tables: Tables) -> None:
    """A red row of size 1 without the illness and a blue one of size 0 with it; then a red one of size 2 with it.

    Among rows of size 1 and 2, size now tells who is ill: a gain of 1 from 0. Of all rows, colour told and no longer does.
    """
    assert spreads(tables, "gain") == (1, 2)
    assert named("gain").range("monotone") == 2


def two_ways(score: str, healthy: int, ill: int) -> tuple[int, int]:
    """How a red row of size 2 with the illness moves the two candidates, among more rows."""
    rows: list[Row] = [("red", 1, "no")] * healthy + [("blue", 0, "yes")] * ill
    asked = choice(score, (LARGE, Specialise(AttributeKey("colour"), (0, 1))))
    before, after = (watched(encoded(table)).offers(asked)[0][1] for table in (rows, [*rows, ("red", 2, "yes")]))
    return after[0] - before[0], after[1] - before[1]


@pytest.mark.parametrize(
    ("score", "healthy", "ill", "share"),
    [("gain", 1, 1, 1.0), ("gini-gain", 40, 4000, 0.95), ("infogain-per-row", 1, 1, 0.87)],
)
def test_one_row_raises_one_candidate_and_lowers_another(score: str, healthy: int, ill: int, share: float) -> None:
    """Together by more than S, so that calibrating a gain as monotone would be wrong for each of them."""
    known = named(score)
    rise, fall = two_ways(score, healthy, ill)
    assert rise > 0 > fall
    assert share * 2 * known.sensitivity <= rise - fall <= known.range("monotone")
    assert rise - fall > known.sensitivity


def test_rows_that_a_specialisation_is_not_about_do_not_move_it(tables: Tables) -> None:
    for score in (*GAINS, *ADDED_UP):
        offers = {table: kernel.offers(choice(score, (LARGE,)))[0][1] for table, kernel in tables.items()}
        for table, scores in offers.items():
            assert scores == offers[tuple(row for row in table if row[1] > 0)]


@pytest.mark.parametrize("score", [*GAINS, *ADDED_UP])
def test_a_division_is_the_specialisations_at_all_its_points(tables: Tables, score: str) -> None:
    """A group without order stands for the same children; so does an attribute that is cut everywhere."""
    same = (
        Divide("size", "0", "2"),
        Specialise(Bins("size", ("1",)), (0, 1)),
        Specialise(Bins("size", ("2",)), (1, 0)),
        Divide("size", "1", "2"),
        Specialise(AttributeKey("size"), (1, 2)),
        Specialise(Groups("colour", (Group("blue", ("blue",)),)), (0, 1)),
        Specialise(AttributeKey("colour"), (0, 1)),
    )
    for kernel in tables.values():
        ((_, scores, masses, _),) = kernel.offers(choice(score, same))
        assert scores[:2] == scores[2:4]
        assert scores[4] == scores[5]
        assert scores[6] == scores[7]
        assert masses == (2**31, 2**31, *[2**32] * 6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("score", [*GAINS, *ADDED_UP])
def test_no_row_changes_a_choice_among_specialisations_by_more_than_epsilon(
    tables: Tables, score: str, mechanism: str
) -> None:
    asked = choice(score, mechanism=mechanism)
    offers = {table: kernel.offers(asked) for table, kernel in tables.items()}
    losses = [
        loss(before, offers[tuple(sorted((*table, row), key=KINDS.index))])
        for table, before in offers.items()
        for row in KINDS
        if len(table) < 3
    ]
    assert 0 < max(losses) <= EPSILON + SLACK


CROWDED = (LARGE, *[Specialise(AttributeKey("colour"), (0, 1))] * 20)  # the first is seldom chosen, the others fall together


def loss_of_the_red_row(score: str, mechanism: str, healthy: int = 1, ill: int = 1) -> float:
    rows: list[Row] = [("red", 1, "no")] * healthy + [("blue", 0, "yes")] * ill
    asked = choice(score, CROWDED, mechanism)
    before, after = (watched(encoded(table)).offers(asked) for table in (rows, [*rows, ("red", 2, "yes")]))
    return loss(before, after)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("score", GAINS)
def test_some_row_changes_a_choice_by_nearly_epsilon(score: str, mechanism: str) -> None:
    many = (40, 4000) if score == "gini-gain" else (1, 1)
    assert 0.7 * EPSILON < loss_of_the_red_row(score, mechanism, *many) <= EPSILON + SLACK


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", [GainScore, InfoGainPerRow])
def test_a_gain_calibrated_as_monotone_would_cost_more_than_epsilon(
    monkeypatch: pytest.MonkeyPatch, kind: type[Score], mechanism: str
) -> None:
    """Planted mistake: R = S."""
    score = "gain" if kind is GainScore else "infogain-per-row"
    monkeypatch.setattr(kind, "monotone", True)
    assert loss_of_the_red_row(score, mechanism) > 1.4 * EPSILON
    if kind is GainScore:
        assert loss_of_the_red_row("gini-gain", mechanism, 40, 4000) > 1.4 * EPSILON


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_half_the_sensitivity_would_cost_more_than_epsilon(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Planted mistake: half a bit a row."""
    monkeypatch.setattr(InfoGainPerRow, "sensitivity", 2**19)
    assert loss_of_the_red_row("infogain-per-row", mechanism) > 1.4 * EPSILON


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [(), (1,), (1, 1), (0, 1, 0)])
def test_a_specialisation_needs_two_different_children(labels: tuple[int, ...]) -> None:
    with pytest.raises(RequestError, match="two different children"):
        Specialise(SIZES, labels)


def test_what_cannot_be_specialised_is_refused() -> None:
    with pytest.raises(RequestError, match="one attribute"):
        resolve(choice("max", (Specialise(TestKey(column("size") >= 1), (0, 1)),)), SCHEMA)
    for labels in ((0, 3), (-1, 0)):
        with pytest.raises(RequestError, match="holds no value"):
            resolve(choice("max", (Specialise(SIZES, labels),)), SCHEMA)
    with pytest.raises(RequestError, match="at least two grid points"):
        resolve(choice("max", (Divide("size", "1", "1"),)), SCHEMA)
    with pytest.raises(RequestError, match="not numeric"):
        resolve(choice("max", (Divide("colour", "0", "1"),)), SCHEMA)
