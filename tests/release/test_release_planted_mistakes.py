"""Checks that a privacy reviewer would make of a release, and for each a planted mistake that it must catch."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.choices import choosing, halving
from support.executors import Replayer
from support.imports import forbidden
from support.laws import exponential_law
from support.mined_tables import Table, schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded
from support.releases import every, form_of, shown_groups, true_groups, with_tree
from support.tiny_tables import KINDS
from support.tiny_tables import SCHEMA as TINY

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.budget.plans import BudgetPlan, PlanStep
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.kernel.door import Kernel
from dpmine.kernel.mechanisms import sparse_histogram
from dpmine.language.queries import Query
from dpmine.models import cuts
from dpmine.models.cuts import NominalCut, root_cut
from dpmine.release import contingency, counting, cut_release, diffgen
from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen, Specialising
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.released import ReleasedTable
from dpmine.tables.private_table import PrivateTable

SCHEMA = schema_of(classes=2)
TABLE, OTHER_TABLE = table_of(SCHEMA, 150, 1), table_of(SCHEMA, 150, 2, clear=0)
AT_HAND: list[Table] = []
"""The table of the fit that runs: what an honest algorithm has no way to, and a planted mistake reads."""

# -- the release is a function of the answers --------------------------------------------------------------------------


def releases_answers_alone(make: Callable[[], ReleaseEstimator]) -> bool:
    """Whether the same answers give the same queries and the same release, though another table lies there."""
    AT_HAND[:] = [TABLE]
    first, again = make(), make()
    with recorded(TABLE, SCHEMA, Epsilon(2 * first.budget.units)) as (private, recorder):
        first.fit(private)
    AT_HAND[:] = [OTHER_TABLE]
    replayer = Replayer(SCHEMA, [reply for _, reply in recorder.asked], Epsilon(2 * first.budget.units))
    try:
        again.fit(PrivateTable(replayer))
    except (IndexError, ValueError, AssertionError, dm.DpmineError):
        return False  # it asks other questions, which the answers do not fit
    return bool(
        replayer.queries == recorder.queries
        and form_of(again.release()) == form_of(first.release())
        and again.rows(raw=True, seed=3) == first.rows(raw=True, seed=3)
        and again.charged_ == first.charged_
    )


@pytest.mark.parametrize("epsilon", [1, 100, HUGE // 2])
@pytest.mark.parametrize("number", range(5))
def test_queries_and_release_are_a_function_of_the_answers(number: int, epsilon: int) -> None:
    assert releases_answers_alone(lambda: with_tree(epsilon)[number])


def learned_taxonomy(attribute: Any) -> Any:
    """Planted: categories are put together by how often they occur in the rows at hand."""
    if not isinstance(attribute, Nominal) or attribute.size < 3:
        return root_cut(attribute)
    column = AT_HAND[0][attribute.name]
    falling = sorted(attribute.categories, key=lambda category: -column.count(category))
    often = TaxonomyNode("often", tuple(map(TaxonomyNode, falling[:2])))
    rare = TaxonomyNode("rare", tuple(map(TaxonomyNode, falling[2:])))
    return NominalCut(attribute, (TaxonomyNode("all", (often, rare)),))


def test_a_taxonomy_learned_from_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffgen, "root_cut", learned_taxonomy)
    assert not releases_answers_alone(lambda: dm.DiffGen(1000, 6))


def test_cuts_are_made_from_the_schema_alone() -> None:
    """No function that makes a cut is handed rows, and each gives the same for the same attribute."""
    makers = {"root_cut": ["attribute"], "finest_cut": ["attribute"], "evenly_cut": ["attribute", "bins"]}
    for name, parameters in makers.items():
        assert list(inspect.signature(getattr(cuts, name)).parameters) == parameters
    for attribute in cuts.predictors(SCHEMA):
        assert root_cut(attribute) == root_cut(attribute)
        assert len(root_cut(attribute)) == 1
    first = [
        model.release().values for model in (fitted(m, TABLE, SCHEMA) for m in (ContingencyTable(1), ContingencyTable(1)))
    ]
    other = fitted(ContingencyTable(1), OTHER_TABLE, SCHEMA).release().values
    assert first[0] == first[1] == other


def test_a_number_of_steps_that_follows_true_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: specialising goes on for as long as the rows at hand gain by it, which costs nothing and tells a lot."""
    honest = Specialising.go_on

    def peeking(self: Specialising) -> bool:
        enough = 4 if AT_HAND[0]["class"].count("c1") < 60 else 2
        return sum(len(cut) - 1 for cut in self.cuts) < enough and honest(self)

    assert TABLE["class"].count("c1") < 60 <= OTHER_TABLE["class"].count("c1")
    monkeypatch.setattr(Specialising, "go_on", peeking)
    assert not releases_answers_alone(lambda: dm.DiffGen(1000, 8))


