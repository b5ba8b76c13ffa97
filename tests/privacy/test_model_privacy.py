"""Staying whole, choosing a model and models as keys: by brute force over every small table and every row added to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import desk_over
from support.tiny_tables import KINDS, SCHEMA, Row, all_tables, encoded, engine
from test_choice_privacy import CELLS, EPSILON, FAMILIES, MECHANISMS, SLACK, Offer, Watched, loss, query, watched

from dpmine.codes.choose_split import SPLIT_SCORES
from dpmine.codes.rows import Recode
from dpmine.codes.splits import ResolvedSplits, ResolvedStay
from dpmine.engines.memory.keys import column_of
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.kernel.mechanisms import choose_split
from dpmine.kernel.scores import score_named
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Key
from dpmine.language.model_keys import Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.queries import Query
from dpmine.language.resolver import resolve_cells
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.splits import Stay
from dpmine.language.views import LEAF, Split
from dpmine.owner.ledgers import book_at
from dpmine.owner.local_executor import LocalExecutor
from dpmine.questions.choose_model import ChooseModel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.tables.private_table import PrivateTable

BONUS = 3
SCORES = SPLIT_SCORES
GAINS = tuple(score for score in SCORES if not score_named(score, SCHEMA.rows_at_most).monotone)
ADDED_UP = tuple(score for score in SCORES if score not in GAINS)
WITH_STAY = (FAMILIES[0], Stay(BONUS), *FAMILIES[1:])
STAY_AT = 1  # its place among the candidates

COLOUR, SIZE = AttributeKey("colour"), AttributeKey("size")
CLASSES = ("no", "yes")


def leaf(*scores: int) -> ScoreTree:
    return ScoreLeaf(scores)


BLUE_IS_ILL: ScoreTree = ScoreSplit(COLOUR, (leaf(1, 0), leaf(0, 1)))
LARGE_IS_ILL: ScoreTree = ScoreSplit(Bins("size", ("1",)), (leaf(2, -1), leaf(-3, 2)))
RED_IS_ILL: ScoreTree = ScoreSplit(Groups("colour", (Group("red", ("red",)),)), (leaf(0, 2), leaf(1, 1)))
MODELS = (
    Predicted((leaf(1, 0),), CLASSES),
    Predicted((leaf(0, 1),), CLASSES),
    Predicted((BLUE_IS_ILL,), CLASSES),
    Predicted((LARGE_IS_ILL, BLUE_IS_ILL), CLASSES),
    Predicted((RED_IS_ILL, LARGE_IS_ILL, BLUE_IS_ILL), CLASSES),
)
MODEL_KEYS: dict[str, Key] = {
    **{f"model {number}": model for number, model in enumerate(MODELS)},
    "bands": ScoreBands((LARGE_IS_ILL, BLUE_IS_ILL), 1, (0, 2, 3)),
}

CHOICES: dict[str, Query] = {
    **{
        f"stay, {score}, {mechanism}, {calibration}": query(ChooseSplit((WITH_STAY,), score, mechanism, calibration))
        for score in SCORES
        for mechanism in MECHANISMS
        for calibration in ("monotone", "generic")
    },
    **{
        f"model, {mechanism}, {calibration}": query(ChooseModel(MODELS, mechanism, calibration))
        for mechanism in MECHANISMS
        for calibration in ("monotone", "generic")
    },
    "stay in each cell": query(ChooseSplit((WITH_STAY,), "gini", "exponential", "monotone"), CELLS),
    "model in each cell": query(ChooseModel(MODELS, "permute-and-flip", "monotone"), CELLS),
    "model in the cells of a model": query(
        ChooseModel(MODELS, "permute-and-flip", "monotone"), Split(MODEL_KEYS["bands"], (LEAF,) * 4)
    ),
}

Tables = dict[tuple[Row, ...], Watched]


def tables_of(rows: int, kind: type[Watched] = Watched) -> Tables:
    return {table: watched(encoded(table), kind) for table in all_tables(rows)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return tables_of(3)


def offered_to_neighbours(tables: Tables, asked: Query) -> Iterator[tuple[list[Offer], list[Offer]]]:
    """What the mechanism is offered without a row and with it, for all given tables and rows."""
    offers = {table: kernel.offers(asked) for table, kernel in tables.items()}
    most = max(map(len, tables))
    for table, before in offers.items():
        if len(table) < most:
            for row in KINDS:
                yield before, offers[tuple(sorted((*table, row), key=KINDS.index))]


def changes(tables: Tables, asked: Query) -> list[np.ndarray]:
    """The change of all candidates' scores, for every cell and every row added."""
    return [
        np.array(after[1]) - np.array(before[1])
        for pair in offered_to_neighbours(tables, asked)
        for before, after in zip(*pair, strict=True)
    ]


