"""Families of candidate splits, as they are asked."""

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.rows import Recode
from dpmine.codes.runs import stretches
from dpmine.codes.splits import (
    MOST_BONUS,
    ResolvedMultiway,
    ResolvedSpecialise,
    ResolvedSplits,
    ResolvedStay,
    ResolvedSubsets,
    ResolvedThresholds,
)
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.kind import DROP, MISSING
from dpmine.language.keys import Key
from dpmine.language.resolver import Resolver


class Splits:
    """A family of candidate splits.

    Under the exponential mechanism each family has the same share of the base measure, shared evenly by its candidates;
    permute-and-flip counts every candidate of every family once.
    """

    def resolve(self, resolver: Resolver) -> ResolvedSplits:
        raise NotImplementedError


@value("multiway")
class Multiway(Splits):
    """One candidate: split by every label of the key."""

    key: Key

    def resolve(self, resolver: Resolver) -> ResolvedMultiway:
        return ResolvedMultiway(resolver.key(self.key))


@value("thresholds")
class Thresholds(Splits):
    """Two-way splits of an ordered attribute at every grid point above `low` and up to `high` (default: the domain).

    Gaps lie behind every number and go to the right. The last split tells them from all numbers, if they have a label of
    their own.
    """

    attribute: str
    low: str | None = None
    high: str | None = None

    def codes(self, schema: Facts) -> range:
        """A candidate at code c sends the codes below c to the left."""
        attribute = schema.ordered(self.attribute, "it has no thresholds")
        first = 1  # a split at the lowest point would send nothing to the left
        if self.low is not None:
            first = max(attribute.codes_of(self.low)[1], first)
        last = attribute.last_cut
        if self.high is not None:
            last = min(attribute.floor_code(attribute.number(self.high)), last)
        if first > last:
            raise RequestError(f"No grid point of {self.attribute!r} lies between the given low and high.")
        return range(first, last + 1)

    def resolve(self, resolver: Resolver) -> ResolvedThresholds:
        codes = self.codes(resolver.schema)
        key = resolver.attribute(self.attribute)
        return ResolvedThresholds(key, 0, key.size, codes.start, len(codes))


@value("subsets")
class Subsets(Splits):
    """Two-way splits of a nominal attribute: each listed set of categories against the others, and gaps with those.

    "(missing)" is one more category where the schema gives gaps a label of their own.
    """

    attribute: str
    subsets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.subsets, tuple) or not all(isinstance(members, tuple) for members in self.subsets):
            raise RequestError(
                f"Subsets of {self.attribute!r} are a tuple of tuples of categories. Got {self.subsets!r:.60}."
            )
        if not self.subsets:
            raise RequestError(f"Subsets of {self.attribute!r}: list at least one.")
        if any(len(set(members)) != len(members) for members in self.subsets):
            raise RequestError(f"Subsets of {self.attribute!r}: a subset names a category twice.")

    def resolve(self, resolver: Resolver) -> ResolvedSubsets:
        attribute = resolver.schema.nominal(self.attribute, "use thresholds")
        subsets = []
        for members in self.subsets:
            codes_of_members = tuple(sorted({attribute.place(member) for member in members}))
            if attribute.gap == DROP and MISSING in members:
                raise RequestError(f"The schema drops gaps of {self.attribute!r}: no split tells them from the other rows.")
            if not 0 < len(codes_of_members) < (attribute.cells if attribute.gap == DROP else attribute.size):
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

    def resolve(self, resolver: Resolver) -> ResolvedSpecialise:
        """Children as codes of the attribute itself, so that all specialisations of it read the same counts."""
        cut = resolver.key(self.key)
        if not isinstance(cut, Recode):
            raise RequestError("A specialisation is of one attribute: give its cut as bins or groups.")
        children: dict[int, list[tuple[int, int]]] = {label: [] for label in self.labels}
        for first, end, label in stretches(cut, resolver.schema.single(cut.attribute).size):
            if label in children:
                children[label].append((first, end))
        if not all(children.values()):
            raise RequestError(f"A specialisation of {cut.attribute!r} has a child that holds no value.")
        return ResolvedSpecialise(resolver.attribute(cut.attribute), tuple(map(tuple, children.values())))


@value("divide")
class Divide(Splits):
    """Two-way splits of one interval of an ordered attribute, from grid point `first` to `last`, at every point inside it.

    Like `Specialise`, of all points at once: rows outside the interval do not count. "(missing)" is the last point where
    gaps have a label of their own; dropped gaps go with the last number, and to the right.
    """

    attribute: str
    first: str
    last: str

    def codes(self, schema: Facts) -> range:
        """The codes of the interval; a candidate at code c sends the codes below c to the left."""
        attribute = schema.ordered(self.attribute, "it cannot be divided")
        ends = [min(attribute.floor_code(attribute.number(text)), attribute.last_cut) for text in (self.first, self.last)]
        if ends[0] >= ends[1]:
            raise RequestError(f"An interval of {self.attribute!r} needs at least two grid points to be divided.")
        return range(ends[0], ends[1] + 1)

    def resolve(self, resolver: Resolver) -> ResolvedThresholds:
        codes, attribute = self.codes(resolver.schema), resolver.schema.single(self.attribute)
        end = attribute.size if codes.stop == attribute.cells and attribute.gap == DROP else codes.stop
        return ResolvedThresholds(resolver.attribute(self.attribute), codes.start, end, codes.start + 1, len(codes) - 1)


@value("stay")
class Stay(Splits):
    """One candidate: no split. Its score is that of the whole cell plus a public bonus in units of the score (rows).

    So a tree stops where no split gains more than the bonus, without asking how many rows there are.
    """

    bonus: int

    def __post_init__(self) -> None:
        if type(self.bonus) is not int or not 0 <= self.bonus <= MOST_BONUS:
            raise RequestError(f"The bonus of staying is a whole number between 0 and {MOST_BONUS}. Got {self.bonus}.")

    def beside(self, family: ResolvedSplits) -> ResolvedStay:
        """Staying whole, in a choice that has this family too: its counts tell what the whole cell holds."""
        return ResolvedStay(family.key, self.bonus)
