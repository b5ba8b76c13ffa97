"""Checkpoints: a long log is read from one instead of from its first row, and nobody mints budget by editing one."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import audit
from support.ledgers import WHOLE, cell_request, charge_on, open_ledger, pay, request

from dpmine.base.errors import BudgetError, LedgerError, LedgerTampered
from dpmine.kernel.ledger import replay as replay_module
from dpmine.kernel.ledger.accounts import DATASET
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.chain import Seen
from dpmine.owner.head_files import AnchorFile, FileWitness
from dpmine.owner.sqlite_store import SQLiteRows
from dpmine.owner.statements import accounts_of, entries_of, paid

LETTERS = 3_000  # between two checkpoints: some four requests
STATE = ("facts", "accounts", "totals", "requests", "keys")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "LETTERS", LETTERS)


def use(ledger: Ledger, number: int) -> None:
    """Every kind of entry; requests wait over checkpoints, and totals of the same cells change again and again."""
    pay(ledger, cell_request(100 + number, number % 3))
    pay(ledger, request(10 + number, analyst="bob", charge=charge_on(10 + number, ("where", f"age {number % 2}"))))
    if number % 4 == 1:
        ledger.reserve(request(2000 + number))
    if number % 4 == 3:
        ledger.store(ledger.reserve(request(1998 + number)), b"resumed, checkpoints later")
        ledger.grant("bob", WHOLE + number)
    if number == 9:
        ledger.revoke("cleo")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "LETTERS", LETTERS)
        fill(folder / "l.db", 16)
    return folder


def fill(path: Path, uses: int, **options: Any) -> None:
    ledger = open_ledger(path, cap=10 * WHOLE, **options)
    for analyst in ("ann", "bob", "cleo"):
        ledger.grant(analyst, WHOLE)
    for number in range(uses):
        use(ledger, number)
    ledger.close()
    audit(path)


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "copy")
    return tmp_path / "copy" / "l.db"


def run_sql(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement, values).rowcount != 0, f"{statement} changed nothing"


def places(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as database:
        return [place for (place,) in database.execute("SELECT sequence FROM checkpoints ORDER BY sequence")]


def text_at(path: Path, place: int) -> str:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT text FROM checkpoints WHERE sequence = ?", (place,)).fetchone()[0]


def put_text(path: Path, place: int, text: str) -> None:
    run_sql(path, "UPDATE checkpoints SET text = ? WHERE sequence = ?", values=(text, place))


def refused(path: Path, complaint: str, **options: Any) -> None:
    with pytest.raises(LedgerTampered, match=complaint):
        open_ledger(path, **options)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows from which logs were read, one for each time."""
    firsts: list[int] = []
    log = SQLiteRows.log

    def watched(self: SQLiteRows, first: int) -> Iterator[Any]:
        firsts.append(first)
        return log(self, first)

    monkeypatch.setattr(SQLiteRows, "log", watched)
    return firsts


def state_of(ledger: Ledger) -> dict[str, Any]:
    return {name: getattr(ledger._log.known.state, name) for name in STATE}


# -- what they are for ------------------------------------------------------------------------------------------------


def test_a_ledger_is_opened_from_its_newest_checkpoint_and_knows_what_the_whole_log_implies(path, begun):
    ledger = open_ledger(path)
    assert begun == [0, places(path)[-1]]  # the first row alone, which says what the ledger is, and then from there
    known = state_of(ledger)
    assert ledger.verify() == len(entries_of(ledger))
    assert known == state_of(ledger)
    assert len(places(path)) >= 5
    ledger.close()


def test_what_is_asked_after_opening_costs_what_it_would_have_cost_without_a_checkpoint(path, tmp_path, monkeypatch):
    shutil.copytree(path.parent, tmp_path / "whole")
    monkeypatch.setattr(SQLiteRows, "checkpoint_places", lambda self: [])
    whole = open_ledger(tmp_path / "whole" / "l.db")
    monkeypatch.undo()
    ledger = open_ledger(path)
    for asked in (cell_request(150, 2), cell_request(105, 0), request(100), cell_request(90, 7, analyst="bob")):
        assert pay(ledger, asked).cost == pay(whole, asked).cost
        assert [one.spent for one in accounts_of(ledger)] == [one.spent for one in accounts_of(whole)]
    assert ledger.account(DATASET).spent == audit(path).spent()
    for book in (ledger, whole):
        book.close()


