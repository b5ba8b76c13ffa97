"""Columns with numbered names, such as visit_1 to visit_6, are drafted as one kind together."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmine.facts.kinds.columns import ColumnInHand, Proposal
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.sources import Source

Proposals = Mapping[str, Proposal[Any]]
NUMBERED = re.compile(r"(.*?)[\s_.\-]*(\d+)", re.DOTALL)
ALIKE = 10  # bounds of siblings are shared where none is so many times as wide as another
FEW_MORE = 2  # categories that a sibling may lack


def with_siblings_alike(source: Source, proposals: Proposals, propose: Callable[[ColumnInHand], Proposal[Any]]) -> Proposals:
    """The proposals, where siblings have the kind, the bounds and the categories of all their values together."""
    single = {name: item for name, item in proposals.items() if isinstance(item.attribute, (Numeric, Nominal))}
    together = dict(proposals)
    for names in _families(list(single)):
        joint = propose(ColumnInHand(source, names[0], tuple(names)))
        if joint.attribute is not None and _are_alike(joint.attribute, [single[name].attribute for name in names]):
            why = f"{joint.why}; one kind with {names[0]} to {names[-1]}"
            together |= {name: replace(joint, attribute=replace(joint.attribute, name=name), why=why) for name in names}
    return together


def _families(names: Sequence[str]) -> list[list[str]]:
    """Names that differ in the number at their end alone, by number."""
    families: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        found = NUMBERED.fullmatch(name)
        if found is not None and len(found[2]) < 10:
            families.setdefault(found[1].lower(), []).append((int(found[2]), name))
    return [[name for _, name in sorted(family)] for family in families.values() if len(family) > 1]


def _are_alike(joint: Numeric | Nominal, alone: Sequence[Any]) -> bool:
    if isinstance(joint, Nominal):
        sizes = [item.cells for item in alone if isinstance(item, Nominal)]
        return len(sizes) == len(alone) and 2 * joint.cells <= 3 * max(sizes) + FEW_MORE
    widths = [item.high - item.low for item in alone if isinstance(item, Numeric)]
    return bool(widths) and joint.high - joint.low <= ALIKE * min(widths)
