"""A file that a ledger was opened with is refused with any other, which would sell the same rows twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.command_line import Hospital, done, done_json, refused, run

import dpmine as dm
from dpmine.datasets import patients, patients_schema
from dpmine.owner import one_ledger
from dpmine.owner.one_ledger import KnownFile, Record, files_of, record_of

ROWS = pd.DataFrame(patients(30))
SCHEMA = patients_schema()
OTHER = replace(SCHEMA, name="patients2")
LEDGER, OTHER_LEDGER = "patients.ledger.db", "patients2.ledger.db"


def table(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    ROWS.to_csv(place, index=False)
    return place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that was opened once."""
    made = table(tmp_path / "rows.csv")
    opened(made)
    return made


def opened(place: Any, schema: dm.Schema = SCHEMA, **options: Any) -> None:
    dm.open(place, schema=schema, **{"cap": 1, **options}).close()


def is_refused(place: Any, schema: dm.Schema = OTHER, **options: Any) -> str:
    with pytest.raises(dm.RequestError, match=r"is in the ledger .* already, and a second ledger would sell") as told:
        opened(place, schema, **options)
    return str(told.value)


def recorded(ledger: Path) -> set[str]:
    return {Path(known.path).name for known in record_of(ledger).files}


# -- the same file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_the_same_file_under_another_name_is_refused_in_a_sentence_and_leaves_no_ledger(file: Path, engine: str) -> None:
    assert is_refused(file, engine=engine) == (
        f"{str(file)!r} is in the ledger {str(file.with_name(LEDGER))!r} of the data set 'patients' already, and a second "
        "ledger would sell the same rows twice: open it with that ledger and data set, or allow two budgets that add up "
        "with another_ledger=True (dpmine --another-ledger)."
    )
    assert not list(file.parent.glob("patients2*"))


def test_so_is_the_same_data_set_with_another_ledger(file: Path) -> None:
    is_refused(file, SCHEMA, ledger=file.with_name("own.db"))
    (file.parent / "books").mkdir()
    is_refused(file, SCHEMA, ledger=file.parent / "books" / "own.db")


def test_the_same_ledger_opens_again_and_writes_nothing(file: Path) -> None:
    record = file.with_name(LEDGER + ".files")
    before = record.read_bytes()
    opened(file)
    opened(str(file), version="2", engine="duckdb")
    opened(file, ledger=file.with_name(LEDGER))
    assert record.read_bytes() == before
    assert record.stat().st_mode & 0o777 == 0o600 or os.name == "nt"


def test_a_new_state_of_the_file_is_recorded_and_still_refused_elsewhere(file: Path) -> None:
    ROWS.head(20).to_csv(file, index=False)
    opened(file, version="2")
    assert len(record_of(file.with_name(LEDGER)).files) == 2
    is_refused(file)


def hard_link(file: Path) -> Path:
    os.link(file, file.with_name("link.csv"))
    return file.with_name("link.csv")


def changed_hard_link(file: Path) -> Path:
    link = hard_link(file)
    ROWS.head(20).to_csv(link, index=False)
    return link


def symbolic_link(file: Path) -> Path:
    folder = file.with_name("elsewhere")
    folder.mkdir()
    (folder / "link.csv").symlink_to(file)
    return folder / "link.csv"


def linked_folder(file: Path) -> Path:
    file.with_name("folder").symlink_to(file.parent)
    return file.with_name("folder") / file.name


def renamed(file: Path) -> Path:
    return file.rename(file.with_name("renamed.csv"))


def moved_down(file: Path) -> Path:
    file.with_name("old").mkdir()
    return file.rename(file.with_name("old") / "renamed.csv")


def detour(file: Path) -> Path:
    return file.parent / ".." / file.parent.name / file.name


def relative(file: Path) -> Path:
    return Path(file.name)


def pattern(file: Path) -> Path:
    return file.with_name("r*.csv")


