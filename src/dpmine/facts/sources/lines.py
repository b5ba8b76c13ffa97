"""The lines of text files, decoded: a byte that cannot be decoded spoils its own line and no other.

Lines end with a line feed, a carriage return, or both. Bytes that are no text in the encoding are read as U+FFFD.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from dpmine.base.errors import DataError
from dpmine.facts.reading_rules import SEVERAL_BYTES, ReadingRules

CHUNK = 1 << 22
MOST_BYTES_IN_A_LINE = 1 << 26
UNDECODED = "\udcff"  # no decoder makes this of bytes by itself


class Lines(NamedTuple):
    """Some lines of a file, in order, without their ends."""

    lines: list[str]
    undecoded: int
    """How many of them had bytes that are no text."""
    last: bool


def lines_of(path: Path, rules: ReadingRules, *, chunk: int = CHUNK, marked: bool = False) -> Iterator[Lines]:
    """A file's lines, many at a time; `marked` leaves UNDECODED where there was no text."""
    with opened(path) as file:
        encoding, rest = _begin(file, rules.encoding, path)
        while True:
            read = read_some(file, max(chunk, 4), path)
            rest += read
            last = not read
            end = len(rest) if last else _end_of_lines(rest, encoding)
            if end or last:
                yield _decoded(rest[:end], encoding, last=last, marked=marked)
                rest = rest[end:]
            if last:
                return
            if len(rest) > MOST_BYTES_IN_A_LINE:
                raise DataError(f"Cannot read {str(path)!r} as a table: it has a line of more than 64 MiB.")


def opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The bytes of a file, decompressed where its name says so."""
    name = path.name.lower()
    try:
        if name.endswith(".gz"):
            return gzip.open(path, "rb")
        return _zstd(path) if name.endswith(".zst") else path.open("rb")
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r} as a table: {error.strerror or 'it cannot be opened'}.") from None


def _zstd(path: Path) -> IO[bytes]:
    import importlib

    for name in ("compression.zstd", "zstandard", "backports.zstd"):
        try:
            made: IO[bytes] = importlib.import_module(name).open(path, "rb")
        except ImportError:
            continue
        return made
    raise DataError(f"Cannot read {str(path)!r}: .zst needs Python 3.14 or the package zstandard. Unpack it, or use .gz.")


def read_some(file: IO[bytes] | gzip.GzipFile, size: int, path: Path) -> bytes:
    """The next bytes, or one sentence."""
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        reason = (
            "it is damaged or cut off"
            if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile))
            else "it cannot be read"
        )
        raise DataError(f"Cannot read {str(path)!r} as a table: {reason}.") from None


def _begin(file: IO[bytes] | gzip.GzipFile, encoding: str, path: Path) -> tuple[str, bytes]:
    """The encoding that the file begins with, and its first bytes without a byte order mark. No row has a say in it."""
    first = read_some(file, 3 if encoding == "utf-8" else 2 if encoding.startswith("utf-16") else 0, path)
    if encoding == "utf-8":
        return encoding, b"" if first == codecs.BOM_UTF8 else first
    if encoding == "utf-16":
        if first == codecs.BOM_UTF16_BE:
            return "utf-16-be", b""
        return "utf-16-le", b"" if first == codecs.BOM_UTF16_LE else first
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding)
    return encoding, b"" if first == mark else first


def _end_of_lines(text: bytes, encoding: str) -> int:
    """How many bytes end with a whole line: after the last line feed, or else after a carriage return."""
    for sign in "\n", "\r":
        mark = sign.encode(encoding)
        place = len(text)
        while (place := text.rfind(mark, 0, place + len(mark) - 1)) >= 0:
            end = place + len(mark)
            if place % len(mark) == 0 and (sign == "\n" or end < len(text) - len(mark)):
                return end
    return 0


def _decoded(text: bytes, encoding: str, *, last: bool, marked: bool) -> Lines:
    """Line by line where a line end could be taken for the end of a broken character."""
    undecoded = 0
    try:
        whole = text.decode(encoding)
    except UnicodeDecodeError:
        if encoding in SEVERAL_BYTES:
            whole = "\n".join(
                "\r".join(piece.decode(encoding, "dpmine") for piece in line.split(b"\r")) for line in text.split(b"\n")
            )
        else:
            whole = text.decode(encoding, "dpmine")
    if "\r" in whole:
        whole = whole.replace("\r\n", "\n").replace("\r", "\n")
    lines = whole.split("\n")
    if not lines[-1]:
        lines.pop()
    if UNDECODED in whole:
        undecoded = sum(UNDECODED in line for line in lines)
        lines = lines if marked else whole.replace(UNDECODED, "\ufffd").split("\n")[: len(lines)]
    return Lines(lines, undecoded, last)


def _mark(error: Any) -> tuple[str, int]:
    return UNDECODED, error.end


codecs.register_error("dpmine", _mark)
