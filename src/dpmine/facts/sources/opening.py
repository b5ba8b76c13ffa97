"""Finds the source of whatever a caller names as a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmine.facts.sources.files import FileSource
from dpmine.facts.sources.frames import FrameSource
from dpmine.facts.sources.source import Source


def open_source(table: Any) -> Source:
    """A file path or glob pattern, or a pandas, Polars or Arrow frame (or anything narwhals knows, or a dict of columns)."""
    if isinstance(table, (str, Path)):
        return FileSource(table)
    return table if isinstance(table, FrameSource) else FrameSource(table)


@contextmanager
def reading(table: Any) -> Iterator[Source]:
    """A table's source for as long as it is read: what is opened for this is closed, also when reading fails."""
    source = open_source(table)
    try:
        yield source
    finally:
        if isinstance(source, FileSource):
            source.close()
