"""Tables as their owners have them: text and Parquet files, pandas, Polars and Arrow frames, dicts of columns."""

from dpmine.facts.sources.files import FileSource
from dpmine.facts.sources.frames import FrameSource
from dpmine.facts.sources.opening import open_source, reading, tell_owner
from dpmine.facts.sources.source import Source, require_columns, require_persons

__all__ = [
    "FileSource",
    "FrameSource",
    "Source",
    "open_source",
    "reading",
    "require_columns",
    "require_persons",
    "tell_owner",
]
