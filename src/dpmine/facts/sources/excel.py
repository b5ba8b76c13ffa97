"""Rows of the first sheet of an Excel workbook, by openpyxl: the values that stand in it, not the formulas."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmine.base.errors import DataError
from dpmine.facts.sources.lines_read import TOO_MANY, Flat, LinesRead
from dpmine.facts.value_texts import text_of_value

TextRow = list[str | None]
TEXTS_AT_ONCE = 500_000


def header_of(path: Path) -> list[str]:
    """The names in the first row, without the empty cells at its end."""
    names = [(text or "").strip() for text in next(_cells(path), [])]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise DataError(f"Cannot read {str(path)!r} as a table: the first row of its first sheet must name the columns.")
    named = [name or f"column{place}" for place, name in enumerate(names)]
    if len(set(named)) != len(named):
        raise DataError(f"Cannot read {str(path)!r} as a table: it has two columns of the same name.")
    return named


def rows_of(path: Path, width: int, told: LinesRead) -> Iterator[Flat]:
    """The texts below the first row, many rows at a time. Rows without any value are none."""
    texts: TextRow = []
    cells = _cells(path)
    next(cells, None)
    for row in cells:
        if any(text is not None for text in row):
            if any(text is not None for text in row[width:]):
                told.in_part[TOO_MANY] += 1
            texts += (row + [None] * (width - len(row)))[:width]
            told.rows += 1
        if len(texts) >= TEXTS_AT_ONCE:
            yield texts
            texts = []
    yield texts


def _cells(path: Path) -> Iterator[TextRow]:
    """The texts of each row's values."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(f"Reading {path.name!r} needs openpyxl: pip install 'dpmine[excel]'.") from None
    book = None
    try:
        with _unwarned():
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # what a workbook says of its own size may be wrong
            rows = sheet.iter_rows(values_only=True)
        while True:
            with _unwarned():
                row = next(rows, None)
            if row is None:
                return
            yield [_text(value) for value in row]
    except Exception:  # whatever a damaged workbook leads openpyxl to
        raise DataError(f"Cannot read {str(path)!r} as a table: it is no Excel workbook, or a damaged one.") from None
    finally:
        if book is not None:
            book.close()


@contextmanager
def _unwarned() -> Iterator[None]:
    """Without openpyxl's warnings of styles and other things that no value depends on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _text(value: Any) -> str | None:
    return text_of_value(value) or None
