"""Designed noise: expected error of `auto` beside plain Laplace noise, how long designs take, and whether simulation agrees.

A count of rows lies in 0 to 200 and moves by 1 with a row; the mean of an age from 17 to 90 moves by up to 36.5, the
largest age by up to 73. Priors are flat, narrow or wide (`PRIORS`). Designs come from `dpmine.tables.designing.design`,
which is what `private.count`, `mean` and `max` call for `design=dm.prior(...)`.

Keys:
    loss[statistic][prior][epsilon][method]
        the expected absolute error under the prior. Methods: `auto`; `laplace`, Laplace noise of real numbers clamped to the
        same range; `unclamped`, the same without clamping; `remap`, geometric noise with the prior's best guess for every
        output, which takes no solver; `prior alone`, the best guess without data
    squared_loss[statistic][prior][epsilon][method]
        the same for the expected squared error of designs for that loss
    mechanism[statistic][prior][epsilon]
        what auto chose
    squared_mechanism[statistic][prior][epsilon]
        what auto chose for squared errors
    auto_over_laplace
        the largest ratio of expected errors over all cases and both losses
    by_how_much[what]
        the smallest ratio and geometric means, over all and by statistic and prior, and those to `remap`
    auto_over_alone
        the largest ratio to the prior alone
    between_points
        the largest ratio to clamped Laplace noise where true means lie anywhere, not only on the grid
    wrong_prior[statistic][epsilon]
        the ratio to clamped Laplace noise of the design for the narrow prior, were the flat one true
    simulated_over_expected[statistic][prior]
        [ratio, its standard error] of the mean absolute error of DRAWS draws of the kernel's sampler (`drawn_output`) at
        epsilon 1, true values from the prior; in `through_the_door` the same of ANSWERS answers of private.count, mean and
        max, each from a data set opened anew, since a data set repeats its answer to a repeated question (only the design
        is remembered in between)
    answer_seconds[statistic]
        one such answer, design in memory, nothing else remembered
    points
        of each linear program; the next keys are at epsilon 1 with absolute loss and no cache, but for `narrow, low
        epsilon`, which is at epsilon 0.1; `narrow, centred` may be folded in the middle
    lp_seconds[sensitivity][prior]
        of the linear program; null where it was left after LIMIT seconds
    lp_processor_seconds[sensitivity][prior]
        the same in processor time (one thread, so about what a quiet machine takes)
    gap[sensitivity][prior]
        how far the design, as repaired, may lie above the optimum (relative, by a certified bound)
    lp_slowest
        the largest of these seconds
    lp_slowest_processor
        the largest of the processor's
    lp_left
        those that were left after LIMIT seconds
    cached_seconds[where]
        the largest time of a repeat from a file and from memory
    vector[d][ball]
        expected absolute error per coordinate of private.sums of d equal attributes at epsilon 1 in units of the largest
        value, for both balls, `box_over_l1`, and [ratio, its standard error] of BOXES simulated vectors to these
    means_against_default[rows][method]
        mean absolute error of private.mean over RUNS views of that many rows at epsilon 1, by noisy count and sum
        (`default`), `auto` with a flat prior and with a good one
    deviation[rows][method]
        its standard error
    said_rows[method]
        from how many rows on the answer itself says that the default is better
"""

from __future__ import annotations

import functools
import math
import signal
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpmine as dm
from dpmine.base.epsilon import Epsilon, shares
from dpmine.codes.designed_statistic import sensitivity_of
from dpmine.codes.vector_sums import lengths_of
from dpmine.design import statistic_noise
from dpmine.design.balls import best_ball
from dpmine.design.caching import cached, forget
from dpmine.design.candidates import LAPLACE, PRIOR_ALONE, pick
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.linear_programs import Optimum, bayesian_optimum, risk_averse_optimum
from dpmine.design.setting import Setting
from dpmine.design.staircase_costs import geometric_loss
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.finite_rows import drawn_output
from dpmine.kernel.samplers.laplace import ExactNoise
from dpmine.kernel.samplers.staircase import box_staircase
from dpmine.noise.boxes import BoxNoise
from dpmine.questions.vector_sums import value_grids
from harness import arguments, finish, say, sized

