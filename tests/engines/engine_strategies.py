"""Hypothesis strategies for small tables and for every view, rule tree and key that their schema allows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from engine_reference import RoundedKey
from hypothesis import strategies as st

from dpmine.base.decimals import plain
from dpmine.codes.rows import LARGEST_POSITION, LARGEST_SCORE
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import APART, LAST, AttributeKey, Bins, Group, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.predicates import COMPARISONS, And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate
from dpmine.language.views import LEAF, Cell, Rules, Split, Step, Where

CATEGORIES = ("a", "b", "c", "d")
ITEMS = ("flu", "gout", "mumps")
STEPS = ("1", "0.1", "2.5", "0.3")


@dataclass(frozen=True)
class Small:
    """A small table with its schema."""

    schema: Schema
    table: dict[str, list[Any]]

    @property
    def rows(self) -> int:
        return len(next(iter(self.table.values())))


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    kind = draw(st.sampled_from(["nominal", "numeric", "items"]))
    if kind == "nominal":
        categories = CATEGORIES[: draw(st.integers(1, 4))]
        other = draw(st.none() | st.sampled_from(categories))
        return Nominal(name, categories, other, missing=draw(st.sampled_from([OWN, DROP, *categories])))
    if kind == "numeric":
        return draw(numbers(name))
    return ItemList(name, ITEMS[: draw(st.integers(1, 3))], draw(st.integers(1, 3)))


@st.composite
def numbers(draw: st.DrawFn, name: str) -> Numeric:
    """A few cells, even, uneven or logarithmic, of one or of several values each; gaps of every kind."""
    step = Decimal(draw(st.sampled_from(STEPS)))
    low = Decimal(draw(st.integers(-3, 3))) * step + Decimal(draw(st.sampled_from(["0", "0.05"])))
    places = draw(st.integers(1, 8))
    high = low + step * places + step / 2
    missing = draw(st.sampled_from([OWN, DROP, low, low + step]))
    grid = draw(st.sampled_from(["even", "finer", "finer", "uneven", "log"]))
    if grid == "even":
        return Numeric(name, low, high, step, missing)
    finer = step / draw(st.sampled_from([2, 5, 40]))
    if grid == "finer":
        return Numeric(name, low, high, step, missing, finer)
    if grid == "uneven":
        edges = sorted(draw(st.sets(st.integers(1, 2 * places), min_size=1, max_size=4)))
        return Numeric(name, low, high, None, missing, finer, tuple(low + step / 2 * edge for edge in edges))
    return Numeric(name, low, high, None, missing, step / 2, scale="log")


def values_of(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Values inside and outside the domain."""
    if isinstance(attribute, Nominal):
        return st.sampled_from([*CATEGORIES, None, "unknown"])
    if isinstance(attribute, Numeric):
        points = [float(attribute.value_point(value)) for value in range(attribute.values)]
        between = [(low + high) / 2 for low, high in itertools.pairwise(points)]
        rest = [None, float("nan"), float("inf"), -0.0]
        return (
            st.sampled_from([*points, *between, *rest]) | st.sampled_from(rest) | st.floats(-12, 12) | st.integers(-12, 12)
        )
    lists = st.lists(st.sampled_from([*ITEMS, "unknown"]), max_size=4)
    return lists | lists.map("|".join) | st.none()


@st.composite
def small_tables(draw: st.DrawFn, *, most_rows: int = 30) -> Small:
    """Between 1 and 4 columns, rows often repeated."""
    names = ["x", "y", "z", "w"][: draw(st.integers(1, 4))]
    schema = Schema("small", tuple(draw(attributes(name)) for name in names), 1000)
    row = st.tuples(*(values_of(attribute) for attribute in schema.attributes))
    rows = draw(st.lists(row, max_size=most_rows))
    rows += draw(st.lists(st.sampled_from(rows), max_size=8)) if rows else []
    return Small(schema, {name: [one[place] for one in rows] for place, name in enumerate(names)})


@st.composite
def with_persons(draw: st.DrawFn, small: Small) -> Small:
    """The same rows, each of one of a few persons or of nobody, of whom few rows count."""
    names = st.sampled_from(["ann", "ann", "bob", "\u65e5", None, " "])
    who = draw(st.lists(names, min_size=small.rows, max_size=small.rows))
    unit = Unit("who", draw(st.integers(1, 3)))
    return Small(replace(small.schema, unit=unit), {**small.table, "who": who})


tables_of_persons = small_tables().flatmap(with_persons)


@st.composite
def constants(draw: st.DrawFn, attribute: Nominal | Numeric) -> str:
    if isinstance(attribute, Nominal):
        return draw(st.sampled_from(attribute.categories))
    points = st.integers(0, attribute.cells - 1).map(attribute.point)
    point = draw(points | st.integers(0, attribute.values - 1).map(attribute.value_point))
    width = attribute.high - attribute.low
    return plain(point + draw(st.sampled_from([Decimal(0), Decimal(0), attribute.finest / 2, -width * 2, width * 2])))


