"""Golden entries: what the command line answers as JSON and writes to files, for the same table.

Every command has a folder with the table, its schema and a ledger that is named, so that no default of where ledgers lie
matters. Only what is asked and released is here: what owners see of their ledgers are `statement` entries and the tests of
the command line.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from golden_seams import pinned
from golden_table import SCHEMA, write_csv
from golden_world import entry
from typer.testing import CliRunner

from dpmine.cli.main import app

LEFT_OUT = {"ledger_head", "date", "dpmine", "schema", "schema_fingerprint", "dataset_remaining", "digest"}
"""Times, versions, hashes, the table's own schema, and what the owner's budget says."""
TABLE, LEDGER = "table.csv", "golden.ledger.db"
LINES = 6  # of a table that was written


def open_books(folder: Path) -> None:
    """What an owner does first, with split keys as everywhere else."""
    write_csv(folder / TABLE)
    (folder / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    of_it = (folder / TABLE, "--schema", folder / "schema.toml", "--ledger", folder / LEDGER)
    with pinned("the books of the command line"):
        run("budget", "init", *of_it, "--cap", 100)
        run("budget", "grant", of_it[0], "alice", *of_it[1:], "--epsilon", 50)


@cache
def books() -> Path:
    """A folder whose ledger was opened once, to be copied by every entry."""
    opened = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, opened)
    open_books(opened)
    return opened


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


class Counter:
    """A folder in which commands are run, and what they answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "books"
        self.table = self.folder / TABLE
        self._of_it = ("--schema", self.folder / "schema.toml", "--ledger", self.folder / LEDGER)
        shutil.copytree(books(), self.folder)

    def ask(self, *command: object) -> Any:
        """A question or a fit of alice's: the command's two words, then its options."""
        return self.told(*command[:2], self.table, *command[2:], *self._of_it, "--as", "alice")

    def told(self, *arguments: object) -> Any:
        return self.cleaned(json.loads(run(*arguments, "--json")))

    def cleaned(self, form: Any) -> Any:
        if isinstance(form, dict):
            return {name: self.cleaned(item) for name, item in form.items() if name not in LEFT_OUT}
        if isinstance(form, list):
            return [self.cleaned(item) for item in form]
        return form.replace(str(self.folder), "<folder>") if isinstance(form, str) else form

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text(encoding="utf-8").splitlines()[:LINES]


def command(name: str) -> Callable[[Callable[[Counter], Any]], None]:
    """Declare an entry that runs commands; it is called by the first one."""

    def declare(ordered: Callable[[Counter], Any]) -> None:
        entry(f"command/{name}")(lambda world: ordered(Counter(world.folder)))

    return declare


QUESTIONS: dict[str, tuple[object, ...]] = {
    "count": ("--where", "age >= 40 and ward in [north, south]", "--epsilon", "0.5"),
    "count, dry run": ("--epsilon", "0.5", "--dry-run"),
    "count, with designed noise": ("--epsilon", "0.5", "--design", "geometric"),
    "histogram": ("--by", "ward", "--by", "age:40:60", "--epsilon", "0.5"),
    "choose": ("--among", "age", "--among", "ward", "--score", "gini", "--epsilon", "0.5"),
    "choose, a label": ("--among", "ward", "--epsilon", "0.5"),
    "sum": ("--column", "age", "--epsilon", "0.5"),
    "mean": ("--column", "dose", "--epsilon", "0.5"),
    "mean, with a prior": ("--column", "dose", "--prior", "normal:2:1", "--design", "staircase", "--epsilon", "1"),
    "median": ("--column", "age", "--epsilon", "0.5"),
    "max": ("--column", "age", "--epsilon", "0.5"),
    "variance": ("--column", "dose", "--epsilon", "0.5"),
    "std": ("--column", "dose", "--epsilon", "0.5"),
    "covariance": ("--column", "dose", "--with", "age", "--epsilon", "0.5"),
    "quantile": ("--column", "age", "--order", "0.25", "--epsilon", "0.5"),
}


def _question(name: str, options: tuple[object, ...]) -> Callable[[Counter], Any]:
    return lambda counter: counter.ask("query", name.split(",")[0], *options)


for _name, _options in QUESTIONS.items():
    command(f"query {_name}")(_question(_name, _options))

RELEASES: dict[str, tuple[object, ...]] = {
    "tree": ("--epsilon", 4, "--seed", 3),
    "tree, generalised": ("--epsilon", 4, "--generalised", "--set", "max_depth=2"),
    "diffgen": ("--epsilon", 8, "--specialisations", 3, "--score", "infogain"),
    "diffgen, raw": ("--epsilon", 8, "--specialisations", 3, "--raw", "--seed", 3),
    "contingency": ("--epsilon", 2, "--set", "bins=2"),
}


def _release(name: str, options: tuple[object, ...]) -> Callable[[Counter], Any]:
    def ordered(counter: Counter) -> Any:
        told = counter.ask("release", name.split(",")[0], *options, "--out", counter.folder / "public.csv")
        return {"told": told, "rows": counter.lines("public.csv")}

    return ordered


for _name, _options in RELEASES.items():
    command(f"release {_name}")(_release(_name, _options))


@command("release generalise")
def _(counter: Counter) -> Any:
    counter.ask("release", "diffgen", "--epsilon", 8, "--specialisations", 3, "--out", counter.folder / "public.csv")
    other = counter.folder / "other.csv"
    told = counter.told("release", "generalise", counter.folder / "public.csv.json", counter.table, "--out", other)
    return {"told": told, "rows": counter.lines("other.csv")}


MODELS: dict[str, tuple[object, ...]] = {
    "tree": ("--epsilon", 2),
    "forest": ("--epsilon", 4, "--trees", 2),
    "kmeans": ("--epsilon", 8, "--clusters", 1, "--attributes", "age,dose", "--scaling", "bounds"),
    "kmeans, dplloyd": ("--epsilon", 8, "--clusters", 1, "--algorithm", "dplloyd", "--scaling", "none"),
}
"""These commands have no seed for where clusters start, so there is one cluster, which comes out the same from anywhere."""


def _mine(name: str, options: tuple[object, ...]) -> Callable[[Counter], Any]:
    def ordered(counter: Counter) -> Any:
        model, predicted = counter.folder / "model.json", counter.folder / "predicted.csv"
        told = counter.ask("mine", name.split(",")[0], *options, "--out", model)
        counter.told("predict", model, counter.table, "--out", predicted)
        return {"told": told, "predicted": counter.lines("predicted.csv")}

    return ordered


for _name, _options in MODELS.items():
    command(f"mine {_name}")(_mine(_name, _options))


def commands_of(group: str) -> set[str]:
    """The names of the commands in a group, as typer knows them."""
    from typer.main import get_command

    return set(get_command(app).commands[group].commands)  # type: ignore[attr-defined]