PARTS = ["losses", "simulated", "programs", "vector", "means"]
EPSILONS = sized(("0.1", "0.5", "1", "2", "5"), rehearsal=("1",))
LOSSES = ("absolute", "squared")
ROWS = 200  # a count's public upper end
COLUMNS = {"count": None, "mean": "age", "max": "age"}
PRIORS = {
    "count": {"flat": "flat", "narrow": "normal:60:5", "wide": "normal:80:50"},
    "mean": {"flat": "flat", "narrow": "normal:40:4", "wide": "normal:50:20"},
    "max": {"flat": "flat", "narrow": "normal:80:4", "wide": "normal:70:20"},
}
DRAWS = sized(20_000, rehearsal=20)
ANSWERS = sized(1_000, rehearsal=2)
BOXES = sized(50_000, rehearsal=20)
RUNS = sized(1_000, rehearsal=2)
VIEWS = sized((1, 2, 5, 10, 20, 100, 1000), rehearsal=(1, 20, 100))
POINTS = sized((51, 201), rehearsal=(11, 21))  # of a linear program; with --quick the first
LIMIT = 60  # seconds of a linear program after which it is left
PROGRAM_PRIORS = {"flat": "flat", "narrow": "normal:60:10", "wide": "normal:80:50", "narrow, centred": "normal:100:10"}

SCHEMA = dm.Schema("people", (dm.Numeric("age", Decimal(17), Decimal(90), Decimal(1), Decimal(17)),), 1000)


def main() -> None:
    args = arguments(__doc__ or "", PARTS)
    result: dict[str, Any] = {}
    if "losses" in args.names:
        result |= all_losses()
    if "simulated" in args.names:
        result |= all_simulated()
    if "programs" in args.names:
        result |= all_programs(POINTS[0 if args.quick else 1])
    if "vector" in args.names:
        result["vector"] = all_vectors()
    if "means" in args.names:
        result |= means_against_default(VIEWS[:-1] if args.quick else VIEWS)
    finish(result)


def rounded(number: float) -> float:
    return float(f"{number:.6g}")


def stated(statistic: str, prior: str, loss: str = "absolute") -> dm.Prior:
    bounds = {"low": 0, "high": ROWS} if statistic == "count" else {}
    return dm.prior(PRIORS[statistic][prior], loss=loss, **bounds)


def made(statistic: str, prior: str, epsilon: str, loss: str = "absolute") -> statistic_noise.Design:
    amount = Epsilon.parse(epsilon)
    return statistic_noise.design(
        SCHEMA, statistic, COLUMNS[statistic], epsilon=amount, mechanism=stated(statistic, prior, loss)
    )


# -- expected errors ---------------------------------------------------------------------------------------------------


def all_losses() -> dict[str, Any]:
    losses: dict[str, Any] = {loss: {} for loss in LOSSES}
    names: dict[str, Any] = {loss: {} for loss in LOSSES}
    between, wrong = [], {}
    for loss in LOSSES:
        for statistic, priors in PRIORS.items():
            losses[loss][statistic] = {prior: {} for prior in priors}
            names[loss][statistic] = {prior: {} for prior in priors}
            for prior in priors:
                for epsilon in EPSILONS:
                    design = made(statistic, prior, epsilon, loss)
                    losses[loss][statistic][prior][epsilon] = compared(statistic, epsilon, design)
                    names[loss][statistic][prior][epsilon] = design.name
                    if statistic == "mean":
                        between.append(off_grid_ratio(epsilon, design))
                    if (prior, loss) == ("narrow", "absolute"):
                        wrong.setdefault(statistic, {})[epsilon] = ratio_if_flat(statistic, epsilon, design)
                tell(loss, statistic, prior, losses[loss][statistic][prior], names[loss][statistic][prior])
    return {
        "loss": losses["absolute"],
        "squared_loss": losses["squared"],
        "mechanism": names["absolute"],
        "squared_mechanism": names["squared"],
        **ratios(losses),
        "between_points": rounded(max(between)),
        "wrong_prior": wrong,
    }


