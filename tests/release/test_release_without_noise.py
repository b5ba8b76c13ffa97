"""As epsilon grows without bound DiffGen becomes top-down specialisation without k, by the same steps, on every engine.

At epsilon 1e6 noise is 0, and a choice misses the best Max with a chance below e^-1000, and in three steps the best gain by
2e-3 bits with a chance below e^-60. Where ties matter, choices are made by the test, by the baselines' tie rule.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.choices import Drawn, choosing, first_best
from support.mined_tables import schema_of, table_of
from support.opening import HUGE, fitted
from support.releases import SCORES, every, form_of, shown_groups, true_groups, with_tree

import dpmine as dm
from dpmine.baselines import TDS
from dpmine.baselines.greedy import Layout
from dpmine.baselines.tds import LinkTree, information_gain
from dpmine.datasets import adult, adult_schema
from dpmine.engines.encoding import encode
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.door import Kernel
from dpmine.kernel.samplers.choice import exponential
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.models.trees import encode_rows
from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen

DEEP = TaxonomyNode.parse("any", {"a": {"a1": ["p", "q"], "a2": ["r", "s", "t"]}, "b": {"u": {}, "b1": ["v", "w"]}, "x": {}})


def deep_schema(classes: int) -> Schema:
    """Taxonomies of two and of three levels, none, and numeric attributes between them. No node has one child."""
    labels = tuple(f"c{number}" for number in range(classes))
    attributes = (
        Numeric("size", Decimal(0), Decimal(15), Decimal(1), Decimal(0)),
        Nominal("deep", DEEP.leaves(), "p", DEEP, missing="p"),
        *schema_of().attributes[:2],
        Nominal("class", labels, labels[0], missing=labels[0]),
        Numeric("share", Decimal(0), Decimal("0.9"), Decimal("0.1"), Decimal(0)),
    )
    return Schema("deep", attributes, 10_000, "class")


def random_codes(schema: Schema, rows: int, seed: int) -> dict[str, Any]:
    """Codes that lean on the class more or less, attribute by attribute."""
    draw = np.random.default_rng(seed)
    classes = draw.integers(0, len(schema.class_labels), rows)
    codes = {}
    for attribute in schema.attributes:
        size = attribute.size  # type: ignore[union-attr]
        leaning = draw.permutation(size)[(classes * size // len(schema.class_labels)) % size]
        spread = draw.integers(0, size, rows)
        codes[attribute.name] = np.where(draw.random(rows) < draw.uniform(0.1, 0.5), leaning, spread).astype(np.uint16)
    codes["class"] = classes.astype(np.uint16)
    return codes


def as_table(codes: dict[str, Any], schema: Schema) -> dict[str, list[Any]]:
    return {name: [schema.single(name).label(int(code)) for code in column] for name, column in codes.items()}


def reference(codes: dict[str, Any], schema: Schema, score: str, steps: int) -> TDS:
    target = schema.require_class()
    predictors = {name: column for name, column in codes.items() if name != target}
    return TDS(1, score, steps).fit_codes(predictors, codes[target], schema)


def by_place(ordinary: TDS) -> dict[tuple[int, ...], list[int]]:
    texts = list(ordinary.cut_texts().values())
    return {
        tuple(known.index(label) for known, label in zip(texts, group.labels, strict=True)): list(group.counts)
        for group in ordinary.groups_
    }


def assert_the_same(model: DiffGen, ordinary: TDS) -> None:
    assert model.release().values == {name: cut.values() for name, cut in ordinary.cuts_.items()}
    released = model.release()
    assert dict(zip(map(tuple, released.groups.tolist()), released.counts.tolist(), strict=True)) == by_place(ordinary)


# -- top-down specialisation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 5, 9, 100])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("score", ["max", "infogain"])
def test_the_best_choices_give_top_down_specialisation(score: str, classes: int, steps: int) -> None:
    schema = deep_schema(classes)
    for seed, rows in enumerate((0, 3, 40, 400)):
        codes = random_codes(schema, rows, seed)
        with choosing(first_best):
            model = fitted(dm.DiffGen(HUGE, steps, score, threshold="auto"), as_table(codes, schema), schema)
        assert_the_same(model, reference(codes, schema, score, steps))


def test_another_score_or_another_number_of_steps_is_noticed() -> None:
    """The comparison can fail: the scores disagree, and a step more is another table."""
    schema = deep_schema(2)
    codes = random_codes(schema, 400, 3)
    with choosing(first_best):
        model = fitted(dm.DiffGen(HUGE, 5, "max"), as_table(codes, schema), schema)
    for wrong in (reference(codes, schema, "infogain", 5), reference(codes, schema, "max", 6)):
        with pytest.raises(AssertionError):
            assert_the_same(model, wrong)


class Watched:
    """The mechanism itself, with a note of the best score, the second best and the chosen one."""

    def __init__(self) -> None:
        self.noted: list[tuple[float, float, float]] = []

    def __call__(self, kernel: Kernel, mechanism: str, scores: np.ndarray, masses: np.ndarray, rate: Any) -> int:
        assert mechanism == "exponential"
        chosen = exponential(Entropy(), scores, masses, rate=rate)
        second, best = np.sort(scores)[-2:].tolist() if len(scores) > 1 else (-np.inf, int(scores[0]))
        self.noted.append((best, second, int(scores[chosen])))
        return chosen


@pytest.mark.parametrize(("score", "tolerance"), [("max", 0), ("infogain", 0.002 * 2**20)])
@pytest.mark.parametrize("calibration", ["generic", "monotone"])
def test_at_a_huge_epsilon_the_mechanism_makes_the_best_choices(
    score: str, calibration: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the real door. Where no choice was nearly tied the release is that of top-down specialisation."""
    schema, compared = deep_schema(2), 0
    for seed in range(40):
        codes = random_codes(schema, 1200, seed)
        watched = Watched()
        monkeypatch.setattr(Kernel, "_choose", lambda *given, watched=watched: watched(*given))
        model = fitted(dm.DiffGen(HUGE, 3, score, calibration), as_table(codes, schema), schema)
        assert all(chosen >= best - tolerance for best, _, chosen in watched.noted)
        if all(second < best - tolerance for best, second, _ in watched.noted):
            assert_the_same(model, reference(codes, schema, score, 3))
            compared += 1
    assert compared >= 5


