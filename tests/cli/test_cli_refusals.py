"""A mistake on the command line gets one clear sentence and exit code 2, a short budget exit code 3; nothing is spent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.command_line import Hospital, done, refused, run

QUESTIONS = {"count": [], "histogram": ["--by", "ward"], "choose": ["--among", "ward"]}


@pytest.fixture(autouse=True)
def _nothing_is_spent(hospital: Hospital) -> object:
    """Whatever a test tries, the books are as before."""
    before = hospital.spent()
    yield
    assert hospital.spent() == before


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        ("0", "must be positive"),
        ("-1", "must be positive"),
        ("-0.0", "must be positive"),
        ("1e-10", "at least 1e-9"),
        ("nan", "finite"),
        ("inf", "finite"),
        ("-inf", "finite"),
        ("much", "such as 0.1. Got 'much' instead"),
        ("", "such as 0.1"),
        ("0,1", "such as 0.1"),
        ("1e7", "at most 1000000"),
    ],
)
def test_an_epsilon_that_makes_no_sense_is_refused(hospital: Hospital, epsilon: str, words: str) -> None:
    assert words in refused(*hospital.query("count"), "--epsilon", epsilon)
    assert words in refused(*hospital.query("histogram"), "--by", "ward", "--epsilon", epsilon, "--dry-run")
    assert words in refused(*hospital.query("choose"), "--among", "ward", "--epsilon", epsilon, "--json")


@pytest.mark.parametrize("question", QUESTIONS)
def test_more_than_remains_is_refused_with_exit_code_3(hospital: Hospital, question: str) -> None:
    sentence = refused(*hospital.query(question), *QUESTIONS[question], "--epsilon", "1.5", code=3)
    assert sentence == (
        "Cannot answer: this query needs epsilon 1.5 and 1 remains. Ask with at most 1, or ask the data owner for more."
    )


def test_more_than_the_cap_is_refused_with_exit_code_3(hospital: Hospital) -> None:
    done(*hospital.of("budget", "grant", "alice"), "--epsilon", 100)
    assert "of the data set's cap" in refused(*hospital.query("count"), "--epsilon", 5, code=3)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("age >=", "needs a value"),
        ("age >= 40 &&", "cannot be read"),
        ("", "needs a column name"),
        ("income > 3", "'income' is not in the schema. It knows: "),
        ("patient_id == P0000001", "is dropped by the schema"),
        ("ward == nowhere", "'ward' has no category 'nowhere'. The schema knows: north, south"),
        ("ward in [north, nowhere]", "no category 'nowhere'"),
        ("history contains gout", "no item 'gout'. The schema knows: flu"),
        ("history == flu", "only 'contains'"),
        ("ward > north", "only == and != compare it"),
        ("age > old", "must be a number"),
        ("[red]age[/]", "cannot be read at '/]'"),
        ("(" * 200 + "true" + ")" * 200, "nested deeper"),
        ("age > 1 or " * 20_000, "longer than"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(hospital: Hospital, where: str, words: str) -> None:
    assert words in refused(*hospital.query("count"), "--epsilon", "0.1", "--where", where)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_refuses_a_category_that_the_schema_does_not_know(hospital: Hospital, question: str) -> None:
    command = [*hospital.query(question), *QUESTIONS[question], "--epsilon", "0.1", "--where", "ward == nowhere"]
    assert "'ward' has no category 'nowhere'" in refused(*command)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["histogram", "--by", "income"], "not in the schema"),
        (["histogram", "--by", ""], "column name was expected"),
        (["histogram", "--by", ":18"], "column name was expected"),
        (["histogram", "--by", "history"], "only 'contains'"),
        (["histogram", "--by", "ward:3"], "not numeric"),
        (["histogram", "--by", "age:40:18"], "must rise"),
        (["histogram", "--by", "age:x"], "must be a number"),
        (["histogram", "--by", "age:"], "must be a number"),
        (["histogram", *["--by", "age"] * 4], "coarser keys"),
        (["choose", "--among", "income"], "not in the schema"),
        (["choose", "--among", "age", "--among", "ward"], "give --among once"),
        (["choose", "--among", "age", "--score", "luck"], "score must be one of"),
        (["choose", "--among", "age", "--score", "gainratio"], "unbounded sensitivity"),
        (["choose", "--among", "history", "--score", "gini"], "only 'contains'"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(hospital: Hospital, options: list[str], words: str) -> None:
    assert words in refused(*hospital.query(*options), "--epsilon", "0.1")


def test_a_missing_file_is_refused(hospital: Hospital) -> None:
    hospital_without = [*hospital.of("query", "count"), "--epsilon", "0.1"]
    hospital_without[2] = hospital.folder / "missing.csv"
    assert "There is no file" in refused(*hospital_without)
    for command in (["schema", "draft"], ["schema", "check"]):
        rest = [hospital.schema] if command[1] == "check" else []
        assert "There is no file" in refused(*command, hospital.folder / "missing.csv", *rest)
    command = [
        "budget",
        "init",
        hospital.folder / "missing.csv",
        "--schema",
        hospital.schema,
        "--cap",
        1,
        "--ledger",
        "x.db",
    ]
    assert "There is no file" in refused(*command)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"\xff\xfe", "not a text file"),
        (b"age,ward\n1,north\n", "not valid TOML"),
        (b"name = 'patients'\n", "'rows_at_most' is missing"),
        (b"name = 'patients'\nrows_at_most = 3\n", "at least one attribute"),
        (b"name = 'patients'\nrows_at_most = 3\ncolour = 1\n", "unknown key 'colour'"),
    ],
)
def test_a_wrong_schema_file_is_refused_by_every_command(hospital: Hospital, content: bytes | None, words: str) -> None:
    wrong = hospital.folder / "wrong.toml"
    if content is not None:
        wrong.write_bytes(content)
    for command in (
        ["query", "count", hospital.data, "--epsilon", "0.1", "--schema", wrong],
        ["budget", "init", hospital.data, "--cap", "1", "--schema", wrong],
        ["budget", "grant", hospital.data, "alice", "--epsilon", "2", "--schema", wrong],
        ["budget", "show", hospital.data, "--schema", wrong],
        ["schema", "check", hospital.data, wrong],
        ["schema", "show", wrong],
    ):
        assert words in refused(*command)


def test_a_schema_that_names_other_columns_is_refused(hospital: Hospital) -> None:
    toml = hospital.schema.read_text().replace("[attributes.age]", "[attributes.years]")
    other = hospital.folder / "other.toml"
    other.write_text(toml)
    sentence = refused("query", "count", hospital.data, "--epsilon", "0.1", "--schema", other)
    assert sentence == "The table has no column 'years', which the schema describes."


@pytest.mark.parametrize("name", ["notes.docx", "folder.csv", "text.parquet", "empty.csv", "text.csv.gz", "twice.csv"])
def test_a_file_that_is_no_table_is_refused(hospital: Hospital, name: str) -> None:
    path = hospital.folder / name
    if name == "folder.csv":
        path.mkdir()
    else:
        path.write_text("age,age\n1,2\n" if name == "twice.csv" else "" if name == "empty.csv" else "nothing\n")
    assert name in refused(
        "query", "count", path, "--schema", hospital.schema, "--epsilon", "0.1", "--ledger", hospital.ledger
    )
    assert name in refused("schema", "draft", path)


def test_without_a_ledger_the_answer_says_how_to_make_one(hospital: Hospital, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data = shutil.copy(hospital.data, elsewhere)
    sentence = refused("query", "count", data, "--schema", hospital.schema, "--epsilon", "0.1")
    assert f"dpmine budget init {data} --schema {hospital.schema} --cap EPSILON" in sentence
    for command in (["show"], ["statement"], ["verify"], ["grant", "alice", "--epsilon", "1"], ["revoke", "alice"]):
        sentence = refused("budget", command[0], data, *command[1:], "--schema", hospital.schema)
        assert "There is no ledger" in sentence
        assert "dpmine budget init" in sentence
    assert list(elsewhere.iterdir()) == [Path(data)]


def test_the_ledger_of_another_data_set_is_refused(hospital: Hospital) -> None:
    other = hospital.folder / "other.toml"
    other.write_text(hospital.schema.read_text().replace('name = "patients"', 'name = "strangers"'))
    for command in (["query", "count", hospital.data, "--epsilon", "0.1"], ["budget", "show", hospital.data]):
        sentence = refused(*command, "--schema", other, "--ledger", hospital.ledger)
        assert sentence == "This ledger belongs to the data set 'patients', not to 'strangers'."


def test_a_file_that_is_no_ledger_is_refused(hospital: Hospital) -> None:
    empty = hospital.folder / "empty.db"
    empty.touch()
    for ledger in (hospital.data, empty, hospital.folder):
        assert refused(*hospital.query("count"), "--epsilon", "0.1", "--ledger", ledger)
        assert refused(*hospital.of("budget", "show"), "--ledger", ledger)


def test_an_unknown_analyst_is_refused(hospital: Hospital) -> None:
    for question, options in QUESTIONS.items():
        command = [*hospital.of("query", question), *options, "--epsilon", "0.1", "--as", "bob"]
        assert refused(*command) == "The owner has granted nothing to 'bob'."
    assert refused(*hospital.of("budget", "revoke", "bob")) == "The owner has granted nothing to 'bob'."
    assert refused(*hospital.of("budget", "statement"), "--as", "bob") == "The owner has granted nothing to 'bob'."


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "\x1b[31m"])
def test_an_analyst_s_name_must_be_printable(hospital: Hospital, name: str) -> None:
    assert "printable" in refused(*hospital.of("budget", "grant", name), "--epsilon", 1)
    assert refused(*hospital.of("query", "count"), "--epsilon", "0.1", "--as", name)
    assert refused(*hospital.of("budget", "revoke", name))


def test_a_revoked_analyst_is_refused(hospital: Hospital) -> None:
    done(*hospital.of("budget", "revoke", "alice"))
    assert refused(*hospital.query("count"), "--epsilon", "0.1") == "The owner has revoked the access of 'alice'."
    assert "revoked" in refused(*hospital.query("count"), "--epsilon", "0.1", "--dry-run")


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "x", "1e9"])
def test_budgets_that_make_no_sense_are_refused(hospital: Hospital, amount: str) -> None:
    assert refused(*hospital.of("budget", "grant", "alice"), "--epsilon", amount)
    fresh = hospital.folder / "fresh.db"
    assert "cap" in refused(*hospital.of("budget", "init"), "--cap", amount, "--ledger", fresh)
    assert not fresh.exists()


def test_a_ledger_is_never_made_twice_or_nowhere(hospital: Hospital) -> None:
    assert "exists already" in refused(*hospital.of("budget", "init"), "--cap", 100)
    assert "folder" in refused(*hospital.of("budget", "init"), "--cap", 1, "--ledger", hospital.folder / "no" / "ledger.db")


def test_a_draft_overwrites_no_file(hospital: Hospital) -> None:
    before = hospital.schema.read_text()
    assert "exists already" in refused("schema", "draft", hospital.data, "--out", hospital.schema)
    assert hospital.schema.read_text() == before
    assert "There is no folder" in refused("schema", "draft", hospital.data, "--out", hospital.folder / "no" / "draft.toml")


def test_a_draft_with_an_impossible_name_is_refused(hospital: Hospital) -> None:
    assert "needs a name" in refused("schema", "draft", hospital.data, "--name", "../x")


@pytest.mark.parametrize("label", ["", "x" * 201])
def test_a_version_label_that_is_no_label_is_refused(hospital: Hospital, label: str) -> None:
    assert "version" in refused(*hospital.query("count"), "--epsilon", "0.1", "--version-label", label)


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "count"],
        ["query", "count", "patients.csv"],
        ["query", "histogram", "patients.csv", "--schema", "patients.toml", "--epsilon", "1"],
        ["query", "nonsense"],
        ["budget", "init", "patients.csv", "--schema", "patients.toml"],
        ["demo", "--rows", "1"],
        ["demo", "--rows", "many"],
        ["nonsense"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_read_has_exit_code_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


# -- after the charge ----------------------------------------------------------------------------------------------------


class TestPaid:
    """What goes wrong after an answer was paid costs nothing more."""

    @pytest.fixture(autouse=True)
    def _nothing_is_spent(self) -> None:
        """These tests do spend."""

    def test_an_answer_that_cannot_be_written_is_kept_and_free_to_ask_again(self, hospital: Hospital) -> None:
        command = [*hospital.query("histogram"), "--by", "ward", "--epsilon", "0.2"]
        nowhere = hospital.folder / "nowhere.csv"
        nowhere.symlink_to(hospital.folder / "no" / "wards.csv")  # a name that is free, and cannot be written
        sentence = refused(*command, "--out", nowhere)
        assert "The answer was paid" in sentence
        assert "Ask again: it is free." in sentence
        assert hospital.spent()["alice"] == "0.2"
        done(*command, "--out", hospital.folder / "wards.csv")
        assert hospital.spent()["alice"] == "0.2"

    @pytest.mark.skipif(os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root writes anywhere")
    def test_a_ledger_that_cannot_be_written_answers_nothing(self, hospital: Hospital) -> None:
        hospital.ledger.chmod(0o400)
        hospital.folder.chmod(0o500)
        try:
            assert refused(*hospital.query("count"), "--epsilon", "0.1")
        finally:
            hospital.folder.chmod(0o700)
            hospital.ledger.chmod(0o600)
