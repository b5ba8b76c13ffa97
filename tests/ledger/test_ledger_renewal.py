"""Renewals raise the cap by the owner's policy and never the guarantee; versions are roots of one budget."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.budget import renewal as renewal_module
from dpmine.budget.renewal import Renewal
from dpmine.kernel.ledger import book as ledger_module

SCHEMA = dm.Schema("visits", (dm.Nominal("ward", ("north", "south"), "north", missing="north"),), 100)
ROWS = {"ward": ["north", "south", "south"]}
TODAY = date(2026, 3, 14)


class Noon(datetime):
    """A clock that stands still, so that no midnight comes between two looks at it."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Noon:
        return cls(TODAY.year, TODAY.month, TODAY.day, 12, tzinfo=tz)


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (renewal_module, ledger_module):
        monkeypatch.setattr(module, "datetime", Noon)


def open_visits(path: Path, **more: object) -> dm.DataSet:
    return dm.open(ROWS, schema=SCHEMA, ledger=path, **more)  # type: ignore[arg-type]


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


@pytest.mark.parametrize(("days", "renewals"), [(0, 0), (29, 0), (30, 1), (59, 1), (60, 2), (3_000, 100)])
def test_the_cap_grows_by_the_policy_for_every_period_that_has_passed(tmp_path: Path, days: int, renewals: int) -> None:
    renewal = Renewal.every(30, epsilon="0.5", start=ago(days))
    with open_visits(tmp_path / "l.db", cap=1, renewal=renewal) as data:
        assert data.statement().cap == Epsilon.parse(1 + renewals / 2)


def test_what_a_renewal_adds_can_be_spent_and_no_more(tmp_path: Path) -> None:
    with open_visits(tmp_path / "l.db", cap=1, renewal=Renewal.every(30, epsilon=1, start=ago(45))) as data:
        private = data.grant("alice", epsilon=100)
        private.count(epsilon="1.5")
        with pytest.raises(dm.BudgetError, match="of the data set's cap over all analysts"):
            private.count(epsilon="0.6")
        private.where("ward == north").count(epsilon="0.5")
        assert data.statement().dataset_spent == Epsilon.parse(2)
    with open_visits(tmp_path / "l.db") as data:  # replayed from the log, with what renewals had allowed
        with pytest.raises(dm.BudgetError):
            data.private("alice").count(epsilon="0.1")
        text = str(data.statement())
        assert "grows by 1 every 30 days" in text
        assert "adds up for ever" in text
        assert "2-differentially private" in text


def test_a_policy_is_stated_once(tmp_path: Path) -> None:
    renewal = Renewal.every(30, epsilon=1)
    open_visits(tmp_path / "l.db", cap=1, renewal=renewal).close()
    open_visits(tmp_path / "l.db", cap=1, renewal=renewal).close()
    open_visits(tmp_path / "l.db", cap=1).close()
    with pytest.raises(dm.LedgerError, match="renewal is 1 every 30 days"):
        open_visits(tmp_path / "l.db", renewal=Renewal.every(7, epsilon=1))


def test_a_start_in_the_future_takes_nothing_away(tmp_path: Path) -> None:
    with open_visits(
        tmp_path / "l.db", cap=1, renewal=Renewal.every(30, epsilon=1, start=TODAY + timedelta(days=90))
    ) as data:
        assert data.statement().cap == Epsilon.parse(1)


@pytest.mark.parametrize(("days", "epsilon"), [(0, 1), (-1, 1), (40_000, 1), (30, 0), (30, "nan")])
def test_a_policy_that_makes_no_sense_is_refused(days: int, epsilon: object) -> None:
    with pytest.raises(dm.RequestError):
        Renewal.every(days, epsilon=epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parts", [(10**9, 30.5, TODAY), (10**9, True, TODAY), (10**20, 30, TODAY), (10**9, 30, Noon.now(UTC))]
)
def test_a_policy_that_could_not_be_read_back_is_refused(parts: tuple[object, ...], tmp_path: Path) -> None:
    with pytest.raises(dm.RequestError):
        Renewal(*parts)  # type: ignore[arg-type]
    with pytest.raises(dm.RequestError):
        open_visits(tmp_path / "l.db", cap=1, renewal="1 every 30 days")


def test_a_policy_is_written_and_read_back() -> None:
    renewal = Renewal.every(365, epsilon="0.25", start=date(2026, 1, 31))
    assert Renewal.parse(str(renewal)) == renewal
    assert Renewal.parse("") is None


def test_versions_add_up_and_share_one_budget(tmp_path: Path) -> None:
    for number, version in enumerate(("2025", "2026", "2025")):
        with open_visits(tmp_path / "l.db", cap=2, version=version) as data:
            private = data.grant("alice", epsilon=2)
            for ward in private.partition("ward").values():
                ward.count(epsilon="0.5")
            assert private.remaining() == Epsilon.parse(("1.5", "1", "1")[number])  # the third is the first, asked again
