"""Cuts: how far each attribute is generalised.

A cut holds exactly one value on every path from the root of a taxonomy to its categories, or the intervals that an ordered
domain is divided into. It starts with one value for everything and is pushed down one specialisation at a time. Cuts are
public: they follow from the schema and from private choices alone.

Gaps that have a label of their own are one more leaf below the root of a taxonomy, and lie behind the last number. Gaps that
the schema drops are never told apart: they share the last value, whose name does not speak of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Ordered, Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema
from dpmine.language.candidates import even_starts
from dpmine.language.keys import LAST, Bins, Group, Groups, Key
from dpmine.language.splits import Specialise


@dataclass(frozen=True)
class CutValue:
    """A value of a cut: its name and the attribute's codes that it stands for."""

    name: str
    codes: tuple[int, ...]


class Cut:
    """The cut of one attribute. Values are counted from 0 in the order of the domain."""

    attribute: Nominal | Ordered

    def __len__(self) -> int:
        """The number of values."""
        raise NotImplementedError

    def key(self) -> Key | None:
        """The cut as a key whose labels are its values, or None while one value stands for everything."""
        raise NotImplementedError

    def values(self) -> tuple[CutValue, ...]:
        raise NotImplementedError

    def candidates(self) -> list[int]:
        """The values that can be specialised now."""
        raise NotImplementedError

    def children(self, value: int) -> int:
        """How many values would take the place of this one."""
        raise NotImplementedError

    def specialised(self, value: int) -> Cut:
        """The cut with a value replaced by its children."""
        raise NotImplementedError

    def candidate(self, value: int) -> Specialise:
        """The specialisation of a value, for a private choice."""
        key = self.specialised(value).key()
        assert key is not None
        return Specialise(key, tuple(range(value, value + self.children(value))))


