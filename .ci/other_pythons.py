"""Runs a quick part of the tests on every other Python that is here and that pyproject.toml allows.

Each has an environment of its own, `.venv-3.12` and so on, made once. What does not run, such as a shim of pyenv, is no
interpreter; one that cannot make an environment is passed over and named.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent

# Every estimator and its way with rows in hand, the ledger, the door, the import, the commands and the README's example.
QUICK = (
    "tests/owner/test_closing.py",
    "tests/test_import.py",
    "tests/tables/test_private_table.py",
    "tests/attacks",
    "tests/codes",
    "tests/golden",
    "tests/ledger/test_ledger_accounts.py",
    "tests/ledger/test_ledger_requests.py",
    "tests/ledger/test_ledger_forks.py",
    "tests/engines/test_engine_through_the_door.py",
    "tests/mining/test_mining_estimator_api.py",
    "tests/mining/test_mining_scikit_learn.py",
    "tests/mining/test_mining_kmeans_behaviour.py",
    "tests/release/test_release_behaviour.py",
    "tests/cli/test_cli_commands.py",
    "tests/docs/test_documents_are_true.py",
)

# Only released CPython with its lock: libraries have wheels for these.
ASK_VERSION = """
import sys, sysconfig
usual = sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
if usual and not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("%d.%d" % sys.version_info[:2])
"""


def interpreters(environ: Mapping[str, str]) -> list[str]:
    """Paths that may be interpreters: python3.11 and later on PATH, then all of pyenv's, the newest first."""
    on_path = [shutil.which(f"python3.{minor}", path=environ.get("PATH", "")) for minor in range(11, 30)]
    root = environ.get("PYENV_ROOT") or str(Path(environ.get("HOME", "~")).expanduser() / ".pyenv")
    return [path for path in on_path if path] + sorted(glob.glob(f"{root}/versions/*/bin/python"), reverse=True)


def version_of(interpreter: str) -> str | None:
    """Such as '3.12'; None for what does not run."""
    return _output(interpreter, "-c", ASK_VERSION) or None


def can_make_environments(interpreter: str) -> bool:
    return _output(interpreter, "-c", "import ensurepip, venv; print('yes')") == "yes"


def _output(*command: str) -> str | None:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None


def by_version(paths: Iterable[str]) -> dict[str, list[str]]:
    """The interpreters that run, by their version, oldest version first."""
    found: dict[str, list[str]] = {}
    for path in paths:
        version = version_of(path)
        if version is not None:
            found.setdefault(version, []).append(path)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def named_versions(project: Mapping[str, Any]) -> list[str]:
    """The versions that pyproject.toml names among its classifiers."""
    start = "Programming Language :: Python :: 3."
    return [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(start)]


def prepare(version: str, interpreter: str) -> bool:
    """Make the environment of that version, unless it is there and newer than what it is made from."""
    folder = ROOT / f".venv-{version}"
    installed = folder / ".installed"
    sources = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    if installed.exists() and installed.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return True
    python = str(folder / "bin" / "python")
    install = ["-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "--editable", ".[dev]"]
    for command in ([interpreter, "-m", "venv", "--clear", str(folder)], [python, *install]):
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            return False
    installed.touch()
    return True


def passes(version: str) -> bool:
    python = str(ROOT / f".venv-{version}" / "bin" / "python")
    tests = [python, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *QUICK]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode == 0


def check(version: str, paths: list[str], *, named: bool) -> bool | None:
    """Whether the quick tests pass on this version; None where it was passed over."""
    able = [path for path in paths if can_make_environments(path)]
    if not able:
        say(f"Python {version}: passed over, {paths[0]} cannot make environments (it has no ensurepip or venv).")
        return None
    started = time.monotonic()
    say(f"Python {version}: {able[0]}, in .venv-{version}")
    if not prepare(version, able[0]):
        if not named:
            say(f"Python {version}: passed over, the pinned libraries cannot be installed; pyproject.toml does not name it.")
            return None
        say(f"Python {version}: FAILED, the package cannot be installed.")
        return False
    passed = passes(version)
    say(f"Python {version}: {'passed' if passed else 'FAILED'} after {time.monotonic() - started:.0f} s")
    return passed


def say(line: str) -> None:
    print(line, flush=True)


def check_others(own: str, environ: Mapping[str, str]) -> int:
    """Test all versions but `own`; the exit code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed, named = SpecifierSet(project["requires-python"]), named_versions(project)
    found = by_version(interpreters(environ))
    for version in named:
        if version != own and version not in found:
            say(f"Python {version}: not here, so not tested. Install it, on PATH or by pyenv.")
    others = {version: paths for version, paths in found.items() if version != own and version in allowed}
    outcomes = {version: check(version, paths, named=version in named) for version, paths in others.items()}
    failed = [version for version, passed in outcomes.items() if passed is False]
    passed = [version for version, passed in outcomes.items() if passed]
    say(f"Other Pythons than {own}: {', '.join(passed) or 'none'} passed; {', '.join(failed) or 'none'} failed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(check_others(f"{sys.version_info.major}.{sys.version_info.minor}", os.environ))
