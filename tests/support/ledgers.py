"""A small public world for the ledger's tests: one schema, one table, and requests that differ only where a test says so."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire import to_wire
from dpmine.codes.aggregates import Engine
from dpmine.codes.answers import Reply
from dpmine.engines.encoding import EncodedTable
from dpmine.engines.memory import MemoryEngine
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.kernel.door import Kernel
from dpmine.kernel.ledger.accounts import Request, Reservation, Stored
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.odometer import Charge, Charged
from dpmine.language.keys import AttributeKey, Bins
from dpmine.language.predicates import Compare
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, Cell, Rules, Split, View, Where
from dpmine.owner.desk import Desk
from dpmine.owner.ledgers import book_at
from dpmine.questions.histogram import Histogram

HERE = Path(__file__).parent
WHOLE = 10**9  # the units of epsilon 1

SCHEMA = Schema(
    "clinic",
    (
        Nominal("ward", ("north", "south", "west"), "west", missing="west"),
        Nominal("sex", ("f", "m"), "m", missing="m"),
        Numeric("age", Decimal(0), Decimal(3), Decimal(1), Decimal(0)),
    ),
    rows_at_most=1000,
    class_attribute="ward",
)
WARD, SEX, AGE = AttributeKey("ward"), AttributeKey("sex"), Bins("age", ("2",))


def small_table(schema: Schema = SCHEMA, rows: int = 120) -> EncodedTable:
    """Every combination of values equally often, in the codes of the schema."""
    numbers = np.arange(rows)
    columns = {
        "ward": (numbers % 3).astype(np.uint8),
        "sex": (numbers // 3 % 2).astype(np.uint8),
        "age": (numbers // 6 % 4).astype(np.uint8),
    }
    return EncodedTable(schema, rows, columns, {}, "generated")


class ImpatientLedger(Ledger):
    """Takes a dead request over at once, so that a test of what happens next need not wait."""

    def reserve(self, request: Request, *, patience: float = 0.0) -> Reservation | Stored:
        return super().reserve(request, patience=patience)


class PatientLedger(Ledger):
    """Never takes over within a test, however busy the machine is."""

    def reserve(self, request: Request, *, patience: float = 300.0) -> Reservation | Stored:
        return super().reserve(request, patience=patience)


def open_ledger(
    path: Path | None, *, cap: int | None = None, kind: type[Ledger] = ImpatientLedger, **options: Any
) -> Ledger:
    return book_at(path, kind=kind, dataset=SCHEMA.name, cap=cap, **options)


def desk_on(
    ledger: Ledger,
    *,
    version: str = "1",
    encoding: str = "generated",
    schema: Schema = SCHEMA,
    engine: Engine | None = None,
    **options: Any,
) -> Desk:
    engine = engine or MemoryEngine(small_table(schema), bytes.fromhex(ledger.fact("split_key")))
    return Desk(Kernel(schema.domain, engine, ledger, version=version, encoding=encoding, **options), schema)


def charge_on(units: int, *path: tuple[str, str]) -> Charge:
    """Units at the view that a path of kinds and names leads to."""
    steps = (("view", ""), *path)
    owns = (*(0,) * len(path), units)
    return Charge(tuple(Charged(max(at - 1, 0), *step, own) for at, (step, own) in enumerate(zip(steps, owns, strict=True))))


def request(
    units: int = WHOLE // 10,
    *,
    analyst: str = "ann",
    plan: str | None = None,
    key: str | None = None,
    root: str = "root",
    charge: Charge | None = None,
    rows_per_unit: int = 1,
) -> Request:
    """A plain count as the ledger sees it; another price is another plan unless said otherwise."""
    plan = plan or f"count at {units}"
    charge = (charge or charge_on(units)).times(rows_per_unit)
    question = to_wire(count_query(units)).decode()
    return Request(analyst, key or plan, plan, root, question, charge)


def cell_request(units: int, cell: int, *, analyst: str = "ann", plan: str | None = None) -> Request:
    """A count in one cell of one partition."""
    charge = charge_on(units, ("partition", "by ward"), ("cell", str(cell)))
    return request(units, analyst=analyst, plan=plan or f"cell {cell} at {units}", charge=charge)


def pay(ledger: Ledger, asked: Request, answer: bytes = b"answer") -> Stored:
    """Run the whole protocol for a request."""
    outcome = ledger.reserve(asked)
    return outcome if isinstance(outcome, Stored) else ledger.store(outcome, answer)


def count_query(units: int) -> Query:
    return Query(View(), LEAF, Histogram(()), (Epsilon(units),))


def random_query(draw: random.Random, units: int) -> Query:
    """A count of everything, of a `where` view, of one cell, or of all cells of a rule tree with prices up to `units`."""
    kind = draw.choice(("count", "where", "cell", "cells", "tree"))
    if kind == "count":
        return count_query(units)
    if kind == "where":
        view = View((Where(Compare("age", ">=", str(draw.randint(1, 3)))),))
        return Query(view, LEAF, Histogram(()), (Epsilon(units),))
    if kind == "cell":
        view = View((Cell(WARD, draw.randrange(3)), *draw.choice([(), (Cell(SEX, draw.randrange(2)),)])))
        return Query(view, LEAF, Histogram(()), (Epsilon(units),))
    rules: Rules = Split(WARD, (LEAF,) * 3)
    leaves = 3
    if kind == "tree":
        rules = Split(WARD, (Split(SEX, (LEAF, LEAF)), Split(AGE, (LEAF, LEAF)), LEAF))
        leaves = 5
    prices = [draw.choice((units, units // 2, units // 3, 0)) for _ in range(leaves)]
    prices[draw.randrange(leaves)] = units
    return Query(View(), rules, Histogram(()), tuple(Epsilon(price) for price in prices))


def hash_of(reply: Reply) -> str:
    """The hash of the bytes that a reply was read from: answers have one text."""
    return hashlib.sha256(to_wire(reply.answer)).hexdigest()


def python(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """A fresh interpreter with pipes that finds `support`, one thread only at the start, so that it may fork."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=HERE.parent, **options
    )


def run_script(script: str, *arguments: str) -> str:
    """Run a script to its end in a fresh interpreter and return what it printed."""
    with python("-c", script, *arguments) as process:
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, f"the script ended with {process.returncode} after printing: {printed}"
    return printed
