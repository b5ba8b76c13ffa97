"""Families of candidate splits, as they are asked and as they are on codes."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import MOST_ROWS, Facts
from dpmine.language.keys import Bins, Group, Groups, Key
from dpmine.language.resolved import Recode, RowKey
from dpmine.language.resolver import Resolver

MOST_BONUS = MOST_ROWS  # of staying: no gain is larger


class Splits:
    """A family of candidate splits.

    Under the exponential mechanism each family has the same share of the base measure, shared evenly by its candidates;
    permute-and-flip counts every candidate of every family once.
    """

    def size(self, schema: Facts) -> int:
        """The number of candidates."""
        raise NotImplementedError

    def candidate(self, schema: Facts, index: int) -> Key | None:
        """One candidate as the key it splits by; None where it does not split."""
        raise NotImplementedError

    def resolve(self, resolver: Resolver) -> ResolvedSplits:
        raise NotImplementedError


@value("multiway")
class Multiway(Splits):
    """One candidate: split by every label of the key."""

    key: Key

    def size(self, schema: Facts) -> int:
        return 1

    def candidate(self, schema: Facts, index: int) -> Key:
        return self.key

    def resolve(self, resolver: Resolver) -> ResolvedMultiway:
        return ResolvedMultiway(resolver.key(self.key))


@value("thresholds")
class Thresholds(Splits):
    """Two-way splits of an ordered attribute at every grid point above `low` and up to `high` (default: the domain)."""

    attribute: str
    low: str | None = None
    high: str | None = None

    def codes(self, schema: Facts) -> range:
        """A candidate at code c sends the codes below c to the left."""
        attribute = schema.ordered(self.attribute, "it has no thresholds")
        first = 1  # a split at the lowest point would send nothing to the left
        if self.low is not None:
            first = max(attribute.codes_of(self.low)[1], first)
        last = attribute.size - 1 if self.high is None else attribute.floor_code(attribute.number(self.high))
        if first > last:
            raise RequestError(f"No grid point of {self.attribute!r} lies between the given low and high.")
        return range(first, last + 1)

    def size(self, schema: Facts) -> int:
        return len(self.codes(schema))

    def candidate(self, schema: Facts, index: int) -> Key:
        return Bins(self.attribute, (schema.single(self.attribute).label(self.codes(schema)[index]),))

    def resolve(self, resolver: Resolver) -> ResolvedThresholds:
        codes = self.codes(resolver.schema)
        return ResolvedThresholds(resolver.attribute(self.attribute), codes.start, len(codes))


@value("subsets")
class Subsets(Splits):
    """Two-way splits of a nominal attribute: each listed set of categories against the others."""

    attribute: str
    subsets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.subsets:
            raise RequestError(f"Subsets of {self.attribute!r}: list at least one.")
        if any(len(set(members)) != len(members) for members in self.subsets):
            raise RequestError(f"Subsets of {self.attribute!r}: a subset names a category twice.")

    def size(self, schema: Facts) -> int:
        return len(self.subsets)

    def candidate(self, schema: Facts, index: int) -> Key:
        members = self.subsets[index]
        name = " or ".join(members)
        return Groups(self.attribute, (Group(name, members),), rest=f"not {name}")

    def resolve(self, resolver: Resolver) -> ResolvedSubsets:
        attribute = resolver.schema.nominal(self.attribute, "use thresholds")
        subsets = []
        for members in self.subsets:
            codes_of_members = tuple(sorted({attribute.code(member) for member in members}))
            if not 0 < len(codes_of_members) < attribute.size:
                raise RequestError(f"A subset of {self.attribute!r} must leave something on both sides.")
            subsets.append(codes_of_members)
        return ResolvedSubsets(resolver.attribute(self.attribute), tuple(subsets))


@value("specialise")
class Specialise(Splits):
    """One candidate: of the rows under one value of a generalised attribute, the split into the value's children.

    `key` is the attribute's cut after the specialisation and `labels` are the children in it. Rows with another label do
    not count, so that candidates of one choice are about different rows.
    """

    key: Key
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) != len(self.labels):
            raise RequestError("A specialisation has at least two different children.")

    def size(self, schema: Facts) -> int:
        return 1

    def candidate(self, schema: Facts, index: int) -> Key:
        return self.key

    def resolve(self, resolver: Resolver) -> ResolvedSpecialise:
        """Children as codes of the attribute itself, so that all specialisations of it read the same counts."""
        cut = resolver.key(self.key)
        if not isinstance(cut, Recode):
            raise RequestError("A specialisation is of one attribute: give its cut as bins or groups.")
        children: dict[int, list[tuple[int, int]]] = {label: [] for label in self.labels}
        for first, end, label in cut.stretches(resolver.schema.single(cut.attribute).size):
            if label in children:
                children[label].append((first, end))
        if not all(children.values()):
            raise RequestError(f"A specialisation of {cut.attribute!r} has a child that holds no value.")
        return ResolvedSpecialise(resolver.attribute(cut.attribute), tuple(map(tuple, children.values())))


@value("divide")
class Divide(Splits):
    """Two-way splits of one interval of an ordered attribute, from grid point `first` to `last`, at every point inside it.

    Like `Specialise`, of all points at once: rows outside the interval do not count.
    """

    attribute: str
    first: str
    last: str

    def codes(self, schema: Facts) -> range:
        """The codes of the interval; a candidate at code c sends the codes below c to the left."""
        attribute = schema.ordered(self.attribute, "it cannot be divided")
        ends = [attribute.floor_code(attribute.number(text)) for text in (self.first, self.last)]
        if ends[0] >= ends[1]:
            raise RequestError(f"An interval of {self.attribute!r} needs at least two grid points to be divided.")
        return range(ends[0], ends[1] + 1)

    def size(self, schema: Facts) -> int:
        return len(self.codes(schema)) - 1

    def candidate(self, schema: Facts, index: int) -> Key:
        return Bins(self.attribute, (schema.single(self.attribute).label(self.codes(schema)[index + 1]),))

    def resolve(self, resolver: Resolver) -> ResolvedDivide:
        codes = self.codes(resolver.schema)
        return ResolvedDivide(resolver.attribute(self.attribute), codes.start, codes.stop)


@value("stay")
class Stay(Splits):
    """One candidate: no split. Its score is that of the whole cell plus a public bonus in units of the score (rows).

    So a tree stops where no split gains more than the bonus, without asking how many rows there are.
    """

    bonus: int

    def __post_init__(self) -> None:
        if type(self.bonus) is not int or not 0 <= self.bonus <= MOST_BONUS:
            raise RequestError(f"The bonus of staying is a whole number between 0 and {MOST_BONUS}. Got {self.bonus}.")

    def size(self, schema: Facts) -> int:
        return 1

    def candidate(self, schema: Facts, index: int) -> None:
        return None

    def beside(self, family: ResolvedSplits) -> ResolvedStay:
        """Staying whole, in a choice that has this family too: its counts tell what the whole cell holds."""
        return ResolvedStay(family.key, self.bonus)


def one_versus_rest(schema: Facts, name: str) -> Subsets:
    """Every single category of an attribute, and every inner node of its taxonomy, against the others."""
    attribute = schema.nominal(name, "use thresholds")
    subsets: list[tuple[str, ...]] = [(category,) for category in attribute.categories]
    if attribute.taxonomy is not None:
        inner = [node.leaves() for node in attribute.taxonomy.nodes() if node.children]
        subsets += [leaves for leaves in inner if 1 < len(leaves) < attribute.size]
    return Subsets(name, tuple(dict.fromkeys(subsets)))


# -- on codes ----------------------------------------------------------------------------------------------------------


class ResolvedSplits:
    """A family of candidate splits on one key's codes."""

    key: RowKey

    @property
    def candidates(self) -> int:
        raise NotImplementedError


