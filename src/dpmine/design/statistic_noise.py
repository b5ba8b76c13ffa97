"""The noise for one statistic: from what a user names to a table of whole numbers, or to noise on a lattice.

Everything here is decided by public facts: the schema, epsilon, and the prior that the user states.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.codes.designed_statistic import sensitivity_of
from dpmine.codes.domain import MOST_ROWS, Values
from dpmine.codes.value_grids import ValueGrid
from dpmine.design.candidates import LAPLACE, LOSES, PRIOR_ALONE, REMAP, beside_the_prior, pick
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.lattice_remap import KnownRange, known_range
from dpmine.design.linear_programs import MOST_PROGRAM_POINTS
from dpmine.design.priors import MECHANISMS, Named, Prior, prior
from dpmine.design.setting import Setting
from dpmine.design.staircase_costs import best_inner, geometric_loss, staircase_loss
from dpmine.facts.facts import Facts
from dpmine.facts.schema import Schema
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise, exact_text

FEWEST_POINTS = 21  # of the grid of a mean, which lies between the grid points of its attribute
BOUNDED = ("mean", "max", "median")
UNBOUNDED = ("auto", "geometric", "staircase")


@dataclass(frozen=True)
class Design:
    """Noise for one statistic, and why it was taken."""

    noise: FiniteMechanism | LatticeNoise
    name: str
    why: str
    stated: Prior
    steps: int
    expected_loss: float
    prior_loss: float | None
    probabilities: NDArray[np.float64] | None = None
    coarse: bool = False
    known: KnownRange | None = None
    """What bounds and prior make of an answer on a lattice, after the noise."""

    def released(self, number: int) -> Fraction:
        """What the number of an answer stands for."""
        if isinstance(self.noise, FiniteMechanism):
            return self.noise.released[number]
        return (number if self.known is None else self.known.told(number)) * Fraction(self.noise.step)

    def in_words(self) -> str:
        alone = "" if self.prior_loss is None else f" (answering the prior alone: {self.prior_loss:.4g})"
        loss = f"expected {self.stated.loss} loss {self.expected_loss:.4g}{alone}"
        return _joined(f"Mechanism: {self.name}, prior {self.stated}, {loss}.", self.why)


# -- one statistic -----------------------------------------------------------------------------------------------------


def numbers_of(statistic: str, name: str | None, schema: Facts) -> Values | None:
    """The values that a statistic is about; a count is about none."""
    return None if name is None else schema.numeric(name, f"it has no {statistic}").numbers


def design(schema: Schema, statistic: str, column: str | None, *, epsilon: Epsilon, mechanism: Named) -> Design:
    """The noise for a statistic: schema, epsilon and what the user states decide, and nothing else."""
    grid = numbers_of(statistic, column, schema)
    if isinstance(mechanism, FiniteMechanism):
        return _users_own(statistic, grid, mechanism)
    return _designed(statistic, grid, epsilon, _stated(mechanism))


@lru_cache(maxsize=64)  # comparing candidates takes longer than an answer, and the same is asked of many views
def _designed(statistic: str, grid: Values | None, epsilon: Epsilon, stated: Prior) -> Design:
    if statistic in BOUNDED:
        return _on_a_grid(statistic, grid, epsilon, stated)
    if stated.low is None and stated.high is None:
        return _unbounded(statistic, grid, epsilon, stated)
    _, _, step = _grid(statistic, grid, stated)
    if stated.step is not None or step == _own_step(grid) or stated.by not in UNBOUNDED:
        return _on_a_grid(statistic, grid, epsilon, stated)
    # More values than a table of rows and columns can hold: noise on the lattice of all of them, and the prior afterwards.
    assert stated.low is not None
    assert stated.high is not None
    fine = _unbounded(statistic, grid, epsilon, stated, within=(Fraction(stated.low), Fraction(stated.high)))
    if stated.by != "auto":
        return fine
    coarse = _on_a_grid(statistic, grid, epsilon, stated)
    return fine if fine.expected_loss <= coarse.expected_loss else coarse


def _users_own(statistic: str, grid: Values | None, mechanism: FiniteMechanism) -> Design:
    """A table that the user brings; the door refuses it unless it keeps epsilon."""
    flat = prior("flat")
    chances = flat.probabilities(mechanism.inputs)
    return Design(
        noise=mechanism,
        name="a mechanism of your own",
        why="It was given as a table; what is expected of it is under a flat prior.",
        stated=flat,
        steps=mechanism.steps(sensitivity_of(statistic, grid)),
        expected_loss=mechanism.expected_loss(chances, flat.loss),
        prior_loss=None,
        probabilities=chances,
        coarse=True,
    )


def as_asked(statistic: str, grid: Values | None, noise: FiniteTable | LatticeNoise, epsilon: Epsilon) -> Design:
    """The noise of a question that stands there already, under a flat prior."""
    if isinstance(noise, FiniteTable):
        return _users_own(statistic, grid, FiniteMechanism.of(noise))
    flat, step = prior("flat"), Fraction(noise.step)
    steps = max(math.ceil(sensitivity_of(statistic, grid) / step), 1)
    if noise.kind == "geometric":
        loss = geometric_loss(steps, epsilon, flat.loss)
    else:
        loss = staircase_loss(steps, noise.inner, epsilon, flat.loss)
    coarse = statistic == "mean" or bool(_own_step(grid) % step)
    return Design(noise, noise.kind, "It was asked as it is.", flat, steps, loss * float(step), None, coarse=coarse)


def _on_a_grid(statistic: str, grid: Values | None, epsilon: Epsilon, stated: Prior) -> Design:
    """A mechanism on a finite grid of answers."""
    low, high, step = _grid(statistic, grid, stated)
    setting = Setting(low, high, step, sensitivity_of(statistic, grid), epsilon)
    chosen = pick(setting, stated)
    taken = chosen.candidate
    assert isinstance(taken.mechanism, FiniteMechanism)
    coarse = statistic == "mean" or _misses_values(statistic, grid, low, step)
    own = Fraction(0) if statistic == "mean" else _own_step(grid)
    losses = {found.name: found.expected_loss for found in chosen.all}
    expected = _with_rounding(taken.expected_loss, step, own, stated.loss) if coarse else taken.expected_loss
    too_coarse = ""
    if coarse and expected > losses[LAPLACE]:
        too_coarse = f"With what rounding to steps of {step} adds, plain Laplace noise is nearer: give a smaller step."
    return Design(
        noise=taken.mechanism,
        name=taken.name,
        why=_joined(chosen.why, too_coarse, _when_the_default_is_better(statistic, grid, epsilon, expected, stated)),
        stated=stated,
        steps=taken.mechanism.steps(setting.sensitivity),
        expected_loss=expected,
        prior_loss=losses[PRIOR_ALONE],
        probabilities=stated.probabilities(taken.mechanism.inputs),
        coarse=coarse,
    )


def _with_rounding(loss: float, step: Fraction, own: Fraction, kind: str) -> float:
    """With about what rounding to the grid adds, if values are spread evenly between its points."""
    if kind == "miss":
        return 1 - (1 - loss) * min(float(own / step), 1.0) if own else loss
    return math.hypot(loss, float(step) / 4) if kind == "absolute" else loss + float(step) ** 2 / 12


def _stated(mechanism: str | Prior) -> Prior:
    if isinstance(mechanism, Prior):
        return mechanism
    if mechanism not in MECHANISMS:
        known = mechanism if isinstance(mechanism, str) and ":" in mechanism else "normal:40:10"
        raise RequestError(
            f"The design is one of {', '.join(MECHANISMS)}, or what is known beforehand: "
            f"dm.prior({known!r:.60}). Got {mechanism!r:.60}."
        )
    return prior("flat", by=mechanism)


def _own_step(grid: Values | None) -> Fraction:
    """The unit that counts and sums come in."""
    return Fraction(1) if grid is None else ValueGrid.of(grid, centred=False).unit


def _misses_values(statistic: str, grid: Values | None, low: Fraction, step: Fraction) -> bool:
    """Whether the statistic has values between the points of this grid."""
    if grid is None or statistic not in BOUNDED:
        return bool(low % step or _own_step(grid) % step)
    return bool((grid.low - low) % step or grid.step % step)


def _grid(statistic: str, grid: Values | None, stated: Prior) -> tuple[Fraction, Fraction, Fraction]:
    """The grid of answers: what the prior says of it, else the attribute's own, made coarser or (for means) finer."""
    if statistic in BOUNDED:
        assert grid is not None
        lowest, highest, own = grid.low, grid.high, grid.step
        low = lowest if stated.low is None else Fraction(stated.low)
        high = highest if stated.high is None else Fraction(stated.high)
    else:
        if stated.low is None or stated.high is None:
            raise RequestError(f"A {statistic} has no bounds of its own: give the prior both low and high.")
        low, high = Fraction(stated.low), Fraction(stated.high)
        own = _own_step(grid)
    if low >= high:
        raise RequestError(f"The range of a {statistic} needs low < high. Got {low} and {high}.")
    if statistic in BOUNDED and (low >= highest or high <= lowest):
        raise RequestError(f"The {statistic} lies between {lowest} and {highest}: a range of {low} to {high} misses that.")
    known = stated.support() if stated.step is None else None
    finest = own
    if known is not None:
        # Where it lies is where points are needed: values outside are clamped, which brings no two farther apart.
        narrowed = (
            max(low, low + own * math.floor((known[0] - low) / own)),
            min(high, low + own * math.ceil((known[1] - low) / own)),
        )
        low, high = narrowed if narrowed[0] < narrowed[1] else (low, high)
        if statistic == "mean":
            finest = own / max(math.ceil(4 * own / known[2]), 1)
    steps = math.ceil((high - low) / finest)
    step = finest * math.ceil(Fraction(steps, MOST_PROGRAM_POINTS - 1))
    if statistic == "mean" and steps < FEWEST_POINTS - 1:
        step = step / math.ceil(Fraction(FEWEST_POINTS - 1, steps))
    if stated.step is not None:
        step = Fraction(stated.step)
    return low, low + step * math.ceil((high - low) / step), step  # the last point may lie beyond: none is left out