def setting_of(statistic: str, epsilon: str, noise: FiniteMechanism) -> Setting:
    moves = sensitivity_of(statistic, statistic_noise.numbers_of(statistic, COLUMNS[statistic], SCHEMA))
    return Setting(noise.inputs[0], noise.inputs[-1], Fraction(noise.step), moves, Epsilon.parse(epsilon))


def compared(statistic: str, epsilon: str, design: statistic_noise.Design) -> dict[str, float]:
    assert isinstance(design.noise, FiniteMechanism)
    setting = setting_of(statistic, epsilon, design.noise)
    found = {each.name: each.expected_loss for each in pick(setting, design.stated).all}
    scale = float(setting.sensitivity / setting.epsilon.fraction)
    return {
        "auto": rounded(design.expected_loss),
        "laplace": rounded(found[LAPLACE]),
        "unclamped": rounded(scale if design.stated.loss == "absolute" else 2 * scale**2),
        "remap": rounded(found["geometric + remap"]),
        PRIOR_ALONE: rounded(found[PRIOR_ALONE]),
    }


def ratios(losses: dict[str, Any]) -> dict[str, Any]:
    """The largest, the smallest and the mean ratios of `auto` to the other methods."""
    cases = [
        (f"{statistic}, {prior}", methods)
        for by_statistic in losses.values()
        for statistic, by_prior in by_statistic.items()
        for prior, by_epsilon in by_prior.items()
        for methods in by_epsilon.values()
    ]
    to_laplace = [(name, methods["auto"] / methods["laplace"]) for name, methods in cases]
    to_remap = [methods["auto"] / methods["remap"] for _, methods in cases]
    return {
        "auto_over_laplace": rounded(max(ratio for _, ratio in to_laplace)),
        "by_how_much": {
            "smallest": rounded(min(ratio for _, ratio in to_laplace)),
            "geometric_mean": geometric_mean([ratio for _, ratio in to_laplace]),
            "by_case": {
                name: geometric_mean([ratio for other, ratio in to_laplace if other == name]) for name, _ in to_laplace
            },
            "over_remap": {"smallest": rounded(min(to_remap)), "geometric_mean": geometric_mean(to_remap)},
        },
        "auto_over_alone": rounded(max(methods["auto"] / methods[PRIOR_ALONE] for _, methods in cases)),
    }


def geometric_mean(numbers: list[float]) -> float:
    return rounded(math.exp(math.fsum(map(math.log, numbers)) / len(numbers)))


def laplace_losses(truths: NDArray[np.float64], setting: Setting, loss: str) -> NDArray[np.float64]:
    """Expected losses of Laplace noise clamped to the range, by adding up tails: for values off the grid too."""
    scale = float(setting.sensitivity / setting.epsilon.fraction)
    sides = np.stack((float(setting.high) - truths, truths - float(setting.low)))
    tails = np.exp(-sides / scale)
    each = scale * (1 - tails) / 2 if loss == "absolute" else scale * (scale - tails * (scale + sides))
    return np.asarray(each.sum(axis=0))


def off_grid_ratio(epsilon: str, design: statistic_noise.Design) -> float:
    """The ratio to clamped Laplace noise where the truth is spread evenly over the cell of each grid point."""
    noise = design.noise
    assert isinstance(noise, FiniteMechanism)
    assert design.probabilities is not None
    setting = setting_of("mean", epsilon, noise)
    matrix, released = noise.matrix(), np.array([float(point) for point in noise.released])
    auto = laplace = 0.0
    for offset in (np.arange(20) + 0.5) / 20 - 0.5:
        truths = np.array([float(point) for point in setting.grid]) + float(setting.step) * offset
        truths = np.clip(truths, float(setting.low), float(setting.high))
        distances = np.abs(truths[:, None] - released[None, :])
        costs = distances if design.stated.loss == "absolute" else distances**2
        auto += float(design.probabilities @ (matrix * costs).sum(axis=1))
        laplace += float(design.probabilities @ laplace_losses(truths, setting, design.stated.loss))
    return auto / laplace