@st.composite
def simple_predicates(draw: st.DrawFn, schema: Schema) -> Predicate:
    attribute = draw(st.sampled_from(schema.attributes))
    if isinstance(attribute, ItemList):
        return Contains(attribute.name, tuple(draw(st.lists(st.sampled_from(attribute.items), max_size=3))))
    if draw(st.integers(0, 4)) == 0:
        return IsMissing(attribute.name)
    if draw(st.booleans()):
        return IsIn(attribute.name, tuple(draw(st.lists(constants(attribute), max_size=3))))
    operators = ("==", "!=") if isinstance(attribute, Nominal) else COMPARISONS
    return Compare(attribute.name, draw(st.sampled_from(operators)), draw(constants(attribute)))


def predicates(schema: Schema) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        simple_predicates(schema) | st.sampled_from([And(()), Or(())]),
        lambda inner: (
            st.builds(Not, inner)
            | st.lists(inner, max_size=3).map(tuple).map(And)
            | st.lists(inner, max_size=3).map(tuple).map(Or)
        ),
        max_leaves=5,
    )


@st.composite
def keys(draw: st.DrawFn, schema: Schema) -> Key:
    """A key of any kind that fits the schema."""
    single = [attribute for attribute in schema.attributes if not isinstance(attribute, ItemList)]
    kinds = ["test", "part", "model", "model"] + (["attribute", "recode", "recode"] if single else [])
    kind = draw(st.sampled_from(kinds + (["centres"] * 2 if numbers_of(schema) else [])))
    if kind == "test":
        return Test(draw(predicates(schema)))
    if kind == "part":
        weights = draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
        return Part(draw(st.sampled_from(["", "train-test", "\u65e5"])), tuple(weights))
    if kind == "model":
        return draw(model_keys(schema))
    if kind == "centres":
        return draw(nearest_keys(schema) | banded_keys(schema))
    attribute = draw(st.sampled_from(single))
    if kind == "attribute":
        return AttributeKey(attribute.name)
    return draw(recodings(attribute))


@st.composite
def recodings(draw: st.DrawFn, attribute: Nominal | Numeric) -> Key:
    """Bins of a numeric attribute, groups of a nominal one."""
    if isinstance(attribute, Numeric):
        missing = draw(st.sampled_from([APART, LAST]))
        cuts = list(map(plain, sorted({Decimal(text) for text in draw(st.lists(constants(attribute), max_size=4))})))
        if missing == LAST and attribute.gap is not None and (not cuts or draw(st.booleans())):
            cuts.append(MISSING)
        return Bins(attribute.name, tuple(cuts or [plain(attribute.low)]), missing)
    missing = draw(st.sampled_from([APART, LAST]))
    named = [MISSING] if missing == LAST and attribute.gap is not None else []
    members = draw(st.permutations([*attribute.categories, *named]))
    ends = sorted(draw(st.lists(st.integers(0, len(members)), max_size=3)))
    parts = [tuple(members[low:high]) for low, high in zip([0, *ends], ends, strict=False)]
    return Groups(
        attribute.name, tuple(Group(f"group {number}", part) for number, part in enumerate(parts)), missing=missing
    )


SCORES = st.integers(-2, 2) | st.sampled_from([-LARGEST_SCORE, LARGEST_SCORE])  # few values, so that sums are often equal


@st.composite
def score_trees(draw: st.DrawFn, schema: Schema, width: int, *, deepest: int = 2) -> ScoreTree:
    single = [attribute for attribute in schema.attributes if not isinstance(attribute, ItemList)]
    if not single or deepest == 0 or draw(st.integers(0, 2)) == 0:
        return ScoreLeaf(draw(st.tuples(*[SCORES] * width)))
    attribute = draw(st.sampled_from(single))
    key = AttributeKey(attribute.name) if draw(st.booleans()) else draw(recodings(attribute))
    return ScoreSplit(key, tuple(draw(score_trees(schema, width, deepest=deepest - 1)) for _ in key.labels(schema)))


@st.composite
def model_keys(draw: st.DrawFn, schema: Schema) -> Key:
    """A model of a few small trees, by its prediction (2 to 5 classes) or by bands of one score (of 1 to 3)."""
    predicted = draw(st.booleans())
    width = draw(st.integers(2, 5) if predicted else st.integers(1, 3))
    trees = tuple(draw(st.lists(score_trees(schema, width), min_size=1, max_size=3)))
    if predicted:
        return Predicted(trees, tuple(f"class {number}" for number in range(width)))
    edges = st.integers(-5, 5) | st.sampled_from([-3 * LARGEST_SCORE, LARGEST_SCORE, 2 * LARGEST_SCORE + 1])
    return ScoreBands(trees, draw(st.integers(0, width - 1)), tuple(sorted(draw(st.sets(edges, min_size=1, max_size=4)))))