def test_true_counts_in_the_place_of_noisy_ones_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = diffgen.with_total
    monkeypatch.setattr(diffgen, "with_total", lambda table, rows: honest(table, AT_HAND[0]["class"].count("c1")))
    assert not releases_answers_alone(lambda: dm.DiffGen(1, 3, total_share=0.1))


# -- what it costs -----------------------------------------------------------------------------------------------------


def is_paid_as_planned(make: Callable[[], ReleaseEstimator]) -> bool:
    """Whether a release that leaves nothing over costs just what its plan says; the ledger holds three times as much."""
    model = make()
    with opened(TABLE, SCHEMA, Epsilon(3 * model.budget.units)) as private:
        model.fit(private)
        charged = [spending.cost.units for spending in private.statement().spendings]
    plan = model.plan(SCHEMA)
    return bool(sum(charged) == model.charged_.units == plan.cost.units <= model.budget.units)


def generous(h: int = 3) -> DiffGen:
    return dm.DiffGen(1, h, leftover=True)


def test_releases_are_paid_as_planned() -> None:
    assert is_paid_as_planned(generous)
    assert is_paid_as_planned(ContingencyTable)
    assert is_paid_as_planned(dm.TreeRelease)


class BestOfSeveral(DiffGen):
    """Planted: several numbers of specialisations are tried, and the one that teaches the rows at hand best is kept."""

    def _learn(self, private: PrivateTable, progress: Any) -> ReleasedTable:
        found = []
        for h in (2, 4, 6):
            self.specialisations = h
            released = super()._learn(private, progress)
            found.append((self._true_accuracy(released), h, released))
        self.specialisations = 3
        return max(found, key=lambda one: one[0])[2]

    def _true_accuracy(self, released: ReleasedTable) -> float:
        self.released_, self.schema_ = released, released.schema
        answers = {group: max(counts, key=counts.__getitem__) for group, counts in released.to_dict().items()}
        groups = zip(*self.transform(AT_HAND[0]).values(), strict=True)
        return float(np.mean([answers.get(g) == y for g, y in zip(groups, AT_HAND[0]["class"], strict=True)]))


def test_trying_several_h_on_the_data_is_caught() -> None:
    """By the ledger, as every try is charged, and where the budget is just epsilon by a refusal."""
    AT_HAND[:] = [TABLE]
    assert not is_paid_as_planned(lambda: BestOfSeveral(1, 3, leftover=True))
    with pytest.raises(dm.BudgetError):
        fitted(BestOfSeveral(1, 3, leftover=True), TABLE, SCHEMA)
    with opened(TABLE, SCHEMA, 3) as private:
        assert BestOfSeveral(1, 3, leftover=True).fit(private).charged_ == Epsilon(3 * UNITS)


