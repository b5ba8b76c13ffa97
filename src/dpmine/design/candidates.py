"""Mechanisms for one question side by side, and which of them to take. Public facts decide, so the choice is free."""

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.design.caching import cached
from dpmine.design.constructions import (
    clamped_staircase,
    heuristic,
    prior_alone,
    randomised_response,
    staircase_matrix,
    truncated_geometric,
)
from dpmine.design.finite_mechanisms import FiniteMechanism, loss_table
from dpmine.design.linear_programs import bayesian_optimum, has_solver, risk_averse_optimum
from dpmine.design.priors import Prior
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import Floats

PRIOR_ALONE = "prior alone"
LAPLACE = "laplace, clamped"
REMAP = " + remap"
LOSES = "loses to answering the prior alone"
HARDLY = 0.01  # relative gain over the prior alone below which we say that it is hardly one

_SAME = 1e-6  # relative: losses nearer than this are equal, and the simpler mechanism is taken


@dataclass(frozen=True)
class Candidate:
    """One mechanism and what is expected of it. The comparison with plain Laplace noise has no mechanism to draw from."""

    name: str
    mechanism: FiniteMechanism | None
    expected_loss: float
    worst_loss: float
    note: str = ""


@dataclass(frozen=True)
class Chosen:
    candidate: Candidate
    why: str
    all: tuple[Candidate, ...]


def candidates(setting: Setting, prior: Prior) -> tuple[Candidate, ...]:
    """All mechanisms for this setting, by rising expected loss under the prior."""
    return _compared(setting, prior, (*_SIMPLE, "optimal", "risk-averse"))


def pick(setting: Setting, prior: Prior) -> Chosen:
    """The mechanism of least expected loss among those the prior allows; of equally good ones the simplest."""
    auto = [*_SIMPLE, "optimal"] if has_solver() else list(_SIMPLE)
    found = _compared(setting, prior, auto if prior.by == "auto" else [prior.by], but_unsolved=prior.by == "auto")
    allowed = [each for each in found if each.name not in (PRIOR_ALONE, LAPLACE)]
    least = allowed[0].expected_loss
    equal = [each for each in allowed if each.expected_loss <= least + _SAME * max(least, 1e-12)]
    taken = min(equal, key=lambda each: _ORDER.index(each.name))
    return Chosen(taken, _why(setting, prior, taken, found), found)


def _compared(setting: Setting, prior: Prior, names: Iterable[str], *, but_unsolved: bool = False) -> tuple[Candidate, ...]:
    """Mechanisms of these names beside the prior alone and Laplace noise; perhaps without an optimum that is not found."""
    probabilities = prior.probabilities(setting.grid)
    alone = _alone(setting, prior, probabilities)
    made = [alone, _laplace(setting, prior, probabilities)]
    for name in names:
        # A program that cannot be solved, for a tiny epsilon or a large grid, is one candidate less.
        with suppress(RequestError) if but_unsolved and name == "optimal" else nullcontext():
            made += _variants(name, _BUILDERS[name](setting, prior, probabilities), prior, probabilities)
    noted = [_noted(each, alone.expected_loss) for each in made]
    return tuple(sorted(noted, key=lambda each: (each.expected_loss, _ORDER.index(each.name))))


def _variants(name: str, mechanism: FiniteMechanism, prior: Prior, probabilities: Floats) -> list[Candidate]:
    """The mechanism, and (but for those that are remapped already or are not meant for the prior) its best remap."""
    made = [_measured(name, mechanism, prior, probabilities)]
    if name not in ("optimal", "risk-averse"):
        made.append(_measured(name + REMAP, mechanism.remapped(probabilities, prior.loss), prior, probabilities))
    return made


def _measured(name: str, mechanism: FiniteMechanism, prior: Prior, probabilities: Floats) -> Candidate:
    among = probabilities > 0
    expected = mechanism.expected_loss(probabilities, prior.loss)
    return Candidate(name, mechanism, expected, mechanism.worst_loss(prior.loss, among))


def _noted(candidate: Candidate, alone: float) -> Candidate:
    note = beside_the_prior(candidate.expected_loss, alone)
    if candidate.name == PRIOR_ALONE:
        note = "looks at no data and costs nothing"
    elif note != LOSES and candidate.mechanism is not None and len(candidate.mechanism.outputs) == 1:
        note = "answers the same whatever the data"
    return replace(candidate, note=note)


def beside_the_prior(expected: float, alone: float) -> str:
    """What to say of an expected loss beside that of answering the prior alone; nothing if it is clearly smaller."""
    if expected > alone * (1 + _SAME):
        return LOSES
    return "hardly better than answering the prior alone" if expected >= alone * (1 - HARDLY) else ""


