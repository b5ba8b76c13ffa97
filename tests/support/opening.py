"""Small tables opened for one analyst, and models fitted on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.executors import Recorder
from support.noise import Silent

import dpmine as dm
from dpmine.facts.schema import Schema
from dpmine.owner import opening
from dpmine.tables.private_table import PrivateTable

HUGE = 1_000_000
"""An epsilon at which noise is 0 and a choice is the best one, but for chances below e^-40."""


@contextmanager
def opened(table: Any, schema: Schema, epsilon: Any = 1, **options: Any) -> Iterator[PrivateTable]:
    """A private table of alice, who may spend all of a ledger in memory."""
    with dm.open(table, schema=schema, ledger=None, cap=options.pop("cap", epsilon), **options) as data:
        yield data.grant("alice", epsilon=epsilon)


def fitted(model: Any, table: Any, schema: Schema, epsilon: Any = None, **options: Any) -> Any:
    """Fit on a table whose ledger holds just the model's epsilon: what costs more is refused."""
    with opened(table, schema, model.budget if epsilon is None else epsilon, **options) as private:
        return model.fit(private)


@contextmanager
def recorded(table: Any, schema: Schema, epsilon: Any = 1) -> Iterator[tuple[PrivateTable, Recorder]]:
    """A private table and what is asked of it."""
    with opened(table, schema, epsilon) as private:
        recorder = Recorder(private._executor)
        yield PrivateTable(recorder), recorder


@contextmanager
def silent(table: Any, schema: Schema, epsilon: Any = 1, **options: Any) -> Iterator[tuple[PrivateTable, Recorder, Silent]]:
    """A private table whose noise is off, what is asked of it, and the noise that it would have had."""
    source = Silent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "noise_source", lambda name: source)
        data = dm.open(table, schema=schema, cap=epsilon, **options)
    with data:
        recorder = Recorder(data.grant("alice", epsilon=epsilon)._executor)
        yield PrivateTable(recorder), recorder, source
