"""Releases over gaps, uneven grids and values finer than codes: cuts, groups, rows, sheets, bars, and what is compared."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gappy_tables import GAPS, gappy_schema, gappy_table
from support.opening import HUGE, fitted, opened
from support.releases import true_groups, undated, with_tree

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError, SchemaError
from dpmine.baselines import C45, ID3, GreedyTree
from dpmine.baselines.tds import TDS
from dpmine.cli.release_files import write_table
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Ordered
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.registry import values_of
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.models.cuts import NumericCut, evenly_cut, finest_cut, interval_name, predictors, root_cut, value_name
from dpmine.models.trees import encode_rows, labels_of, lookup
from dpmine.release.bars import MOST_BARS, axes_of, counts_by_code, released_bars
from dpmine.release.contingency import ContingencyTable
from dpmine.release.generaliser import Generaliser
from dpmine.release.learning import self_test
from dpmine.release.owner_view import owner_view
from dpmine.release.paid_check import buy_check
from dpmine.report.release_page import owner_page, release_page

TABLE = gappy_table(500, 4)
every_gap = pytest.mark.parametrize("gap", GAPS)


def few_columns(gap: str) -> Schema:
    """Without the widest grids, so that every combination can be counted."""
    schema = gappy_schema(gap)
    kept = tuple(a for a in schema.attributes if a.name in ("kind", "flag", "dose", "class"))
    return Schema("few", kept, 1000, "class")


def releases(gap: str) -> list[tuple[Any, Schema]]:
    return [(model, gappy_schema(gap)) for model in with_tree(HUGE) if not isinstance(model, ContingencyTable)] + [
        (ContingencyTable(HUGE, bins=3), few_columns(gap))
    ]


# -- cuts --------------------------------------------------------------------------------------------------------------


def test_gaps_of_their_own_are_a_leaf_below_the_root_and_the_last_interval() -> None:
    schema = gappy_schema(OWN)
    colour: Any = root_cut(schema.single("colour"))  # type: ignore[arg-type]
    assert [value.name for value in colour.specialised(0).values()] == ["warm", "cold", MISSING]
    assert [value.codes for value in colour.specialised(0).values()] == [(0, 2), (1, 3), (4,)]
    assert [value.name for value in root_cut(schema.single("constant")).specialised(0).values()] == ["only", MISSING]  # type: ignore[arg-type]
    dose: Any = schema.single("dose")
    root = NumericCut(dose, (0,), (None,))
    assert [value.name for value in root.values()] == ["-1 to 5 or (missing)"]
    cut = root.split_at(0, 2)
    assert [value.name for value in cut.values()] == ["-1 to <1", "1 to 5 or (missing)"]
    assert (cut.divisible(), cut.span(1)) == ([0, 1], ("1", MISSING))
    cut = cut.split_at(1, 4)
    assert [value.name for value in cut.values()] == ["-1 to <1", "1 to 5", MISSING]
    assert [value.codes for value in cut.values()] == [(0, 1), (2, 3), (4,)]
    assert cut.divisible() == [0, 1]
    assert [value.name for value in evenly_cut(dose, 2).values()] == ["-1 to <1", "1 to 5", MISSING]


def test_dropped_gaps_share_the_last_value_and_are_never_cut_off() -> None:
    schema = gappy_schema(DROP)
    colour: Any = root_cut(schema.single("colour"))  # type: ignore[arg-type]
    assert [value.name for value in colour.specialised(0).values()] == ["warm", "cold"]
    assert [value.codes for value in colour.specialised(0).values()] == [(0, 2), (1, 3, 4)]
    assert [value.codes for value in finest_cut(schema.single("colour")).values()] == [(0,), (2,), (1,), (3, 4)]  # type: ignore[arg-type]
    assert not root_cut(schema.single("constant")).candidates()  # type: ignore[arg-type]
    dose: Any = schema.single("dose")
    cut = NumericCut(dose, (0,), (None,)).split_at(0, 3)
    assert [(value.name, value.codes) for value in cut.values()] == [("-1 to <3.5", (0, 1, 2)), ("3.5 to 5", (3, 4))]
    assert cut.divisible() == [0]
    assert NumericCut(dose, (0,), (None,)).span(0) == ("-1", "3.5")


@every_gap
def test_keys_of_cuts_say_what_their_values_say(gap: str) -> None:
    schema, draw = gappy_schema(gap), np.random.default_rng(0)
    for attribute in predictors(schema):
        cut: Any = root_cut(attribute)
        codes = {attribute.name: np.arange(attribute.size)}
        for _ in range(6):
            values = cut.values()
            assert sorted(code for value in values for code in value.codes) == list(range(attribute.size))
            if (key := cut.key()) is not None:
                places = labels_of(key, codes, schema).tolist()
                assert [places[code] for value in values for code in value.codes] == [
                    place for place, value in enumerate(values) for _ in value.codes
                ]
            if isinstance(cut, NumericCut):
                if not cut.divisible():
                    break
                place = int(draw.choice(cut.divisible()))
                inside = [code for code in values[place].codes[1:] if code <= attribute.last_cut]  # type: ignore[union-attr]
                cut = cut.split_at(place, int(draw.choice(inside)))
            elif not cut.candidates():
                break
            else:
                cut = cut.specialised(cut.candidates()[0])


def test_intervals_are_named_by_their_points() -> None:
    income: Any = gappy_schema(OWN).single("income")
    last = income.cells - 1
    assert interval_name(income, 0, 1) == "0 to <1"
    assert interval_name(income, last, last + 1) == "60000 to 70000"
    assert interval_name(income, last, last + 2) == "60000 to 70000 or (missing)"
    assert interval_name(income, last + 1, last + 2) == MISSING
    assert value_name(income, (last + 1,)) == MISSING
    kind = gappy_schema(OWN).single("kind")
    assert value_name(kind, (0, 1, 2)) == "not (missing)"
    assert value_name(kind, (3,)) == MISSING
    assert value_name(gappy_schema(DROP).single("kind"), (1, 2, 3)) == "not a"


def test_no_name_of_a_taxonomy_is_that_of_gaps() -> None:
    tree = TaxonomyNode.parse("any", {MISSING: ["a", "b"], "c": []})
    with pytest.raises(SchemaError, match="label of gaps"):
        Nominal("x", ("a", "b", "c"), None, tree)


# -- releases ----------------------------------------------------------------------------------------------------------


@every_gap
def test_no_row_with_a_class_is_lost_and_none_without_one_counted(gap: str) -> None:
    """At a huge epsilon the counts are true: of DiffGen and of the contingency table group by group."""
    kept = [place for place, label in enumerate(TABLE["class"]) if label is not None]
    labelled = {name: [column[place] for place in kept] for name, column in TABLE.items()}
    for model, schema in releases(gap):
        released = fitted(model, TABLE, schema).release()
        assert len(released) == len(kept)
        if not isinstance(model, dm.TreeRelease):
            shown = {group: list(counts.values()) for group, counts in released.to_dict().items()}
            assert shown == true_groups(model, labelled, schema)


@every_gap
def test_raw_rows_are_values_of_their_groups_and_gaps_are_empty(gap: str, tmp_path: Path) -> None:
    for model, schema in releases(gap):
        fitted(model, TABLE, schema)
        rows = model.rows(raw=True, seed=1)
        released = model.release()
        codes, classes = released.raw_codes(1)
        again, count = encode_rows(rows, schema, list(rows))
        assert count == len(released)
        assert again[released.target].tolist() == classes.tolist()
        for name in codes:
            assert again[name].tolist() == codes[name].tolist()  # what stands for a code has that code
            missing = schema.single(name).missing_code
            assert (missing in codes[name].tolist()) <= (gap == OWN)
            assert [value is None for value in rows[name]] == (codes[name] == missing).tolist()
        for ending in ("csv", "parquet"):
            write_table(tmp_path / f"rows.{ending}", rows)
            read, _ = encode_rows(str(tmp_path / f"rows.{ending}"), schema, list(rows))
            assert all(np.array_equal(read[name], again[name]) for name in rows)
        with (tmp_path / "rows.csv").open(newline="") as file:
            written = list(csv.DictReader(file))
        assert all((row[name] == "") == (rows[name][place] is None) for place, row in enumerate(written) for name in rows)


def test_gaps_that_are_their_own_are_drawn_as_often_as_counted() -> None:
    schema = gappy_schema(OWN)
    model = fitted(dm.TreeRelease(HUGE, max_depth=2), TABLE, schema)
    rows, kept = model.rows(raw=True, seed=2), [label is not None for label in TABLE["class"]]
    for name in ("size", "income", "dose", "colour", "kind"):
        true = np.mean([value in (None, "no such") for value, has in zip(TABLE[name], kept, strict=True) if has])
        assert abs(np.mean([value is None for value in rows[name]]) - true) < 0.08


@every_gap
def test_other_rows_are_generalised_alike_by_the_model_by_its_sheet_and_by_the_next_reader(gap: str) -> None:
    test = gappy_table(200, 5)
    for model, schema in releases(gap):
        fitted(model, TABLE, schema)
        sheet = json.loads(json.dumps(model.sheet()))
        assert undated(json.loads(json.dumps(model.sheet(raw=True))))["rows"] == "drawn back into the raw domains"
        mine = model.transform(test)
        generalised = model.release().generalised_schema()
        codes, _ = encode_rows({**mine, "class": test["class"]}, generalised, [*mine, "class"])
        expected = model.transform_codes(*encode_rows(test, schema, list(mine)))
        assert all(codes[name].tolist() == expected[name].tolist() for name in mine)
        assert max(map(max, (column.tolist() for column in codes.values()))) <= max(a.size for a in generalised.singles)
        if isinstance(model, dm.TreeRelease):
            continue
        theirs = Generaliser.load(sheet).transform(test)
        assert {name: column for name, column in theirs.items() if name in mine} == mine
        assert theirs["class"] == test["class"]


def test_a_sheet_says_what_becomes_of_gaps_and_of_coarse_numbers() -> None:
    def meaning(gap: str, raw: bool) -> str:
        return " ".join(fitted(dm.DiffGen(HUGE, 3), TABLE, gappy_schema(gap)).sheet(raw=raw)["meaning"])

    coarse = "A number of size, income, dose stands for all values in its cell of the grid, and is the middle of them."
    assert coarse in meaning(OWN, True)
    assert coarse not in meaning(OWN, False)
    own = "An empty colour, kind, constant, size, income, dose says that the record has no value there."
    assert own in meaning(OWN, True)
    assert "Records without a value of colour, kind, constant, size, income, dose are under the values" in meaning(
        OWN, False
    )
    assert "and were given one of these values: nothing tells them apart." in meaning(DROP, True)
    assert "under 'attributes': nothing tells them apart." in meaning(DROP, False)
    assert "Records without a value of class are not in the table." in meaning(DROP, True)
    attributes = fitted(ContingencyTable(HUGE, bins=2), TABLE, few_columns(DROP)).sheet()["attributes"]
    assert attributes["dose"]["values"] == [
        {"name": "-1 to <1", "from": -1.0, "to": 0.99},
        {"name": "1 to 5", "from": 1.0, "to": 5.0, "missing": True},
    ]
    assert attributes["kind"]["values"][-1] == {"name": "c", "categories": ["c"], "missing": True}
    attributes = fitted(ContingencyTable(HUGE, bins=2), TABLE, few_columns(OWN)).sheet()["attributes"]
    assert attributes["dose"]["values"][-1] == {"name": MISSING, "missing": True}
    assert attributes["kind"]["values"][-1] == {"name": MISSING, "categories": [], "missing": True}


def test_a_sheet_whose_values_are_off_the_grid_or_leave_gaps_out_is_refused() -> None:
    sheet = fitted(ContingencyTable(HUGE, bins=2), TABLE, few_columns(OWN)).sheet()
    values = sheet["attributes"]["dose"]["values"]
    for broken in (
        [{**values[0], "to": 0.985}, *values[1:]],
        [{**values[0], "from": -1.5}, *values[1:]],
        [values[0], {**values[1], "to": 5.01}, values[2]],
        [{**values[0], "from": 0.5, "to": -1}, *values[1:]],
    ):
        with pytest.raises(RequestError, match="not on its grid"):
            Generaliser.load({**sheet, "attributes": {**sheet["attributes"], "dose": {"values": broken}}})
    for broken in (values[:-1], [values[0], {**values[1], "missing": True}, values[2]]):
        with pytest.raises(RequestError, match="overlap or leave some out"):
            Generaliser.load({**sheet, "attributes": {**sheet["attributes"], "dose": {"values": broken}}})


# -- what stands for a code --------------------------------------------------------------------------------------------


def test_a_number_stands_for_the_middle_of_its_cell() -> None:
    even = Numeric("x", Decimal(0), Decimal(9), Decimal(5), Decimal(0))
    assert values_of(even).tolist() == [2, 7]
    assert values_of(Numeric("x", Decimal(0), Decimal(9), Decimal(4))).tolist() == [1.5, 5.5, 8.5, None]
    assert values_of(Numeric("x", Decimal(0), Decimal(3), Decimal(1), "drop")).tolist() == [0, 1, 2, 3, None]
    plain = values_of(Numeric("x", Decimal(0), Decimal(3), Decimal(1), Decimal(0)))
    assert (plain.dtype, plain.tolist()) == (np.dtype(np.int64), [0, 1, 2, 3])
    assert values_of(Nominal("x", ("a", "b"))).tolist() == ["a", "b", None]
    for attribute in predictors(gappy_schema(OWN)):
        codes, _ = encode_rows({attribute.name: values_of(attribute).tolist()}, gappy_schema(OWN), [attribute.name])
        assert codes[attribute.name].tolist() == list(range(attribute.size))


# -- bars --------------------------------------------------------------------------------------------------------------


@every_gap
def test_bars_are_those_of_their_keys_and_show_no_dropped_gap(gap: str) -> None:
    many = Nominal("many", tuple(f"c{place}" for place in range(40)), missing=gap)
    even = Numeric("even", Decimal(3), Decimal(119), Decimal(2), gap)
    schema = gappy_schema(gap)
    schema = Schema("bars", (*schema.attributes[:-1], many, even, schema.target), 1000, "class")
    table = TABLE | {"many": [f"c{place % 50}" for place in range(500)], "even": [None, *range(499)]}
    model = fitted(dm.TreeRelease(HUGE, max_depth=3), table, schema)
    for axis in axes_of(model.release()):
        shown = len(axis.labels)
        assert len(set(axis.labels)) == shown <= MOST_BARS + 3
        hidden = axis.attribute.hidden_code
        assert (MISSING in axis.labels) == (axis.attribute.gap == OWN) or axis.name == "many"
        assert axis.key.hidden(schema) == (None if hidden is None else shown)
        assert lookup(axis.key, schema).labels.tolist() == axis.bars.tolist()
        assert sum(axis.add_up(counts_by_code(model.release(), axis.name))) == pytest.approx(len(model.release()))
        if isinstance(axis.attribute, Ordered):
            assert np.all(np.diff(axis.bars) >= 0)


@every_gap
def test_pages_and_checks_show_gaps_as_the_release_has_them(gap: str) -> None:
    schema = gappy_schema(gap)
    with opened(TABLE, schema, HUGE) as private:
        model = dm.DiffGen(HUGE // 2, 4, frequency_share=0.2).fit(private)
        released = model.release()
        check = buy_check(private, released, epsilon=Epsilon.parse(HUGE // 2), seed=0)
        view = owner_view(TABLE, released, 0)
    assert {name: bars.counts for name, bars in check.bars.items()} == view.bars
    assert sum(view.bars["class"]) == sum(label is not None for label in TABLE["class"])
    sheet, bars, tested = model.sheet(), released_bars(released), self_test(released, 0)
    for page in (release_page(sheet, bars, tested, check), owner_page(sheet, bars, view)):
        assert (MISSING in page) == (gap == OWN)


# -- the references without privacy ------------------------------------------------------------------------------------


@every_gap
def test_reference_trees_know_gaps_as_private_ones_do(gap: str) -> None:
    schema = gappy_schema(gap)
    names = [a.name for a in schema.attributes]
    rows, _ = encode_rows(TABLE, schema, names)
    taught = rows["class"] < 2
    for learner in (GreedyTree(4), C45(4, min_rows=5), C45(3, score="gini", pruning=False)):
        tree = learner.fit(TABLE, schema=schema)
        root = tree.trees_.trees[0]
        assert sum(root.rows) == np.count_nonzero(taught)
        for node in root.nodes():
            assert node.split is None or list(node.rows) == np.sum([child.rows for child in node.children], axis=0).tolist()
        counts: dict[int, Any] = {}
        labels = tree.predict_codes({name: column[taught] for name, column in rows.items()}, int(taught.sum()))
        for label, truth in zip(labels.tolist(), rows["class"][taught].tolist(), strict=True):
            counts.setdefault(label, [0, 0])[truth] += 1
        leaves = {label: [0, 0] for label in counts}
        for leaf in root.leaves():
            if sum(leaf.rows):
                leaves[leaf.label] = [sum(pair) for pair in zip(leaves[leaf.label], leaf.rows, strict=True)]
        assert leaves == counts  # every row comes to the leaf that counted it
        if gap == OWN:
            assert root.split is not None
            assert root.split.attribute == "size"
            assert MISSING in root.split.labels(schema)


@every_gap
def test_id3_has_a_branch_for_gaps_of_their_own_alone(gap: str) -> None:
    schema = gappy_schema(gap)
    nominal = Schema("nominal", (*schema.of_kind(Nominal),), 1000, "class")
    tree = ID3(2, split_without_gain=True).fit(TABLE, schema=nominal).trees_.trees[0]
    sizes = {"colour": 4, "kind": 3, "flag": 2, "constant": 1}
    for node in tree.nodes():
        if node.split is not None:
            name = node.split.title
            assert len(node.children) == sizes[name] + (gap == OWN and name != "flag")
            assert list(node.rows) == np.sum([child.rows for child in node.children], axis=0).tolist()


@every_gap
def test_top_down_specialisation_counts_every_row_with_a_class_once(gap: str) -> None:
    schema = gappy_schema(gap)
    cuts = TDS(k=10).fit(TABLE, schema=schema)
    rows, _ = encode_rows(TABLE, schema, [a.name for a in schema.attributes])
    taught = rows["class"] < 2
    generalised = cuts.transform_codes({name: column[taught] for name, column in rows.items()})
    texts = cuts.cut_texts()
    found: dict[tuple[str, ...], list[int]] = {}
    for place, truth in enumerate(rows["class"][taught].tolist()):
        group = tuple(texts[name][int(generalised[name][place])] for name in texts)
        found.setdefault(group, [0, 0])[truth] += 1
    assert {group.labels: list(group.counts) for group in cuts.groups_} == found
    assert min(map(sum, found.values())) >= 10
    assert any(MISSING in text for names in texts.values() for text in names) == (gap == OWN)