def _when_the_default_is_better(statistic: str, grid: Values | None, epsilon: Epsilon, loss: float, stated: Prior) -> str:
    """From how many rows on the answer without `design` is about as good: its noise shrinks with the rows."""
    if statistic not in ("mean", "median") or grid is None or stated.loss == "miss":
        return ""
    error = math.sqrt(loss) if stated.loss == "squared" else loss
    for_one_row = float(grid.high - grid.low) / float(epsilon)
    if statistic == "median":
        for_one_row *= math.log(max(grid.size, 2))
    rows = for_one_row / max(error, 1e-12)
    if rows > MOST_ROWS:
        return ""
    way = "noisy count and sum" if statistic == "mean" else "choice by rank, if values are spread evenly"
    return f"Without a mechanism the {statistic} is told by {way}: better from about {_rounded(rows)} rows on."


def _rounded(number: float) -> str:
    digits = max(len(str(math.ceil(number))) - 2, 0)
    return f"{math.ceil(number / 10**digits) * 10**digits:,}"


# -- without bounds ----------------------------------------------------------------------------------------------------


def _unbounded(
    statistic: str,
    grid: Values | None,
    epsilon: Epsilon,
    stated: Prior,
    *,
    within: tuple[Fraction, Fraction] | None = None,
) -> Design:
    """Geometric or staircase noise on the lattice of the statistic's own values, whichever is expected to be nearer."""
    if within is None and (stated.by not in UNBOUNDED or stated.text != "flat"):
        raise RequestError(
            f"A {statistic} has no bounds of its own, and this needs some: give them by "
            f"dm.prior('flat', low=0, high=1000, by={stated.by!r}), or use one of {', '.join(UNBOUNDED)}."
        )
    own = _own_step(grid)
    step = own if stated.step is None else Fraction(stated.step)
    coarse = bool(own % step)
    steps = max(math.ceil(sensitivity_of(statistic, grid) / step), 1)
    inner = best_inner(steps, epsilon, stated.loss)
    noises = {kind: LatticeNoise(exact_text(step), kind, reach) for kind, reach in (("geometric", 0), ("staircase", inner))}
    known = {
        kind: None if within is None else known_range(noise, steps, epsilon, *within, stated)
        for kind, noise in noises.items()
    }
    losses = {
        "geometric": geometric_loss(steps, epsilon, stated.loss),
        "staircase": staircase_loss(steps, inner, epsilon, stated.loss),
    }
    losses |= {kind: found.expected_loss() for kind, found in known.items() if found is not None}
    taken = stated.by
    if taken == "auto":
        taken = "geometric" if losses["geometric"] <= losses["staircase"] * (1 + 1e-9) else "staircase"
    other = "staircase" if taken == "geometric" else "geometric"
    unit = 1.0 if stated.loss == "miss" else float(step) ** (2 if stated.loss == "squared" else 1)
    compared = f"expected {stated.loss} loss {losses[taken] * unit:.4g}, with {other} noise {losses[other] * unit:.4g}"
    if steps == 1 and stated.by == "auto":
        why = f"One row moves the answer by one step, where geometric noise is the best for every prior ({compared})."
    else:
        why = f"{'Taken as the nearer one' if stated.by == 'auto' else 'Asked for by name'}: {compared}."
    found = known[taken]
    expected, alone, after = losses[taken] * unit, None, ""
    if found is not None:
        alone, after = found.alone() * unit, REMAP if found.remap else ", clamped"
        beside = beside_the_prior(expected, alone)
        why = _joined(why, f"It {'' if beside == LOSES else 'is '}{beside}, which costs no epsilon." if beside else "")
    elif within is not None:
        why = _joined(why, "There are too many values for a prior and bounds: these were not used.")
    expected = _with_rounding(expected, step, own, stated.loss) if coarse else expected
    return Design(noises[taken], taken + after, why, stated, steps, expected, alone, coarse=coarse, known=found)


def _joined(*sentences: str) -> str:
    return " ".join(sentence.strip() for sentence in sentences if sentence.strip())
