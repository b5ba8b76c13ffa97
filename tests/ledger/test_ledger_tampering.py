"""Edits, truncations, restored backups and lost files: each is noticed when the ledger is next opened or used."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.ledger_auditor import audit
from support.ledgers import cell_request, charge_on, count_query, desk_on, open_ledger, pay, request

from dpmine.base.errors import LedgerError, LedgerTampered
from dpmine.base.wire import to_wire
from dpmine.owner.head_files import AnchorFile

# -- a ledger worth editing, made once and copied ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A closed ledger with every kind of entry: answered, resumed, waiting and free requests, a changed grant, a revoke."""
    folder = tmp_path_factory.mktemp("template")
    ledger = open_ledger(folder / "l.db", cap=10_000)
    for analyst in ("ann", "bob"):
        ledger.grant(analyst, 5_000)
    pay(ledger, request(100), b"one hundred")
    pay(ledger, cell_request(50, 1), b"cell one")
    pay(ledger, cell_request(50, 2), b"cell two")
    pay(ledger, request(70, analyst="bob", charge=charge_on(70, ("where", "old"))), b"the old")
    ledger.reserve(request(30))
    ledger.store(ledger.reserve(request(30)), b"resumed")
    ledger.reserve(request(20))
    ledger.grant("ann", 4_000)
    ledger.revoke("bob")
    ledger.close()
    audit(folder / "l.db")
    return folder


@pytest.fixture
def path(template, tmp_path) -> Path:
    return copied(template, tmp_path / "copy")


def copied(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder)
    return folder / "l.db"


def anchor_of(path: Path) -> Path:
    return path.with_name(path.name + ".anchor")


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount != 0, f"{statement} changed nothing"


def refused(path: Path, error: type[LedgerError] = LedgerTampered) -> str:
    """Opening must fail, with one short line that tells what is wrong and shows no path."""
    with pytest.raises(error) as caught:
        open_ledger(path)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 200
    assert str(path.parent) not in message
    return message


def test_the_untouched_copy_opens(path):
    open_ledger(path).close()


# -- edited rows ------------------------------------------------------------------------------------------------------