@pytest.fixture(scope="module")
def whole_adult(data_folder: Path) -> Any:
    schema, table = adult_schema(taxonomies=True, complete=True), adult(complete=True)
    codes, _ = encode_rows(table, schema, [attribute.name for attribute in schema.attributes])
    return encode(open_source(table), schema), codes, schema


@pytest.mark.parametrize("steps", [1, 4, 10, 16])
@pytest.mark.parametrize("score", ["max", "infogain"])
def test_adult_is_specialised_alike(whole_adult: Any, score: str, steps: int) -> None:
    encoded, codes, schema = whole_adult
    with choosing(first_best):
        model = fitted(dm.DiffGen(HUGE, steps, score, threshold="auto"), encoded, schema)
    assert_the_same(model, reference(codes, schema, score, steps))
    assert len(model.release()) == 45_222


# -- the Link structure ------------------------------------------------------------------------------------------------


def linked(codes: dict[str, Any], schema: Schema, taken: list[int], steps: int) -> LinkTree:
    """The paper's own way through the rows, with choices that were made elsewhere: split points first, then values."""
    taken = list(taken)

    def cut(measure: Any, points: Any) -> int:
        return taken.pop(0) + 1 if taken else 1  # the points of the last step are not used

    tree = LinkTree(Layout.of(schema), codes, codes["class"].astype(np.intp), information_gain, cut)
    for _ in range(steps):
        candidates = [value for values in tree.cuts for value in values if value.parts]
        if not candidates:
            break
        tree.specialise(candidates[taken.pop(0)])
    assert taken == []
    return tree


@pytest.mark.parametrize("steps", [1, 3, 8, 25])
@pytest.mark.parametrize("score", ["max", "infogain"])
def test_two_passes_give_what_the_links_give_by_the_same_choices(score: str, steps: int) -> None:
    """Whatever the noise decides: choices are drawn at random, made by DiffGen and repeated on the tree of partitions."""
    schema = deep_schema(3)
    for seed in range(12):
        codes, drawn = random_codes(schema, 80, seed), Drawn(seed)
        with choosing(drawn):
            model = fitted(dm.DiffGen(HUGE, steps, score, threshold="auto"), as_table(codes, schema), schema)
        tree = linked(codes, schema, drawn.taken, steps)
        for values, cut in zip(tree.cuts, model.cuts_.values(), strict=True):
            assert [tuple(sorted(value.codes.tolist())) for value in values] == [value.codes for value in cut.values()]
        places = [{value: place for place, value in enumerate(cut)} for cut in tree.cuts]
        leaves = {
            tuple(known[value] for known, value in zip(places, leaf.values, strict=True)): leaf.counts.tolist()
            for leaf in tree.leaves()
        }
        released = model.release()
        assert dict(zip(map(tuple, released.groups.tolist()), released.counts.tolist(), strict=True)) == leaves