def ratio_if_flat(statistic: str, epsilon: str, design: statistic_noise.Design) -> float:
    assert isinstance(design.noise, FiniteMechanism)
    setting = setting_of(statistic, epsilon, design.noise)
    flat = np.full(setting.points, 1 / setting.points)
    truths = np.array([float(point) for point in setting.grid])
    laplace = float(flat @ laplace_losses(truths, setting, "absolute"))
    return rounded(design.noise.expected_loss(flat, "absolute") / laplace)


def tell(loss: str, statistic: str, prior: str, losses: dict[str, Any], names: dict[str, str]) -> None:
    told = ", ".join(
        f"{epsilon}: {each['auto']:.4g} / {each['laplace']:.4g} ({names[epsilon]})" for epsilon, each in losses.items()
    )
    say(f"{loss} {statistic} {prior}: {told}")


# -- simulated errors --------------------------------------------------------------------------------------------------


def all_simulated() -> dict[str, Any]:
    """By the kernel's sampler for all statistics and priors, and by whole answers for each statistic."""
    drawn: dict[str, Any] = {
        statistic: {prior: simulated(statistic, prior) for prior in priors} for statistic, priors in PRIORS.items()
    }
    say(f"drawn over expected: {drawn}")
    seconds = {statistic: answer_seconds(statistic) for statistic in PRIORS}
    plain, statistic_noise.pick = (
        statistic_noise.pick,
        functools.lru_cache(statistic_noise.pick),
    )  # the same choice, made once
    try:
        answered = {statistic: through_the_door(statistic, "wide") for statistic in PRIORS}
    finally:
        statistic_noise.pick = plain
    say(f"answered over expected: {answered}")
    return {"simulated_over_expected": drawn | {"through_the_door": answered}, "answer_seconds": seconds}


def simulated(statistic: str, prior: str) -> list[float]:
    design, entropy = made(statistic, prior, "1"), Entropy()
    noise = design.noise
    assert isinstance(noise, FiniteMechanism)
    errors = [abs(float(noise.released[drawn_output(entropy, noise, truth)] - truth)) for truth in truths_of(design, DRAWS)]
    return over(np.array(errors), design.expected_loss)


def truths_of(design: statistic_noise.Design, count: int) -> Iterator[Fraction]:
    assert isinstance(design.noise, FiniteMechanism)
    places = np.random.default_rng(1).choice(len(design.noise.inputs), size=count, p=design.probabilities)
    return (design.noise.inputs[int(place)] for place in places)


def over(errors: NDArray[np.float64], expected: float) -> list[float]:
    """The mean error over the expected one, and the standard error of that ratio."""
    return [rounded(float(errors.mean()) / expected), rounded(float(errors.std()) / math.sqrt(len(errors)) / expected)]


def through_the_door(statistic: str, prior: str) -> list[float]:
    design = made(statistic, prior, "1")
    errors = []
    for truth in truths_of(design, ANSWERS):
        errors.append(abs(float(answer(statistic, prior, truth).released - truth)))
    return over(np.array(errors), design.expected_loss)


def answer(statistic: str, prior: str, truth: Fraction) -> Any:
    """What is told of a new table of which the statistic is this number."""
    ages = [30] * int(truth) if statistic == "count" else [int(truth)]
    private = opened(np.array(ages, dtype=np.int64))
    if statistic == "count":
        return private.count(epsilon=1, design=stated(statistic, prior))
    ask = private.mean if statistic == "mean" else private.max
    return ask("age", epsilon=1, design=stated(statistic, prior))


def opened(ages: NDArray[np.int64]) -> dm.PrivateTable:
    return dm.open({"age": ages}, schema=SCHEMA, cap=1).grant("analyst", epsilon=1)


