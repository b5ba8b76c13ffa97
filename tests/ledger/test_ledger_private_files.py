"""A ledger holds everybody's answers and a secret key: its files are for its owner alone, from their first moment on."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.ledgers import open_ledger, pay, request

from dpmine.base.errors import LedgerError
from dpmine.owner import sqlite_store
from dpmine.owner.head_files import FileWitness

FILES = ("l.db", "l.db-wal", "l.db-shm", "l.db.anchor", "witness")


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


def test_the_files_of_a_new_ledger_are_private_whatever_the_umask(tmp_path, umask):
    ledger = open_ledger(tmp_path / "l.db", cap=1000, witness=FileWitness(tmp_path / "witness"))
    ledger.grant("ann", 1000)
    pay(ledger, request(100))
    assert modes(tmp_path) == dict.fromkeys(FILES, 0o600)
    ledger.close()


def test_sqlite_never_opens_a_ledger_that_others_may_read(tmp_path, umask, monkeypatch):
    """Private from the first moment: not made open and closed afterwards."""
    found = []

    def connect(path: Any, **options: Any) -> sqlite3.Connection:
        found.append(path.stat().st_mode & 0o777)
        return sqlite3.connect(path, **options)

    fake = type(sqlite_store.sqlite3)("sqlite3")
    fake.__dict__.update({**vars(sqlite3), "connect": connect})
    monkeypatch.setattr(sqlite_store, "sqlite3", fake)
    open_ledger(tmp_path / "l.db", cap=1000).close()
    assert found == [0o600]


def test_a_ledger_behind_a_link_to_nothing_is_made_private_too(tmp_path, umask):
    (tmp_path / "l.db").symlink_to(tmp_path / "target.db")
    open_ledger(tmp_path / "l.db", cap=1000).close()
    assert (tmp_path / "target.db").stat().st_mode & 0o777 == 0o600


def test_opening_takes_away_what_others_may_do_with_our_files(tmp_path):
    path = tmp_path / "l.db"
    first = open_ledger(path, cap=1000)
    first.grant("ann", 1000)
    for file in tmp_path.iterdir():
        file.chmod(0o664)
    second = open_ledger(path)
    assert set(modes(tmp_path).values()) == {0o600}
    second.close()
    first.close()


def test_a_ledger_that_its_owner_may_only_read_stays_so(tmp_path):
    path = tmp_path / "l.db"
    open_ledger(path, cap=1000).close()
    path.chmod(0o444)
    with suppress(LedgerError):  # but for root it cannot be used, which is what its owner wants
        open_ledger(path).close()
    assert path.stat().st_mode & 0o777 == 0o400
