"""The odometer: what all queries so far cost together, with sequential and parallel composition.

Spending forms a tree. Under one root (a table version and a schema) a node is a view; a view costs

    its own queries  +  the sum over its `where` views  +  for each partition of it the maximum over the cells.

Only totals are kept, one integer for every view and every partition, so a charge touches just the nodes on its way up.
docs/proofs.md#odometer shows why the total at a root bounds the privacy loss of one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from dpmine.errors import LedgerTampered
from dpmine.plans import Branch, Cells, Enter, Keep, Plan, RowKey, RowRules
from dpmine.values import value_hash

Totals = MutableMapping[str, int]


@dataclass
class Charge:
    """What one query adds at a view: its own units, and charges at views below it."""

    own: int = 0
    wheres: dict[str, Charge] = field(default_factory=dict)
    partitions: dict[str, dict[int, Charge]] = field(default_factory=dict)

    def form(self) -> list[Any]:
        """Plain lists for the ledger's log; `from_form` is the inverse."""
        return [
            self.own,
            {name: charge.form() for name, charge in self.wheres.items()},
            {name: {str(i): charge.form() for i, charge in cells.items()} for name, cells in self.partitions.items()},
        ]

    @classmethod
    def from_form(cls, form: Any) -> Charge:
        try:
            own, wheres, partitions = form
            charge = cls(
                int(own),
                {name: cls.from_form(inner) for name, inner in wheres.items()},
                {name: {int(i): cls.from_form(inner) for i, inner in cells.items()} for name, cells in partitions.items()},
            )
        except (TypeError, ValueError, AttributeError):
            raise LedgerTampered("The ledger holds a charge that cannot be read.") from None
        if charge.own < 0:
            raise LedgerTampered("The ledger holds a negative charge.")
        return charge


def charge_of(plan: Plan) -> Charge:
    """The charge of a plan: each leaf cell's epsilon at the view that the leaf's path names."""
    units = iter(plan.units)
    return _charge_below(plan.cells, 0, units)


def _charge_below(cells: Cells, depth: int, units: Iterator[int]) -> Charge:
    if depth == len(cells.steps):
        return _charge_rules(cells.rules, units)
    step = cells.steps[depth]
    inner = _charge_below(cells, depth + 1, units)
    if isinstance(step, Keep):
        return Charge(wheres={value_hash(step.test): inner})
    assert isinstance(step, Enter)
    return Charge(partitions={_key_name(step.key): {step.index: inner}})


def _charge_rules(rules: RowRules | None, units: Iterator[int]) -> Charge:
    if rules is None:
        return Charge(own=next(units))
    assert isinstance(rules, Branch)
    children = {index: _charge_rules(child, units) for index, child in enumerate(rules.children)}
    paid = {index: charge for index, charge in children.items() if charge.own or charge.partitions}
    return Charge(partitions={_key_name(rules.key): paid}) if paid else Charge()


@lru_cache(maxsize=4096)
def _key_name(key: RowKey) -> str:
    """Large trees cut at the same places again and again."""
    return value_hash(key)


def root_node(version: str, schema_fingerprint: str, encoding: str) -> str:
    """Each table version, schema and way of reading rows into codes is a root of its own, and roots add up.

    Cells are disjoint only as long as a row has the same codes: read otherwise, it may be in another cell.
    """
    return _node("root", version, schema_fingerprint, encoding)


def nodes_of(root: str, charge: Charge) -> Iterator[str]:
    """Every node that adding the charge reads: what a ledger must fetch first."""
    yield root
    for name, inner in charge.wheres.items():
        yield from nodes_of(_node(root, "where", name), inner)
    for name, cells in charge.partitions.items():
        partition = _node(root, "partition", name)
        yield partition
        for index, inner in cells.items():
            yield from nodes_of(_node(partition, "cell", str(index)), inner)


def add_charge(totals: Totals, root: str, charge: Charge) -> int:
    """Add a charge below `root`, update every total on its way, and return the increase at `root`."""
    increase = charge.own
    for name, inner in charge.wheres.items():
        increase += add_charge(totals, _node(root, "where", name), inner)
    for name, cells in charge.partitions.items():
        partition = _node(root, "partition", name)
        before = totals.get(partition, 0)
        after = before
        for index, inner in cells.items():
            cell = _node(partition, "cell", str(index))
            add_charge(totals, cell, inner)
            after = max(after, totals.get(cell, 0))
        totals[partition] = after
        increase += after - before
    totals[root] = totals.get(root, 0) + increase
    return increase


def _node(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        text = part.encode()
        digest.update(len(text).to_bytes(4, "big") + text)
    return digest.hexdigest()
