"""Files from the wild are read by public rules, line by line; what is not read is told to the owner, and to nobody else."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.twins import few_and_many
from support.wild_files import ZOO, Wild
from typer.testing import CliRunner

import dpmine as dm
from dpmine.base.errors import OwnerWarning
from dpmine.cli.main import app
from dpmine.engines.encoding import encode
from dpmine.facts.checking import check_table
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.reading_rules import DECIMALS, ENCODINGS, QUOTES, THOUSANDS, ReadingRules
from dpmine.facts.schema import Schema
from dpmine.facts.sources import FileSource, open_source
from dpmine.facts.sources import delimited as delimited_text
from dpmine.facts.sources import lines as lines_of_files
from dpmine.facts.sources.detecting import detected_rules
from dpmine.facts.sources.files import number_of_text
from dpmine.facts.sources.lines_read import LinesRead
from dpmine.facts.value_texts import number_of_value

READ = [wild for wild in ZOO if not wild.refused]
named = pytest.mark.parametrize("wild", READ, ids=lambda wild: wild.name)


def texts_of(source: FileSource) -> list[tuple[str | None, ...]]:
    columns = [source.texts(name) for name in source.columns]
    return list(zip(*columns, strict=True))


# -- the zoo -----------------------------------------------------------------------------------------------------------


def test_the_zoo_is_large() -> None:
    assert len(ZOO) >= 60
    assert len({wild.name for wild in ZOO}) == len(ZOO)


@pytest.mark.parametrize("keep_in_files", [False, True], ids=["in memory", "in files"])
@named
def test_every_file_is_read_whole_or_the_owner_is_told_what_is_not(wild: Wild, keep_in_files: bool, tmp_path: Path) -> None:
    source = FileSource(wild.written(tmp_path), wild.rules, names=wild.columns, keep_in_files=keep_in_files)
    try:
        assert tuple(source.columns) == wild.columns
        assert texts_of(source) == list(wild.rows)
        assert source.rows == source.lines.rows == len(wild.rows)
        assert dict(source.lines.left_out) == wild.left_out
        assert dict(source.lines.in_part) == wild.in_part
    finally:
        source.close()


@pytest.mark.parametrize("wild", [wild for wild in ZOO if wild.refused], ids=lambda wild: wild.name)
@pytest.mark.parametrize("look", ["draft", "check", "memory", "duckdb"])
def test_what_cannot_be_read_is_refused_in_one_clear_sentence(wild: Wild, look: str, tmp_path: Path) -> None:
    path, schema = wild.written(tmp_path), Wild("", b"").schema
    looks: dict[str, Callable[[], object]] = {
        "draft": lambda: Schema.draft(path, read=wild.rules),
        "check": lambda: check_table(path, schema),
    }
    with pytest.raises(dm.DataError) as refused:
        looks.get(look, lambda: dm.open(path, schema=schema, ledger=None, cap=1, engine=look))()
    message = str(refused.value)
    assert wild.refused in message
    assert path.name in message
    assert "\n" not in message


@named
def test_pieces_of_a_file_have_no_say_in_how_it_is_read(wild: Wild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read some megabytes at a time; here some bytes."""
    monkeypatch.setitem(lines_of_files.lines_of.__kwdefaults__, "chunk", 7)
    source = FileSource(wild.written(tmp_path), wild.rules, names=wild.columns)
    assert texts_of(source) == list(wild.rows)
    assert (dict(source.lines.left_out), dict(source.lines.in_part)) == (wild.left_out, wild.in_part)


def test_a_copy_of_the_rows_is_for_its_owner_alone_and_goes_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    source = FileSource(tmp_path / "t.csv", keep_in_files=True)
    (folder,) = (tmp_path / "temporary").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    source.close()
    assert not folder.exists()
    (tmp_path / "bad.csv").write_text("a,a\n1,x\n")
    with pytest.raises(dm.DataError):
        FileSource(tmp_path / "bad.csv", keep_in_files=True)
    assert list((tmp_path / "temporary").iterdir()) == []


# -- no row has a say in how another is read -----------------------------------------------------------------------------

