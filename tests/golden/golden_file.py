"""The file of golden values: every entry in order of its name, laid out so that a change reads well in a diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_accounts
import golden_commands
import golden_models
import golden_questions
from golden_world import ENTRIES, ON_DUCKDB, Computed, computed

FILE = Path(__file__).with_name("golden_values.json")
WIDTH = 120
LISTED = (golden_questions, golden_models, golden_accounts, golden_commands)
"""Where entries are declared: to import a module is to have its entries."""

__all__ = ["ENTRIES", "FILE", "LISTED", "ON_DUCKDB", "Computed", "computed", "difference", "readable", "recorded"]


def recorded() -> dict[str, Any]:
    """The golden values as the file has them."""
    form: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return form


def readable(form: Any, indent: int = 0, before: int = 0) -> str:
    """JSON text: what fits a line is on one line, and long lists of plain items fill their lines."""
    short = json.dumps(form, ensure_ascii=False)
    if indent + before + len(short) <= WIDTH or not isinstance(form, (dict, list)) or not form:
        return short
    deeper = " " * (indent + 1)
    if isinstance(form, dict):
        heads = [json.dumps(name, ensure_ascii=False) + ": " for name in form]
        parts = [head + readable(item, indent + 1, len(head)) for head, item in zip(heads, form.values(), strict=True)]
        return "{\n" + ",\n".join(deeper + part for part in parts) + "\n" + " " * indent + "}"
    if any(isinstance(item, (dict, list, str)) for item in form):
        parts = [readable(item, indent + 1) for item in form]
    else:
        parts = _filled([json.dumps(item) for item in form], WIDTH - indent - 1)
    return "[\n" + ",\n".join(deeper + part for part in parts) + "\n" + " " * indent + "]"


def _filled(items: list[str], width: int) -> list[str]:
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + 2 + len(item) < width:
            lines[-1] += ", " + item
        else:
            lines.append(item)
    return lines


def difference(before: Any, now: Any, where: str) -> str:
    """The first place at which two forms differ, in words; empty if they are equal."""
    if type(before) is type(now) and isinstance(before, dict):
        for name in [*before, *(name for name in now if name not in before)]:
            if name not in now or name not in before:
                return f"{where}: {name!r} {'is gone' if name not in now else 'is new'}"
            if found := difference(before[name], now[name], f"{where}, {name}"):
                return found
        return ""
    if type(before) is type(now) and isinstance(before, list):
        if len(before) != len(now):
            return f"{where}: {len(before)} items on file, {len(now)} now"
        inside = (
            difference(old, new, f"{where}[{place}]") for place, (old, new) in enumerate(zip(before, now, strict=True))
        )
        return next(filter(None, inside), "")
    return "" if before == now and type(before) is type(now) else f"{where}: {before!r} on file, {now!r} now"
