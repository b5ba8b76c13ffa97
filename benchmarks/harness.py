"""What benchmarks share: arguments, peers in an environment of their own, timing, and one JSON object as the last line.

A rehearsal (`--rehearse`) runs every part of a script in seconds, on a few hundred rows and without installing anything: it
shows that the script still runs on today's code, and nothing else. Scripts state what shrinks beside what they measure, by
`sized`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
APART = "peers"  # what the part of a benchmark is called whose peers need an environment of their own
REHEARSAL = "--rehearse" in sys.argv  # known before arguments are read: constants depend on it, in spawned workers too


def sized(full: T, rehearsal: T) -> T:
    """How much of something there is in a benchmark, and in its rehearsal."""
    return rehearsal if REHEARSAL else full


def arguments(description: str, parts: Sequence[str], peers: Collection[str] = (APART,)) -> argparse.Namespace:
    """What was asked; `names` are the parts to run. `peers` are those parts that --quick leaves out."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="without the largest sizes, and without peers that --only does not name; never fewer runs",
    )
    size.add_argument(
        "--rehearse",
        action="store_true",
        help="seconds, on a few hundred rows, installing nothing: does it still run? The figures mean nothing",
    )
    parser.add_argument("--only", nargs="+", choices=parts, metavar="NAME", help=f"only these: {', '.join(parts)}")
    parsed = parser.parse_args()
    parsed.names = chosen(parts, parsed.only, left_out={*peers} if parsed.quick else {APART} if parsed.rehearse else ())
    return parsed


def chosen(parts: Sequence[str], only: Sequence[str] | None, *, left_out: Collection[str]) -> list[str]:
    """The parts to run: those that were named, else all but those to leave out."""
    return [name for name in parts if (name in only if only else name not in left_out)]


def peer(module: str, package: str | None = None) -> ModuleType:
    """Import a peer library, installing it into .venv-peers if this environment lacks it."""
    outermost = module.partition(".")[0]  # to look for a module inside a package that is absent is an error
    if importlib.util.find_spec(outermost) is None:
        install(PEERS, package or module)
        sys.path.extend(str(folder) for folder in (PEERS / "lib").glob("python*/site-packages"))
    return importlib.import_module(module)


def peer_python(folder: Path, module: str, *packages: str) -> Path:
    """The python of an environment of its own that has this module, from these packages; to be run with -E.

    With -E it ignores PYTHONPATH, which may lead to packages of this environment that do not go with its own.
    """
    python = folder / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-E", "-c", f"import {module}"], capture_output=True).returncode:
        install(folder, *packages)
    return python


def install(folder: Path, *packages: str) -> None:
    """Put packages into an environment, which is made where there is none; a rehearsal ends instead."""
    if REHEARSAL:
        sys.exit(f"This needs {', '.join(packages)}. A rehearsal installs nothing: install it, or run without --rehearse.")
    if not folder.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages], check=True)


def data_folder() -> Path:
    """The folder of public data sets, or a clear end."""
    folder = os.environ.get("DPMINE_DATA")
    if not folder or not Path(folder).is_dir():
        sys.exit("Set DPMINE_DATA to the folder with the public data sets (adult.parquet and others).")
    return Path(folder)


def interleaved(
    runs: int, /, clock: Callable[[], float] = time.perf_counter, **timed: Callable[[], Any]
) -> dict[str, list[float]]:
    """Seconds of each candidate over `runs` rounds, taking turns, so that a noisy machine hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(runs):
        for name, function in timed.items():
            started = clock()
            function()
            seconds[name].append(clock() - started)
    return seconds


def median(numbers: list[float]) -> float:
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]


def say(text: str) -> None:
    print(text, flush=True)


def finish(result: dict[str, Any]) -> None:
    """The last line; that of a rehearsal says so, and that its figures mean nothing."""
    if REHEARSAL:
        say("This was a rehearsal on a few rows: its figures mean nothing.")
        result = {"rehearsal": True} | result
    print(json.dumps(result), flush=True)
