"""Decimal texts: exact, of sane size, and one text for each number."""

from decimal import Decimal, InvalidOperation

from dpmine.base.errors import ExpressionError, SchemaError


def parse_decimal(text: str, what: str, error: type[SchemaError] | type[ExpressionError]) -> Decimal:
    """A finite decimal of sane size: exact arithmetic on it must stay exact and cheap."""
    try:
        number = Decimal(text.strip()) if len(text) <= 40 else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not -12 <= number.adjusted() < 15 or _decimals(number) > 12:
        if number is not None and number.is_finite() and number == 0:
            return Decimal(0)
        raise error(f"{what} must be a number below 1e15 with at most 12 decimals. Got {text[:40]!r} instead.")
    return number


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 99


def plain(number: Decimal) -> str:
    """Decimal text without exponent or trailing zeros: 40.0 is '40'."""
    text = format(number, "f") if number else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
