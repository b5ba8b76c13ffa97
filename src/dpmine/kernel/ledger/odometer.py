"""The odometer: what all queries so far cost together, with sequential and parallel composition.

Spending forms a tree. Under one root (a table version and a schema) a node is a view; a view costs

    its own queries  +  the sum over its `where` views  +  for each partition of it the maximum over the cells.

Only totals are kept, one integer for every view and every partition, so a charge touches just the nodes on its way up.
docs/proofs.md#odometer shows why the total at a root bounds the privacy loss of one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from dpmine.base.errors import LedgerTampered, RequestError
from dpmine.base.wire import value_hash
from dpmine.codes.queries import ResolvedQuery
from dpmine.codes.rows import Branch, Enter, Keep, RowKey, RowRules, is_small

Totals = MutableMapping[str, int]
VIEWS = ("view", "where", "cell")  # what can be asked, narrowed and partitioned


class Charged(NamedTuple):
    """A node of a charge: the view that it starts from, a narrowing, a partition, or one of its cells."""

    parent: int
    """The place of its parent in the charge; its own place for the first."""
    kind: str
    name: str
    own: int
    """The units of queries asked right here. Partitions are never asked, only their cells."""


@dataclass(frozen=True)
class Charge:
    """What one query adds at a view and at views below it: nodes, each after its parent.

    A flat list, because views are a hundred steps deep: nothing that reads or adds a charge needs a deep stack.
    """

    nodes: tuple[Charged, ...] = (Charged(0, "view", "", 0),)

    def __post_init__(self) -> None:
        """Refuse what would lower a total, or count a node's cells apart: whoever made it, it would mint budget."""
        if not self.nodes or self.nodes[0][:3] != (0, "view", ""):
            raise RequestError("A charge begins with the view that it is charged to.")
        seen = set()
        for place, node in enumerate(self.nodes):
            if type(node.own) is not int or node.own < 0 or (node.own and node.kind not in VIEWS):
                raise RequestError("A charge is a whole number of units, of a view, and never negative.")
            if place == 0:
                continue
            if type(node.name) is not str or not 0 <= node.parent < place:
                raise RequestError("A charge lists every node after its parent.")
            fits = ("cell",) if self.nodes[node.parent].kind == "partition" else ("where", "partition")
            if node.kind not in fits or node[:3] in seen:
                raise RequestError("A charge names views, their partitions and the cells of these, each once.")
            seen.add(node[:3])

    def times(self, factor: int) -> Charge:
        """The same for a protected unit that owns so many rows: what each of them loses adds up."""
        return Charge(tuple(node._replace(own=node.own * factor) for node in self.nodes))

    def form(self) -> list[Any]:
        """Plain lists for the ledger's log; `from_form` is the inverse."""
        return [list(node) for node in self.nodes]

    @classmethod
    def from_form(cls, form: Any) -> Charge:
        try:
            return cls(tuple(Charged(*node) for node in form))
        except (TypeError, RequestError):
            raise LedgerTampered("The ledger holds a charge that cannot be read.") from None

    def names(self, root: str) -> list[str]:
        """What each node is called in the odometer, below that root: what adding the charge reads."""
        names: list[str] = []
        for node in self.nodes:
            names.append(root if node.kind == "view" else _node(names[node.parent], node.kind, node.name))
        return names


def charge_of(plan: ResolvedQuery) -> Charge:
    """The charge of a plan: each leaf cell's epsilon at the view that the leaf's path names.

    What all cells of a partition pay alike is charged once, to the view that it splits: the totals above are the same then
    and ever after (docs/proofs.md#odometer), and a short request for many cells stays a short charge.
    """
    nodes = [Charged(0, "view", "", 0)]
    named: dict[int, str] = {}  # by identity: to compare large keys takes time

    def name_of(key: RowKey) -> str:
        if id(key) not in named:
            named[id(key)] = _key_name(key)
        return named[id(key)]

    def below(parent: int, kind: str, name: str) -> int:
        nodes.append(Charged(parent, kind, name, 0))
        return len(nodes) - 1

    here = 0
    for step in plan.cells.steps:
        if isinstance(step, Keep):
            here = below(here, "where", value_hash(step.test))
        else:
            assert isinstance(step, Enter)
            here = below(below(here, "partition", name_of(step.key)), "cell", str(step.index))
    units = iter(plan.units)
    split: list[tuple[int, list[int]]] = []  # views with all cells of a partition of theirs
    own: dict[int, int] = {}
    waiting: list[tuple[int, RowRules | None]] = [(here, plan.cells.rules)]
    while waiting:
        here, rules = waiting.pop()
        if isinstance(rules, Branch):
            partition = below(here, "partition", name_of(rules.key))
            cells = [(below(partition, "cell", str(index)), child) for index, child in enumerate(rules.children)]
            split.append((here, [cell for cell, _ in cells]))
            waiting += reversed(cells)  # leaves come in the order of their units
        else:
            own[here] = next(units)
    for view, places in reversed(split):  # from the deepest cells up
        own[view] = min(own[place] for place in places)
        for place in places:
            own[place] -= own[view]
    return Charge(_paid([node._replace(own=own.get(place, 0)) for place, node in enumerate(nodes)]))


def _paid(nodes: list[Charged]) -> tuple[Charged, ...]:
    """Only what is charged, and what lies above it: cells at epsilon 0 are not asked."""
    keeps = [node.own != 0 for node in nodes]
    for place in range(len(nodes) - 1, 0, -1):
        keeps[nodes[place].parent] |= keeps[place]
    keeps[0] = True
    kept = [place for place, keep in enumerate(keeps) if keep]
    renumbered = {place: number for number, place in enumerate(kept)}
    return tuple(nodes[place]._replace(parent=renumbered[nodes[place].parent]) for place in kept)


def _key_name(key: RowKey) -> str:
    return _small_name(key) if is_small(key) else value_hash(key)


@lru_cache(maxsize=4096)
def _small_name(key: RowKey) -> str:
    """Large trees cut at the same places again and again."""
    return value_hash(key)


def root_node(version: str, schema_fingerprint: str, encoding: str) -> str:
    """Each table version, schema and way of reading rows into codes is a root of its own, and roots add up.

    Cells are disjoint only as long as a row has the same codes: read otherwise, it may be in another cell.
    """
    return _node("root", version, schema_fingerprint, encoding)


def add_charge(totals: Totals, root: str, charge: Charge) -> int:
    """Add a charge below `root`, update every total on its way, and return the increase at `root`.

    From the last node to the first: whatever lies below a node has been added when its own turn comes.
    """
    names = charge.names(root)
    increases = [node.own for node in charge.nodes]  # of a partition: how much its dearest cell rose
    dearest: dict[int, int] = {}
    for place in range(len(charge.nodes) - 1, -1, -1):
        node, before = charge.nodes[place], totals.get(names[place], 0)
        if node.kind == "partition":
            increases[place] = max(dearest.get(place, 0) - before, 0)
        totals[names[place]] = before + increases[place]
        if node.kind == "cell":
            dearest[node.parent] = max(dearest.get(node.parent, 0), totals[names[place]])
        elif place:
            increases[node.parent] += increases[place]
    return increases[0]


def _node(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        text = part.encode()
        digest.update(len(text).to_bytes(4, "big") + text)
    return digest.hexdigest()
