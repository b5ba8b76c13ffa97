"""A hospital for each test of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import Hospital


@pytest.fixture
def hospital(tmp_path: Path) -> Hospital:
    made = Hospital(tmp_path)
    made.open_books()
    return made
