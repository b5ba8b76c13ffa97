"""The public facts of one question: the grid of its answers, by how much one row moves them, and epsilon."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.noise.finite_tables import MOST_POINTS, exact_text, grid_steps


@dataclass(frozen=True)
class Setting:
    """Answers on the grid low, low + step, ..., high, of which one row moves the true one by at most `sensitivity`."""

    low: Fraction
    high: Fraction
    step: Fraction
    sensitivity: Fraction
    epsilon: Epsilon

    def __post_init__(self) -> None:
        if self.step <= 0 or self.high <= self.low or self.sensitivity <= 0 or self.epsilon.units <= 0:
            raise RequestError("A setting needs low < high, and a positive step, sensitivity and epsilon.")
        if (self.high - self.low) % self.step:
            raise RequestError(f"The range from {self.low} to {self.high} is not a whole number of steps of {self.step}.")
        if self.points > MOST_POINTS:
            raise RequestError(f"A grid has at most {MOST_POINTS} points. Got {self.points}: use a larger step.")

    @property
    def points(self) -> int:
        return int((self.high - self.low) / self.step) + 1

    @property
    def steps(self) -> int:
        """By how many grid points the answer can move when a row comes or goes."""
        return min(grid_steps(self.sensitivity, self.step), self.points - 1)

    @cached_property
    def grid(self) -> tuple[Fraction, ...]:
        return tuple(self.low + place * self.step for place in range(self.points))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(map(exact_text, self.grid))

    def __str__(self) -> str:
        grid = f"range {self.low} to {self.high} in steps of {self.step}"
        return f"{grid}, sensitivity {self.sensitivity}, epsilon {self.epsilon}"
