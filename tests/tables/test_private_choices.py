"""Private choices: at a huge epsilon the true best candidate, at a small one never worse than was said beforehand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.executors import Opener
from support.patient_tables import RECORDS, ROWS
from support.patient_tables import SCHEMA as PLAIN

import dpmine as dm
from dpmine.engines.encoding import encode
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import LAST, AttributeKey, Bins, Groups, Key, Part, Test
from dpmine.language.splits import Multiway, Splits
from dpmine.questions.choose_label import ChosenLabel
from dpmine.questions.choose_split import ChosenSplit
from dpmine.tables.asking import splits_of

TREE = TaxonomyNode(
    "any",
    (
        TaxonomyNode("compass", tuple(map(TaxonomyNode, ("north", "south", "east", "west")))),
        TaxonomyNode("special", (TaxonomyNode("children"), TaxonomyNode("intensive care"))),
    ),
)
SCHEMA = Schema(
    "patients",
    tuple(
        Nominal("ward", attribute.categories, attribute.other, TREE, missing=attribute.other)
        if isinstance(attribute, Nominal) and attribute.name == "ward"
        else attribute
        for attribute in PLAIN.attributes
    ),
    10_000,
    "diagnosis",
)
TABLE = encode(open_source(RECORDS), SCHEMA)
HUGE = 10_000
ALL = ["blood_pressure", "weight", "temperature", "cough", "age", "ward"]


def label_of(key: Key, value: Any) -> Any:
    """The label of a row with that value in the key's attribute."""
    if isinstance(key, AttributeKey):
        return value
    if isinstance(key, Bins):
        return sum(Fraction(cut) <= value for cut in key.cuts)
    assert isinstance(key, Groups)
    return next((group.label for group in key.groups if value in group.values), key.rest)


def branch_score(score: str, counts: Iterable[int]) -> float:
    """The papers' scores, by floats: rows of the largest class, minus rows times impurity, minus rows times entropy."""
    counts = [count for count in counts if count]
    total = sum(counts)
    if score == "max":
        return max(counts)
    if score == "gini":
        return -(total - sum(count * count for count in counts) / total)
    return sum(count * math.log2(count) for count in counts) - total * math.log2(total)


def score_of(score: str, key: Key, rows: list[dict[str, Any]]) -> float:
    branches: dict[Any, Counter[str]] = {}
    values = Counter((row[key.attribute], row["diagnosis"]) for row in rows)  # type: ignore[attr-defined]
    for (value, diagnosis), count in values.items():
        branches.setdefault(label_of(key, value), Counter())[diagnosis] += count
    return sum(branch_score(score, counts.values()) for counts in branches.values())


def candidates_of(families: Iterable[Any]) -> list[Key]:
    found: list[Splits] = [splits_of(family, SCHEMA) for family in families]
    return [candidate(family, SCHEMA, index) for family in found for index in range(number_of_candidates(family, SCHEMA))]


def assert_best(chosen: object, families: Iterable[Any], score: str, rows: list[dict[str, Any]]) -> None:
    """A gap of 0.1 in a score is lost with a chance below 1e-17 at epsilon 10,000, whatever the score's range."""
    assert isinstance(chosen, ChosenSplit)
    candidates = candidates_of(families)
    assert chosen.key in candidates
    assert chosen.labels == chosen.key.labels(SCHEMA)
    best = max(score_of(score, key, rows) for key in candidates)
    assert best - score_of(score, chosen.key, rows) < 0.1


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    return opened(TABLE, SCHEMA, epsilon=1_000_000)


# -- the true best at a huge epsilon -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("calibration", ["monotone", "generic"])
def test_the_most_frequent_label_is_chosen(clear: dm.PrivateTable, mechanism: str, calibration: str) -> None:
    options: dict[str, Any] = {"mechanism": mechanism, "calibration": calibration, "epsilon": HUGE}
    for name in ("ward", "blood_pressure", "age"):
        chosen = clear.choose(name, **options)
        counts = Counter(str(row[name]) for row in ROWS)
        assert isinstance(chosen, ChosenLabel)
        assert counts[chosen.label] == max(counts.values())
        assert AttributeKey(name).labels(SCHEMA)[chosen.index] == chosen.label
    bins = clear.choose(dm.col("age").bins(18, 65), **options)
    assert bins.label == "18 to <65"
    assert clear.choose(dm.col("age") >= 18, **options).label == "yes"
    assert str(bins) == "18 to <65 (chosen privately, epsilon 10000)"


