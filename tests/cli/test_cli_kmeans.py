"""Clusters from the command line: mine, plan, show and predict; mistakes cost nothing and write nothing."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import Hospital, done, done_json, refused, run

import dpmine as dm
from dpmine.base.epsilon import Epsilon

PEOPLE = """
name = "people"
rows_at_most = 10000
[attributes.age]
kind = "numeric"
low = 0
missing = 0
high = 100
step = 1
[attributes.hours]
kind = "numeric"
low = 0
missing = 0
high = 80
step = 1
[attributes.income]
kind = "numeric"
low = 0
missing = 0
high = 100000
step = 100
[attributes.ward]
kind = "nominal"
categories = ["north", "south"]
"""


def people() -> pd.DataFrame:
    """Two crowds far from each other."""
    random = np.random.default_rng(1)
    age = np.concatenate([random.normal(25, 4, 600), random.normal(70, 4, 300)])
    hours = np.concatenate([random.normal(60, 4, 600), random.normal(10, 4, 300)])
    return pd.DataFrame({"age": age.round(), "hours": hours.round(), "income": hours.round() * 1000, "ward": "north"})


class Office(Hospital):
    """A folder like a hospital's, with people in three numeric attributes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        people().to_csv(folder / "patients.csv", index=False)
        super().__init__(folder)
        self.schema.write_text(PEOPLE, encoding="utf-8")
        self.ledger = folder / "people.ledger.db"


@pytest.fixture
def office(tmp_path: Path) -> Office:
    made = Office(tmp_path / "office")
    made.open_books()
    return made


@pytest.fixture
def untouched(office: Office) -> Any:
    """Whatever a test tries, the books and the folder are as before."""
    before, files = office.spent(), sorted(path.name for path in office.folder.iterdir())
    yield office
    assert office.spent() == before
    assert sorted(path.name for path in office.folder.iterdir()) == files


def mine(office: Hospital, *options: object, out: str = "model.json", epsilon: object = 1, k: object = 2) -> list[object]:
    common = ["--as", "alice", "--epsilon", epsilon, "--clusters", k, "--out", office.folder / out]
    return [*office.of("mine", "kmeans"), *common, *options]


# -- mine --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(
    ("options", "algorithm"),
    [
        ([], "KMeans (grid)"),
        (["--method", "tree", "--scaling", "bounds"], "KMeans (tree)"),
        (["--algorithm", "dplloyd", "--iterations", 3], "DPLloyd"),
        (["--algorithm", "dplloyd", "--iterations", "auto", "--attributes", "age"], "DPLloyd"),
    ],
)
def test_clusters_are_mined_saved_and_charged(office: Office, options: list[object], algorithm: str, engine: str) -> None:
    form = done_json(*mine(office, "--engine", engine, *options))
    model = dm.load(office.folder / "model.json")
    assert type(model).__name__ == algorithm.split()[0]
    assert form["model"] == str(office.folder / "model.json")
    assert form["charged"] == office.spent()["alice"] == office.spent()["all"]
    assert form["cost"] == str(model.cost_) == form["plan"]["cost"]
    assert Epsilon.parse(form["charged"]) <= Epsilon.parse(form["cost"]) <= Epsilon.parse(1)
    assert (form["plan"]["algorithm"], form["plan"]) == (algorithm, model.plan(office.schema).to_dict())
    assert [list(cluster["centre"].values()) for cluster in form["clusters"]] == model.cluster_centers_.tolist()
    assert [cluster["rows"] for cluster in form["clusters"]] == model.cluster_sizes_.tolist()
    assert len(model.predict(office.data)) == 900


def test_mined_clusters_are_told_in_words(office: Office) -> None:
    text = done(*mine(office, "--attributes", "age, hours"))
    model = dm.load(office.folder / "model.json")
    assert text.startswith(model.to_text())
    assert re.search(r"KMeans \(grid\): epsilon 1 spent, 0 remains\. Counts are noisy\.", text)
    assert f"Saved to {office.folder / 'model.json'}. Next: dpmine predict " in text


def test_far_crowds_are_found(tmp_path: Path) -> None:
    """At epsilon 1000 the noise is nothing."""
    office = Office(tmp_path / "office")
    done(*office.of("budget", "init"), "--cap", 10_000)
    command = [*office.of("mine", "kmeans"), "--epsilon", 1000, "--attributes", "age,hours"]
    form = done_json(*command, "--clusters", 2, "--out", tmp_path / "m.json")
    large, small = form["clusters"]
    assert large["rows"] == pytest.approx(600, abs=30)
    assert small["rows"] == pytest.approx(300, abs=30)
    assert large["centre"] == pytest.approx({"age": 25, "hours": 60}, abs=2)
    assert small["centre"] == pytest.approx({"age": 70, "hours": 10}, abs=2)


