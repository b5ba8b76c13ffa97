"""A witness elsewhere: what an anchor that is restored with its ledger cannot tell.

The attack is a second draw: ask, put ledger and anchor back as they were, ask again. Without a witness it succeeds, which
the documents say; with one, a file or a program on another machine, it is refused.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.ledger_auditor import audit
from support.ledgers import HERE, SCHEMA, WHOLE, count_query, desk_on, open_ledger, pay, request, run_script
from typer.testing import CliRunner

import dpmine as dm
from dpmine.base.errors import LedgerError, LedgerTampered, RequestError
from dpmine.base.wire import to_wire
from dpmine.cli.main import app
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.book import Ledger
from dpmine.owner import witnesses as witness_module
from dpmine.owner.head_files import FileWitness
from dpmine.owner.witnesses import CommandWitness, witness_of

GENERIC = "The ledger's witness cannot be reached. Nothing is answered; what was charged stays charged."


class World:
    """A ledger in one place and its witness in another."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.here = folder / "here"
        self.there = folder / "there"
        self.here.mkdir()
        self.there.mkdir()
        self.path = self.here / "l.db"

    @property
    def named(self) -> Any:
        if self.kind == "path":
            return self.there / "witness"
        return [sys.executable, str(HERE / "witness_command.py"), str(self.there)]

    def open(self, **options: Any) -> Ledger:
        return open_ledger(self.path, witness=witness_of(self.named), **options)

    def new(self) -> Ledger:
        ledger = self.open(cap=10 * WHOLE)
        ledger.grant("ann", WHOLE)
        return ledger

    def cut_off(self) -> None:
        self.there.rename(self.there.with_name("unplugged"))

    def plug_in(self) -> None:
        self.there.with_name("unplugged").rename(self.there)

    def back_up(self) -> None:
        shutil.copytree(self.here, self.here.with_name("backup"))

    def restore(self) -> None:
        """Ledger and anchor together, as one restores a folder."""
        shutil.rmtree(self.here)
        shutil.copytree(self.here.with_name("backup"), self.here)


@pytest.fixture(params=["path", "command"])
def world(request, tmp_path):
    return World(tmp_path, request.param)


def second_draw(world: World, opened: Callable[..., Ledger]) -> Any:
    """Both answers to one question, paid once."""
    ledger = opened(cap=10 * WHOLE)
    ledger.grant("ann", WHOLE)
    ledger.close()
    world.back_up()
    ledger = opened()
    first = desk_on(ledger).answer(to_wire(count_query(WHOLE)), analyst="ann")
    ledger.close()
    world.restore()
    ledger = opened()
    second = desk_on(ledger).answer(to_wire(count_query(WHOLE)), analyst="ann")
    spent = ledger.account("ann").spent
    ledger.close()
    return first, second, spent


def test_without_a_witness_ledger_and_anchor_restored_together_give_a_second_draw(tmp_path):
    """The limit that docs/known-limits.md states: should it ever fall, say so there."""
    world = World(tmp_path, "path")
    first, second, spent = second_draw(world, lambda **options: open_ledger(world.path, **options))
    assert first.head.sequence == second.head.sequence
    assert first.head.digest != second.head.digest
    assert spent == WHOLE


def test_with_a_witness_ledger_and_anchor_restored_together_are_refused(world):
    with pytest.raises(LedgerTampered, match=r"its witness has seen row \d: it was truncated or restored from a backup"):
        second_draw(world, world.open)


def test_a_new_ledger_in_place_of_an_old_one_is_refused(world):
    world.new().close()
    shutil.rmtree(world.here)
    world.here.mkdir()
    open_ledger(world.path, cap=10 * WHOLE).close()
    with pytest.raises(LedgerError, match="was made without a witness"):
        world.open()


def test_every_head_is_told_before_its_answer_is_released(world):
    ledger = world.new()
    witness = witness_of(world.named)
    for units in (10, 20, 10):
        head = desk_on(ledger).answer(to_wire(count_query(units)), analyst="ann").head
        assert max(witness.heads(ledger.fact("id")), key=lambda told: told.sequence).sequence >= head.sequence
    assert witness.heads(ledger.fact("id"))[-1] == Head(5, audit(world.path).digests[5])
    ledger.close()
    world.open().close()


# -- who the witness is -------------------------------------------------------------------------------------------------


def test_a_ledger_with_a_witness_does_not_open_without_it(world):
    world.new().close()
    with pytest.raises(LedgerError, match=r"has a witness.*witness=.*--witness.*DPMINE_WITNESS"):
        open_ledger(world.path)


def test_an_edited_fact_does_not_make_the_witness_dispensable(world):
    world.new().close()
    with closing(sqlite3.connect(world.path, isolation_level=None)) as database:
        database.execute("""UPDATE log SET entry = replace(entry, '"witness":"yes"', '"witness":"no"') WHERE sequence = 0""")
    with pytest.raises(LedgerTampered, match="breaks at row 0"):
        open_ledger(world.path)


