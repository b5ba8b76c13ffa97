"""Loaders for the public data sets in the folder that DPMINE_DATA names, as plain columns or lists of lists.

Adult also comes from OpenML through scikit-learn. Tables are dicts of columns, ready for `dm.open` or a data frame.
"""

import gzip
import importlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from dpmine.base.errors import DataError, RequestError
from dpmine.datasets import adult_facts, census_facts
from dpmine.datasets.folder import VARIABLE, data_file
from dpmine.facts.sources import FrameSource, Source, reading

Columns = dict[str, list[object]]

SPLITS = ("all", "train", "test")
TRANSACTIONS = {
    "mushroom": "mushroom.dat.gz",
    "retail": "retail.dat.gz",
    "bms": "bms_webview2.dat.gz",
    "t10i4d100k": "t10i4d100k.dat.gz",
}
SEQUENCES = {
    "msnbc": "msnbc_full.seq.gz",
    "msnbc_31790": "msnbc_31790.seq.gz",
    "bms1": "bms_webview1.seq.gz",
    "bike": "bike.seq.gz",
    "leviathan": "leviathan.seq.gz",
    "sign": "sign.seq.gz",
}
GRAPHS = {
    "mutag": ("mutag.gspan.gz", "mutag.labels.txt.gz"),
    "aids": ("aids.gspan.gz", "aids.labels.txt.gz"),
    "nci1": ("nci1.gspan.gz", "nci1.labels.txt.gz"),
    "chemical_340": ("chemical_340.gspan.gz", None),
}
POINTS = {
    "s1": ("s1.parquet", ("x", "y", "label")),
    "birch1": ("birch1.parquet", ("x", "y", "label")),
    "geonames": ("geonames_cities1000.parquet", ("lat", "lon")),
}


@dataclass(frozen=True)
class Graph:
    """An undirected graph: the label of each vertex, edges as (vertex, vertex, edge label), and its class if it has one."""

    vertices: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]
    label: int | None = None


# -- tables -------------------------------------------------------------------------------------------------------------


def adult(*, split: str = "all", complete: bool = False, source: str = "folder") -> Columns:
    """UCI Adult: 14 attributes and the class `income`, 48,842 rows.

    split     "train" (the first 32,561 rows), "test" or "all"
    complete  without the rows that hold '?': 45,222 of them remain
    source    "folder", or "openml" for a download through scikit-learn (its rows are in another order, so no split)
    """
    _one_of("split", split, SPLITS)
    _one_of("source", source, ("folder", "openml"))
    if source == "openml":
        if split != "all":
            raise RequestError("OpenML does not say which rows of Adult are for training. Ask for split='all'.")
        table = adult_from_openml(_openml_frame())
    else:
        with reading(data_file("adult.parquet")) as file:
            table = _columns(file, adult_facts.COLUMNS, adult_facts.RANGES)
        first = adult_facts.TRAINING_ROWS if split == "test" else 0
        last = adult_facts.TRAINING_ROWS if split == "train" else None
        table = {name: values[first:last] for name, values in table.items()}
    if not complete:
        return table
    unknown = zip(*(table[name] for name in adult_facts.WITH_UNKNOWN), strict=True)
    known = [adult_facts.UNKNOWN not in values for values in unknown]
    return _kept(table, known)


def adult_from_openml(frame: Any) -> Columns:
    """OpenML's frame of Adult as our columns: its names with underscores, missing values as '?'."""
    source = FrameSource(frame)
    theirs = {name: name.replace("_", "-") for name in adult_facts.COLUMNS} | {adult_facts.CLASS: "class"}
    missing = [name for name in theirs.values() if name not in source.columns]
    if missing:
        raise DataError(f"OpenML's Adult was expected to have a column {missing[0]!r}. Ask for its version 2.")
    table: Columns = {}
    for ours, name in theirs.items():
        if ours in adult_facts.RANGES:
            table[ours] = _numbers(source, name)
        else:
            table[ours] = [adult_facts.UNKNOWN if text is None else text.strip(" .") for text in source.texts(name)]
    return table


def census_income(*, split: str = "all") -> Columns:
    """UCI Census-Income (KDD): 40 attributes and the class `income`, 299,285 rows; the sampling weight is left out."""
    _one_of("split", split, SPLITS)
    with reading(data_file("census_income_kdd.parquet")) as source:
        table = _columns(source, census_facts.COLUMNS, census_facts.RANGES)
        if split == "all":
            return table
        return _kept(table, [text == split for text in source.texts(census_facts.SPLIT)])


def points(name: str) -> Columns:
    """Points in the plane: s1 and birch1 (x, y and the true cluster `label`), geonames (lat, lon and the country cc)."""
    _one_of("name", name, tuple(POINTS))
    file, numbers = POINTS[name]
    with reading(data_file(file)) as source:
        return _columns(source, (*numbers, "cc") if name == "geonames" else numbers, numbers)