LINE = st.text("ab1,;.#|\"' \t\u00e9\ufffd", max_size=10).map(str.encode) | st.binary(max_size=10).map(
    lambda line: line.replace(b"\n", b"").replace(b"\r", b"")
)
PLAIN = st.lists(st.sampled_from(["a", "b", "x y", "1,5", "1.5"]), min_size=3, max_size=3).map(";".join).map(str.encode)
RULES = st.builds(
    ReadingRules,
    sep=st.sampled_from([",", ";", "|", "\t", None]),
    encoding=st.sampled_from(["utf-8", "latin-1", "cp1252", "shift_jis", "gb18030"]),
    quote=st.sampled_from(QUOTES),
    comment=st.sampled_from(["", "#"]),
)


Reader = Callable[[Path, ReadingRules], FileSource]


def rows_of_lines(lines: list[bytes], rules: ReadingRules, reader: Reader = FileSource) -> list[tuple[str | None, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(b"\n".join([(rules.sep or ",").join("xyz").encode(), *lines]) + b"\n")
        source = reader(path, rules)
        try:
            return texts_of(source)
        finally:
            source.close()


@few_and_many(RULES, st.lists(LINE, max_size=5), LINE, st.lists(LINE, max_size=5), few=40, many=300)
def test_a_line_without_an_open_quote_changes_no_other_row(
    rules: ReadingRules, before: list[bytes], line: bytes, after: list[bytes]
) -> None:
    """The rows of a table with one line more are those without it, and its own. (Quotes may span lines: see below.)"""
    quote = rules.quote.encode()
    before, after, (line,) = (
        [one.replace(quote, b"") if quote else one for one in some] for some in (before, after, [line])
    )
    together = rows_of_lines([*before, line, *after], rules)
    assert together == rows_of_lines(before, rules) + rows_of_lines([line], rules) + rows_of_lines(after, rules)


@few_and_many(st.lists(PLAIN, min_size=1, max_size=6), LINE, st.integers(0, 6), few=40, many=300)
def test_whatever_line_is_inserted_among_plain_rows_they_are_read_as_before(
    plain: list[bytes], line: bytes, place: int
) -> None:
    """An open quote, a broken character, another separator: at most one row more."""
    plain_rows_stay(FileSource, plain, line, min(place, len(plain)))


def plain_rows_stay(reader: Reader, plain: list[bytes], line: bytes, place: int) -> None:
    rules = ReadingRules(sep=";")
    rows = rows_of_lines(plain, rules, reader)
    with_it = rows_of_lines([*plain[:place], line, *plain[place:]], rules, reader)
    assert with_it[:place] == rows[:place]
    assert with_it[len(with_it) - (len(plain) - place) :] == rows[place:]
    assert len(with_it) - len(rows) in (0, 1)


@pytest.mark.parametrize(
    ("plain", "line"),
    [
        ("Köln;a;b".encode("cp1252"), "Köln;a;b".encode()),  # another encoding
        (b"'a';b;c", b"'d';e;f"),  # another quote
    ],
)
def test_the_property_finds_a_planted_reader_that_sniffs(plain: bytes, line: bytes) -> None:
    """One row more, and every other is read otherwise."""

    def sniffing(path: Path, rules: ReadingRules) -> FileSource:
        return FileSource(path, detected_rules(path, {}))

    with pytest.raises(AssertionError):
        plain_rows_stay(sniffing, [plain], line, 1)


@pytest.mark.parametrize(
    ("content", "other"),
    [(b'"a', b'"b"'), (b'x,"', b'"y"'), (b'"', b'"p","q"'), (b'1,"open', b"2,plain"), (b'1,"a ""open', b'2,"b ""c"" d"')],
)
def test_an_open_quote_does_not_reach_into_rows_that_are_whole(content: bytes, other: bytes) -> None:
    rules = ReadingRules()
    alone = rows_of_lines([other] * 3, rules)
    assert rows_of_lines([content, *[other] * 3], rules)[-3:] == alone


# -- what the rules are --------------------------------------------------------------------------------------------------


@given(st.text("0123456789.,' \u00a0_-+e", max_size=12), st.sampled_from(DECIMALS), st.sampled_from(THOUSANDS))
@settings(max_examples=150)
def test_sql_and_python_take_the_same_texts_for_the_same_numbers(text: str, decimal: str, thousands: str) -> None:
    if decimal == thousands:
        return
    rules = ReadingRules(sep="|", quote="", decimal=decimal, thousands=thousands)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(f"x|y\n{text}|\n", encoding="utf-8")
        source = FileSource(path, rules)
        (found,) = source.numbers("x")
        source.close()
    np.testing.assert_equal(found, number_of_value(rules.plain_number(text)))


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "number"),
    [
        ("1,5", ",", "", "1.5"),
        ("1.5", ",", "", ""),
        ("1.234,5", ",", ".", "1234.5"),
        ("1.5", ",", ".", ""),
        ("1.234", ",", ".", "1234"),
        ("1,234,567.5", ".", ",", "1234567.5"),
        ("12,34", ".", ",", ""),
        ("0,125", ".", ",", ""),
        ("1 234", ".", " ", "1234"),
        (" 1 234 ", ".", " ", "1234"),
        (" 12 ", ".", " ", " 12 "),
        ("-1'234", ".", "'", "-1234"),
        ("1.5", ".", "", "1.5"),
    ],
)
def test_marks_count_only_where_they_part_groups_of_three_digits(
    text: str, decimal: str, thousands: str, number: str
) -> None:
    found = ReadingRules(decimal=decimal, thousands=thousands).plain_number(text)
    assert found.strip() == number.strip()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_reads_what_it_wrote(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n1,x\n2,y\n".encode(encoding))
    assert texts_of(FileSource(tmp_path / "t.csv", ReadingRules(encoding=encoding))) == [("1", "x"), ("2", "y")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('sep = ";;"', "'sep' must be one character"),
        ('sep = "a"', "'sep' must be one character"),
        ("sep = 1", "'sep' must be text"),
        ('encoding = "klingon"', "'encoding' must be one of those"),
        ('encoding = "utf-7"', "'encoding' must be one of those"),
        ('quote = "x"', "'quote' must be one of"),
        ('decimal = ";"', "'decimal' must be one of"),
        ('thousands = "x"', "'thousands' must be one of"),
        ('decimal = ","\nthousands = ","', "must differ"),
        ('comment = ",x"', "'comment' must be at most 8 characters"),
        ('skip = "1"', "unknown key 'skip'"),
    ],
)
def test_wrong_rules_are_refused_in_one_sentence(table: str, message: str) -> None:
    text = f'name = "t"\nrows_at_most = 10\n[attributes.a]\nkind = "nominal"\ncategories = ["x"]\n[read]\n{table}\n'
    with pytest.raises(dm.SchemaError, match=message) as refused:
        Schema.from_toml(text, where="t.toml")
    assert str(refused.value).startswith("t.toml")
    with pytest.raises(dm.SchemaError, match="must be a table such as"):
        Schema.from_toml('read = "x"\n' + text[: text.index("[read]")], where="t.toml")