WAYS = (hard_link, changed_hard_link, symbolic_link, linked_folder, renamed, moved_down, detour, relative, pattern)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_file_is_known_under_every_name(file: Path, way: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    is_refused(way(file))


def test_a_renamed_file_is_added_to_its_ledger(file: Path) -> None:
    other = renamed(file)
    opened(other)
    assert recorded(file.with_name(LEDGER)) == {"rows.csv", "renamed.csv"}
    shutil.copy(other, file)
    is_refused(other)
    is_refused(file)


def test_a_copy_is_another_file(file: Path) -> None:
    opened(shutil.copy(file, file.with_name("copy.csv")), OTHER)


def test_the_number_of_a_removed_file_does_not_make_a_new_one_the_same() -> None:
    known = KnownFile("/gone/rows.csv", 1, 2, 30, 40)
    assert known.is_now(KnownFile("/else/rows.csv", 1, 2, 30, 40))
    for other in (("/x", 1, 2, 30, 41), ("/x", 1, 2, 31, 40), ("/x", 1, 3, 30, 40), ("/x", 2, 2, 30, 40)):
        assert not known.is_now(KnownFile(*other))
    assert known.is_now(KnownFile("/gone/rows.csv", 9, 9, 9, 9))


def test_tables_without_files_and_ledgers_in_memory_record_nothing_and_are_not_refused(file: Path) -> None:
    opened(file, OTHER, ledger=None)
    opened(ROWS, OTHER, ledger=file.with_name("frame.db"))
    dm.TreeClassifier(epsilon=1, max_depth=1, schema=OTHER).fit(file)
    assert not file.with_name("frame.db.files").exists()


def test_a_missing_file_is_told_as_that(file: Path) -> None:
    assert files_of(file.with_name("none.csv")) == ()
    with pytest.raises(dm.DpmineError, match="There is no file"):
        opened(file.with_name("none.csv"), OTHER)


# -- patterns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("lake/*.csv", "lake/20??.csv"),
        ("lake/20??.csv", "lake/*.csv"),
        ("lake/*.csv", "lake/2024.csv"),
        ("lake/2024.csv", "lake/*.csv"),
        ("lake/**/*.csv", "lake/a/part.csv"),
        ("lake/a/part.csv", "lake/**/*.csv"),
        ("lake/*/part.csv", "lake/a/*.csv"),
        ("*/*/part.csv", "lake/[ab]/*.csv"),
    ],
)
def test_patterns_that_overlap(tmp_path: Path, first: str, second: str) -> None:
    for name in ("2024", "2025", "a/part", "b/part", "old"):
        table(tmp_path / "lake" / f"{name}.csv")
    opened(tmp_path / first)
    is_refused(tmp_path / second)


def test_patterns_that_do_not_overlap(tmp_path: Path) -> None:
    for name in ("a1", "a2", "b1"):
        table(tmp_path / f"{name}.csv")
    opened(tmp_path / "a*.csv")
    opened(tmp_path / "b*.csv", OTHER)
    assert recorded(tmp_path / LEDGER) == {"a1.csv", "a2.csv"}
    table(tmp_path / "a3.csv")
    opened(tmp_path / "a*.csv")
    assert recorded(tmp_path / LEDGER) == {"a1.csv", "a2.csv", "a3.csv"}


# -- allowed ----------------------------------------------------------------------------------------------------------


def test_another_ledger_is_allowed_once_and_warned_of_once(file: Path) -> None:
    with pytest.warns(dm.DpmineWarning) as told:
        opened(file, OTHER, another_ledger=True)
    assert [str(one.message) for one in told] == [
        f"{str(file)!r} is in the ledger {str(file.with_name(LEDGER))!r} of the data set 'patients', too: what is spent "
        f"there and in {str(file.with_name(OTHER_LEDGER))!r} adds up, and neither ledger counts both."
    ]
    assert told[0].filename == __file__
    opened(file, OTHER, another_ledger=True)  # warnings are errors here
    opened(file, OTHER)
    opened(file)


def test_a_third_ledger_is_asked_for_both(file: Path) -> None:
    with pytest.warns(dm.DpmineWarning):
        opened(file, OTHER, another_ledger=True)
    third = replace(SCHEMA, name="patients3")
    is_refused(file, third)
    with pytest.warns(dm.DpmineWarning) as told:
        opened(file, third, another_ledger=True)
    assert len(told) == 2


def test_the_flag_where_there_is_nothing_to_allow_says_nothing(tmp_path: Path) -> None:
    opened(table(tmp_path / "rows.csv"), another_ledger=True)
    is_refused(tmp_path / "rows.csv")


def test_where_warnings_are_errors_nothing_is_allowed(file: Path) -> None:
    with pytest.raises(dm.DpmineWarning):
        opened(file, OTHER, another_ledger=True)
    is_refused(file)


# -- other ledgers ----------------------------------------------------------------------------------------------------


def test_the_folder_of_a_named_ledger_is_looked_at_too(tmp_path: Path) -> None:
    file = table(tmp_path / "data" / "rows.csv")
    books = tmp_path / "books"
    books.mkdir()
    opened(file, ledger=books / "own.db")
    opened(file, ledger=books / "own.db")
    is_refused(file, ledger=books / "second.db")
    assert {path.name for path in books.iterdir()} == {"own.db", "own.db.anchor", "own.db.files"}


def test_a_named_ledger_is_held_against_the_one_beside_the_file_and_not_the_other_way_round(tmp_path: Path) -> None:
    """The second half is a known limit: nothing leads from the file to a ledger in a third folder."""
    first, second = table(tmp_path / "data" / "rows.csv"), table(tmp_path / "more" / "rows.csv")
    (tmp_path / "books").mkdir()
    opened(first)
    is_refused(first, ledger=tmp_path / "books" / "own.db")
    opened(second, ledger=tmp_path / "books" / "own.db")
    opened(second)


