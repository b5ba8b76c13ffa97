"""The edges: odd schemas, taxonomies and tables, limits on groups, and parameters as scikit-learn's users know them."""

from __future__ import annotations

import json
import math
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from support.choices import Drawn, choosing
from support.mined_tables import Table, schema_of, table_of
from support.opening import HUGE, fitted, opened, recorded
from support.releases import SCORES, every, form_of, shown_groups, true_groups, undated, with_tree

import dpmine as dm
from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.language.splits import Specialise
from dpmine.models.cuts import Cut, NominalCut, NumericCut, combinations, evenly_cut, finest_cut, predictors, root_cut
from dpmine.models.trees import labels_of
from dpmine.noise.spread import of_counts
from dpmine.noise.thresholds import threshold_for
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.sparse_histogram import SparseHistogram
from dpmine.release import counting
from dpmine.release.contingency import ContingencyTable
from dpmine.release.counting import AUTO, at_least, groups_of
from dpmine.release.diffgen import DiffGen
from dpmine.release.tree_release import TreeRelease

YES_NO = Nominal("class", ("no", "yes"), "no", missing="no")
RELEASES: list[Any] = [DiffGen, ContingencyTable, TreeRelease]
SETTING = {DiffGen: ("threshold", 3), ContingencyTable: ("threshold", 3), TreeRelease: ("max_depth", 3)}
"""A parameter of each that is not epsilon, and another value for it."""


def of(*attributes: Any, name: str = "class") -> Schema:
    return Schema("small", (*attributes, YES_NO), 10**9, name)


def grid(name: str, points: int) -> Numeric:
    return Numeric(name, Decimal(0), Decimal(max(points - 1, 1)), Decimal(1 if points > 1 else 5), Decimal(0))


def drawn(schema: Schema, rows: int, seed: int = 1) -> Table:
    draw = np.random.default_rng(seed)
    singles = [a for a in schema.attributes if not isinstance(a, ItemList)]
    return {a.name: [a.label(int(code)) for code in draw.integers(0, a.size, rows)] for a in singles}


# -- cuts --------------------------------------------------------------------------------------------------------------

TREES = st.recursive(st.just(None), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=9)


def tree_of(form: Any, counter: list[int]) -> TaxonomyNode:
    """A taxonomy of any shape, with few names for its inner nodes, so that they repeat."""
    if form is None:
        counter[0] += 1
        return TaxonomyNode(f"leaf{counter[0]}")
    children = tuple(tree_of(child, counter) for child in form)
    renamed = tuple(
        TaxonomyNode(f"n{place}", child.children) if child.children else child for place, child in enumerate(children)
    )
    return TaxonomyNode("top", renamed)


def assert_a_cut(cut: Cut) -> None:
    """Every code under exactly one value, names that differ, and a key that says the same as the values."""
    values = cut.values()
    assert len(values) == len(cut) >= 1
    assert sorted(code for value in values for code in value.codes) == list(range(cut.attribute.size))
    assert len({value.name for value in values}) == len(values)
    rows = {cut.attribute.name: np.arange(cut.attribute.size, dtype=np.uint16)}
    places = groups_of([cut], rows, cut.attribute.size)[:, 0]
    for place, value in enumerate(values):
        assert np.flatnonzero(places == place).tolist() == sorted(value.codes)
    key = cut.key()
    assert (key is None) == (len(cut) == 1)
    if key is not None:
        assert labels_of(key, rows, of(cut.attribute)).tolist() == places.tolist()


@settings(max_examples=60)
@given(TREES, st.randoms(use_true_random=False))
def test_a_taxonomy_of_any_shape_is_cut_down_to_its_categories(form: Any, random: Any) -> None:
    """Only children, repeated names, one category: every step separates something, and the end is the finest cut."""
    tree = tree_of(form, [0])
    categories = list(tree.leaves())
    random.shuffle(categories)
    attribute = Nominal("tree", tuple(categories), categories[0], tree, missing=categories[0])
    cut = root_cut(attribute)
    steps = 0
    while cut.candidates():
        assert_a_cut(cut)
        value = random.choice(cut.candidates())
        children = cut.children(value)
        below = cut.specialised(value)
        assert children >= 2
        assert len(below) == len(cut) + children - 1
        parents = cut.values()[value].codes
        assert sorted(c for v in below.values()[value : value + children] for c in v.codes) == list(parents)
        assert cut.candidate(value) == Specialise(below.key(), tuple(range(value, value + children)))  # type: ignore[arg-type]
        cut, steps = below, steps + 1
    assert_a_cut(cut)
    finest = finest_cut(attribute)
    assert {value.codes for value in cut.values()} == {value.codes for value in finest.values()}
    assert len(finest) == attribute.size
    assert steps <= max(attribute.size - 1, 0)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 99))
