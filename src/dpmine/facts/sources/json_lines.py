"""Rows of JSON lines: every line is its own object, and its keys are columns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dpmine.base.errors import DataError
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.sources.lines import lines_of
from dpmine.facts.sources.lines_read import NO_OBJECT, NOT_DECODED, Flat, LinesRead
from dpmine.facts.value_texts import list_of_texts, text_of_value


def keys_of(paths: Sequence[Path], rules: ReadingRules) -> list[str]:
    """All keys, in the order in which they come: for drafts, which look at rows anyway."""
    keys: dict[str, None] = {}
    for path in paths:
        for some in lines_of(path, rules):
            for line in some.lines:
                keys |= dict.fromkeys(map(_unicode, _object(line) or {}))
    if not keys:
        raise DataError(f"Cannot read {str(paths[0])!r} as a table: none of its lines is a JSON object with keys.")
    return list(keys)


def rows_of(path: Path, rules: ReadingRules, names: Sequence[str], told: LinesRead) -> Iterator[Flat]:
    """The texts of the named columns' values, many rows at a time."""
    for some in lines_of(path, rules):
        if some.undecoded:
            told.in_part[NOT_DECODED.format(encoding=rules.encoding)] += some.undecoded
        found = [_object(line) for line in some.lines if not line.isspace() and line]
        rows = [row for row in found if row is not None]
        if len(rows) < len(found):
            told.left_out[NO_OBJECT] += len(found) - len(rows)
        told.rows += len(rows)
        yield [_text(row.get(name)) for row in rows for name in names]


def json_list(text: str | None, separator: str) -> list[str]:
    """A value of JSON lines as a list of texts: the text of a JSON list is one, any other is cut at the separator."""
    if text is not None and text.startswith("["):
        try:
            return list_of_texts(json.loads(text), separator)
        except (ValueError, RecursionError):
            pass
    return list_of_texts(text, separator)


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str | None:
    text = text_of_value(value)
    return None if text is None else _unicode(text)


def _unicode(text: str) -> str:
    """Halves of characters, which JSON can spell, are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
