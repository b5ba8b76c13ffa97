"""Every value that crosses the door turns into JSON text and back, and nothing else is read from JSON."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.refusals import assert_one_sentence
from support.twins import few_and_many
from support.wire_strategies import AWKWARD, BY_CLASS, queries

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import DEEPEST, from_json, from_text, to_json, to_text
from dpmine.base.wire import from_wire, to_wire, value_hash
from dpmine.base.wire_values import _classes
from dpmine.codes.answers import Answer, Reply
from dpmine.language.predicates import And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate
from dpmine.language.queries import Query, resolve
from dpmine.language.views import LEAF, Split, View
from dpmine.questions.histogram import Histogram
from dpmine.results.preview import Preview
from dpmine.results.statements import Statement

COUNT = Query(View(), LEAF, Histogram(()), (Epsilon.parse("0.1"),))
RESOLVED = "dpmine.codes.rows"

classes = st.sampled_from(list(BY_CLASS))
class_and_value = classes.flatmap(lambda cls: st.tuples(st.just(cls), BY_CLASS[cls]))
json_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(AWKWARD)
    | st.text(max_size=5)
    | st.just(10**400)
)
json_values = st.recursive(
    json_scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


def read_or_refused(text: str | bytes, cls: type) -> object | None:
    """The value that the text holds, or None where it is refused in one sentence. No other exception may leave."""
    try:
        return from_text(text, cls)
    except RequestError as error:
        assert_one_sentence(error)
        return None


# -- both ways ---------------------------------------------------------------------------------------------------------


def test_the_strategies_cover_every_class_that_crosses_the_door() -> None:
    crossing = {cls for cls in _classes.values() if cls.__module__ != RESOLVED and not cls.__name__.startswith("Resolved")}
    bases = tuple(BY_CLASS)
    assert all(issubclass(cls, bases) for cls in crossing)


@few_and_many(class_and_value, few=100, many=400)
def test_a_value_comes_back_from_its_json_text(drawn: tuple[type, object]) -> None:
    cls, value = drawn
    back = from_text(to_text(value), cls)
    assert back == value
    assert type(back) is type(value)
    assert hash(back) == hash(value)


@given(class_and_value)
def test_a_value_comes_back_from_plain_json_in_another_layout(drawn: tuple[type, object]) -> None:
    cls, value = drawn
    spread = json.dumps(to_json(value), indent=3, ensure_ascii=True)
    assert from_text(spread.encode(), cls) == value
    assert from_json(json.loads(spread), cls) == value


@given(class_and_value)
def test_the_canonical_form_is_stable(drawn: tuple[type, object]) -> None:
    cls, value = drawn
    text = to_text(value)
    assert to_text(from_text(text, cls)) == text
    assert to_text(copy.deepcopy(value)) == text
    reordered = json.dumps(dict(reversed(json.loads(text).items())))
    assert to_text(from_text(reordered, cls)) == text


@pytest.mark.parametrize("text", ["", '"', "\\", "\n\u2028\ud83d\ude00", "ü é", "a, b : c", "\x00\x7f"])
def test_awkward_text_is_written_as_json_writes_it(text: str) -> None:
    assert to_wire(IsIn("age", (text, text))) == json.dumps([["in", "age", [text, text]]], separators=(",", ":")).encode()


@few_and_many(queries, queries, few=30, many=300)
def test_two_queries_share_a_name_only_if_they_are_equal(one: Query, other: Query) -> None:
    assert (value_hash(one) == value_hash(other)) == (one == other)


def test_the_json_of_a_query_is_what_the_documentation_of_values_promises() -> None:
    query = Query(View(), Split(dm.parse_key("age:18:65"), (LEAF, LEAF, LEAF)), Histogram(()), (Epsilon.parse("0.10"),))
    leaf = {"is": "leaf"}
    assert json.loads(to_text(query)) == {
        "is": "query",
        "view": {"is": "view", "steps": []},
        "rules": {
            "is": "split",
            "key": {"is": "bins", "attribute": "age", "cuts": ["18", "65"], "missing": "apart"},
            "children": [leaf, leaf, leaf],
        },
        "question": {"is": "histogram", "keys": []},
        "epsilon": ["0.1"],
    }


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        COUNT.view = View()  # type: ignore[misc]


# -- what is refused ---------------------------------------------------------------------------------------------------

FORM = json.loads(to_text(COUNT))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ("null", "must be an object"),
        ("[]", "must be an object"),
        ("3", "must be an object"),
        ('{"is": 3}', "must be an object"),
        ('{"is": "unheard-of"}', "must be one of: query"),
        ('{"is": "count"}', "must be one of: query"),
        (json.dumps({**FORM, "extra": 1}), "exactly the fields view, rules, question, epsilon"),
        (json.dumps({name: part for name, part in FORM.items() if name != "epsilon"}), "exactly the fields"),
        (json.dumps({**FORM, "epsilon": "0.1"}), "must be a list"),
        (json.dumps({**FORM, "epsilon": [1]}), "decimal text"),
        (json.dumps({**FORM, "epsilon": [0.1]}), "floats are not part"),
        (json.dumps({**FORM, "epsilon": [float("nan")]}), "floats are not part"),
        (json.dumps({**FORM, "epsilon": [float("inf")]}), "floats are not part"),
        (json.dumps({**FORM, "epsilon": ["NaN"]}), "finite"),
        (json.dumps({**FORM, "epsilon": ["-1\n"]}), "negative"),
        (json.dumps({**FORM, "epsilon": ["1e99"]}), "at most"),
        (json.dumps({**FORM, "epsilon": ["0" * 100]}), "64 characters"),
        (json.dumps({**FORM, "view": None}), "must be an object"),
        (json.dumps({**FORM, "rules": {"is": "view", "steps": []}}), "must be one of: leaf, split"),
        (b"\xff\xfe", "not valid JSON"),
        ("9" * 5000, "not valid JSON"),
        ('{"is": "query", "view": ' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_a_malformed_query_is_refused_in_one_sentence(text: str | bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        from_text(text, Query)
    assert_one_sentence(refused.value)


@pytest.mark.parametrize(
    ("cls", "form"),
    [
        (Predicate, {"is": "compare", "attribute": "age", "op": "~", "value": "3"}),
        (Predicate, {"is": "compare", "attribute": "age", "op": "==", "value": 3}),
        (Predicate, {"is": "compare", "attribute": None, "op": "==", "value": "3"}),
        (Predicate, {"is": "in", "attribute": "age", "values": "abc"}),
        (Predicate, {"is": "not", "part": []}),
        (Answer, {"is": "answer", "numbers": [[True]], "epsilon": ["1"], "sensitivity": 1}),
        (Answer, {"is": "answer", "numbers": [["1"]], "epsilon": ["1"], "sensitivity": 1}),
        (Answer, {"is": "answer", "numbers": [[1]], "epsilon": ["1"], "sensitivity": True}),
        (Answer, {"is": "answer", "numbers": {}, "epsilon": ["1"], "sensitivity": 1}),
        (Preview, {**to_json(Preview(Epsilon(1), Epsilon(1), Epsilon(1), True, "")), "cached": 1}),
        (Preview, {**to_json(Preview(Epsilon(1), Epsilon(1), Epsilon(1), True, "")), "cached": None}),
        (Statement, {"is": "statement"}),
        (Reply, {"is": "answer", "numbers": [], "epsilon": [], "sensitivity": 1}),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(cls: type, form: object) -> None:
    with pytest.raises(RequestError) as refused:
        from_text(json.dumps(form), cls)
    assert_one_sentence(refused.value)


@pytest.mark.parametrize(
    "form",
    [
        {"is": "sparse-histogram", "keys": [], "at_least": 1},
        {"is": "choose-label", "key": {"is": "attribute", "attribute": "a"}, "mechanism": "dice", "calibration": "monotone"},
        {"is": "choose-label", "key": {"is": "attribute", "attribute": "a"}, "mechanism": "exponential", "calibration": "x"},
        {"is": "choose-split", "candidates": [], "score": "gainratio", "mechanism": "exponential", "calibration": "generic"},
        {"is": "choose-split", "candidates": [], "score": "luck", "mechanism": "exponential", "calibration": "generic"},
        {"is": "histogram", "keys": [{"is": "part", "salt": "", "weights": [1]}]},
        {"is": "histogram", "keys": [{"is": "part", "salt": "", "weights": [0, 1]}]},
        {"is": "histogram", "keys": [{"is": "part", "salt": "", "weights": [1, 10**30]}]},
        {"is": "histogram", "keys": [{"is": "part", "salt": "x" * 201, "weights": [1, 1]}]},
        {"is": "histogram", "keys": [{"is": "part", "salt": "\ud800", "weights": [1, 1]}]},
        {"is": "histogram", "keys": [{"is": "bins", "attribute": "age", "cuts": [], "missing": "apart"}]},
        {"is": "histogram", "keys": [{"is": "bins", "attribute": "age", "cuts": ["3"], "missing": "nowhere"}]},
        {"is": "histogram", "keys": [{"is": "groups", "attribute": "a", "groups": [], "rest": "r", "missing": ""}]},
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_when_it_is_read(form: dict[str, object]) -> None:
    with pytest.raises(RequestError) as refused:
        from_text(json.dumps({**FORM, "question": form}), Query)
    assert_one_sentence(refused.value)


@pytest.mark.parametrize("depth", [DEEPEST + 5, 2_000, 100_000])
def test_deep_nesting_is_refused_and_exhausts_nothing(depth: int) -> None:
    nested = '{"is":"not","part":' * depth + to_text(And(())) + "}" * depth
    with pytest.raises(RequestError) as refused:
        from_text(nested, Predicate)
    assert_one_sentence(refused.value)
    with pytest.raises(RequestError):
        from_text("[" * depth + "]" * depth, Query)


@given(classes, st.text(max_size=30) | st.binary(max_size=30))
def test_random_text_is_refused_and_never_crashes(cls: type, text: str | bytes) -> None:
    assert read_or_refused(text, cls) is None


@given(classes, json_values)
@settings(max_examples=300)
def test_random_json_is_refused_and_never_crashes(cls: type, form: object) -> None:
    assert read_or_refused(json.dumps(form), cls) is None


TAGS = sorted(_classes)


def places(form: object, here: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inner = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    return [here, *(place for name, part in inner for place in places(part, (*here, name)))]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[type, str]:
    """A valid value's JSON with one to three small damages."""
    cls, value = draw(class_and_value)
    form = json.loads(to_text(value))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(form)))
        if not place:
            continue
        target = form
        for name in place[:-1]:
            target = target[name]
        damage = draw(st.sampled_from(["replace", "remove", "add", "tag"]))
        if damage == "remove":
            del target[place[-1]]
        elif damage == "tag":
            target[place[-1]] = {"is": draw(st.sampled_from(TAGS)), **draw(st.just({}) | st.just({"part": None}))}
        elif damage == "add" and isinstance(target, dict):
            target[draw(st.sampled_from([*AWKWARD, "is", "parts"]))] = draw(json_values)
        else:
            target[place[-1]] = draw(json_values)
    return cls, json.dumps(form)


