"""What clamping, rounding and constants for gaps shift in a column's statistics: true numbers, for the owner only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

VISIBLE = 1e-4  # of the deviation: smaller shifts are not worth a sentence
FEW = 0.005  # of the rows, on either side, that a narrower pair of bounds would clamp
MUCH_WIDER = 4


@dataclass(frozen=True)
class Moments:
    """Of a column's numbers."""

    mean: float
    std: float
    median: float

    @classmethod
    def of(cls, numbers: NDArray[Any]) -> Moments:
        return cls(float(np.mean(numbers)), float(np.std(numbers)), float(np.median(numbers)))

    def form(self) -> dict[str, float]:
        return {"mean": self.mean, "std": self.std, "median": self.median}


@dataclass(frozen=True)
class Shift:
    """A column's numbers as they stand, without infinite ones, and as the schema reads them."""

    before: Moments
    after: Moments
    middle: tuple[float, float]
    """Where all but a hundredth of the numbers lie."""
    bounds: tuple[float, float]

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], bounds: tuple[float, float]) -> Shift | None:
        """None where there is no number."""
        before = before[np.isfinite(before)]
        if not len(before) or not len(after):
            return None
        low, high = np.quantile(before, (FEW, 1 - FEW), method="inverted_cdf")
        return cls(Moments.of(before), Moments.of(after), (float(low), float(high)), bounds)

    def form(self) -> dict[str, Any]:
        return {"before": self.before.form(), "after": self.after.form(), "middle": list(self.middle)}

    def sentences(self) -> list[str]:
        """One on what moved, if something did, and one on bounds that are far from nearly all numbers."""
        return [*self._moved(), *self._wide()]

    def _moved(self) -> list[str]:
        before, after = self.before.form(), self.after.form()
        enough = max(VISIBLE * before["std"], 1e-9 * max(map(abs, self.bounds)))
        moved = [name for name in before if abs(after[name] - before[name]) > enough]
        words = [f"the {name} from {shown(before[name])} to {shown(after[name])}" for name in moved]
        if not words:
            return []
        raised = {after[name] > before[name] for name in moved}
        verb = "moves" if len(raised) > 1 else "raises" if True in raised else "lowers"
        return [f"what the schema changes {verb} {_listed(words)}"]

    def _wide(self) -> list[str]:
        span, width = self.middle[1] - self.middle[0], self.bounds[1] - self.bounds[0]
        if span <= 0 or width < MUCH_WIDER * span:
            return []
        return [
            f"99 % of the numbers lie in {shown(self.middle[0])} to {shown(self.middle[1])}: narrower bounds would clamp "
            f"the rest, and make sums and means up to {width / span:.0f} times as exact"
        ]


def shown(number: float) -> str:
    """About five digits, without exponents."""
    if number == 0 or abs(number) >= 10_000:
        return f"{number:,.0f}"
    text = f"{number:,.{max(4 - int(np.floor(np.log10(abs(number)))), 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