@value("resolved-multiway")
class ResolvedMultiway(ResolvedSplits):
    key: RowKey

    @property
    def candidates(self) -> int:
        return 1


@value("resolved-thresholds")
class ResolvedThresholds(ResolvedSplits):
    """Candidate i sends codes below first + i to the left."""

    key: RowKey
    first: int
    points: int

    @property
    def candidates(self) -> int:
        return self.points


@value("resolved-subsets")
class ResolvedSubsets(ResolvedSplits):
    """Candidate i sends the codes of its set to the left."""

    key: RowKey
    subsets: tuple[tuple[int, ...], ...]

    @property
    def candidates(self) -> int:
        return len(self.subsets)


@value("resolved-specialise")
class ResolvedSpecialise(ResolvedSplits):
    """One candidate: the rows with the codes of some child go to that child; other rows do not count.

    A child's codes are given by half-open ranges.
    """

    key: RowKey
    children: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def candidates(self) -> int:
        return 1


@value("resolved-divide")
class ResolvedDivide(ResolvedSplits):
    """Candidate i sends codes from first up to first + i to the left; codes outside first .. end - 1 do not count."""

    key: RowKey
    first: int
    end: int

    @property
    def candidates(self) -> int:
        return self.end - self.first - 1


@value("resolved-stay")
class ResolvedStay(ResolvedSplits):
    """One candidate, which leaves the cell whole. `key` is any key of the choice: its counts add up to the cell's."""

    key: RowKey
    bonus: int

    @property
    def candidates(self) -> int:
        return 1