def worst_loss(tables: Tables, asked: Query) -> float:
    return max(loss(before, after) for before, after in offered_to_neighbours(tables, asked))


# -- scores move as they declare, by no more than R --------------------------------------------------------------------


def as_declared(score: str, change: np.ndarray) -> bool:
    """A score that adds up moves every candidate, staying whole too, by 0 to S in its one direction.

    A gain moves by at most S either way and by no more than R between two candidates; who stays has nothing to gain.
    """
    known = score_named(score, SCHEMA.rows_at_most)
    if not known.monotone:
        bounded = np.abs(change).max() <= known.sensitivity and np.ptp(change) <= known.range("monotone")
        return bool(bounded and change[STAY_AT] == 0)
    one_way = change * (1 if score in ("max", "count") else -1)
    return bool(((one_way >= 0) & (one_way <= known.sensitivity)).all())


def moves_as_declared(tables: Tables, score: str, asked: Query) -> bool:
    return all(as_declared(score, change) for change in changes(tables, asked))


@pytest.mark.parametrize("score", SCORES)
def test_staying_whole_moves_like_every_split(tables: Tables, score: str) -> None:
    asked = CHOICES[f"stay, {score}, exponential, monotone"]
    assert moves_as_declared(tables, score, asked)
    assert any(change.any() for change in changes(tables, asked))
    assert any(change[STAY_AT] != 0 for change in changes(tables, asked)) == (score in ADDED_UP)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(KINDS), max_size=60), st.sampled_from(KINDS), st.sampled_from(SCORES))
def test_staying_whole_moves_like_every_split_in_larger_tables_too(rows: list[Row], row: Row, score: str) -> None:
    asked = CHOICES[f"stay, {score}, exponential, monotone"]
    before, after = (watched(encoded(table)).offers(asked)[0][1] for table in (rows, [*rows, row]))
    assert as_declared(score, np.subtract(after, before))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(0, 2**31 // 5), min_size=1, max_size=5),
    st.integers(0, 4),
    st.sampled_from(SCORES),
    st.sampled_from([1, 100, 10**6, 2**31 - 1]),
)
def test_the_whole_cells_score_moves_by_at_most_the_range_up_to_the_largest_tables(
    counts: list[int], label: int, name: str, rows_at_most: int
) -> None:
    """Also where the table has more rows than the schema says. Of a gain it stays at 0."""
    score, whole = score_named(name, rows_at_most), ResolvedStay(Recode("one", (), 1), 0)
    before = np.array([counts], dtype=np.int64)[:, :, None]
    after = before.copy()
    after[0, label % len(counts), 0] += 1
    change = int((score.split(whole.branches(after)) - score.split(whole.branches(before)))[0, 0])
    assert 0 <= change * (1 if name == "max" else -1) <= (score.sensitivity if score.monotone else 0)


def stay_scores_the_whole(score: str) -> bool:
    """A loop over rows against the door: the score of the whole table plus the bonus in rows, and a family's whole mass."""
    known = score_named(score, SCHEMA.rows_at_most)
    right = True
    for table in all_tables(2):
        counts = np.array([sum(row[2] == label for row in table) for label in CLASSES])
        (offer,) = watched(encoded(table)).offers(CHOICES[f"stay, {score}, exponential, monotone"])
        right &= offer[1][STAY_AT] == int(known.split(counts[None])) + BONUS * known.unit and offer[2][STAY_AT] == 2**32
    return right


@pytest.mark.parametrize("score", SCORES)
def test_staying_whole_scores_as_its_class_counts_do(monkeypatch: pytest.MonkeyPatch, score: str) -> None:
    assert stay_scores_the_whole(score)
    for mistake in (stay_by_gain, bonus_of_rows) if score in ADDED_UP else (bonus_of_rows, stay_unsplit):
        monkeypatch.setattr(choose_split.BlockScores, "of", mistake)
        assert not stay_scores_the_whole(score)