def test_units_that_drown_an_attribute_are_warned_of_in_one_line(office: Office) -> None:
    """On stderr, so that what programs read on stdout stays JSON."""
    result = run(*mine(office, "--scaling", "none", "--json"))
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("Warning: With scaling='none' distances hardly depend on 'age', 'hours': ")
    assert result.stderr.count("\n") == 1
    assert json.loads(result.stdout)["clusters"]


def test_options_reach_the_model(office: Office) -> None:
    options = ["--method", "grid", "--scaling", "none", "--attributes", "hours,age"]
    done(*mine(office, *options, epsilon="0.1", k="auto"))
    assert repr(dm.load(office.folder / "model.json")) == (
        "KMeans(n_clusters='auto', epsilon='0.1', attributes=['hours', 'age'], scaling='none', method='grid')"
    )
    done(*mine(office, "--algorithm", "dplloyd", "--iterations", 4, out="other.json", epsilon="0.1", k=3))
    assert repr(dm.load(office.folder / "other.json")) == "DPLloyd(n_clusters=3, epsilon='0.1', iterations=4)"


@pytest.mark.parametrize("ending", ["svg", "png", "PNG", "pdf"])
def test_a_map_is_drawn(office: Office, ending: str) -> None:
    picture = office.folder / f"map.{ending}"
    assert f"Drawn to {picture}." in done(*mine(office, "--plot", picture))
    start = {"svg": b"<svg ", "png": b"\x89PNG", "pdf": b"%PDF"}[ending.lower()]
    assert picture.read_bytes().startswith(start)
    if ending == "svg":
        assert picture.read_text(encoding="utf-8") == dm.load(office.folder / "model.json").to_svg()


def test_json_names_the_map(office: Office) -> None:
    assert done_json(*mine(office, "--plot", office.folder / "map.svg"))["plot"] == str(office.folder / "map.svg")


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--algorithm", "oracle"], "--algorithm must be one of kmeans, dplloyd"),
        (["--scaling", "log"], "scaling must be one of none, bounds"),
        (["--method", "magic"], "method must be one of auto, grid, tree"),
        (["--attributes", "age,ward"], "'ward' is not numeric"),
        (["--attributes", "age,weight"], "weight"),
        (["--attributes", ""], "''"),
        (["--attributes", "age,age"], "different attributes"),
        (["--iterations", 5], "kmeans has no iterations: leave --iterations out"),
        (["--algorithm", "dplloyd", "--method", "grid"], "dplloyd has no method: leave --method out"),
        (["--algorithm", "dplloyd", "--iterations", 0], "iterations must be a whole number from 1 to 100"),
        (["--algorithm", "dplloyd", "--iterations", "many"], "iterations must be a whole number from 1 to 100"),
        (["--engine", "oracle"], "engine must be 'memory' or 'duckdb'"),
        (["--plot", "map.gif"], "--plot must end in one of .svg, .png, .pdf"),
        (["--plot", "no/map.svg"], "There is no folder"),
        (["--plot", "map.svg", "--attributes", "age"], "A map shows two attributes"),
    ],
)
def test_what_makes_no_sense_is_refused(untouched: Office, options: list[object], words: str) -> None:
    assert words in refused(*mine(untouched, *options))


@pytest.mark.parametrize("k", ["0", "-1", "1001", "many", "1.5", "99999999999999999999", ""])
@pytest.mark.parametrize("algorithm", ["kmeans", "dplloyd"])
def test_a_number_of_clusters_that_makes_no_sense_is_refused(untouched: Office, k: str, algorithm: str) -> None:
    assert "n_clusters must be a whole number from 1 to 1000" in refused(*mine(untouched, "--algorithm", algorithm, k=k))


def test_lloyd_steps_need_a_number_of_clusters(untouched: Office) -> None:
    assert "n_clusters must be a whole number" in refused(*mine(untouched, "--algorithm", "dplloyd", k="auto"))


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "much", "1e7", "1e-9"])
def test_an_epsilon_that_makes_no_sense_is_refused(untouched: Office, epsilon: str) -> None:
    assert "epsilon" in refused(*mine(untouched, epsilon=epsilon))
    assert "epsilon" in refused("plan", "kmeans", "--schema", untouched.schema, "--epsilon", epsilon)


def test_existing_files_are_refused_before_anything_is_spent(office: Office) -> None:
    for name, options in (("model.json", []), ("map.svg", ["--plot", office.folder / "map.svg"])):
        (office.folder / name).write_text("precious")
        assert refused(*mine(office, *options)).endswith("exists already. Choose another name or remove it first.")
        assert (office.folder / name).read_text() == "precious"
        (office.folder / name).unlink()
    assert office.spent()["all"] == "0"


