"""The best mechanism for a prior, or against the worst case, as a linear program.

Written out, the program for 201 points has 40 thousand unknowns and up to 8 million constraints. It is solved the other
way round: a mechanism is a sum of columns that keep epsilon-DP by themselves, one output each, and only columns that pay
are ever looked at. `column_pricing` finds the best of all columns for given prices of the rows; a proximal step keeps
prices from leaping; prices for a coarser grid are where a finer one starts. Every pricing yields a lower bound of the
optimum too, so how far a solution may be from it is known, not hoped for.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.design.column_pricing import Levels, cheapest_levels, level_count
from dpmine.design.constructions import truncated_geometric
from dpmine.design.finite_mechanisms import FiniteMechanism, loss_table
from dpmine.design.repair import repaired
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import Floats

NEAR_ENOUGH = 1e-7  # relative distance between solution and lower bound at which the search ends,
MANY_NEAR_ENOUGH = 2e-4  # on grids of more than 40 points,
WORST_CASE_NEAR_ENOUGH = 1e-3  # and there for the worst case, where the last digits are slow
MOST_PROGRAM_POINTS = 201
MOST_ROUNDS, MOST_ROUNDS_OF_MANY = 400, 120  # after which the best so far is taken; its bound tells how good it is
MOST_WORST_CASES = 101  # points from which on the worst case of a large sensitivity is solved on every second point
UNLIKELY = 1e-4  # of the likeliest point's probability: on large grids rows beyond the last likelier point are copies of its
_COARSEST = 40  # points of a grid below which no coarser one is solved first


@dataclass(frozen=True)
class Optimum:
    """A mechanism, its loss as a program, a bound that no mechanism can beat, and the uniform share mixed in by repair."""

    mechanism: FiniteMechanism
    loss: float
    bound: float
    mixed: float


def bayesian_optimum(setting: Setting, prior: Sequence[float] | Floats, loss: str = "absolute") -> Optimum:
    """The mechanism on the setting's grid with the least expected loss under the prior (probabilities of the points)."""
    probabilities = np.asarray(prior, dtype=np.float64)
    if probabilities.shape != (setting.points,) or not (probabilities >= 0).all() or not probabilities.sum() > 0:
        raise RequestError(f"The prior needs a probability for each of {setting.points} points.")
    return _optimum(setting, loss, probabilities / probabilities.sum(), None)


def risk_averse_optimum(
    setting: Setting, loss: str = "absolute", among: Sequence[bool] | NDArray[np.bool_] | None = None
) -> Optimum:
    """The mechanism with the least loss in the worst case over the points of the grid, or over those where `among` holds."""
    chosen = np.ones(setting.points, dtype=bool) if among is None else np.asarray(among, dtype=bool)
    if chosen.shape != (setting.points,) or not chosen.any():
        raise RequestError(f"`among` says of each of {setting.points} points whether it counts, and at least one does.")
    return _optimum(setting, loss, None, chosen)


def has_solver() -> bool:
    return importlib.util.find_spec("scipy") is not None


def _optimum(setting: Setting, loss: str, prior: Floats | None, among: NDArray[np.bool_] | None) -> Optimum:
    if not has_solver():
        raise RequestError("The optimal mechanism needs scipy. Run: pip install 'dpmine[design]'.")
    if setting.points > MOST_PROGRAM_POINTS:
        raise RequestError(f"An optimal mechanism has at most {MOST_PROGRAM_POINTS} points. Use a larger step.")
    if prior is not None and setting.steps == 1 and setting.points > _COARSEST:
        # Geometric noise and a remap attain the optimum for every prior and every loss that grows with the distance (Ghosh,
        # Roughgarden, Sundararajan 2009); on small grids the program says so too.
        known = truncated_geometric(setting).remapped(prior, loss)
        attained = known.expected_loss(prior, loss)
        return Optimum(known, attained, attained, 0.0)
    # The largest loss is as many as there are steps: a solver's tolerances are absolute, what is best has no units.
    places = [Fraction(place) for place in range(setting.points)]
    losses = loss_table(loss, places, places)
    largest = float(losses.max()) / (setting.points - 1)
    program = Program(losses / largest, setting.steps, float(setting.epsilon), prior, among)
    with _one_thread():
        solution = _spread(program) if _too_many(program) else solve(program)
    found = repaired(solution.matrix, setting)
    unit = largest * float(setting.step) ** {"absolute": 1, "squared": 2, "miss": 0}[loss]
    return Optimum(found.mechanism, solution.value * unit, solution.bound * unit, found.mixed)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices here are small: threads that wait for one another on a busy machine cost a hundred times what they save."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1):
        yield


