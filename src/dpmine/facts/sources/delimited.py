"""Rows of delimited text, by public rules that look at a line alone, and at those after it only where a quote is open.

- Empty lines and lines that begin with the comment mark are no rows.
- A value that begins with a quote ends with the next quote that is not doubled; elsewhere quotes are characters.
- A quote may stay open over line ends only if it is closed within MOST_LINES lines, what comes after each closing quote is a
  separator or a line end, and the lines make as many values as there are columns. Otherwise its first line is left out,
  by itself, and the next line is read anew: no line swallows the rest of a file.
- Where a line has fewer values than there are columns the rest are missing; more are dropped. Empty ones more say nothing.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from dpmine.base.errors import DataError
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.sources.lines import UNDECODED, lines_of
from dpmine.facts.sources.lines_read import NOT_CLOSED, NOT_DECODED, TOO_FEW, TOO_MANY, Flat, LinesRead

MOST_LINES = 1000
FIRST_BYTES = 1 << 16  # of a file, read for its header

Row = list[str]


def header_of(path: Path, sep: str, rules: ReadingRules) -> list[str]:
    """The names of the columns: those of the first line that is neither empty nor a comment."""
    refused = f"Cannot read {str(path)!r} as a table: "
    line = next((line for line in _plain_lines(path, rules) if is_row(line, rules.comment)), None)
    if line is None:
        raise DataError(f"{refused}its first line must name the columns.")
    if UNDECODED in line:
        raise DataError(
            f"{refused}its first line is not {rules.encoding}. Say what it is by 'encoding' in [read] of the schema."
        )
    if "\0" in line:
        raise DataError(f"{refused}its first line holds NUL. Say how it is written by 'encoding' in [read] of the schema.")
    header, still_open, _ = pieces(line, sep, rules.quote)
    if still_open is not None:
        raise DataError(f"{refused}a quote in its first line, which names the columns, is not closed in that line.")
    names = [name.strip() or f"column{place}" for place, name in enumerate(header)]
    if len(set(names)) != len(names):
        raise DataError(f"{refused}it has two columns of the same name.")
    return names


def _plain_lines(path: Path, rules: ReadingRules) -> Iterator[str]:
    for some in lines_of(path, rules, chunk=FIRST_BYTES, marked=True):
        yield from some.lines


def is_row(line: str, comment: str) -> bool:
    return bool(line) and not (comment and line.startswith(comment))


def rows_of(path: Path, sep: str, rules: ReadingRules, width: int, told: LinesRead) -> Iterator[Flat]:
    """The texts of one file's rows, many rows at a time, for each as many as there are columns; "" is missing."""
    splitter = Splitter(sep, rules.quote, rules.comment, width, told)
    named = False
    rest: list[str] = []
    for some in lines_of(path, rules):
        if some.undecoded:
            told.in_part[NOT_DECODED.format(encoding=rules.encoding)] += some.undecoded
        lines = rest + some.lines
        if not named:
            place = next((place for place, line in enumerate(lines) if is_row(line, rules.comment)), None)
            named = place is not None
            lines = [] if place is None else lines[place + 1 :]
        texts, rest = splitter.texts(lines, last=some.last)
        told.rows += len(texts) // width
        yield texts


class Splitter:
    """Splits lines into rows of one width."""

    def __init__(self, sep: str, quote: str, comment: str, width: int, told: LinesRead) -> None:
        self._sep, self._quote, self._comment, self._width, self._told = sep, quote, comment, width, told

    def texts(self, lines: list[str], *, last: bool) -> tuple[Row, list[str]]:
        """The texts of all rows, and the lines from which on more must be known, unless these are the last."""
        sep, separators = self._sep, self._width - 1
        if not self._quote or not any(self._quote in line for line in lines):
            kept = [line for line in lines if is_row(line, self._comment)]
            if all(line.count(sep) == separators for line in kept):
                return (sep.join(kept).split(sep) if kept else []), []
            return [text for line in kept for text in self._fitted(line.split(sep))], []
        texts: Row = []
        place = 0
        while place < len(lines):
            row, taken = self._row(lines, place)
            if not taken:
                if not last:
                    return texts, lines[place:]
                self._told.left_out[NOT_CLOSED] += 1
                taken = 1
            if row is not None:
                texts += self._fitted(row)
            place += taken
        return texts, []

    def _row(self, lines: list[str], place: int) -> tuple[Row | None, int]:
        """The row that begins here and how many lines it takes: None if there is none, 0 if more lines must be known."""
        line = lines[place]
        if not is_row(line, self._comment):
            return None, 1
        if self._quote not in line:
            return line.split(self._sep), 1
        try:  # the plain case, and fast; whatever is odd goes the long way
            return next(csv.reader((line,), delimiter=self._sep, quotechar=self._quote, strict=True)), 1
        except csv.Error:
            row, taken = self._odd(lines, place)
        if row is None and taken:
            self._told.left_out[NOT_CLOSED] += 1
        return row, taken

    def _fitted(self, row: Row) -> Row:
        if len(row) == self._width:
            return row
        if len(row) < self._width:
            self._told.in_part[TOO_FEW] += 1
            return row + [""] * (self._width - len(row))
        if any(row[self._width :]):
            self._told.in_part[TOO_MANY] += 1
        return row[: self._width]

    def _odd(self, lines: list[str], place: int) -> tuple[Row | None, int]:
        """The same, of a line whose quotes are not those of plain delimited text."""
        row, still_open, tidy = pieces(lines[place], self._sep, self._quote)
        if still_open is None:
            return row, 1
        taken, inside = 1, [still_open]
        while tidy and taken < MOST_LINES:
            if place + taken == len(lines):
                return None, 0
            line = lines[place + taken]
            taken += 1
            text, after = until_closed(line, 0, self._quote)
            inside.append(text)
            if after is None:
                continue
            row.append("\n".join(inside))
            if after < len(line):
                if line[after] != self._sep:
                    break
                more, still_open, tidy = pieces(line[after + 1 :], self._sep, self._quote)
                row += more
                if still_open is not None:
                    inside = [still_open]
                    continue
            if tidy and len(row) >= self._width and not any(row[self._width :]):
                return row, taken
            break
        return None, 1


def pieces(line: str, sep: str, quote: str) -> tuple[Row, str | None, bool]:
    """The values of a line, that of a quote still open at its end, and whether separators follow all closing quotes."""
    found: Row = []
    place, tidy = 0, True
    while True:
        quoted, text = bool(quote) and line.startswith(quote, place), ""
        if quoted:
            text, after = until_closed(line, place + 1, quote)
            if after is None:
                return found, text, tidy
            place = after
        end = line.find(sep, place)
        rest = line[place:] if end < 0 else line[place:end]
        tidy = tidy and not (quoted and rest)
        found.append(text + rest)
        if end < 0:
            return found, None, tidy
        place = end + 1


def until_closed(line: str, place: int, quote: str) -> tuple[str, int | None]:
    """What stands before the quote that closes a value, doubled quotes once, and the place after it; None: it stays open."""
    start = place
    while (end := line.find(quote, place)) >= 0:
        if not line.startswith(quote, end + 1):
            return line[start:end].replace(quote * 2, quote), end + 1
        place = end + 2
    return line[start:].replace(quote * 2, quote), None
