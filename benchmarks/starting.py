"""How long it takes to import dpmine, and to see the help of its command line, beside numpy alone.

Each is run in a fresh interpreter by turns, with the bytecode that an earlier run left.

Keys:
    runs                       how many turns the medians are of
    seconds[name]              the processor's: numpy, dpmine, help
    dpmine_over_numpy          importing dpmine, which imports numpy, over importing numpy
    help_over_numpy            the help of the command line over importing numpy
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from harness import arguments, finish, median, say, sized

RUNS = sized(15, rehearsal=1)
STATEMENTS = {
    "numpy": "import numpy",
    "dpmine": "import dpmine",
    "help": "from typer.testing import CliRunner; from dpmine.cli.main import app; CliRunner().invoke(app, ['--help'])",
}


def main() -> None:
    names = arguments(__doc__ or "", [*STATEMENTS], peers=()).names
    starts = {name: start_of(STATEMENTS[name]) for name in names}
    seconds = {name: median([each[name] for each in turns(starts)]) for name in names}
    say(", ".join(f"{name} {each:.3f} s" for name, each in seconds.items()))
    result: dict[str, object] = {"runs": RUNS, "seconds": {name: round(each, 4) for name, each in seconds.items()}}
    for name in ("dpmine", "help"):
        if {"numpy", name} <= set(names):
            result[f"{name}_over_numpy"] = round(seconds[name] / seconds["numpy"], 2)
    finish(result)


def turns(starts: dict[str, Callable[[], float]]) -> list[dict[str, float]]:
    """One turn more than is counted: the first writes the bytecode."""
    return [{name: start() for name, start in starts.items()} for _ in range(RUNS + 1)][1:]


def start_of(statement: str) -> Callable[[], float]:
    """The processor's seconds that a fresh interpreter needs for a statement, itself left out."""
    code = f"import time; before = time.process_time(); {statement}; print(time.process_time() - before)"

    def start() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    return start


if __name__ == "__main__":
    main()