def test_rules_are_part_of_the_schema_its_file_its_fingerprint_and_the_name_of_the_way_of_reading(tmp_path: Path) -> None:
    plain = Schema("t", (Nominal("a", ("1", "x"), "x"),), 10)
    others = [
        ReadingRules(sep=";"),
        ReadingRules(encoding="latin-1"),
        ReadingRules(quote=""),
        ReadingRules(decimal=","),
        ReadingRules(thousands="'"),
        ReadingRules(comment="#"),
    ]
    (tmp_path / "t.csv").write_text("a\n1\n")
    roots, fingerprints = set(), {plain.fingerprint}
    for rules in (ReadingRules(), *others):
        schema = Schema("t", plain.attributes, 10, read=rules)
        assert Schema.from_toml(schema.to_toml()) == schema
        fingerprints.add(schema.fingerprint)
        roots.add(encode(open_source(tmp_path / "t.csv", rules), schema).encoding)
    assert len(fingerprints) == len(roots) == len(others) + 1
    assert "read" not in plain.to_toml()
    assert ReadingRules(encoding="ISO-8859-1") == ReadingRules(encoding="latin1")
    frames = {encode(open_source({"a": ["1"]}, rules), plain).encoding for rules in others}
    assert len(frames) == 1


# -- drafts look for the rules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "rules"),
    [
        ("a,b\n1,x\n2,y\n", {}),
        ("a;b\n1;x\n2;y\n", {"sep": ";"}),
        ("a;b\n1,5;2,5\n3,5;4,25\n", {"sep": ";", "decimal": ","}),
        ("a;b\n1.234,5;x\n999,5;y\n", {"sep": ";", "decimal": ",", "thousands": "."}),
        ("a\tb\n1,234\tx\n12,500\ty\n", {"sep": "\t", "thousands": ","}),
        ("a,b\n1'234,x\n7,y\n", {"thousands": "'"}),
        ("a|b\n1|x, y\n2|z, u\n", {"sep": "|"}),
        ("a,b\n'1','x, y'\n'2','z'\n", {"quote": "'"}),
        ("# from the clinic\n# 2020\na,b\n1,x\n# end\n", {"comment": "#"}),
        ("#a,b\n1,x\n2,y\n", {}),
        ("only\n1\n2\n", {}),
        ("a,b\n", {}),
        ("a,b\nköln,x\nmünchen,y\n".encode("latin-1"), {"encoding": "cp1252"}),
        ("a,b\nköln,x\nmünchen,y\n".encode() + b"\xff,z\n", {}),
        ("a;b\nköln;x\n".encode("utf-16"), {"encoding": "utf-16", "sep": ";"}),
        ("a,b\n1,x\n".encode("utf-16-be"), {"encoding": "utf-16-be"}),
    ],
)
def test_a_draft_finds_out_how_a_file_is_written(content: str | bytes, rules: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert detected_rules(path, {}).form() == rules


def test_a_draft_with_its_rules_reads_the_file_and_its_owner_may_know_better(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;ort\n".encode("latin-1") + b"".join(f"{n},5;K\xf6ln\n".encode("latin-1") for n in range(30)))
    schema = Schema.draft(path)
    assert schema.read.form() == {"sep": ";", "encoding": "cp1252", "decimal": ","}
    assert [type(attribute) for attribute in schema.attributes] == [Numeric, Nominal]
    assert [attribute.name for attribute in schema.attributes] == ["größe", "ort"]
    assert "[read]" in schema.to_toml()
    dm.open(path, schema=Schema.from_toml(schema.to_toml()), ledger=None, cap=1).close()
    assert Schema.draft(path, read={"encoding": "latin-1"}).read.encoding == "latin-1"
    with pytest.warns(OwnerWarning, match="30 of 30 lines were read in part"):
        stubborn = Schema.draft(path, read=ReadingRules(encoding="latin-1"))
    assert stubborn.read == ReadingRules(encoding="latin-1")


def test_opening_and_checking_never_look_for_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: object) -> None:
        raise AssertionError("looked for rules")

    monkeypatch.setattr("dpmine.facts.drafting.detected_rules", planted)
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;x\n")
    schema = Schema("t", (Nominal("a;b", ("1;x", "other"), "other"),), 10)
    check_table(path, schema)
    dm.open(path, schema=schema, ledger=None, cap=1).close()
    with pytest.raises(AssertionError):
        Schema.draft(path)


def test_a_draft_of_json_lines_has_all_keys_and_opening_only_those_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "h": ["flu", "gout"]}\n{"b": "x", "h": []}\n')
    assert [attribute.name for attribute in Schema.draft(path).attributes] == ["a", "h", "b"]
    schema = Schema("t", (Nominal("c", ("1", "other"), "other"), ItemList("h", ("flu", "gout"), 2)), 10)
    table = encode(open_source(path, names=schema.columns), schema)
    assert table.codes["c"].tolist() == [2, 2]  # missing: no row has it, and no row has a say in that
    assert table.lists["h"].items.tolist() == [0, 1]
    with pytest.raises(dm.DataError, match="cannot read lists from JSON lines"):
        dm.open(path, schema=schema, ledger=None, cap=1, engine="duckdb")


