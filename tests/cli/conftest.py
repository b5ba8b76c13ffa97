"""A hospital for each test of the command line, copied from one whose books were opened once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.command_line import Hospital


@pytest.fixture(scope="session")
def model_hospital(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    made = Hospital(tmp_path_factory.mktemp("hospital"))
    made.open_books()
    return made


@pytest.fixture
def hospital(model_hospital: Hospital, tmp_path: Path) -> Hospital:
    shutil.copytree(model_hospital.folder, tmp_path, dirs_exist_ok=True)
    return Hospital(tmp_path)