def test_staying_whole_is_never_better_than_a_split_without_its_bonus(tables: Tables) -> None:
    for score in SCORES:
        asked = query(ChooseSplit(((*FAMILIES, Stay(0)),), score, "exponential", "monotone"))
        for kernel in tables.values():
            *splits, whole = kernel.offers(asked)[0][1]
            assert whole <= min(splits) + 2  # gini is floored in each branch


def test_the_score_of_staying_is_the_same_whatever_split_comes_first(tables: Tables) -> None:
    """Class counts are read off the first split's key, and once for a block of cells."""
    for score in SCORES:
        per_cell = ((FAMILIES[1], Stay(2)), (Stay(2), FAMILIES[0]))
        for table, kernel in list(tables.items())[::7]:
            first, second = kernel.offers(query(ChooseSplit(per_cell, score, "exponential", "monotone"), CELLS))
            known = score_named(score, SCHEMA.rows_at_most)
            for colour, whole in (("red", first[1][-1]), ("blue", second[1][0])):
                counts = np.array([sum(row[0] == colour and row[2] == label for row in table) for label in CLASSES])
                assert whole == int(known.split(counts[None])) + 2 * known.unit


# -- choices -----------------------------------------------------------------------------------------------------------


def test_a_models_score_is_the_rows_it_is_right_about() -> None:
    def predicted(row: Row) -> list[str]:
        blue, large = row[0] == "blue", row[1] >= 1
        by_size_and_colour = (-3 if large else 2) + (not blue) < (2 if large else -1) + blue
        all_three = (-3 if large else 2) + (not blue) + blue < (2 if large else -1) + blue + (1 if blue else 2)
        return [CLASSES[ill] for ill in (False, True, blue, by_size_and_colour, all_three)]

    for table in all_tables(2):
        (offer,) = watched(encoded(table)).offers(CHOICES["model, exponential, monotone"])
        assert offer[1] == tuple(sum(predicted(row)[number] == row[2] for row in table) for number in range(len(MODELS)))
        assert offer[2] == (1,) * len(MODELS)
        assert offer[3] == EPSILON


def test_a_row_moves_every_models_score_by_nothing_or_one(tables: Tables) -> None:
    for name in ("model, exponential, monotone", "model in each cell", "model in the cells of a model"):
        assert moves_as_declared(tables, "count", CHOICES[name])
        seen = {tuple(change) for change in changes(tables, CHOICES[name])}
        assert {0, 1} == {number for change in seen for number in change}


@pytest.mark.parametrize("name", CHOICES)
def test_no_row_changes_a_choice_by_more_than_epsilon(tables: Tables, name: str) -> None:
    """The exact laws of both mechanisms on the offered scores; generic calibration pays double.

    A gain always pays double here, where all candidates are about the same rows: it is the others' law shifted.
    """
    allowed = float(EPSILON) * (0.5 if "generic" in name else 1)
    assert 0 < worst_loss(tables, CHOICES[name]) <= allowed + SLACK


def test_some_row_changes_the_choice_of_a_model_by_nearly_epsilon() -> None:
    """One model is right about the new row and thirty are not: no budget is wasted."""
    models = (MODELS[1], *(Predicted((leaf(1 + number, 0),), CLASSES) for number in range(30)))
    for mechanism in MECHANISMS:
        asked = query(ChooseModel(models, mechanism, "monotone"))
        before, after = (watched(encoded(rows)).offers(asked) for rows in ((KINDS[0], KINDS[1]), (*KINDS[:2], KINDS[1])))
        assert 0.6 * EPSILON < loss(before, after) <= EPSILON + SLACK


# -- model keys look at one row ----------------------------------------------------------------------------------------


def labels(key: Key, rows: tuple[Row, ...]) -> list[int]:
    """The label of each row in its place, as the engine's column holds it."""
    return column_of(resolve_key(key, SCHEMA), engine(rows)._rows).values(slice(0, len(rows))).tolist()


@pytest.mark.parametrize("name", MODEL_KEYS)
def test_adding_a_row_never_changes_another_rows_label(name: str) -> None:
    key = MODEL_KEYS[name]
    alone = {row: labels(key, (row,))[0] for row in KINDS}
    for table in all_tables(2):
        for row in KINDS:
            for place in range(len(table) + 1):
                more = (*table[:place], row, *table[place:])
                assert labels(key, more) == [alone[one] for one in more]