@few_and_many(mutated(), few=150, many=600)
def test_damaged_json_is_refused_or_is_another_valid_value(drawn: tuple[type, str]) -> None:
    cls, text = drawn
    value = read_or_refused(text, cls)
    if value is not None:
        assert isinstance(value, cls)
        assert from_text(to_text(value), cls) == value


# -- against a schema --------------------------------------------------------------------------------------------------

SCHEMA = dm.Schema.from_toml(
    """
    name = "fuzz"
    rows_at_most = 1000
    class = "ward"
    [attributes.age]
    kind = "numeric"
    low = 0
    missing = 0
    high = 10
    [attributes.ward]
    kind = "nominal"
    categories = ["and", "a, b", "-1"]
    [attributes.""]
    kind = "items"
    items = ["and", "age"]
    at_most = 2
    """
)


@few_and_many(queries, few=100, many=400)
@example(COUNT)
def test_a_query_that_the_schema_does_not_allow_is_refused_in_one_sentence(query: Query) -> None:
    try:
        plan = resolve(query, SCHEMA)
    except RequestError as error:
        assert_one_sentence(error)
    else:
        assert from_text(to_text(plan), type(plan)) == plan


@few_and_many(queries, few=40, many=200)
def test_resolving_a_query_that_went_through_json_gives_the_same_plan(query: Query) -> None:
    def attempt(asked: Query) -> object:
        try:
            return to_wire(resolve(asked, SCHEMA))
        except RequestError as error:
            return str(error)

    assert attempt(from_wire(to_wire(query), Query)) == attempt(query)


def test_predicates_that_mean_the_same_resolve_alike() -> None:
    def plan(text: str) -> bytes:
        asked = Query(View(), LEAF, Histogram((dm.parse_key("ward"),)), (Epsilon(1),))
        return to_wire(resolve(Query(View().then(_where(text)), asked.rules, asked.question, asked.epsilon), SCHEMA))

    assert (
        plan("age >= 4") == plan("age > 3") == plan("age > 3.5") == plan("not not age >= 4") == plan("(age >= 4 and true)")
    )
    assert plan("age in [3, 4, 5]") == plan("age in [5, 3, 4, 4]")
    assert plan('ward == "-1"') == plan("ward in [-1]")
    assert plan("age >= 4 and ward == -1") == plan("ward == -1 and age >= 4")
    assert plan("age >= 4") != plan("age >= 5")


def _where(text: str) -> object:
    from dpmine.language.views import Where

    return Where(dm.parse_predicate(text))


def test_nothing_but_these_classes_is_a_predicate() -> None:
    predicates = {cls for cls in _classes.values() if issubclass(cls, Predicate)}
    assert predicates == {And, Or, Not, Compare, IsIn, IsMissing, Contains}
