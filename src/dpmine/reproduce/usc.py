"""The two figures of a talk on optimal mechanisms and side information (USC, QED group, 2016).

Answers lie in [-10, 10] and one row moves them by 10; the prior is a Gaussian, truncated to the range. The talk's heuristic
rounds to -10, 0 or 10 and adds truncated geometric noise on these three points. The figures are lost, and with them the
parameters of the priors: deviations 1, 3 and 6 are ours. Answers are whole numbers here, and losses of the trade-off are
expected absolute errors, computed and not simulated.

Colluders hold an independent answer each and pool them. As in the talk they guess the likeliest true value (for Laplace
noise the median of their answers). Of the heuristic's inputs, those that are rounded alike are equally likely: they name the
point that these are rounded to. Colluders who know the prior guess the median of what it becomes, which is better.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.public_random import public_generator
from dpmine.design.candidates import LAPLACE, PRIOR_ALONE, REMAP, Candidate, pick
from dpmine.design.constructions import heuristic, rounded_places, truncated_geometric
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.linear_programs import has_solver
from dpmine.design.priors import Prior
from dpmine.design.setting import Setting as Question
from dpmine.noise.finite_tables import Floats
from dpmine.reproduce.claims import mean_of
from dpmine.reproduce.experiments import (
    AGREES,
    DISAGREES,
    Case,
    Claim,
    Durations,
    Experiment,
    Finding,
    Measures,
    Outcome,
    Point,
    Scene,
    grid,
)
from dpmine.reproduce.pictures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Picture, Style

SLIDES = "USC QED group, slides on optimal mechanisms and side information, 2016"
TRADEOFF, COLLUSION = "usc-tradeoff", "usc-collusion"
LOW, HIGH, SENSITIVITY = Fraction(-10), Fraction(10), Fraction(10)
DEVIATIONS = (1, 3, 6)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
COLLUDERS = (1, 5, 20, 100, 400)
COLLUDERS_EPSILON = 1.0
SIMULATED = 2_000  # cases in one run
RUNS = 10

HEURISTIC, GEOMETRIC, STAIRCASE, OPTIMUM = "heuristic", "geometric", "staircase", "optimal"
ROUNDING = "rounding, no noise"
INFORMED = "heuristic, prior known"
TRADEOFF_STYLES = {
    HEURISTIC: Style(RED, "X"),
    HEURISTIC + REMAP: Style(RED, "x", "--"),
    GEOMETRIC: Style(ORANGE, "s"),
    GEOMETRIC + REMAP: Style(ORANGE, "s", "--"),
    LAPLACE: Style(SKY, "v"),
    STAIRCASE: Style(GREEN, "D"),
    OPTIMUM: Style(BLUE, "o"),
    PRIOR_ALONE: Style(BLACK, "", ":"),
}
COLLUSION_STYLES = {
    HEURISTIC: Style(RED, "X"),
    INFORMED: Style(PURPLE, "P", "--"),
    GEOMETRIC: Style(ORANGE, "s"),
    LAPLACE: Style(SKY, "v"),
    OPTIMUM: Style(BLUE, "o"),
    ROUNDING: Style(GREY, "", ":"),
}

LITTLE = 0.1  # relative: what differs less counts as the same
MUCH = 0.2  # relative: a significant improvement is at least so large somewhere
LOW_PRIVACY, HIGH_PRIVACY = 1.0, 0.1  # epsilon from, and epsilon at
MANY = 100  # colluders from whom on the curve should be level


# -- the trade-off -------------------------------------------------------------------------------------------------------


def question(epsilon: float, step: Fraction = Fraction(1)) -> Question:
    return Question(LOW, HIGH, step, SENSITIVITY, Epsilon.parse(epsilon))


def prior_of(point: Point) -> Prior:
    return Prior(f"normal:0:{point['deviation']}")


def designs(scene: Scene) -> dict[str, Candidate]:
    """All mechanisms of the talk, and what it left open: remaps, the optimum, and answering the prior alone."""
    return _designs(float(scene.point["epsilon"]), prior_of(scene.point))


def _designs(epsilon: float, prior: Prior) -> dict[str, Candidate]:
    if not has_solver():
        raise RequestError("This experiment needs scipy. Run: pip install 'dpmine[design]'.")
    return {each.name: each for each in pick(question(epsilon), prior).all}


def expected_loss(case: Case, found: dict[str, Candidate]) -> Measures:
    return {"loss": found[case.algorithm].expected_loss}


def gains_at_low_privacy(outcome: Outcome) -> Finding | None:
    """The heuristic against clamped Laplace noise, for the narrowest prior."""
    points = [point for point in _along(outcome, DEVIATIONS[0]) if float(point["epsilon"]) >= LOW_PRIVACY]
    if not points:
        return None
    gains = [_gain(outcome, point) for point in points]
    good = min(gains) > 0 and max(gains) >= MUCH
    return Finding(AGREES if good else DISAGREES, f"deviation {DEVIATIONS[0]}: {_against_laplace(outcome, points)}")


def is_for_narrow_priors(outcome: Outcome) -> Finding | None:
    """The gain is larger for the narrowest prior than for the widest, at every epsilon from 1."""
    narrow, wide = (_along(outcome, deviation) for deviation in (DEVIATIONS[0], DEVIATIONS[-1]))
    pairs = [pair for pair in zip(narrow, wide, strict=False) if float(pair[0]["epsilon"]) >= LOW_PRIVACY]
    if not pairs:
        return None
    good = all(_gain(outcome, first) > _gain(outcome, second) for first, second in pairs)
    shown = _against_laplace(outcome, [second for _, second in pairs])
    return Finding(AGREES if good else DISAGREES, f"deviation {DEVIATIONS[-1]}: {shown}")


def converges_at_high_privacy(outcome: Outcome) -> Finding | None:
    """Noise without a remap costs about the same whatever its kind; what knows the prior stays far below."""
    points = [point for point in outcome.points if point["epsilon"] == HIGH_PRIVACY]
    if not points:
        return None
    spreads, shown = [], []
    for point in points:
        plain = [mean_of(outcome, name, point) for name in (HEURISTIC, GEOMETRIC, STAIRCASE, LAPLACE)]
        spreads.append(max(plain) / min(plain) - 1)
        best, alone = (mean_of(outcome, name, point) for name in (OPTIMUM, PRIOR_ALONE))
        shown.append(
            f"deviation {point['deviation']}: {min(plain):.2f} to {max(plain):.2f}, but optimum {best:.2f} and "
            f"prior alone {alone:.2f}"
        )
    verdict = AGREES if max(spreads) <= LITTLE else DISAGREES
    return Finding(verdict, f"plain noise at epsilon {HIGH_PRIVACY}: {'; '.join(shown)}")


def rounding_is_a_good_idea(outcome: Outcome) -> Finding | None:
    """It would be if it did better than not looking at the data at all."""
    points = _along(outcome, DEVIATIONS[0])
    if not points:
        return None
    worse = [point for point in points if mean_of(outcome, HEURISTIC, point) > mean_of(outcome, PRIOR_ALONE, point)]
    numbers = [
        f"{mean_of(outcome, HEURISTIC, point):.2f} (remapped {mean_of(outcome, HEURISTIC + REMAP, point):.2f}, optimum "
        f"{mean_of(outcome, OPTIMUM, point):.2f}) at epsilon {point['epsilon']:g}"
        for point in points
        if float(point["epsilon"]) >= LOW_PRIVACY
    ]
    alone = mean_of(outcome, PRIOR_ALONE, points[0])
    found = (
        f"deviation {DEVIATIONS[0]}: raw it loses to the prior alone ({alone:.2f}) at {len(worse)} of {len(points)} "
        f"epsilons: {', '.join(numbers)}"
    )
    return Finding(DISAGREES if worse else AGREES, found)


def _along(outcome: Outcome, deviation: int) -> list[Point]:
    return sorted((p for p in outcome.points if p["deviation"] == deviation), key=lambda p: float(p.get("epsilon", 0)))


def _gain(outcome: Outcome, point: Point) -> float:
    return 1 - mean_of(outcome, HEURISTIC, point) / mean_of(outcome, LAPLACE, point)


def _against_laplace(outcome: Outcome, points: list[Point]) -> str:
    shown = [
        f"{mean_of(outcome, HEURISTIC, point):.2f} against {mean_of(outcome, LAPLACE, point):.2f} at epsilon "
        f"{point['epsilon']:g} ({-_gain(outcome, point):+.0%})"
        for point in points
    ]
    return f"heuristic against clamped Laplace noise {', '.join(shown)}"


# -- collusion -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pool:
    """One prior and the mechanisms whose answers are pooled; `rough` is the heuristic on its three points."""

    question: Question
    prior: Floats
    found: dict[str, Candidate]
    rough: FiniteMechanism
    rounded: np.ndarray[tuple[int], np.dtype[np.int64]]

    @property
    def grid(self) -> Floats:
        return np.array([float(point) for point in self.question.grid])

    @property
    def roughly(self) -> Floats:
        """What each true value is rounded to."""
        points: Floats = np.array([float(point) for point in self.rough.inputs])[self.rounded]
        return points


def pool(scene: Scene) -> Pool:
    asked, prior = question(COLLUDERS_EPSILON), prior_of(scene.point)
    rough = truncated_geometric(question(COLLUDERS_EPSILON, SENSITIVITY))
    places = rounded_places(asked.points, asked.steps)
    return Pool(asked, prior.probabilities(asked.grid), _designs(COLLUDERS_EPSILON, prior), rough, places)


def guess_error(case: Case, pooled: Pool) -> Measures:
    """The mean distance of the colluders' guess from the true value."""
    if case.algorithm == ROUNDING:
        return {"error": float(pooled.prior @ np.abs(pooled.roughly - pooled.grid))}
    count = int(case.point["colluders"])
    if case.algorithm in (HEURISTIC, GEOMETRIC, OPTIMUM):
        mechanism = pooled.found[case.algorithm].mechanism
        assert isinstance(mechanism, FiniteMechanism)
        return {"error": mechanism.colluders_error(count, pooled.prior, runs=SIMULATED, seed=case.scene.seed)}
    generator = public_generator(case.scene.seed)
    truths = generator.choice(len(pooled.prior), size=SIMULATED, p=pooled.prior)
    if case.algorithm == LAPLACE:
        noise = generator.laplace(0, float(SENSITIVITY) / COLLUDERS_EPSILON, (SIMULATED, count))
        guesses = np.clip(pooled.grid[truths] + np.median(noise, axis=1), float(LOW), float(HIGH))
    else:
        counts = generator.multinomial(count, pooled.rough.matrix()[pooled.rounded[truths]])
        guesses = _informed(pooled, counts)
    return {"error": float(np.mean(np.abs(guesses - pooled.grid[truths])))}