@pytest.mark.parametrize("name", MODEL_KEYS)
def test_one_row_changes_all_counts_by_one_and_cells_of_a_model_are_disjoint(name: str) -> None:
    key = resolve_key(MODEL_KEYS[name], SCHEMA)
    cells = resolve_cells((), Split(MODEL_KEYS[name], (LEAF,) * key.size), SCHEMA)
    for table in all_tables(2):
        before = engine(table).counts(cells, [(key,), ()])
        assert before[1].sum() == len(table)
        np.testing.assert_array_equal(before[0], np.diag(before[1]))
        for row in KINDS:
            after = engine((*table, row)).counts(cells, [(key,), ()])
            assert [np.abs(more - less).sum() for more, less in zip(after, before, strict=True)] == [1, 1]


# -- price -------------------------------------------------------------------------------------------------------------


class Priced:
    """A fresh ledger over the tiny table, read after each question."""

    def __init__(self) -> None:
        self.ledger = book_at(None, dataset="tiny", cap=10**12)
        self.ledger.grant("anna", 10**12)
        self.private = PrivateTable(LocalExecutor(desk_over(encoded(KINDS), self.ledger), "anna", SCHEMA))

    def tenths(self) -> int:
        """What was spent so far, in tenths."""
        (spent,) = {self.ledger.account(name).spent for name in ("anna", DATASET)}
        assert spent % 10**8 == 0
        return spent // 10**8


def test_the_cells_of_a_model_cost_the_largest_and_two_models_add_up() -> None:
    priced = Priced()
    private, one, other = priced.private, MODELS[2], MODELS[3]
    private.cells(one).count(epsilon=["0.1", "0.3"])
    assert priced.tenths() == 3
    private.partition(one)["no"].histogram("size", epsilon="0.2")  # 0.1 + 0.2 in that cell: still the largest
    assert priced.tenths() == 3
    private.partition(one)["yes"].count(epsilon="0.1")
    assert priced.tenths() == 4
    private.cells(other).count(epsilon="0.5")  # rows of any two cells of two models may be the same
    assert priced.tenths() == 9
    private.partition(other)["no"].cells(one).count(epsilon="0.1")  # inside the other model's cell
    assert priced.tenths() == 10
    private.cells(ScoreBands(one.trees, 1, (1,))).count(epsilon="0.2")  # another key, even of the same trees
    assert priced.tenths() == 12


def test_a_model_written_differently_is_the_same_partition() -> None:
    priced = Priced()
    written = Predicted((ScoreSplit(Bins("size", ("1.0",)), (leaf(2, -1), leaf(-3, 2))), BLUE_IS_ILL), ("0", "1"))
    priced.private.partition(MODELS[3])["no"].count(epsilon="0.3")
    priced.private.partition(written)["1"].count(epsilon="0.3")
    assert priced.tenths() == 3
    turned = Predicted(tuple(reversed(MODELS[3].trees)), CLASSES)  # the same labels, but not the same value: it adds up
    priced.private.partition(turned)["no"].count(epsilon="0.3")
    assert priced.tenths() == 6


def test_a_confusion_matrix_costs_epsilon_once_and_choices_of_models_theirs() -> None:
    priced = Priced()
    priced.private.histogram(MODELS[3], "ill", epsilon="0.4")
    assert priced.tenths() == 4
    priced.private.choose_model(MODELS, epsilon="0.2")
    assert priced.tenths() == 6
    priced.private.choose_model(MODELS, epsilon="0.2")  # the same question has its old answer
    assert priced.tenths() == 6
    priced.private.choose_model(tuple(reversed(MODELS)), epsilon="0.2")
    assert priced.tenths() == 8
    priced.private.choose(["colour", Stay(1)], score="gini", epsilon="0.1")
    priced.private.cells(MODELS[2]).choose([["size", Stay(1)], [Stay(2), "size"]], score="max", epsilon=["0.1", "0.2"])
    assert priced.tenths() == 11


# -- planted mistakes --------------------------------------------------------------------------------------------------


