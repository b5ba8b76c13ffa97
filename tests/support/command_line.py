"""Runs the command line in this process, and says what every refusal must look like."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from typer import testing
from typer.testing import CliRunner, Result

from dpmine.cli.main import app
from dpmine.datasets import patients, patients_schema

RECORDS = patients(400)
# Else every run builds all commands anew, which takes nearly half of its time.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments: object) -> str:
    """What a command that succeeds prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def done_json(*arguments: object) -> Any:
    return json.loads(done(*arguments, "--json"))


def refused(*arguments: object, code: int = 2) -> str:
    """The one sentence with which a command is refused."""
    result = run(*arguments)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("Error: ")
    sentence = result.stderr.removeprefix("Error: ").rstrip("\n")
    assert sentence
    assert "Traceback" not in sentence
    return sentence


class Hospital:
    """A folder with patients, their schema and a ledger with cap 4, of which alice may spend 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "patients.csv"
        self.schema = folder / "patients.toml"
        self.ledger = folder / "patients.ledger.db"
        if not self.data.exists():
            pd.DataFrame(RECORDS).to_csv(self.data, index=False)
            self.schema.write_text(patients_schema().to_toml(), encoding="utf-8")

    def open_books(self) -> None:
        done("budget", "init", self.data, "--schema", self.schema, "--cap", 4)
        done("budget", "grant", self.data, "alice", "--schema", self.schema, "--epsilon", 1)

    def of(self, *command: object) -> list[object]:
        """A command about this hospital: its first two words, then data, rest and schema."""
        return [*command[:2], self.data, *command[2:], "--schema", self.schema]

    def query(self, *command: object) -> list[object]:
        return [*self.of("query", *command), "--as", "alice"]

    def spent(self) -> dict[str, Any]:
        shown = done_json(*self.of("budget", "show"))
        return {name: account["spent"] for name, account in shown["analysts"].items()} | {"all": shown["spent"]}
