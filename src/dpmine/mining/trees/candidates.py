"""What a tree could split by, from the schema alone."""

from collections.abc import Sequence

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.kind import MISSING, OWN
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS
from dpmine.facts.schema import Schema
from dpmine.language.candidates import can_split, even_starts, every_category, number_of_candidates, one_versus_rest
from dpmine.language.keys import LAST, Bins, Key
from dpmine.language.splits import Splits, Thresholds
from dpmine.mining.parameters import check_number


def require_splits(schema: Schema) -> None:
    """Refuse, before anything is spent, a schema that leaves a tree nothing to split by."""
    if not nominal_keys(schema) and not numeric_names(schema):
        raise RequestError("The schema has no attribute but the class that a tree could split by.")


def nominal_keys(schema: Schema) -> tuple[Key, ...]:
    """Every nominal attribute but the class that has two things to tell apart, split by each of its categories."""
    target = schema.require_class()
    return tuple(every_category(schema, a.name) for a in schema.of_kind(Nominal) if can_split(a) and a.name != target)


def numeric_names(schema: Schema) -> tuple[str, ...]:
    """Every numeric or otherwise ordered attribute that can be cut at all."""
    return tuple(a.name for a in schema.singles if a.ordered and can_split(a))


def discretised(schema: Schema, bins: int) -> tuple[Key, ...]:
    """Every numeric attribute cut into so many bins of equally many cells of its grid (fewer where it has fewer).

    Gaps that have a label of their own are one more bin; dropped ones are in the last.
    """
    check_number("bins", bins, 2, MOST_GRID_POINTS, whole=True)
    keys: list[Key] = []
    for name in numeric_names(schema):
        attribute = schema.single(name)
        cuts = [attribute.label(code) for code in even_starts(attribute.cells, int(bins))[1:]]
        keys.append(Bins(name, (*cuts, *([MISSING] if attribute.gap == OWN else [])), LAST))
    return tuple(keys)


def whole_keys(schema: Schema, bins: int) -> tuple[Key, ...]:
    """What trees split by that know no split points: nominal attributes, and numeric ones in bins."""
    return nominal_keys(schema) + discretised(schema, bins)


def thresholds(schema: Schema) -> list[Splits]:
    """Every numeric attribute with its split points."""
    return [Thresholds(name) for name in numeric_names(schema)]


def binary_splits(schema: Schema) -> list[Splits]:
    """A category or a taxonomy node against the rest, or a threshold; families of one attribute each."""
    require_splits(schema)
    return [one_versus_rest(schema, key.title) for key in nominal_keys(schema)] + thresholds(schema)


def number_of(candidates: Sequence[Splits], schema: Schema) -> int:
    """How many splits some families hold together."""
    return sum(number_of_candidates(family, schema) for family in candidates)