@pytest.mark.parametrize("name", ["; touch pwned", "--help", "", "AB" * 16, "ab" * 15])
def test_a_ledger_whose_name_is_no_name_never_reaches_its_witness(tmp_path, name):
    """A command may hand what it is given to a shell on another machine."""
    world = World(tmp_path, "command")
    world.new().close()
    with closing(sqlite3.connect(world.path, isolation_level=None)) as database:
        entry = json.loads(database.execute("SELECT entry FROM log WHERE sequence = 0").fetchone()[0])
        entry["facts"]["id"] = name
        database.execute("UPDATE log SET entry = ? WHERE sequence = 0", (json.dumps(entry),))
    told = sorted(world.there.iterdir())
    with pytest.raises(LedgerTampered, match="facts"):
        world.open()
    assert sorted(world.there.iterdir()) == told


def test_a_witness_that_was_told_nothing_of_the_ledger_is_refused(world):
    ledger = world.new()
    other = world.there / "other"
    other.mkdir()
    wrong = FileWitness(other / "w") if world.kind == "path" else CommandWitness([*world.named[:-1], str(other)])
    wrong.make()
    ledger.close()
    with pytest.raises(LedgerTampered, match="told nothing of this ledger"):
        open_ledger(world.path, witness=wrong)


def test_a_witness_file_that_is_missing_is_not_begun_anew(tmp_path):
    world = World(tmp_path, "path")
    world.new().close()
    world.named.unlink()
    with pytest.raises(LedgerError, match="There is no witness"):
        world.open()
    assert not world.named.exists()


def test_the_ledger_does_not_say_who_its_witness_is(world):
    """A ledger from elsewhere must not be able to name what is run here."""
    world.new().close()
    content = b"".join(file.read_bytes() for file in world.here.iterdir())
    assert str(world.there).encode() not in content
    assert b"witness_command" not in content


def test_a_ledger_in_memory_and_a_witness_that_is_the_ledger_itself_are_refused(tmp_path):
    with pytest.raises(RequestError, match="in memory has no witness"):
        open_ledger(None, cap=5, witness=FileWitness(tmp_path / "w"))
    for name in ("l.db", "l.db.anchor", "../here/l.db"):
        (tmp_path / "here").mkdir(exist_ok=True)
        with pytest.raises(RequestError, match="a file of its own"):
            open_ledger(tmp_path / "here" / "l.db", cap=5, witness=FileWitness(tmp_path / "here" / name))


@pytest.mark.parametrize("named", ["", [], [""], [1], 7, "command:", "command:'open"])
def test_what_names_no_witness_is_refused(named):
    with pytest.raises(RequestError, match=r"[Ww]itness"):
        witness_of(named)


def test_a_command_is_a_list_or_text_behind_a_word_and_runs_without_a_shell(tmp_path):
    inner = tmp_path / "a folder; touch pwned $(touch pwned)"
    inner.mkdir()
    script = HERE / "witness_command.py"
    for named in ([sys.executable, str(script), str(inner)], f"command:{sys.executable} {script} '{inner}'"):
        witness = witness_of(named)
        assert witness.tell("ab" * 16, Head(4, "0" * 64)) == []
        assert witness.heads("ab" * 16) == [Head(4, "0" * 64)]
    assert [path.name for path in tmp_path.iterdir()] == [inner.name]


def test_the_owner_s_handle_takes_a_witness(world):
    from support.ledgers import SCHEMA, small_table

    options = {"schema": SCHEMA, "ledger": world.path, "witness": world.named}
    with dm.open(small_table(), cap=1, **options) as data:
        data.grant("ann", epsilon=1).count(epsilon="0.5")
    with dm.open(small_table(), **options) as data:
        assert str(data.private("ann").remaining()) == "0.5"


# -- a witness that cannot be reached -------------------------------------------------------------------------------------


def test_an_unreachable_witness_opens_and_makes_nothing(world):
    world.new().close()
    world.cut_off()
    with pytest.raises(LedgerError):
        world.open()
    with pytest.raises(LedgerError):
        open_ledger(world.here / "new.db", cap=5, witness=witness_of(world.named))
    assert [file.name for file in world.here.glob("new.db*")] == []
    world.plug_in()
    world.open().close()
    open_ledger(world.here / "new.db", cap=5, witness=witness_of(world.named)).close()