def answer_seconds(statistic: str) -> float:
    answer(statistic, "wide", Fraction(40))
    return rounded(seconds_of(lambda: answer(statistic, "wide", Fraction(40)))[0])


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


# -- linear programs ---------------------------------------------------------------------------------------------------


def all_programs(points: int) -> dict[str, Any]:
    seconds: dict[str, dict[str, float | None]] = {}
    processor: dict[str, dict[str, float]] = {}
    gaps: dict[str, dict[str, float]] = {}
    repeats: dict[str, list[float]] = {"file": [], "memory": []}
    left: list[str] = []
    for moves in (1, 18, 100, 200):
        if moves >= points:
            continue
        seconds[str(moves)], processor[str(moves)], gaps[str(moves)] = {}, {}, {}
        for name, solve, setting in programs(points, moves):
            busy = time.process_time()
            took, optimum = seconds_of(functools.partial(within_limit, solve))
            processor[str(moves)][name] = rounded(time.process_time() - busy)
            seconds[str(moves)][name] = None if optimum is None else rounded(took)
            if optimum is None:
                left.append(f"{moves} steps, {name}")
                say(f"{points} points, {moves} steps, {name}: not solved within {LIMIT} s")
                continue
            gaps[str(moves)][name] = rounded(gap_of(name, setting, optimum))
            for where, again in repeated(name, setting, optimum.mechanism).items():
                repeats[where].append(again)
            alone = f"{processor[str(moves)][name]:.2f} s of processor time"
            say(f"{points} points, {moves} steps, {name}: {took:.2f} s ({alone}), gap {gaps[str(moves)][name]:.2g}")
    return {
        "points": points,
        "lp_seconds": seconds,
        "gap": gaps,
        "lp_processor_seconds": processor,
        "lp_slowest": max(took or 0 for each in seconds.values() for took in each.values()),
        "lp_slowest_processor": max(took for each in processor.values() for took in each.values()),
        "lp_left": left,
        "cached_seconds": {where: rounded(max(times)) for where, times in repeats.items()},
    }


def programs(points: int, moves: int) -> Iterator[tuple[str, Callable[[], Optimum], Setting]]:
    setting = program_setting(points, moves, "1")
    for name in PROGRAM_PRIORS:
        probabilities = program_prior(name, points).probabilities(setting.grid)
        yield name, functools.partial(bayesian_optimum, setting, probabilities), setting
    yield "risk-averse", functools.partial(risk_averse_optimum, setting), setting
    low = program_setting(points, moves, "0.1")
    probabilities = program_prior("narrow", points).probabilities(low.grid)
    yield "narrow, low epsilon", functools.partial(bayesian_optimum, low, probabilities), low