def test_answers_of_before_a_checkpoint_are_given_again_and_cost_nothing(path):
    ledger = open_ledger(path)
    spent = ledger.account("ann").spent
    assert pay(ledger, cell_request(100, 0), b"another draw").answer == b"answer"
    assert pay(ledger, request(2001), b"another draw").answer == b"resumed, checkpoints later"
    assert ledger.account("ann").spent == spent
    ledger.close()


def test_a_request_that_waits_over_checkpoints_is_resumed_once(tmp_path):
    ledger = open_ledger(tmp_path / "l.db", cap=10 * WHOLE)
    ledger.grant("ann", WHOLE)
    first = ledger.reserve(request(5))
    for number in range(20):
        pay(ledger, request(100 + number))
    assert len(places(tmp_path / "l.db")) >= 2
    ledger.close()
    ledger = open_ledger(tmp_path / "l.db")
    second = ledger.reserve(request(5))
    with pytest.raises(LedgerError, match="being answered elsewhere"):
        ledger.reserve(request(5))
    assert ledger.store(second, b"second").answer == ledger.store(first, b"first").answer == b"second"
    ledger.close()


def test_two_who_use_a_ledger_keep_one_checkpoint_at_a_time(tmp_path):
    one = open_ledger(tmp_path / "l.db", cap=10 * WHOLE)
    for analyst in ("ann", "bob", "cleo"):
        one.grant(analyst, WHOLE)
    other = open_ledger(tmp_path / "l.db")
    for number in range(12):
        use((one, other)[number % 2], number)
    assert one.verify() == other.verify()
    assert state_of(one) == state_of(other)
    found = audit(tmp_path / "l.db")  # each text is that of its entry, and about the rows since the one before
    kept = [row for row, entry in enumerate(found.entries) if entry["do"] == "checkpoint"]
    letters = [sum(len(json.dumps(entry)) for entry in found.entries[a:b]) for a, b in pairwise(kept)]
    assert min(letters) >= LETTERS
    for book in (one, other):
        book.close()


# -- crashes ----------------------------------------------------------------------------------------------------------


class Died(BaseException):
    pass


def pay_on_and_on(ledger: Ledger) -> None:
    for units in count(3000):
        pay(ledger, request(units))


@pytest.mark.parametrize("step", ["checkpointing", "checkpointed", "checkpoint-anchored"])
def test_a_process_that_dies_while_it_keeps_a_checkpoint_leaves_a_ledger_that_opens(path, step):
    def die(name: str) -> None:
        if name == step:
            raise Died

    ledger = open_ledger(path, at_step=die)
    before = places(path)
    with pytest.raises(Died):
        pay_on_and_on(ledger)
    assert len(places(path)) - len(before) == (step != "checkpointing")
    ledger._log.kept_in.close()
    audit(path)
    ledger = open_ledger(path)
    pay(ledger, request(4000))
    ledger.verify()
    ledger.close()
    audit(path)


def test_a_checkpoint_that_no_anchor_has_seen_is_not_taken_up(path, begun):
    """As left by a crash between its commit and its telling."""
    newest = places(path)[-1]
    anchor = AnchorFile(path).path
    lines = [line for line in anchor.read_text().splitlines(keepends=True) if int(line.split()[0]) < newest]
    anchor.write_text("".join(lines))
    open_ledger(path).close()
    assert begun[1] == places(path)[-2]


def test_a_checkpoint_that_the_witness_has_not_seen_is_not_taken_up(tmp_path, begun):
    path, witness = tmp_path / "l.db", tmp_path / "witness"
    fill(path, 12, witness=FileWitness(witness))
    second = places(path)[1]
    lines = witness.read_text().splitlines(keepends=True)
    witness.write_text("".join(line for line in lines if second <= int(line.split()[1]) < second + 2))
    del begun[:]
    open_ledger(path, witness=FileWitness(witness)).close()
    assert begun[-1] == second
    witness.write_text("".join(lines[:3]))
    del begun[:]
    open_ledger(path, witness=FileWitness(witness)).close()
    assert begun[-1] == 0


# -- somebody edits the file ------------------------------------------------------------------------------------------


