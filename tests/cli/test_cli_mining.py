"""Models from the command line: mine, plan, show and predict; mistakes cost nothing and write nothing."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import RECORDS, Hospital, done, done_json, refused, run

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.datasets import patients, patients_schema

TREES = {"treeclassifier": "TreeClassifier", "diffp-c45": "DiffPC45", "diffp-id3": "DiffPID3", "sulq-id3": "SulqID3"}
FORESTS = {"greedy": "GreedyForest", "random": "RandomForest"}
MODELS = [("tree", name) for name in TREES] + [("forest", name) for name in FORESTS]


def mine(hospital: Hospital, kind: str, *options: object, out: str = "model.json", epsilon: object = "0.5") -> list[object]:
    out_file = hospital.folder / out
    return [*hospital.of("mine", kind), "--as", "alice", "--epsilon", epsilon, "--out", out_file, *options]


# -- mine --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_every_algorithm_is_mined_saved_and_charged(hospital: Hospital, kind: str, algorithm: str, engine: str) -> None:
    small = ["--trees", 3, "--max-depth", 3] if kind == "forest" else []
    form = done_json(*mine(hospital, kind, "--algorithm", algorithm, "--engine", engine, *small))
    model = dm.load(hospital.folder / "model.json")
    assert type(model).__name__ == (TREES | FORESTS)[algorithm]
    assert form["model"] == str(hospital.folder / "model.json")
    assert form["charged"] == hospital.spent()["alice"] == hospital.spent()["all"]
    assert form["cost"] == str(model.cost_) == form["plan"]["cost"]
    assert Epsilon.parse(form["charged"]) <= Epsilon.parse(form["cost"]) <= Epsilon.parse("0.5")
    assert Epsilon.parse(form["remaining"]).units == 10**9 - Epsilon.parse(form["charged"]).units
    assert form["plan"] == model.plan(hospital.schema).to_dict()
    assert form["plan"]["budget"] == "0.5"
    assert "accuracy_on_public_test" not in form
    assert len(model.predict(hospital.data)) == 400


@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_a_mined_model_is_told_in_words(hospital: Hospital, kind: str, algorithm: str) -> None:
    text = done(*mine(hospital, kind, "--algorithm", algorithm))
    model = dm.load(hospital.folder / "model.json")
    assert re.search(r"epsilon 0\.\d+ spent, 0\.\d+ remains\. Counts are noisy\.", text)
    assert f"Saved to {hospital.folder / 'model.json'}. Next: dpmine show " in text
    assert model.to_text(max_depth=4).splitlines()[0] in text


def test_options_reach_the_model(hospital: Hospital) -> None:
    done(*mine(hospital, "tree", "--max-depth", 2, "--score", "gini", "--algorithm", "diffp-c45", epsilon="0.1"))
    model = dm.load(hospital.folder / "model.json")
    assert repr(model) == "DiffPC45(epsilon='0.1', max_depth=2, criterion='gini')"
    done(*mine(hospital, "forest", "--trees", 3, "--max-depth", 1, "--score", "max", out="other.json", epsilon="0.1"))
    assert repr(dm.load(hospital.folder / "other.json")) == (
        "GreedyForest(epsilon='0.1', trees=3, max_depth=1, criterion='max')"
    )
    done(*mine(hospital, "forest", "--trees", 3, "--algorithm", "random", out="third.json", epsilon="0.1"))
    assert len(dm.load(hospital.folder / "third.json").trees_.trees) == 4


def test_the_owner_mines_without_a_name(hospital: Hospital) -> None:
    done(*hospital.of("mine", "tree"), "--epsilon", "0.5", "--out", hospital.folder / "model.json")
    assert hospital.spent() == {"alice": "0", "owner": "0.5", "all": "0.5"}


def test_a_public_test_table_tells_the_accuracy(tmp_path: Path) -> None:
    """At epsilon 1e4 the tree is the slide's: right about nine tenths of fresh patients."""
    hospital = Hospital(tmp_path)
    done(*hospital.of("budget", "init"), "--cap", 100_000)
    fresh = pd.DataFrame(patients(2000, seed=9))
    fresh.to_csv(tmp_path / "fresh.csv", index=False)
    command = [*hospital.of("mine", "tree"), "--epsilon", 10_000, "--test", tmp_path / "fresh.csv", "--out"]
    form = done_json(*command, tmp_path / "one.json")
    model = dm.load(tmp_path / "one.json")
    assert form["accuracy_on_public_test"] == model.score(fresh, fresh["diagnosis"]) > 0.8
    text = done(*command, tmp_path / "two.json")
    assert re.search(r"Accuracy on the public table .*fresh\.csv: \d\d\.\d%\.", text)


