"""Drafted taxonomies: groups by the names of categories alone, for the owner to correct, with planted mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.kinds.taxonomy_by_names import FEW_CATEGORIES, taxonomy_by_names
from dpmine.facts.schema import Schema

Table = dict[str, list[Any]]

MARITAL = ["Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Widowed"]
WORK = ["Federal-gov", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov"]


def groups_of(categories: Sequence[str], other: str = "other") -> dict[str, list[str]] | None:
    """The inner nodes below the root, by name; None without a taxonomy."""
    tree = taxonomy_by_names({*categories, other}, other)
    return None if tree is None else {node.name: list(node.leaves()) for node in tree.children if node.children}


# -- which groups form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("categories", "groups"),
    [
        (MARITAL, {"Married": ["Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent"]}),
        (WORK, {"Self-emp": ["Self-emp-inc", "Self-emp-not-inc"]}),
        (["a_x", "a y", "b/x", "b.y"], {"a": ["a y", "a_x"], "b": ["b.y", "b/x"]}),
        (
            ["Diabetes, type 1", "Diabetes (juvenile)", "Flu", "Gout"],
            {"Diabetes": ["Diabetes (juvenile)", "Diabetes, type 1"]},
        ),
        (["RED one", "red two", "Red three", "blue"], {"RED": ["RED one", "Red three", "red two"]}),
        (["--red-one", "red-two", "blue", "green"], {"red": ["--red-one", "red-two"]}),
        (["I10.1", "I10.9", "J45.0", "K35"], {"I10": ["I10.1", "I10.9"]}),
    ],
)
def test_categories_that_begin_with_the_same_words_form_a_group_named_by_them(
    categories: list[str], groups: dict[str, list[str]]
) -> None:
    assert groups_of(categories) == groups


@pytest.mark.parametrize(
    "categories",
    [
        ["north", "south", "east", "west"],
        ["red one", "red two", "blue"],  # few
        ["1st-4th", "5th-6th", "9th", "10th", "11th"],
        ["10-14", "10-19", "20-24", "20-29"],  # a number in front names no kind
        ["2024-01", "2024-02", "2025-01", "2025-02"],
        ["1.5", "1.7", "2.5", "x"],
        ["?", "-", "...", "__", "/"],  # no words at all
        ["Ward A", "Ward B", "Ward C", "Ward D"],  # what all share tells none of them apart
        ["user_1", "user_2", "user_3", "user_4"],
        ["redwood", "redhead", "redcap", "blue"],  # words, not letters
    ],
)
def test_without_a_shared_word_that_tells_categories_apart_there_is_no_taxonomy(categories: list[str]) -> None:
    assert groups_of(categories) is None
    assert groups_of(categories, "?") is None


def test_words_that_all_categories_share_are_passed_over() -> None:
    wards = ["Ward North 1", "Ward North 2", "Ward South 1", "Ward South 2", "Ward East"]
    assert groups_of(wards) == {"Ward North": wards[:2], "Ward South": wards[2:4]}


def test_the_category_for_gaps_and_unknown_values_is_in_no_group() -> None:
    assert groups_of(["Husband", "Other-relative", "Own-child", "Wife"], "other") is None
    assert groups_of(["Other-relative", "Other-service", "Sales", "Wife"]) == {
        "Other (all)": ["Other-relative", "Other-service"]
    }


def test_a_node_never_has_the_name_of_a_category_or_of_another_node() -> None:
    assert groups_of(["Self-emp", "Self-emp-inc", "Private", "Gov"]) == {"Self-emp (all)": ["Self-emp", "Self-emp-inc"]}
    tree = taxonomy_by_names(["any", "any (all)", "a-x", "A-y", "b"], "b")
    assert tree is not None
    assert [node.name for node in tree.nodes() if node.children] == [
        "Any (all) (all)",
        "A",
        "any (all) (all) (all)",
    ]


# Words that often coincide, in several spellings and after several separators, and names that no one expects.
words = st.sampled_from(["a", "A", "b", "any", "Any", "all", "1", "1st", "", "(all)"])
names = st.lists(words, max_size=4).flatmap(lambda parts: st.sampled_from("-_/. ,").map(lambda mark: mark.join(parts)))
some_names = st.lists(names | st.text(max_size=5), min_size=1, max_size=12, unique=True)


@given(some_names, st.randoms(use_true_random=False))
def test_a_drafted_taxonomy_is_a_useful_tree_and_a_function_of_the_set_of_names(categories: list[str], random: Any) -> None:
    other = categories[0]
    tree = taxonomy_by_names(categories, other)
    shuffled = random.sample(categories, len(categories))
    assert taxonomy_by_names([*shuffled, *shuffled[:3]], other) == tree
    if tree is None:
        return
    assert len(categories) - 1 > FEW_CATEGORIES
    assert sorted(tree.leaves()) == sorted(categories)
    every = [node.name for node in tree.nodes()]
    assert len(set(every)) == len(every)
    groups = [node for node in tree.children if node.children]
    assert groups
    assert all(2 <= len(group.leaves()) < len(categories) - 1 for group in groups)
    assert TaxonomyNode(other) in tree.children
    schema = Schema("t", (Nominal("x", tuple(categories), other, tree, missing=other),), 10, drafted=True)
    assert Schema.from_toml(schema.to_toml()) == schema


# -- names alone decide ------------------------------------------------------------------------------------------------


def table_of(counts: Sequence[int], classes: Sequence[str], categories: Sequence[str] = MARITAL) -> Table:
    """Rows with so many of each category, of that class."""
    rows = [(name, label) for name, count, label in zip(categories, counts, classes, strict=True) for _ in range(count)]
    return {"status": [name for name, _ in rows], "class": [label for _, label in rows]}


BASE = table_of([1, 2, 3, 4, 5, 6], "yyynnn")
SAME_NAMES = {
    "other frequencies": table_of([6, 1, 5, 2, 4, 3], "yyynnn"),
    "other classes": table_of([1, 2, 3, 4, 5, 6], "ynynyn"),
    "other order of rows": {column: values[::-1] for column, values in BASE.items()},
}


def drafted(drafter: Callable[[Table], Schema], table: Table) -> Nominal:
    attribute = drafter(table).attribute("status")
    assert isinstance(attribute, Nominal)
    return attribute


def what_else_decides(drafter: Callable[[Table], Schema]) -> set[str]:
    """What changes the draft of an attribute although the names of its categories stay the same."""
    return {what for what, table in SAME_NAMES.items() if drafted(drafter, table) != drafted(drafter, BASE)}


def with_tree(table: Table, change: Callable[[TaxonomyNode], TaxonomyNode]) -> Schema:
    """A planted mistake: the draft, with its taxonomy changed by somebody who has the rows."""
    schema = Schema.draft(table)
    attribute = drafted(Schema.draft, table)
    assert attribute.taxonomy is not None
    mistaken = replace(attribute, taxonomy=change(attribute.taxonomy))
    return replace(schema, attributes=tuple(mistaken if a.name == "status" else a for a in schema.attributes))


def most_frequent_first(table: Table) -> Schema:
    counts = Counter(table["status"])

    def frequency(node: TaxonomyNode) -> int:
        return -sum(counts[leaf] for leaf in node.leaves())

    return with_tree(table, lambda tree: TaxonomyNode(tree.name, tuple(sorted(tree.children, key=frequency))))


def first_seen_first(table: Table) -> Schema:
    def place(node: TaxonomyNode) -> int:
        return min([table["status"].index(leaf) for leaf in node.leaves() if leaf in table["status"]], default=-1)

    return with_tree(table, lambda tree: TaxonomyNode(tree.name, tuple(sorted(tree.children, key=place))))


def rare_ones_together(table: Table) -> Schema:
    counts = Counter(table["status"])
    return with_tree(table, lambda tree: halves(tree, lambda leaf: counts[leaf] > 3))


def same_class_together(table: Table) -> Schema:
    label = dict(zip(table["status"], table["class"], strict=True))
    return with_tree(table, lambda tree: halves(tree, lambda leaf: label.get(leaf) == "y"))


def halves(tree: TaxonomyNode, belongs: Callable[[str], bool]) -> TaxonomyNode:
    leaves = sorted(tree.leaves())
    parts = ([leaf for leaf in leaves if belongs(leaf) is side] for side in (True, False))
    return TaxonomyNode("Any", tuple(TaxonomyNode(f"part {n}", tuple(map(TaxonomyNode, p))) for n, p in enumerate(parts)))


def test_neither_frequency_nor_class_nor_order_of_rows_changes_a_draft() -> None:
    assert drafted(Schema.draft, BASE).taxonomy is not None
    assert what_else_decides(Schema.draft) == set()


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
        (most_frequent_first, "other frequencies"),
        (rare_ones_together, "other frequencies"),
        (first_seen_first, "other order of rows"),
        (same_class_together, "other classes"),
    ],
)
def test_a_drafter_that_learns_from_rows_would_be_noticed(mistake: Callable[[Table], Schema], seen: str) -> None:
    assert seen in what_else_decides(mistake)


@given(st.data())
def test_tables_with_the_same_names_have_the_same_drafted_attribute(data: st.DataObject) -> None:
    categories = data.draw(st.lists(names.filter(str.strip), min_size=1, max_size=8, unique=True).map(lambda n: [*n, "a z"]))
    counts = st.lists(st.integers(1, 4), min_size=len(categories), max_size=len(categories))
    classes = st.lists(st.sampled_from("yn"), min_size=len(categories), max_size=len(categories))
    one, two = (table_of(data.draw(counts), data.draw(classes), data.draw(st.permutations(categories))) for _ in "12")
    assert drafted(Schema.draft, one) == drafted(Schema.draft, two)


# -- the file ----------------------------------------------------------------------------------------------------------

DRAFTED = """\
# Proposed from names alone. Correct it by public knowledge, never by what the rows show.
[attributes.status.taxonomy.Any]
Married = [
    "Married-AF-spouse",
    "Married-civ-spouse",
    "Married-spouse-absent",
]
Divorced = []
Never-married = []
Widowed = []
"""


def test_a_drafted_taxonomy_is_readable_says_where_it_comes_from_and_comes_back(tmp_path: Path) -> None:
    schema = Schema.draft(BASE)
    (tmp_path / "draft.toml").write_text(schema.to_toml(), encoding="utf-8")
    assert Schema.load(tmp_path / "draft.toml") == schema
    assert schema.drafted
    assert DRAFTED in schema.to_toml()
    header = schema.to_toml().split("\nname = ")[0]
    assert "Taxonomies are proposals, made from the categories' names alone" in header
    assert "public knowledge" in header
    assert "Never group categories because they behave alike in the rows" in header


def test_a_reviewed_taxonomy_and_a_draft_without_one_carry_no_such_comment() -> None:
    reviewed = replace(Schema.draft(BASE), drafted=False)
    assert "#" not in reviewed.to_toml()
    assert "[attributes.status.taxonomy.Any]" in reviewed.to_toml()
    assert "axonom" not in Schema.draft({"ward": ["north", "south", "east", "west"]}).to_toml()


def test_the_class_gets_no_taxonomy() -> None:
    schema = Schema.draft({"diagnosis": MARITAL, "status": MARITAL})
    diagnosis, status = schema.attributes
    assert schema.class_attribute == "diagnosis"
    assert isinstance(diagnosis, Nominal)
    assert isinstance(status, Nominal)
    assert diagnosis.taxonomy is None
    assert status.taxonomy is not None


def test_the_taxonomies_drafted_for_adult(data_folder: Path) -> None:
    schema = Schema.draft(data_folder / "adult.csv.gz")
    trees = {item.name: item.taxonomy for item in schema.attributes if isinstance(item, Nominal) and item.taxonomy}
    assert {name: [node.name for node in tree.children if node.children] for name, tree in trees.items()} == {
        "workclass": ["Self-emp"],
        "education": ["Assoc"],
        "marital_status": ["Married"],
    }
    assert Schema.from_toml(schema.to_toml()) == schema
