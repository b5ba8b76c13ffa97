"""From keys to tables over codes."""

import bisect

from dpmine.base.errors import RequestError
from dpmine.codes.rows import (
    LARGEST_POSITION,
    BandedDistance,
    BandedSum,
    Cyclic,
    HashedPart,
    LargestSum,
    LeafScores,
    NearestCentre,
    Recode,
    RecodeValues,
    Rounded,
    RowKey,
    RowScores,
    ScoreBranch,
    Tested,
)
from dpmine.facts.calendar import DAY, HOUR, TO_MONDAY
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import Measured, Ordered
from dpmine.language.keys import CYCLES, AttributeKey, Bins, ByCalendar, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.resolving_predicates import code_edges, resolve_predicate


def resolve_key(key: Key, schema: Facts) -> RowKey:
    if isinstance(key, AttributeKey):
        return Recode(key.attribute, (), schema.single(key.attribute).size)
    if isinstance(key, Bins):
        return _binned(key, schema)
    if isinstance(key, ByCalendar):
        return _cycle(key, schema) if key.is_cyclic(schema) else _by_calendar(key, schema)
    if isinstance(key, Groups):
        return Recode(key.attribute, runs_of(key.table(schema)), len(key.labels(schema)))
    if isinstance(key, Test):
        return Tested(resolve_predicate(key.predicate, schema))
    if isinstance(key, Predicted):
        return LargestSum(tuple(_scores(tree, schema) for tree in key.trees), len(key.classes))
    if isinstance(key, ScoreBands):
        trees = tuple(_scores(tree, schema, key.place) for tree in key.trees)
        return BandedSum(trees, key.edges, len(key.edges) + 1)
    if isinstance(key, Nearest):
        return _nearest(key, schema)
    if isinstance(key, NearestBands):
        return BandedDistance(_nearest(key.nearest, schema), key.edges, len(key.edges) + 1)
    assert isinstance(key, Part)
    return HashedPart(key.salt, key.weights, len(key.weights))


def _binned(key: Bins, schema: Facts) -> Recode | RecodeValues:
    return _cut(key.ordered(schema), key.first_values(schema), len(key.labels(schema)), apart=key.gap_apart(schema))


def _by_calendar(key: ByCalendar, schema: Facts) -> Recode | RecodeValues:
    attribute = key.dated(schema)
    return _cut(attribute, key.first_values(schema), len(key.labels(schema)), apart=attribute.gap is not None)


def _cycle(key: ByCalendar, schema: Facts) -> Cyclic:
    attribute, period = key.dated(schema), CYCLES[key.unit]
    since, unit = (attribute.first + TO_MONDAY * DAY, DAY) if key.unit == "weekday" else (attribute.first, HOUR)
    values, steps = unit // attribute.step, since % (unit * period) // attribute.step
    return Cyclic(attribute.name, steps, values, period, period + (attribute.gap is not None))


def _cut(attribute: Ordered, starts: list[int], size: int, *, apart: bool) -> Recode | RecodeValues:
    """Runs from the first values of all labels but the first on, and that of gaps where it is apart.

    Of codes where every label begins with one, which is the same key then; else of values.
    """
    first_codes = code_edges(attribute)
    if all(start in first_codes for start in starts):
        starts, whole = [first_codes[start] for start in starts], attribute.cells
    else:
        whole = attribute.values
    gap = [whole] if apart else []
    end = whole + (attribute.gap is not None)
    changes = sorted({0, *(start for start in (*starts, *gap) if start < end)})
    runs = tuple((first, bisect.bisect_right([*starts, *gap], first)) for first in changes)
    return (Recode if whole == attribute.cells else RecodeValues)(attribute.name, runs, size)


def _nearest(key: Nearest, schema: Facts) -> NearestCentre:
    places = []
    for name, steps, scale in zip(key.attributes, key.steps, key.scales, strict=True):
        attribute = schema.numeric(name, "nothing is near or far in it")
        if steps >= attribute.values:
            raise RequestError(f"{name!r} has {attribute.values - 1} steps between its bounds. Got {steps}.")
        if steps * scale > LARGEST_POSITION:
            raise RequestError(f"The scale of {name!r} is too large: positions go up to {LARGEST_POSITION}.")
        places.append(rounded(attribute, steps))
    return NearestCentre(tuple(places), key.scales, key.centres, len(key.centres))


def rounded(attribute: Measured, most: int) -> Rounded:
    """The numbers of an attribute in steps: as they are, or rounded to at most so many."""
    steps = min(attribute.values - 1, most)
    return Rounded(attribute.name, steps, steps + 1 + (attribute.gap is not None))


def _scores(tree: ScoreTree, schema: Facts, place: int | None = None) -> RowScores:
    """A model's tree on codes; with `place`, only that score of each leaf."""
    if isinstance(tree, ScoreLeaf):
        return LeafScores(tree.scores if place is None else (tree.scores[place],))
    assert isinstance(tree, ScoreSplit)
    key = resolve_key(tree.key, schema)
    assert isinstance(key, (Recode, RecodeValues))
    if len(tree.children) != key.size:
        raise RequestError(f"A split by {tree.key.title!r} needs {key.size} children. Got {len(tree.children)}.")
    return ScoreBranch(key, tuple(_scores(child, schema, place) for child in tree.children))


def runs_of(table: list[int]) -> tuple[tuple[int, int], ...]:
    return tuple((code, item) for code, item in enumerate(table) if code == 0 or table[code - 1] != item)
