"""What all tests share: Hypothesis without deadlines, and the folder of public data sets where it is at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dpmine import forking
from dpmine.kernel.ledger import Ledger

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


def open_ledgers() -> set[Ledger]:
    return {holder for holder in list(forking._open) if isinstance(holder, Ledger)}


@pytest.fixture(autouse=True)
def what_a_test_opens_it_closes() -> Iterator[None]:
    """Ledgers that a test opened and did not close itself are closed after it; those of whole modules stay open."""
    before = open_ledgers()
    yield
    for ledger in open_ledgers() - before:
        ledger.close()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The public data sets that DPMINE_DATA points at; tests that need them are skipped elsewhere."""
    named = os.environ.get("DPMINE_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("set DPMINE_DATA to a folder with the public data sets (adult.csv.gz and so on)")
    return Path(named)
