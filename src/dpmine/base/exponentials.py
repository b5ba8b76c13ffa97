"""exp(-x) between whole numbers, as closely as wanted: what exact coins and exact comparisons with exp(-epsilon) rest on."""

from fractions import Fraction
from functools import lru_cache


@lru_cache(maxsize=65536)
def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= exp(-x) * 2^bits <= high, for x >= 0.

    exp(-x) = exp(-x / 2^j)^(2^j) with x / 2^j <= 1/2. The alternating Taylor series encloses the inner factor between
    consecutive partial sums; every rounding goes outward; each squaring rounds outward again.
    """
    if x.numerator * 16 >= x.denominator * 12 * (bits + 1):  # x >= 0.75 (bits + 1) > (bits + 1) ln 2
        return 0, 1
    halvings = 0
    while x.numerator * 2 > x.denominator << halvings:
        halvings += 1
    width = bits + 2 * halvings + 16
    low, high = _small_exp_bounds(x / (1 << halvings), width)
    one = 1 << width
    for _ in range(halvings):
        low = (low * low) >> width
        high = min(-((-high * high) >> width), one)
    return low >> (width - bits), -((-high) >> (width - bits))


def _small_exp_bounds(x: Fraction, width: int) -> tuple[int, int]:
    """Enclosure of exp(-x) * 2^width for 0 <= x <= 1/2, by the alternating series 1 - x + x^2/2 - ..."""
    one = 1 << width
    term_low = term_high = one
    sum_low = sum_high = one
    k = 0
    while term_high > 1:
        k += 1
        term_low = term_low * x.numerator // (x.denominator * k)
        term_high = -(-term_high * x.numerator // (x.denominator * k))
        if k % 2:
            sum_low, sum_high = sum_low - term_high, sum_high - term_low
        else:
            sum_low, sum_high = sum_low + term_low, sum_high + term_high
    return max(sum_low - term_high, 0), min(sum_high + term_high, one)  # what is left is smaller than the last term
