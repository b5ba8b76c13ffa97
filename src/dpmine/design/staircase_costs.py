"""What staircase and geometric noise cost without bounds, and how long the first stair should be.

Noise on the lattice has levels |z| <= inner, |z| <= inner + steps, ..., each exp(-epsilon) times as likely as the one
before; `steps` is the sensitivity. Sums are closed forms, so nothing is simulated and no tail is cut off.
"""

import math

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError

MOST_TRIED = 4_096  # lengths of the first stair that are compared one by one
MANY_STAIRS = 0.02  # below this epsilon there are so many stairs that where the first one ends makes no difference


# -- real numbers: reference formulas for sensitivity 1 ------------------------------------------------------------------


def best_share(epsilon: float, loss: str = "absolute") -> float:
    """The share of a stair that belongs to the upper level, for least expected loss."""
    b = math.exp(-epsilon)
    if loss == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    _check(loss)
    return float(-b / (1 - b) + (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3) / (2 ** (1 / 3) * (1 - b) ** 2))


def least_cost(epsilon: float, loss: str = "absolute") -> float:
    """The expected loss of staircase noise with the best share, for sensitivity 1."""
    b = math.exp(-epsilon)
    if loss == "absolute":
        return math.exp(epsilon / 2) / math.expm1(epsilon)
    _check(loss)
    return float((2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2)


def laplace_cost(epsilon: float, loss: str = "absolute") -> float:
    _check(loss)
    return 1 / epsilon if loss == "absolute" else 2 / epsilon**2


# -- the lattice ---------------------------------------------------------------------------------------------------------


def staircase_loss(steps: int, inner: int, epsilon: Epsilon, loss: str = "absolute") -> float:
    """The expected loss, in lattice steps, of staircase noise on the lattice: an exact sum."""
    if not 0 <= inner < steps:
        raise RequestError(f"The first stair reaches 0 to {steps - 1} steps. Got {inner}.")
    b, rest = math.exp(-float(epsilon)), -math.expm1(-float(epsilon))
    geometric = (b / rest, b / rest**2, b * (1 + b) / rest**3)  # sums over k >= 1 of b^k, k b^k, k^2 b^k
    mass = 2 * inner + 1 + 2 * steps * geometric[0]
    if loss == "miss":
        return 1 - 1 / mass
    # Level k >= 1 holds the distances d_k + 1, ..., d_k + steps on either side, with d_k = inner + (k - 1) steps.
    start, half = inner - steps, steps * (steps + 1) / 2
    if loss == "absolute":
        levels = steps * (start * geometric[0] + steps * geometric[1]) + half * geometric[0]
        return (inner * (inner + 1) + 2 * levels) / mass
    _check(loss)
    squares = start**2 * geometric[0] + 2 * start * steps * geometric[1] + steps**2 * geometric[2]
    mixed = 2 * half * (start * geometric[0] + steps * geometric[1])
    levels = steps * squares + mixed + steps * (steps + 1) * (2 * steps + 1) / 6 * geometric[0]
    return (inner * (inner + 1) * (2 * inner + 1) / 3 + 2 * levels) / mass


def geometric_loss(steps: int, epsilon: Epsilon, loss: str = "absolute") -> float:
    """The same for geometric noise with ratio exp(-epsilon / steps)."""
    rate = float(epsilon) / steps
    a = math.exp(-rate)
    if loss == "miss":
        return 2 * a / (1 + a)
    if loss == "absolute":
        return 2 * a / -math.expm1(-2 * rate)
    _check(loss)
    return 2 * a / math.expm1(-rate) ** 2


def best_inner(steps: int, epsilon: Epsilon, loss: str = "absolute") -> int:
    """How far the first stair should reach on the lattice: all lengths compared, or those near the continuous optimum."""
    if float(epsilon) < MANY_STAIRS:
        return steps // 2
    if steps <= MOST_TRIED or loss == "miss":
        tried = range(min(steps, MOST_TRIED))
    else:
        middle = round(best_share(float(epsilon), loss) * steps)
        reach = MOST_TRIED // 2
        tried = range(max(0, middle - reach), min(steps, middle + reach))
    return min(tried, key=lambda inner: staircase_loss(steps, inner, epsilon, loss))


def _check(loss: str) -> None:
    if loss not in ("absolute", "squared"):
        raise RequestError(f"The loss of noise without bounds is absolute or squared here. Got {loss!r}.")
