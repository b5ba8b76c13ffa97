"""Finds the source of whatever a caller names as a table."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmine.base.errors import OwnerWarning
from dpmine.facts.reading_rules import DEFAULT_RULES, ReadingRules
from dpmine.facts.sources.files import FileSource
from dpmine.facts.sources.frames import FrameSource
from dpmine.facts.sources.source import Source


def open_source(table: Any, rules: ReadingRules = DEFAULT_RULES, names: Sequence[str] | None = None) -> Source:
    """A file path or glob pattern, or a pandas, Polars or Arrow frame (or anything narwhals knows, or a dict of columns).

    Text in files is read by `rules`, and JSON lines for the columns that are named.
    """
    if isinstance(table, (str, Path)):
        return FileSource(table, rules, names=names)
    return table if isinstance(table, FrameSource) else FrameSource(table)


@contextmanager
def reading(table: Any, rules: ReadingRules = DEFAULT_RULES, names: Sequence[str] | None = None) -> Iterator[Source]:
    """A table's source for as long as it is read: what is opened for this is closed, also when reading fails."""
    source = open_source(table, rules, names)
    try:
        yield source
    finally:
        if isinstance(source, FileSource):
            source.close()


def tell_owner(source: Source, *, stacklevel: int = 2) -> None:
    """Warn whoever opens a table of lines that were not read as they stand."""
    for sentence in source.lines.sentences():
        warnings.warn(f"For the owner only: {sentence}", OwnerWarning, stacklevel=stacklevel + 1)
