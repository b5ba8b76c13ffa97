"""Numeric attributes in few words, and a schema whose rows belong to persons."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from dpmine.facts.facts import Unit
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema


def numeric(name: str, low: str | int, high: str | int, step: str | int = 1) -> Numeric:
    """From `low`, which stands for what is missing, to `high`."""
    return Numeric(name, Decimal(low), Decimal(high), Decimal(step), Decimal(low))


def number(name: str, points: int) -> Numeric:
    """The whole numbers 0, 1, ... below `points`."""
    return numeric(name, 0, points - 1)


def grid_from(low: str, step: str, points: int, name: str = "x") -> Numeric:
    """So many points from `low` on, each a value and a code."""
    high = Decimal(low) + Decimal(step) * (points - 1)
    return Numeric(name, Decimal(low), high, Decimal(step), Decimal(low), resolution=Decimal(step))


def of_persons(schema: Schema, at_most: int, column: str = "person") -> Schema:
    """The same facts of a table in which the column names whose each row is."""
    return replace(schema, name="persons", unit=Unit(column, at_most))