def test_mining_again_with_the_same_books_is_charged_again(hospital: Hospital) -> None:
    """Trees that differ ask other questions. Only the first ones, which are the same, are free."""
    for number in (1, 2):
        done(*mine(hospital, "forest", "--algorithm", "random", "--max-depth", 3, out=f"{number}.json", epsilon="0.4"))
    assert Epsilon.parse("0.4") < Epsilon.parse(hospital.spent()["alice"]) <= Epsilon.parse("0.8")


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def untouched(hospital: Hospital) -> Any:
    """Whatever a test tries, the books and the folder are as before."""
    before, files = hospital.spent(), sorted(path.name for path in hospital.folder.iterdir())
    yield hospital
    assert hospital.spent() == before
    assert sorted(path.name for path in hospital.folder.iterdir()) == files


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("tree", ["--algorithm", "oracle"], "--algorithm must be one of treeclassifier, diffp-c45, diffp-id3, sulq-id3"),
        ("tree", ["--algorithm", "greedy"], "--algorithm must be one of treeclassifier"),
        ("forest", ["--algorithm", "treeclassifier"], "--algorithm must be one of greedy, random"),
        ("tree", ["--score", "luck"], "criterion must be one of max, gini, infogain, mixed"),
        ("tree", ["--score", "gainratio"], "its sensitivity has no bound"),
        ("tree", ["--algorithm", "diffp-id3", "--score", "mixed"], "criterion must be one of max, gini, infogain"),
        ("tree", ["--algorithm", "sulq-id3", "--score", "gini"], "sulq-id3 has no score to choose by: leave --score out"),
        ("forest", ["--algorithm", "random", "--score", "gini"], "random has no score to choose by"),
        ("tree", ["--max-depth", 0], "max_depth must be a whole number from 1 to 20"),
        ("tree", ["--max-depth", 21], "max_depth must be a whole number from 1 to 20"),
        ("forest", ["--trees", 0], "trees must be a whole number from 1 to 999"),
        ("forest", ["--algorithm", "random", "--trees", 900, "--max-depth", 12], "too many for one query"),
        ("tree", ["--engine", "oracle"], "engine must be 'memory' or 'duckdb'"),
        ("tree", ["--test", "missing.csv"], "missing.csv"),
    ],
)
def test_what_makes_no_sense_is_refused(untouched: Hospital, kind: str, options: list[object], words: str) -> None:
    assert words in refused(*mine(untouched, kind, *options))


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "much", "1e7"])
@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_an_epsilon_that_makes_no_sense_is_refused(untouched: Hospital, kind: str, algorithm: str, epsilon: str) -> None:
    assert "epsilon" in refused(*mine(untouched, kind, "--algorithm", algorithm, epsilon=epsilon))
    command = ["plan", kind, "--schema", untouched.schema, "--algorithm", algorithm, "--epsilon", epsilon]
    assert "epsilon" in refused(*command)


@pytest.mark.parametrize(("kind", "algorithm"), MODELS[:-1])  # random trees can live on a single billionth
def test_an_epsilon_of_a_billionth_is_refused(untouched: Hospital, kind: str, algorithm: str) -> None:
    sentence = refused(*mine(untouched, kind, "--algorithm", algorithm, epsilon="1e-9"))
    assert "epsilon 0.000000001 is too small for this plan" in sentence


def test_an_existing_file_is_refused_before_anything_is_spent(hospital: Hospital) -> None:
    kept = hospital.folder / "model.json"
    kept.write_text("precious")
    for kind in ("tree", "forest"):
        assert refused(*mine(hospital, kind)).endswith("exists already. Choose another name or remove it first.")
    assert kept.read_text() == "precious"
    assert hospital.spent()["all"] == "0"


def test_a_folder_that_does_not_exist_is_refused_before_anything_is_spent(untouched: Hospital) -> None:
    assert "There is no folder" in refused(*mine(untouched, "tree", out="no/model.json"))


def test_a_test_table_without_the_class_is_refused_before_anything_is_spent(hospital: Hospital) -> None:
    pd.DataFrame(RECORDS).drop(columns="diagnosis").to_csv(hospital.folder / "fresh.csv", index=False)
    assert "diagnosis" in refused(*mine(hospital, "tree", "--test", hospital.folder / "fresh.csv"))
    assert hospital.spent()["all"] == "0"