def richer(text: str) -> str:
    """The text, with everything given back."""
    form = json.loads(text)
    form["accounts"] = [[name, allotment, revoked, 0] for name, allotment, revoked, _ in form["accounts"]]
    form["totals"] = {account: dict.fromkeys(nodes, 10**6) for account, nodes in form["totals"].items()}
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def without_requests(text: str) -> str:
    return json.dumps({**json.loads(text), "requests": []}, sort_keys=True, separators=(",", ":"))


NAMED = "not the one that its log names"
TEXTS: dict[str, Callable[[str], str]] = {
    "spent money given back": richer,
    "requests forgotten, to be drawn again": without_requests,
    "a larger cap": lambda text: text.replace(f'"",{10 * WHOLE}', f'"",{90 * WHOLE}'),
    "a space": lambda text: text + " ",
    "nothing": lambda text: "",
    "no object": lambda text: "[]",
    "no JSON": lambda text: text[:-1],
}


@pytest.mark.parametrize("which", [0, -2, -1])
@pytest.mark.parametrize("name", TEXTS)
def test_an_edited_checkpoint_is_refused(path, name, which):
    place = places(path)[which]
    edited = TEXTS[name](text_at(path, place))
    assert edited != text_at(path, place)
    put_text(path, place, edited)
    refused(path, NAMED)


def test_any_edited_letter_of_any_checkpoint_is_refused(path, tmp_path):
    draw = random.Random(19)
    for _ in range(60):
        place = draw.choice(places(path))
        text = text_at(path, place)
        at = draw.randrange(len(text))
        put_text(path, place, text[:at] + chr((ord(text[at]) - 31) % 95 + 32) + text[at + 1 :])
        refused(path, NAMED)
        put_text(path, place, text)
    open_ledger(path).close()


@pytest.mark.parametrize("value", [b"blob", 7, "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")])
def test_a_checkpoint_of_another_type_or_alphabet_is_refused(path, value):
    run_sql(path, "UPDATE checkpoints SET text = ? WHERE sequence = ?", values=(value, places(path)[-1]))
    refused(path, NAMED)


@pytest.mark.parametrize("chained", [False, True])
def test_an_edited_total_whose_digest_is_put_right_in_the_log_is_refused(path, chained):
    """In the entry alone, or in all digests after it: then the anchor has seen other rows."""
    place = places(path)[-1]
    text = richer(text_at(path, place))
    put_text(path, place, text)
    rewrite(path, place, {"sha256": hashlib.sha256(text.encode()).hexdigest()}, chained=chained)
    refused(path, "not the one its anchor has seen" if chained else "hash chain breaks")


