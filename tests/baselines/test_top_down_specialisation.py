"""Top-down specialisation: the running example of the DiffGen paper, a slow second way to everything, and k-anonymity."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmine.base.errors import RequestError
from dpmine.baselines import TDS
from dpmine.baselines.greedy import Layout
from dpmine.baselines.tds import SPECIALISATION_SCORES, LinkTree, Partition, information_gain
from dpmine.datasets import adult, adult_schema
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.language.keys import LAST, Bins, Group, Groups
from dpmine.models.trees import lookup

# -- the running example -----------------------------------------------------------------------------------------------

JOBS = TaxonomyNode.parse("Any_Job", {"Professional": ["Engineer", "Lawyer"], "Artist": ["Dancer", "Writer"]})
PAPER_SCHEMA = Schema(
    "paper",
    (
        Nominal("Job", JOBS.leaves(), "Engineer", JOBS, missing="Engineer"),
        Numeric("Age", Decimal(18), Decimal(64), Decimal(1), Decimal(18)),
        Nominal("Class", ("Y", "N"), "Y", missing="Y"),
    ),
    100,
    "Class",
)
TABLE_1A: dict[str, list[Any]] = {
    "Job": ["Engineer", "Lawyer", "Engineer", "Lawyer", "Dancer", "Writer", "Writer", "Dancer"],
    "Age": [34, 50, 38, 33, 20, 37, 32, 25],
    "Class": ["Y", "N", "N", "Y", "Y", "N", "Y", "N"],
}
TABLE_1A_CODES = {
    "Job": np.array([JOBS.leaves().index(job) for job in TABLE_1A["Job"]], dtype=np.uint8),
    "Age": np.array(TABLE_1A["Age"], dtype=np.uint8) - 18,
    "Class": np.array([label == "N" for label in TABLE_1A["Class"]], dtype=np.uint8),
}


@pytest.mark.parametrize("score", SPECIALISATION_SCORES)
def test_four_anonymity_gives_table_1b_of_the_paper(score: str) -> None:
    """The best cut of Age, at 35, leaves 3 rows on the right. The job gains nothing, but it is valid."""
    fitted = TDS(k=4, score=score).fit(TABLE_1A, schema=PAPER_SCHEMA)
    assert {name: cut.key() for name, cut in fitted.cuts_.items()} == {
        "Job": Groups("Job", (Group("Professional", ("Engineer", "Lawyer")),), rest="Artist", missing=LAST),
        "Age": None,
    }
    assert fitted.cut_texts() == {"Job": ("Professional", "Artist"), "Age": ("18 to 64",)}
    assert [(group.labels, group.counts) for group in fitted.groups_] == [
        (("Professional", "18 to 64"), (2, 2)),
        (("Artist", "18 to 64"), (2, 2)),
    ]
    assert fitted.transform_codes(TABLE_1A_CODES)["Job"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert fitted.transform_codes(TABLE_1A_CODES)["Age"].tolist() == [0] * 8


@pytest.mark.parametrize(
    ("score", "number"),
    [("infogain/loss", 0.5488 / 5), ("infogain/(loss+1)", 0.5488 / 6), ("infogain", 0.5488), ("max", 7)],
)
def test_the_first_step_has_the_score_computed_by_hand(score: str, number: float) -> None:
    """Age below 35 has 4 Y and 1 N, the rest 3 N: 1 - 5/8 H(1/5) = .5488 bits, and the smallest group falls from 8 to 3."""
    fitted = TDS(k=3, score=score, specialisations=1).fit(TABLE_1A, schema=PAPER_SCHEMA)
    (step,) = fitted.steps_
    assert (step.attribute, step.place, step.loss) == ("Age", 0, 5)
    assert step.score == pytest.approx(number, abs=5e-5)
    assert {name: cut.key() for name, cut in fitted.cuts_.items()} == {"Job": None, "Age": Bins("Age", ("35",), LAST)}
    assert fitted.cut_texts() == {"Job": ("Any_Job",), "Age": ("18 to <35", "35 to 64")}


def test_the_links_go_through_the_steps_of_figure_2() -> None:
    """Job first, then Age at 40. Figure 2 also draws the artists from 40 on, who have no rows: they are left out here."""

    def counts(partitions: Any) -> list[tuple[int, ...]]:
        return [tuple(partition.counts.tolist()) for partition in partitions]

    def at_40(measure: Any, points: Any) -> int:
        return min(40 - 18, len(points) - 1)

    tree = LinkTree(
        Layout.of(PAPER_SCHEMA), TABLE_1A_CODES, TABLE_1A_CODES["Class"].astype(np.intp), information_gain, at_40
    )
    (any_job,), (any_age,) = tree.cuts
    assert counts(any_job.link) == counts(any_age.link) == [(4, 4)]
    assert (tree.smallest, any_job.smallest, any_age.smallest) == (8, 4, 1)

    professional, artist = tree.specialise(any_job)
    assert counts(tree.root.children) == [(2, 2), (2, 2)]
    assert counts(professional.link) == counts(artist.link) == [(2, 2)]
    assert list(any_age.link) == tree.root.children
    assert (tree.smallest, professional.smallest, artist.smallest, any_age.smallest) == (4, 2, 2, 1)

    young, old = tree.specialise(any_age)
    assert [counts(partition.children) for partition in tree.root.children] == [[(2, 1), (0, 1)], [(2, 2)]]
    assert counts(professional.link) == [(2, 1), (0, 1)]
    assert counts(artist.link) == [(2, 2)]
    assert counts(young.link) == [(2, 1), (2, 2)]
    assert counts(old.link) == [(0, 1)]
    assert not any_job.link
    assert not any_age.link

    def rows(leaf: Partition) -> tuple[Any, ...]:
        job = leaf.values[0].node
        return job and job.name, leaf.values[1] is young, sorted(leaf.rows.tolist())

    table_1d = [("Artist", True, [4, 5, 6, 7]), ("Professional", False, [1]), ("Professional", True, [0, 2, 3])]
    assert sorted(map(rows, tree.leaves())) == table_1d


# -- an independent, slow way ------------------------------------------------------------------------------------------

EXACT = Decimal("1e-20")  # decimals have 28 digits here: what differs by less is equal

Row = dict[str, int]
Value = tuple[str, Any]  # ("node", TaxonomyNode) or ("points", (first, end))


@cache
def exact_logarithm(number: int) -> Decimal:
    return Decimal(number).ln() / Decimal(2).ln()


def exact_bits(counts: list[int]) -> Decimal:
    """The rows times their entropy."""
    total = sum(counts)
    return sum((count * (exact_logarithm(total) - exact_logarithm(count)) for count in counts if count), Decimal(0))


@dataclass
class SlowTDS:
    """Every round looks at every row, for every candidate and every cut."""

    rows: list[Row]
    schema: Schema
    k: int
    score: str
    specialisations: int | None

    def __post_init__(self) -> None:
        self.attributes = [attribute for attribute in self.schema.attributes if attribute.name != "class"]
        self.cuts: list[list[Value]] = []
        for attribute in self.attributes:
            if isinstance(attribute, Numeric):
                self.cuts.append([("points", (0, attribute.size))])
            else:
                assert isinstance(attribute, Nominal)
                leaves = tuple(TaxonomyNode(category) for category in attribute.categories)
                self.cuts.append([("node", attribute.taxonomy or TaxonomyNode(f"any {attribute.name}", leaves))])
        self.steps: list[tuple[str, int, float, int]] = []
        while self.specialisations is None or len(self.steps) < self.specialisations:
            candidates = list(
                filter(None, (self.candidate(a, p) for a, cut in enumerate(self.cuts) for p in range(len(cut))))
            )
            if not candidates:
                break
            best = max(candidate[0] for candidate in candidates)
            score, loss, number, place, after = next(c for c in candidates if c[0] > best - EXACT)
            self.steps.append((self.attributes[number].name, place, float(score), loss))
            self.cuts[number] = after

    def codes_under(self, number: int, value: Value) -> set[int]:
        kind, what = value
        attribute = self.attributes[number]
        if kind == "points":
            return set(range(*what))
        assert isinstance(attribute, Nominal)
        return {attribute.categories.index(leaf) for leaf in what.leaves()}

    def groups(self, cuts: list[list[Value]]) -> Counter[tuple[int, ...]]:
        """By the places of the values in the cuts, and last the class."""
        tables = [[self.codes_under(number, value) for value in cut] for number, cut in enumerate(cuts)]
        found: Counter[tuple[int, ...]] = Counter()
        for row in self.rows:
            codes = [row[attribute.name] for attribute in self.attributes]
            labels = [[code in under for under in table].index(True) for code, table in zip(codes, tables, strict=True)]
            found[*labels, row["class"]] += 1
        return found

    def smallest(self, cuts: list[list[Value]]) -> int:
        sizes: Counter[tuple[int, ...]] = Counter()
        for labels, count in self.groups(cuts).items():
            sizes[labels[:-1]] += count
        return min(sizes.values())

    def measured(self, number: int, children: list[Value]) -> Decimal:
        name = self.attributes[number].name
        parts: list[list[int]] = []
        for child in children:
            under = self.codes_under(number, child)
            classes = Counter(row["class"] for row in self.rows if row[name] in under)
            parts.append([classes[label] for label in range(len(self.schema.class_labels))])
        if self.score == "max":
            return Decimal(sum(map(max, parts)))
        whole: list[int] = [sum(column) for column in zip(*parts, strict=True)]
        gain: Decimal = exact_bits(whole) - sum(map(exact_bits, parts), Decimal(0))
        return gain / max(sum(whole), 1)

    def children(self, number: int, value: Value) -> list[Value]:
        kind, what = value
        if kind == "node":
            while len(what.children) == 1:  # a step that separates nothing
                (what,) = what.children
            return [("node", child) for child in what.children]
        first, end = what
        halves: list[list[Value]] = [[("points", (first, cut)), ("points", (cut, end))] for cut in range(first + 1, end)]
        if not halves:
            return []
        measured = [self.measured(number, both) for both in halves]
        return halves[next(i for i, found in enumerate(measured) if found > max(measured) - EXACT)]

    def candidate(self, number: int, place: int) -> tuple[Decimal, int, int, int, list[Value]] | None:
        cut = self.cuts[number]
        children = self.children(number, cut[place])
        under = self.codes_under(number, cut[place])
        occurring = {row[self.attributes[number].name] for row in self.rows} & under
        if not children or (self.specialisations is None and len(occurring) < 2):
            return None
        after = [*cut[:place], *children, *cut[place + 1 :]]
        rows_after = self.smallest([*self.cuts[:number], after, *self.cuts[number + 1 :]])
        if rows_after < self.k:
            return None
        loss = self.smallest(self.cuts) - rows_after
        score = self.measured(number, children)
        if self.score == "infogain/loss" and loss:
            score /= loss
        if self.score == "infogain/(loss+1)":
            score /= loss + 1
        return score, loss, number, place, after


def mixed_schema() -> Schema:
    """Taxonomies that are uneven, that have a node with one child, and that are not in the order of the categories."""
    colours = TaxonomyNode.parse(
        "any colour", {"warm": {"reddish": {"red": {}}, "yellow": {}}, "cold": {"blue": {}, "green": {}}}
    )
    kinds = TaxonomyNode.parse("any kind", {"f": {}, "pair": {"a": {}, "rest": {"c": {}, "d": {}, "b": {}}}, "e": {}})
    attributes = (
        Nominal("colour", ("red", "blue", "yellow", "green"), "red", colours, missing="red"),
        Numeric("size", Decimal(0), Decimal(4), Decimal("0.5"), Decimal(0)),
        Nominal("kind", ("a", "b", "c", "d", "e", "f"), "a", kinds, missing="a"),
        Nominal("flag", ("no", "yes", "unknown"), "no", missing="no"),
        Numeric("age", Decimal(5), Decimal(9), Decimal(1), Decimal(5)),
        Nominal("class", ("c0", "c1", "c2"), "c0", missing="c0"),
    )
    return Schema("mixed", attributes, 1000, "class")


def small(*attributes: Any) -> Schema:
    return Schema("small", (*attributes, Nominal("class", ("a", "b"), "a", missing="a")), 1000, "class")


def random_codes(schema: Schema, count: int, seed: int) -> dict[str, Any]:
    """Codes that crowd at the low ends, so that some values have few rows and some none; the class leans on two columns."""
    draw = np.random.default_rng(seed)
    codes: dict[str, Any] = {}
    for attribute in schema.attributes:
        assert isinstance(attribute, (Nominal, Numeric))
        codes[attribute.name] = (attribute.size * draw.random(count) ** 2.5).astype(np.uint8)
    leaning = (codes["colour"] % 2 + codes["size"] // 2) % 3
    codes["class"] = np.where(draw.random(count) < 0.6, leaning, codes["class"]).astype(np.uint8)
    return codes


def as_rows(codes: dict[str, Any]) -> list[Row]:
    return [dict(zip(codes, map(int, row), strict=True)) for row in zip(*codes.values(), strict=True)]


@pytest.mark.parametrize("score", SPECIALISATION_SCORES)
@pytest.mark.parametrize(("k", "specialisations"), [(1, 9), (2, None), (3, 5), (4, None), (6, None)])
@pytest.mark.parametrize("seed", range(4))
def test_links_and_running_counts_give_what_a_look_at_all_rows_gives(
    score: str, k: int, specialisations: int | None, seed: int
) -> None:
    schema = mixed_schema()
    codes = random_codes(schema, 30 + 50 * seed, 100 * seed + k)
    fast = TDS(k, score, specialisations).fit_codes(codes, codes["class"], schema)
    slow = SlowTDS(as_rows(codes), schema, k, score, specialisations)
    assert [(step.attribute, step.place, step.loss) for step in fast.steps_] == [(s[0], s[1], s[3]) for s in slow.steps]
    assert [step.score for step in fast.steps_] == pytest.approx([step[2] for step in slow.steps], abs=1e-11)
    texts = fast.cut_texts()
    for number, (attribute, cut) in enumerate(zip(slow.attributes, slow.cuts, strict=True)):
        key = fast.cuts_[attribute.name].key()
        assert len(texts[attribute.name]) == len(cut)
        for place, value in enumerate(cut):
            under = sorted(slow.codes_under(number, value))
            assert key is None or np.flatnonzero(lookup(key, schema).labels == place).tolist() == under
            assert value[0] == "points" or texts[attribute.name][place] == value[1].name
    expected: dict[tuple[str, ...], list[int]] = {}
    for labels, count in sorted(slow.groups(slow.cuts).items()):
        named = tuple(texts[a.name][label] for a, label in zip(slow.attributes, labels[:-1], strict=True))
        expected.setdefault(named, [0, 0, 0])[labels[-1]] = count
    assert [(group.labels, list(group.counts)) for group in fast.groups_] == list(expected.items())


# -- what every result keeps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", SPECIALISATION_SCORES)
@pytest.mark.parametrize("k", range(2, 7))
def test_every_group_has_k_rows(score: str, k: int) -> None:
    schema = mixed_schema()
    for seed in range(8):
        codes = random_codes(schema, 150, seed)
        fitted = TDS(k, score).fit_codes(codes, codes["class"], schema)
        sizes = Counter(zip(*(column.tolist() for column in fitted.transform_codes(codes).values()), strict=True))
        assert len(sizes) > 1
        assert min(sizes.values()) >= k
        assert sorted(sizes.values()) == sorted(sum(group.counts) for group in fitted.groups_)
        assert np.sum([group.counts for group in fitted.groups_], axis=0).tolist() == np.bincount(codes["class"]).tolist()


@pytest.mark.parametrize("score", SPECIALISATION_SCORES)
@pytest.mark.parametrize("seed", range(5))
def test_values_left_whole_would_have_separated_no_rows(score: str, seed: int) -> None:
    schema = mixed_schema()
    codes = random_codes(schema, 60, seed)
    codes["size"] = codes["size"] // 3 * 3  # gaps, where intervals could be cut for nothing
    saved = 0
    for k in (1, 2, 3):
        whole, down = (TDS(k, score, number).fit_codes(codes, codes["class"], schema) for number in (None, 10_000))
        saved += len(down.steps_) - len(whole.steps_)
        assert [group.counts for group in whole.groups_] == [group.counts for group in down.groups_]
    assert saved > 0


def test_of_equal_values_the_first_is_taken_whatever_the_last_bits_say() -> None:
    """The same column under two names with its codes turned round: equal on paper, but summed in another order."""
    letters = ("p", "q", "r", "s", "t", "u")
    schema = small(Nominal("one", letters, "p", missing="p"), Nominal("two", letters, "p", missing="p"))
    misled = 0
    for seed in range(30):
        draw = np.random.default_rng(seed)
        one, classes = (draw.integers(0, most, 200).astype(np.uint8) for most in (6, 2))
        counts = np.bincount(one * 2 + classes, minlength=12).reshape(6, 2)
        misled += bool(information_gain(counts) < information_gain(counts[::-1]))
        fitted = TDS(1, "infogain", 1).fit_codes({"one": one, "two": (5 - one).astype(np.uint8)}, classes, schema)
        assert fitted.steps_[0].attribute == "one"
    assert misled > 0


def test_the_smallest_group_falls_by_the_losses() -> None:
    schema = mixed_schema()
    codes = random_codes(schema, 200, 1)
    fitted = TDS(2).fit_codes(codes, codes["class"], schema)
    assert 200 - sum(step.loss for step in fitted.steps_) == min(sum(group.counts) for group in fitted.groups_)


def test_without_k_everything_is_specialised() -> None:
    schema = mixed_schema()
    codes = random_codes(schema, 50, 3)
    fitted = TDS(1, specialisations=10_000).fit_codes(codes, codes["class"], schema)
    sizes = {name: len(texts) for name, texts in fitted.cut_texts().items()}
    assert sizes == {"colour": 4, "size": 9, "kind": 6, "flag": 3, "age": 5}


def test_files_and_tables_give_the_same_cuts(tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame(TABLE_1A).to_csv(tmp_path / "paper.csv", index=False)
    (tmp_path / "paper.toml").write_text(PAPER_SCHEMA.to_toml())
    by_file = TDS(2).fit(tmp_path / "paper.csv", schema=str(tmp_path / "paper.toml"))
    by_codes = TDS(2).fit_codes(TABLE_1A_CODES, TABLE_1A_CODES["Class"], PAPER_SCHEMA)
    assert by_file.cuts_ == by_codes.cuts_
    assert by_file.groups_ == by_codes.groups_


# -- the edges ---------------------------------------------------------------------------------------------------------


def test_a_name_that_stands_twice_in_a_cut_is_told_apart() -> None:
    tree = TaxonomyNode.parse("all", {"left": {"rest": ["x", "y"], "l": ["p"]}, "right": {"rest": ["u", "v"], "r": ["q"]}})
    schema = small(Nominal("letter", tuple("xyuvpq"), "x", tree, missing="x"))
    codes = np.array([0, 1, 2, 3, 4, 4, 5, 5] * 2, dtype=np.uint8)
    fitted = TDS(4).fit_codes({"letter": codes}, (codes > 1).astype(np.uint8), schema)
    assert fitted.cut_texts() == {"letter": ("rest (x, y)", "l", "rest (u, v)", "r")}
    assert [group.counts for group in fitted.groups_] == [(4, 0), (0, 4), (0, 4), (0, 4)]


def test_names_that_stay_alike_with_their_categories_are_numbered() -> None:
    tree = TaxonomyNode.parse(
        "all", {"left": {"a (x, y)": ["u", "v"], "a": ["x", "y"]}, "right": {"a": ["p", "q"], "b": ["r", "s"]}}
    )
    schema = small(Nominal("letter", tuple("xyuvpqrs"), "x", tree, missing="x"))
    codes = np.array([*range(8)] * 2, dtype=np.uint8)
    fitted = TDS(4).fit_codes({"letter": codes}, (codes > 1).astype(np.uint8), schema)
    assert fitted.cut_texts() == {"letter": ("a (x, y)", "a (x, y) [2]", "a (p, q)", "b")}


def test_a_step_to_an_only_child_separates_nothing_and_is_left_out() -> None:
    """As in DiffGen: one specialisation leads from the root to x and y."""
    schema = small(Nominal("letter", ("x", "y"), "x", TaxonomyNode.parse("all", {"known": ["x", "y"]}), missing="x"))
    codes = np.array([0, 0, 0, 1], dtype=np.uint8)
    whole = TDS(2).fit_codes({"letter": codes}, codes, schema)
    assert whole.cut_texts() == {"letter": ("all",)}
    assert whole.transform_codes({"letter": codes})["letter"].tolist() == [0, 0, 0, 0]
    assert TDS(1, "max", 1).fit_codes({"letter": codes}, codes, schema).cut_texts() == {"letter": ("x", "y")}


@pytest.mark.parametrize("specialisations", [None, 3])
def test_tables_without_rows_or_attributes_have_cuts_too(specialisations: int | None) -> None:
    nobody = np.zeros(0, dtype=np.uint8)
    empty = TDS(5, specialisations=specialisations).fit_codes({"Job": nobody, "Age": nobody}, nobody, PAPER_SCHEMA)
    assert len(empty.steps_) == (specialisations or 0)
    assert empty.groups_ == []
    bare = TDS(2, specialisations=specialisations).fit_codes({}, np.array([0, 1, 1], dtype=np.uint8), small())
    assert [(group.labels, group.counts) for group in bare.groups_] == [((), (1, 2))]


def test_lists_and_single_categories_are_left_alone() -> None:
    schema = small(ItemList("history", ("p", "q"), 3), Nominal("only", ("one",), "one", missing="one"))
    codes = np.zeros(6, dtype=np.uint8)
    fitted = TDS(2, specialisations=5).fit_codes({"only": codes}, codes, schema)
    assert fitted.cuts_["only"].key() is None
    assert fitted.cut_texts() == {"only": ("one",)}


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(RequestError, match="'k' must be at least 1"):
        TDS(k=0)
    with pytest.raises(RequestError, match=r"must be one of infogain/loss, .*Got 'luck'"):
        TDS(score="luck")
    with pytest.raises(RequestError, match="'specialisations' must be at least 0"):
        TDS(specialisations=-1)
    with pytest.raises(RequestError, match="fewer than k = 9 rows"):
        TDS(9).fit(TABLE_1A, schema=PAPER_SCHEMA)
    with pytest.raises(RequestError, match="Call 'fit' first"):
        TDS().cut_texts()
    with pytest.raises(RequestError, match="Call 'fit' first"):
        TDS().transform_codes({})
    with pytest.raises(RequestError, match="no codes of 'Age'"):
        TDS().fit_codes({"Job": TABLE_1A_CODES["Job"]}, TABLE_1A_CODES["Class"], PAPER_SCHEMA)


@pytest.mark.usefixtures("data_folder")
def test_adult_becomes_five_anonymous() -> None:
    schema, table = adult_schema(taxonomies=True, complete=True), adult(complete=True)
    started = time.perf_counter()
    fitted = TDS(k=5).fit(table, schema=schema)
    print(f"TDS(k=5) on Adult: {time.perf_counter() - started:.2f} s with encoding, {len(fitted.steps_)} specialisations")
    sizes = [sum(group.counts) for group in fitted.groups_]
    assert sum(sizes) == 45_222
    assert min(sizes) >= 5
    assert fitted.cut_texts()["marital_status"] == ("Partner-present", "Partner-absent", "Never-married")
