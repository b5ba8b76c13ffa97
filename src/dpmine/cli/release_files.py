"""The files that a release is written to: refused before anything is spent if they cannot be, then written whole."""

import csv
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema

ENDINGS = (".csv", ".parquet")


@dataclass(frozen=True)
class ReleaseFiles:
    """Where the parts of a release go; None where a part is not wanted."""

    table: Path
    sheet: Path
    report: Path | None
    owner_report: Path | None

    def wanted(self) -> dict[str, Path]:
        """The option that names each file, and the file."""
        named = {"--out": self.table, "--sheet": self.sheet, "--report": self.report, "--owner-report": self.owner_report}
        return {option: path for option, path in named.items() if path is not None}

    def check(self, schema: Schema, inputs: Iterable[Path], *, force: bool) -> None:
        """Refuse names that cannot be written, or that would destroy what is read."""
        _check_ending(self.table, schema)
        taken = {path.resolve(): "what is read here" for path in inputs}
        for option, path in self.wanted().items():
            if path.resolve() in taken:
                raise RequestError(f"{option} would overwrite {taken[path.resolve()]}: {str(path)!r}. Choose another name.")
            taken[path.resolve()] = f"the file of {option}"
            _check_path(path, force)

    def owner_warning(self) -> str | None:
        """What to tell an owner whose own page lies where the public table does."""
        if self.owner_report is None or self.owner_report.resolve().parent != self.table.resolve().parent:
            return None
        return (
            f"{self.owner_report.name} holds true numbers and lies in the folder of the public table. "
            "Move it before you publish that folder."
        )


def check_table(path: Path, schema: Schema, inputs: Iterable[Path], *, force: bool) -> None:
    """The same for a table alone."""
    _check_ending(path, schema)
    if path.resolve() in {read.resolve() for read in inputs}:
        raise RequestError(f"--out would overwrite what is read here: {str(path)!r}. Choose another name.")
    _check_path(path, force)


def _check_ending(table: Path, schema: Schema) -> None:
    if table.suffix.lower() not in ENDINGS:
        raise RequestError(f"--out must end in {' or '.join(ENDINGS)}. Got {str(table)!r} instead.")
    names = [attribute.name.lower() for attribute in schema.attributes]
    if table.suffix.lower() == ".parquet" and len(set(names)) < len(names):
        raise RequestError("Two columns differ in capital letters only, which Parquet writers mix up. Use .csv instead.")


def _check_path(path: Path, force: bool) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise RequestError(f"{str(path)!r} is a folder. Name a file in it.")
    if path.exists() and not force:
        raise RequestError(f"{str(path)!r} exists already. Choose another name, or overwrite it with --force.")
    if not folder.is_dir():
        raise RequestError(f"There is no folder {str(folder)!r} to write {path.name!r} to.")
    try:  # the only sure way to learn whether a folder can be written
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RequestError(f"Cannot write to the folder {str(folder)!r}: {error.strerror}.") from None


def write_whole(path: Path, write: Callable[[Path], None], *, private: bool = False) -> None:
    """Write a file under another name and then move it into place, so that no half of it is ever seen."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        partial.touch(0o600 if private else 0o666)
        write(partial)
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RequestError(
            f"The release was paid but {str(path)!r} cannot be written: {error.strerror}. Run the same command again, "
            "with --force for the files that are there already: the same release is free."
        ) from None


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    def write(partial: Path) -> None:
        partial.write_text(text, encoding="utf-8")

    write_whole(path, write, private=private)


def write_table(path: Path, columns: dict[str, list[Any]]) -> None:
    """A CSV or Parquet file, by the ending of its name."""
    write_whole(path, lambda partial: (_write_csv if path.suffix.lower() == ".csv" else _write_parquet)(partial, columns))


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_parquet(path: Path, columns: dict[str, list[Any]]) -> None:
    import duckdb

    types = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
    arrays = {f"c{place}": _array(values) for place, values in enumerate(columns.values())}
    shown = ", ".join(
        f'CAST({place} AS {types[_kind(values)]}) AS "{name.replace(chr(34), chr(34) * 2)}"'
        for place, (name, values) in zip(arrays, columns.items(), strict=True)
    )
    connection = duckdb.connect()
    try:
        connection.register("released", arrays)
        connection.sql(f"SELECT {shown} FROM released").write_parquet(str(path))
    except duckdb.Error as error:
        raise OSError(0, str(error).splitlines()[0][:200]) from None
    finally:
        connection.close()


def _kind(values: list[Any]) -> type:
    """Whole numbers, other numbers, or text. A table without records has text everywhere."""
    kind = type(next((value for value in values if value is not None), ""))
    return kind if kind in (int, float) else str


def _array(values: list[Any]) -> NDArray[Any]:
    """As the writer takes it: numbers among gaps as text, which it casts back."""
    if None in values:
        return np.array([None if value is None else str(value) for value in values], dtype=object)
    return np.array(values, dtype={int: np.int64, float: np.float64, str: object}[_kind(values)])