def test_intervals_of_any_kind_cover_the_grid(points: int, bins: int, seed: int) -> None:
    attribute = grid("x", points)
    assert attribute.size == points
    even = evenly_cut(attribute, bins)
    assert_a_cut(even)
    assert len(even) == min(points, bins)
    sizes = [len(value.codes) for value in even.values()]
    assert max(sizes) - min(sizes) <= 1
    cut = root_cut(attribute)
    assert isinstance(cut, NumericCut)
    draw = np.random.default_rng(seed)
    assert cut.candidates() == []  # no split point is known yet
    for _ in range(5):
        assert_a_cut(cut)
        divisible = cut.divisible()
        assert divisible == [place for place, value in enumerate(cut.values()) if len(value.codes) > 1]
        if not divisible:
            break
        value = int(draw.choice(divisible))
        codes = cut.values()[value].codes
        assert cut.span(value) == (attribute.label(codes[0]), attribute.label(codes[-1]))
        point = int(draw.integers(codes[1], codes[-1] + 1))
        known = cut.with_points({value: point})
        assert known.candidates() == [value]
        assert known.children(value) == 2
        cut = known.specialised(value)
        assert cut == known.split_at(value, point)
        assert cut.candidates() == []
    assert_a_cut(cut)


def test_names_that_stand_twice_in_a_cut_are_told_apart() -> None:
    tree = TaxonomyNode.parse("all", {"left": {"rest": ["x", "y"], "l": ["w"]}, "right": {"rest": ["u", "v"], "r": ["t"]}})
    cut = root_cut(Nominal("letter", tree.leaves(), "x", tree, missing="x")).specialised(0)
    assert [value.name for value in cut.values()] == ["left", "right"]
    below = cut.specialised(1).specialised(0)
    assert [value.name for value in below.values()] == ["rest (x, y)", "l", "rest (u, v)", "r"]


def test_a_category_may_be_named_as_a_told_apart_value() -> None:
    tree = TaxonomyNode.parse(
        "all", {"left": {"rest": ["x", "y"], "w": {}}, "right": {"rest": ["u", "v"], "rest (x, y)": {}}}
    )
    schema = of(Nominal("letter", tree.leaves(), "x", tree, missing="x"))
    table = drawn(schema, 20)
    model = fitted(dm.DiffGen(HUGE, 3), table, schema)
    assert shown_groups(model) == true_groups(model, table, schema)


def test_an_only_child_gives_way_to_its_own_children() -> None:
    chain = TaxonomyNode.parse("top", {"one": {"two": {"three": {"a": {}, "b": {"c": ["d"]}}}}})
    cut = root_cut(Nominal("letter", ("a", "d"), "a", chain, missing="a"))
    assert [value.name for value in cut.values()] == ["top"]
    assert cut.children(0) == 2
    below = cut.specialised(0)
    assert [value.name for value in below.values()] == ["a", "b"]
    assert below.candidates() == []  # below b there is one category, which would separate nothing
    alone = root_cut(Nominal("only", ("z",), "z", TaxonomyNode.parse("top", {"mid": ["z"]}), missing="z"))
    assert alone.candidates() == []


def test_without_a_taxonomy_the_children_of_the_root_are_the_categories() -> None:
    cut = root_cut(Nominal("kind", ("a", "b", "c"), "a", missing="a"))
    assert [value.name for value in cut.values()] == ["any kind"]
    assert [value.name for value in cut.specialised(0).values()] == ["a", "b", "c"]
    single = root_cut(Nominal("kind", ("a",), "a", missing="a"))
    assert isinstance(single, NominalCut)
    assert [value.name for value in single.values()] == ["a"]
    assert single.candidates() == []


# -- odd schemas -------------------------------------------------------------------------------------------------------

