"""The values and cells of numeric attributes: exact decimal arithmetic, held to fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.schema_strategies import EXACT, decimals, numerics
from support.twins import few_and_many
from support.values_of_numbers import cell_of, nearest_of, point_of, resolution_of, starts_of, values_of

from dpmine.base.decimals import plain
from dpmine.base.errors import ExpressionError, RequestError, SchemaError
from dpmine.codes.rows import InCodes, InValues, Recode
from dpmine.facts.encoding import codes_of_values, smallest_type
from dpmine.facts.kinds.kind import BEYOND, MISSING
from dpmine.facts.kinds.numeric import DECADE, MOST_STEPS, Numeric
from dpmine.facts.kinds.numeric_columns import encode_numbers
from dpmine.facts.schema import Schema
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import LAST, Bins
from dpmine.language.predicates import Compare
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.resolving_predicates import resolve_predicate
from dpmine.language.splits import Thresholds


def numeric(low: str, high: str, step: str | None = None, missing: str = "own", **further: object) -> Numeric:
    gap = missing if missing in ("own", "drop") else Decimal(missing)
    return Numeric("x", Decimal(low), Decimal(high), None if step is None else Decimal(step), gap, **further)  # type: ignore[arg-type]


TENTHS = numeric("0", "10", "0.1", "0")
WIDE = numeric("-9e14", "9e14", "1234567890123.123456789012", "0", resolution=Decimal("1676381"))
FINE = numeric("-100", "-99.9999999999", "1e-12", "-100")
CENTS = numeric("0", "9999.99", "100", resolution=Decimal("0.01"))
CLOSE_TO_DOUBLES = numeric("-9e14", "-899999999999000", "100", resolution=Decimal("0.5"))  # four neighbouring doubles a step
MONEY = numeric("-500", "1000000", scale="log")
UNEVEN = numeric("0", "110", edges=tuple(map(Decimal, ("17.5", "18", "65"))))
LONGEST = numeric("0", "1073741824", "524288", "drop")
grids = (
    numerics()
    | numerics(digits=26, places=12)
    | numerics(digits=2, places=2, most=20)
    | st.sampled_from([TENTHS, WIDE, FINE, CENTS, CLOSE_TO_DOUBLES, MONEY, UNEVEN, LONGEST])
)
small_grids = numerics(digits=2, places=2, most=20).filter(lambda attribute: attribute.values <= 500)


def floor_of(attribute: Numeric, number: Fraction) -> int:
    steps = (number - Fraction(attribute.low)) // resolution_of(attribute)
    return min(max(int(steps), -1), values_of(attribute) - 1)


def ceiling_of(attribute: Numeric, number: Fraction) -> int:
    steps = -((Fraction(attribute.low) - number) // resolution_of(attribute))
    return min(max(int(steps), 0), values_of(attribute))


def some_values(attribute: Numeric) -> st.SearchStrategy[int]:
    starts = list(attribute.starts)
    ends = st.sampled_from(starts) | st.sampled_from([max(start - 1, 0) for start in starts])
    return st.integers(0, attribute.values - 1) | ends


def numbers_near(attribute: Numeric) -> st.SearchStrategy[Decimal]:
    """Values, what lies just beside and in the middle between them, and numbers far away."""
    near = st.builds(
        lambda value, shift: EXACT.add(attribute.value_point(value), Decimal(shift).scaleb(-12)),
        some_values(attribute),
        st.integers(-3, 3),
    )
    between = st.builds(
        lambda value, part: EXACT.fma(attribute.finest, Decimal(part), attribute.value_point(value)),
        some_values(attribute),
        st.sampled_from(["0.5", "0.25", "-0.5"]),
    )
    far = st.sampled_from([Decimal("999999999999999"), Decimal("-999999999999999"), Decimal(0)])
    allowed = (near | between | decimals(digits=26, places=12)).filter(_can_be_named)
    return allowed | far | decimals()


def _can_be_named(number: Decimal) -> bool:
    return abs(number) < 10**15 and (Fraction(number) * 10**12).denominator == 1 and len(plain(number)) <= 40


grid_and_number = grids.flatmap(lambda attribute: st.tuples(st.just(attribute), numbers_near(attribute)))
small_grid_and_number = small_grids.flatmap(lambda attribute: st.tuples(st.just(attribute), numbers_near(attribute)))


# -- values and cells --------------------------------------------------------------------------------------------------


@few_and_many(grids, few=60, many=400)
def test_values_and_cells_are_exact(attribute: Numeric) -> None:
    starts = starts_of(attribute)
    assert Fraction(attribute.finest) == resolution_of(attribute)
    assert attribute.values == values_of(attribute)
    assert list(attribute.starts) == starts
    assert attribute.cells == len(starts)
    assert attribute.size == len(starts) + (attribute.missing in ("own", "drop"))
    for code in {0, 1 % len(starts), len(starts) // 2, len(starts) - 1}:
        assert Fraction(attribute.point(code)) == Fraction(attribute.label(code)) == point_of(attribute, starts[code])
        last = [*starts, attribute.values][code + 1] - 1
        assert Fraction(attribute.middle(code)) == (point_of(attribute, starts[code]) + point_of(attribute, last)) / 2
        assert attribute.code_of_value(starts[code]) == attribute.code_of_value(last) == code
    if attribute.gap is not None:
        assert attribute.missing_code == attribute.cells == attribute.code_of_value(attribute.values)
        assert attribute.missing_value == attribute.values
        assert (attribute.label(attribute.cells), attribute.point(attribute.cells)) == (MISSING, BEYOND)


@few_and_many(grids, few=60, many=200)
def test_what_the_kernel_knows_of_an_attribute_are_its_values_and_cells(attribute: Numeric) -> None:
    column = attribute.column
    assert column.numbers is not None
    assert (column.numbers.low, column.numbers.step) == (Fraction(attribute.low), resolution_of(attribute))
    assert column.numbers.size == column.values == values_of(attribute)
    assert column.numbers.high == point_of(attribute, values_of(attribute) - 1) <= Fraction(attribute.high)
    assert (column.size, column.starts, column.gap) == (
        attribute.size,
        tuple(starts_of(attribute)),
        attribute.gap is not None,
    )


@few_and_many(grid_and_number, few=150, many=500)
@example((FINE, Decimal("999999999999999")))
@example((TENTHS, Decimal("0.3")))
@example((UNEVEN, Decimal("17.5")))
def test_searching_among_values_and_cells_agrees_with_fractions(drawn: tuple[Numeric, Decimal]) -> None:
    attribute, number = drawn
    floor, ceiling = floor_of(attribute, Fraction(number)), ceiling_of(attribute, Fraction(number))
    assert attribute.first_value_at_least(number) == ceiling
    assert attribute.values_of(number) == (ceiling, floor + 1 if floor == ceiling else ceiling)
    assert attribute.floor_code(number) == max(cell_of(attribute, floor), 0)
    starts = starts_of(attribute)
    assert attribute.first_code_at_least(number) == sum(start < ceiling for start in starts)
    if attribute.low <= number <= attribute.high:
        assert attribute.nearest_value(number) == nearest_of(attribute, Fraction(number))


@few_and_many(grids, few=60, many=200)
def test_the_place_of_gaps_is_behind_all_values_or_the_value_nearest_to_the_constant(attribute: Numeric) -> None:
    if isinstance(attribute.missing, str):
        assert attribute.missing_value == values_of(attribute)
        assert attribute.floor_code(BEYOND) == attribute.first_code_at_least(BEYOND) == attribute.cells
        assert attribute.codes_of(MISSING) == (attribute.cells, attribute.cells + 1)
        assert attribute.last_cut == attribute.cells - (attribute.gap == "drop")
        with pytest.raises(ExpressionError, match="Nothing compares with a gap"):
            attribute.compared(MISSING)
    else:
        assert attribute.missing_value == nearest_of(attribute, Fraction(attribute.missing))
        assert attribute.last_cut == attribute.cells - 1
        assert attribute.missing_code is attribute.hidden_code is None
        with pytest.raises(ExpressionError):
            attribute.number(MISSING)


def test_a_logarithmic_grid_has_ten_cells_in_every_power_of_ten() -> None:
    labels = [MONEY.label(code) for code in range(MONEY.cells)]
    assert labels[:4] == ["-500", "-400", "-300", "-250"]
    assert labels[-11:] == [str(int(part * 10**5)) for part in (*DECADE, 10)]
    assert labels[labels.index("0") - 1 : labels.index("0") + 5] == ["-1", "0", "1", "2", "3", "4"]  # whole numbers alone
    hundreds = [label for label in labels if 100 <= int(label) < 1000]
    assert hundreds == ["100", "120", "150", "200", "250", "300", "400", "500", "600", "800"]


def test_equal_attributes_are_equal_however_their_resolution_is_written() -> None:
    assert numeric("0", "10", "0.1") == numeric("0", "10", "0.1", resolution=Decimal("0.10"))
    assert numeric("0", "10", "1") != numeric("0", "10", "1", resolution=Decimal("0.5"))
    assert numeric("0", "10", "1", resolution=Decimal("1.0")).form() == numeric("0", "10", "1").form()


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "further", "words"),
    [
        ("0", "1073741825", {"resolution": Decimal(1)}, r"makes more than 2\^30 values"),
        ("0", "1", {"resolution": Decimal("1e-10")}, r"makes more than 2\^30 values"),
        ("0", "999999999999999", {}, r"makes more than 2\^30 values"),
        ("0", "1", {"resolution": Decimal(2)}, "leaves one value"),
        ("0", "1", {"resolution": Decimal(0)}, "positive step and resolution"),
        ("899999999999000", "900000000000000", {"resolution": Decimal("0.4")}, "too fine for numbers of this size"),
        ("-900000000000000", "-899999999999000", {"resolution": Decimal("0.4")}, "too fine for numbers of this size"),
        ("8999999999.999", "9000000000", {"resolution": Decimal("0.000001")}, "too fine for numbers of this size"),
    ],
)
def test_a_resolution_that_values_cannot_have_is_refused(
    low: str, high: str, further: dict[str, object], words: str
) -> None:
    with pytest.raises(SchemaError, match=words):
        numeric(low, high, scale="log", **further)


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(1, 10**6), st.sampled_from([1, 10, 10**3, 10**6, 10**9]))
@settings(max_examples=300)
def test_a_resolution_finer_than_the_doubles_is_refused_and_a_coarser_one_is_not(low: int, steps: int, parts: int) -> None:
    """Whoever is not refused has values so far apart that each has doubles of its own."""
    resolution = Decimal(1) / parts
    high = EXACT.fma(resolution, Decimal(steps), Decimal(low))
    assume(abs(high) < 10**15)
    spacing = Fraction(math.ulp(max(abs(float(low)), abs(float(high)))))
    if Fraction(resolution) < 4 * spacing:  # powers of ten are never so close to four spacings that rounding could decide
        with pytest.raises(SchemaError, match="too fine"):
            numeric(str(low), str(high), edges=(high,), resolution=resolution)
    else:
        attribute = numeric(str(low), str(high), edges=(high,), resolution=resolution)
        assert encode_numbers(np.array([float(high)]), attribute).tolist() == [steps]


def test_the_most_values_that_there_may_be() -> None:
    assert LONGEST.values == MOST_STEPS + 1
    ends = encode_numbers(np.array([0.0, 2.0**30, 2.0**30 + 1, math.inf, math.nan]), LONGEST)
    assert ends.dtype == np.uint32
    assert ends.tolist() == [0, 2**30, 2**30, 2**30, 2**30 + 1]


# -- encoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["0.1", "0.01", "0.001", "0.3", "0.7", "1", "2.5"])
def test_every_decimal_on_a_grid_of_tenths_is_encoded_where_it_stands(step: str) -> None:
    attribute = numeric("-1", "3", step)
    points = [attribute.point(code) for code in range(attribute.cells)]
    values = encode_numbers(np.array([float(plain(point)) for point in points]), attribute)
    assert values.tolist() == list(attribute.starts)
    assert codes_of_values(values, attribute.starts, attribute.values).tolist() == list(range(attribute.cells))


@few_and_many(grids.flatmap(lambda one: st.tuples(st.just(one), st.lists(some_values(one), min_size=1))), few=100, many=600)
@example((CLOSE_TO_DOUBLES, [0, 1, 1999, 2000]))
@example((WIDE, [0, 1, 2**29, values_of(WIDE) - 1]))
@example((FINE, [0, 1, 50, 100]))
def test_every_value_is_found_again_from_its_own_double(drawn: tuple[Numeric, list[int]]) -> None:
    attribute, values = drawn
    doubles = np.array([float(attribute.value_point(value)) for value in values])
    assert encode_numbers(doubles, attribute).tolist() == values


@few_and_many(grid_and_number, st.lists(st.floats(), max_size=20), few=100, many=400)
def test_any_double_goes_to_the_value_that_is_nearest_up_to_the_rounding_of_doubles(
    drawn: tuple[Numeric, Decimal], numbers: list[float]
) -> None:
    """Exactly the nearest where doubles decide it; where two values are equally near but for rounding, one of them."""
    attribute, near = drawn
    edge = float(near)
    numbers += [edge, math.nextafter(edge, -math.inf), math.nextafter(edge, math.inf)]
    numbers += [math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 1.7e308]
    found = encode_numbers(np.array(numbers), attribute).tolist()
    low, finest, last = Fraction(attribute.low), resolution_of(attribute), values_of(attribute) - 1
    slack = Fraction(1, 2) + Fraction(1, 2**20)  # of a step: what three roundings and a double's own can add
    slack += 2 * Fraction(math.ulp(max(abs(float(attribute.low)), abs(float(attribute.high))))) / finest
    for number, value in zip(numbers, found, strict=True):
        if math.isnan(number):
            assert value == attribute.missing_value
            continue
        assert 0 <= value <= last
        if math.isinf(number):
            assert value == (last if number > 0 else 0)
        else:
            exact = min(max((Fraction(number) - low) / finest, Fraction(0)), Fraction(last))
            assert abs(exact - value) <= slack
    order = np.argsort(numbers)
    rising = [found[place] for place in order if not math.isnan(numbers[place])]
    assert all(one <= next_ for one, next_ in pairwise(rising))


@few_and_many(numerics(digits=5, places=2), st.lists(decimals(digits=6, places=3), min_size=1), few=60, many=300)
def test_a_short_decimal_is_encoded_as_fractions_say_halves_upwards(attribute: Numeric, numbers: list[Decimal]) -> None:
    """Where a number is no half step, or its doubles are exact, the nearest value is the one that fractions find."""
    found = encode_numbers(np.array([float(number) for number in numbers]), attribute).tolist()
    for number, value in zip(numbers, found, strict=True):
        steps = (Fraction(number) - Fraction(attribute.low)) / resolution_of(attribute)
        off = abs(steps - steps.__floor__() - Fraction(1, 2))
        if off > Fraction(1, 1000):
            assert value == nearest_of(attribute, Fraction(number))


def test_halves_go_up_and_clamping_comes_before_rounding() -> None:
    whole = numeric("-2", "2", "1")
    halves = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    assert encode_numbers(np.array(halves), whole).tolist() == [0, 1, 2, 3, 4, 4]
    uneven = numeric("0", "10", "3", resolution=Decimal(3))  # the last value is 9
    assert encode_numbers(np.array([9.0, 9.9, 10.0, 7.4, 7.5]), uneven).tolist() == [3, 3, 3, 2, 3]


def test_zeros_infinities_and_gaps() -> None:
    numbers = np.array([-0.0, 0.0, 5e-324, -5e-324, math.inf, -math.inf, math.nan, 1e308, -1e308])
    for missing, gap in (("own", 21), ("drop", 21), ("0", 10), ("10", 20)):
        attribute = numeric("-10", "10", "5", missing, resolution=Decimal(1))
        values = encode_numbers(numbers, attribute)
        assert values.tolist() == [10, 10, 10, 10, 20, 0, gap, 20, 0]
        last = 5 if gap == 21 else gap // 5
        assert codes_of_values(values, attribute.starts, attribute.values).tolist() == [2, 2, 2, 2, 4, 0, last, 4, 0]


@few_and_many(grids, st.data(), few=100, many=300)
def test_the_code_of_a_value_is_the_cell_that_holds_it(attribute: Numeric, data: st.DataObject) -> None:
    values = data.draw(st.lists(some_values(attribute), min_size=1)) + [attribute.values] * (attribute.gap is not None)
    encoded = np.array(values, dtype=smallest_type(attribute.values + 1))
    codes = codes_of_values(encoded, attribute.starts, attribute.values)
    assert codes.tolist() == [attribute.cells if v == attribute.values else cell_of(attribute, v) for v in values]
    assert (codes is encoded) == (attribute.values == attribute.cells)  # one array where they are equal
    assert codes.tolist() == [attribute.code_of_value(value) for value in values]


@pytest.mark.parametrize("count", [254, 255, 256, 257, 65_534, 65_535, 65_536, 65_537, 2**20 - 1, 2**20, 2**20 + 1])
@pytest.mark.parametrize("starts", [(0,), (0, 200, 253)])
def test_codes_at_the_limits_of_types_and_tables(count: int, starts: tuple[int, ...]) -> None:
    values = np.array([0, 1, 199, 200, 252, 253, count - 1, count], dtype=smallest_type(count + 1))
    expected = [sum(start <= value for start in (*starts, count)) - 1 for value in values.tolist()]
    assert codes_of_values(values, starts, count).tolist() == expected


# -- comparisons, bins and thresholds ----------------------------------------------------------------------------------


def schema_of(attribute: Numeric) -> Schema:
    return Schema("grid", (attribute,), 10)


COMPARED = {
    "==": Fraction.__eq__,
    "!=": lambda left, right: left != right,
    "<": Fraction.__lt__,
    "<=": Fraction.__le__,
    ">": Fraction.__gt__,
    ">=": Fraction.__ge__,
}


def kept_values(attribute: Numeric, test: InCodes | InValues) -> set[int]:
    """The values that a test holds for; a gap is one more than the last."""
    edges = [*attribute.starts, attribute.values, attribute.values + 1]
    ranges = test.ranges if isinstance(test, InValues) else [(edges[low], edges[high]) for low, high in test.ranges]
    return {value for low, high in ranges for value in range(low, high)}


@few_and_many(small_grid_and_number, st.sampled_from(list(COMPARED)), few=80, many=400)
def test_a_comparison_keeps_exactly_the_values_that_compare_so(drawn: tuple[Numeric, Decimal], op: str) -> None:
    attribute, number = drawn
    test = resolve_predicate(Compare("x", op, str(number)), schema_of(attribute))
    assert isinstance(test, (InCodes, InValues))
    wanted = {v for v in range(attribute.values) if COMPARED[op](point_of(attribute, v), Fraction(number))}
    assert kept_values(attribute, test) == wanted
    cells: list[set[int]] = [set() for _ in range(attribute.cells)]
    for value in range(attribute.values):
        cells[cell_of(attribute, value)].add(value)
    assert isinstance(test, InCodes) == all(cell <= wanted or not cell & wanted for cell in cells)  # one text for one set


@pytest.mark.parametrize("op", COMPARED)
@pytest.mark.parametrize("attribute", [WIDE, CENTS, MONEY, LONGEST, CLOSE_TO_DOUBLES], ids=lambda one: str(one.values))
def test_a_comparison_among_many_values_ends_where_fractions_end_it(attribute: Numeric, op: str) -> None:
    for place in (0, 1, attribute.values // 3, attribute.values - 1):
        for shift in ("0", "0.25", "-0.25"):
            number = EXACT.fma(attribute.finest, Decimal(shift), attribute.value_point(place))
            test = resolve_predicate(Compare("x", op, plain(number)), schema_of(attribute))
            assert isinstance(test, (InCodes, InValues))
            near = range(max(place - 2, 0), min(place + 3, attribute.values))
            ranges = test.ranges
            if isinstance(test, InCodes):
                edges = [*attribute.starts, attribute.values]
                ranges = tuple((edges[low], edges[high]) for low, high in ranges)
            for value in near:
                kept = any(low <= value < high for low, high in ranges)
                assert kept == COMPARED[op](point_of(attribute, value), Fraction(number))


def test_a_comparison_is_about_values_whatever_the_grid() -> None:
    age = numeric("0", "110", "10", resolution=Decimal("0.5"))
    schema = schema_of(age)
    assert resolve_predicate(Compare("x", ">=", "40.5"), schema) == InValues("x", ((81, 221),))
    assert resolve_predicate(Compare("x", ">=", "40"), schema) == InCodes("x", ((4, 12),))
    assert resolve_predicate(Compare("x", ">", "39.9"), schema) == InCodes("x", ((4, 12),))  # the same query, and its answer
    assert resolve_predicate(Compare("x", "<", "0.5"), schema) == InValues("x", ((0, 1),))
    assert resolve_predicate(Compare("x", "==", "40.25"), schema) == InCodes("x", ())


@few_and_many(
    small_grids, st.lists(decimals(), min_size=1, max_size=5, unique=True).map(sorted), st.booleans(), few=80, many=400
)
def test_bins_send_every_value_to_the_number_of_cuts_at_or_below_it(
    attribute: Numeric, cuts: list[Decimal], last: bool
) -> None:
    texts = [*map(str, cuts), *([MISSING] if last and attribute.gap is not None else [])]
    bins = Bins("x", tuple(texts), LAST if last else "apart")
    schema = schema_of(attribute)
    key, labels = resolve_key(bins, schema), bins.labels(schema)
    numbers = list(attribute.starts) if isinstance(key, Recode) else list(range(attribute.values))
    numbers += [attribute.values] * (attribute.gap is not None)
    ends = [*(first for first, _ in key.runs[1:]), len(numbers)]  # type: ignore[attr-defined]
    found = [item for (first, item), end in zip(key.runs, ends, strict=True) for _ in range(first, end)]  # type: ignore[attr-defined]
    expected = [
        len(labels) - 1 if value == attribute.values else sum(Fraction(cut) <= point_of(attribute, value) for cut in cuts)
        for value in numbers
    ]
    assert found == expected
    assert key.size == len(labels) == len(texts) + 1 + (not last and attribute.gap is not None)
    assert labels[-1] == MISSING or last or attribute.gap is None
    assert bins.hidden(schema) == (len(labels) - 1 if attribute.gap == "drop" and not last else None)


@few_and_many(grid_and_number, st.data(), few=80, many=300)
def test_thresholds_are_the_edges_above_low_and_up_to_high(drawn: tuple[Numeric, Decimal], data: st.DataObject) -> None:
    attribute, low = drawn
    high = data.draw(numbers_near(attribute))
    schema = schema_of(attribute)
    starts = starts_of(attribute)
    expected = [c for c in range(1, len(starts)) if Fraction(low) < point_of(attribute, starts[c]) <= Fraction(high)]
    family = Thresholds("x", str(low), str(high))
    if expected:
        assert list(family.codes(schema)) == expected
        assert number_of_candidates(family, schema) == len(expected)
        for place in (0, -1):
            cut = Bins("x", (attribute.label(expected[place]),), LAST)
            assert candidate(family, schema, range(len(expected))[place]) == cut
            assert resolve_key(cut, schema) == Recode("x", ((0, 0), (expected[place], 1)), 2)  # gaps go right
    else:
        with pytest.raises(RequestError, match="No grid point"):
            family.codes(schema)


def test_the_last_threshold_tells_gaps_from_values_where_they_have_a_label_of_their_own() -> None:
    for missing, last in (("own", 10), ("drop", 9), ("3", 9)):
        attribute = numeric("0", "9", "1", missing)
        family = Thresholds("x")
        assert list(family.codes(schema_of(attribute))) == list(range(1, last + 1))
        if missing == "own":
            key = candidate(family, schema_of(attribute), last - 1)
            assert key == Bins("x", (MISSING,), LAST)
            assert key.labels(schema_of(attribute)) == ("any value", MISSING)


@pytest.mark.parametrize(
    ("number", "text"),
    [("40.0", "40"), ("0.10", "0.1"), ("1e3", "1000"), ("1e-7", "0.0000001"), ("-0", "0"), ("-0.0", "0"), ("-2.50", "-2.5")],
)
def test_labels_are_plain_decimals(number: str, text: str) -> None:
    assert plain(Decimal(number)) == text