def _informed(pooled: Pool, counts: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Floats:
    """The median of what the prior becomes given the answers: the best guess of colluders who know it."""
    logs = counts @ np.log(pooled.rough.matrix()[pooled.rounded]).T + np.log(np.maximum(pooled.prior, 1e-300))
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    below = np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True)
    medians: Floats = pooled.grid[np.argmax(below >= 0.5, axis=1)]
    return medians


def curve_is_level(outcome: Outcome) -> Finding | None:
    """From many colluders on the error stays where rounding alone leaves it; that of geometric noise goes on falling."""
    level, shown = [], []
    for deviation in DEVIATIONS:
        points = _by_colluders(outcome, deviation)
        late = [point for point in points if _count(point) >= MANY]
        if not late:
            continue
        floor = mean_of(outcome, ROUNDING, points[0])
        level += [abs(mean_of(outcome, HEURISTIC, point) / floor - 1) <= LITTLE for point in late]
        shown.append(
            f"deviation {deviation}: {_series(outcome, HEURISTIC, points)} (rounding alone {floor:.2f}); "
            f"geometric {_series(outcome, GEOMETRIC, points)}"
        )
    if not shown:
        return None
    return Finding(AGREES if all(level) else DISAGREES, f"for {_counts(outcome)} colluders, {'; '.join(shown)}")