def within_limit(solve: Callable[[], Optimum]) -> Optimum | None:
    """What it finds, or None where that takes too long."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        return solve()
    except TimeoutError:
        return None
    finally:
        signal.alarm(0)


def program_setting(points: int, moves: int, epsilon: str) -> Setting:
    return Setting(Fraction(0), Fraction(points - 1), Fraction(1), Fraction(moves), Epsilon.parse(epsilon))


def program_prior(name: str, points: int) -> dm.Prior:
    """As stated for 0 to 200, or the same share of a smaller range."""
    kind, *numbers = PROGRAM_PRIORS.get(name, PROGRAM_PRIORS["narrow"]).split(":")
    return dm.prior(":".join([kind, *(str(float(number) * (points - 1) / 200) for number in numbers)]))


def gap_of(name: str, setting: Setting, optimum: Optimum) -> float:
    """How far the repaired design lies above the bound, relative to it."""
    if name == "risk-averse":
        reached = optimum.mechanism.worst_loss("absolute")
    else:
        probabilities = program_prior(name.removesuffix(", low epsilon"), setting.points).probabilities(setting.grid)
        reached = optimum.mechanism.expected_loss(probabilities, "absolute")
    return reached / optimum.bound - 1


def repeated(name: str, setting: Setting, mechanism: FiniteMechanism) -> dict[str, float]:
    """Seconds to get a design that is in a file, and one that is in memory, checks included."""

    def read() -> FiniteMechanism:
        return cached("benchmark", setting, (name,), lambda: mechanism)

    read()
    forget()
    return {where: seconds_of(read)[0] for where in ("file", "memory")}


# -- vectors -----------------------------------------------------------------------------------------------------------


def all_vectors() -> dict[str, Any]:
    """Errors per coordinate in units of what one row can move it by."""
    found = {}
    epsilon, entropy = Epsilon.parse("1"), Entropy()
    for count in (1, 2, 4, 8):
        names = tuple(f"a{place}" for place in range(count))
        attributes = tuple(dm.Numeric(name, Decimal(0), Decimal(100), Decimal(1), Decimal(0)) for name in names)
        schema = dm.Schema("equal", attributes, 1000)
        lengths = lengths_of(value_grids(schema, names, centred=False), with_count=False)
        _, inner = best_ball(lengths, epsilon, "l-infinity")
        paid = [Epsilon(share) for share in shares(epsilon.units, count)]
        of_box = BoxNoise(lengths, inner, epsilon).mean_error() / lengths[0]
        of_l1 = float(np.mean([geometric_loss(lengths[0], share) for share in paid])) / lengths[0]
        drawn = np.abs(np.array(box_staircase(entropy, lengths, inner, epsilon=epsilon.fraction, size=BOXES)))
        other = np.abs(ExactNoise(entropy).discrete_laplace(lengths[0] / paid[0].fraction, BOXES * count))
        found[str(count)] = {
            "l-infinity": rounded(of_box),
            "l1": rounded(of_l1),
            "box_over_l1": rounded(of_box / of_l1),
            "taken": best_ball(lengths, epsilon, None)[0],
            "box_simulated_over_expected": over(drawn.mean(axis=1) / lengths[0], of_box),
            "l1_simulated_over_expected": over(other / lengths[0], of_l1),
        }
        say(f"{count} sums: {found[str(count)]}")
    return found


# -- means -------------------------------------------------------------------------------------------------------------


def means_against_default(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Ages like those of working people: normal around 39 with deviation 13, rounded and clamped to 17 to 90."""
    methods: dict[str, str | dm.Prior | None] = {
        "default": None,
        "auto, flat": dm.prior("flat"),
        "auto, normal:40:10": dm.prior("normal:40:10"),
    }
    errors: dict[str, dict[str, float]] = {}
    deviations: dict[str, dict[str, float]] = {}
    generator = np.random.default_rng(7)
    plain, statistic_noise.pick = statistic_noise.pick, functools.lru_cache(statistic_noise.pick)
    try:
        for rows in sizes:
            found: dict[str, list[float]] = {name: [] for name in methods}
            for _ in range(RUNS):
                ages = np.clip(np.rint(generator.normal(39, 13, rows)), 17, 90).astype(np.int64)
                for name, mechanism in methods.items():
                    told = opened(ages).mean("age", epsilon=1, design=mechanism)  # type: ignore[call-overload]
                    found[name].append(abs(float(told) - float(ages.mean())))
            errors[str(rows)] = {name: rounded(float(np.mean(each))) for name, each in found.items()}
            deviations[str(rows)] = {name: rounded(float(np.std(each)) / math.sqrt(RUNS)) for name, each in found.items()}
            say(f"means of {rows} rows: {errors[str(rows)]}")
        said = {name: said_rows(mechanism) for name, mechanism in methods.items() if mechanism is not None}
    finally:
        statistic_noise.pick = plain
    return {"means_against_default": errors, "deviation": deviations, "said_rows": said}


def said_rows(mechanism: str | dm.Prior) -> str:
    """The number of rows in the answer's own words."""
    why = statistic_noise.design(SCHEMA, "mean", "age", epsilon=Epsilon.parse("1"), mechanism=mechanism).why
    return why.rpartition("better from about ")[2].removesuffix(" rows on.")


if __name__ == "__main__":
    main()
