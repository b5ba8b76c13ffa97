"""Releases from the command line: table, sheet and pages; mistakes cost nothing, and nothing public follows from rows."""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import Hospital, done, done_json, refused, run

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.cli import release as release_command

WITH_ALL = ["--report", "public.html", "--check-epsilon", "0.2", "--owner-report", "owner.html"]


def release(
    hospital: Hospital, *options: object, out: str = "public.csv", epsilon: object = "0.5", by: str = "diffgen"
) -> list[object]:
    """The command, as alice; names of files are in the hospital's folder."""
    named = [hospital.folder / option if str(option).endswith((".html", ".json")) else option for option in options]
    written = hospital.folder / out
    return [*hospital.of("release", by), "--as", "alice", "--epsilon", epsilon, "--out", written, *named]


def sheet_of(hospital: Hospital, name: str = "public.csv") -> Any:
    return json.loads((hospital.folder / f"{name}.json").read_text(encoding="utf-8"))


def again(hospital: Hospital, **parameters: Any) -> dm.DiffGen:
    """The same release once more, from the ledger: it is free."""
    with dm.open(hospital.data, schema=hospital.schema, ledger=hospital.ledger) as data:
        model = dm.DiffGen(epsilon="0.5", **parameters).fit(data.private("alice"))
    assert model.charged_.units == 0
    return model


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("name", ["public.csv", "public.parquet", "PUBLIC.CSV"])
def test_the_table_that_is_written_is_the_release(hospital: Hospital, name: str, engine: str) -> None:
    form = done_json(*release(hospital, "--specialisations", 4, "--engine", engine, out=name))
    path = hospital.folder / name
    frame = pd.read_parquet(path) if name.endswith(".parquet") else pd.read_csv(path, dtype=str)
    with dm.open(hospital.data, schema=hospital.schema, ledger=hospital.ledger, engine=engine) as data:
        model = dm.DiffGen(epsilon="0.5", specialisations=4).fit(data.private("alice"))
    assert model.charged_.units == 0
    assert {column: list(frame[column]) for column in frame} == model.rows()
    counted = Counter(frame.drop(columns="diagnosis").itertuples(index=False, name=None))
    order = list(model.release().values)
    wanted = {
        tuple(np.array(group, dtype=object)[[order.index(c) for c in frame if c != "diagnosis"]]): sum(counts.values())
        for group, counts in model.release().to_dict().items()
    }
    assert counted == wanted
    assert form["sheet"]["records"] == len(frame)
    assert form["sheet"]["groups"] == len(wanted)


@pytest.mark.parametrize("name", ["public.csv", "public.parquet"])
def test_raw_rows_lie_in_the_raw_domains(hospital: Hospital, name: str) -> None:
    done(*release(hospital, "--raw", "--seed", 7, "--specialisations", 3, out=name))
    path = hospital.folder / name
    frame = pd.read_parquet(path) if name.endswith(".parquet") else pd.read_csv(path, dtype={"cough": str})
    rows = again(hospital, specialisations=3).rows(raw=True, seed=7)
    assert {column: frame[column].tolist() for column in frame} == rows
    assert frame["age"].dtype == np.int64
    assert frame["age"].between(0, 110).all()
    sheet = json.loads((hospital.folder / f"{name}.json").read_text(encoding="utf-8"))
    assert sheet["table"] == {"file": name, "seed": 7}
    assert sheet["rows"] == "drawn back into the raw domains"
    assert any("Rows are synthetic" in sentence for sentence in sheet["meaning"])


