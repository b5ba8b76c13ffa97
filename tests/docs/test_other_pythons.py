"""The script that finds and tests other Pythons, on interpreters made up here."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "other_pythons.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is in the repository only")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, in a project of its own."""
    spec = importlib.util.spec_from_file_location("other_pythons", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def made_up(path: Path, *, version: str, able: bool = True, installs: bool = True, passes: bool = True) -> str:
    """An interpreter that says this version, makes environments of copies of itself, installs and tests; or does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""#!/bin/sh
case "$*" in
  *ensurepip*) {"echo yes" if able else "exit 1"} ;;
  *sysconfig*) echo {version} ;;
  *"-m venv"*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
  *"-m pip"*) exit {0 if installs else 1} ;;
  *"-m pytest"*) exit {0 if passes else 1} ;;
  *) exit 2 ;;
esac
"""
    )
    path.chmod(0o755)
    return str(path)


def outcome(script: ModuleType, folder: Path, *, requires: str = ">=3.11") -> int:
    """The exit code of the script where 3.11 ran the tests, for a package that names 3.11 to 3.13."""
    named = "".join(f'    "Programming Language :: Python :: 3.{minor}",\n' for minor in (11, 12, 13))
    (folder / "pyproject.toml").write_text(f'[project]\nrequires-python = "{requires}"\nclassifiers = [\n{named}]\n')
    (folder / "constraints.txt").touch()
    environ = {"PATH": str(folder / "path"), "PYENV_ROOT": str(folder / "pyenv")}
    return int(script.check_others("3.11", environ))


def test_every_other_version_that_is_found_is_tested_once(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, version in (
        ("path/python3.11", "3.11"),
        ("path/python3.12", "3.12"),
        ("pyenv/versions/3.12.1/bin/python", "3.12"),
        ("pyenv/versions/3.13.0/bin/python", "3.13"),
        ("pyenv/versions/3.9.18/bin/python", "3.9"),
    ):
        made_up(tmp_path / place, version=version)
    assert outcome(script, tmp_path) == 0
    assert sorted(folder.name for folder in tmp_path.glob(".venv*")) == [".venv-3.12", ".venv-3.13"]
    said = capsys.readouterr().out
    assert f"Python 3.12: {tmp_path / 'path' / 'python3.12'}, in .venv-3.12" in said
    assert said.endswith("Other Pythons than 3.11: 3.12, 3.13 passed; none failed.\n")


def test_tests_that_fail_on_one_version_fail_the_whole(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up(tmp_path / "path/python3.12", version="3.12")
    made_up(tmp_path / "path/python3.13", version="3.13", passes=False)
    assert outcome(script, tmp_path) == 1
    assert capsys.readouterr().out.endswith("3.12 passed; 3.13 failed.\n")


def test_a_named_version_that_cannot_be_installed_fails_and_a_newer_one_is_passed_over(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up(tmp_path / "path/python3.14", version="3.14", installs=False)
    assert outcome(script, tmp_path) == 0
    assert "3.14: passed over, the pinned libraries cannot be installed" in capsys.readouterr().out
    made_up(tmp_path / "path/python3.13", version="3.13", installs=False)
    assert outcome(script, tmp_path) == 1
    assert "3.13: FAILED, the package cannot be installed" in capsys.readouterr().out


def test_what_does_not_run_or_makes_no_environments_is_passed_over_and_named(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shim = Path(made_up(tmp_path / "path/python3.12", version="3.12"))
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    made_up(tmp_path / "path/python3.13", version="3.13", able=False)
    assert outcome(script, tmp_path) == 0
    said = capsys.readouterr().out
    assert "Python 3.12: not here, so not tested" in said
    assert "Python 3.13: passed over" in said
    assert "no ensurepip" in said
    made_up(tmp_path / "pyenv/versions/3.13.0/bin/python", version="3.13", passes=False)  # another one that can
    assert outcome(script, tmp_path) == 1


def test_versions_that_the_package_does_not_allow_are_not_tested(script: ModuleType, tmp_path: Path) -> None:
    made_up(tmp_path / "path/python3.14", version="3.14", passes=False)
    assert outcome(script, tmp_path) == 1
    assert outcome(script, tmp_path, requires=">=3.11,<3.14") == 0


def test_an_environment_is_made_again_when_the_constraints_changed(script: ModuleType, tmp_path: Path) -> None:
    interpreter = tmp_path / "path/python3.12"
    made_up(interpreter, version="3.12")
    assert outcome(script, tmp_path) == 0
    made_up(interpreter, version="3.12", passes=False)
    os.utime(tmp_path / ".venv-3.12" / ".installed", (4e9, 4e9))  # newer than everything: kept, a copy of the old one
    assert outcome(script, tmp_path) == 0
    os.utime(tmp_path / ".venv-3.12" / ".installed", (0, 0))
    assert outcome(script, tmp_path) == 1


def test_the_quick_tests_exist(script: ModuleType) -> None:
    assert [name for name in script.QUICK if not (SCRIPT.parents[1] / name).exists()] == []


def test_an_ordinary_interpreter_says_its_version(script: ModuleType) -> None:
    locked = not sysconfig.get_config_var("Py_GIL_DISABLED")
    ordinary = sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final" and locked
    assert script.version_of(sys.executable) == (f"{sys.version_info.major}.{sys.version_info.minor}" if ordinary else None)
    assert script.version_of("/nowhere/python3.12") is None