def is_collusion_proof(outcome: Outcome) -> Finding | None:
    """What k answers cost is computed from the table of the heuristic, exactly."""
    points = _by_colluders(outcome, DEVIATIONS[0])
    if not points:
        return None
    answers, last = 5, {int(point["deviation"]): point for point in sorted(outcome.points, key=_count)}
    needed = heuristic(question(COLLUDERS_EPSILON)).repeated(answers).epsilon(SENSITIVITY)
    floors, informed = (
        ", ".join(f"{mean_of(outcome, name, point):.2f}" for point in last.values()) for name in (ROUNDING, INFORMED)
    )
    found = (
        f"{answers} answers of epsilon {COLLUDERS_EPSILON:g} need epsilon {needed:.2f} together: colluders learn the "
        f"rounded answer, and what stays hidden is the distance to it ({floors} at deviations {', '.join(map(str, last))}); "
        f"{_count(points[-1])} who know the prior are nearer yet ({informed})"
    )
    return Finding(DISAGREES if needed > answers * COLLUDERS_EPSILON * (1 - LITTLE) else AGREES, found)


def _by_colluders(outcome: Outcome, deviation: int) -> list[Point]:
    return sorted((p for p in outcome.points if p["deviation"] == deviation), key=_count)


def _series(outcome: Outcome, algorithm: str, points: list[Point]) -> str:
    return " ".join(f"{mean_of(outcome, algorithm, point):.2f}" for point in points)


