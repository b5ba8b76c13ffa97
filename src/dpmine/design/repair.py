"""From probabilities in doubles to whole numbers that keep epsilon-DP exactly.

Solvers and doubles keep a promise up to a tolerance; the promise of privacy has none. So probabilities are rounded to
whole weights, and a little uniform weight is mixed in, just enough that every ratio holds exactly: uniform weight is the
same in every row, so it only brings rows nearer to one another.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import Floats, exact_text, window_maxima

TOTAL = 2**48  # of the weights of a row: large enough that the uniform part is tiny, small enough that files stay so
_NOTHING = 1e-13  # a column with no more than this in any row is left out


@dataclass(frozen=True)
class Repaired:
    """A mechanism that passes the exact check, and which share of its answers is uniform for that."""

    mechanism: FiniteMechanism
    mixed: float


def repaired(matrix: Floats, setting: Setting, outputs: tuple[Fraction, ...] | None = None) -> Repaired:
    """The nearest mechanism of whole weights that keeps the setting's epsilon exactly. Outputs: the grid unless given."""
    probabilities, kept = _clean(matrix, setting, setting.grid if outputs is None else outputs)
    labels = tuple(map(exact_text, kept))
    units = _enough(probabilities, setting)
    while not (found := _weighted(probabilities, setting, labels, units)).keeps(setting.epsilon, setting.sensitivity):
        units *= 2
        if units * len(kept) > TOTAL:
            raise RequestError(f"These probabilities are too far from keeping epsilon {setting.epsilon} to be repaired.")
    while units > 0:  # the estimate is on the safe side: take less where less will do
        fewer = _weighted(probabilities, setting, labels, units // 2)
        if not fewer.keeps(setting.epsilon, setting.sensitivity):
            break
        found, units = fewer, units // 2
    return Repaired(found, units * len(kept) / TOTAL)


def unrepaired(matrix: Floats, setting: Setting, outputs: tuple[Fraction, ...] | None = None) -> FiniteMechanism:
    """Only rounded to whole weights. For tests and comparisons: in general this keeps no epsilon."""
    probabilities, kept = _clean(matrix, setting, setting.grid if outputs is None else outputs)
    return _weighted(probabilities, setting, tuple(map(exact_text, kept)), 0)


def _clean(matrix: Floats, setting: Setting, outputs: tuple[Fraction, ...]) -> tuple[Floats, tuple[Fraction, ...]]:
    """Rows that add up to 1, without columns that never come."""
    given = np.asarray(matrix, dtype=np.float64)
    if given.shape != (setting.points, len(outputs)) or not np.isfinite(given).all():
        raise RequestError(f"A mechanism here needs {setting.points} rows of {len(outputs)} finite probabilities.")
    positive = np.clip(given, 0.0, None)
    shown = positive.max(axis=0) > _NOTHING
    positive = positive[:, shown]
    if not (positive.sum(axis=1) > 0.5).all():
        raise RequestError("Every row of a mechanism adds up to 1.")
    kept = tuple(point for point, some in zip(outputs, shown.tolist(), strict=True) if some)
    return positive / positive.sum(axis=1, keepdims=True), kept


def _enough(probabilities: Floats, setting: Setting) -> int:
    """Uniform units an entry that surely suffice: they make up for what is violated and for rounding by one unit each."""
    growth = math.exp(min(float(setting.epsilon), 700.0))
    excess = float(np.max(window_maxima(probabilities, setting.steps) - growth * probabilities, initial=0.0))
    missing = TOTAL * (max(excess, 0.0) + 1e-15) + 1 + growth
    return max(math.ceil(missing / math.expm1(min(float(setting.epsilon), 700.0))), 2)


def _weighted(probabilities: Floats, setting: Setting, labels: tuple[str, ...], units: int) -> FiniteMechanism:
    """Whole weights by largest remainders, so that rows add up exactly, and `units` more for every entry."""
    scaled = probabilities * float(TOTAL - units * len(labels))
    whole = np.floor(scaled)
    weights = whole.astype(np.int64)
    lacking = TOTAL - units * len(labels) - weights.sum(axis=1)
    order = np.argsort(-(scaled - whole), axis=1, kind="stable")
    for row, places in enumerate(order):
        more = int(lacking[row])
        weights[row] += more // len(labels)  # 0, but for the rounding of the sums themselves
        weights[row, places[: more % len(labels)]] += 1
    weights += units
    rows = tuple(tuple(row) for row in weights.tolist())
    return FiniteMechanism(exact_text(setting.low), exact_text(setting.step), labels, rows)
