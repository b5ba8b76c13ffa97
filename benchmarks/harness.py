"""What benchmarks share: arguments, peers in an environment of their own, timing, and one JSON object as the last line."""

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
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"


def arguments(description: str, names: list[str]) -> argparse.Namespace:
    """--quick drops peers, --only runs the named parts and needs no peer packages for them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="without peers and the largest sizes; never fewer runs")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"only these: {', '.join(names)}")
    parsed = parser.parse_args()
    parsed.names = parsed.only or names
    return parsed


def peer(module: str, package: str | None = None) -> ModuleType:
    """Import a peer library, installing it into .venv-peers if this environment lacks it."""
    if importlib.util.find_spec(module) is None:
        if not PEERS.exists():
            venv.create(PEERS, with_pip=True)
        subprocess.run([PEERS / "bin" / "python", "-m", "pip", "install", "--quiet", package or module], check=True)
        sys.path.extend(str(folder) for folder in (PEERS / "lib").glob("python*/site-packages"))
    return importlib.import_module(module)


def data_folder() -> Path:
    """The folder of public data sets, or a clear end."""
    folder = os.environ.get("DPMINE_DATA")
    if not folder or not Path(folder).is_dir():
        sys.exit("Set DPMINE_DATA to the folder with the public data sets (adult.parquet and others).")
    return Path(folder)


def interleaved(runs: int, **timed: Callable[[], Any]) -> dict[str, list[float]]:
    """Seconds of each candidate over `runs` rounds, taking turns, so that a noisy machine hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(runs):
        for name, function in timed.items():
            started = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def median(numbers: list[float]) -> float:
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]


def say(text: str) -> None:
    print(text, flush=True)


def finish(result: dict[str, Any]) -> None:
    print(json.dumps(result), flush=True)
