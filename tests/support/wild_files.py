"""Files as they are found in the wild, and what is to become of each: read whole, read but for some lines, or refused."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.reading_rules import DEFAULT_RULES, ReadingRules
from dpmine.facts.schema import Schema
from dpmine.facts.sources.lines_read import NO_OBJECT, NOT_CLOSED, NOT_DECODED, TOO_FEW, TOO_MANY

Row = tuple[str | None, ...]
NOT_UTF8 = NOT_DECODED.format(encoding="utf-8")


@dataclass(frozen=True)
class Wild:
    """One file. Its columns are a and b, unless they are said."""

    name: str
    content: bytes
    rows: tuple[Row, ...] = ()
    rules: ReadingRules = DEFAULT_RULES
    left_out: Mapping[str, int] = field(default_factory=dict)
    in_part: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    """A part of the sentence with which it is."""
    ending: str = "csv"
    columns: tuple[str, ...] = ("a", "b")

    def written(self, folder: Path) -> Path:
        path = folder / f"wild.{self.ending}"
        path.write_bytes(self.content)
        return path

    @property
    def schema(self) -> Schema:
        """Each column as texts and, where its name ends in _n, as numbers."""
        texts = tuple(dict.fromkeys([*(text for row in self.rows for text in row if text is not None), "other"]))
        attributes = tuple(
            Numeric(name, Decimal(-5000), Decimal(5000), Decimal("2.5"), Decimal(0))
            if name.endswith("_n")
            else Nominal(name, texts, "other")
            for name in self.columns
        )
        return Schema("wild", attributes, 1000, read=self.rules)


def workbook(*rows: tuple[object, ...]) -> bytes:
    """An Excel file with these cells in its first sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    book.create_sheet("notes").append(("never", "read"))
    stored = io.BytesIO()
    book.save(stored)
    return stored.getvalue()


def lines(*objects: object) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in objects).encode()


TWO: tuple[Row, ...] = (("1", "x"), ("2", "y"))
MUNICH: tuple[Row, ...] = (("1", "München"), ("2", "Köln"))
TEXT = "a,b\n1,München\n2,Köln\n"
NOTE = "\n".join(f"line {number}" for number in range(1200))

