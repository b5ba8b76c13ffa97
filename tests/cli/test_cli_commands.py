"""Every command does what its help says, as text and as JSON."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.command_line import RECORDS, Hospital, done, done_json, refused, run
from typer.main import get_command

import dpmine as dm
from dpmine.base.json_values import from_json
from dpmine.cli.main import app
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.models.trees import Trees

WARDS = ["north", "south", "east", "west", "children", "intensive care"]

# -- demo --------------------------------------------------------------------------------------------------------------


def test_the_demo_tells_the_whole_story() -> None:
    text = done("demo", "--rows", 1000)
    for chapter in range(1, 8):
        assert f"{chapter}. " in text
    assert "1000 generated patients" in text
    assert "This query costs epsilon 0.1" in text
    assert "Cannot answer: this query needs epsilon 2" in text
    assert "differentially private (pure epsilon, delta 0)" in " ".join(text.replace("│", " ").split())
    assert all(ward in text for ward in WARDS)
    assert "Epsilon 0.1 remains." in text
    assert "The ordinary tree beside it, grown without privacy" in text
    assert "paid evaluation" in text
    assert "accuracy " in text


def test_the_demo_as_json_has_the_numbers_of_the_story() -> None:
    story = done_json("demo", "--rows", 1000)
    assert set(story["wards"]) == set(WARDS)
    assert sum(story["wards_true_because_generated"].values()) < 1000
    assert story["spent"] == "0.9"
    assert story["remaining"][-1] == ["tree", "0.1"]
    assert story["root"] in ("blood_pressure", "weight", "temperature", "cough", "age", "ward")
    assert story["refusal"].startswith("Cannot answer")
    tree = from_json(story["tree"], Trees)
    assert tree.classes == ("Healthy", "Sick")
    judged = story["evaluation"]
    assert judged["classes"] == ["Healthy", "Sick"]
    assert judged["epsilon"] == "0.1"
    for name in ("accuracy", "auc"):
        assert judged[name] is None or judged[name]["low"] <= judged[name]["value"] <= judged[name]["high"]
    assert 0 <= judged["majority"] <= 1
    assert 0 <= story["accuracy_on_fresh_patients"] <= 1
    assert 0.7 < story["accuracy_without_privacy"] <= 1


# -- schema ------------------------------------------------------------------------------------------------------------


def test_a_draft_is_printed_with_a_warning(hospital: Hospital) -> None:
    result = run("schema", "draft", hospital.data)
    assert result.exit_code == 0
    schema = Schema.from_toml(result.stdout)
    assert schema == Schema.draft(hospital.data)
    assert schema.drafted
    assert "This draft was made by looking at the data." in result.stderr


def test_a_draft_says_why_in_a_table_beside_the_file(hospital: Hospital) -> None:
    result = run("schema", "draft", hospital.data)
    assert "ages run from 0 to 120 years" in result.stderr
    assert "every row has a value of its own: an identifier" in result.stderr
    assert "# Why: whole numbers; ages run from 0 to 120 years.\n[attributes.age]\n" in result.stdout
    form = done_json("schema", "draft", hospital.data)
    notes = {note["column"]: note for note in form["columns"]}  # type: ignore[union-attr, index, call-overload]
    assert notes["age"]["domain"] == "0 to 120, in steps of 1"
    assert notes["patient_id"]["kind"] == "dropped"


def test_what_an_owner_knows_is_said_by_options(hospital: Hospital) -> None:
    options = ("--class", "ward", "--unit", "age", "--drop", "cough", "--drop", "history")
    schema = Schema.from_toml(done("schema", "draft", hospital.data, *options))
    assert schema.class_attribute == "ward"
    assert schema.unit.column == "age"
    assert {"cough", "history"} < set(schema.drop)
    assert schema == Schema.draft(hospital.data, class_attribute="ward", unit="age", drop=["cough", "history"])
    refused = run("schema", "draft", hospital.data, "--class", "nobody")
    assert refused.exit_code == 2
    assert "The table has no column 'nobody'." in refused.stderr


def test_a_draft_is_written_to_a_file_and_as_json(hospital: Hospital) -> None:
    target = hospital.folder / "drafted.toml"
    result = run("schema", "draft", hospital.data, "--out", target, "--name", "people")
    assert (result.exit_code, result.stdout) == (0, "")
    assert Schema.load(target).name == "people"
    form = json.loads(run("schema", "draft", hospital.data, "--json").stdout)
    assert form["looked_at_data"] is True
    assert Schema.from_toml(form["toml"]) == Schema.draft(hospital.data)


def test_a_check_reports_true_counts_to_the_owner(hospital: Hospital) -> None:
    assert "For the owner only" in done("schema", "check", hospital.data, hospital.schema)
    narrow = hospital.schema.read_text().replace("high = 110", "high = 50")
    hospital.schema.write_text(narrow)
    form = done_json("schema", "check", hospital.data, hospital.schema)
    assert form["attributes"]["age"]["above 50, clamped"] == sum(age > 50 for age in RECORDS["age"])  # type: ignore[operator]
    assert form["unread_columns"] == ["patient_id"]


COLOURS = """
name = "colours"
rows_at_most = 10
class = "mood"
[attributes.paint]
kind = "nominal"
categories = ["red [1]", "red:cat:", "blue\\n", "other"]
[attributes.paint.taxonomy.Any]
red = ["red [1]", "red:cat:"]
"blue\\n" = []
other = []
[attributes.ward]
kind = "nominal"
categories = ["north", "south"]
[attributes.mood]
kind = "nominal"
categories = ["good", "bad"]
"""
SHOWN = """\
Taxonomies of colours