def _why(setting: Setting, prior: Prior, taken: Candidate, found: tuple[Candidate, ...]) -> str:
    alone = next(each for each in found if each.name == PRIOR_ALONE)
    laplace = next(each for each in found if each.name == LAPLACE)
    asked = "least expected loss of all candidates" if prior.by == "auto" else "asked for by name"
    parts = [
        f"{taken.name}: {asked}; expected {prior.loss} loss {taken.expected_loss:.4g} under the prior {prior} "
        f"(at worst {taken.worst_loss:.4g}), clamped Laplace noise {laplace.expected_loss:.4g}, the prior alone "
        f"{alone.expected_loss:.4g}."
    ]
    if prior.by == "auto" and setting.steps == 1 and taken.name.startswith("geometric"):
        parts.append("One row moves the answer by one step, where geometric noise and a remap are optimal for every prior.")
    elif prior.by == "auto" and not has_solver():
        parts.append("The optimum was not computed: that needs scipy. Run: pip install 'dpmine[design]'.")
    if taken.note == LOSES:
        parts.append(f"It loses to answering the prior alone, {alone.mechanism.outputs[0]}, which costs no epsilon.")  # type: ignore[union-attr]
    elif taken.note.startswith("answers"):
        parts.append("It answers the same whatever the data: at this epsilon nothing beats the prior alone, which is free.")
    elif taken.note:
        parts.append("That is hardly better than answering the prior alone, which costs no epsilon.")
    if taken.expected_loss > laplace.expected_loss * (1 + _SAME):
        parts.append("Plain Laplace noise would be nearer on average.")
    return " ".join(parts)


# -- how each is made --------------------------------------------------------------------------------------------------


def _alone(setting: Setting, prior: Prior, probabilities: Floats) -> Candidate:
    losses = probabilities @ loss_table(prior.loss, setting.grid, setting.grid)
    guess = int(np.argmax(losses <= losses.min() * (1 + 1e-12)))
    return _measured(PRIOR_ALONE, prior_alone(setting, guess), prior, probabilities)


def _laplace(setting: Setting, prior: Prior, probabilities: Floats) -> Candidate:
    """Plain Laplace noise of real numbers, clamped to the range: the usual answer, for comparison."""
    losses = clamped_laplace_losses(setting, prior.loss)
    return Candidate(LAPLACE, None, float(probabilities @ losses), float(losses[probabilities > 0].max()))


def clamped_laplace_losses(setting: Setting, loss: str) -> Floats:
    """For each grid point the expected loss of Laplace noise clamped to the range; a miss is more than half a step off."""
    scale = float(setting.sensitivity / setting.epsilon.fraction)
    grid = np.array([float(point) for point in setting.grid])
    sides = np.stack((float(setting.high) - grid, grid - float(setting.low)))
    if loss == "absolute":
        each = scale * -np.expm1(-sides / scale) / 2
    elif loss == "squared":
        # The integral of 2 t P(noise > t) from 0 to the end, with P(noise > t) = exp(-t / scale) / 2.
        each = scale * (scale - np.exp(-sides / scale) * (scale + sides))
    else:
        each = np.where(sides > 0, math.exp(-float(setting.step) / 2 / scale) / 2, 0.0)
    losses: Floats = each.sum(axis=0)
    return losses


def _best_staircase(setting: Setting, prior: Prior, probabilities: Floats) -> FiniteMechanism:
    """The staircase whose first stair is best under this prior, among up to 65 lengths."""
    losses = loss_table(prior.loss, setting.grid, setting.grid) * probabilities[:, None]
    tried = sorted({round(share * (setting.steps - 1) / 64) for share in range(65)})
    inner = min(tried, key=lambda length: float(np.sum(staircase_matrix(setting, length) * losses)))
    return clamped_staircase(setting, inner)


def _best(setting: Setting, prior: Prior, probabilities: Floats) -> FiniteMechanism:
    if setting.steps == 1:  # geometric noise and a remap attain the optimum (Ghosh, Roughgarden, Sundararajan)
        return truncated_geometric(setting).remapped(probabilities, prior.loss)

    def build() -> FiniteMechanism:
        return bayesian_optimum(setting, probabilities, prior.loss).mechanism

    return cached("optimal", setting, (prior.text, prior.loss), build)


def _risk_averse(setting: Setting, prior: Prior, probabilities: Floats) -> FiniteMechanism:
    among = probabilities > 0

    def build() -> FiniteMechanism:
        return risk_averse_optimum(setting, prior.loss, among).mechanism

    return cached("risk-averse", setting, (prior.loss, "".join("01"[int(each)] for each in among)), build)


_BUILDERS: dict[str, Callable[[Setting, Prior, Floats], FiniteMechanism]] = {
    "geometric": lambda setting, prior, probabilities: truncated_geometric(setting),
    "staircase": _best_staircase,
    "heuristic": lambda setting, prior, probabilities: heuristic(setting),
    "randomised-response": lambda setting, prior, probabilities: randomised_response(setting),
    "optimal": _best,
    "risk-averse": _risk_averse,
}
_SIMPLE = ("geometric", "staircase", "heuristic", "randomised-response")
_ORDER = (PRIOR_ALONE, *(name + tail for name in _SIMPLE for tail in ("", REMAP)), "optimal", "risk-averse", LAPLACE)