def test_the_sheet_says_what_was_done(hospital: Hospital) -> None:
    form = done_json(*release(hospital, "--specialisations", 4, "--score", "infogain", "--sheet", "sheet.json"))
    sheet = json.loads((hospital.folder / "sheet.json").read_text(encoding="utf-8"))
    assert sheet == form["sheet"]
    assert not (hospital.folder / "public.csv.json").exists()
    model = again(hospital, specialisations=4, score="infogain")
    own = model.sheet()
    assert own["privacy"].pop("epsilon_charged") == "0"
    assert sheet["privacy"].pop("epsilon_charged") == hospital.spent()["alice"]
    assert own == {name: item for name, item in sheet.items() if name != "table"}
    assert (sheet["format"], sheet["version"], sheet["dpmine"]) == ("dpmine-release", 2, dm.__version__)
    assert sheet["schema_fingerprint"] == model.schema_.fingerprint
    assert sheet["parameters"]["score"] == "infogain"
    assert sheet["privacy"]["epsilon_disclosed"] == "0.5"
    assert sheet["privacy"]["plan"] == model.plan(hospital.schema).to_dict()
    for name, values in model.release().values.items():
        assert [value["name"] for value in sheet["attributes"][name]["values"]] == [value.name for value in values]
    ages = sheet["attributes"]["age"]["values"]
    assert (ages[0]["from"], ages[-1]["to"]) == (0, 110)
    assert all(one["to"] + 1 == after["from"] for one, after in itertools.pairwise(ages))
    wards = [category for value in sheet["attributes"]["ward"]["values"] for category in value["categories"]]
    assert wards == ["north", "south", "east", "west", "children", "intensive care"]
    counts = sheet["counts"]
    assert counts["noise_scale"] == pytest.approx(4, abs=0.01)
    assert counts["threshold"] == 1
    assert counts["possible"] == 2 * np.prod([len(values) for values in model.release().values.values()])
    rate = np.exp(-0.25)
    assert counts["empty_but_shown_at_most_about"] == pytest.approx(counts["possible"] * rate / (1 + rate), rel=0.01)


def test_parameters_reach_the_algorithm(hospital: Hospital) -> None:
    sets = ["points=joint", "leftover=true", "threshold=auto", "total_share=0.05", "calibration=monotone"]
    options = [part for text in sets for part in ("--set", text)]
    form = done_json(*release(hospital, "--specialisations", 2, *options))
    assert form["sheet"]["parameters"] == {
        "epsilon": "0.5",
        "specialisations": 2,
        "score": "max",
        "calibration": "monotone",
        "points": "joint",
        "leftover": True,
        "threshold": "auto",
        "total_share": 0.05,
        "frequency_share": 0.0,
    }


def test_everything_at_once_is_told_and_written(hospital: Hospital) -> None:
    result = run(*release(hospital, *WITH_ALL))
    assert result.exit_code == 0, result.output
    text = result.stdout
    for words in ("records in", "Counts are noisy", "Checked: a tree of depth 6", " remains.", "Written: "):
        assert words in text
    for name in ("public.csv", "public.csv.json", "public.html", "owner.html"):
        assert str(hospital.folder / name) in text
        assert (hospital.folder / name).exists()
    assert "owner.html holds true numbers and lies in the folder of the public table" in result.stderr
    assert stat.S_IMODE((hospital.folder / "owner.html").stat().st_mode) == 0o600
    assert [path.name for path in hospital.folder.iterdir() if "partial" in path.name] == []
    page = (hospital.folder / "public.html").read_text(encoding="utf-8")
    sheet = json.loads((hospital.folder / "public.csv.json").read_text(encoding="utf-8"))
    assert f"{sheet['records']:,}" in page
    assert "checked against the rows at epsilon 0.2" in page
    assert sheet["check"]["epsilon"] == "0.2"
    assert set(sheet["check"]["bars"]) == {*sheet["attributes"], "diagnosis"}
    assert sheet["check"]["bars"]["diagnosis"]["labels"] == ["Healthy", "Sick"]


def test_an_owner_s_page_elsewhere_needs_no_warning(hospital: Hospital) -> None:
    (hospital.folder / "mine").mkdir()
    result = run(*release(hospital, "--owner-report", "mine/owner.html"))
    assert (result.exit_code, result.stderr) == (0, "")


def test_much_noise_is_told_with_what_helps(hospital: Hospital) -> None:
    """How many groups there are is chosen privately, so the sheet says whether the warning is due."""
    for number in (1, 40):
        text = done(*release(hospital, "--specialisations", number, "--force", epsilon="0.2"))
        sheet = json.loads((hospital.folder / "public.csv.json").read_text(encoding="utf-8"))
        due = sheet["counts"]["records_in_those_at_most_about"] > sheet["records"] / 2
        text = " ".join(text.split())  # as wide as the terminal is
        advice = (
            "a higher threshold (--set threshold=auto), counts made to add up (--set total_share=0.02) or `release tree`"
        )
        assert ("may be noise alone" in text) == (advice in text) == due