def _counts(outcome: Outcome) -> str:
    return ", ".join(str(count) for count in sorted({_count(point) for point in outcome.points}))


def _count(point: Point) -> int:
    return int(point["colluders"])


# -- the experiments -----------------------------------------------------------------------------------------------------


def usc_experiments() -> tuple[Experiment, ...]:
    return _tradeoff(), _collusion()


NOTE = "range [-10, 10], sensitivity 10, whole numbers; the talk's priors are lost: deviations 1, 3 and 6 are ours"


def _tradeoff() -> Experiment:
    return Experiment(
        name=TRADEOFF,
        title="What side information buys: expected error against epsilon for Gaussian priors",
        source=f"{SLIDES}, utility-privacy tradeoff",
        shows="a narrow prior buys much; the heuristic beats Laplace noise there, but not the prior alone; the optimum does",
        points=grid(deviation=DEVIATIONS, epsilon=EPSILONS),
        algorithms=tuple(TRADEOFF_STYLES),
        repetitions=1,
        quick_points=grid(deviation=DEVIATIONS, epsilon=(0.1, 1.0, 4.0)),
        quick_repetitions=1,
        generate=designs,
        measure=expected_loss,
        settings={"range": [-10, 10], "sensitivity": 10, "step": 1},
        claims=(
            Claim("the heuristic gains significantly at low and intermediate privacy", gains_at_low_privacy),
            Claim("the heuristic is made for low-variance priors", is_for_narrow_priors),
            Claim("at high privacy mechanisms converge, since noise dominates", converges_at_high_privacy),
            Claim("rounding and truncated geometric noise are a good idea for narrow priors", rounding_is_a_good_idea),
        ),
        durations=Durations(5, 2),
        decimals=2,
        picture=Picture(
            x="epsilon",
            x_title="epsilon",
            y_title="expected absolute error",
            measure="loss",
            log_x=True,
            bands=False,
            columns="deviation",
            note=NOTE,
            styles=TRADEOFF_STYLES,
        ),
    )


def _collusion() -> Experiment:
    return Experiment(
        name=COLLUSION,
        title=f"What colluders learn who pool answers of epsilon {COLLUDERS_EPSILON:g} each",
        source=f"{SLIDES}, collusion",
        shows="many colluders learn what the heuristic rounds to and not the rest; k answers still cost k times epsilon",
        points=grid(deviation=DEVIATIONS, colluders=COLLUDERS),
        algorithms=tuple(COLLUSION_STYLES),
        repetitions=RUNS,
        quick_points=grid(deviation=DEVIATIONS, colluders=(1, 20, 400)),
        quick_repetitions=3,
        generate=pool,
        measure=guess_error,
        settings={"range": [-10, 10], "sensitivity": 10, "step": 1, "epsilon": COLLUDERS_EPSILON, "simulated": SIMULATED},
        data_free=("colluders",),
        indifferent=(ROUNDING,),
        together=lambda scene: scene.point["deviation"],
        claims=(
            Claim("the colluders' error is level for the heuristic", curve_is_level),
            Claim("the heuristic is collusion-proof", is_collusion_proof),
        ),
        durations=Durations(5, 4),
        decimals=2,
        picture=Picture(
            x="colluders",
            x_title="colluders, one answer each",
            y_title="mean distance of their guess",
            measure="error",
            log_x=True,
            columns="deviation",
            note=f"{NOTE}; {SIMULATED} simulated cases a run",
            styles=COLLUSION_STYLES,
        ),
    )
