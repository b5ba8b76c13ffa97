"""How the text of a file is read, as public rules of the schema: never found out while rows are read.

A value depends on its own line and on these rules. `schema draft` alone looks at a file to propose them
(`dpmine.facts.sources.detecting`); opening and checking go by the schema, or else by the fixed defaults below.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from dpmine.base.errors import SchemaError
from dpmine.facts.toml_tables import refuse_unknown_keys, value_at

ONE_BYTE = (
    "ascii",
    "latin-1",
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
    *(f"cp{page}" for page in (1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258, 437, 850, 852, 858, 866)),
    "koi8-r",
    "koi8-u",
    "mac-roman",
)
SEVERAL_BYTES = ("gb18030", "gbk", "big5", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949")
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", *ONE_BYTE, *SEVERAL_BYTES)
"""Those in which a line end is the same bytes wherever it stands, so that a broken line stays alone."""

DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", "'", "\u2019", " ", "\u00a0", "\u202f", "_")
QUOTES = ('"', "'", "")
MOST_COMMENT = 8  # characters

_BY_CODEC = {codecs.lookup(name).name: name for name in ENCODINGS} | {"utf-8-sig": "utf-8"}


@dataclass(frozen=True)
class ReadingRules:
    """Public facts about text in files.

    sep        what stands between two values; None: a tab where the file's name says so (.tsv, .tab), else a comma
    encoding   of the bytes; a byte order mark of UTF-8 at the beginning of a file is no part of it
    quote      what may stand around a value; "": nothing
    decimal    the mark before the decimal places, wherever a text is read as a number
    thousands  the mark between groups of three digits; "": none
    comment    lines that begin with this are no rows; "": there are none
    """

    sep: str | None = None
    encoding: str = "utf-8"
    quote: str = '"'
    decimal: str = "."
    thousands: str = ""
    comment: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.sep is not None and (len(self.sep) != 1 or self.sep.isalnum() or self.sep in "\"'\r\n\0."):
            raise SchemaError(
                "'sep' must be one character that is no letter, digit, quote or point, such as ';' or a tab. "
                f"Got {self.sep!r} instead."
            )
        _require_one_of("quote", self.quote, QUOTES)
        _require_one_of("decimal", self.decimal, DECIMALS)
        _require_one_of("thousands", self.thousands, THOUSANDS)
        if self.decimal == self.thousands:
            raise SchemaError(f"'decimal' and 'thousands' must differ. Both are {self.decimal!r}.")
        if len(self.comment) > MOST_COMMENT or not self.comment.isprintable() or self.comment[:1] in _not_before(self):
            raise SchemaError(
                f"'comment' must be at most {MOST_COMMENT} characters that lines begin with, such as '#', and begin "
                f"neither with the separator nor with the quote. Got {self.comment!r} instead."
            )

    @classmethod
    def parse(cls, form: Any, where: str) -> ReadingRules:
        """The rules from their table in a schema file, or one sentence that begins with `where`."""
        names = {field.name for field in fields(cls)}
        if not isinstance(form, Mapping):
            raise SchemaError(f"{where}: 'read' must be a table such as [read] with sep = \";\".")
        inside = f"{where}: 'read'"
        refuse_unknown_keys(dict(form), names, inside)
        try:
            return cls(**{name: value_at(dict(form), name, str, inside) for name in form})
        except SchemaError as error:
            text = str(error)
            raise SchemaError(text if text.startswith(where) else f"{inside}: {text}") from None

    def form(self) -> dict[str, str]:
        """What differs from the defaults, as a table of a schema file."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    @property
    def numbers_are_plain(self) -> bool:
        """Whether numbers are written as everywhere in this package."""
        return self.decimal == "." and not self.thousands

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        return re.compile(grouped_number(self), re.ASCII)

    def plain_number(self, text: str) -> str:
        """A text that stands for a number, with a decimal point and without marks; what is no number stays none.

        `number_of_text` of `dpmine.facts.sources.files` is the same in SQL.
        """
        if self.numbers_are_plain:
            return text
        if self.thousands:
            if self._grouped.fullmatch(text):
                text = text.replace(self.thousands, "")
            elif self.thousands in text.strip(" "):
                return ""
        if self.decimal == ".":
            return text
        return "" if "." in text else text.replace(self.decimal, ".")


def grouped_number(rules: ReadingRules) -> str:
    """A pattern, for Python and for RE2, of numbers with marks between all groups of three digits."""
    mark = "[.]" if rules.thousands == "." else rules.thousands
    decimal = "[.]" if rules.decimal == "." else rules.decimal
    return f"[ ]*[+-]?[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+({decimal}[0-9]*)?[ ]*"


def _encoding(name: str) -> str:
    """Every name of an encoding is written in one way."""
    try:
        found = _BY_CODEC.get(codecs.lookup(name).name)
    except (LookupError, ValueError):
        found = None
    if found is None:
        known = "utf-8, utf-16, latin-1, cp1252, iso8859-15, cp1251, koi8-r, gb18030 and shift_jis"
        raise SchemaError(f"'encoding' must be one of those that can be read, such as {known}. Got {name!r} instead.")
    return found


def _require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise SchemaError(f"{name!r} must be one of {', '.join(map(repr, allowed))}. Got {value!r} instead.")


def _not_before(rules: ReadingRules) -> tuple[str, ...]:
    return tuple(mark for mark in (rules.sep or ",", rules.quote) if mark)


DEFAULT_RULES = ReadingRules()