def test_a_copy_of_a_ledger_is_no_other_ledger(file: Path) -> None:
    for ending in ("", ".anchor", ".files"):
        shutil.copy(file.with_name(LEDGER + ending), file.with_name("backup.db" + ending))
    opened(file)


def test_the_record_of_a_ledger_that_is_gone_counts_for_nothing(file: Path) -> None:
    file.with_name(LEDGER).unlink()
    is_refused(file)  # its anchor is there: it was lost
    file.with_name(LEDGER + ".anchor").unlink()
    opened(file, OTHER)


def test_a_new_ledger_in_the_place_of_another_starts_its_record_anew(file: Path) -> None:
    second = table(file.with_name("second.csv"))
    for ending in ("", ".anchor"):
        file.with_name(LEDGER + ending).unlink()
    opened(second)
    assert recorded(file.with_name(LEDGER)) == {"second.csv"}
    opened(file, OTHER)


def test_a_ledger_without_a_record_opens_and_gets_one(file: Path) -> None:
    record = file.with_name(LEDGER + ".files")
    record.unlink()
    opened(file)
    assert record.exists()
    is_refused(file)


BAD = [
    b"what?\n",
    b'{"ledger": 1}\n',
    b"[]\n",
    b"\xff\xfe\n",
    b'{"ledger":"a","dataset":"b","files":[[1,1e999,1,1,1]],"beside":[],"withdrawn":[]}\n',
]


@pytest.mark.parametrize("bad", [*BAD, b"[" * 100_000 + b"\n", None])
def test_a_neighbours_record_that_cannot_be_read_is_warned_of(tmp_path: Path, bad: bytes | None) -> None:
    opened(table(tmp_path / "other.csv"), OTHER)
    record = tmp_path / (OTHER_LEDGER + ".files")
    if bad is None:
        record.unlink()
        record.mkdir()  # fails for everybody, as rights do not
    else:
        record.write_bytes(record.read_bytes() + bad)
    file = table(tmp_path / "rows.csv")
    for _ in range(2):
        with pytest.warns(
            dm.DpmineWarning, match=f"What files the ledger .*{OTHER_LEDGER}.* was opened with cannot be read"
        ) as told:
            opened(file)
        assert len(told) == 1
        assert told[0].filename == __file__
    if bad is not None:  # what can be read of it counts
        with pytest.warns(dm.DpmineWarning):
            is_refused(tmp_path / "other.csv", SCHEMA)


def test_a_line_that_a_crash_cut_short_is_passed_over(file: Path) -> None:
    record = file.with_name(LEDGER + ".files")
    with record.open("ab") as end:
        end.write(b'{"ledger": "cut sh')
    opened(file)
    opened(renamed(file))
    assert recorded(file.with_name(LEDGER)) == {"rows.csv", "renamed.csv"}
    assert record_of(file.with_name(LEDGER)).is_whole


@pytest.mark.parametrize("content", [b"", b"no ledger at all\n"])
def test_a_neighbour_that_is_no_sound_ledger_stops_nobody(file: Path, content: bytes) -> None:
    """Its database is not opened, whatever its format, state or locks."""
    file.with_name(LEDGER).write_bytes(content)
    is_refused(file)
    opened(table(file.with_name("other.csv")), OTHER)


def test_a_record_that_cannot_be_written_lets_nothing_be_opened(tmp_path: Path) -> None:
    file = table(tmp_path / "rows.csv")
    (tmp_path / (LEDGER + ".files")).mkdir()
    with pytest.raises(dm.LedgerError, match=r"The record of the ledger's files .* cannot be written"):
        opened(file)


# -- crashes and races ------------------------------------------------------------------------------------------------


