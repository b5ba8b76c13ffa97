"""The loaders give what the data folder's own description says, and say plainly what is missing."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import dpmine as dm
from dpmine import datasets
from dpmine.base.errors import DataError, RequestError
from dpmine.datasets import Graph, adult_facts, loaders
from dpmine.facts.sources import FileSource

# rows, distinct items, mean length, longest: as the folder's README says
TRANSACTIONS = {
    "mushroom": (8_124, 119, 23.00, 23),
    "retail": (88_162, 16_470, 10.31, 76),
    "bms": (77_512, 3_340, 4.62, 161),
    "t10i4d100k": (100_000, 870, 10.10, 29),
}
SEQUENCES = {
    "msnbc": (989_818, 17, 4.75, 14_795),
    "msnbc_31790": (31_790, 17, 13.33, 100),
    "bms1": (59_601, 497, 2.51, 267),
    "bike": (21_078, 67, 7.28, 53),
    "leviathan": (5_834, 9_025, 33.81, 100),
    "sign": (730, 267, 52.00, 94),
}
# graphs, vertices, edges, vertex labels, edge labels, the most vertices, classes
GRAPHS = {
    "mutag": (188, 3_371, 3_721, 7, 4, 28, 2),
    "aids": (2_000, 31_385, 32_390, 38, 3, 95, 2),
    "nci1": (4_110, 122_747, 132_753, 37, 1, 111, 2),
    "chemical_340": (340, 9_189, 9_317, 66, 4, 214, 0),
}
EVERY_LOADER = {
    "adult": datasets.adult,
    "census_income": datasets.census_income,
    "transactions": lambda: datasets.transactions("retail"),
    "sequences": lambda: datasets.sequences("bike"),
    "graphs": lambda: datasets.graphs("mutag"),
    "points": lambda: datasets.points("s1"),
    "taxonomies": lambda: datasets.adult_schema(taxonomies=True),
}


def height(table: dict[str, list[object]]) -> int:
    (rows,) = {len(values) for values in table.values()}
    return rows


def facts_of(lists: list[list[int]]) -> tuple[int, int, float, int]:
    lengths = [len(items) for items in lists]
    distinct = len({item for items in lists for item in items})
    return len(lists), distinct, round(sum(lengths) / len(lengths), 2), max(lengths)


# -- tables -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("split", "rows", "complete_rows"), [("all", 48_842, 45_222), ("train", 32_561, 30_162), ("test", 16_281, 15_060)]
)
def test_adult_has_its_published_rows(split: str, rows: int, complete_rows: int) -> None:
    whole, complete = datasets.adult(split=split), datasets.adult(split=split, complete=True)
    assert (height(whole), height(complete)) == (rows, complete_rows)
    assert list(whole) == list(complete) == list(adult_facts.COLUMNS)
    assert not any("?" in complete[name] for name in complete)


@pytest.mark.usefixtures("data_folder")
def test_the_splits_of_adult_are_the_whole_in_order() -> None:
    whole, train, test = (datasets.adult(split=split) for split in ("all", "train", "test"))
    assert {name: train[name] + test[name] for name in whole} == whole
    assert [whole[name].count("?") for name in adult_facts.WITH_UNKNOWN] == [2_799, 2_809, 857]


def test_the_splits_of_adult_are_those_that_the_csv_file_names(data_folder: Path) -> None:
    train = datasets.adult(split="train")
    splits = FileSource(data_folder / "adult.csv.gz").texts("split")
    assert splits == ["train"] * height(train) + ["test"] * (len(splits) - height(train))


@pytest.mark.usefixtures("data_folder")
def test_the_census_has_its_published_rows_and_no_weight() -> None:
    whole = datasets.census_income()
    assert height(whole) == 299_285
    assert len(whole) == 41
    assert "instance_weight" not in whole
    assert 0.06 < whole["income"].count("50000+") / height(whole) < 0.065
    for split, rows in {"train": 199_523, "test": 99_762}.items():
        assert height(datasets.census_income(split=split)) == rows


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("s1", 5_000, "x y label"), ("birch1", 100_000, "x y label"), ("geonames", 144_563, "lat lon cc")],
)
def test_points_have_their_published_rows(name: str, rows: int, columns: str) -> None:
    table = datasets.points(name)
    assert height(table) == rows
    assert list(table) == columns.split()
    if "label" in table:
        assert set(table["label"]) == set(range(1, {"s1": 15, "birch1": 100}[name] + 1))
    else:
        assert (min(table["lat"]), max(table["lat"])) == pytest.approx((-77.85, 78.22), abs=0.01)


@pytest.mark.usefixtures("data_folder")
def test_a_loaded_table_opens_under_its_schema() -> None:
    for table, schema in (
        (datasets.adult(), datasets.adult_schema()),
        (datasets.adult(complete=True), datasets.adult_schema(complete=True, taxonomies=True, bins=16)),
    ):
        with dm.open(table, schema=schema, cap=10) as data:
            noisy = data.grant("miner", epsilon=10).count(epsilon=10).value
        assert abs(noisy - height(table)) <= 2  # at epsilon 10 off by more with probability below 1e-12


# -- lists and graphs ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_transactions_are_as_described_and_repeat_no_item(name: str) -> None:
    found = datasets.transactions(name)
    assert facts_of(found) == TRANSACTIONS[name]
    assert all(len(set(items)) == len(items) for items in found)


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_as_described(name: str) -> None:
    assert facts_of(datasets.sequences(name)) == SEQUENCES[name]


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_as_described(name: str) -> None:
    found = datasets.graphs(name)
    assert (
        len(found),
        sum(len(graph.vertices) for graph in found),
        sum(len(graph.edges) for graph in found),
        len({label for graph in found for label in graph.vertices}),
        len({label for graph in found for _, _, label in graph.edges}),
        max(len(graph.vertices) for graph in found),
        len({graph.label for graph in found} - {None}),
    ) == GRAPHS[name]
    assert all(start != end for graph in found for start, end, _ in graph.edges)


@pytest.mark.usefixtures("data_folder")
def test_transactions_open_as_a_list_column() -> None:
    baskets = datasets.transactions("mushroom")
    items = dm.ItemList("items", tuple(str(item) for item in range(1, 120)), 23)
    with dm.open({"items": baskets}, schema=dm.Schema("mushroom", (items,), 10_000), cap=10) as data:
        assert abs(data.grant("miner", epsilon=10).count(epsilon=10).value - len(baskets)) <= 2


def test_every_name_is_tested() -> None:
    assert set(TRANSACTIONS) == set(loaders.TRANSACTIONS)
    assert set(SEQUENCES) == set(loaders.SEQUENCES)
    assert set(GRAPHS) == set(loaders.GRAPHS)


def graphs_of(text: str) -> list[Graph]:
    return list(loaders.graphs_of_text(iter(text.splitlines()), where="made up"))


def test_graph_text_is_read_graph_by_graph() -> None:
    text = "t # 0\nv 0 5\nv 1 6\ne 0 1 2\n\nt # 1\nt # 2\nv 0 -7\n"
    assert graphs_of(text) == [Graph((5, 6), ((0, 1, 2),)), Graph((), ()), Graph((-7,), ())]
    assert graphs_of("") == []


@pytest.mark.parametrize(
    "line", ["v 0 1", "t # 0\nv 1 1", "t # 0\nv 0 a", "t # 0\nv 0 1\ne 0 1 0", "t # 0\nv 0 1\ne 0 -1 0", "x", "e 0 0 0"]
)
def test_what_is_no_graph_text_is_refused(line: str) -> None:
    with pytest.raises(DataError, match="gSpan"):
        graphs_of(line)


# -- what is missing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_LOADER)
def test_a_missing_folder_or_file_is_named_with_the_variable(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in (None, tmp_path / "nowhere", tmp_path):
        if folder is None:
            monkeypatch.delenv("DPMINE_DATA", raising=False)
        else:
            monkeypatch.setenv("DPMINE_DATA", str(folder))
        with pytest.raises(DataError, match="DPMINE_DATA"):
            EVERY_LOADER[name]()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: datasets.transactions("kosarak"),
        lambda: datasets.sequences("retail"),
        lambda: datasets.graphs("facebook"),
        lambda: datasets.points("s2"),
        lambda: datasets.adult(split="half"),
        lambda: datasets.adult(source="uci"),
        lambda: datasets.census_income(split="half"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(ask: Any) -> None:
    with pytest.raises(RequestError, match="must be one of"):
        ask()


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DPMINE_DATA", str(tmp_path))
    return tmp_path


# Named by hand: gzip writes the time of day into its bytes, and all test workers must collect the same names.
@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"1 2 3\n" * 500)[:-12], gzip.compress(b"1 x\n")],
    ids=["no gzip", "cut short", "no number"],
)
def test_a_broken_file_is_a_data_error(content: bytes, own_folder: Path) -> None:
    (own_folder / "bike.seq.gz").write_bytes(content)
    with pytest.raises(DataError, match="bike"):
        datasets.sequences("bike")


def test_a_broken_table_or_tree_file_is_a_data_error(own_folder: Path) -> None:
    (own_folder / "adult.parquet").write_bytes(b"no parquet")
    (own_folder / "adult_taxonomies.json").write_text("[1, 2")
    with pytest.raises(DataError):
        datasets.adult()
    with pytest.raises(DataError, match="adult_taxonomies"):
        datasets.adult_schema(taxonomies=True)


def test_graphs_and_classes_must_be_as_many(own_folder: Path) -> None:
    (own_folder / "mutag.gspan.gz").write_bytes(gzip.compress(b"t # 0\nv 0 1\n"))
    (own_folder / "mutag.labels.txt.gz").write_bytes(gzip.compress(b"1\n-1\n"))
    with pytest.raises(DataError, match="one class for each graph"):
        datasets.graphs("mutag")


# -- OpenML -------------------------------------------------------------------------------------------------------------


def openml_frame() -> pd.DataFrame:
    """Three rows in the form of OpenML's Adult, version 2: categories, NaN where unknown, names with hyphens."""
    texts = {
        "workclass": ["Private", None, "State-gov"],
        "education": ["HS-grad", "10th", "Masters"],
        "marital-status": ["Divorced", "Widowed", "Separated"],
        "occupation": ["Sales", None, "Tech-support"],
        "relationship": ["Wife", "Husband", "Unmarried"],
        "race": ["Black", "White", "Other"],
        "sex": ["Female", "Male", "Female"],
        "native-country": ["Cuba", "Peru", None],
        "class": ["<=50K", ">50K", "<=50K."],
    }
    numbers = {"age": 30, "fnlwgt": 7, "education-num": 9, "capital-gain": 0, "capital-loss": 0, "hours-per-week": 40}
    frame = {name: pd.Categorical(values) for name, values in texts.items()}
    return pd.DataFrame({**frame, **{name: [value] * 3 for name, value in numbers.items()}})


