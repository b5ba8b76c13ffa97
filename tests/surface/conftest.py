"""Private tables for tests: each test runs next to the data and across a wire of JSON text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from json_wire import Opener, granted

import dpmine as dm


@pytest.fixture(params=["local", "json"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Open a table with a ledger in memory and grant alice an allotment; everything is closed after the test."""
    with ExitStack() as stack:

        def open_private(table: Any, schema: Any, *, epsilon: Any = 1, cap: Any = None) -> dm.PrivateTable:
            data = stack.enter_context(dm.open(table, schema=schema, cap=epsilon if cap is None else cap))
            return granted(data, "alice", epsilon=epsilon, over=request.param)

        yield open_private