# -- who is told -----------------------------------------------------------------------------------------------------------

SCHEMA = Schema("t", (Nominal("b", ("x", "y"), "y"),), 1000)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Of 100 lines one is left out and one read in part."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 98 + b'2,"secret\n' + b"3,M\xfcnchen\n")
    (tmp_path / "t.toml").write_text(SCHEMA.to_toml())
    return path


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_who_opens_a_table_is_warned_and_nobody_else(damaged: Path, engine: str) -> None:
    with pytest.warns(OwnerWarning) as told:
        data = dm.open(damaged, schema=SCHEMA, ledger=None, cap=10, engine=engine)
    sentences = [str(one.message) for one in told]
    assert sentences == [
        "For the owner only: 1 of 100 lines were left out: 1 for a quote that is never closed.",
        "For the owner only: 1 of 100 lines were read in part: 1 for bytes that are not utf-8, each read as U+FFFD.",
    ]
    assert issubclass(OwnerWarning, dm.DpmineWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = data.grant("alice", epsilon=10)
        shown = [private, private.count(epsilon=1), private.statement(), private.histogram("b", epsilon=1)]
    assert not any("left out" in text or "in part" in text for one in shown for text in (str(one), repr(one)))
    data.close()


def test_a_draft_warns_its_owner(damaged: Path) -> None:
    with pytest.warns(OwnerWarning, match="1 of 100 lines were left out"):
        Schema.draft(damaged)


def test_a_check_tells_and_fails_above_a_share_that_the_owner_may_raise(damaged: Path) -> None:
    check = ["schema", "check", str(damaged), str(damaged.with_suffix(".toml"))]
    refused = CliRunner().invoke(app, check)
    assert refused.exit_code == 2
    assert "1 of 100 lines were left out: 1 for a quote that is never closed." in refused.stdout
    assert "1 of 100 lines were read in part" in refused.stdout
    assert "More than 1.00% of the lines were not read as they stand." in " ".join(refused.stderr.split())
    raised = CliRunner().invoke(app, [*check, "--unread-at-most", "0.02", "--json"])
    assert raised.exit_code == 0
    assert json.loads(raised.stdout)["unread_lines"] == {
        "lines": 100,
        "left_out": {"a quote that is never closed": 1},
        "read_in_part": {"bytes that are not utf-8, each read as U+FFFD": 1},
    }
    assert "secret" not in refused.stdout + refused.stderr + raised.stdout + raised.stderr


def test_the_command_drafts_by_what_it_finds_or_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("ort;n\nKöln;1\nBonn;2\n".encode("latin-1") + b'x;"\n')
    found = CliRunner().invoke(app, ["schema", "draft", str(path), "--out", str(tmp_path / "t.toml")])
    assert found.exit_code == 0
    assert "The file is read with sep ';', encoding 'cp1252'." in found.stderr
    assert "1 of 3 lines were left out" in found.stderr
    assert Schema.load(tmp_path / "t.toml").read == ReadingRules(sep=";", encoding="cp1252")
    told = CliRunner().invoke(app, ["schema", "draft", str(path), "--sep", ";", "--encoding", "latin-1", "--json"])
    assert json.loads(told.stdout)["read"] == {"sep": ";", "encoding": "latin-1"}
    assert json.loads(told.stdout)["unread_lines"]["left_out"] == {"a quote that is never closed": 1}
    wrong = CliRunner().invoke(app, ["schema", "draft", str(path), "--encoding", "klingon"])
    assert wrong.exit_code == 2
    assert "'encoding' must be one of those" in wrong.stderr


def test_a_draft_of_a_file_without_names_warns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("17,north\n18,south\n")
    drafted = CliRunner().invoke(app, ["schema", "draft", str(tmp_path / "t.csv")])
    assert "A column is named by a number" in " ".join(drafted.stderr.split())


def test_what_an_analyst_s_command_prints_does_not_tell(damaged: Path) -> None:
    files = [str(damaged), "--schema", str(damaged.with_suffix(".toml"))]
    assert CliRunner().invoke(app, ["budget", "init", *files, "--cap", "1"]).exit_code == 0
    asked = CliRunner().invoke(app, ["query", "count", *files, "--epsilon", "0.5", "--as", "owner"])
    assert asked.exit_code == 0
    assert "lines were" not in asked.stdout + asked.stderr


def test_lines_that_are_whole_have_nothing_told(tmp_path: Path) -> None:
    assert LinesRead().share == 0.0
    assert LinesRead().sentences() == []
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    report = check_table(tmp_path / "t.csv", SCHEMA)
    assert report.lines.share == 0.0
    assert "lines were" not in str(report)
    assert Decimal(report.lines.lines) == 1
    assert delimited_text.MOST_LINES == 1000


@pytest.mark.parametrize("text", ["+-1,5", "-+1", "+-1.234,5"])
def test_two_signs_make_no_number_where_marks_are_taken_out_too(text: str) -> None:
    """DuckDB's own cast reads '+-1' as -1, and Python's float does not."""
    rules = ReadingRules(sep=";", thousands=".", decimal=",")
    with duckdb.connect() as connection:
        asked = connection.execute(f"SELECT {number_of_text(rules)} FROM (SELECT ? AS c)", [text]).fetchall()
    assert asked == [(None,)]