@pytest.mark.parametrize("score", ["max", "gini", "infogain"])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_best_split_is_chosen_jointly_over_all_columns(clear: dm.PrivateTable, score: Any, mechanism: str) -> None:
    chosen = clear.choose(ALL, score=score, epsilon=HUGE, mechanism=mechanism)
    assert_best(chosen, ALL, score, ROWS)
    assert chosen.family == ALL.index(chosen.key.title)
    only_age = clear.choose(["age"], score=score, epsilon=HUGE, mechanism=mechanism)
    assert isinstance(only_age.key, Bins)
    assert_best(only_age, ["age"], score, ROWS)


@pytest.mark.parametrize("score", ["max", "gini", "infogain"])
def test_every_family_of_splits_can_compete(clear: dm.PrivateTable, score: Any) -> None:
    families: list[Any] = [
        dm.Thresholds("age", "20", "60.5"),
        dm.Subsets("weight", (("Normal",), ("Normal", "Overweight"))),
        dm.one_versus_rest(SCHEMA, "ward"),
        dm.col("age").bins(16, 70),
        Multiway(dm.col("ward").groups({"compass": ["north", "south", "east", "west"]})),
    ]
    assert_best(clear.choose(families, score=score, epsilon=HUGE), families, score, ROWS)
    for family in families:
        assert_best(clear.choose([family], score=score, epsilon=HUGE), [family], score, ROWS)


def test_thresholds_are_chosen_within_their_bounds(clear: dm.PrivateTable) -> None:
    family = dm.Thresholds("age", "20", "60.5")
    assert [key.cuts for key in candidates_of([family])] == [(str(age),) for age in range(21, 61)]  # type: ignore[attr-defined]
    chosen = clear.choose([family], score="gini", epsilon=HUGE)
    assert isinstance(chosen.key, Bins)
    assert 20 < int(chosen.key.cuts[0]) <= 60
    assert chosen.labels == (f"<{chosen.key.cuts[0]}", f">={chosen.key.cuts[0]}")
    assert len(candidates_of(["age"])) == 110


def test_one_versus_rest_names_every_category_and_every_inner_node_of_the_taxonomy() -> None:
    subsets = dm.one_versus_rest(SCHEMA, "ward").subsets
    assert set(subsets) == {
        *((ward,) for ward in TREE.leaves()),
        ("north", "south", "east", "west"),
        ("children", "intensive care"),
    }
    assert dm.one_versus_rest(PLAIN, "ward").subsets == tuple((ward,) for ward in PLAIN.attribute("ward").categories)  # type: ignore[union-attr]
    with pytest.raises(dm.RequestError, match="use thresholds"):
        dm.one_versus_rest(SCHEMA, "age")
    labels = [key.labels(SCHEMA) for key in candidates_of([dm.one_versus_rest(SCHEMA, "ward")])]
    assert ("children or intensive care", "not children or intensive care") in labels


@pytest.mark.parametrize("score", ["max", "gini", "infogain"])
def test_each_cell_chooses_for_itself(clear: dm.PrivateTable, score: Any) -> None:
    cells = clear.cells("blood_pressure")
    chosen = cells.choose(ALL, score=score, epsilon=HUGE)
    for one, pressure in zip(chosen, ("Low", "Normal", "High"), strict=True):
        assert_best(one, ALL, score, [row for row in ROWS if row["blood_pressure"] == pressure])


def test_each_cell_may_have_families_of_its_own(clear: dm.PrivateTable) -> None:
    families: list[list[Any]] = [
        ["age"],
        [dm.Thresholds("age", None, "30"), "cough"],
        [dm.one_versus_rest(SCHEMA, "ward"), dm.Thresholds("age", "30")],
    ]
    chosen = clear.cells("blood_pressure").choose(families, score="gini", epsilon=HUGE)
    for one, own, pressure in zip(chosen, families, ("Low", "Normal", "High"), strict=True):
        assert_best(one, own, "gini", [row for row in ROWS if row["blood_pressure"] == pressure])
    labels = clear.cells("blood_pressure").choose("ward", epsilon=[0, HUGE, HUGE])
    assert labels[0] is None
    for choice, pressure in zip(labels[1:], ("Normal", "High"), strict=True):
        assert isinstance(choice, ChosenLabel)
        counts = Counter(row["ward"] for row in ROWS if row["blood_pressure"] == pressure)
        assert counts[choice.label] == max(counts.values())