def _columns(source: Source, names: tuple[str, ...], numeric: Any) -> Columns:
    missing = [name for name in names if name not in source.columns]
    if missing:
        raise DataError(f"The file in the folder that {VARIABLE} names has no column {missing[0]!r}.")
    return {name: _numbers(source, name) if name in numeric else _texts(source, name) for name in names}


def _texts(source: Source, name: str) -> list[object]:
    """The texts of a column, each distinct one held once."""
    once: dict[str | None, str | None] = {}
    return [once.setdefault(text, text) for text in source.texts(name)]


def _numbers(source: Source, name: str) -> list[object]:
    """The numbers of a column: whole ones as integers if all are."""
    numbers = source.numbers(name)
    whole = bool(np.all(np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)))
    return list((numbers.astype(np.int64) if whole else numbers).tolist())


def _kept(table: Columns, kept: list[bool]) -> Columns:
    return {name: list(compress(values, kept)) for name, values in table.items()}


def _openml_frame() -> Any:
    try:
        fetch = importlib.import_module("sklearn.datasets").fetch_openml
    except ImportError:
        raise DataError(
            "Adult from OpenML needs scikit-learn and pandas: pip install scikit-learn pandas. "
            f"Or set {VARIABLE} to a folder that holds adult.parquet."
        ) from None
    try:
        return fetch("adult", version=2, as_frame=True, parser="auto").frame
    except (ImportError, OSError) as error:  # no pandas; no network
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataError(
            f"Cannot load Adult from OpenML: {reason}. Or set {VARIABLE} to a folder that holds adult.parquet."
        ) from None


# -- lists and graphs ---------------------------------------------------------------------------------------------------


def transactions(name: str) -> list[list[int]]:
    """Item sets, one list of distinct item numbers for each transaction: mushroom, retail, bms (WebView-2), t10i4d100k."""
    _one_of("name", name, tuple(TRANSACTIONS))
    return _whole_numbers(data_file(TRANSACTIONS[name]))


def sequences(name: str) -> list[list[int]]:
    """Sequences of item numbers in order: msnbc, msnbc_31790, bms1 (WebView-1), bike, leviathan, sign."""
    _one_of("name", name, tuple(SEQUENCES))
    return _whole_numbers(data_file(SEQUENCES[name]))


def graphs(name: str) -> list[Graph]:
    """Labelled graphs, with their classes where the data set has them: mutag, aids, nci1, chemical_340."""
    _one_of("name", name, tuple(GRAPHS))
    file, labels = GRAPHS[name]
    found = list(graphs_of_text(_lines(data_file(file)), where=file))
    if labels is None:
        return found
    classes = _whole_numbers(data_file(labels))
    if len(classes) != len(found) or any(len(line) != 1 for line in classes):
        raise DataError(f"{labels!r} must hold one class for each graph of {file!r}.")
    return [replace(graph, label=label) for graph, (label,) in zip(found, classes, strict=True)]


def graphs_of_text(lines: Iterator[str], *, where: str) -> Iterator[Graph]:
    """Graphs in gSpan's text form: 't # id' begins one, then 'v index label' and 'e from to label'."""
    vertices: list[int] = []
    edges: list[tuple[int, int, int]] = []
    begun = False
    for number, line in enumerate(lines, start=1):
        match line.split():
            case ["t", "#", *_]:
                if begun:
                    yield Graph(tuple(vertices), tuple(edges))
                vertices, edges, begun = [], [], True
            case ["v", index, label] if begun and index == str(len(vertices)) and _is_whole(label):
                vertices.append(int(label))
            case ["e", start, end, label] if _is_edge(start, end, label, len(vertices)):
                edges.append((int(start), int(end), int(label)))
            case []:
                pass
            case _:
                raise DataError(f"{where!r} is not gSpan text: line {number} is no graph, vertex or edge that fits.")
    if begun:
        yield Graph(tuple(vertices), tuple(edges))


def _is_edge(start: str, end: str, label: str, vertices: int) -> bool:
    return all(map(_is_whole, (start, end, label))) and 0 <= int(start) < vertices and 0 <= int(end) < vertices


def _is_whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def _whole_numbers(path: Path) -> list[list[int]]:
    try:
        return [[int(text) for text in line.split()] for line in _lines(path)]
    except ValueError:
        raise DataError(f"Every line of {path.name!r} must hold whole numbers separated by spaces.") from None


def _lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            yield from file
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise DataError(f"Cannot read {path.name!r} as compressed text. Put a whole copy into the folder.") from None


def _one_of(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise RequestError(f"{what} must be one of {', '.join(allowed)}. Got {given!r} instead.")