# -- what is released is true ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", ["first", "joint"])
@pytest.mark.parametrize("score", SCORES)
def test_without_noise_the_groups_are_those_of_the_rows(score: str, points: str) -> None:
    schema = schema_of(lists=True, classes=3)
    for seed in range(4):
        table = table_of(schema, 150, seed)
        model = fitted(dm.DiffGen(HUGE, 3 + 3 * seed, score, points=points), table, schema)
        assert shown_groups(model) == true_groups(model, table, schema)


@pytest.mark.parametrize("number", range(4))
def test_every_release_is_exact_without_noise(number: int) -> None:
    schema = schema_of(lists=True)
    table = table_of(schema, 150, 9)
    model = fitted(every(HUGE)[number], table, schema)
    assert shown_groups(model) == true_groups(model, table, schema)


def test_without_noise_weights_are_the_true_frequencies() -> None:
    schema = schema_of()
    table = table_of(schema, 150, 9)
    model = fitted(dm.DiffGen(HUGE, 3, frequency_share=0.3), table, schema)
    codes, _ = encode_rows(table, schema, list(model.release().values))
    for name, weights in model.release().weights.items():
        assert weights.tolist() == np.bincount(codes[name], minlength=schema.single(name).size).tolist()


def test_joint_points_are_the_best_of_all_points_of_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """One choice at a time, by a count over all rows: no point elsewhere, and no other value, scores more."""
    schema = deep_schema(2)
    for seed in range(3):
        codes = random_codes(schema, 200, seed)
        with choosing(first_best):
            model = fitted(dm.DiffGen(HUGE, 1, "max", points="joint"), as_table(codes, schema), schema)
        scores = {}
        for name in model.cuts_:
            attribute = schema.single(name)
            counts = np.zeros((attribute.size, 2), dtype=int)
            np.add.at(counts, (codes[name], codes["class"]), 1)
            if isinstance(attribute, Numeric):
                for point in range(1, attribute.size):
                    parts = (counts[:point].sum(axis=0), counts[point:].sum(axis=0))
                    scores[name, point] = sum(int(part.max()) for part in parts)
            else:
                nodes = attribute.taxonomy.children if attribute.taxonomy else None
                children = [[attribute.code(leaf) for leaf in node.leaves()] for node in nodes] if nodes else None
                groups = children or [[code] for code in range(attribute.size)]
                scores[name, 0] = sum(int(counts[group].sum(axis=0).max()) for group in groups)
        (name, point), _ = max(scores.items(), key=lambda item: item[1])
        changed = {name: cut for name, cut in model.cuts_.items() if len(cut) > 1}
        assert list(changed) == [name]
        if point:
            assert changed[name].values()[1].codes[0] == point


# -- engines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
def test_both_engines_release_the_same(number: int, tmp_path: Path) -> None:
    schema = schema_of()
    table = table_of(schema, 300, 4)
    pd.DataFrame(table).to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame(table).to_parquet(tmp_path / "rows.parquet")
    with choosing(first_best):
        expected = form_of(fitted(with_tree(HUGE)[number], table, schema).release())
        for file in ("rows.csv", "rows.parquet"):
            model = fitted(with_tree(HUGE)[number], tmp_path / file, schema, engine="duckdb")
            assert form_of(model.release()) == expected


def test_both_engines_release_adult_alike(whole_adult: Any, data_folder: Path) -> None:
    """As the file has it, unknown values included."""
    schema = adult_schema(taxonomies=True)
    path = data_folder / "adult.parquet"
    with choosing(first_best):
        for model in (lambda: dm.DiffGen(HUGE, 12, "infogain"), lambda: ContingencyTable(HUGE, bins=4)):
            one = fitted(model(), path, schema)
            other = fitted(model(), path, schema, engine="duckdb")
            assert form_of(one.release()) == form_of(other.release())
            assert len(one.release()) == 48_842


def test_the_way_rows_are_handed_over_does_not_matter() -> None:
    schema = schema_of(lists=True)
    table = table_of(schema, 100, 2)
    rows, classes = {name: column for name, column in table.items() if name != "class"}, table["class"]
    with choosing(first_best):
        expected = form_of(fitted(dm.DiffGen(HUGE, 5), table, schema).release())
        for model in (
            dm.DiffGen(HUGE, 5, schema=schema).fit(rows, classes),
            dm.DiffGen(HUGE, 5).fit(table, schema=schema),
            dm.DiffGen(HUGE, 5).fit(pd.DataFrame(rows), pd.Series(classes), schema=schema),
        ):
            assert form_of(model.release()) == expected