def test_a_test_table_without_an_attribute_is_refused_before_anything_is_spent(hospital: Hospital) -> None:
    """Otherwise the budget is gone, and what is printed is an error."""
    pd.DataFrame(RECORDS)[["diagnosis", "ward"]].to_csv(hospital.folder / "fresh.csv", index=False)
    sentence = refused(*mine(hospital, "tree", "--test", hospital.folder / "fresh.csv"))
    assert "blood_pressure" in sentence
    assert hospital.spent()["all"] == "0"
    assert not (hospital.folder / "model.json").exists()


@pytest.fixture
def poor(tmp_path: Path) -> Hospital:
    """400 patients at epsilon 300 grow every tree to its end; alice has 150."""
    hospital = Hospital(tmp_path)
    done(*hospital.of("budget", "init"), "--cap", 1000)
    done(*hospital.of("budget", "grant", "alice"), "--epsilon", 150)
    return hospital


@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_a_short_budget_has_exit_code_3_and_writes_nothing(poor: Hospital, kind: str, algorithm: str) -> None:
    sentence = refused(*mine(poor, kind, "--algorithm", algorithm, epsilon=300), code=3)
    assert sentence.startswith("Cannot begin: this needs epsilon ")
    assert not (poor.folder / "model.json").exists()


@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_a_short_budget_spends_nothing(poor: Hospital, kind: str, algorithm: str) -> None:
    """Half of what is asked for is there: it must not be spent on half a tree."""
    refused(*mine(poor, kind, "--algorithm", algorithm, epsilon=300), code=3)
    assert poor.spent()["all"] == "0"


def test_an_unknown_analyst_is_refused(untouched: Hospital) -> None:
    command = [*untouched.of("mine", "tree"), "--as", "bob", "--epsilon", "0.5", "--out", untouched.folder / "m.json"]
    assert refused(*command) == "The owner has granted nothing to 'bob'."


def test_a_schema_without_a_class_is_refused(hospital: Hospital) -> None:
    hospital.schema.write_text(hospital.schema.read_text().replace('class = "diagnosis"\n', ""))
    for command in (mine(hospital, "tree"), mine(hospital, "forest")):
        assert "names no class" in refused(*command)


# -- plan --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "algorithm"), MODELS)
def test_a_plan_needs_no_data_and_spends_nothing(tmp_path: Path, kind: str, algorithm: str) -> None:
    schema = tmp_path / "patients.toml"
    schema.write_text(patients_schema().to_toml(), encoding="utf-8")
    command = ["plan", kind, "--schema", schema, "--epsilon", "0.5", "--algorithm", algorithm]
    form = done_json(*command)
    assert form["budget"] == "0.5"
    assert Epsilon.parse(form["cost"]) <= Epsilon.parse("0.5")
    assert sum(Epsilon.parse(step["cost"]).units for step in form["steps"]) == Epsilon.parse(form["cost"]).units
    text = done(*command)
    assert text.splitlines()[0] == f"{form['algorithm']} at epsilon 0.5"
    assert text.splitlines()[-1].split() == ["together", form["cost"]]
    assert all(step["what"] in text for step in form["steps"])
    assert list(tmp_path.iterdir()) == [schema]


def test_a_plan_follows_the_number_of_rows(hospital: Hospital) -> None:
    common = ["--schema", hospital.schema, "--epsilon", "0.5"]
    few, many = (done_json("plan", "tree", *common, "--rows", rows)["steps"] for rows in (100, 1_000_000))
    assert len(few) < len(many)
    assert done_json("plan", "tree", *common)["steps"] == many  # the schema's own bound
    assert done_json("plan", "forest", *common, "--rows", 400, "--trees", 4)["steps"] == few
    assert done_json("plan", "tree", *common, "--max-depth", 3, "--score", "max")["algorithm"] == "TreeClassifier (max)"


@pytest.mark.parametrize("rows", ["0", "-5", "many"])
def test_a_number_of_rows_that_makes_no_sense_is_refused(hospital: Hospital, rows: str) -> None:
    result = run("plan", "tree", "--schema", hospital.schema, "--epsilon", "0.5", "--rows", rows)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_plan_without_a_schema_is_refused(tmp_path: Path) -> None:
    assert refused("plan", "tree", "--schema", tmp_path / "missing.toml", "--epsilon", "0.5")


# -- show --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    schema = patients_schema()
    dm.DiffPC45(10_000, 2, "gini", schema=schema).fit(RECORDS).save(folder / "tree.json")
    dm.GreedyForest(10_000, 3, 2, schema=schema).fit(RECORDS).save(folder / "forest.json")
    return folder


