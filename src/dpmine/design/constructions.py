"""Mechanisms that can be written down: geometric, staircase, the rounding heuristic, randomised response."""

import math

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.repair import repaired
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import Floats, exact_text


def truncated_geometric(setting: Setting) -> FiniteMechanism:
    """Geometric noise (discrete Laplace), with all that falls beyond an end of the grid put at that end."""
    return repaired(geometric_matrix(setting.points, float(setting.epsilon) / setting.steps), setting).mechanism


def heuristic(setting: Setting) -> FiniteMechanism:
    """Round the answer to points one sensitivity apart, then add truncated geometric noise on those points.

    Rounding is floor(x / D + 1/2): values within the sensitivity then lie at most one rounded point apart. Points start
    at the low end; where the range is no multiple of the sensitivity, what is left over is shared by both ends.
    """
    rounded = rounded_places(setting.points, setting.steps)
    count = int(rounded[-1]) + 1
    first = (setting.points - 1) % setting.steps // 2
    outputs = tuple(setting.grid[first + place * setting.steps] for place in range(count))
    return repaired(geometric_matrix(count, float(setting.epsilon))[rounded], setting, outputs).mechanism


def rounded_places(points: int, steps: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each grid point the number of the rounded point it goes to: halves always go up."""
    count, left = divmod(points - 1, steps)
    places = (2 * (np.arange(points) - left // 2) + steps) // (2 * steps)
    return np.clip(places, 0, count)


def randomised_response(setting: Setting) -> FiniteMechanism:
    """The true point with e^epsilon times the probability of any other, whatever the sensitivity."""
    other = math.exp(-min(float(setting.epsilon), 700.0))
    matrix = np.full((setting.points, setting.points), other) + (1 - other) * np.eye(setting.points)
    return repaired(matrix / matrix.sum(axis=1, keepdims=True), setting).mechanism


def clamped_staircase(setting: Setting, inner: int) -> FiniteMechanism:
    """Staircase noise on the grid, clamped to its ends. Levels are |z| <= inner, then one sensitivity more each."""
    return repaired(staircase_matrix(setting, inner), setting).mechanism


def prior_alone(setting: Setting, guess: int) -> FiniteMechanism:
    """Always the same grid point, whatever the data: costs nothing and tells nothing."""
    return FiniteMechanism(
        exact_text(setting.low), exact_text(setting.step), (setting.labels[guess],), ((1,),) * setting.points
    )


def geometric_matrix(points: int, rate: float) -> Floats:
    """Rows of the truncated geometric law with ratio exp(-rate)."""
    places = np.arange(points)
    powers = np.exp(-rate * np.abs(places[:, None] - places[None, :]))
    a = math.exp(-rate)
    matrix: Floats = powers * (-math.expm1(-rate) / (1 + a))
    matrix[:, [0, -1]] = powers[:, [0, -1]] / (1 + a)
    return matrix


def staircase_matrix(setting: Setting, inner: int) -> Floats:
    if not 0 <= inner < setting.steps:
        raise RequestError(f"The first level of a staircase reaches 0 to {setting.steps - 1} steps. Got {inner}.")
    points, steps, b = setting.points, setting.steps, math.exp(-float(setting.epsilon))
    beyond = math.exp(-float(setting.epsilon)) / -math.expm1(-float(setting.epsilon))  # b + b^2 + ...
    mass = 2 * inner + 1 + 2 * steps * beyond
    distances = np.arange(points)
    levels = np.maximum(-((inner - distances) // steps), 0)
    chances = b**levels / mass
    # P(Z >= t) for t >= 1: what is left of the level of t, and all later levels
    tails = (b**levels * (inner + levels * steps - distances + 1) + steps * b**levels * beyond) / mass
    tails[0] = (1 + chances[0]) / 2
    matrix: Floats = chances[np.abs(distances[:, None] - distances[None, :])]
    matrix[:, 0] = tails
    matrix[:, -1] = tails[::-1]
    return matrix
