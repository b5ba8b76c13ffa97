"""What is publicly known of an answer beforehand: a prior, a loss, and perhaps closer bounds."""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.design.finite_mechanisms import LOSSES, FiniteMechanism
from dpmine.noise.finite_tables import MOST_POINTS, Floats, exact_number, exact_text

MECHANISMS = ("auto", "optimal", "risk-averse", "geometric", "staircase", "heuristic", "randomised-response")
FORMS = "flat, normal:MEAN:DEVIATION, laplace:MEAN:SCALE, triangle:LOW:PEAK:HIGH or weights:W1,W2,..."
LONGEST_PRIOR = 8_192

_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")


@value("prior")
class Prior:
    """A public prior as text, the loss that matters, and which mechanism to use.

    low, high, step   exact text of bounds and grid where these are narrower than what the schema says, else None
    """

    text: str
    low: str | None = None
    high: str | None = None
    step: str | None = None
    loss: str = "absolute"
    by: str = "auto"

    def __post_init__(self) -> None:
        _shape(self.text)
        for name in ("low", "high", "step"):
            given = getattr(self, name)
            if given is not None:
                exact_number(given, f"The prior's {name}")
        if self.step is not None and Fraction(self.step) <= 0:
            raise RequestError(f"The prior's step is positive. Got {self.step}.")
        if self.low is not None and self.high is not None and Fraction(self.low) >= Fraction(self.high):
            raise RequestError(f"The prior's low is below its high. Got {self.low} and {self.high}.")
        if self.loss not in LOSSES:
            raise RequestError(f"The loss must be one of {', '.join(LOSSES)}. Got {self.loss!r} instead.")
        if self.by not in MECHANISMS:
            raise RequestError(f"The design must be one of {', '.join(MECHANISMS)}. Got {self.by!r} instead.")

    def probabilities(self, grid: Sequence[Fraction]) -> Floats:
        """The prior on these points: its density there, normalised."""
        kind, numbers = _shape(self.text)
        points = np.array([float(point) for point in grid])
        logs = _LOG_DENSITIES[kind](points, *numbers) if kind != "weights" else _log_weights(numbers, len(grid))
        if not np.isfinite(logs).any():
            raise RequestError(f"The prior {self.text} is 0 on the whole grid from {grid[0]} to {grid[-1]}.")
        masses = np.exp(logs - logs[np.isfinite(logs)].max())
        probabilities: Floats = masses / masses.sum()
        probabilities.setflags(write=False)  # one array serves all answers of a design
        return probabilities

    def support(self) -> tuple[Fraction, Fraction, Fraction] | None:
        """Where nearly all of it lies, and its spread; None where it is flat or given point by point."""
        kind, numbers = _shape(self.text)
        exact = [Fraction(number) for number in numbers]
        if kind == "normal":
            return exact[0] - 9 * exact[1], exact[0] + 9 * exact[1], exact[1]
        if kind == "laplace":
            return exact[0] - 40 * exact[1], exact[0] + 40 * exact[1], exact[1]
        if kind == "triangle":
            return exact[0], exact[2], (exact[2] - exact[0]) / 5
        return None

    def __str__(self) -> str:
        bounds = f" on {self.low or '...'} to {self.high or '...'}" if self.low or self.high else ""
        return f"{self.text:.80}{bounds}"


Named = str | Prior | FiniteMechanism
"""How a mechanism is asked for: by its name, by what is known beforehand, or as a table."""


def prior(
    text: str = "flat",
    *,
    low: object = None,
    high: object = None,
    step: object = None,
    loss: str = "absolute",
    by: str = "auto",
) -> Prior:
    """What is known beforehand, from public sources only: `prior("normal:40:10", low=0, high=100)`."""
    return Prior(text, _exact(low, "low"), _exact(high, "high"), _exact(step, "step"), loss=loss, by=by)


def _exact(given: object, name: str) -> str | None:
    """Any number as exact text; floats by their shortest decimal text, so 0.1 means one tenth."""
    if given is None:
        return None
    if isinstance(given, Fraction):
        return exact_text(given)
    if isinstance(given, str) and re.fullmatch(r"-?[0-9]{1,30}/[1-9][0-9]{0,29}", given):
        return exact_text(Fraction(given))
    if isinstance(given, bool) or not isinstance(given, (str, int, float, Decimal, np.integer, np.floating)):
        raise RequestError(f"The prior's {name} must be a number or its text. Got {type(given).__name__} instead.")
    return exact_text(Fraction(_decimal(str(given), f"The prior's {name}")))


def _decimal(text: str, name: str) -> Decimal:
    try:
        if len(text) <= 40 and _DECIMAL.fullmatch(text):
            return Decimal(text)
    except InvalidOperation:
        pass
    raise RequestError(f"{name} must be a decimal number. Got {text!r:.60} instead.")


def _shape(text: str) -> tuple[str, tuple[float, ...]]:
    """The kind of a prior and its numbers."""
    if type(text) is not str or len(text) > LONGEST_PRIOR:
        raise RequestError(f"A prior is a text of at most {LONGEST_PRIOR} characters: {FORMS}.")
    kind, _, rest = text.partition(":")
    parts = [] if not rest else rest.split("," if kind == "weights" else ":")
    counts = {"flat": (0, 0), "normal": (2, 2), "laplace": (2, 2), "triangle": (3, 3), "weights": (1, MOST_POINTS)}
    if kind not in counts or not counts[kind][0] <= len(parts) <= counts[kind][1] or text.endswith(":"):
        raise RequestError(f"A prior is {FORMS}. Got {text!r:.60} instead.")
    numbers = tuple(float(_decimal(part, f"A number of the prior {text!r:.60}")) for part in parts)
    if kind in ("normal", "laplace") and numbers[1] <= 0:
        raise RequestError(f"The deviation or scale of a prior is positive. Got {parts[1]}.")
    if kind == "triangle" and not (numbers[0] <= numbers[1] <= numbers[2] and numbers[0] < numbers[2]):
        raise RequestError(f"A triangle rises from LOW to PEAK and falls to HIGH. Got {rest}.")
    if kind == "weights" and (min(numbers) < 0 or max(numbers) <= 0):
        raise RequestError("Weights of a prior are not negative, and one is positive.")
    return kind, numbers


def _log_flat(points: Floats) -> Floats:
    return np.zeros(len(points))


def _log_normal(points: Floats, mean: float, deviation: float) -> Floats:
    scaled: Floats = (points - mean) / deviation
    return -(scaled**2) / 2


def _log_laplace(points: Floats, mean: float, scale: float) -> Floats:
    return -np.abs(points - mean) / scale


def _log_triangle(points: Floats, low: float, peak: float, high: float) -> Floats:
    rising = (points - low) / (peak - low) if peak > low else np.where(points >= low, 1.0, 0.0)
    falling = (high - points) / (high - peak) if high > peak else np.where(points <= high, 1.0, 0.0)
    heights = np.clip(np.minimum(rising, falling), 0.0, None)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(heights)
    return logs


def _log_weights(weights: tuple[float, ...], points: int) -> Floats:
    if len(weights) != points:
        raise RequestError(f"The prior has {len(weights)} weights, the grid {points} points: give one for each.")
    return np.array([math.log(weight) if weight > 0 else -math.inf for weight in weights])


_LOG_DENSITIES: dict[str, Callable[..., Floats]] = {
    "flat": _log_flat,
    "normal": _log_normal,
    "laplace": _log_laplace,
    "triangle": _log_triangle,
}