def relative(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """All candidates by their gain over the whole cell, which falls for one row and rises for another.

    The same shift for all of them leaves the law of a choice as it is, but not what the scores declare about themselves.
    """
    counts = self._exact_counts[family.key]
    whole = self._score.split(ResolvedStay(family.key, 0).branches(counts))
    return real(self, family, cell) - whole[cell]


def bonus_of_rows(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """Staying earns a bonus for every row that is there."""
    rows = self._exact_counts[family.key][cell].sum()
    return real(self, family, cell) + (rows * self._score.unit if isinstance(family, ResolvedStay) else 0)


def splits_by_gain(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """Only the splits are scored by their gain; staying keeps the score of the whole cell."""
    return real(self, family, cell) if isinstance(family, ResolvedStay) else relative(self, family, cell)


def stay_by_gain(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """Staying gains nothing, so that it scores its bonus alone: no loss of privacy, since that is constant, but wrong."""
    return relative(self, family, cell) if isinstance(family, ResolvedStay) else real(self, family, cell)


def stay_unsplit(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """Who stays scores the largest class beside splits that score what they gain."""
    largest = self._exact_counts[family.key][cell].sum(axis=1).max()
    return real(self, family, cell) + (largest * self._score.unit if isinstance(family, ResolvedStay) else 0)


def gain_twice(self: Any, family: ResolvedSplits, cell: int, real: Any = choose_split.BlockScores.of) -> Any:
    """Every candidate by twice what it scores: twice the sensitivity."""
    return 2 * real(self, family, cell)


@pytest.mark.parametrize(
    ("score", "mistake"),
    [
        *((score, mistake) for score in ADDED_UP for mistake in (bonus_of_rows, relative, splits_by_gain)),
        *((score, mistake) for score in GAINS for mistake in (bonus_of_rows, stay_unsplit)),
        *((score, gain_twice) for score in ("max", "gain", "infogain-per-row")),
    ],
)
def test_the_check_of_scores_catches(monkeypatch: pytest.MonkeyPatch, score: str, mistake: Any) -> None:
    asked = CHOICES[f"stay, {score}, exponential, monotone"]
    smaller = tables_of(3)
    assert moves_as_declared(smaller, score, asked)
    monkeypatch.setattr(choose_split.BlockScores, "of", mistake)
    assert not moves_as_declared(smaller, score, asked)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_loss_check_catches_a_bonus_that_depends_on_the_rows(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    asked = CHOICES[f"stay, max, {mechanism}, monotone"]
    smaller = tables_of(3)
    monkeypatch.setattr(choose_split.BlockScores, "of", bonus_of_rows)
    assert worst_loss(smaller, asked) > EPSILON + 0.01


def test_gains_for_all_candidates_are_the_same_law_and_for_the_splits_alone_cost_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four rows: the whole cell's largest class grows by a row that is in the minority in its branch."""
    asked = CHOICES["stay, max, exponential, monotone"]
    larger = tables_of(4)
    absolute = worst_loss(larger, asked)
    assert absolute <= EPSILON + SLACK
    monkeypatch.setattr(choose_split.BlockScores, "of", relative)
    assert abs(worst_loss(larger, asked) - absolute) < SLACK
    monkeypatch.setattr(choose_split.BlockScores, "of", splits_by_gain)
    assert worst_loss(larger, asked) > EPSILON + 0.01


class HalfRange(Watched):
    """R = 1/2 for the choice of a model: twice the rate."""

    def _choose(self, mechanism: str, scores: np.ndarray, masses: np.ndarray, rate: Any) -> int:
        return super()._choose(mechanism, scores, masses, 2 * rate)


class ShareRight(Watched):
    """The share of right predictions in hundredths, as if one row could move it by one hundredth only."""

    def _choose(self, mechanism: str, scores: np.ndarray, masses: np.ndarray, rate: Any) -> int:
        rows = self._engine.counts(resolve_cells((), LEAF, self.schema), [()])[0].sum()
        return super()._choose(mechanism, 100 * scores // max(rows, 1), masses, rate)


@pytest.mark.parametrize("mistake", [HalfRange, ShareRight])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_loss_check_catches(mistake: type[Watched], mechanism: str) -> None:
    assert worst_loss(tables_of(3, mistake), CHOICES[f"model, {mechanism}, monotone"]) > EPSILON + 0.01


def test_the_check_of_scores_catches_a_normalised_score() -> None:
    assert not moves_as_declared(tables_of(3, ShareRight), "count", CHOICES["model, exponential, monotone"])