@pytest.mark.parametrize("name", ["tree", "forest"])
def test_a_model_is_shown_as_text_picture_and_json(saved: Path, name: str, tmp_path: Path) -> None:
    model = dm.load(saved / f"{name}.json")
    text = done("show", saved / f"{name}.json")
    assert text.startswith(f"{model!r}, epsilon {model.cost_}. Counts are noisy.")
    assert model.to_text().splitlines()[-1] in text
    drawn = done("show", saved / f"{name}.json", "--svg", tmp_path / "model.svg")
    assert f"Drawn to {tmp_path / 'model.svg'}." in drawn
    assert (tmp_path / "model.svg").read_text(encoding="utf-8") == model.to_svg()
    form = done_json("show", saved / f"{name}.json", "--svg", tmp_path / "again.svg")
    assert form == json.loads((saved / f"{name}.json").read_text(encoding="utf-8"))
    assert (tmp_path / "again.svg").exists()


def test_one_tree_of_a_forest_and_a_few_levels_are_drawn(saved: Path, tmp_path: Path) -> None:
    forest, tree = dm.load(saved / "forest.json"), dm.load(saved / "tree.json")
    done("show", saved / "forest.json", "--svg", tmp_path / "second.svg", "--tree", 1)
    assert (tmp_path / "second.svg").read_text(encoding="utf-8") == forest.to_svg(tree=1)
    assert "there is no tree 3" in refused("show", saved / "forest.json", "--svg", tmp_path / "x.svg", "--tree", 3)
    assert tree.to_text(max_depth=1).splitlines()[-1] in done("show", saved / "tree.json", "--max-depth", 1)
    assert len(done("show", saved / "tree.json", "--max-depth", 0)) < len(done("show", saved / "tree.json"))


def test_what_is_no_model_is_not_shown(saved: Path, tmp_path: Path) -> None:
    assert "There is no file" in refused("show", tmp_path / "missing.json")
    (tmp_path / "other.json").write_text("{}")
    assert "not a saved model" in refused("show", tmp_path / "other.json")
    text = (saved / "tree.json").read_text(encoding="utf-8")
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    assert "not a saved model" in refused("show", tmp_path / "cut.json")
    assert "not a saved model" in refused("predict", tmp_path / "cut.json", "new.csv", "--out", tmp_path / "p.csv")


def test_a_picture_that_cannot_be_written_is_one_sentence(saved: Path, tmp_path: Path) -> None:
    assert refused("show", saved / "tree.json", "--svg", tmp_path / "no" / "model.svg")


def test_a_picture_overwrites_no_file(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.svg").write_text("precious")
    assert "exists already" in refused("show", saved / "tree.json", "--svg", tmp_path / "kept.svg")
    assert (tmp_path / "kept.svg").read_text() == "precious"


# -- predict -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["tree", "forest"])
def test_predictions_are_written_in_the_order_of_the_rows(saved: Path, name: str, ending: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(patients(50, seed=4)).drop(columns="diagnosis")
    if ending == "csv":
        frame.to_csv(tmp_path / "new.csv", index=False)
    else:
        frame.to_parquet(tmp_path / "new.parquet")
    command = ["predict", saved / f"{name}.json", tmp_path / f"new.{ending}", "--out"]
    text = done(*command, tmp_path / "predicted.csv")
    assert text == f"Predicted 50 rows; written to {tmp_path / 'predicted.csv'}.\n"
    model = dm.load(saved / f"{name}.json")
    with (tmp_path / "predicted.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["predicted", "probability Healthy", "probability Sick"]
    assert [row[0] for row in rows] == model.predict(frame).tolist()
    assert np.allclose(np.array([row[1:] for row in rows], dtype=float), model.predict_proba(frame), atol=1e-6)
    form = done_json(*command, tmp_path / "again.csv")
    assert form == {"rows": 50, "out": str(tmp_path / "again.csv"), "classes": ["Healthy", "Sick"]}
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "predicted.csv").read_text()


def test_predictions_that_cannot_be_made_are_refused(saved: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    out = tmp_path / "predicted.csv"
    assert "There is no file" in refused("predict", saved / "tree.json", new, "--out", out)
    pd.DataFrame(RECORDS)[["ward"]].to_csv(new, index=False)
    assert "has no column" in refused("predict", saved / "tree.json", new, "--out", out)
    assert not out.exists()
    pd.DataFrame(RECORDS).to_csv(new, index=False)
    out.write_text("precious")
    assert "exists already" in refused("predict", saved / "tree.json", new, "--out", out)
    assert out.read_text() == "precious"


def test_predictions_that_cannot_be_written_are_one_sentence(saved: Path, tmp_path: Path) -> None:
    pd.DataFrame(RECORDS).to_csv(tmp_path / "new.csv", index=False)
    assert refused("predict", saved / "tree.json", tmp_path / "new.csv", "--out", tmp_path / "no" / "predicted.csv")