CHAINED = TaxonomyNode.parse("top", {"one": {"two": ["p", "q"]}, "other": {"two": ["r", "s"]}})
ODD: dict[str, Schema] = {
    "one category": of(Nominal("only", ("z",), "z", missing="z")),
    "one category and others": of(
        Nominal("only", ("z",), "z", missing="z"), Nominal("flag", ("no", "yes"), "no", missing="no")
    ),
    "no taxonomy": of(Nominal("kind", ("a", "b", "c"), "a", missing="a")),
    "chains and repeated names": of(Nominal("letter", CHAINED.leaves(), "p", CHAINED, missing="p")),
    "one grid point": of(grid("x", 1)),
    "one grid point and others": of(grid("x", 1), grid("y", 4), Nominal("flag", ("no", "yes"), "no", missing="no")),
    "two grid points": of(grid("x", 2)),
    "lists are left out": of(ItemList("past", ("flu",), 2), grid("y", 4)),
    "the class first": Schema("small", (YES_NO, grid("y", 4)), 10**9, "class"),
    "a class of one label": Schema("small", (grid("y", 4), Nominal("class", ("c",), "c", missing="c")), 10**9, "class"),
}


@pytest.mark.parametrize("points", ["first", "joint"])
@pytest.mark.parametrize("name", ODD)
def test_odd_schemas_are_released(name: str, points: str) -> None:
    schema = ODD[name]
    table = drawn(schema, 30) | ({"past": ["flu"] * 30} if "lists" in name else {})
    for model in (dm.DiffGen(HUGE, 9, points=points), ContingencyTable(HUGE)):
        fitted(model, table, schema)
        assert shown_groups(model) == true_groups(model, table, schema)
        assert len(model.rows()["class"]) == 30
        model.release().generalised_schema()
        assert all(len(cut) == cut.attribute.size for cut in model.cuts_.values())
    for model in every(1):
        fitted(model, table, schema)
        assert "past" not in model.rows()


@pytest.mark.parametrize("name", ODD)
def test_odd_schemas_are_released_by_a_tree_where_it_can_split(name: str) -> None:
    schema = ODD[name]
    table = drawn(schema, 30) | ({"past": ["flu"] * 30} if "lists" in name else {})
    if all(attribute.size == 1 for attribute in predictors(schema)):
        with opened(table, schema, 1) as private:
            with pytest.raises(dm.RequestError, match="no attribute but the class that a tree could split by"):
                dm.TreeRelease(1).fit(private)
            assert str(private.remaining()) == "1"
        return
    for epsilon in (1, HUGE):
        model = fitted(dm.TreeRelease(epsilon), table, schema)
        assert list(model.rows()) == [a.name for a in schema.attributes if a.name != "past"]
        assert len(model.transform(table)[predictors(schema)[0].name]) == 30
        model.release().generalised_schema()
    assert len(model.rows(raw=False)["class"]) == 30