def test_other_rows_are_generalised_by_the_sheet_alone(hospital: Hospital) -> None:
    done(*release(hospital))
    sheet, written = hospital.folder / "public.csv.json", hospital.folder / "test.csv"
    spent = hospital.spent()
    command = ["release", "generalise", sheet, hospital.data, "--out", written]
    assert "Generalised 400 rows" in done(*command)
    assert hospital.spent() == spent
    frame = pd.read_csv(written, dtype=str)
    allowed = {name: {value["name"] for value in form["values"]} for name, form in sheet_of(hospital)["attributes"].items()}
    assert all(set(frame[name]) <= values for name, values in allowed.items())
    assert frame["diagnosis"].tolist() == pd.read_csv(hospital.data)["diagnosis"].tolist()
    assert "exists already" in refused(*command)
    assert done_json(*command, "--force") == {"rows": 400, "out": str(written)}
    assert "would overwrite what is read" in refused("release", "generalise", sheet, hospital.data, "--out", hospital.data)
    assert "must end in" in refused("release", "generalise", sheet, hospital.data, "--out", hospital.folder / "test.txt")


def test_a_parameter_is_given_once(hospital: Hospital) -> None:
    sentence = refused(*release(hospital, "--specialisations", 4, "--set", "specialisations=5"))
    assert sentence == "'specialisations' is given twice: by --specialisations and by --set."


def test_a_drafted_schema_is_told_in_sheet_page_and_terminal(tmp_path: Path) -> None:
    """The page's banner comes before its heading; of a schema that was reviewed nothing of this is said."""
    for drafted in (True, False):
        folder = tmp_path / str(drafted)
        folder.mkdir()
        hospital = Hospital(folder)
        text = hospital.schema.read_text(encoding="utf-8")
        assert "drafted" not in text
        if drafted:
            hospital.schema.write_text("drafted = true\n" + text, encoding="utf-8")
        hospital.open_books()
        for planned in (True, False):  # before anything is spent
            told = run(*release(hospital, *(["--plan"] if planned else []), "--report", "public.html"))
            assert told.exit_code == 0, told.output
            assert ("The schema was drafted from the rows" in " ".join(told.stderr.split())) == drafted
        sheet = sheet_of(hospital)
        assert sheet["schema_drafted"] is drafted
        assert any(sentence.startswith("BUT the schema was drafted") for sentence in sheet["meaning"]) == drafted
        page = (hospital.folder / "public.html").read_text(encoding="utf-8")
        banner = '<p class="banner" role="alert">The schema was drafted from the rows, outside the budget'
        assert (banner in page) == drafted
        assert not drafted or page.index(banner) < page.index("<h1>")


def test_an_interval_is_about_all_counts_shown_or_not(hospital: Hospital) -> None:
    """Counts that are shown were picked for being large, so 95 % of those would be too much to promise."""
    told = " ".join(done(*release(hospital, "--report", "public.html")).split())
    sheet, page = sheet_of(hospital), (hospital.folder / "public.html").read_text(encoding="utf-8")
    words = " ".join(sheet["meaning"])
    within = f"{sheet['counts']['off_by_at_most_in_95_percent']:,}"
    assert f"f all counts, shown or not, 95 % are within {within} of the true one." in words
    assert "95 % does not hold among them" in words
    assert f"Of all counts of a group's records, shown or not, 95 % are within {within} of the truth." in told
    assert "noise of 95 % of all counts, shown or not, at most" in page
    for text in (words, told, page):
        assert "of the cases" not in text


def test_the_sheet_with_a_check_states_the_epsilon_of_both(hospital: Hospital) -> None:
    form = done_json(*release(hospital, *WITH_ALL))
    privacy = sheet_of(hospital)["privacy"]
    assert privacy["epsilon_disclosed"] == "0.5"
    assert privacy["epsilon_of_the_check"] == "0.2"
    assert privacy["epsilon_disclosed_in_all"] == form["cost"] == "0.7"
    done(*release(hospital, "--force"))
    assert not {"epsilon_of_the_check", "epsilon_disclosed_in_all"} & set(sheet_of(hospital)["privacy"])