ZOO = (
    Wild("plain", b"a,b\n1,x\n2,y\n", TWO),
    Wild("no line end at the end", b"a,b\n1,x\n2,y", TWO),
    Wild("byte order mark", b"\xef\xbb\xbfa,b\n1,x\n2,y\n", TWO),
    Wild("line ends of Windows", b"a,b\r\n1,x\r\n2,y\r\n", TWO),
    Wild("line ends of old Macs", b"a,b\r1,x\r2,y\r", TWO),
    Wild("mixed line ends", b"a,b\r\n1,x\n2,y\r3,z\r\n", (*TWO, ("3", "z"))),
    Wild("empty lines", b"\n\na,b\n\n1,x\n\r\n2,y\n\n", TWO),
    Wild("semicolons", b"a;b\n1;x\n2;y\n", TWO, ReadingRules(sep=";")),
    Wild("bars", b"a|b\n1|x\n2|y\n", TWO, ReadingRules(sep="|")),
    Wild("tabs by name", b"a\tb\n1\tx\n2\ty\n", TWO, ending="tsv"),
    Wild("tabs by rule", b"a\tb\n1\tx\n2\ty\n", TWO, ReadingRules(sep="\t"), ending="txt"),
    Wild("commas in a file of tabs, by rule", b"a,b\n1,x\n2,y\n", TWO, ReadingRules(sep=","), ending="tsv"),
    Wild("packed", gzip.compress(TEXT.encode()), MUNICH, ending="csv.gz"),
    Wild("UTF-8", TEXT.encode(), MUNICH),
    Wild("Latin-1 by rule", TEXT.encode("latin-1"), MUNICH, ReadingRules(encoding="latin-1")),
    Wild("Windows by rule", "a,b\n1,10 €\n".encode("cp1252"), (("1", "10 €"),), ReadingRules(encoding="cp1252")),
    Wild("UTF-16 with a mark", TEXT.encode("utf-16"), MUNICH, ReadingRules(encoding="utf-16")),
    Wild("UTF-16 without a mark", TEXT.encode("utf-16-le"), MUNICH, ReadingRules(encoding="utf-16")),
    Wild("big-endian UTF-16", b"\xfe\xff" + TEXT.encode("utf-16-be"), MUNICH, ReadingRules(encoding="utf-16")),
    Wild("Japanese", "a,b\n1,表示\n".encode("shift_jis"), (("1", "表示"),), ReadingRules(encoding="shift_jis")),
    Wild(
        "Latin-1 without a word", TEXT.encode("latin-1"), (("1", "M\ufffdnchen"), ("2", "K\ufffdln")), in_part={NOT_UTF8: 2}
    ),
    Wild("a Latin-1 header", "größe,b\n1,x\n".encode("latin-1"), refused="its first line is not utf-8"),
    Wild("UTF-16 without a word", TEXT.encode("utf-16"), refused="its first line is not utf-8"),
    Wild("UTF-16 without a mark or a word", TEXT.encode("utf-16-le"), refused="its first line holds NUL"),
    Wild(
        "a broken character",
        b"a,b\n1,x\n2,y\xff\xfe\n3,\xe2\x82\n4,z\n",
        (("1", "x"), ("2", "y\ufffd\ufffd"), ("3", "\ufffd"), ("4", "z")),
        in_part={NOT_UTF8: 2},
    ),
    Wild(
        "a broken character before a line end",
        "a,b\n1,表".encode("shift_jis")[:-1] + "\n2,示\n".encode("shift_jis"),
        (("1", "\ufffd"), ("2", "示")),
        ReadingRules(encoding="shift_jis"),
        in_part={NOT_DECODED.format(encoding="shift_jis"): 1},
    ),
    Wild("NUL bytes", b"a,b\n1,x\x00y\n\x00,z\n", (("1", "x\0y"), ("\0", "z"))),
    Wild("quoted values", b'"a","b"\n"1","x"\n"2","y"\n', TWO),
    Wild("single quotes by rule", b"a,b\n'1','x, y'\n", (("1", "x, y"),), ReadingRules(quote="'")),
    Wild("no quotes by rule", b'a,b\n"1,x\n2,"y"\n', (('"1', "x"), ("2", '"y"')), ReadingRules(quote="")),
    Wild("separators and quotes in quotes", b'a,b\n"1,5","say ""hi"""\n', (("1,5", 'say "hi"'),)),
    Wild("line ends in quotes", b'a,b\n1,"x\r\n\r\ny"\n2,"z\n"\n', (("1", "x\n\ny"), ("2", "z\n"))),
    Wild("quotes inside values", b'a,b\n5" tall,x\n2,say "hi"\n', (('5" tall', "x"), ("2", 'say "hi"'))),
    Wild("text after a closing quote", b'a,b\n"1"st,x\n2,y\n', (("1st", "x"), ("2", "y"))),
    Wild("an unclosed quote", b'a,b\n1,"x\n2,y\n3,z\n', (("2", "y"), ("3", "z")), left_out={NOT_CLOSED: 1}),
    Wild(
        "an unclosed quote among quoted values",
        b'a,b\n1,"x\n2,"y"\n3,"z"\n"4","u"\n',
        (("2", "y"), ("3", "z"), ("4", "u")),
        left_out={NOT_CLOSED: 1},
    ),
    Wild("an unclosed quote at the end", b'a,b\n1,x\n2,"', (("1", "x"),), left_out={NOT_CLOSED: 1}),
    Wild(
        "quotes that close to another width", b'a,b\n1,"x\ny",2\n3,z\n', (('y"', "2"), ("3", "z")), left_out={NOT_CLOSED: 1}
    ),
    Wild("an unclosed quote in the header", b'a,"b\n1,x\n2,y"\n', refused="a quote in its first line"),
    Wild(
        "too long a value",
        f'a\n"{NOTE}"\n'.encode(),
        (*((text,) for text in NOTE.split("\n")[1:-1]), (NOTE.split("\n")[-1] + '"',)),
        left_out={NOT_CLOSED: 1},
        columns=("a",),
    ),
    Wild(
        "ragged lines",
        b"a,b\n1\n2,y,left\n3,z,,\n,\n",
        (("1", None), ("2", "y"), ("3", "z"), (None, None)),
        in_part={TOO_FEW: 1, TOO_MANY: 1},
    ),
    Wild("comments by rule", b"# made today\na,b\n1,x\n# half way\n2,y\n", TWO, ReadingRules(comment="#")),
    Wild("no comments without a rule", b"a,b\n#1,x\n", (("#1", "x"),)),
    Wild(
        "decimal commas",
        b"a;b_n\nx;1,5\ny;1.5\nz;1.234,5\n",
        (("x", "1,5"), ("y", "1.5"), ("z", "1.234,5")),
        ReadingRules(sep=";", decimal=",", thousands="."),
        columns=("a", "b_n"),
    ),
    Wild(
        "thousands in apostrophes",
        b"a,b_n\nx,1'234.5\ny,12'34\n",
        (("x", "1'234.5"), ("y", "12'34")),
        ReadingRules(thousands="'"),
        columns=("a", "b_n"),
    ),
    Wild("padded names", b" a , b \n1,x\n", (("1", "x"),)),
    Wild("a column without a name", b"a,,c\n1,2,3\n", (("1", "2", "3"),), columns=("a", "column1", "c")),
    Wild("empty", b"", refused="its first line must name the columns"),
    Wild("nothing but a mark", b"\xef\xbb\xbf", refused="its first line must name the columns"),
    Wild("nothing but empty lines", b"\n\r\n\n", refused="its first line must name the columns"),
    Wild("a header only", b"a,b\n"),
    Wild("duplicate names", b"a,b,a\n1,2,3\n", refused="two columns of the same name"),
    Wild("names that trimming makes the same", b"a, a\n1,2\n", refused="two columns of the same name"),
    Wild("packed in name only", b"a,b\n1,x\n", refused="damaged or cut off", ending="csv.gz"),
    Wild("cut off while packed", gzip.compress(TEXT.encode() * 99)[:-9], refused="damaged or cut off", ending="csv.gz"),
    Wild("a JSON file", b'[{"a": 1}]', refused="the name must end in", ending="json"),
    Wild(
        "JSON lines",
        lines({"a": 1, "b": "x"}, {"b": None, "a": 2.0}, {"a": True}, {"c": 1}, {"a": "", "b": ["u", 1]}, {"b": "a,b\n"}),
        (("1", "x"), ("2", None), ("True", None), (None, None), ("", '["u", "1"]'), (None, "a,b\n")),
        ending="jsonl",
    ),
    Wild("packed JSON lines", gzip.compress(lines({"a": 1, "b": "x"})), (("1", "x"),), ending="ndjson.gz"),
    Wild(
        "broken JSON lines",
        b'{"a": 1, "b": "x"}\n\n[1, 2]\n{"a": 1\n7\n{"a": 2, "b": "y\xff"}\n{"a": "\\ud800", "b": 1e999}\n',
        (("1", "x"), ("2", "y\ufffd"), ("\ufffd", "inf")),
        left_out={NO_OBJECT: 3},
        in_part={NOT_UTF8: 1},
        ending="jsonl",
    ),
    Wild(
        "a workbook",
        workbook(("a", " b ", None), (1, "x"), (2.0, True), (None, None), ("", 0.5), ("z",)),
        (("1", "x"), ("2", "True"), (None, "0.5"), ("z", None)),
        ending="xlsx",
    ),
    Wild(
        "a workbook with more", workbook(("a", "b"), (1, "x", "left")), (("1", "x"),), in_part={TOO_MANY: 1}, ending="xlsx"
    ),
    Wild("an empty workbook", workbook(), refused="must name the columns", ending="xlsx"),
    Wild("a workbook in name only", b"a,b\n1,x\n", refused="no Excel workbook, or a damaged one", ending="xlsx"),
)