def with_sklearn(monkeypatch: pytest.MonkeyPatch, fetch: Any) -> None:
    package, module = ModuleType("sklearn"), ModuleType("sklearn.datasets")
    module.fetch_openml = fetch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn", package)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", module)


def test_openml_gives_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    with_sklearn(monkeypatch, lambda *_, **__: SimpleNamespace(frame=openml_frame()))
    table = datasets.adult(source="openml")
    assert list(table) == list(adult_facts.COLUMNS)
    assert table["workclass"] == ["Private", "?", "State-gov"]
    assert table["native_country"] == ["Cuba", "Peru", "?"]
    assert table["income"] == ["<=50K", ">50K", "<=50K"]
    assert table["hours_per_week"] == [40, 40, 40]
    assert {type(value) for value in table["age"]} == {int}
    assert datasets.adult(source="openml", complete=True)["workclass"] == ["Private"]


def test_openml_without_scikit_learn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "sklearn.datasets", raising=False)
    with pytest.raises(DataError, match=r"scikit-learn.*DPMINE_DATA"):
        datasets.adult(source="openml")


def test_openml_without_network_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    with_sklearn(monkeypatch, unreachable)
    with pytest.raises(DataError, match=r"no route.*DPMINE_DATA"):
        datasets.adult(source="openml")


def test_openml_has_no_split_and_must_have_every_column() -> None:
    with pytest.raises(RequestError, match="split"):
        datasets.adult(source="openml", split="train")
    with pytest.raises(DataError, match="class"):
        loaders.adult_from_openml(openml_frame().drop(columns="class"))
