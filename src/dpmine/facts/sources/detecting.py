"""How a text file seems to be written: for `schema draft`, which looks at the data anyway, and nothing else."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.sources.delimited import pieces
from dpmine.facts.sources.files import kind_of_file, matching_files, separator_of
from dpmine.facts.sources.lines import lines_of, opened, read_some

SEPARATORS = (",", ";", "\t", "|")
COMMENTS = ("#", "//", "%", "--")
MARKS = (
    *((".", ""), (".", ","), (",", ""), (",", ".")),
    *((".", mark) for mark in ("'", "\u2019", "_")),
    *((",", mark) for mark in (" ", "\u00a0", "\u202f", "'")),
    *((".", mark) for mark in (" ", "\u00a0", "\u202f")),
)
"""Decimal mark and thousands mark, the likelier ones first: 1,234 is a whole number."""
SAMPLE = 1 << 20  # bytes
MOST_SAMPLED = 2000  # lines
ENOUGH = 0.8  # of a column's values are numbers, if it is one of numbers
NUMBER = re.compile(r"\s*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?\s*")


def detected_rules(table: Any, given: Mapping[str, str]) -> ReadingRules:
    """Rules that fit the first file of a table; what is given stays as it is. Tables without lines of text need none."""
    stated = ReadingRules.parse(dict(given), "The draft")
    if not isinstance(table, (str, Path)):
        return stated
    path = matching_files(table)[0]
    kind = kind_of_file(path)
    found: dict[str, str] = dict(given)
    if kind not in ("csv", "jsonl"):
        return stated
    if "encoding" not in given:
        found["encoding"] = _encoding(path)
    if kind == "jsonl":
        return ReadingRules(**found)
    some = next(iter(lines_of(path, ReadingRules(**found), chunk=SAMPLE)))
    lines = [line for line in some.lines[:MOST_SAMPLED] if line]
    if "quote" not in given:
        found["quote"] = _quote(lines)
    usual = separator_of(path, stated)
    sep, width = _separator(lines, (given["sep"],) if "sep" in given else (usual, *SEPARATORS), found["quote"])
    if sep != usual:
        found["sep"] = sep
    if "comment" not in given:
        found["comment"] = _comment(lines, sep, found["quote"], width)
    rows = [pieces(line, sep, found["quote"])[0] for line in lines if not _is_comment(line, found["comment"])][1:]
    if not {"decimal", "thousands"} <= set(given):
        found |= _marks(rows, given)
    return ReadingRules(**found)


def told_of(rules: ReadingRules) -> str:
    """What a draft found, in one sentence; nothing where the defaults do."""
    found = ", ".join(f"{name} {text!r}" for name, text in rules.form().items())
    return f"The file is read with {found}." if found else ""


def looks_like_a_number(name: str) -> bool:
    """Whether a column's name is rather a value, of a file whose first line is a row already."""
    return NUMBER.fullmatch(name.replace(",", ".")) is not None


def _encoding(path: Path) -> str:
    """UTF-8 unless more lines are broken in it than hold letters beyond ASCII; then that of Western Windows."""
    good = bad = 0
    rest = b""
    with opened(path) as file:
        while read := read_some(file, SAMPLE, path):
            if not good and not bad and not rest and (wide := _wide(read)) is not None:
                return wide
            some, end, rest = (rest + read).rpartition(b"\n")
            good, bad = (known + more for known, more in zip((good, bad), _decodable(some + end), strict=True))
    good, bad = (known + more for known, more in zip((good, bad), _decodable(rest), strict=True))
    return "utf-8" if bad <= good else "cp1252"


def _wide(first: bytes) -> str | None:
    """UTF-16, by its mark or by the zeros in every other byte."""
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = first[place:4096:2]
        if half and half.count(0) > len(half) * 0.4:
            return name
    return None


def _decodable(text: bytes) -> tuple[int, int]:
    """How many lines beyond ASCII are UTF-8, and how many are not."""
    if text.isascii():
        return 0, 0
    beyond = [line for line in text.split(b"\n") if not line.isascii()]
    good = sum(_is_utf8(line) for line in beyond)
    return good, len(beyond) - good


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _quote(lines: Sequence[str]) -> str:
    if any('"' in line for line in lines):
        return '"'
    single = sum(line.startswith("'") or line.endswith("'") for line in lines)
    return "'" if single * 2 > len(lines) else '"'


def _separator(lines: Sequence[str], seps: Sequence[str], quote: str) -> tuple[str, int]:
    """The one that cuts most lines, and the header, into the same number of values; the first where none cuts."""
    best, sep, width = (0.0, 0), seps[0], 1
    header = next((line for line in lines if not line.startswith(COMMENTS)), "")
    for one in seps:
        counts = Counter(len(pieces(line, one, quote)[0]) for line in lines if one in line)
        if not counts:
            continue
        usual, agreeing = max(counts.items(), key=lambda item: (item[1], item[0]))
        named = usual in (len(pieces(header, one, quote)[0]), len(pieces(lines[0], one, quote)[0]))
        score = (round(agreeing / len(lines), 2) * (1.0 if named else 0.5), usual)
        if usual > 1 and score > best:
            best, sep, width = score, one, usual
    return sep, width


def _comment(lines: Sequence[str], sep: str, quote: str, width: int) -> str:
    """What begins lines that are no rows: none of them may look like one, so that no header is taken for a comment."""
    for mark in COMMENTS:
        marked = [line for line in lines if line.startswith(mark)]
        if marked and width > 1 and all(len(pieces(line, sep, quote)[0]) != width for line in marked):
            return mark
    return ""


def _is_comment(line: str, comment: str) -> bool:
    return bool(comment) and line.startswith(comment)


def _marks(rows: Sequence[Sequence[str]], given: Mapping[str, str]) -> dict[str, str]:
    """The marks under which most values stand in columns of numbers."""
    columns = [{text for text in column if text} for column in zip(*_same_width(rows), strict=True)]
    best, found = -1, {"decimal": ".", "thousands": ""}
    for decimal, thousands in MARKS:
        marks = {"decimal": decimal, "thousands": thousands}
        if any(given.get(name, mark) != mark for name, mark in marks.items()):
            continue
        rules = ReadingRules(**marks)
        fitting = [sum(NUMBER.fullmatch(rules.plain_number(text)) is not None for text in column) for column in columns]
        score = sum(
            count for count, column in zip(fitting, columns, strict=True) if column and count >= ENOUGH * len(column)
        )
        if score > best:
            best, found = score, marks
    return found | {name: given[name] for name in found if name in given}


def _same_width(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    usual = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))[0] if rows else 0
    return [row for row in rows if len(row) == usual]