EDITS = {
    "a log entry": ("UPDATE log SET entry = replace(entry, '100', '001') WHERE sequence = 3", "hash chain breaks at row 3"),
    "a digest": ("UPDATE log SET digest = substr(digest, 2) || 'x' WHERE sequence = 4", "hash chain breaks at row 4"),
    "a sequence": ("UPDATE log SET sequence = 99 WHERE sequence = 5", "hash chain breaks at row 5"),
    "a middle row": ("DELETE FROM log WHERE sequence = 6", "hash chain breaks at row 6"),
    "the first row": ("DELETE FROM log WHERE sequence = 0", "hash chain breaks at row 0"),
    "the whole log": ("DELETE FROM log", "log is empty"),
    "an answer": ("UPDATE answers SET answer = x'00' WHERE sequence = 4", "answers are not what its log implies"),
    "a lost answer": ("DELETE FROM answers WHERE sequence = 4", "answers are not what its log implies"),
    "all answers": ("DELETE FROM answers", "answers are not what its log implies"),
    "a forged answer": ("INSERT INTO answers VALUES (2, x'00')", "answers are not what its log implies"),
    "an answer's row": ("UPDATE answers SET sequence = 5 WHERE sequence = 4", "answers are not what its log implies"),
    "two answers": (
        "UPDATE answers SET answer = (SELECT answer FROM answers WHERE sequence = 6) WHERE sequence = 4",
        "answers are not what its log implies",
    ),
    "an answer's type": ("UPDATE answers SET answer = 'one hundred' WHERE sequence = 4", "answers are not what its log"),
    "a checkpoint of nothing": ("INSERT INTO checkpoints VALUES (3, '{}')", "not the one that its log names"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_ledger_is_refused(path, name):
    statement, complaint = EDITS[name]
    run_sql(path, statement)
    assert complaint in refused(path)


@pytest.mark.parametrize(
    "statement", ["DROP TABLE answers", "DROP TABLE checkpoints", "DROP TABLE log", "ALTER TABLE answers DROP COLUMN answer"]
)
def test_a_ledger_that_lost_a_table_or_column_is_refused(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    refused(path, LedgerError)


CELLS = [
    (table, column)
    for table, columns in {
        "log": ("sequence", "entry", "digest"),
        "answers": ("sequence", "answer"),
    }.items()
    for column in columns
]


@settings(max_examples=300)
@given(
    st.sampled_from(CELLS),
    st.integers(0, 10**6),
    st.none() | st.integers(-(2**62), 2**62) | st.text(max_size=5) | st.binary(max_size=5) | st.floats(allow_nan=False),
)
def test_any_other_value_in_any_cell_is_noticed(template, cell, place, value):
    table, column = cell
    with tempfile.TemporaryDirectory() as folder:
        path = copied(template, Path(folder) / "copy")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            before = database.execute(f"SELECT * FROM {table}").fetchall()
            key = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[5]]
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            chosen = before[place % len(before)]
            where = " AND ".join(f"{name} = ?" for name in key)
            try:
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {where}",
                    (value, *(chosen[columns.index(name)] for name in key)),
                )
            except sqlite3.Error:
                assume(False)  # SQLite itself refuses such a value
            assume(sorted(map(repr, database.execute(f"SELECT * FROM {table}"))) != sorted(map(repr, before)))
        refused(path)


def test_text_that_is_no_text_is_refused(path):
    run_sql(path, "UPDATE log SET entry = CAST(x'ff' AS TEXT) WHERE sequence = 4")
    refused(path, LedgerError)


def test_a_file_whose_pages_are_overwritten_is_refused(path):
    content = bytearray(path.read_bytes())
    content[4096 : len(content)] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    refused(path, LedgerError)


# -- forged chains ----------------------------------------------------------------------------------------------------


def rewrite_log(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> list[str]:
    """Change the log's entries and recompute every digest, as someone who knows the format would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        texts = [entry for (entry,) in database.execute("SELECT entry FROM log ORDER BY sequence")]
        forged = change([json.loads(text) for text in texts])
        database.execute("DELETE FROM log")
        digests = ["0" * 64]
        for sequence, entry in enumerate(forged):
            text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
            digests.append(hashlib.sha256(f"{digests[-1]}\n{sequence}\n{text}".encode()).hexdigest())
            database.execute("INSERT INTO log VALUES (?, ?, ?)", (sequence, text, digests[-1]))
    return digests[1:]


def raise_the_cap(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**entry, "cap": 10**9} if entry["do"] == "create" else entry for entry in entries]


def test_a_forged_entry_with_all_later_digests_recomputed_is_refused(path):
    rewrite_log(path, raise_the_cap)
    assert "Row 0 of the ledger is not the one its anchor has seen" in refused(path)


def test_a_removed_entry_with_all_later_digests_recomputed_is_refused(path):
    rewrite_log(path, lambda entries: [entry for entry in entries if entry["do"] != "revoke"])
    assert "anchor has seen row" in refused(path)


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_truncated_log_is_refused_though_its_chain_is_whole(path, lost):
    run_sql(path, f"DELETE FROM log WHERE sequence > (SELECT max(sequence) - {lost} FROM log)")
    assert "it was truncated or restored from a backup" in refused(path)


def test_a_forged_ledger_without_its_anchor_is_refused(path):
    rewrite_log(path, raise_the_cap)
    anchor_of(path).unlink()
    assert "anchor l.db.anchor is missing" in refused(path)


def test_a_forged_ledger_with_an_emptied_anchor_is_refused(path):
    rewrite_log(path, raise_the_cap)
    anchor_of(path).write_bytes(b"")
    assert "anchor was told nothing of this ledger" in refused(path)


def test_a_forger_who_rewrites_the_anchor_too_is_still_denied_by_the_heads_that_analysts_keep(tmp_path):
    path = tmp_path / "l.db"
    ledger = open_ledger(path, cap=10_000)
    ledger.grant("ann", 5_000)
    kept = desk_on(ledger).answer(to_wire(count_query(100)), analyst="ann").head
    ledger.close()
    assert audit(path).digests[kept.sequence] == kept.digest
    digests = rewrite_log(path, raise_the_cap)
    anchor_of(path).write_text("".join(f"{row} {digest}\n" for row, digest in enumerate(digests)))
    open_ledger(path).close()  # nothing beside the ledger tells
    assert audit(path).digests[kept.sequence] != kept.digest


UNREADABLE = ([{"do": "nothing"}], [{}], [[]], [{"do": "grant"}], [{"do": "answer", "analyst": "a", "key": "k"}])


def test_a_chain_of_unreadable_entries_is_refused(path):
    for forged in UNREADABLE:
        digests = rewrite_log(path, lambda entries, forged=forged: forged)
        anchor_of(path).write_text(f"0 {digests[0]}\n")
        assert "cannot be read" in refused(path)


@pytest.mark.parametrize("nonce", [None, "", "ab", "AB" * 16, "xy" * 16, "ab" * 17, 7, "ab" * 15 + " a"])
def test_an_entry_without_32_hexadecimal_digits_of_nonce_is_refused(path, nonce):
    digests = rewrite_log(path, lambda entries: [*entries[:-1], {**entries[-1], "nonce": nonce}])
    anchor_of(path).write_text(f"0 {digests[0]}\n")
    assert "cannot be read" in refused(path)


def test_an_entry_that_repeats_a_nonce_is_refused(path):
    digests = rewrite_log(path, lambda entries: [*entries[:-1], {**entries[-1], "nonce": entries[2]["nonce"]}])
    anchor_of(path).write_text(f"0 {digests[0]}\n")
    assert "repeats a nonce of an earlier row" in refused(path)


@pytest.mark.parametrize(
    ("facts", "stated"), [("0" * 64, "'an earlier one'"), ({"format": "dpmine-ledger-4"}, "'dpmine-ledger-4'")]
)
def test_a_ledger_of_another_format_is_refused_in_one_sentence_that_says_what_to_do(path, facts, stated):
    """Ledgers of format 2 had a digest where this one's facts stand."""
    rewrite_log(path, lambda entries: [{**entries[0], "facts": facts}, *entries[1:]])
    message = refused(path, LedgerError)
    assert stated in message
    assert "make a new one" in message
    assert message.count(".") == 1


def test_an_entry_that_states_another_cost_than_its_odometers_is_refused(path):
    def undercharge(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**entry, "cost": [0, 0]} if entry["do"] == "reserve" else entry for entry in entries]

    digests = rewrite_log(path, undercharge)
    anchor_of(path).write_text(f"0 {digests[0]}\n")
    assert "states a cost that its odometers do not imply" in refused(path)


def appended(path: Path, entry: dict[str, Any]) -> None:
    """An entry with a good chain at the end, which no anchor has seen: as by somebody who edits the file alone."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        sequence, _, digest = database.execute("SELECT * FROM log ORDER BY sequence DESC LIMIT 1").fetchone()
        text = json.dumps({"nonce": "ab" * 16, "at": "now", **entry}, sort_keys=True, separators=(",", ":"))
        chained = hashlib.sha256(f"{digest}\n{sequence + 1}\n{text}".encode()).hexdigest()
        database.execute("INSERT INTO log VALUES (?, ?, ?)", (sequence + 1, text, chained))


def entry_of(path: Path, sequence: int) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as database:
        return json.loads(database.execute("SELECT entry FROM log WHERE sequence = ?", (sequence,)).fetchone()[0])


FORGED = {
    "the ledger made again, with a larger cap": lambda path: {**entry_of(path, 0), "cap": 10**9},
    "a grant to the data set": lambda path: {"do": "grant", "analyst": "", "units": 10**9},
    "an answer given anew": lambda path: {"do": "answer", "analyst": "ann", "key": "count at 100", "sha256": "0" * 64},
    "an answer that nobody paid": lambda path: {"do": "answer", "analyst": "ann", "key": "free", "sha256": "0" * 64},
    "a second chance": lambda path: {"do": "resume", "analyst": "ann", "key": "count at 30", "token": "0" * 32},
    "a request charged again": lambda path: {**entry_of(path, 3), "cost": [0, 0]},
    "a request under another key": lambda path: {**entry_of(path, 3), "key": "another", "cost": [100, 100]},
    "somebody unknown revoked": lambda path: {"do": "revoke", "analyst": "eve"},
}


@pytest.mark.parametrize("name", FORGED)
def test_an_appended_entry_that_the_protocol_never_writes_is_refused(path, name):
    appended(path, {**FORGED[name](path), "nonce": "ab" * 16})
    assert "cannot be read" in refused(path)


# -- files restored, lost or exchanged --------------------------------------------------------------------------------


def test_a_restored_backup_is_refused(template, path):
    ledger = open_ledger(path)
    pay(ledger, request(999), b"after the backup")
    ledger.close()
    shutil.copy(template / "l.db", path)
    assert "it was truncated or restored from a backup" in refused(path)


def test_a_backup_taken_while_the_ledger_was_in_use_is_refused(path, tmp_path):
    ledger = open_ledger(path)
    pay(ledger, request(998))
    shutil.copytree(path.parent, tmp_path / "backup")
    pay(ledger, request(999))
    ledger.close()
    for name in ("l.db", "l.db-wal"):
        shutil.copy(tmp_path / "backup" / name, path.parent / name)
    assert "it was truncated or restored from a backup" in refused(path)


def test_a_lost_write_ahead_log_is_refused(path, tmp_path):
    ledger = open_ledger(path)
    pay(ledger, request(999))
    shutil.copytree(path.parent, tmp_path / "crashed")
    ledger.close()
    (tmp_path / "crashed" / "l.db-wal").unlink()
    assert "it was truncated or restored from a backup" in refused(tmp_path / "crashed" / "l.db")


def test_the_same_crash_with_its_write_ahead_log_is_fine(path, tmp_path):
    ledger = open_ledger(path)
    pay(ledger, request(999))
    shutil.copytree(path.parent, tmp_path / "crashed")
    ledger.close()
    open_ledger(tmp_path / "crashed" / "l.db").close()
    assert audit(tmp_path / "crashed" / "l.db").charged["ann", "count at 999"] == 999


def test_a_missing_anchor_is_refused(path):
    anchor_of(path).unlink()
    assert "Put it back beside the ledger" in refused(path)


def test_an_emptied_anchor_is_refused(path):
    anchor_of(path).write_bytes(b"")
    assert "anchor was told nothing of this ledger" in refused(path)


def test_a_missing_ledger_is_not_made_anew_beside_its_anchor(path):
    path.unlink()
    with pytest.raises(LedgerTampered, match=r"l\.db is missing, but its anchor is there"):
        open_ledger(path, cap=10_000)
    assert not path.exists()


def test_an_emptied_ledger_is_not_filled_anew_beside_its_anchor(path):
    before = anchor_of(path).read_bytes()
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(LedgerTampered, match="is empty, but its anchor has seen rows"):
            open_ledger(path, cap=10_000)
    assert anchor_of(path).read_bytes() == before


def test_a_fresh_ledger_in_the_place_of_the_old_one_is_refused(path, tmp_path):
    open_ledger(tmp_path / "fresh.db", cap=10_000).close()
    (tmp_path / "fresh.db").replace(path)
    assert "not the one its anchor has seen" in refused(path) or "has seen row" in refused(path)


def test_the_anchor_of_another_ledger_is_refused(path, tmp_path):
    open_ledger(tmp_path / "other.db", cap=10_000).close()
    anchor_of(tmp_path / "other.db").replace(anchor_of(path))
    assert "Row 0 of the ledger is not the one its anchor has seen" in refused(path)


# -- while it is open -------------------------------------------------------------------------------------------------


def uses(path: Path) -> list[Callable[[Any], Any]]:
    return [
        lambda ledger: pay(ledger, request(1)),
        lambda ledger: ledger.grant("eve", 5),
        lambda ledger: ledger.revoke("ann"),
    ]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("how", ["replaced by a copy", "removed", "moved away"])
def test_a_ledger_whose_file_is_exchanged_while_it_is_open_is_refused(path, tmp_path, how, number):
    ledger = open_ledger(path)
    if how == "replaced by a copy":
        shutil.copy(path, tmp_path / "copy.db")
        (tmp_path / "copy.db").replace(path)
    elif how == "removed":
        path.unlink()
    else:
        path.rename(tmp_path / "moved.db")
    with pytest.raises(LedgerTampered, match="moved, removed or replaced while it was open"):
        uses(path)[number](ledger)
    ledger.close()


@pytest.mark.parametrize("number", range(3))
def test_a_ledger_that_loses_rows_while_it_is_open_is_refused(path, number):
    ledger = open_ledger(path)
    run_sql(path, "DELETE FROM log WHERE sequence = (SELECT max(sequence) FROM log)")
    with pytest.raises(LedgerTampered, match="lost rows while it was open"):
        uses(path)[number](ledger)
    ledger.close()


def test_an_open_ledger_that_was_edited_is_refused_by_verify(path):
    ledger = open_ledger(path)
    run_sql(path, "UPDATE log SET entry = entry || ' ' WHERE sequence = 3")
    with pytest.raises(LedgerTampered, match="breaks at row 3"):
        ledger.verify()
    ledger.close()


# -- the anchor's own lines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", [b"1", b"12 ", b"12 0123abc", b"12 " + b"a" * 64])
def test_a_torn_last_line_of_the_anchor_is_tolerated_and_later_lines_stay_readable(path, torn):
    with open(anchor_of(path), "ab") as file:
        file.write(torn)
    for units in (7, 8):
        ledger = open_ledger(path)
        pay(ledger, request(units))
        ledger.close()
    assert audit(path).charged["ann", "count at 8"] == 8
    heads = AnchorFile(path).heads("")
    assert heads[-1].sequence == len(audit(path).digests) - 1
    run_sql(path, "DELETE FROM log WHERE sequence = (SELECT max(sequence) FROM log)")
    assert "it was truncated" in refused(path)


@pytest.mark.parametrize(
    "line", [b"garbage", b"", b"x 00", b"0", b"0 00 00", b"0  00", b"\xff\xfe 00", b"0 " + b"a" * 64, b"99 " + b"a" * 64]
)
def test_a_line_of_the_anchor_that_is_no_head_of_the_ledger_is_refused(path, line):
    with open(anchor_of(path), "ab") as file:
        file.write(line + b"\n")
    refused(path)


def test_a_repeated_or_late_line_of_the_anchor_is_fine(path):
    lines = anchor_of(path).read_bytes().splitlines(keepends=True)
    anchor_of(path).write_bytes(b"".join([*lines, lines[0], lines[-1], lines[3]]))
    open_ledger(path).close()


def test_a_ledger_whose_first_line_was_never_anchored_opens_and_is_anchored(tmp_path):
    """As left by a crash between making the ledger and anchoring it."""
    open_ledger(tmp_path / "l.db", cap=10).close()
    anchor_of(tmp_path / "l.db").write_bytes(b"")
    open_ledger(tmp_path / "l.db").close()
    assert len(AnchorFile(tmp_path / "l.db").heads("")) == 1
