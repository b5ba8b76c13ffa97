"""What a designer looks at: candidates side by side, their losses at other epsilons, and what colluders make of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpmine.base.epsilon import Epsilon
from dpmine.base.progress import QUIET, Progress
from dpmine.design.candidates import LAPLACE, PRIOR_ALONE, Candidate, Chosen, candidates, pick
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.linear_programs import has_solver
from dpmine.design.priors import Prior
from dpmine.design.setting import Setting

EPSILONS = ("0.1", "0.2", "0.3", "0.5", "0.75", "1", "1.5", "2", "3", "4", "5")
FEW_EPSILONS = ("0.1", "0.5", "1", "2", "5")
FINE_GRID = 101  # points: on finer grids an optimum takes up to half a minute, so curves have fewer points
COLLUDERS = (1, 5, 20, 100, 400)
COLLUDING = ("heuristic", "geometric", "optimal")
RUNS, SEED = 10_000, 1  # of simulated colluders: a fixed seed, so that a page comes out alike each time
QUICK_POINTS = 41  # up to here the risk-averse optimum takes a second; for 201 points, some ten


@dataclass(frozen=True)
class Curve:
    """Losses of one candidate along epsilon, or errors of its colluders along their number."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True)
class Look:
    """All there is to see of one design problem; curves and colluders' errors are empty where they were not asked for."""

    setting: Setting
    prior: Prior
    candidates: tuple[Candidate, ...]
    chosen: Chosen
    colluders: int | None
    colluders_errors: dict[str, float]
    losses: tuple[Curve, ...] = ()
    collusion: tuple[Curve, ...] = ()


def look_at(
    setting: Setting,
    prior: Prior,
    *,
    colluders: int | None = None,
    with_curves: bool = False,
    progress: Progress = QUIET,
) -> Look:
    """Design everything for this setting and prior; with curves also for other epsilons and numbers of colluders."""
    along = _epsilons(setting) if with_curves else (setting.epsilon,)
    counts = sorted({*COLLUDERS, *([colluders] if colluders else [])}) if with_curves else []
    found = {each: compared(replace(setting, epsilon=each), prior) for each in progress.steps(along, "designs")}
    chosen = pick(setting, prior)
    side_by_side = _with(chosen, found[setting.epsilon])
    pooled = {} if colluders is None else _colluders_errors(setting, prior, side_by_side, colluders)
    chosen_ones = [each for name in COLLUDING for each in side_by_side if each.name == name]
    collusion = tuple(_collusion(setting, prior, each, counts) for each in chosen_ones if counts)
    return Look(setting, prior, side_by_side, chosen, colluders, pooled, _losses(found) if with_curves else (), collusion)


def compared(setting: Setting, prior: Prior) -> tuple[Candidate, ...]:
    """All candidates by rising expected loss; without optima where no solver is, the risk-averse one only on small grids."""
    if has_solver() and setting.points <= QUICK_POINTS:
        return candidates(setting, prior)
    return pick(setting, replace(prior, by="auto")).all


def _with(chosen: Chosen, found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """What was asked for by name is shown, even if it would not be shown otherwise."""
    known = {each.name for each in found}
    more = [each for each in chosen.all if each.name not in known]
    return tuple(sorted((*found, *more), key=lambda each: each.expected_loss))


def keeps_exactly(candidate: Candidate, setting: Setting) -> bool | None:
    """Whether the exact check passes; None for noise of real numbers, which is no table that could be checked."""
    if not isinstance(candidate.mechanism, FiniteMechanism):
        return None
    epsilon = Epsilon(0) if candidate.name == PRIOR_ALONE else setting.epsilon
    return candidate.mechanism.keeps(epsilon, setting.sensitivity)


def colluders_error(mechanism: FiniteMechanism, setting: Setting, prior: Prior, count: int) -> float:
    """How far the likeliest true value given so many independent answers is from the true one, on average."""
    return mechanism.colluders_error(count, prior.probabilities(setting.grid), runs=RUNS, seed=SEED)


def _epsilons(setting: Setting) -> tuple[Epsilon, ...]:
    along = EPSILONS if setting.points <= FINE_GRID else FEW_EPSILONS
    return tuple(sorted({*map(Epsilon.parse, along), setting.epsilon}))


def _losses(found: Mapping[Epsilon, tuple[Candidate, ...]]) -> tuple[Curve, ...]:
    """One curve for each name that is there at every epsilon, in the order of the last one's losses."""
    xs = tuple(map(float, found))
    tables = [{each.name: each.expected_loss for each in row} for row in found.values()]
    whole = [name for name in tables[-1] if all(name in row for row in tables)]
    return tuple(Curve(name, xs, tuple(row[name] for row in tables)) for name in whole)


def _colluders_errors(setting: Setting, prior: Prior, found: Iterable[Candidate], count: int) -> dict[str, float]:
    """For every candidate that looks at data and is a table."""
    return {
        each.name: colluders_error(each.mechanism, setting, prior, count)
        for each in found
        if each.name not in (PRIOR_ALONE, LAPLACE) and isinstance(each.mechanism, FiniteMechanism)
    }


def _collusion(setting: Setting, prior: Prior, candidate: Candidate, counts: Sequence[int]) -> Curve:
    assert isinstance(candidate.mechanism, FiniteMechanism)
    errors = tuple(colluders_error(candidate.mechanism, setting, prior, count) for count in counts)
    return Curve(candidate.name, tuple(map(float, counts)), errors)