def test_a_picture_without_matplotlib_is_refused_before_anything_is_spent(
    untouched: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmine.cli.kmeans.find_spec", lambda name: None)
    assert "pip install 'dpmine[plots]'" in refused(*mine(untouched, "--plot", untouched.folder / "map.png"))


@pytest.mark.parametrize("options", [[], ["--method", "tree"], ["--algorithm", "dplloyd"]])
def test_a_short_budget_has_exit_code_3_and_spends_nothing(untouched: Office, options: list[object]) -> None:
    sentence = refused(*mine(untouched, *options, epsilon=2), code=3)
    assert sentence.startswith("Cannot begin: this needs epsilon ")


# -- plan --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--method", "tree"], ["--algorithm", "dplloyd", "--iterations", 5]])
def test_a_plan_needs_no_data_and_spends_nothing(tmp_path: Path, options: list[object]) -> None:
    schema = tmp_path / "people.toml"
    schema.write_text(PEOPLE, encoding="utf-8")
    command = ["plan", "kmeans", "--schema", schema, "--epsilon", "0.5", "--clusters", 3, *options]
    form = done_json(*command)
    assert form["budget"] == "0.5"
    assert sum(Epsilon.parse(step["cost"]).units for step in form["steps"]) == Epsilon.parse(form["cost"]).units
    text = done(*command)
    assert text.splitlines()[0] == f"{form['algorithm']} at epsilon 0.5"
    assert all(step["what"] in text for step in form["steps"])
    assert list(tmp_path.iterdir()) == [schema]


# -- show and predict --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clusters")
    schema = dm.Schema.from_toml(PEOPLE)
    dm.KMeans(3, epsilon=10, schema=schema).fit(people()).save(folder / "grid.json")
    dm.KMeans(3, epsilon=10, method="tree", scaling="bounds", schema=schema).fit(people()).save(folder / "tree.json")
    dm.DPLloyd(3, epsilon=10, schema=schema).fit(people()).save(folder / "lloyd.json")
    dm.KMeans(2, epsilon=10, attributes=["age"], schema=schema).fit(people()).save(folder / "one.json")
    return folder


@pytest.mark.parametrize("name", ["grid", "tree", "lloyd"])
def test_clusters_are_shown_as_text_picture_and_json(saved: Path, name: str, tmp_path: Path) -> None:
    file = saved / f"{name}.json"
    model = dm.load(file)
    text = done("show", file)
    assert text == f"{model!r}, epsilon {model.cost_}. Counts are noisy.\n{model.to_text()}\n"
    assert f"Drawn to {tmp_path / 'map.svg'}." in done("show", file, "--svg", tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text(encoding="utf-8") == model.to_svg()
    done("show", file, "--svg", tmp_path / "other.svg", "--x", "income", "--y", "age")
    assert (tmp_path / "other.svg").read_text(encoding="utf-8") == model.to_svg(x="income", y="age")
    assert done_json("show", file) == json.loads(file.read_text(encoding="utf-8"))


def test_settings_of_other_models_are_refused(saved: Path, tmp_path: Path, hospital: Hospital) -> None:
    assert refused("show", saved / "grid.json", "--max-depth", 2) == "--max-depth is not for a KMeans: leave it out."
    assert refused("show", saved / "lloyd.json", "--tree", 1) == "--tree is not for a DPLloyd: leave it out."
    dm.TreeClassifier(1, schema=hospital.schema).fit(hospital.data).save(tmp_path / "tree.json")
    assert refused("show", tmp_path / "tree.json", "--x", "age") == "--x is not for a TreeClassifier: leave it out."


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("grid", ["--x", "weight"], "The clusters have no attribute 'weight'. They have age, hours, income."),
        ("grid", ["--x", "age", "--y", "age"], "A map shows two attributes. Got 'age' twice."),
        ("one", [], "A map shows two attributes, and these clusters have one, 'age'."),
    ],
)
def test_a_map_that_cannot_be_drawn_is_refused(
    saved: Path, tmp_path: Path, name: str, options: list[object], words: str
) -> None:
    assert words in refused("show", saved / f"{name}.json", "--svg", tmp_path / "map.svg", *options)
    assert not (tmp_path / "map.svg").exists()


@pytest.mark.parametrize("name", ["grid", "tree", "lloyd", "one"])
def test_the_cluster_of_every_row_is_written(saved: Path, name: str, tmp_path: Path) -> None:
    new = people().head(40)
    new.to_csv(tmp_path / "new.csv", index=False)
    command = ["predict", saved / f"{name}.json", tmp_path / "new.csv", "--out"]
    text = done(*command, tmp_path / "predicted.csv")
    assert text == f"Predicted 40 rows; written to {tmp_path / 'predicted.csv'}.\n"
    with (tmp_path / "predicted.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    model = dm.load(saved / f"{name}.json")
    assert head == ["cluster"]
    assert [int(row[0]) for row in rows] == model.predict(new).tolist()
    form = done_json(*command, tmp_path / "again.csv")
    assert form == {"rows": 40, "out": str(tmp_path / "again.csv"), "clusters": list(range(len(model.cluster_centers_)))}


def test_a_table_without_an_attribute_is_refused(saved: Path, tmp_path: Path) -> None:
    people().drop(columns="hours").to_csv(tmp_path / "new.csv", index=False)
    sentence = refused("predict", saved / "grid.json", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert "hours" in sentence
    assert not (tmp_path / "p.csv").exists()