paint
  Any (4 categories)
    red (2 categories)
      red [1]
      red:cat:
    blue\N{SPACE}
    other

No taxonomy, so every category stands right below the root:
  ward (2 categories)
"""


def test_taxonomies_are_shown_as_indented_text(tmp_path: Path) -> None:
    file = tmp_path / "colours.toml"
    file.write_text(COLOURS)
    assert done("schema", "show", file) == SHOWN
    assert done_json("schema", "show", file) == {
        "name": "colours",
        "drafted": False,
        "columns": {},
        "taxonomies": {"paint": {"Any": {"red": ["red [1]", "red:cat:"], "blue\n": [], "other": []}}, "ward": None},
    }
    file.write_text("drafted = true\n" + COLOURS)
    assert done("schema", "show", file).startswith("Taxonomies of colours (a draft: correct each by public knowledge)\n")


def test_a_draft_is_printed_letter_by_letter(tmp_path: Path) -> None:
    names = [":cat:", "[bold]x", "red [/]", "red \\[b]", "a"]
    pd.DataFrame({"paint": names}).to_csv(tmp_path / "paints.csv", index=False)
    printed = run("schema", "draft", tmp_path / "paints.csv").stdout
    assert printed == Schema.draft(tmp_path / "paints.csv").to_toml()


def test_categories_are_shown_letter_by_letter_in_answers(tmp_path: Path) -> None:
    schema, data = tmp_path / "colours.toml", tmp_path / "colours.csv"
    schema.write_text(COLOURS)
    pd.DataFrame({"paint": ["red:cat:"], "ward": ["north"], "mood": ["good"]}).to_csv(data, index=False)
    done("budget", "init", data, "--schema", schema, "--cap", 5)
    shown = done("query", "histogram", data, "--schema", schema, "--by", "paint", "--epsilon", 1)
    assert "red:cat:" in shown
    assert "red [1]" in shown


# -- budget ------------------------------------------------------------------------------------------------------------


def test_a_ledger_is_made_beside_the_data_and_named_after_the_data_set(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    text = done(*hospital.of("budget", "init"), "--cap", "2.5")
    assert hospital.ledger.exists()
    assert str(hospital.ledger) in text
    assert "back up both" in text
    assert done_json(*hospital.of("budget", "show")) == {
        "dataset": "patients",
        "cap": "2.5",
        "spent": "0",
        "analysts": {"owner": {"allotment": "2.5", "spent": "0", "remaining": "2.5"}},
    }


def test_renaming_the_data_does_not_reset_the_budget(hospital: Hospital) -> None:
    done(*hospital.query("count"), "--epsilon", "0.3")
    hospital.data = hospital.data.rename(hospital.folder / "renamed.csv")
    assert hospital.spent() == {"alice": "0.3", "owner": "0", "all": "0.3"}


def test_a_ledger_may_be_elsewhere(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    elsewhere = tmp_path / "books" / "ledger.db"
    elsewhere.parent.mkdir()
    made = done_json(*hospital.of("budget", "init"), "--cap", 4, "--ledger", elsewhere)
    assert made == {"ledger": str(elsewhere), "dataset": "patients", "cap": "4", "renewal": None}
    assert not hospital.ledger.exists()
    answer = done_json(*hospital.of("query", "count"), "--epsilon", "0.1", "--ledger", elsewhere)
    assert answer["remaining"] == "3.9"


def test_granting_sets_and_revoking_ends(hospital: Hospital) -> None:
    assert done(*hospital.of("budget", "grant", "bob"), "--epsilon", "0.5") == "bob may spend epsilon 0.5 in all.\n"
    assert done_json(*hospital.of("budget", "grant", "bob"), "--epsilon", "0.7") == {
        "analyst": "bob",
        "allotment": "0.7",
        "above_cap": False,
    }
    assert done(*hospital.of("budget", "revoke", "bob")) == "bob can ask nothing more.\n"
    assert done_json(*hospital.of("budget", "revoke", "bob")) == {"analyst": "bob", "revoked": True}
    assert "bob (revoked)" in done(*hospital.of("budget", "show"))


def test_a_statement_lists_every_charge_and_the_guarantee(hospital: Hospital) -> None:
    done(*hospital.query("count"), "--epsilon", "0.25")
    done(*hospital.of("query", "histogram"), "--by", "ward", "--epsilon", "0.5")
    everything = done(*hospital.of("budget", "statement"))
    assert "alice  charged 0.25  count at epsilon 0.25" in everything
    assert "owner  charged 0.5  histogram by ward at epsilon 0.5" in everything
    assert "All answers together are 0.75-differentially private" in everything
    only = done(*hospital.of("budget", "statement"), "--as", "alice")
    assert "owner" not in only
    assert "The answers given to this analyst are 0.25-differentially private" in only
    form = done_json(*hospital.of("budget", "statement"), "--as", "alice")
    assert form["is"] == "statement"
    assert [spending["cost"] for spending in form["spendings"]] == ["0.25"]
    assert form["guarantee"].startswith("The answers given to this analyst")


def test_a_sound_ledger_is_verified(hospital: Hospital) -> None:
    done(*hospital.query("count"), "--epsilon", "0.25")
    assert "The ledger is sound" in done(*hospital.of("budget", "verify"))
    form = done_json(*hospital.of("budget", "verify"))
    assert form["sound"] is True
    assert form["rows"] >= 5


# -- query -------------------------------------------------------------------------------------------------------------


def test_a_count_comes_with_its_interval_and_what_remains(hospital: Hospital) -> None:
    text = done(*hospital.query("count"), "--epsilon", "0.25", "--where", "age >= 40 and ward in [north, south]")
    found = re.fullmatch(r"About (-?\d+) rows; (\d+) to (\d+) \(95% confidence\).*\. Epsilon 0\.75 remains\.\n", text)
    assert found is not None
    again = done_json(*hospital.query("count"), "--epsilon", "0.25", "--where", "ward in [south, north] and age > 39")
    assert again["noisy_count"] == int(found[1])
    assert again["interval_95"] == [int(found[2]), int(found[3])]
    assert (again["epsilon"], again["cost"], again["remaining"]) == ("0.25", "0.25", "0.75")
    assert re.fullmatch("[0-9a-f]{64}", again["ledger_head"]["digest"])
    assert hospital.spent() == {"alice": "0.25", "owner": "0", "all": "0.25"}


def test_with_a_huge_epsilon_the_answers_are_exact(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    done(*hospital.of("budget", "init"), "--cap", 1_000_000)
    counted = done_json(*hospital.of("query", "count"), "--epsilon", 1000, "--where", "history contains asthma")
    assert counted["noisy_count"] == sum("asthma" in str(history).split("|") for history in RECORDS["history"])
    histogram = done_json(*hospital.of("query", "histogram"), "--by", "ward", "--by", "age:18:65", "--epsilon", 1000)
    assert histogram["by"] == ["ward", "age"]
    found = {tuple(row["labels"]): row["noisy_count"] for row in histogram["counts"]}
    frame = pd.DataFrame(RECORDS)
    expected = frame.groupby(
        ["ward", pd.cut(frame["age"], [-1, 17, 64, 200], labels=["<18", "18 to <65", ">=65"])], observed=False
    )
    assert found == {**dict.fromkeys(found, 0), **expected.size().to_dict()}
    chosen = done_json(*hospital.of("query", "choose"), "--among", "ward", "--epsilon", 1000)
    assert chosen["label"] == frame["ward"].mode()[0]


def test_a_histogram_is_shown_as_a_table_and_written_to_a_file(hospital: Hospital) -> None:
    target = hospital.folder / "wards.csv"
    command = [*hospital.query("histogram"), "--by", "ward", "--by", "age:18:65", "--epsilon", "0.5", "--out", target]
    text = done(*command)
    assert "noisy count" in text
    assert "Each count is within 6 of the truth in 95 % of the cases." in text
    assert "Epsilon 0.5 remains." in text
    with target.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["ward", "age", "noisy_count"]
    assert len(rows) == 1 + 6 * 3
    assert "exists already" in refused(*command)
    form = done_json(*command[:-2])
    assert [[*row["labels"], str(row["noisy_count"])] for row in form["counts"]] == rows[1:]
    assert form["standard_deviation"] == pytest.approx(2.8, abs=0.1)


def test_a_long_histogram_is_cut_on_the_screen_only(hospital: Hospital) -> None:
    text = done(*hospital.query("histogram"), "--by", "age", "--epsilon", "0.5")
    assert "51 more" in text
    assert len(done_json(*hospital.query("histogram"), "--by", "age", "--epsilon", "0.5")["counts"]) == 111


def test_labels_and_splits_are_chosen(hospital: Hospital) -> None:
    label = done(*hospital.query("choose"), "--among", "ward", "--epsilon", "0.1")
    assert label.split(" (chosen privately, epsilon 0.1)")[0] in WARDS
    binned = done_json(*hospital.query("choose"), "--among", "age:18:65", "--epsilon", "0.1")
    assert binned["label"] in ("<18", "18 to <65", ">=65")
    split = [*hospital.query("choose"), "--among", "age", "--among", "ward", "--among", "age:18:65", "--score", "gini"]
    chosen = done_json(*split, "--epsilon", "0.1")
    assert chosen["by"] in ("age", "ward")
    assert len(chosen["labels"]) in (2, 3, 6)
    assert chosen["remaining"] == "0.7"
    assert "chosen privately, epsilon 0.2" in done(*split, "--epsilon", "0.2")


def trips_in(folder: Path) -> tuple[list[object], pd.DataFrame]:
    """A table of two numbers, some of them missing, with its books; and what asks of it."""
    rows = pd.DataFrame({"distance": [120.5, 80.25, 400, None, 260] * 20, "delay": [3, 15, None, -4, 30] * 20})
    file, schema = folder / "trips.csv", folder / "trips.toml"
    rows.to_csv(file, index=False)
    distance = Numeric("distance", Decimal(0), Decimal(500), Decimal(100), resolution=Decimal("0.25"))
    delay = Numeric("delay", Decimal(-10), Decimal(60), Decimal(10), "drop", resolution=Decimal(1))
    schema.write_text(Schema("trips", (distance, delay), 1000).to_toml(), encoding="utf-8")
    done("budget", "init", file, "--schema", schema, "--cap", 10**6)
    return [file, "--schema", schema], rows


def test_deviations_and_covariances_are_of_the_rows_that_have_values(tmp_path: Path) -> None:
    asked, rows = trips_in(tmp_path)
    owner = ["--epsilon", "100000"]
    std = done_json("query", "std", *asked, "--column", "distance", *owner)
    assert std["value"] == pytest.approx(rows["distance"].std(ddof=0), rel=1e-3)
    assert std["low"] <= std["value"] <= std["high"]
    assert std["rows"] == 80
    assert "rows without a value do not count" in std["note"]
    variance = done_json("query", "variance", *asked, "--column", "distance", *owner)
    assert variance["value"] == pytest.approx(std["value"] ** 2)
    assert variance["ledger_head"] == std["ledger_head"]  # the same answer: it was free
    together = ["query", "covariance", *asked, "--column", "distance", "--with", "delay", *owner]
    found = done_json(*together)
    both = rows.dropna()
    assert found["value"] == pytest.approx(both["distance"].cov(both["delay"], ddof=0), rel=1e-3)
    assert found["rows"] == 60
    assert "covariance about" in done(*together)
    assert "free: it is already answered" in done(*together, "--dry-run")
    assert "product of both ranges, 35000" in done(*together, "--dry-run")
    assert "nothing" in refused("query", "covariance", *asked, "--column", "delay", "--with", "nothing", *owner)


def test_a_sum_and_a_quantile_say_how_many_rows_have_a_value(tmp_path: Path) -> None:
    asked, _ = trips_in(tmp_path)
    total = done_json("query", "sum", *asked, "--column", "delay", "--epsilon", "1000")
    assert (total["rows"], total["value"]) == (80, 20 * (3 + 15 - 4 + 30))
    median = done_json("query", "median", *asked, "--column", "delay", "--epsilon", "1000")
    assert (median["rows"], median["rounded"]) == (80, None)
    assert 3 <= median["value"] <= 15
    assert "A twentieth of epsilon" in done("query", "median", *asked, "--column", "delay", "--epsilon", "1", "--dry-run")


@pytest.mark.parametrize(
    "question",
    [
        ["count"],
        ["count", "--where", "age >= 40"],
        ["histogram", "--by", "ward", "--by", "age:18:65"],
        ["choose", "--among", "ward"],
        ["choose", "--among", "ward", "--among", "age", "--score", "infogain"],
        ["std", "--column", "age"],
        ["variance", "--column", "age"],
    ],
    ids=" ".join,
)
def test_a_dry_run_spends_nothing_and_says_what_the_charge_will_be(hospital: Hospital, question: list[str]) -> None:
    command = [*hospital.query(*question), "--epsilon", "0.2"]
    form = done_json(*command, "--dry-run")
    assert (form["cost"], form["remaining"], form["dataset_suffices"], form["cached"]) == ("0.2", "1", True, False)
    text = done(*command, "--dry-run")
    assert text.startswith("This query costs epsilon 0.2; epsilon 1 remains. ")
    assert form["expected_error"] in text
    assert hospital.spent()["all"] == "0"
    done(*command)
    assert hospital.spent()["all"] == "0.2"
    assert "free: it is already answered" in done(*command, "--dry-run")


def test_another_version_label_is_another_table(hospital: Hospital) -> None:
    command = [*hospital.query("count"), "--epsilon", "0.2"]
    done(*command)
    assert done_json(*command, "--version-label", "2")["remaining"] == "0.6"
    assert done_json(*command)["remaining"] == "0.6"


def test_parquet_files_are_asked_like_csv_files(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "patients.parquet")
    done(*hospital.of("budget", "init"), "--cap", 1_000_000)
    found = []
    for name, label in (("patients.csv", "1"), ("patients.parquet", "2")):
        hospital.data = tmp_path / name
        command = [*hospital.of("query", "histogram"), "--by", "age", "--by", "cough", "--epsilon", 1000]
        found.append(done_json(*command, "--version-label", label)["counts"])
    assert found[0] == found[1]


def test_markup_in_names_is_shown_as_it_is(hospital: Hospital) -> None:
    name = "[red]mallory[/]"
    assert name in done(*hospital.of("budget", "grant", name), "--epsilon", 1)
    assert name in done(*hospital.of("budget", "show"))
    assert name in done(*hospital.of("budget", "statement"))


# -- help --------------------------------------------------------------------------------------------------------------


def commands(group: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*path, name))
        else:
            found[(*path, name)] = command
    return found


COMMANDS = commands(get_command(app))


def example_of(path: tuple[str, ...]) -> str:
    """The example in a command's help."""
    found = re.search(r"^\s*Example: dpmine (.+)$", COMMANDS[path].help, re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_commands_are_those_of_the_design() -> None:
    assert {" ".join(path) for path in COMMANDS} >= {
        *("demo", "schema draft", "schema check", "schema show", "query count", "query histogram", "query choose"),
        *(f"budget {name}" for name in ("init", "grant", "revoke", "show", "statement", "verify")),
        *("mine tree", "mine forest", "mine kmeans", "plan tree", "plan forest", "plan kmeans", "show", "predict"),
    }


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_shows_an_example_and_offers_json(path: tuple[str, ...]) -> None:
    shown = done(*path, "--help")
    assert example_of(path).startswith(" ".join(path))
    assert "Example: dpmine " + " ".join(path) in " ".join(shown.split())
    assert "--json" in shown
    assert done(*path, "-h") == shown


EXPERIMENTS = [("reproduce",), ("frontier", "tree")]
"""Their examples take a minute each; tests/reproduce runs corners of their grids."""
RUN = [pytest.param(path, id=" ".join(path), marks=[pytest.mark.slow] * (path in EXPERIMENTS)) for path in COMMANDS]


@pytest.mark.parametrize("path", RUN)
def test_the_example_of_a_command_runs(path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hospital = Hospital(tmp_path)
    pd.DataFrame(RECORDS).to_parquet(tmp_path / "patients.parquet")
    if path == ("schema", "draft"):
        hospital.schema.unlink()
    elif path != ("budget", "init"):
        hospital.open_books()
    if path in (("show",), ("predict",)):
        dm.TreeClassifier(1, schema=hospital.schema).fit(RECORDS).save(tmp_path / "tree.json")
        pd.DataFrame(RECORDS).drop(columns="diagnosis").to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    if path == ("query", "covariance"):
        trips_in(tmp_path)
    if path == ("release", "generalise"):
        done(*shlex.split(example_of(("release", "diffgen"))))
        pd.DataFrame(RECORDS).to_csv(tmp_path / "test.csv", index=False)
    arguments = shlex.split(example_of(path).replace("50000", "200"))
    done(*arguments)


@pytest.mark.parametrize("group", [(), ("schema",), ("budget",), ("query",), ("mine",), ("plan",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_help(group: tuple[str, ...]) -> None:
    shown = run(*group)
    assert "Usage: " in shown.output
    assert "Commands" in shown.output


def test_the_version_is_told() -> None:
    assert done("--version") == f"dpmine {dm.__version__}\n"


# -- as a program ------------------------------------------------------------------------------------------------------


def program(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("dpmine")
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [script, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_installed_program_answers_and_refuses_with_exit_codes(tmp_path: Path) -> None:
    Hospital(tmp_path)
    common = ("patients.csv", "--schema", "patients.toml")
    made = program("budget", "init", *common, "--cap", 1, cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    answered = program("query", "count", *common, "--epsilon", "0.4", "--json", cwd=tmp_path)
    assert answered.returncode == 0
    assert json.loads(answered.stdout)["remaining"] == "0.6"
    mistaken = program("query", "count", *common, "--epsilon", "nan", cwd=tmp_path)
    assert (mistaken.returncode, mistaken.stdout) == (2, "")
    assert mistaken.stderr == "Error: epsilon must be a finite number. Got nan instead.\n"
    short = program("query", "histogram", *common, "--by", "ward", "--epsilon", "0.7", cwd=tmp_path)
    assert (short.returncode, short.stdout) == (3, "")
    assert short.stderr.startswith("Error: Cannot answer: this query needs epsilon 0.7 and 0.6 remains.")


def test_the_demo_runs_as_a_program(tmp_path: Path) -> None:
    told = program("demo", "--rows", 500, cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert "Done in" in told.stdout
    assert list(tmp_path.iterdir()) == []
