"""The counting grid of numeric attributes: exact decimal arithmetic, held to fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.schema_strategies import EXACT, decimals, numerics
from support.twins import few_and_many

from dpmine.base.decimals import plain
from dpmine.base.errors import RequestError
from dpmine.codes.rows import InCodes
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.numeric_columns import encode_numbers
from dpmine.facts.schema import Schema
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import Bins
from dpmine.language.predicates import Compare
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.resolving_predicates import resolve_predicate
from dpmine.language.splits import Thresholds

TENTHS = Numeric("x", Decimal(0), Decimal(10), Decimal("0.1"), Decimal(0))
WIDE = Numeric("x", Decimal("-9e14"), Decimal("9e14"), Decimal("1234567890123.123456789012"), Decimal(0))
FINE = Numeric("x", Decimal(-100), Decimal("-99.9999999999"), Decimal("1e-12"), Decimal("9e14"))
grids = (
    numerics()
    | numerics(digits=26, places=12)
    | numerics(digits=2, places=2, most=20)
    | st.sampled_from([TENTHS, WIDE, FINE])
)


def size_of(attribute: Numeric) -> int:
    return (Fraction(attribute.high) - Fraction(attribute.low)) // Fraction(attribute.step) + 1


def point_of(attribute: Numeric, code: int) -> Fraction:
    return Fraction(attribute.low) + code * Fraction(attribute.step)


def floor_of(attribute: Numeric, number: Fraction) -> int:
    steps = (number - Fraction(attribute.low)) // Fraction(attribute.step)
    return min(max(int(steps), 0), size_of(attribute) - 1)


def ceiling_of(attribute: Numeric, number: Fraction) -> int:
    steps = -((Fraction(attribute.low) - number) // Fraction(attribute.step))
    return min(max(int(steps), 0), size_of(attribute))


def numbers_near(attribute: Numeric) -> st.SearchStrategy[Decimal]:
    """Grid points, their closest neighbours, and numbers far away."""
    near = st.builds(
        lambda code, shift: EXACT.add(attribute.point(code), Decimal(shift).scaleb(-12)),
        st.integers(0, attribute.size - 1),
        st.integers(-3, 3),
    )
    far = st.sampled_from([Decimal("999999999999999"), Decimal("-999999999999999"), Decimal(0)])
    allowed = (near | decimals(digits=26, places=12)).filter(lambda number: abs(number) < 10**15)
    return allowed | far | decimals()


grid_and_number = grids.flatmap(lambda attribute: st.tuples(st.just(attribute), numbers_near(attribute)))


@given(grids)
@settings(max_examples=200)
def test_size_and_points_of_a_grid_are_exact(attribute: Numeric) -> None:
    assert attribute.size == size_of(attribute)
    for code in {0, 1, attribute.size // 2, attribute.size - 1}:
        assert Fraction(attribute.point(code)) == point_of(attribute, code)
        assert Fraction(attribute.label(code)) == point_of(attribute, code)


@given(grid_and_number)
@example((FINE, Decimal("999999999999999")))
@example((TENTHS, Decimal("0.3")))
@settings(max_examples=400)
def test_flooring_and_searching_on_the_grid_agree_with_fractions(drawn: tuple[Numeric, Decimal]) -> None:
    attribute, number = drawn
    assert attribute.floor_code(number) == floor_of(attribute, Fraction(number))
    assert attribute.first_code_at_least(number) == ceiling_of(attribute, Fraction(number))


@given(grids)
def test_the_place_of_missing_values_is_the_floor_of_missing(attribute: Numeric) -> None:
    assert attribute.other_code == floor_of(attribute, Fraction(attribute.missing))


@pytest.mark.parametrize("step", ["0.1", "0.01", "0.001", "0.3", "0.7", "1", "2.5"])
def test_every_decimal_on_a_grid_of_tenths_is_encoded_where_it_stands(step: str) -> None:
    attribute = Numeric("x", Decimal("-1"), Decimal("3"), Decimal(step), Decimal(0))
    texts = [plain(attribute.point(code)) for code in range(attribute.size)]
    codes = encode_numbers(np.array([float(text) for text in texts]), attribute)
    assert codes.tolist() == list(range(attribute.size))


@given(numerics(digits=7, places=4), st.lists(decimals(digits=8, places=5), min_size=1, max_size=20))
def test_a_decimal_of_up_to_fifteen_digits_is_encoded_as_fractions_say(attribute: Numeric, numbers: list[Decimal]) -> None:
    codes = encode_numbers(np.array([float(number) for number in numbers]), attribute)
    assert codes.tolist() == [floor_of(attribute, Fraction(number)) for number in numbers]


@given(grids, st.lists(st.floats(), min_size=1, max_size=20), st.data())
@settings(max_examples=200)
def test_any_double_is_encoded_by_comparing_it_with_the_grid(
    attribute: Numeric, numbers: list[float], data: st.DataObject
) -> None:
    edge = float(attribute.point(data.draw(st.integers(0, attribute.size - 1))))
    numbers += [edge, math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf), math.nan, -0.0, 5e-324, -5e-324]
    codes = encode_numbers(np.array(numbers), attribute)
    edges = [float(attribute.point(code)) for code in range(attribute.size)]
    for number, code in zip(numbers, codes.tolist(), strict=True):
        below = sum(point <= number for point in edges)
        assert code == (attribute.other_code if math.isnan(number) else max(below - 1, 0))


# -- comparisons, bins and thresholds on the grid ------------------------------------------------------------------------


def schema_of(attribute: Numeric) -> Schema:
    return Schema("grid", (attribute,), 10)


@few_and_many(grid_and_number, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), few=80, many=300)
def test_a_comparison_keeps_exactly_the_grid_points_that_compare_so(drawn: tuple[Numeric, Decimal], op: str) -> None:
    attribute, number = drawn
    compare = {
        "==": Fraction.__eq__,
        "!=": lambda left, right: left != right,
        "<": Fraction.__lt__,
        "<=": Fraction.__le__,
        ">": Fraction.__gt__,
        ">=": Fraction.__ge__,
    }[op]
    test = resolve_predicate(Compare("x", op, str(number)), schema_of(attribute))
    assert isinstance(test, InCodes)
    kept = {code for low, high in test.ranges for code in range(low, high)}
    assert kept == {code for code in range(attribute.size) if compare(point_of(attribute, code), Fraction(number))}


@given(numerics(most=50), st.lists(decimals(), min_size=1, max_size=5, unique=True).map(sorted))
def test_bins_send_every_grid_point_to_the_number_of_cuts_at_or_below_it(attribute: Numeric, cuts: list[Decimal]) -> None:
    bins = Bins("x", tuple(map(str, cuts)))
    key = resolve_key(bins, schema_of(attribute))
    found = [
        item
        for (first, item), after in zip(key.runs, [*key.runs[1:], (attribute.size, 0)], strict=True)
        for _ in range(first, after[0])
    ]  # type: ignore[attr-defined]
    expected = [sum(Fraction(cut) <= point_of(attribute, code) for cut in cuts) for code in range(attribute.size)]
    assert found == expected
    assert key.size == len(bins.labels(schema_of(attribute))) == len(cuts) + 1


@given(grid_and_number, st.data())
def test_thresholds_are_the_grid_points_above_low_and_up_to_high(
    drawn: tuple[Numeric, Decimal], data: st.DataObject
) -> None:
    attribute, low = drawn
    high = data.draw(numbers_near(attribute))
    schema = schema_of(attribute)
    expected = [code for code in range(1, attribute.size) if Fraction(low) < point_of(attribute, code) <= Fraction(high)]
    family = Thresholds("x", str(low), str(high))
    if expected:
        assert list(family.codes(schema)) == expected
        assert number_of_candidates(family, schema) == len(expected)
        for place in (0, -1):
            assert candidate(family, schema, range(len(expected))[place]) == Bins("x", (attribute.label(expected[place]),))
    else:
        with pytest.raises(RequestError, match="No grid point"):
            family.codes(schema)


@pytest.mark.parametrize(
    ("number", "text"),
    [("40.0", "40"), ("0.10", "0.1"), ("1e3", "1000"), ("1e-7", "0.0000001"), ("-0", "0"), ("-0.0", "0"), ("-2.50", "-2.5")],
)
def test_labels_are_plain_decimals(number: str, text: str) -> None:
    assert plain(Decimal(number)) == text