def test_a_budget_that_could_not_be_made_for_want_of_its_witness_can_be_made_with_it(tmp_path, monkeypatch):
    """It left files behind: the ledger existed, said the next try, and it was no ledger, said everything else."""
    monkeypatch.chdir(tmp_path)
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    table.write_text("ward,sex,age\nnorth,f,1\n")
    schema.write_text(SCHEMA.to_toml())
    command = ["budget", "init", str(table), "--schema", str(schema), "--cap", "4", "--witness", "far/away"]
    assert CliRunner().invoke(app, command).exit_code == 2
    (tmp_path / "far").mkdir()
    made = CliRunner().invoke(app, command)
    assert made.exit_code == 0
    assert str(tmp_path / "far" / "away") in made.output.replace("\n", "")  # wherever the owner stands next time


def test_a_charge_that_cannot_be_told_stands_and_is_answered_once_it_can(world):
    ledger = world.new()
    desk = desk_on(ledger)
    world.cut_off()
    with pytest.raises(LedgerError) as caught:
        desk.answer(to_wire(count_query(100)), analyst="ann")
    assert str(caught.value) == GENERIC
    assert ledger.account("ann").spent == 100
    for units in (100, 200, 300, 100):  # nothing more is charged, and the request is not used up
        with pytest.raises(LedgerError) as caught:
            desk.answer(to_wire(count_query(units)), analyst="ann")
        assert str(caught.value) == GENERIC
    assert ledger.account("ann").spent == 100
    world.plug_in()
    desk.answer(to_wire(count_query(100)), analyst="ann")
    desk.answer(to_wire(count_query(200)), analyst="ann")
    assert audit(world.path).spent("ann") == 300
    ledger.close()
    world.open().close()


def test_an_answer_that_cannot_be_told_is_kept_and_released_when_it_can(world):
    ledger = world.new()
    reservation = ledger.reserve(request(100))
    world.cut_off()
    with pytest.raises(LedgerError) as caught:
        ledger.store(reservation, b"the answer")
    assert str(caught.value) == GENERIC
    with pytest.raises(LedgerError):
        ledger.reserve(request(100))
    world.plug_in()
    assert pay(ledger, request(100), b"another draw").answer == b"the answer"
    ledger.close()
    world.open().close()