@pytest.mark.parametrize("number", range(5))
def test_an_empty_table_is_released(number: int) -> None:
    schema = schema_of(lists=True)
    empty: Table = {attribute.name: [] for attribute in schema.attributes}
    model = fitted(with_tree(1)[number], empty, schema)
    released = model.release()
    assert model.transform(empty) == {name: [] for name in released.values}
    assert len(model.rows()["class"]) == len(released)
    exact = fitted(with_tree(HUGE)[number], empty, schema)
    assert len(exact.release()) == 0
    assert list(exact.rows()) == [a.name for a in schema.attributes if a.name != "past"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_schema_without_predictors_is_refused(release: Any) -> None:
    for schema in (of(), of(ItemList("past", ("flu",), 2))):
        with pytest.raises(dm.RequestError, match=r"no attribute but the class that (could be released|a tree could split)"):
            release(1).plan(schema)
        with opened({"class": ["no"], "past": ["flu"]}, schema, 1) as private:
            with pytest.raises(dm.RequestError, match=r"no attribute but the class"):
                release(1).fit(private)
            assert str(private.remaining()) == "1"


@pytest.mark.parametrize("release", RELEASES)
def test_a_schema_without_a_class_is_refused(release: Any) -> None:
    schema = Schema("small", (grid("y", 4),), 100)
    with pytest.raises(dm.SchemaError, match="The schema names no class"):
        release(1).plan(schema)
    with opened({"y": [1, 2]}, schema, 1) as private:
        with pytest.raises(dm.SchemaError, match="The schema names no class"):
            release(1).fit(private)
        assert str(private.remaining()) == "1"
    with pytest.raises(dm.SchemaError, match="The schema names no class"):
        release(1, schema=schema).fit({"y": [1, 2]}, ["no", "yes"])


# -- limits on groups --------------------------------------------------------------------------------------------------


def wide(attributes: int, categories: int) -> Schema:
    names = tuple(f"v{place}" for place in range(categories))
    return of(*(Nominal(f"a{place}", names, "v0", missing="v0") for place in range(attributes)))


@pytest.mark.parametrize(("most", "factors"), [(1, 0), (9, 0), (10, 1), (49, 1), (50, 2), (249, 2), (250, 3)])
def test_values_that_would_make_too_many_groups_are_not_offered(
    most: int, factors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attribute makes five times as many groups of two classes; specialising stops before there are too many."""
    monkeypatch.setattr(counting, "MOST_GROUPS", most)
    schema = wide(4, 5)
    with recorded(drawn(schema, 20), schema, 1) as (private, recorder):
        model = dm.DiffGen(1, 4, leftover=True).fit(private)
    made = combinations(list(model.cuts_.values()), 2)
    assert made == 2 * 5**factors
    assert len(recorder.queries) == factors + 1
    assert model.charged_.units == UNITS
    note = f"Values were specialised {factors} times instead of 4: nothing was left to specialise, or every further"
    assert sum(sentence.startswith(note) for sentence in model.sheet()["meaning"]) == 1
    automatic = fitted(dm.DiffGen(1, 4, threshold="auto"), drawn(schema, 20), schema)
    assert combinations(list(automatic.cuts_.values()), 2) == 2 * 5**4
    assert not any("instead of" in sentence for sentence in automatic.sheet()["meaning"])


def test_a_smaller_candidate_is_offered_where_a_larger_one_would_be_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_GROUPS", 16)
    big = Nominal("big", tuple(f"b{place}" for place in range(20)), "b0", missing="b0")
    schema = of(big, grid("y", 9))
    for seed in range(5):
        with choosing(Drawn(seed)):
            model = fitted(dm.DiffGen(1, 30, points="joint"), drawn(schema, 20), schema)
        assert {name: len(cut) for name, cut in model.cuts_.items()} == {"big": 1, "y": 8}
        assert combinations(list(model.cuts_.values()), 2) == 16


def test_the_limit_is_about_the_groups_and_not_the_rows() -> None:
    """The same questions are asked of an empty table as of a full one."""
    schema = wide(3, 3)
    for rows in (0, 500):
        with recorded(drawn(schema, rows), schema, 1) as (private, recorder):
            dm.DiffGen(1, 5).fit(private)
        assert [type(query.question) for query in recorder.queries] == [ChooseSplit] * 3 + [SparseHistogram]


def test_an_automatic_threshold_lets_about_a_thousand_groups_through_and_1_all_that_noise_lifts() -> None:
    """10^6 combinations at epsilon 0.1 for the counts: 475,000 by noise with threshold 1. Six deviations: 2e-9."""
    schema, empty = wide(3, 79), drawn(wide(3, 79), 0)
    cells = 2 * 79**3
    lowest = at_least(AUTO, cells, Epsilon.parse("0.1"))
    assert lowest == threshold_for(cells, of_counts(Epsilon.parse("0.1"))) > 1
    model = fitted(ContingencyTable("0.1"), empty, schema)
    shown = model.release().counts
    assert shown[shown > 0].min() >= lowest
    a = math.exp(-0.1)
    expected = cells * a**lowest / (1 + a)
    assert 900 < expected <= 1000
    assert abs(int((shown > 0).sum()) - expected) < 6 * math.sqrt(expected)
    low = fitted(ContingencyTable("0.1", threshold=1), empty, schema).release().counts
    assert low[low > 0].min() == 1
    assert abs(int((low > 0).sum()) - cells * a / (1 + a)) < 6 * math.sqrt(cells / 4)
    diffgen = fitted(dm.DiffGen("0.2", 3, threshold="auto", leftover=False), empty, schema).release().counts
    assert diffgen[diffgen > 0].min() >= lowest - 1


@pytest.mark.parametrize("threshold", [1, 2, 50])
def test_a_given_threshold_is_kept(threshold: int) -> None:
    schema = schema_of()
    for model in (dm.DiffGen("0.1", 6, threshold=threshold), ContingencyTable("0.1", 2, threshold)):
        counts = fitted(model, table_of(schema, 300, 1), schema).release().counts
        assert ((counts == 0) | (counts >= threshold)).all()


def test_a_contingency_table_of_a_large_domain_is_refused_with_threshold_1_before_it_spends() -> None:
    schema = wide(6, 40)
    message = r"has 8192000000 combinations; with threshold 1 at most 1000000 .* Use threshold='auto', or fewer bins"
    with opened(drawn(schema, 50), schema, 1) as private:
        with pytest.raises(dm.RequestError, match=message):
            ContingencyTable(1, threshold=1).fit(private)
        assert str(private.remaining()) == "1"
    with pytest.raises(dm.RequestError, match=message):
        ContingencyTable(1, threshold=1).plan(schema)
    with pytest.raises(dm.RequestError, match="combinations"):
        ContingencyTable(1).plan(wide(12, 40))  # more than 2^59


@pytest.mark.parametrize(("attributes", "categories"), [(6, 40), (10, 40)])
def test_huge_domains_are_counted_in_small_memory(attributes: int, categories: int) -> None:
    """8e9 and 2e16 combinations: about 1,000 phantoms, and of 200 equal rows the count. Beyond 30: a chance of e^-29."""
    schema = wide(attributes, categories)
    table = {a.name: [a.label(0)] * 200 for a in schema.attributes}  # type: ignore[union-attr]
    with opened(table, schema, 1) as private:
        tracemalloc.start()
        model = ContingencyTable(1).fit(private)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 30_000_000
    assert 200 < len(model.release().groups) < 1200  # 368 to 1,000 are expected
    first = shown_groups(model)[("v0",) * attributes]
    assert abs(first[0] - 200) <= 30
    assert all(len(column) == len(model.release()) for column in model.rows(raw=True, seed=1).values())


def test_diffgen_on_a_huge_domain_takes_small_memory_too() -> None:
    schema = wide(10, 40)
    with opened(drawn(schema, 100), schema, 1) as private:
        tracemalloc.start()
        model = dm.DiffGen(1, 10, threshold="auto").fit(private)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 50_000_000
    assert combinations(list(model.cuts_.values()), 2) == 2 * 40**10
    assert len(model.release().groups) < 1300


# -- specialisations that follow from the rows -------------------------------------------------------------------------


def test_automatic_specialisations_follow_the_noisy_number_of_rows() -> None:
    """At least 3, and no more groups than rise out of the noise."""
    schema = schema_of()
    for rows in (0, 1000):
        for seed in range(3):
            with recorded(table_of(schema, rows, seed), schema, 1) as (private, recorder):
                model = dm.DiffGen(1, "auto", "max-gain", points="joint", total_share=0.05, threshold="auto").fit(private)
            (total,) = recorder.asked[0][1].answer.numbers[0] or ()
            budget = model.budget_for(schema, total)
            asked = sum(isinstance(query.question, ChooseSplit) for query in recorder.queries)
            assert asked <= budget.rounds
            assert 3 <= budget.rounds <= 30
            assert combinations(list(model.cuts_.values()), 2) <= budget.most_groups
            assert model.charged_ <= model.cost_ == Epsilon(UNITS)


# -- parameters --------------------------------------------------------------------------------------------------------

OWN = {
    DiffGen: [
        *("epsilon", "specialisations", "score", "calibration", "points", "leftover"),
        *("threshold", "total_share", "frequency_share", "schema"),
    ],
    ContingencyTable: ["epsilon", "bins", "threshold", "schema"],
    TreeRelease: ["epsilon", "frequency_share", "leaf_share", "max_depth", "schema"],
}


@pytest.mark.parametrize("release", RELEASES)
def test_parameters_are_read_and_set(release: Any) -> None:
    model = release()
    assert list(model.get_params()) == OWN[release] == list(model.get_params(deep=False))
    name, value = SETTING[release]
    assert model.set_params(epsilon="0.25", **{name: value}) is model
    assert (model.epsilon, getattr(model, name)) == ("0.25", value)
    with pytest.raises(dm.RequestError, match=f"{release.__name__} has no parameter 'depth'. It has epsilon"):
        model.set_params(depth=3)
    with pytest.raises(dm.RequestError, match="has no parameter 'cuts_'"):
        model.set_params(cuts_={})
    again = release(**model.get_params())
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("release", RELEASES)
def test_a_fitted_release_has_the_same_parameters(release: Any) -> None:
    schema = schema_of()
    model = fitted(release(1), table_of(schema, 50, 1), schema)
    assert list(model.get_params()) == OWN[release]
    assert repr(model) == f"{release.__name__}()"


@pytest.mark.parametrize("release", RELEASES)
def test_what_differs_from_the_defaults_is_shown(release: Any) -> None:
    assert repr(release()) == f"{release.__name__}()"
    assert repr(release(epsilon="0.5", schema=schema_of())) == f"{release.__name__}(epsilon='0.5', schema='mined')"


@pytest.mark.parametrize("fit", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_scikit_learn_clones_a_release_without_what_was_fitted(release: Any, fit: bool) -> None:
    schema = schema_of()
    model = release("0.5")
    if fit:
        fitted(model, table_of(schema, 50, 1), schema)
    copy = clone(model)
    assert copy.get_params() == {name: getattr(model, name) for name in OWN[release]}
    assert not hasattr(copy, "released_")


@pytest.mark.parametrize("release", RELEASES)
def test_parameters_have_no_say_before_fit(release: Any) -> None:
    assert release(epsilon=-1).epsilon == -1
    with pytest.raises(TypeError):
        release(colour="red")
    with pytest.raises(dm.RequestError, match=r"needs the public facts about this table: fit\(X, y, schema="):
        release().fit({"a": [1]}, [1])
    schema = schema_of()
    with opened(table_of(schema, 20, 1), schema, 1) as private:
        for given_too in ({"y": [1]}, {"schema": schema}):
            with pytest.raises(dm.RequestError, match=r"call fit\(private\) alone"):
                release().fit(private, **given_too)
        assert str(private.remaining()) == "1"


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_stays_while_its_parameters_change(release: Any) -> None:
    schema = schema_of()
    table = table_of(schema, 50, 1)
    model = fitted(release(1), table, schema)
    before = form_of(model.release()), model.transform(table), str(model.cost_)
    model.set_params(epsilon="0.01", **dict([SETTING[release]]))
    assert (form_of(model.release()), model.transform(table), str(model.cost_)) == before


@pytest.mark.parametrize("release", RELEASES)
def test_the_sheet_is_about_the_release_and_not_about_parameters_set_since(release: Any) -> None:
    schema = schema_of()
    model = fitted(release(1), table_of(schema, 50, 1), schema)
    before = undated(model.sheet())
    privacy = before["privacy"]
    assert (privacy["epsilon_disclosed"], privacy["epsilon_charged"]) == ("1", str(model.charged_))
    model.set_params(epsilon="0.01", **dict([SETTING[release]]))
    assert undated(model.sheet()) == before


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("seed", [-1, -(2**70), 0.5, True, "7", 2**64])
def test_a_seed_that_is_none_is_refused(release: Any, seed: Any) -> None:
    schema = schema_of()
    model = fitted(release(1), table_of(schema, 50, 1), schema)
    for raw in (None, True, False):
        with pytest.raises(dm.RequestError, match="seed must be a whole number from 0"):
            model.rows(raw=raw, seed=seed)
    assert model.rows(raw=True, seed=np.int64(4)) == model.rows(raw=True, seed=4)


NUMPY: list[Any] = [
    DiffGen(np.float64(1), np.int64(3), threshold=np.int32(2), total_share=np.float64(0.1), leftover=np.bool_(True)),
    ContingencyTable(np.int64(1), np.int64(3), np.int16(2)),
    TreeRelease(np.float64(1), np.float64(0.1), np.float32(0.25), np.int64(2)),
]


@pytest.mark.parametrize("model", NUMPY, ids=lambda model: type(model).__name__)
def test_parameters_of_numpy_s_kinds_give_a_sheet_in_json(model: Any) -> None:
    schema = schema_of()
    sheet = fitted(model, table_of(schema, 50, 1), schema).sheet()
    parameters = json.loads(json.dumps(sheet))["parameters"]
    assert parameters == {name: value for name, value in model.get_params().items() if name != "schema"} | {"epsilon": "1"}


@pytest.mark.parametrize("score", SCORES)
def test_fit_returns_the_release_itself_and_says_what_it_cost(score: str) -> None:
    schema = schema_of()
    model = dm.DiffGen(1, 3, score)
    with opened(table_of(schema, 50, 1), schema, 2) as private:
        assert model.fit(private) is model
    assert model.schema_ == schema
    assert str(model.cost_) == "1"
    assert [a.name for a in predictors(schema)] == list(model.release().values) == list(model.cuts_)
