"""C4.5's pessimistic error rate: how bad a leaf may be on new rows, given the errors among the rows that made it.

The limit is the exact binomial one of Quinlan (1993, section 4.2), not the normal approximation that Weka and Quinlan's
own program use from one error on: the exact one is smooth in both numbers, and noisy counts are no whole numbers.
"""

import math
from functools import lru_cache

from dpmine.base.errors import RequestError

_CLOSE = 1e-15  # where the continued fraction has settled
_TINY = 1e-300  # keeps a vanishing denominator of the continued fraction from dividing by zero
_MOST_TERMS = 100_000  # about the square root of the rows are needed


def upper_error(errors: float, rows: float, confidence: float = 0.25) -> float:
    """The error rate p at which as few errors as these, or fewer, would have probability `confidence`.

    This is the (1 - confidence) quantile of Beta(errors + 1, rows - errors), for whole numbers and for any others; without
    errors it is 1 - confidence^(1/rows). Noise makes odd numbers, so these are settled too: fewer errors than none are
    none; where there are no rows (or fewer), or no row is right, nothing speaks against an error rate of 1.
    """
    if not 0 < confidence < 1:
        raise RequestError(f"The confidence must lie between 0 and 1. Got {confidence} instead.")
    if not (math.isfinite(errors) and math.isfinite(rows)):
        raise RequestError("Errors and rows must be finite numbers.")
    errors = max(float(errors), 0.0)
    if errors >= rows:  # also where there are no rows
        return 1.0
    if errors == 0:
        return -math.expm1(math.log(confidence) / rows)
    return _beta_quantile(errors + 1, float(rows) - errors, confidence)


def expected_errors(errors: float, rows: float, confidence: float = 0.25) -> float:
    """How many of this many new rows a leaf is taken to get wrong: none where it has no rows."""
    return max(rows, 0.0) * upper_error(errors, rows, confidence)


@lru_cache(maxsize=65_536)
def _beta_quantile(a: float, b: float, above: float) -> float:
    """The x that a Beta(a, b) variable exceeds with probability `above`: Newton's steps, halving where they go astray."""
    low, high = 0.0, 1.0
    x = min(a / (a + b), math.nextafter(1.0, 0.0))  # the mean
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    for _ in range(200):
        excess = _beta_tail(x, a, b, log_beta) - above
        if excess > 0:
            low = x
        else:
            high = x
        density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta)
        step = excess / density if density > 0 else math.inf
        following = x + step if low < x + step < high else (low + high) / 2
        if abs(following - x) <= 1e-15 * x or not low < following < high:
            return following
        x = following
    return x


def _beta_tail(x: float, a: float, b: float, log_beta: float) -> float:
    """The probability that a Beta(a, b) variable exceeds x, from the side where the continued fraction is quick."""
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta)
    if x < (a + 1) / (a + b + 2):
        return 1 - front * _continued_fraction(x, a, b) / a
    return front * _continued_fraction(1 - x, b, a) / b


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    ratio, denominator = 1.0, 1 - (a + b) * x / (a + 1)
    denominator = 1 / (denominator if abs(denominator) > _TINY else _TINY)
    fraction = denominator
    for term in range(1, _MOST_TERMS):
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        change = 1.0
        for coefficient in (even, odd):
            denominator = 1 + coefficient * denominator
            denominator = 1 / (denominator if abs(denominator) > _TINY else _TINY)
            ratio = 1 + coefficient / ratio
            ratio = ratio if abs(ratio) > _TINY else _TINY
            change = denominator * ratio
            fraction *= change
        if abs(change - 1) < _CLOSE:
            break
    return fraction
