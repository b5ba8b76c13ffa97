"""The candidates of families of splits, as keys: what a choice among them means. Nothing here is trusted."""

from functools import singledispatch

from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Single
from dpmine.language.keys import LAST, AttributeKey, Bins, Group, Groups, Key
from dpmine.language.splits import Divide, Multiway, Specialise, Splits, Stay, Subsets, Thresholds


@singledispatch
def number_of_candidates(family: Splits, schema: Facts) -> int:
    """How many splits a family offers."""
    raise NotImplementedError


@singledispatch
def candidate(family: Splits, schema: Facts, index: int) -> Key | None:
    """One candidate as the key it splits by; None where it does not split."""
    raise NotImplementedError


def split_key(family: Splits, schema: Facts, index: int) -> Key:
    """One candidate of a family all of whose candidates split."""
    key = candidate(family, schema, index)
    assert key is not None
    return key


@number_of_candidates.register(Multiway)
@number_of_candidates.register(Specialise)
@number_of_candidates.register(Stay)
def _one(family: Splits, schema: Facts) -> int:
    return 1


@candidate.register(Multiway)
@candidate.register(Specialise)
def _its_key(family: Multiway | Specialise, schema: Facts, index: int) -> Key:
    return family.key


@candidate.register
def _no_split(family: Stay, schema: Facts, index: int) -> None:
    return None


@number_of_candidates.register
def _thresholds(family: Thresholds, schema: Facts) -> int:
    return len(family.codes(schema))


@candidate.register
def _threshold(family: Thresholds, schema: Facts, index: int) -> Key:
    return _cut_at(family.attribute, family.codes(schema)[index], schema)


@number_of_candidates.register
def _points(family: Divide, schema: Facts) -> int:
    return len(family.codes(schema)) - 1


@candidate.register
def _point(family: Divide, schema: Facts, index: int) -> Key:
    return _cut_at(family.attribute, family.codes(schema)[index + 1], schema)


def _cut_at(attribute: str, code: int, schema: Facts) -> Key:
    return Bins(attribute, (schema.single(attribute).label(code),), LAST)


@number_of_candidates.register
def _subsets(family: Subsets, schema: Facts) -> int:
    return len(family.subsets)


@candidate.register
def _subset(family: Subsets, schema: Facts, index: int) -> Key:
    members = family.subsets[index]
    name = " or ".join(members)
    return Groups(family.attribute, (Group(name, members),), rest=f"not {name}", missing=LAST)


def can_split(attribute: Single) -> bool:
    """Whether rows can be told apart by it: gaps count as one more value where they have a label of their own."""
    return attribute.cells + (attribute.gap == OWN) > 1


def even_starts(cells: int, intervals: int) -> list[int]:
    """Where intervals of as many cells each begin, as evenly as possible (fewer where there are fewer cells)."""
    return sorted({cells * place // intervals for place in range(intervals)})


def every_category(schema: Facts, name: str) -> Key:
    """An attribute split by each of its categories. Gaps have a branch of their own, or share the last one if dropped."""
    if schema.single(name).gap != DROP:
        return AttributeKey(name)
    categories = schema.nominal(name, "use thresholds").categories
    *groups, last = (Group(category, (category,)) for category in categories)
    return Groups(name, tuple(groups), last.label, LAST)


def one_versus_rest(schema: Facts, name: str) -> Subsets:
    """Every single category of an attribute, and every inner node of its taxonomy, against the others.

    Gaps that have a label of their own are one more category; dropped ones are among the others in every split.
    """
    attribute = schema.nominal(name, "use thresholds")
    subsets: list[tuple[str, ...]] = [(category,) for category in attribute.categories]
    if attribute.taxonomy is not None:
        inner = [node.leaves() for node in attribute.taxonomy.nodes() if node.children]
        subsets += [leaves for leaves in inner if 1 < len(leaves) < attribute.cells]
    if attribute.gap == OWN:
        subsets.append((MISSING,))
    return Subsets(name, tuple(dict.fromkeys(subsets)))