def test_a_huge_epsilon_goes_from_end_to_end(tmp_path: Path) -> None:
    """At epsilon 800, where exp(epsilon) is no double: the table is the true one, and all files are written."""
    hospital = Hospital(tmp_path)
    done(*hospital.of("budget", "init"), "--cap", 2000)
    done(*hospital.of("budget", "grant", "alice"), "--epsilon", 2000)
    options = ["--set", "bins=4", "--report", "public.html", "--check-epsilon", "750", "--owner-report", "owner.html"]
    told = done(*release(hospital, *options, epsilon=800, by="contingency"))
    assert "may be noise alone" not in told
    sheet, frame = sheet_of(hospital), pd.read_csv(hospital.folder / "public.csv", dtype=str)
    assert sheet["records"] == len(frame) == 400
    assert sheet["counts"]["off_by_at_most_in_95_percent"] == 0
    assert sheet["counts"]["records_in_those_at_most_about"] == 0
    true = pd.read_csv(hospital.data, dtype=str)
    for name in ("ward", "diagnosis", "cough"):
        assert sorted(frame[name]) == sorted(true[name])
    assert hospital.spent()["alice"] == "1550"


def test_specialising_that_ends_early_for_the_limit_on_groups_is_told(
    hospital: Hospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmine.release.counting.MOST_GROUPS", 4)
    done(*release(hospital, "--specialisations", 5, "--report", "public.html"))
    (sentence,) = [sentence for sentence in sheet_of(hospital)["meaning"] if "instead of" in sentence]
    assert re.match(r"Values were specialised [01] times instead of 5: nothing was left to specialise, or every", sentence)
    assert sentence in (hospital.folder / "public.html").read_text(encoding="utf-8")


# -- the tree ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [None, "--raw", "--generalised"])
def test_a_tree_writes_raw_rows_unless_told_otherwise(hospital: Hospital, option: str | None) -> None:
    given = [] if option is None else [option]
    done(*release(hospital, "--seed", 7, *given, by="tree"))
    frame, sheet = pd.read_csv(hospital.folder / "public.csv", dtype=str), sheet_of(hospital)
    with dm.open(hospital.data, schema=hospital.schema, ledger=hospital.ledger) as data:
        model = dm.TreeRelease(epsilon="0.5").fit(data.private("alice"))
    assert model.charged_.units == 0
    raw = option != "--generalised"
    rows = model.rows(raw=raw, seed=7)
    assert {column: frame[column].tolist() for column in frame} == {c: list(map(str, rows[c])) for c in rows}
    assert sheet["rows"] == ("drawn back into the raw domains" if raw else "generalised")
    assert sheet["table"] == ({"file": "public.csv", "seed": 7} if raw else {"file": "public.csv"})
    assert sheet["algorithm"] == "TreeRelease"
    assert sheet["records"] == len(frame) == len(model.release())


def test_others_write_generalised_rows_unless_told_otherwise(hospital: Hospital) -> None:
    for by, options in (("diffgen", ()), ("contingency", ("--set", "bins=2"))):
        done(*release(hospital, *options, "--force", by=by))
        assert sheet_of(hospital)["rows"] == "generalised"
        done(*release(hospital, *options, "--raw", "--force", by=by))
        assert sheet_of(hospital)["rows"] == "drawn back into the raw domains"


def test_a_tree_is_released_with_all_its_pages_and_charged_once(hospital: Hospital) -> None:
    sets = ["--set", "max_depth=2", "--set", "frequency_share=0.2"]
    form = done_json(*release(hospital, *WITH_ALL, *sets, by="tree"))
    assert form["charged"] == form["cost"] == "0.7" == hospital.spent()["alice"]
    assert form["sheet"]["parameters"] == {"epsilon": "0.5", "frequency_share": 0.2, "leaf_share": 0.12, "max_depth": 2}
    assert done_json(*release(hospital, *WITH_ALL, *sets, "--force", by="tree"))["charged"] == "0"
    for name in ("public.html", "owner.html"):
        assert "TreeRelease" in (hospital.folder / name).read_text(encoding="utf-8")
    assert "tree has no parameter 'threshold'" in refused(*release(hospital, "--set", "threshold=3", "--force", by="tree"))
    assert "tree has no parameter 'score'" in refused(*release(hospital, "--score", "max", "--force", by="tree"))


# -- what is charged ---------------------------------------------------------------------------------------------------


def test_a_release_is_charged_once_and_the_same_again_is_free(hospital: Hospital) -> None:
    first = done_json(*release(hospital, *WITH_ALL))
    spent = hospital.spent()["alice"]
    assert first["charged"] == spent
    assert Epsilon.parse(spent) <= Epsilon.parse(first["cost"]) == Epsilon.parse("0.7")
    assert Epsilon.parse(first["remaining"]).units == 10**9 - Epsilon.parse(spent).units
    before = {name: (hospital.folder / name).read_bytes() for name in ("public.csv", "public.html", "owner.html")}
    second = done_json(*release(hospital, *WITH_ALL, "--force"))
    assert second["charged"] == "0"
    assert hospital.spent()["alice"] == spent
    assert {name: (hospital.folder / name).read_bytes() for name in before} == before
    assert "Nothing was charged" in done(*release(hospital, *WITH_ALL, "--force"))


def test_a_check_may_be_bought_later_with_what_is_left(hospital: Hospital) -> None:
    """The release is free the second time, so only the check's own price must be there."""
    done(*hospital.of("budget", "grant", "alice"), "--epsilon", "0.6")
    done(*release(hospital, "--specialisations", 2, epsilon="0.5"))
    spent = Epsilon.parse(hospital.spent()["alice"]).units
    options = ["--specialisations", 2, "--force", "--report", "public.html", "--check-epsilon", "0.1"]
    form = done_json(*release(hospital, *options, epsilon="0.5"))
    assert form["charged"] == "0.1"
    assert Epsilon.parse(hospital.spent()["alice"]).units == spent + 10**8


def test_a_plan_spends_and_writes_nothing(hospital: Hospital) -> None:
    files = sorted(path.name for path in hospital.folder.iterdir())
    for option in ("--plan", "--dry-run"):
        text = done(*release(hospital, *WITH_ALL[:4], option))
        assert "DiffGen (max) at epsilon 0.5" in text
        assert "check: count predictions by class" in text
        assert "In all at most epsilon 0.7; 1 remains. Nothing was spent." in text
        form = done_json(*release(hospital, *WITH_ALL[:4], option))
        assert (form["cost"], form["remaining"], len(form["plans"])) == ("0.7", "1", 2)
    assert hospital.spent()["all"] == "0"
    assert sorted(path.name for path in hospital.folder.iterdir()) == files


def test_what_was_paid_and_cannot_be_written_is_free_to_ask_again(
    hospital: Hospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dpmine.cli.release_files.os.replace", full)
        sentence = refused(*release(hospital))
    assert sentence.startswith("The release was paid but")
    assert "No space left on device" in sentence
    assert "the same release is free" in sentence
    spent = hospital.spent()["alice"]
    assert spent != "0"
    assert [path.name for path in hospital.folder.iterdir() if "public" in path.name] == []
    assert done_json(*release(hospital))["charged"] == "0"
    assert hospital.spent()["alice"] == spent


def test_persons_with_several_rows_are_charged_for_each(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    text = hospital.schema.read_text(encoding="utf-8").replace('drop = ["patient_id"]\n', "")
    unit = 'class = "diagnosis"\nunit = { column = "patient_id", at_most = 2 }'
    hospital.schema.write_text(re.sub(r'unit = "row"\n', "", text).replace('class = "diagnosis"', unit), encoding="utf-8")
    hospital.open_books()
    form = done_json(*release(hospital, *WITH_ALL))
    assert Epsilon.parse(hospital.spent()["alice"]) <= Epsilon.parse("0.7")
    assert form["sheet"]["check"]["epsilon"] == "0.2"
    assert "one person" in form["sheet"]["privacy"]["neighbours"]


# -- nothing public follows from rows but through the ledger -----------------------------------------------------------


PUBLIC = ("public.csv", "public.csv.json", "public.html")
DISTINCTIVE = re.compile(r"\b7,?777\b")


def public_texts(hospital: Hospital) -> dict[str, str]:
    """The public files, without what the ledger says about this run."""
    texts = {name: (hospital.folder / name).read_text(encoding="utf-8") for name in PUBLIC}
    return texts | {"public.csv.json": re.sub('"epsilon_charged": ".*"', "", texts["public.csv.json"])}


def changed_by_other_rows(hospital: Hospital) -> set[str]:
    """Put 7,777 rows of one kind behind the ledger's answers, and say which public files change."""
    command = release(hospital, *WITH_ALL, "--raw", "--seed", 3, "--force")
    done(*command)
    before = public_texts(hospital)
    header = hospital.data.read_text(encoding="utf-8").splitlines()[0]
    assert header == "patient_id,blood_pressure,weight,temperature,cough,age,ward,history,diagnosis"
    row = "P0,High,Overweight,High,True,77,west,flu,Sick"
    hospital.data.write_text("\n".join([header, *[row] * 7_777]) + "\n", encoding="utf-8")
    assert done_json(*command)["charged"] == "0"
    after = public_texts(hospital)
    return {name for name in PUBLIC if before[name] != after[name]}


def test_no_public_file_holds_a_number_that_was_not_bought(hospital: Hospital) -> None:
    """Under other rows all that is public stays the same to the last byte; only the owner's page tells of them."""
    assert changed_by_other_rows(hospital) == set()
    assert not any(DISTINCTIVE.search(text) for text in public_texts(hospital).values())
    assert DISTINCTIVE.search((hospital.folder / "owner.html").read_text(encoding="utf-8"))


def test_a_planted_true_number_is_found(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_rows(order: Any, check: Any) -> dict[str, Any]:
        return {**honest(order, check), "rows": len(hospital.data.read_text(encoding="utf-8").splitlines()) - 1}

    honest = release_command._sheet
    monkeypatch.setattr(release_command, "_sheet", with_rows)
    assert changed_by_other_rows(hospital) == {"public.csv.json", "public.html"}
    assert DISTINCTIVE.search(public_texts(hospital)["public.html"])


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def untouched(hospital: Hospital) -> Any:
    """Whatever a test tries, the books and the folder are as before."""
    before = hospital.spent()
    files = {path.name: path.read_bytes() for path in hospital.folder.iterdir() if path.is_file()}
    yield hospital
    assert hospital.spent() == before
    after = {path.name: path.read_bytes() for path in hospital.folder.iterdir() if path.is_file()}
    ledger = hospital.ledger.name
    assert {name: text for name, text in after.items() if not name.startswith(ledger)} == {
        name: text for name, text in files.items() if not name.startswith(ledger)
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--specialisations", 0], "specialisations must be a whole number from 1 to 1000"),
        (["--specialisations", "many"], "specialisations must be a whole number"),
        (["--score", "luck"], "score must be one of max"),
        (["--set", "threshold"], "--set needs NAME=VALUE"),
        (["--set", "=3"], "--set needs NAME=VALUE"),
        (["--set", "colour=red"], "diffgen has no parameter 'colour'. It has specialisations, score"),
        (["--set", "epsilon=9"], "diffgen has no parameter 'epsilon'"),
        (["--set", "leftover=yes"], "leftover must be true or false"),
        (["--set", "total_share=true"], "total_share must be no truth value"),
        (["--set", "total_share=2"], "total_share must be a number from 0 to 0.9"),
        (["--check-epsilon", "0.1"], "name that page with --report"),
        (["--report", "p.html", "--check-epsilon", "0"], "check-epsilon"),
        (["--report", "p.html", "--check-epsilon", "much"], "check-epsilon"),
        (["--report", "p.html", "--check-epsilon", "1e-9"], "too small for this plan"),
        (["--engine", "oracle"], "engine must be 'memory' or 'duckdb'"),
        (["--report", "no/p.html"], "There is no folder"),
        (["--owner-report", "no/p.html"], "There is no folder"),
        (["--sheet", "no/s.json"], "There is no folder"),
        (["--report", "x.html", "--owner-report", "x.html"], "--owner-report would overwrite the file of --report"),
        (["--sheet", "public.csv.json", "--report", "public.csv.json"], "--report would overwrite the file of --sheet"),
    ],
)
def test_what_makes_no_sense_is_refused(untouched: Hospital, options: list[object], words: str) -> None:
    assert words in refused(*release(untouched, *options))


@pytest.mark.parametrize("by", ["diffgen", "tree", "contingency"])
def test_a_negative_seed_is_refused(untouched: Hospital, by: str) -> None:
    result = run(*release(untouched, "--seed", "-1", by=by))
    assert result.exit_code == 2
    assert "--seed" in result.stderr


@pytest.mark.parametrize("name", ["public.xlsx", "public", "public.csv.gz", "public.json"])
def test_a_table_of_another_kind_is_refused(untouched: Hospital, name: str) -> None:
    assert "--out must end in .csv or .parquet. Got " in refused(*release(untouched, out=name))


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "much", "1e7", "1e-9"])
def test_an_epsilon_that_makes_no_sense_is_refused(untouched: Hospital, epsilon: str) -> None:
    assert "epsilon" in refused(*release(untouched, epsilon=epsilon))


@pytest.mark.parametrize("name", ["public.csv", "public.csv.json", "public.html", "owner.html"])
def test_a_file_that_exists_is_only_overwritten_when_asked(hospital: Hospital, name: str) -> None:
    kept = hospital.folder / name
    kept.write_text("precious", encoding="utf-8")
    assert "exists already. Choose another name, or overwrite it with --force." in refused(*release(hospital, *WITH_ALL))
    assert kept.read_text(encoding="utf-8") == "precious"
    assert hospital.spent()["all"] == "0"
    done(*release(hospital, *WITH_ALL, "--force"))
    assert kept.read_text(encoding="utf-8") != "precious"


def test_what_is_read_is_never_overwritten(untouched: Hospital) -> None:
    ledger = untouched.ledger.name
    assert "--out would overwrite what is read here" in refused(*release(untouched, "--force", out="patients.csv"))
    assert "--out would overwrite what is read here" in refused(
        *release(untouched, "--force", out="../" + untouched.folder.name + "/patients.csv")
    )
    for name in ("patients.toml", ledger, f"{ledger}.anchor", f"{ledger}-wal"):
        options = ["--force", "--sheet", untouched.folder / name]
        assert "--sheet would overwrite what is read here" in refused(*release(untouched, *options))


def test_a_folder_is_no_file(untouched: Hospital) -> None:
    (untouched.folder / "folder.csv").mkdir()
    assert "is a folder" in refused(*release(untouched, "--force", out="folder.csv"))


@pytest.mark.skipif(os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root writes anywhere")
def test_a_folder_that_may_not_be_written_is_refused(untouched: Hospital) -> None:
    locked = untouched.folder / "locked"
    locked.mkdir(mode=0o500)
    assert "Cannot write to the folder" in refused(*release(untouched, out="locked/public.csv"))


def test_a_failing_probe_of_a_folder_is_a_refusal(untouched: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(**unused: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("dpmine.cli.release_files.tempfile.TemporaryFile", read_only)
    assert "Read-only file system" in refused(*release(untouched))


def test_columns_that_parquet_would_mix_up_are_refused(tmp_path: Path) -> None:
    hospital = Hospital(tmp_path)
    text = hospital.schema.read_text(encoding="utf-8")
    hospital.schema.write_text(text.replace("[attributes.weight]", "[attributes.Ward]"), encoding="utf-8")
    frame = pd.read_csv(hospital.data).rename(columns={"weight": "Ward"})
    frame.to_csv(hospital.data, index=False)
    hospital.open_books()
    assert "Use .csv instead" in refused(*release(hospital, out="public.parquet"))
    done(*release(hospital))
    assert {"ward", "Ward"} <= set(pd.read_csv(hospital.folder / "public.csv", nrows=1).columns)


@pytest.mark.parametrize(("amount", "needed"), [("0.3", "0.5"), ("0.6", "0.7")])
def test_a_budget_that_is_short_for_all_of_it_spends_nothing(hospital: Hospital, amount: str, needed: str) -> None:
    """0.3 is too little for the release, 0.6 for release and check together."""
    done(*hospital.of("budget", "grant", "alice"), "--epsilon", amount)
    sentence = refused(*release(hospital, *WITH_ALL), code=3)
    assert sentence.startswith(f"Cannot begin: this needs epsilon {needed} in all and {amount} remains")
    assert hospital.spent()["all"] == "0"
    assert not (hospital.folder / "public.csv").exists()


def test_an_unknown_analyst_or_a_schema_without_a_class_is_refused(untouched: Hospital) -> None:
    command = [*untouched.of("release", "diffgen"), "--epsilon", "0.5", "--out", untouched.folder / "public.csv"]
    assert refused(*command, "--as", "bob") == "The owner has granted nothing to 'bob'."
    other = untouched.folder / "other"
    other.mkdir()
    schema = other / "patients.toml"
    schema.write_text(untouched.schema.read_text(encoding="utf-8").replace('class = "diagnosis"\n', ""), encoding="utf-8")
    command[command.index("--schema") + 1] = schema
    assert "names no class" in refused(*command)