def test_points_of_the_last_round_that_nobody_uses_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: they are asked all the same."""

    def asked(h: int) -> int:
        attributes = (schema_of().single("size"), schema_of().attributes[-1])
        schema = Schema("numeric", attributes, 100, "class")
        table = {name: TABLE[name] for name in ("size", "class")}
        with choosing(halving), recorded(table, schema, 1) as (private, recorder):
            dm.DiffGen(1, h).fit(private)
        return len(recorder.queries)

    expected = {h: 1 + 2 * h - 1 + 1 for h in (1, 2, 3)}
    assert {h: asked(h) for h in expected} == expected
    honest = Specialising.go_on

    def never_last(self: Specialising) -> bool:
        self._round = -1  # so no round is the last one
        return honest(self)

    monkeypatch.setattr(Specialising, "go_on", never_last)
    assert all(asked(h) == number + 1 for h, number in expected.items())


def test_counts_at_the_whole_epsilon_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = diffgen.count_groups

    def at_the_whole(private: PrivateTable, cuts: Any, epsilon: Epsilon, threshold: Any) -> Any:
        return honest(private, cuts, Epsilon(UNITS), threshold)

    monkeypatch.setattr(diffgen, "count_groups", at_the_whole)
    assert not is_paid_as_planned(generous)
    with pytest.raises(dm.BudgetError):
        fitted(generous(), TABLE, SCHEMA)  # where the ledger holds epsilon, it refuses the counts


def test_shares_that_add_up_to_more_than_epsilon_are_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DiffGen.budget_for

    def generous_shares(self: DiffGen, schema: Schema, rows: float = 0) -> Any:
        found = honest(self, schema, rows)
        return replace(found, counts=replace(found.counts, epsilon=self.row_budget(schema)))

    monkeypatch.setattr(DiffGen, "budget_for", generous_shares)
    with opened(TABLE, SCHEMA, 3) as private:
        with pytest.raises(dm.EpsilonError, match="more than its budget"):
            generous().fit(private)
        assert str(private.remaining()) == "3"
        honest_looking = BudgetPlan("x", Epsilon(UNITS), (PlanStep("all", Epsilon(UNITS)),))
        monkeypatch.setattr(DiffGen, "plan", lambda self, schema, rows=None: honest_looking)
    assert not is_paid_as_planned(generous)


# -- groups without rows -----------------------------------------------------------------------------------------------

WIDE = Schema(
    "wide",
    (
        Nominal("a", tuple(f"a{place}" for place in range(100)), "a0", missing="a0"),
        Nominal("b", tuple(f"b{place}" for place in range(50)), "b0", missing="b0"),
        Nominal("class", ("no", "yes"), "no", missing="no"),
    ),
    100,
    "class",
)
FEW_ROWS: Table = {"a": ["a1", "a2", "a3"], "b": ["b1", "b1", "b2"], "class": ["no", "yes", "yes"]}


def shows_empty_groups(make: Callable[[], ReleaseEstimator], epsilon: float) -> bool:
    """Whether as many of 10,000 counts are shown as noise lifts to 1, give or take 6 deviations (false alarms: 2e-9)."""
    model = fitted(make(), FEW_ROWS, WIDE)
    shown = int((model.release().counts > 0).sum())
    a = math.exp(-epsilon)
    chance = a / (1 + a)
    return abs(shown - 10_000 * chance) <= 3 + 6 * math.sqrt(10_000 * chance * (1 - chance))


def of_two_steps() -> DiffGen:
    return dm.DiffGen("0.4", 2)


def test_groups_without_rows_are_released_as_often_as_noise_lifts_them() -> None:
    assert shows_empty_groups(of_two_steps, 0.2)
    assert shows_empty_groups(lambda: ContingencyTable("0.2", threshold=1), 0.2)


def test_empty_groups_that_are_dropped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = sparse_histogram.sparse_counts

    def occupied_only(entropy: Any, noise: Any, places: Any, exact_counts: Any, combinations: int, **named: Any) -> Any:
        shown, counts = honest(entropy, noise, places, exact_counts, combinations, **named)
        kept = np.isin(shown, places)
        return shown[kept], counts[kept]

    monkeypatch.setattr(sparse_histogram, "sparse_counts", occupied_only)
    assert not shows_empty_groups(of_two_steps, 0.2)
    assert not shows_empty_groups(lambda: ContingencyTable("0.2", threshold=1), 0.2)


def test_empty_groups_dropped_after_counting_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted where the groups are made of the answer: small counts are taken for noise, but not those of rows at hand."""

    def without_noise(module: Any) -> None:
        honest = module.count_groups

        def kept(private: PrivateTable, cuts: Any, epsilon: Epsilon, threshold: Any) -> Any:
            groups, table, how = honest(private, cuts, epsilon, threshold)
            codes = {name: [WIDE.single(name).codes[value] for value in FEW_ROWS[name]] for name in ("a", "b")}  # type: ignore[union-attr]
            true = {tuple(row) for row in counting.groups_of(cuts, {n: np.array(c) for n, c in codes.items()}, 3).tolist()}
            known = np.array([tuple(group) in true for group in groups.tolist()], dtype=bool)
            return groups[known], table[known], how

        monkeypatch.setattr(module, "count_groups", kept)

    without_noise(diffgen)
    without_noise(contingency)
    assert not shows_empty_groups(of_two_steps, 0.2)
    assert not shows_empty_groups(lambda: ContingencyTable("0.2", threshold=1), 0.2)