FAILING = {
    "fails": "import sys; sys.exit(1)",
    "prints garbage": "print('12 hours')",
    "prints two heads": "print('1 ' + 'a' * 64); print('2 ' + 'b' * 64)",
    "hangs": "import time; time.sleep(60)",
    "dies": "import os; os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("name", FAILING)
def test_a_command_that_does_not_do_its_work_is_unreachable(name, tmp_path, monkeypatch):
    monkeypatch.setattr(witness_module, "PATIENCE", 2.0)
    witness = CommandWitness([sys.executable, "-c", FAILING[name]])
    with pytest.raises(LedgerError) as caught:
        open_ledger(tmp_path / "l.db", cap=5, witness=witness)
    assert str(caught.value) == GENERIC


def test_a_command_that_is_not_there_is_unreachable(tmp_path):
    with pytest.raises(LedgerError) as caught:
        open_ledger(tmp_path / "l.db", cap=5, witness=CommandWitness([str(tmp_path / "nothing")]))
    assert str(caught.value) == GENERIC


# -- a copy that is used elsewhere ------------------------------------------------------------------------------------------


def test_of_two_copies_that_are_used_at_once_only_the_first_goes_on(world):
    """Both were opened while they were the same: neither is behind, until one of them answers."""
    world.new().close()
    shutil.copytree(world.here, world.here.with_name("elsewhere"))
    original = world.open()
    copy = open_ledger(world.here.with_name("elsewhere") / "l.db", witness=witness_of(world.named))
    desk_on(original).answer(to_wire(count_query(100)), analyst="ann")
    for _ in range(3):
        with pytest.raises(LedgerError):
            desk_on(copy).answer(to_wire(count_query(100)), analyst="ann")
    copy.close()
    desk_on(original).answer(to_wire(count_query(10)), analyst="ann")  # the stale copy told the witness nothing
    original.close()
    if world.kind == "path":
        world.open().close()
    with pytest.raises(LedgerError):
        open_ledger(world.here.with_name("elsewhere") / "l.db", witness=witness_of(world.named))


def test_a_witness_file_tells_the_copy_which_row_it_lacks(tmp_path):
    world = World(tmp_path, "path")
    ledger = world.new()
    FileWitness(world.named).tell(ledger.fact("id"), Head(2, "ab" * 32))
    for _ in range(2):
        with pytest.raises(LedgerTampered, match=r"[Rr]ow 2"):
            pay(ledger, request(10))
    ledger.close()


# -- the file itself --------------------------------------------------------------------------------------------------------


def test_one_file_serves_several_ledgers(tmp_path):
    witness = tmp_path / "witness"
    books = [open_ledger(tmp_path / f"{name}.db", cap=1000, witness=FileWitness(witness)) for name in "abc"]
    for units in (10, 20):
        for book in books:
            book.grant("ann", 500)
            pay(book, request(units))
    for book in books:
        book.close()
        open_ledger(book.kept_in.path, witness=FileWitness(witness)).close()
    assert len({line.split()[0] for line in witness.read_text().splitlines()}) == 3


@pytest.mark.parametrize("torn", [b"ab", b"ab" * 16, b"ab" * 16 + b" 7 01", b"12 "])
def test_a_torn_last_line_of_a_witness_is_tolerated(tmp_path, torn):
    world = World(tmp_path, "path")
    ledger = world.new()
    for units in (7, 8):
        with open(world.named, "ab") as file:
            file.write(torn)
        pay(ledger, request(units))
    ledger.close()
    world.open().close()
    assert world.named.read_bytes().count(b" torn\n") == 2


@pytest.mark.parametrize("line", [b"garbage", b"", b"x 1 " + b"a" * 64, b"ab" * 16 + b" 01 " + b"a" * 64, b"\xff"])
def test_a_witness_with_a_line_that_is_no_head_is_refused(tmp_path, line):
    world = World(tmp_path, "path")
    world.new().close()
    with open(world.named, "ab") as file:
        file.write(line + b"\n")
    with pytest.raises(LedgerTampered, match="line that is not a head"):
        world.open()


def test_a_witness_that_loses_lines_while_it_is_in_use_is_noticed(tmp_path):
    world = World(tmp_path, "path")
    ledger = world.new()
    world.named.write_bytes(b"")
    with pytest.raises(LedgerTampered):
        pay(ledger, request(10))
    ledger.close()


# -- several at once ----------------------------------------------------------------------------------------------------


def test_threads_with_one_witness_all_get_answers(world):
    ledger = world.new()
    failed: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            for turn in range(5):
                pay(ledger, request(100 * number + turn + 1))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    assert failed == []
    assert len(audit(world.path).answers) == 20
    world.open().close()


FORKED = """
import os, sys
from decimal import Decimal
from pathlib import Path
from support.ledgers import open_ledger, pay, request
from dpmine.owner.witnesses import witness_of

named = sys.argv[2] if len(sys.argv) == 3 else sys.argv[2:]
ledger = open_ledger(Path(sys.argv[1]), cap=10_000, witness=witness_of(named))
ledger.grant("ann", 10_000)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        for turn in range(4):
            pay(ledger, request(100 + 10 * number + turn))
        ledger.close()
        os._exit(0)
    children.append(child)
for turn in range(4):
    pay(ledger, request(200 + turn))
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
ledger.verify()
ledger.close()
"""


def test_processes_on_all_sides_of_forks_tell_one_witness_in_any_order(world):
    named = [str(world.named)] if world.kind == "path" else world.named
    assert run_script(FORKED, str(world.path), *named).strip() == "[0, 0, 0]"
    assert len(audit(world.path).answers) == 16
    world.open().close()


def test_heads_may_be_told_out_of_order(world):
    witness = witness_of(world.named)
    witness.make()
    for sequence in (1, 5, 3, 5):
        witness.tell("ab" * 16, Head(sequence, f"{sequence}" * 64))
    assert max(witness.heads("ab" * 16), key=lambda head: head.sequence) == Head(5, "5" * 64)


# -- the command line ---------------------------------------------------------------------------------------------------


@pytest.fixture
def owner(world, monkeypatch):
    """What the owner types, and how it ended: exit code and what was printed."""
    from typer.testing import CliRunner

    from dpmine.cli.main import app

    monkeypatch.delenv("DPMINE_WITNESS", raising=False)
    schema = dm.Schema("clinic", (dm.Numeric("age", *map(Decimal, (0, 3, 1, 0))),), rows_at_most=100)
    (world.here / "clinic.toml").write_text(schema.to_toml())
    (world.here / "clinic.csv").write_text("age\n" + "1\n" * 50)
    monkeypatch.chdir(world.here)

    def typed(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(words))
        return result.exit_code, result.output

    return typed


def test_the_command_line_names_the_witness_by_option_or_environment(world, owner, monkeypatch):
    named = str(world.named) if world.kind == "path" else "command:" + " ".join(world.named)
    common = ["clinic.csv", "--schema", "clinic.toml"]
    asked = ["query", "count", *common, "--as", "owner", "--epsilon", "0.1"]
    code, text = owner("budget", "init", *common, "--cap", "1", "--witness", named)
    assert code == 0
    assert "dpmine --witness" in text
    code, text = owner(*asked)
    assert code == 2
    assert "DPMINE_WITNESS" in text
    assert owner("--witness", named, *asked)[0] == 0
    monkeypatch.setenv("DPMINE_WITNESS", named)
    assert owner(*asked)[0] == 0
    assert owner("budget", "verify", *common)[0] == 0
    world.cut_off()
    assert owner(*asked)[0] == 2