def rewrite(path: Path, sequence: int, change: dict[str, Any], *, chained: bool) -> None:
    """Change one entry, and the digests from there on if asked to."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        rows = database.execute("SELECT sequence, entry, digest FROM log WHERE sequence >= ?", (sequence - 1,)).fetchall()
        before = rows[0][2]
        for row, entry, digest in rows[1:]:
            if row == sequence:
                entry = json.dumps({**json.loads(entry), **change}, sort_keys=True, separators=(",", ":"))
            if chained:
                digest = hashlib.sha256(f"{before}\n{row}\n{entry}".encode()).hexdigest()
            database.execute("UPDATE log SET entry = ?, digest = ? WHERE sequence = ?", (entry, digest, row))
            before = digest


LOST = {
    "the newest": (
        "DELETE FROM checkpoints WHERE sequence = (SELECT max(sequence) FROM checkpoints)",
        "checkpoints are not",
    ),
    "the oldest": ("DELETE FROM checkpoints WHERE sequence = (SELECT min(sequence) FROM checkpoints)", NAMED),
    "all": ("DELETE FROM checkpoints", "checkpoints are not what its log implies"),
    "the newest, moved": (
        "UPDATE checkpoints SET sequence = sequence + 1 WHERE sequence = (SELECT max(sequence) FROM checkpoints)",
        NAMED,
    ),
    "one too many": ("INSERT INTO checkpoints SELECT max(sequence) - 1, text FROM checkpoints", NAMED),
    "one where there is no row": ("INSERT INTO checkpoints SELECT max(sequence) + 1000, text FROM checkpoints", "not"),
}


@pytest.mark.parametrize("name", LOST)
def test_lost_and_added_checkpoints_are_refused(path, name):
    statement, complaint = LOST[name]
    run_sql(path, statement)
    refused(path, complaint)


@pytest.mark.parametrize("lost", [1, 3, 10_000])
def test_entries_dropped_after_a_checkpoint_are_refused(path, lost):
    run_sql(path, f"DELETE FROM log WHERE sequence > max((SELECT max(sequence) - {lost} FROM log), {places(path)[-1]})")
    refused(path, "it was truncated or restored from a backup")


def test_entries_dropped_with_their_checkpoint_are_refused(path):
    last = places(path)[-2]
    run_sql(path, *(f"DELETE FROM {table} WHERE sequence > {last}" for table in ("log", "answers", "checkpoints")))
    refused(path, "it was truncated or restored from a backup")


def test_an_entry_edited_after_a_checkpoint_is_refused(path):
    run_sql(path, f"UPDATE log SET entry = entry || ' ' WHERE sequence = {places(path)[-1] + 1}")
    refused(path, "hash chain breaks")


def test_an_answer_edited_after_a_checkpoint_is_refused(path):
    run_sql(path, "UPDATE answers SET answer = x'00' WHERE sequence = (SELECT max(sequence) FROM answers)")
    refused(path, "answers")


@pytest.mark.parametrize("table", ["all of them", "the newest"])
def test_the_checkpoints_of_another_ledger_are_refused(path, tmp_path, table):
    fill(tmp_path / "rich.db", 16)
    wanted = places(path) if table == "all of them" else places(path)[-1:]
    for place, theirs in zip(wanted, places(tmp_path / "rich.db")[-len(wanted) :], strict=True):
        put_text(path, place, text_at(tmp_path / "rich.db", theirs))
    refused(path, NAMED)


def test_an_earlier_state_of_the_same_ledger_in_a_later_checkpoint_s_place_is_refused(path):
    put_text(path, places(path)[-1], text_at(path, places(path)[-2]))
    refused(path, NAMED)


# -- somebody appends to the log --------------------------------------------------------------------------------------


def append_checkpoint(path: Path, change: Callable[[str], str]) -> None:
    """A checkpoint with a good chain at the end of the log, as the format has it but for what it says."""
    replay = replay_module.Replay()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        replay.follow(database.execute("SELECT sequence, entry, digest FROM log ORDER BY sequence"))
        text = change(replay.checkpoint_text())
        row, _ = replay.next_row({"do": "checkpoint", "sha256": hashlib.sha256(text.encode()).hexdigest()})
        database.execute("INSERT INTO log VALUES (?, ?, ?)", row)
        database.execute("INSERT INTO checkpoints VALUES (?, ?)", (row[0], text))


def test_a_forged_checkpoint_at_the_end_is_not_believed_but_computed_and_refused(path):
    append_checkpoint(path, richer)
    refused(path, "names a checkpoint that the rows before it do not imply")


def test_a_true_checkpoint_at_the_end_is_as_good_as_our_own(path):
    append_checkpoint(path, lambda text: text)
    ledger = open_ledger(path)
    ledger.verify()
    ledger.close()


def test_a_forged_checkpoint_under_an_open_ledger_is_refused_and_never_anchored(path):
    ledger = open_ledger(path)
    heads = AnchorFile(path).heads("")
    append_checkpoint(path, richer)
    for _ in range(2):
        with pytest.raises(LedgerTampered, match="names a checkpoint that the rows before it do not imply"):
            pay(ledger, request(9))
    assert AnchorFile(path).heads("") == heads
    ledger.close()


def test_whoever_rewrites_the_anchor_too_is_believed_at_opening_and_found_out_by_verify(path):
    """The limit that docs/known-limits.md states: who can edit ledger and anchor together is trusted."""
    append_checkpoint(path, richer)
    with closing(sqlite3.connect(path)) as database:
        newest = database.execute("SELECT sequence, digest FROM log ORDER BY sequence DESC LIMIT 1").fetchone()
    with open(AnchorFile(path).path, "a") as anchor:
        anchor.write("{} {}\n".format(*newest))
    ledger = open_ledger(path)
    with pytest.raises(LedgerTampered, match="do not imply"):
        ledger.verify()
    ledger.close()


# -- rows before a checkpoint -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement", ["UPDATE log SET entry = entry || ' ' WHERE sequence = 5", "DELETE FROM log WHERE sequence = 5"]
)
def test_an_edit_of_a_row_before_the_checkpoint_changes_nothing_and_is_noticed_by_verify(path, statement):
    spent = audit(path).spent("ann")
    run_sql(path, statement)
    ledger = open_ledger(path)
    assert ledger.account("ann").spent == spent
    pay(ledger, request(7))
    for look in (lambda: entries_of(ledger), lambda: list(paid(ledger, "ann")), ledger.verify):
        with pytest.raises(LedgerTampered, match="hash chain breaks at row 5"):
            look()
    ledger.close()


def test_facts_edited_in_the_first_row_are_not_believed(path):
    first = json.loads(text_of_row(path, 0))
    for name, forged in (("id", "ab" * 16), ("split_key", "00" * 32), ("dataset", "other"), ("neighbours", "nobody")):
        facts = {**first["facts"], name: forged}
        run_sql(path, "UPDATE log SET entry = ? WHERE sequence = 0", values=(json.dumps({**first, "facts": facts}),))
        if name == "id":
            refused(path, "facts are not what its log implies")
            continue
        ledger = open_ledger(path)
        assert ledger.fact(name) == first["facts"][name]
        with pytest.raises(LedgerTampered, match="hash chain breaks at row 0"):
            ledger.verify()
        ledger.close()


def text_of_row(path: Path, sequence: int) -> str:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT entry FROM log WHERE sequence = ?", (sequence,)).fetchone()[0]


def test_an_answer_edited_before_the_checkpoint_is_never_released_and_noticed_by_verify(path):
    run_sql(path, "UPDATE answers SET answer = x'00' WHERE sequence = (SELECT min(sequence) FROM answers)")
    ledger = open_ledger(path)
    for look in (lambda: pay(ledger, cell_request(100, 0)), lambda: list(paid(ledger, "ann")), ledger.verify):
        with pytest.raises(LedgerTampered, match="answers are not what its log implies"):
            look()
    ledger.close()


# -- planted mistakes -------------------------------------------------------------------------------------------------


def exhausted(path: Path) -> Ledger:
    """A ledger whose analyst has nothing left, with a checkpoint of that."""
    ledger = open_ledger(path, cap=10 * WHOLE)
    ledger.grant("ann", 10_000)
    pay(ledger, request(10_000))
    for number in range(40):
        ledger.grant("bob", 5_000 + number)
    ledger.close()
    return open_ledger(path)


def rechain(path: Path) -> str:
    """Let each edited text name the edited one before; returns the digest of the newest."""
    digest = ""
    for place in places(path):
        text = json.dumps({**json.loads(text_at(path, place)), "previous": digest}, sort_keys=True, separators=(",", ":"))
        put_text(path, place, text)
        digest = hashlib.sha256(text.encode()).hexdigest()
    return digest


def test_a_twin_that_believes_any_text_gives_the_budget_back(tmp_path, monkeypatch):
    """Planted: the digest of a text is not compared. What is refused above then succeeds."""
    path = tmp_path / "l.db"
    ledger = exhausted(path)
    with pytest.raises(BudgetError):
        ledger.reserve(request(500))
    ledger.close()
    for place in places(path):
        put_text(path, place, richer(text_at(path, place)))
    refused(path, NAMED)
    newest = rechain(path)
    refused(path, NAMED)
    monkeypatch.setattr(replay_module, "digest_named", lambda entry: newest)
    monkeypatch.setattr(replay_module.Replay, "check_checkpoints", lambda self, texts: None)
    robbed = open_ledger(path)
    assert robbed.account("ann").spent == 0
    pay(robbed, request(500))
    robbed.close()


def test_a_twin_that_takes_up_a_checkpoint_unseen_is_robbed_by_an_appended_one(tmp_path, monkeypatch):
    """Planted: it does not ask whether the anchor has seen the checkpoint's row."""
    path = tmp_path / "l.db"
    exhausted(path).close()
    append_checkpoint(path, richer)
    refused(path, "do not imply")
    monkeypatch.setattr(Seen, "newest", property(lambda self: 10**9))
    monkeypatch.setattr(Seen, "check_end", lambda self, last: None)
    robbed = open_ledger(path)
    assert robbed.account("ann").spent == 0
    robbed.close()