def numbers_of(schema: Schema) -> list[Numeric]:
    return [attribute for attribute in schema.attributes if isinstance(attribute, Numeric)]


@st.composite
def rounded_keys(draw: st.DrawFn, schema: Schema) -> Key:
    """Numbers as they are, or rounded to fewer steps."""
    attribute = draw(st.sampled_from(numbers_of(schema)))
    return RoundedKey(attribute.name, draw(st.integers(1, attribute.values - 1) | st.just(attribute.values - 1)))


@st.composite
def nearest_keys(draw: st.DrawFn, schema: Schema) -> Nearest:
    """A few centres, often equally near; sometimes at the very ends of what positions may be."""
    attributes = draw(st.lists(st.sampled_from(numbers_of(schema)), min_size=1, unique=True))
    steps = tuple(draw(st.integers(1, attribute.values - 1) | st.just(attribute.values - 1)) for attribute in attributes)
    far = draw(st.booleans())
    largest = [LARGEST_POSITION // one if far else 2 for one in steps]
    scales = tuple(draw(st.integers(1, most) | st.just(most)) for most in largest)
    ends = st.sampled_from([0, LARGEST_POSITION]) if far else st.nothing()
    places = [ends | st.integers(0, one * scale) for one, scale in zip(steps, scales, strict=True)]
    centres = draw(st.lists(st.tuples(*places), min_size=1, max_size=4))
    return Nearest(tuple(attribute.name for attribute in attributes), steps, scales, tuple(centres))


@st.composite
def banded_keys(draw: st.DrawFn, schema: Schema) -> NearestBands:
    nearest = draw(nearest_keys(schema))
    most = sum((steps * scale) ** 2 for steps, scale in zip(nearest.steps, nearest.scales, strict=True))
    edges = st.integers(0, 6) | st.integers(0, most) | st.sampled_from([2**46, 2**46 + 1])
    return NearestBands(nearest, tuple(sorted(draw(st.sets(edges, min_size=1, max_size=4)))))


@st.composite
def steps(draw: st.DrawFn, schema: Schema) -> Step:
    if draw(st.booleans()):
        return Where(draw(predicates(schema)))
    key = draw(keys(schema))
    return Cell(key, draw(st.integers(0, len(key.labels(schema)) - 1)))


@st.composite
def rule_trees(draw: st.DrawFn, schema: Schema, *, deepest: int = 3) -> Rules:
    """A tree in which about half of the nodes above the deepest level are split."""
    if deepest == 0 or draw(st.integers(0, 2)) == 0:
        return LEAF
    key = draw(keys(schema))
    return Split(key, tuple(draw(rule_trees(schema, deepest=deepest - 1)) for _ in key.labels(schema)))


@dataclass(frozen=True)
class Asked:
    """What one query asks of the engine."""

    steps: tuple[Step, ...]
    rules: Rules
    groups: tuple[tuple[Key, ...], ...]


@dataclass(frozen=True)
class AskedSums:
    """What one query for sums asks: of each attribute its steps, and of each sum the power of each."""

    steps: tuple[Step, ...]
    rules: Rules
    amounts: tuple[tuple[str, int], ...]
    powers: tuple[tuple[int, ...], ...]


@st.composite
def asked(draw: st.DrawFn, schema: Schema) -> Asked:
    view = draw(st.lists(steps(schema), max_size=2))
    counted = keys(schema) | rounded_keys(schema) if numbers_of(schema) else keys(schema)
    groups = draw(st.lists(st.lists(counted, max_size=3).map(tuple), min_size=1, max_size=3))
    return Asked(tuple(view), draw(rule_trees(schema)), tuple(groups))


@st.composite
def asked_sums(draw: st.DrawFn, schema: Schema) -> AskedSums:
    """Sums of one attribute's numbers, of their squares, or of products of two, as they are or rounded."""
    chosen = draw(st.lists(st.sampled_from(numbers_of(schema)), min_size=1, max_size=2, unique=True))
    amounts = tuple((one.name, draw(st.integers(1, one.values - 1) | st.just(one.values - 1))) for one in chosen)
    each = st.tuples(*[st.integers(0, 2)] * len(chosen))
    powers = tuple(draw(st.lists(each, min_size=1, max_size=5)))
    view = draw(st.lists(steps(schema), max_size=2))
    return AskedSums(tuple(view), draw(rule_trees(schema)), amounts, powers)


tables_with_sums = (
    small_tables()
    .filter(lambda small: bool(numbers_of(small.schema)))
    .flatmap(lambda small: st.tuples(st.just(small), asked_sums(small.schema)))
)
tables_with_questions = small_tables().flatmap(
    lambda small: st.tuples(st.just(small), st.lists(asked(small.schema), min_size=1, max_size=3))
)
