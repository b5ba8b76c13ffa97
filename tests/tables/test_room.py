"""Room for work in many questions: what is paid already counts once, and only what adds up."""

from __future__ import annotations

import pytest
from support.opening import opened
from support.patient_tables import SCHEMA, TABLE

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.language.columns import col


def test_what_was_paid_for_disjoint_views_makes_room_only_once() -> None:
    """Two questions at 0.5 of two parts cost 0.5 together, so 0.5 of 1 is still to pay, and not nothing."""
    with opened(TABLE, SCHEMA, "0.9") as private:
        for part in list(private.partition("ward").values())[:2]:
            part.count(epsilon="0.5")
        working = private.with_room_for(Epsilon.parse(1))
        for part in list(working.partition("ward").values())[:2]:
            part.count(epsilon="0.5")
        with pytest.raises(dm.BudgetError, match=r"Cannot go on: the rest needs epsilon 0\.5 and 0\.4 remains"):
            working.where(col("age") >= 40).count(epsilon="0.1")
        assert private.remaining() == Epsilon.parse("0.4")


def test_what_was_paid_for_one_view_adds_up() -> None:
    with opened(TABLE, SCHEMA, "0.9") as private:
        for epsilon in ("0.3", "0.4"):
            private.count(epsilon=epsilon)
        working = private.with_room_for(Epsilon.parse("0.9"))
        for epsilon in ("0.3", "0.4"):
            working.count(epsilon=epsilon)
        working.count(epsilon="0.2")  # for which there is just room
        assert private.remaining() == Epsilon(0)
