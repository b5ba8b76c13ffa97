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
from ledger_auditor import audit
from ledger_worlds import cell_request, charge_on, count_query, kernel_on, open_ledger, pay, request

from dpmine.errors import LedgerError, LedgerTampered
from dpmine.kernel.chain import Anchor
from dpmine.wire import to_wire

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
    "the money spent": ("UPDATE accounts SET spent = spent - 1 WHERE name = 'ann'", "accounts are not what its log implies"),
    "the data set's": ("UPDATE accounts SET spent = 0 WHERE name = ''", "accounts are not what its log implies"),
    "the cap": ("UPDATE accounts SET allotment = 99999 WHERE name = ''", "accounts are not what its log implies"),
    "an allotment": ("UPDATE accounts SET allotment = 99999 WHERE name = 'ann'", "accounts are not what its log implies"),
    "a revocation": ("UPDATE accounts SET revoked = 0 WHERE name = 'bob'", "accounts are not what its log implies"),
    "a new account": ("INSERT INTO accounts VALUES ('eve', 9999, 0, 0)", "accounts are not what its log implies"),
    "an odometer": ("UPDATE totals SET units = units - 1 WHERE account = 'ann'", "odometers are not what its log implies"),
    "a lost odometer": ("DELETE FROM totals WHERE account = 'ann'", "odometers are not what its log implies"),
    "an answer": ("UPDATE requests SET answer = x'00' WHERE plan = 'count at 100'", "requests are not what its log implies"),
    "an answer's loss": ("UPDATE requests SET answer = NULL WHERE plan = 'count at 100'", "requests are not what its log"),
    "a forged answer": ("UPDATE requests SET answer = x'00' WHERE state = 'RESERVED'", "requests are not what its log"),
    "a state": (
        "UPDATE requests SET state = 'RESERVED' WHERE plan = 'count at 100'",
        "requests are not what its log implies",
    ),
    "a plan": (
        "UPDATE requests SET plan = 'count at 7' WHERE plan = 'count at 100'",
        "requests are not what its log implies",
    ),
    "a key": ("UPDATE requests SET key = 'other' WHERE plan = 'count at 100'", "requests are not what its log implies"),
    "a cost": ("UPDATE requests SET cost = 0 WHERE plan = 'count at 100'", "requests are not what its log implies"),
    "a second chance": ("UPDATE requests SET resumed = 0 WHERE resumed = 1", "requests are not what its log implies"),
    "an answer's row": ("UPDATE requests SET sequence = 6 WHERE plan = 'count at 100'", "requests are not what its log"),
    "a lost request": ("DELETE FROM requests WHERE plan = 'count at 100'", "requests are not what its log implies"),
    "the data set": ("UPDATE facts SET value = 'other' WHERE name = 'dataset'", "facts are not what its log implies"),
    "the currency": ("UPDATE facts SET value = 'zCDP' WHERE name = 'currency'", "facts are not what its log implies"),
    "the split key": ("UPDATE facts SET value = '00' WHERE name = 'split_key'", "facts are not what its log implies"),
    "a lost fact": ("DELETE FROM facts WHERE name = 'neighbours'", "facts are not what its log implies"),
    "a fact's type": ("UPDATE facts SET value = x'00' WHERE name = 'dataset'", "wrong type"),
    "an answer's type": ("UPDATE requests SET answer = 'text' WHERE plan = 'count at 100'", "wrong type"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_ledger_is_refused(path, name):
    statement, complaint = EDITS[name]
    run_sql(path, statement)
    assert complaint in refused(path)


@pytest.mark.parametrize("statement", ["DROP TABLE requests", "DROP TABLE log", "ALTER TABLE totals DROP COLUMN units"])
def test_a_ledger_that_lost_a_table_or_column_is_refused(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)
    refused(path, LedgerError)


CELLS = [
    (table, column)
    for table, columns in {
        "log": ("sequence", "entry", "digest"),
        "accounts": ("name", "allotment", "revoked", "spent"),
        "totals": ("account", "node", "units"),
        "requests": ("analyst", "key", "plan", "state", "resumed", "cost", "answer", "sequence"),  # not the secret token
        "facts": ("name", "value"),
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
    run_sql(path, "UPDATE requests SET plan = CAST(x'ff' AS TEXT) WHERE plan = 'count at 100'")
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
    run_sql(path, "UPDATE accounts SET allotment = 1000000000 WHERE name = ''")
    assert "Row 0 of the ledger is not the one its anchor has seen" in refused(path)


def test_a_removed_entry_with_all_later_digests_recomputed_is_refused(path):
    rewrite_log(path, lambda entries: [entry for entry in entries if entry["do"] != "revoke"])
    run_sql(path, "UPDATE accounts SET revoked = 0")
    assert "anchor has seen row" in refused(path)


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_truncated_log_is_refused_though_its_chain_is_whole(path, lost):
    run_sql(path, f"DELETE FROM log WHERE sequence > (SELECT max(sequence) - {lost} FROM log)")
    assert "it was truncated or restored from a backup" in refused(path)


def test_a_forged_ledger_without_its_anchor_is_refused(path):
    rewrite_log(path, raise_the_cap)
    run_sql(path, "UPDATE accounts SET allotment = 1000000000 WHERE name = ''")
    anchor_of(path).unlink()
    assert "anchor l.db.anchor is missing" in refused(path)


def test_a_forged_ledger_with_an_emptied_anchor_is_refused(path):
    rewrite_log(path, raise_the_cap)
    run_sql(path, "UPDATE accounts SET allotment = 1000000000 WHERE name = ''")
    anchor_of(path).write_bytes(b"")
    assert "anchor is empty" in refused(path)


def test_a_forger_who_rewrites_the_anchor_too_is_still_denied_by_the_heads_that_analysts_keep(tmp_path):
    path = tmp_path / "l.db"
    ledger = open_ledger(path, cap=10_000)
    ledger.grant("ann", 5_000)
    kept = kernel_on(ledger).answer(to_wire(count_query(100)), analyst="ann").head
    ledger.close()
    assert audit(path).digests[kept.sequence] == kept.digest
    digests = rewrite_log(path, raise_the_cap)
    run_sql(path, "UPDATE accounts SET allotment = 1000000000 WHERE name = ''")
    anchor_of(path).write_text("".join(f"{row} {digest}\n" for row, digest in enumerate(digests)))
    open_ledger(path).close()  # nothing beside the ledger tells
    assert audit(path).digests[kept.sequence] != kept.digest


def test_a_chain_of_unreadable_entries_is_refused(path):
    for forged in ([{"do": "nothing"}], [{}], [[]], [{"do": "grant"}], [{"do": "answer", "analyst": "a", "key": "k"}]):
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


def test_a_ledger_of_an_earlier_format_is_refused_and_says_what_to_do(path):
    run_sql(path, "UPDATE facts SET value = 'dpmine-ledger-1' WHERE name = 'format'")
    message = refused(path, LedgerError)
    assert "'dpmine-ledger-1'" in message
    assert "make a new one" in message


def test_an_entry_that_states_another_cost_than_its_odometers_is_refused(path):
    def undercharge(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**entry, "cost": [0, 0]} if entry["do"] == "reserve" else entry for entry in entries]

    digests = rewrite_log(path, undercharge)
    anchor_of(path).write_text(f"0 {digests[0]}\n")
    assert "states a cost that its odometers do not imply" in refused(path)


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
    assert "anchor is empty" in refused(path)


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
    run_sql(path, "UPDATE accounts SET spent = 0 WHERE name = 'ann'")
    with pytest.raises(LedgerTampered, match="accounts"):
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
    heads = Anchor(path).heads()
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
    assert len(Anchor(tmp_path / "l.db").heads()) == 1