# -- the program ---------------------------------------------------------------------------------------------------------


class Program:
    """Losses and constraints of one design problem, folded in the middle where both halves are mirror images."""

    def __init__(
        self, losses: Floats, steps: int, epsilon: float, prior: Floats | None, among: NDArray[np.bool_] | None
    ) -> None:
        self.losses, self.steps, self.epsilon, self.prior, self.among = losses, steps, epsilon, prior, among
        self.points = len(losses)
        self.many = self.points > _COARSEST
        fixed = prior if prior is not None else among
        assert fixed is not None
        mirrored = np.allclose(fixed, fixed[::-1], rtol=1e-12, atol=0) and np.array_equal(losses, losses[::-1, ::-1])
        self.folded = bool(mirrored) and self.points > 2
        self.rows = (self.points + 1) // 2 if self.folded else self.points
        weights = np.maximum(prior, 1e-4 / self.points) if prior is not None else np.ones(self.points)
        self.weights: Floats = weights / weights.sum()
        self.factors: Floats = np.exp(-epsilon * np.arange(level_count(self.points, steps) + 1))
        self.at_risk = self.fold(among.astype(np.float64)) > 0 if among is not None else np.zeros(self.rows, dtype=bool)

    def fold(self, along: Floats) -> Floats:
        """The mean of both halves, point by point, along the first axis."""
        if not self.folded:
            return along
        halved: Floats = (along[: self.rows] + along[::-1][: self.rows]) / 2
        return halved

    def unfold(self, prices: Floats) -> Floats:
        """Prices of folded rows as prices of points."""
        if not self.folded:
            return prices
        spread = np.zeros(self.points)
        spread[: self.rows] += prices / 2
        spread[::-1][: self.rows] += prices / 2
        return spread

    def split(self, prices: Floats) -> tuple[Floats, Floats]:
        """Prices of the points, and the prior they belong to: the given one, or the worst one that the prices name."""
        if self.prior is not None:
            return self.unfold(prices), self.prior
        worst = np.zeros(self.rows)
        worst[self.at_risk] = np.maximum(-prices[self.rows :], 0.0)
        total = float(worst.sum())
        if total <= 0:
            worst[self.at_risk], total = 1.0, float(self.at_risk.sum())
        return self.unfold(prices[: self.rows] / total), self.unfold(worst / total)

    def coarser(self) -> tuple[Program, NDArray[np.int64]] | None:
        """The same problem on every second point, or for a sensitivity of one step on the middle half, and which points."""
        if self.points <= _COARSEST:
            return None
        if self.steps == 1:
            kept = np.arange(self.points // 4, self.points - self.points // 4)
            steps = 1
        else:
            half = (self.points + 1) // 2
            kept = np.round(np.linspace(0, self.points - 1, half)).astype(np.int64)
            steps = max(1, round(self.steps * (half - 1) / (self.points - 1)))
        prior = None if self.prior is None else self.prior[kept] / max(self.prior[kept].sum(), 1e-300)
        among = None if self.among is None else self.among[kept]
        if (prior is not None and not prior.sum() > 0.5) or (among is not None and not among.any()):
            return None
        return Program(self.losses[np.ix_(kept, kept)], steps, self.epsilon, prior, among), kept


@dataclass
class Solution:
    matrix: Floats
    value: float
    bound: float
    prices: Floats
    rounds: int


class _Pool:
    """The columns looked at so far, by output and levels; each is scaled to weigh 1."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._columns: dict[tuple[int, bytes], Floats] = {}
        distance = np.abs(np.arange(program.points)[:, None] - np.arange(program.points)[None, :])
        self.add(range(program.rows), (-(-distance // program.steps))[: program.rows])
        self.add(range(program.rows), np.zeros((program.rows, program.points), dtype=np.int64))
        self._kept = set(self._columns)  # constant columns alone make a mechanism, so there always is one

    def add(self, outputs: Sequence[int], levels: Levels) -> None:
        for output, row in zip(outputs, levels, strict=True):
            key = (int(output), row.astype(np.int16).tobytes())
            if key not in self._columns:
                column = self._program.factors[row]
                self._columns[key] = column / float(self._program.weights @ column)

    def keep(self, most: int, slack: Floats, keys: list[tuple[int, bytes]]) -> None:
        """Forget those that pay least."""
        if len(keys) > most:
            for place in np.argsort(slack[: len(keys)], kind="stable")[most:]:
                if keys[int(place)] not in self._kept:
                    del self._columns[keys[int(place)]]

    def system(self) -> tuple[list[tuple[int, bytes]], Floats, Floats, Floats]:
        """Keys, and the program in these columns as: least costs @ x with matrix @ x == right, x >= 0."""
        program = self._program
        keys = list(self._columns)
        columns = np.stack([self._columns[key] for key in keys], axis=1)
        losses = program.losses[:, [output for output, _ in keys]] * columns
        if program.prior is not None:
            return keys, program.fold(columns), np.ones(program.rows), program.prior @ losses
        risks = program.fold(losses)[program.at_risk]
        extra = len(risks)  # row by row: loss - worst loss + slack == 0
        matrix = np.zeros((program.rows + extra, len(keys) + 1 + extra))
        matrix[: program.rows, : len(keys)] = program.fold(columns)
        matrix[program.rows :, : len(keys)] = risks
        matrix[program.rows :, len(keys)] = -1
        matrix[program.rows :, len(keys) + 1 :] = np.eye(extra)
        costs = np.zeros(matrix.shape[1])
        costs[len(keys)] = 1
        return keys, matrix, np.concatenate((np.ones(program.rows), np.zeros(extra))), costs

    def best(self) -> tuple[float, Floats]:
        """The least value in these columns, and its matrix."""
        program = self._program
        keys, matrix, right, costs = self.system()
        if program.prior is None or not program.many:
            value, shares = _vertex(matrix, right, costs)
            return value, self._mechanism(keys, shares)
        # Rows of points that hardly ever are true need not add up in these columns: such points are clamped to the likely
        # ones, which brings no two points farther apart.
        likely = np.flatnonzero(program.prior >= UNLIKELY * program.prior.max())
        first, last = int(likely[0]), int(likely[-1])
        rows = slice(first, min(last + 1, program.rows))
        _, shares = _vertex(matrix[rows], right[rows], costs)
        whole = self._mechanism(keys, shares)[np.clip(np.arange(program.points), first, last)]
        return float(program.prior @ (whole * program.losses).sum(axis=1)), whole

    def _mechanism(self, keys: list[tuple[int, bytes]], shares: Floats) -> Floats:
        """The matrix that these shares of columns add up to."""
        program = self._program
        matrix = np.zeros((program.points, program.points))
        for (output, levels), share in zip(keys, shares, strict=False):
            if share > 0:
                matrix[:, output] += share * self._columns[output, levels]
        return (matrix + matrix[::-1, ::-1]) / 2 if program.folded else matrix


def solve(program: Program, slackness: float = 1.0) -> Solution:
    """Columns and prices in turn, until the solution meets its bound; `slackness` times as far off is near enough."""
    pool = _Pool(program)
    centre = _first_prices(program)
    bound = _bound(program, pool, centre)
    reach, value, rounds = 1.0, np.inf, 0
    best: Floats | None = None
    enough = slackness * (
        NEAR_ENOUGH if not program.many else WORST_CASE_NEAR_ENOUGH if program.prior is None else MANY_NEAR_ENOUGH
    )
    often = 15 if program.many and program.prior is not None else 40
    looked = 0
    while rounds < (MOST_ROUNDS_OF_MANY if program.many else MOST_ROUNDS):
        rounds += 1
        keys, matrix, right, costs = pool.system()
        sizes = _sizes(program, centre, bound)
        prices, slack = _proximal(matrix, right, costs, centre, sizes, reach, bound)
        promised = float(right @ prices) - bound
        reached = _bound(program, pool, prices)
        if (promised <= enough * max(abs(bound), 1e-12) and rounds >= looked) or rounds % often == 0:
            value, best = pool.best()
            if reached > bound:
                centre, bound = prices, reached
            if value - bound <= enough * max(abs(value), 1e-12):
                break
            reach, looked = reach * 10, rounds + (8 if program.many else 1)
        elif reached > bound + 0.1 * promised:
            reach *= 2.0 if reached > bound + 0.5 * promised else 1.0
            centre, bound = prices, reached
        else:
            reach = max(reach * 0.8, 0.05)
        pool.keep(5 * len(right), slack, keys)
    assert best is not None
    return Solution(best, value, bound, centre, rounds)


def _too_many(program: Program) -> bool:
    return program.prior is None and program.points > MOST_WORST_CASES and program.steps >= MOST_WORST_CASES // 4


def _spread(program: Program) -> Solution:
    """The worst case on every second point, and every other point treated like its neighbour above.

    Costs at most about one grid step of loss, where a sensitivity is many; the bound is that of the full grid.
    """
    kept = np.arange(0, program.points, 2)
    nearest = np.minimum((np.arange(program.points) + 1) // 2, len(kept) - 1)
    steps = int((nearest[program.steps :] - nearest[: -program.steps]).max())
    assert program.among is not None
    chosen = np.zeros(len(kept), dtype=bool)
    chosen[nearest[program.among]] = True
    smaller = Program(program.losses[np.ix_(kept, kept)], steps, program.epsilon, None, chosen)
    solution = _spread(smaller) if _too_many(smaller) else solve(smaller)
    matrix = np.zeros((program.points, program.points))
    matrix[:, kept] = solution.matrix[nearest]
    prices, worst = np.zeros(program.points), np.zeros(program.points)
    prices[kept], worst[kept] = smaller.split(solution.prices)
    carried = np.concatenate((_folded_prices(program, prices), -_folded_prices(program, worst)[program.at_risk]))
    value = float((matrix * program.losses).sum(axis=1)[program.among].max())
    return Solution(matrix, value, _bound(program, _Pool(program), carried), carried, solution.rounds)


def _first_prices(program: Program) -> Floats:
    """Prices to start from: those of a coarser grid, carried over."""
    coarse = program.coarser()
    if coarse is None:
        prices = np.zeros(program.rows)
        return prices if program.prior is not None else np.concatenate((prices, -np.ones(int(program.at_risk.sum()))))
    smaller, kept = coarse
    prices, worst = smaller.split(solve(smaller, 10.0).prices)
    if program.prior is not None:  # prices belong to masses: carry over their density
        density = np.interp(np.arange(program.points), kept, prices / smaller.weights)
        return _folded_prices(program, density * program.weights)
    carried, guessed = np.zeros(program.points), np.zeros(program.points)
    carried[kept], guessed[kept] = prices, worst  # the worst prior sits on few points: leave it there
    return np.concatenate((_folded_prices(program, carried), -_folded_prices(program, guessed)[program.at_risk]))


def _folded_prices(program: Program, prices: Floats) -> Floats:
    """The inverse of `unfold` for prices that are their own mirror image."""
    if not program.folded:
        return prices
    folded = prices[: program.rows] + prices[::-1][: program.rows]
    if program.points % 2:
        folded[-1] /= 2
    return folded


def _bound(program: Program, pool: _Pool, prices: Floats) -> float:
    """What no mechanism can beat, by these prices; the columns that tell so join the pool.

    Prices raised by `ratio` times the weights make every column cost at least nothing, and then they bound the optimum
    from below. The largest such ratio is found by pricing again at the last one until it stays.
    """
    of_points, prior = program.split(prices)
    costs = prior[None, :] * program.losses.T[: program.rows] - of_points[None, :]
    ratio = np.inf
    for _ in range(30):
        lowered = costs if ratio == np.inf else costs - ratio * program.weights
        levels = cheapest_levels(lowered, program.steps, program.epsilon)
        columns = program.factors[levels]
        least = float(((costs * columns).sum(axis=1) / (columns @ program.weights)).min())
        if least >= ratio - 1e-12 * (1 + abs(ratio)):
            break
        ratio = least
        pool.add(range(program.rows), levels)
    return float(of_points.sum()) + ratio


def _sizes(program: Program, centre: Floats, bound: float) -> Floats:
    """How large each price may be expected to be, for the proximal step."""
    scale = abs(bound) + 0.05 * float(program.losses.max())
    of_rows = _folded_prices(program, program.weights) * scale
    if program.prior is not None:
        return of_rows
    count = int(program.at_risk.sum())
    return np.concatenate((of_rows, np.full(count, 1.0 / count)))


def _proximal(
    matrix: Floats, right: Floats, costs: Floats, centre: Floats, sizes: Floats, reach: float, bound: float
) -> tuple[Floats, Floats]:
    """Prices that gain most in these columns less their squared distance from the centre; and the columns' slack.

    An interior-point method (Mehrotra's predictor and corrector). The distance keeps its equations well-posed where the
    program itself has many equally good prices.
    """
    from scipy.linalg import cho_factor, cho_solve

    scale = abs(bound) + 1e-9
    scaled, target, middle = matrix * sizes[:, None], right * sizes, centre / sizes
    norms = np.linalg.norm(scaled, axis=0)
    scaled, costs = scaled / norms, costs / norms
    pull = scale / (reach * len(right))
    y = middle.copy()
    s = np.maximum(costs - scaled.T @ y, 0.0) + 0.1 * float(np.abs(costs).mean()) + 1e-12
    x = np.full(len(costs), float(norms.mean()) / len(costs))
    diagonal = np.diag_indices(len(right))
    for _ in range(60):
        lacking = target - scaled @ x - pull * (y - middle)
        off = costs - scaled.T @ y - s
        gap = float(x @ s)
        if gap < 1e-9 * scale and np.abs(off).max() < 1e-9 * scale:
            break
        ratio = x / s
        normal = (scaled * ratio) @ scaled.T
        normal[diagonal] += pull + 1e-13 * normal[diagonal]
        factor = _factored(normal, cho_factor)

        def step(wanted: Floats) -> tuple[Floats, Floats, Floats]:
            dy = cho_solve(factor, lacking + scaled @ (ratio * off - wanted / s), check_finite=False)  # noqa: B023
            ds = off - scaled.T @ dy  # noqa: B023
            return wanted / s - ratio * ds, dy, ds  # noqa: B023

        dx, _dy, ds = step(-x * s)
        length = min(_longest(x, dx, 1.0), _longest(s, ds, 1.0))
        centring = (float((x + length * dx) @ (s + length * ds)) / gap) ** 3
        dx, dy, ds = step(-x * s - dx * ds + centring * gap / len(x))
        length = min(_longest(x, dx, 0.995), _longest(s, ds, 0.995))
        x, y, s = x + length * dx, y + length * dy, s + length * ds
        if length < 1e-8:
            break
    return y * sizes, s * norms


def _factored(normal: Floats, cho_factor: Callable[..., Any]) -> Any:
    """Its Cholesky factor, with a larger diagonal where rounding has left it without one."""
    diagonal = np.diag_indices(len(normal))
    more = 1e-12 * float(np.trace(normal)) / len(normal)
    for _ in range(8):
        try:
            return cho_factor(normal, check_finite=False)
        except np.linalg.LinAlgError:
            normal[diagonal] += more
            more *= 100
    raise RequestError("The linear program could not be solved. Use a coarser grid or another mechanism.")


def _longest(start: Floats, direction: Floats, share: float) -> float:
    """The longest step, up to 1, that keeps everything positive, and only `share` of the way to the edge."""
    steepest = float((-direction / start).max())
    return 1.0 if steepest <= share else share / steepest


def _vertex(matrix: Floats, right: Floats, costs: Floats) -> tuple[float, Floats]:
    """The best shares of the columns looked at, by HiGHS."""
    from scipy.optimize import linprog

    largest = np.abs(matrix).max(axis=0)
    sharp = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for method in ("highs-ds", "highs-ipm"):
        found = linprog(costs / largest, A_eq=matrix / largest, b_eq=right, method=method, options=sharp)
        if found.status == 0:
            return float(found.fun), np.asarray(found.x, dtype=np.float64) / largest
    raise RequestError("The linear program could not be solved. Use a coarser grid or another mechanism.")
