"""Drafts of numeric columns: bounds, a resolution under which no value moves, and a grid."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

from dpmine.facts.kinds.amounts import Amounts
from dpmine.facts.kinds.column_names import (
    ALWAYS_CODES,
    AMOUNTS,
    CODES_IF_FEW,
    names_identifiers,
    names_persons,
    public_fact,
    words_of,
)
from dpmine.facts.kinds.columns import ColumnInHand, Proposal
from dpmine.facts.kinds.identifying import FEW_TEXTS
from dpmine.facts.kinds.numeric import FEWEST_ULPS, LOG, MOST_STEPS, Numeric

MOST_DRAFTED_CELLS = 128
FEWEST_LOG_CELLS = 10
FEW_CODES = 50  # different whole numbers under a name such as grade
FEW_NUMBERS = 10  # different whole numbers may be codes under any name
FEWEST_COUNTS = 5  # different whole numbers, from 0 or 1 on, may be counts
MOST_DECIMALS = 12
COARSE = 20  # round steps between drafted bounds
SKEWED = 20  # half of the values lie within a twentieth of the range

READ_FROM_DATA = "bounds read from the data: state public ones"
YES_OR_NO = "two numbers, which may be yes and no"


def why_codes(column: ColumnInHand) -> str | None:
    """Why the numbers of a column are taken for codes, of which no mean makes sense; None where they are amounts."""
    amounts, words = column.amounts, words_of(column.name)
    different = len(amounts.numbers)
    if any(_has_leading_zero(text) for text in column.counts):
        return "codes: some have leading zeros"
    if not amounts.are_whole:
        return None
    if names_identifiers(column.name) or words & ALWAYS_CODES:
        return "codes, by the column's name"
    if different > FEW_TEXTS and names_persons(column.name) and not words & AMOUNTS:
        return "names of persons or things, by the column's name"
    if _tell_rows_apart(column):
        return "long whole numbers, another in each row"
    if public_fact(column.name, amounts) is not None:
        return None
    if different <= 2:
        return YES_OR_NO if different == 2 else "one number throughout"
    if words & AMOUNTS:
        return None
    if different <= FEW_CODES and words & CODES_IF_FEW:
        return "codes, by the column's name"
    return "a few whole numbers, which may be codes" if different <= FEW_NUMBERS and not _look_like_counts(amounts) else None


def propose_numeric(column: ColumnInHand) -> Proposal[Numeric]:
    with localcontext(Context(prec=60)):
        return _proposed(column.name, column.amounts)


def _proposed(name: str, amounts: Amounts) -> Proposal[Numeric]:
    fact = public_fact(name, amounts)
    decimals = max(map(_decimals, amounts.numbers))
    lowest, highest = amounts.numbers[0], amounts.numbers[-1]
    low, high = (fact.low, fact.high) if fact is not None else _rounded_outward(lowest, highest, decimals)
    resolution = _resolution(low, high, decimals)
    if fact is None:  # as coarse as the resolution, if that had to be coarser than the values' own decimals
        low, high = _outward(low, high, resolution)
    step = max(_round_step((high - low) / (MOST_DRAFTED_CELLS - 2)), resolution)
    step = step if fact is None or fact.step is None else fact.step
    numeric = Numeric(name, _tidy(low), _tidy(high), _tidy(step), resolution=_tidy(resolution))
    why = ["whole numbers" if decimals == 0 else f"numbers with {_many(decimals)}"]
    if fact is not None:
        why.append(fact.why)
    if fact is None and step > resolution and _is_skewed(amounts, high - low):
        logarithmic = Numeric(name, numeric.low, numeric.high, None, resolution=_tidy(resolution), scale=LOG)
        if logarithmic.cells >= FEWEST_LOG_CELLS:
            numeric = logarithmic
            why.append("half of them lie within a twentieth of the range, so cells grow with the numbers")
    return Proposal(numeric, "; ".join(why), "; ".join(_checks(numeric, amounts, decimals, by_fact=fact is not None)))


def _checks(numeric: Numeric, amounts: Amounts, decimals: int, *, by_fact: bool) -> list[str]:
    checks = [] if by_fact else [READ_FROM_DATA]
    outside = not numeric.low <= amounts.numbers[0] <= amounts.numbers[-1] <= numeric.high
    if outside or amounts.beyond:
        checks.append("some numbers lie beyond the bounds and are clamped: do they stand for gaps?")
    if amounts.odd:
        checks.append("a few texts that are no numbers count as missing")
    if numeric.finest > Decimal(1).scaleb(-decimals):
        checks.append(f"numbers are rounded to {_tidy(numeric.finest):f}: their last digits are left out")
    return checks


# -- bounds, resolution, grid ------------------------------------------------------------------------------------------


def _rounded_outward(lowest: Decimal, highest: Decimal, decimals: int) -> tuple[Decimal, Decimal]:
    """To multiples of a round step that fits about twenty times between them."""
    finest = Decimal(1).scaleb(-decimals)
    return _outward(lowest, highest, max(_round_step((highest - lowest) / COARSE), finest))


def _outward(low: Decimal, high: Decimal, step: Decimal) -> tuple[Decimal, Decimal]:
    bottom = (low / step).to_integral_value("ROUND_FLOOR") * step
    top = (high / step).to_integral_value("ROUND_CEILING") * step
    return bottom, top if top > bottom else bottom + step


def _resolution(low: Decimal, high: Decimal, decimals: int) -> Decimal:
    """As fine as the values' own decimals, or else the finest power of ten that numbers of this size may have."""
    resolution = Decimal(1).scaleb(-decimals)
    largest = math.ulp(float(max(abs(low), abs(high))))
    while (high - low) / resolution >= MOST_STEPS or float(resolution) < FEWEST_ULPS * largest:
        resolution *= 10
    return resolution


def _is_skewed(amounts: Amounts, width: Decimal) -> bool:
    return SKEWED * (amounts.quantile(0.75) - amounts.quantile(0.25)) <= width


def _round_step(width: Decimal) -> Decimal:
    """The smallest of 1, 2, 5 times a power of ten that is at least `width`."""
    if width <= 0:
        return Decimal(1).scaleb(-MOST_DECIMALS)
    power = Decimal(1).scaleb(max(width.adjusted(), -MOST_DECIMALS))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= width)


def _decimals(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return min(max(-exponent, 0), MOST_DECIMALS)


def _tidy(number: Decimal) -> Decimal:
    return number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize()


# -- codes -------------------------------------------------------------------------------------------------------------


def _has_leading_zero(text: str) -> bool:
    digits = text.strip()
    return len(digits) > 1 and digits[0] == "0" and digits.isdecimal()


def _tell_rows_apart(column: ColumnInHand) -> bool:
    """Long whole numbers, of one length, another in each row."""
    amounts = column.amounts
    lengths = {len(text) for text in column.counts}
    return len(amounts.numbers) == column.rows > FEW_TEXTS and len(lengths) == 1 and lengths.pop() > 5


def _look_like_counts(amounts: Amounts) -> bool:
    """From 0 or 1 on, and small ones are more common than large ones."""
    first, last = amounts.numbers[0], amounts.numbers[-1]
    return first in (0, 1) and len(amounts.numbers) >= FEWEST_COUNTS and amounts.quantile(0.5) * 2 < first + last


def _many(decimals: int) -> str:
    if decimals == MOST_DECIMALS:
        return "very many decimals"
    return "one decimal" if decimals == 1 else f"{decimals} decimals"
