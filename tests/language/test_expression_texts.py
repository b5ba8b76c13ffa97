"""The text form of predicates and keys: what `str` writes is read back, and everything else gets one sentence."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.refusals import assert_one_sentence
from support.twins import few_and_many
from support.wire_strategies import AWKWARD, any_text, predicates_over, with_surrogates

import dpmine as dm
from dpmine.base.errors import ExpressionError
from dpmine.language.columns import key_of
from dpmine.language.keys import AttributeKey, Bins, Group, Groups, Test
from dpmine.language.parsing import DEEPEST, LONGEST
from dpmine.language.predicates import WORDS, And, Compare, Contains, IsIn, Not, Or, Predicate, quoted

TOKENS = [
    "is",
    "missing",
    "and",
    "or",
    "not",
    "in",
    "contains",
    "true",
    "false",
    "(",
    ")",
    "[",
    "]",
    ",",
    "==",
    "=",
    "!=",
    "<",
    "<=",
]
TOKENS += [
    ">",
    ">=",
    "age",
    "ward",
    "40",
    "-1.5",
    '"',
    "'",
    '"a b"',
    "'c'",
    "\\",
    "\n",
    " ",
    "",
    "é",
    ":",
    "#",
    ";",
    "--",
    "%",
]


def read_or_refused(text: str) -> Predicate | None:
    try:
        return dm.parse_predicate(text)
    except ExpressionError as error:
        assert_one_sentence(error)
        return None


def without_single_parts(predicate: Predicate) -> Predicate:
    """The same predicate; an and/or of one part is that part, which is how its text is read."""
    if isinstance(predicate, Not):
        return Not(without_single_parts(predicate.part))
    if isinstance(predicate, (And, Or)):
        parts = tuple(map(without_single_parts, predicate.parts))
        return parts[0] if len(parts) == 1 else type(predicate)(parts)
    return predicate


@few_and_many(predicates_over(with_surrogates, one_part=False), few=100, many=400)
def test_the_text_of_a_predicate_is_read_back_as_the_same_predicate(predicate: Predicate) -> None:
    assert dm.parse_predicate(str(predicate)) == predicate


@given(predicates_over(any_text))
def test_an_and_of_one_part_is_read_back_as_that_part(predicate: Predicate) -> None:
    assert dm.parse_predicate(str(predicate)) == without_single_parts(predicate)


@given(any_text, any_text)
@example("and", "or")
@example("", "")
@example("\\", '"\\')
def test_any_column_and_any_value_can_be_written_as_text(name: str, value: str) -> None:
    assert dm.parse_predicate(f"{quoted(name)} == {quoted(value)}") == Compare(name, "==", value)
    assert dm.parse_predicate(f"  {quoted(name)} in[{quoted(value)}]  ") == IsIn(name, (value,))


@pytest.mark.parametrize("word", sorted(WORDS) + [word.upper() for word in sorted(WORDS)])
def test_our_own_words_can_be_columns_and_values_in_quotes(word: str) -> None:
    assert quoted(word) == f'"{word}"'
    assert dm.parse_predicate(f"'{word}' != \"{word}\"") == Compare(word, "!=", word)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("age >= 40", Compare("age", ">=", "40")),
        ("age>=40", Compare("age", ">=", "40")),
        ("age = -1.5e3", Compare("age", "==", "-1.5e3")),
        ("ward in [north, south]", IsIn("ward", ("north", "south"))),
        ("ward in []", IsIn("ward", ())),
        ("history contains flu", Contains("history", ("flu",))),
        ("history contains [flu, 'hay fever']", Contains("history", ("flu", "hay fever"))),
        (
            "a == 1 or b == 2 and c == 3",
            Or((Compare("a", "==", "1"), And((Compare("b", "==", "2"), Compare("c", "==", "3"))))),
        ),
        (
            "(a == 1 or b == 2) and c == 3",
            And((Or((Compare("a", "==", "1"), Compare("b", "==", "2"))), Compare("c", "==", "3"))),
        ),
        ("not a == 1 and b == 2", And((Not(Compare("a", "==", "1")), Compare("b", "==", "2")))),
        ("not (a == 1 and b == 2)", Not(And((Compare("a", "==", "1"), Compare("b", "==", "2"))))),
        ("A == 1 AND Not TRUE", And((Compare("A", "==", "1"), Not(And(()))))),
        ("true", And(())),
        ("false", Or(())),
        ("cough == True", Compare("cough", "==", "True")),
        ("größe < 1", Compare("größe", "<", "1")),
    ],
)
def test_text_means_what_the_grammar_says(text: str, meaning: Predicate) -> None:
    assert dm.parse_predicate(text) == meaning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a column name"),
        ("   ", "needs a column name"),
        ("age", "needs a comparison"),
        ("age >=", "needs a value at 'the end'"),
        (">= 40", "needs a column name"),
        ("age >= 40 ward == x", "left over at 'ward == x'"),
        ("age >= 40 and", "needs a column name"),
        ("and", "needs a column name"),
        ("(age >= 40", r"misses a '\)'"),
        ("age >= 40)", "left over"),
        ("ward in north", "needs a list"),
        ("ward in [north", "misses a ']'"),
        ("ward in [north,]", "needs a value"),
        ("ward in [north south]", "misses a ']'"),
        ('ward == "north', "cannot be read"),
        ("age >= 40; drop table x", "cannot be read"),
        ("age === 40", "needs a value"),
        ("40 <= age <= 50", "left over"),
        ("lambda row: True", "cannot be read"),
        ("__import__('os').system('true')", "needs a comparison"),
    ],
)
def test_a_mistake_in_the_text_is_told_with_its_place_and_an_example(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words) as refused:
        dm.parse_predicate(text)
    assert "Example: age >= 40 and ward in [north, south]." in str(refused.value)


@pytest.mark.parametrize("opening", ["(", "not ", "(not "])
def test_nesting_beyond_the_limit_is_refused(opening: str) -> None:
    for times in (DEEPEST + 1, 1_000, 30_000):
        with pytest.raises(ExpressionError, match=r"nested deeper|misses"):
            dm.parse_predicate((opening * times)[: LONGEST - 20] + "true")


def test_nesting_up_to_the_limit_is_read() -> None:
    times = DEEPEST - 1
    assert dm.parse_predicate("(" * times + "a == 1" + ")" * times) == Compare("a", "==", "1")


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ExpressionError, match="longer than"):
        dm.parse_predicate("a == 1 and " * (LONGEST // 10))


@given(
    st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join)
    | st.lists(st.sampled_from(TOKENS), max_size=14).map("".join)
)
@settings(max_examples=500)
def test_a_soup_of_tokens_is_read_or_refused_and_never_crashes(text: str) -> None:
    predicate = read_or_refused(text)
    if predicate is not None:
        assert dm.parse_predicate(str(predicate)) == predicate


@given(st.text() | st.text(st.characters(exclude_categories=())))
@settings(max_examples=300)
def test_random_text_is_read_or_refused_and_never_crashes(text: str) -> None:
    predicate = read_or_refused(text)
    if predicate is not None:
        assert dm.parse_predicate(str(predicate)) == predicate


# -- keys --------------------------------------------------------------------------------------------------------------


def test_a_key_is_a_column_or_a_column_with_cuts() -> None:
    assert dm.parse_key("ward") == AttributeKey("ward")
    assert dm.parse_key(" intensive care ") == AttributeKey("intensive care")
    assert dm.parse_key("age:18:65") == Bins("age", ("18", "65"))
    assert dm.parse_key("age: 18 : 65.5") == Bins("age", ("18", "65.5"))


@pytest.mark.parametrize("text", ["", "  ", ":18", " : "])
def test_a_key_without_a_column_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="column name"):
        dm.parse_key(text)


@given(st.text())
def test_random_key_text_is_read_or_refused(text: str) -> None:
    try:
        key = dm.parse_key(text)
    except ExpressionError:
        return
    assert isinstance(key, (AttributeKey, Bins))


# -- as users write them in Python ---------------------------------------------------------------------------------------


def test_columns_build_the_predicates_that_their_text_builds() -> None:
    age, ward, history = dm.col("age"), dm.col("ward"), dm.col("history")
    assert (age >= 40) == dm.parse_predicate("age >= 40")
    assert (age != 40.0) == dm.parse_predicate("age != 40")
    assert (ward == "north") == dm.parse_predicate("ward == north")
    assert ward.isin(["north", "south"]) == dm.parse_predicate("ward in [north, south]")
    assert history.contains("flu", "asthma") == dm.parse_predicate("history contains [flu, asthma]")
    assert age.between(18, 65) == dm.parse_predicate("age >= 18 and age < 65")
    combined = ((age < 1) | (age > 2) | ~(ward == "north")) & (age <= 7) & (age == 5)
    assert combined == dm.parse_predicate("(age < 1 or age > 2 or not ward == north) and age <= 7 and age == 5")
    assert age.bins(18, 65.5) == dm.parse_key("age:18:65.5")
    assert ward.groups({"cold": ["north"]}, rest="warm") == Groups("ward", (Group("cold", ("north",)),), "warm")


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (40, "40"),
        (40.0, "40"),
        (0.1, "0.1"),
        (1e22, "10000000000000000000000"),
        (1e-7, "1e-07"),
        (True, "True"),
        (decimal.Decimal("0.10"), "0.10"),
        (np.int64(40), "40"),
        (np.float64(0.5), "0.5"),
        (np.float32(0.5), "0.5"),
        (np.bool_(False), "False"),
        (np.str_("north"), "north"),
        ("", ""),
    ],
)
def test_a_constant_is_written_as_people_read_it(constant: object, text: str) -> None:
    assert (dm.col("a") == constant) == Compare("a", "==", text)


@pytest.mark.parametrize(
    "constant",
    [None, [1], {"a"}, object(), len, 1j, fractions.Fraction(1, 3), np.array([1, 2]), np.array(["a"]), dm.col("b"), b"x"],
)
def test_a_constant_that_is_no_text_or_number_is_refused(constant: object) -> None:
    with pytest.raises(ExpressionError):
        dm.col("a") == constant  # noqa: B015


def test_python_words_between_predicates_are_refused_with_advice() -> None:
    with pytest.raises(ExpressionError, match="Combine predicates with &"):
        (dm.col("a") == 1) and (dm.col("b") == 2)
    with pytest.raises(ExpressionError, match="Combine predicates with &"):
        1 < dm.col("age") < 3  # noqa: B015
    with pytest.raises(ExpressionError, match="predicate was expected"):
        (dm.col("a") == 1) & True  # type: ignore[operator]


def test_what_a_user_names_becomes_a_key() -> None:
    assert key_of("ward") == key_of(dm.col("ward")) == AttributeKey("ward")
    assert key_of(dm.col("age").bins(3)) == Bins("age", ("3",))
    assert key_of(dm.col("age") > 3) == Test(Compare("age", ">", "3"))
    for wrong in (None, 3, ["ward"], len):
        with pytest.raises(ExpressionError, match="column name or key"):
            key_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", AWKWARD)
def test_columns_with_awkward_names_can_be_compared(name: str) -> None:
    predicate = (dm.col(name) >= 3) & dm.col(name).isin([name])
    assert dm.parse_predicate(str(predicate)) == predicate