# -- transform and rows ------------------------------------------------------------------------------------------------


def transforms_as_released(make: Callable[[], ReleaseEstimator]) -> bool:
    """Whether without noise the rows that were learned from, transformed, are those that are released."""
    model = fitted(make(), TABLE, SCHEMA)
    transformed = model.transform(TABLE)
    pairs = sorted(zip(*transformed.values(), TABLE["class"], strict=True))
    rows = model.rows()
    released = sorted(zip(*(rows[name] for name in (*transformed, "class")), strict=True))
    return pairs == released and shown_groups(model) == true_groups(model, TABLE, SCHEMA)


def test_transform_uses_the_cuts_of_the_release() -> None:
    for number in range(4):
        assert transforms_as_released(lambda number=number: every(HUGE)[number])  # type: ignore[misc]


def test_transforming_by_other_cuts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: intervals are closed on the other side; then: values are numbered from the other end."""
    honest = cut_release.groups_of

    def shifted(cuts: Any, rows: Any, count: int) -> Any:
        return honest(cuts, {name: np.maximum(codes.astype(np.int64) - 1, 0) for name, codes in rows.items()}, count)

    def turned(cuts: Any, rows: Any, count: int) -> Any:
        return np.array([len(cut) - 1 for cut in cuts]) - honest(cuts, rows, count)

    for mistaken in (shifted, turned):
        monkeypatch.setattr(cut_release, "groups_of", mistaken)
        assert not transforms_as_released(lambda: dm.DiffGen(HUGE, 6))


# -- the exact loss of one row, over all choices -----------------------------------------------------------------------


class Way:
    """One way through all choices of a fit, and its chance by the exact law of the mechanism."""

    def __init__(self, ahead: list[int]) -> None:
        self.ahead = ahead
        self.sizes: list[int] = []
        self.logarithm = 0.0

    def choose(self, mechanism: str, scores: np.ndarray, masses: np.ndarray, rate: Fraction) -> int:
        assert mechanism == "exponential"
        place = len(self.sizes)
        self.sizes.append(len(scores))
        taken = self.ahead[place] if place < len(self.ahead) else 0
        law = exponential_law((scores - scores.max()).tolist(), masses.tolist(), rate)
        self.logarithm += float(law[taken].ln())
        return taken


def law_of_choices(make: Callable[[], DiffGen], rows: tuple[Any, ...]) -> dict[tuple[Any, ...], float]:
    """For every outcome of all choices (the cuts and how they came about) the logarithm of its chance."""
    table = {name: [row[place] for row in rows] for place, name in enumerate(("colour", "size", "ill"))}
    AT_HAND[:] = [table]
    found: dict[tuple[Any, ...], float] = {}
    waiting: list[list[int]] = [[]]
    with pytest.MonkeyPatch.context() as patched:
        while waiting:
            ahead = waiting.pop()
            path = Way(ahead)
            patched.setattr(Kernel, "_choose", lambda self, *given, path=path: path.choose(*given))
            model = fitted(make(), table, TINY, HUGE)
            taken = (ahead + [0] * len(path.sizes))[: len(path.sizes)]
            cuts = tuple(cut.key() for cut in model.cuts_.values())
            found[(*taken, cuts)] = path.logarithm
            for place in range(len(ahead), len(path.sizes)):
                waiting += [[*taken[:place], other] for other in range(1, path.sizes[place])]
    return found


def largest_loss(make: Callable[[], DiffGen], pairs: list[tuple[tuple[Any, ...], tuple[Any, ...]]]) -> float:
    laws = {table: law_of_choices(make, table) for table in {table for pair in pairs for table in pair}}
    for law in laws.values():
        assert math.fsum(map(math.exp, law.values())) == pytest.approx(1, abs=1e-9)
    loss = 0.0
    for one, other in pairs:
        for path in laws[one].keys() | laws[other].keys():
            loss = max(loss, abs(laws[one].get(path, -math.inf) - laws[other].get(path, -math.inf)))
    return loss


PAIRS = [((), (row,)) for row in KINDS] + [
    ((one,), tuple(sorted((one, row), key=KINDS.index))) for one in (KINDS[0], KINDS[3], KINDS[7]) for row in KINDS[::3]
]


@pytest.mark.parametrize("points", ["first", "joint"])
@pytest.mark.parametrize(
    ("score", "calibration"), [("max", "generic"), ("max", "monotone"), ("infogain", "generic"), ("max-gain", "generic")]
)
def test_one_row_changes_the_choices_by_no_more_than_they_pay(score: str, calibration: str, points: str) -> None:
    """Every way through two rounds on pairs of neighbours: the loss is at most the half of epsilon that choices share."""

    def make() -> DiffGen:
        return dm.DiffGen(8, 2, score, calibration, points)

    pairs = PAIRS if (score, calibration) == ("max", "monotone") else PAIRS[::3]
    loss = largest_loss(make, pairs)
    paid = make().budget_for(TINY).choosing / UNITS
    assert 0 < loss <= paid + 1e-9 <= 4 + 1e-9


def test_a_rate_that_is_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: choices get all of epsilon each, though they share a half of it."""
    honest = Way.choose
    monkeypatch.setattr(
        Way, "choose", lambda self, mechanism, scores, masses, rate: honest(self, mechanism, scores, masses, 12 * rate)
    )
    assert largest_loss(lambda: dm.DiffGen(8, 2, "max", "monotone"), PAIRS) > 4


def test_h_by_true_rows_is_caught_on_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: without rows of one class there is nothing to learn, so no step is made."""
    honest = Specialising.go_on
    monkeypatch.setattr(Specialising, "go_on", lambda self: "yes" in AT_HAND[0]["ill"] and honest(self))
    assert largest_loss(lambda: dm.DiffGen(8, 2), PAIRS[:2]) == math.inf


# -- what releases may import ------------------------------------------------------------------------------------------

FILES = sorted((Path(dm.__file__).parent / "release").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_releases_import_no_randomness_and_no_kernel(path: Path) -> None:
    assert forbidden(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "text", ["import random", "np.random.default_rng(1)", "from dpmine.kernel.samplers.laplace import x"]
)
def test_a_forbidden_import_is_caught(text: str) -> None:
    assert forbidden(text)


def test_all_queries_are_about_the_whole_view() -> None:
    """DiffGen asks about one-attribute counts and groups; no question narrows the rows by what it learned elsewhere."""
    with recorded(TABLE, SCHEMA, 1) as (private, recorder):
        dm.DiffGen(1, 6).fit(private)
    assert {query.view.steps for query in recorder.queries} == {()}
    assert all(isinstance(query, Query) for query in recorder.queries)