def test_the_chosen_key_is_what_the_next_level_is_split_by(clear: dm.PrivateTable) -> None:
    root = clear.choose(ALL, score="gini", epsilon=HUGE)
    children = clear.cells(root.key).choose(ALL, score="gini", epsilon=HUGE)
    assert len(children) == len(root.labels)
    for label, child in zip(root.labels, children, strict=True):
        assert_best(child, ALL, "gini", [row for row in ROWS if label_of(root.key, row[root.key.title]) == label])
    assert str(root).startswith(f"{root.key.title}: ")


def test_tests_and_parts_may_be_split_by_too(clear: dm.PrivateTable) -> None:
    chosen = clear.choose([dm.col("age") >= 60, Part("s", (1, 1))], score="gini", epsilon=HUGE)
    assert isinstance(chosen.key, (Test, Part))
    assert len(chosen.labels) == 2


small_rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 5), st.sampled_from(["yes", "no"])), min_size=1, max_size=30
)


@given(small_rows, st.sampled_from(["max", "gini", "infogain"]))
@settings(max_examples=100)
def test_on_any_small_table_the_best_split_is_chosen_at_the_largest_epsilon(
    rows: list[tuple[str, int, str]], score: Any
) -> None:
    schema = Schema.from_toml(
        """
        name = "small"
        rows_at_most = 30
        class = "diagnosis"
        [attributes.n]
        kind = "nominal"
        categories = ["a", "b", "c"]
        [attributes.x]
        kind = "numeric"
        low = 0
        missing = 0
        high = 5
        [attributes.diagnosis]
        kind = "nominal"
        categories = ["yes", "no"]
        """
    )
    table = {"n": [row[0] for row in rows], "x": [row[1] for row in rows], "diagnosis": [row[2] for row in rows]}
    listed = [dict(zip(table, row, strict=True)) for row in rows]
    candidates: list[Key] = [AttributeKey("n"), *(Bins("x", (str(cut),), LAST) for cut in range(1, 6))]
    with dm.open(table, schema=schema, cap=1_000_000) as data:
        chosen = data.grant("alice", epsilon=1_000_000).choose(["n", "x"], score=score, epsilon=1_000_000)
    scores = {key: score_of(score, key, listed) for key in candidates}
    assert max(scores.values()) - scores[chosen.key] < 1e-3


# -- at a small epsilon --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_a_choice_is_as_good_as_the_dry_run_said_in_most_cases(mechanism: str) -> None:
    """Said: worse in at most 5 % of the cases. The bound on 300 draws has a false-alarm rate of 1e-6."""
    counts = Counter(row["ward"] for row in ROWS)
    worse = 0
    for _ in range(300):
        with dm.open(TABLE, schema=SCHEMA, cap=1) as data:
            private = data.grant("alice", epsilon=1)
            said = private.preview.choose("ward", epsilon="0.02", mechanism=mechanism).expected_error
            loss = float(said.split("at most ")[1].split()[0])
            chosen = private.choose("ward", epsilon="0.02", mechanism=mechanism)
            worse += max(counts.values()) - counts[chosen.label] > loss
    assert worse <= stats.binom.isf(1e-6, 300, 0.05)


def test_a_choice_at_a_tiny_epsilon_is_almost_uniform() -> None:
    """1,000 draws over 6 labels against the uniform law; false-alarm rate below 1e-6, with what epsilon 1e-6 adds."""
    cells = 1000
    part = Part("s", (1,) * cells)
    with dm.open(TABLE, schema=SCHEMA, cap=1) as data:
        private = data.grant("alice", epsilon=1)
        chosen = private.cells(part).choose("ward", epsilon="0.000001")
    counts = Counter(choice.index for choice in chosen if isinstance(choice, ChosenLabel))
    assert sum(counts.values()) == cells
    assert stats.chisquare([counts[index] for index in range(6)]).pvalue > 1e-7