def test_after_a_crash_between_making_a_ledger_and_recording_the_next_opening_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table(tmp_path / "rows.csv")

    def die(*unused: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(one_ledger.OneLedger, "record", die)
        with pytest.raises(KeyboardInterrupt):
            opened(file)
    assert (tmp_path / LEDGER).exists()
    assert not record_of(tmp_path / LEDGER).files
    opened(file)
    is_refused(file)


def test_whoever_sees_the_other_only_after_recording_withdraws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment of a race: the other one records between our looking and our recording."""
    file = table(tmp_path / "rows.csv")
    write = one_ledger.OneLedger._write

    def write_late(self: one_ledger.OneLedger, *arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(one_ledger.OneLedger, "_write", write)
        opened(file)
        write(self, *arguments, **options)

    monkeypatch.setattr(one_ledger.OneLedger, "_write", write_late)
    is_refused(file)
    assert record_of(tmp_path / OTHER_LEDGER).files == set()
    opened(file)
    is_refused(file)


RACE = """
import sys, warnings
import dpmine as dm
from dataclasses import replace
from dpmine.datasets import patients_schema
schema = replace(patients_schema(), name=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    dm.open(sys.argv[1], schema=schema, cap=1).close()
    print("opened")
except dm.RequestError as error:
    print("refused" if "is in the ledger" in str(error) else error)
"""


def test_of_several_that_open_one_file_at_once_one_at_most_may(tmp_path: Path) -> None:
    for turn in range(3):
        file = table(tmp_path / str(turn) / "rows.csv")
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACE, str(file), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for name in ("one", "two", "three")
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        ends = sorted(racer.communicate()[0] for racer in racers)
        assert ends in (["opened\n", "refused\n", "refused\n"], ["refused\n"] * 3)
        claims = [name for name in ("one", "two", "three") if record_of(file.with_name(f"{name}.ledger.db")).files]
        assert len(claims) == ends.count("opened\n")


def test_the_same_ledger_is_opened_by_several_at_once(tmp_path: Path) -> None:
    file = table(tmp_path / "rows.csv")
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE, str(file), "patients"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [racer.communicate(b"go\n")[0] for racer in racers] == [b"ready\nopened\n"] * 3
    assert recorded(tmp_path / LEDGER) == {"rows.csv"}


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def hospital(tmp_path: Path) -> Hospital:
    hospital = Hospital(tmp_path)
    hospital.open_books()
    return hospital


@pytest.fixture
def second(hospital: Hospital) -> Path:
    schema = hospital.folder / "second.toml"
    schema.write_text(hospital.schema.read_text().replace('name = "patients"', 'name = "patients2"'))
    return schema


def test_a_second_ledger_is_refused_on_the_command_line(hospital: Hospital, second: Path) -> None:
    init = ["budget", "init", hospital.data, "--schema", second, "--cap", "4"]
    sentence = refused(*init)
    assert f"is in the ledger {str(hospital.ledger)!r} of the data set 'patients' already" in sentence
    assert "dpmine --another-ledger" in sentence
    refused(*init, "--ledger", hospital.folder / "own.db")
    refused(*hospital.of("budget", "init"), "--cap", "4", "--ledger", hospital.folder / "own.db")
    assert not list(hospital.folder.glob("own*"))


@pytest.mark.parametrize("first", [True, False])
def test_it_is_allowed_once_and_warned_of_once(hospital: Hospital, second: Path, first: bool) -> None:
    init = ["budget", "init", hospital.data, "--schema", second, "--cap", "4"]
    result = run(*(["--another-ledger", *init] if first else [*init, "--another-ledger"]))
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert result.stderr.count("\n") == 1
    assert "adds up" in result.stderr
    asked = run("query", "count", hospital.data, "--schema", second, "--epsilon", "0.1")
    assert (asked.exit_code, asked.stderr) == (0, "")
    assert done_json(*hospital.query("count"), "--epsilon", "0.1")
    refused("--another-ledger", *init)  # it exists


def test_commands_that_open_an_existing_ledger_can_be_allowed_to(hospital: Hospital, second: Path) -> None:
    """Ledgers that were both made before files were recorded."""
    run("budget", "init", hospital.data, "--schema", second, "--cap", "4", "--another-ledger")
    for name in (LEDGER, OTHER_LEDGER):
        (hospital.folder / (name + ".files")).unlink()
    count = ["query", "count", hospital.data, "--schema", second, "--epsilon", "0.1"]
    assert done_json(*hospital.query("count"), "--epsilon", "0.1")
    refused(*count)
    assert run("--another-ledger", *count).exit_code == 0
    assert run(*count).stderr == ""


def test_commands_that_open_no_table_look_at_no_record(hospital: Hospital, second: Path) -> None:
    before = (hospital.folder / (LEDGER + ".files")).read_bytes()
    (hospital.folder / "other.db").touch()
    (hospital.folder / "other.db.files").mkdir()
    for command in (["show"], ["statement"], ["verify"], ["grant", "bob", "--epsilon", "1"], ["revoke", "bob"]):
        result = run(*hospital.of("budget", *command))
        assert (result.exit_code, result.stderr) == (0, "")
    assert done("schema", "check", hospital.data, second)
    assert (hospital.folder / (LEDGER + ".files")).read_bytes() == before


def test_many_files_are_looked_at_in_no_time() -> None:
    many = [KnownFile(f"/lake/{number}.parquet", 1, number, 10, 20) for number in range(100_000)]
    record = Record(Path("l.db"), "a", "b", set(many))
    others = [KnownFile(f"/other/{number}.parquet", 2, number, 10, 20) for number in range(100_000)]
    start = time.process_time()
    assert record.shares(others) is None
    assert record.shares([*others, many[7]]) == many[7]
    assert time.process_time() - start < 5
