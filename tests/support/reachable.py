"""What can be reached from an object, and what no fitted model may lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpmine.facts.sources import FrameSource
from dpmine.owner import DataSet
from dpmine.owner.local_executor import LocalExecutor
from dpmine.tables.private_table import PrivateTable

SECRETS = (PrivateTable, LocalExecutor, DataSet, FrameSource)
TRUSTED = ("dpmine.kernel", "dpmine.engines")


def reached_from(thing: Any) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached by items, attributes, array bases, closures and bound methods, with the path to it."""
    waiting, seen, kept = [("", thing)], set(), []
    while waiting:
        path, found = waiting.pop()
        if id(found) in seen or isinstance(found, type) or type(found).__name__ == "module":
            continue
        seen.add(id(found))
        kept.append(found)  # else another object may get its address
        yield path, found
        waiting += [(f"{path}{step}", item) for step, item in _held_by(found)]


def _held_by(found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, dict):
        yield from ((f"[{str(key)[:20]}]", item) for key, item in found.items())
    elif isinstance(found, list | tuple | set | frozenset):
        yield from ((f"[{place}]", item) for place, item in enumerate(found))
    elif isinstance(found, np.ndarray):
        yield ".base", found.base
    yield from ((f".{name}", item) for name, item in getattr(found, "__dict__", {}).items())
    slots = [name for kind in type(found).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    yield from ((f".{name}", getattr(found, name)) for name in slots if hasattr(found, name))
    if getattr(found, "__self__", None) is not None:
        yield ".__self__", found.__self__
    for place, cell in enumerate(getattr(found, "__closure__", None) or ()):
        yield f" closes over {place}", cell.cell_contents


def leaks(model: Any, rows: int, *working: type) -> list[str]:
    """Paths to what no model may hold: the table, what stands behind the door, what its fit worked on, its number of rows.

    `rows` is a number that nothing else has.
    """
    found = []
    for path, thing in reached_from(model):
        long = isinstance(thing, np.ndarray | list | tuple | dict) and len(thing) >= rows
        if long or isinstance(thing, (*SECRETS, *working)) or type(thing).__module__.startswith(TRUSTED):
            found.append(path)
        if isinstance(thing, int) and not isinstance(thing, bool) and thing == rows:
            found.append(path)
    return found