@dataclass(frozen=True)
class NominalCut(Cut):
    """Nodes of a taxonomy, none above another and in its order; together they cover all categories."""

    attribute: Nominal
    nodes: tuple[TaxonomyNode, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    def key(self) -> Key | None:
        names = self._names()
        *groups, last = (Group(name, node.leaves()) for name, node in zip(names, self.nodes, strict=True))
        return Groups(self.attribute.name, tuple(groups), last.label, LAST) if groups else None

    def values(self) -> tuple[CutValue, ...]:
        pairs = zip(self._names(), self.nodes, strict=True)
        return tuple(CutValue(name, codes_under(node, self.attribute)) for name, node in pairs)

    def _names(self) -> list[str]:
        """The nodes' names; where two are the same, each with its categories, and with a number if that name is taken."""
        given = [node.name for node in self.nodes]
        return told_apart(
            [
                name if given.count(name) == 1 else f"{name} ({', '.join(node.leaves())})"
                for name, node in zip(given, self.nodes, strict=True)
            ]
        )

    def candidates(self) -> list[int]:
        return [place for place, node in enumerate(self.nodes) if len(children_of(node)) > 1]

    def children(self, value: int) -> int:
        return len(children_of(self.nodes[value]))

    def specialised(self, value: int) -> NominalCut:
        before, node, after = self.nodes[:value], self.nodes[value], self.nodes[value + 1 :]
        return replace(self, nodes=(*before, *children_of(node), *after))


@dataclass(frozen=True)
class NumericCut(Cut):
    """Intervals of an ordered domain, by their first codes, and the point at which each would be split, once it is known."""

    attribute: Ordered
    starts: tuple[int, ...]
    points: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def key(self) -> Bins | None:
        cuts = tuple(self.attribute.label(code) for code in self.starts[1:])
        return Bins(self.attribute.name, cuts, LAST) if cuts else None

    def values(self) -> tuple[CutValue, ...]:
        spans = zip(self.starts, (*self.starts[1:], self.attribute.size), strict=True)
        return tuple(CutValue(interval_name(self.attribute, *span), tuple(range(*span))) for span in spans)

    def candidates(self) -> list[int]:
        return [place for place, point in enumerate(self.points) if point is not None]

    def children(self, value: int) -> int:
        return 2

    def specialised(self, value: int) -> NumericCut:
        point = self.points[value]
        assert point is not None
        return self.split_at(value, point)

    def split_at(self, value: int, point: int) -> NumericCut:
        """The cut with one interval divided below that code."""
        starts = (*self.starts[: value + 1], point, *self.starts[value + 1 :])
        return replace(self, starts=starts, points=(*self.points[:value], None, None, *self.points[value + 1 :]))

    def with_points(self, points: dict[int, int]) -> NumericCut:
        """The cut with the split points of some intervals known."""
        return replace(self, points=tuple(points.get(place, known) for place, known in enumerate(self.points)))

    def divisible(self) -> list[int]:
        """The intervals that hold more than one grid point; gaps of their own are the last one."""
        return [place for place, (start, end) in enumerate(zip(self.starts, self._ends, strict=True)) if end - start > 1]

    def span(self, value: int) -> tuple[str, str]:
        """The first and the last grid point of an interval."""
        return self.attribute.label(self.starts[value]), self.attribute.label(self._ends[value] - 1)

    @property
    def _ends(self) -> tuple[int, ...]:
        """Before which code the points of each interval end."""
        return (*self.starts[1:], self.attribute.last_cut + 1)


def told_apart(names: Sequence[str]) -> list[str]:
    """Names of which those that stand there already get a number."""
    different: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in different or (candidate != name and candidate in names):
            candidate, number = f"{name} [{number}]", number + 1
        different.append(candidate)
    return different


def value_name(attribute: Single, codes: tuple[int, ...]) -> str:
    """A name for any set of an attribute's codes: an interval, a node of the taxonomy, or the categories themselves."""
    if isinstance(attribute, Ordered):
        return interval_name(attribute, codes[0], codes[-1] + 1)
    named = [code for code in codes if code != attribute.hidden_code]
    members = {attribute.label(code) for code in named}
    for node in taxonomy_of(attribute).nodes():
        if set(node.leaves()) == members:
            return node.name
    every = [attribute.label(code) for code in range(attribute.size) if code != attribute.hidden_code]
    others = [label for label in every if label not in members]
    if len(others) < len(members):
        return f"not {' or '.join(others)}"
    return " or ".join(map(attribute.label, named))


def interval_name(attribute: Ordered, first: int, end: int) -> str:
    """A name for the codes from a first one to before an end, the last of which may be that of gaps."""
    gap = f" or {MISSING}" if end == attribute.size and attribute.gap == OWN else ""
    if first == attribute.cells:
        return MISSING
    if end < attribute.cells:
        return f"{attribute.label(first)} to <{attribute.label(end)}"
    return f"{attribute.label(first)} to {attribute.written(attribute.value_point(attribute.values - 1))}{gap}"


def root_cut(attribute: Nominal | Ordered) -> Cut:
    """Everything under one value. Without a taxonomy the root's children are the categories themselves."""
    if isinstance(attribute, Ordered):
        return NumericCut(attribute, (0,), (None,))
    return NominalCut(attribute, (taxonomy_of(attribute),))


def finest_cut(attribute: Nominal) -> Cut:
    """Every category on its own."""
    return NominalCut(attribute, tuple(node for node in taxonomy_of(attribute).nodes() if not node.children))


def evenly_cut(attribute: Ordered, bins: int) -> Cut:
    """Intervals with as many grid points each, as evenly as possible (fewer where there are fewer points).

    Gaps that have a label of their own are one more.
    """
    starts = (*even_starts(attribute.cells, int(bins)), *([attribute.cells] if attribute.gap == OWN else []))
    return NumericCut(attribute, starts, (None,) * len(starts))


def predictors(schema: Schema) -> list[Nominal | Ordered]:
    """Every attribute but the class that can be generalised at all."""
    target = schema.require_class()
    single = [a for a in schema.attributes if isinstance(a, (Nominal, Ordered))]
    return [a for a in single if a.name != target]


def cut_nodes(attribute: Single) -> int:
    """How many values of an attribute can be specialised at most; of an ordered one, before it is divided."""
    return 1 if attribute.ordered else sum(bool(node.children) for node in taxonomy_of(attribute).nodes())


def combinations(cuts: Sequence[Cut], classes: int) -> int:
    """How many groups there are, with the class, empty or not."""
    product = classes
    for cut in cuts:
        product *= len(cut)
    return product


def taxonomy_of(attribute: Single) -> TaxonomyNode:
    """The attribute's taxonomy; without one, all its values below one root. The last may be that of gaps."""
    given = attribute.taxonomy if isinstance(attribute, Nominal) else None
    gap = (TaxonomyNode(MISSING),) if attribute.gap == OWN else ()
    if given is not None and (given.children or not gap):
        return TaxonomyNode(given.name, (*given.children, *gap)) if gap else given
    values = (*(TaxonomyNode(attribute.label(code)) for code in range(attribute.cells)), *gap)
    return values[0] if len(values) == 1 else TaxonomyNode(f"any {attribute.name}", values)


def codes_under(node: TaxonomyNode, attribute: Nominal) -> tuple[int, ...]:
    """The codes below a node of the attribute's taxonomy; dropped gaps are below the last category."""
    codes = [attribute.place(leaf) for leaf in node.leaves()]
    if attribute.gap == DROP:
        last = attribute.categories[-1] if attribute.taxonomy is None else _last_leaf(attribute.taxonomy)
        codes += [attribute.cells] if _last_leaf(node) == last else []
    return tuple(sorted(codes))


def _last_leaf(node: TaxonomyNode) -> str:
    while node.children:
        node = node.children[-1]
    return node.name


def children_of(node: TaxonomyNode) -> tuple[TaxonomyNode, ...]:
    """The children of a node; an only child gives way to its own, as the step to it would separate nothing."""
    while len(node.children) == 1 and node.children[0].children:
        (node,) = node.children
    return node.children
