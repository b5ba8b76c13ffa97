"""What all tests share: Hypothesis without deadlines, tables that are closed again, public data sets where they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.executors import Opener, granted

import dpmine as dm
from dpmine.base import forking
from dpmine.kernel.ledger.log import Log

settings.register_profile(
    "dpmine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    # The same examples every time, so that a change is judged by itself; `make check-all` looks for new ones.
    derandomize="DPMINE_EXPLORE" not in os.environ,
)
settings.load_profile("dpmine")


@pytest.fixture(scope="session", autouse=True)
def own_cache_of_designs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Mechanisms that tests design are kept in a folder of their own, never in the user's."""
    os.environ["DPMINE_CACHE"] = str(tmp_path_factory.mktemp("designs"))


def open_ledgers() -> set[Log]:
    return {holder for holder in list(forking._open) if isinstance(holder, Log)}


@pytest.fixture(autouse=True)
def what_a_test_opens_it_closes() -> Iterator[None]:
    """Ledgers that a test opened and did not close itself are closed after it; those of whole modules stay open."""
    before = open_ledgers()
    yield
    for ledger in open_ledgers() - before:
        ledger.close()


@pytest.fixture(params=["local", "json"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens private tables of alice, next to the data and across a wire of JSON text; all are closed after the test."""
    with ExitStack() as stack:

        def open_private(table: Any, schema: Any, *, epsilon: Any = 1, cap: Any = None) -> dm.PrivateTable:
            data = stack.enter_context(dm.open(table, schema=schema, cap=epsilon if cap is None else cap))
            return granted(data, "alice", epsilon=epsilon, over=request.param)

        yield open_private


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The public data sets that DPMINE_DATA points at; tests that need them are skipped elsewhere."""
    named = os.environ.get("DPMINE_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("set DPMINE_DATA to a folder with the public data sets (adult.csv.gz and so on)")
    return Path(named)
