"""Budget plans: what an algorithm will spend, step by step, before it spends anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import EpsilonError
from dpmine.budget.rows import per_unit
from dpmine.noise.spread import deviation, of_counts


@dataclass(frozen=True)
class PlanStep:
    """One kind of query: its epsilon each time, how often it is asked of the same rows, and what to expect of it."""

    what: str
    epsilon: Epsilon
    times: int = 1
    expect: str = ""

    @classmethod
    def if_any(cls, what: str, epsilon: Epsilon, times: int = 1, expect: str = "") -> PlanStep | None:
        """The step, or None where its share of the budget is nothing: then it is not asked."""
        return cls(what, epsilon, times, expect) if epsilon.units else None

    @property
    def cost(self) -> Epsilon:
        return Epsilon(self.epsilon.units * self.times)


class StatedBudget:
    """An algorithm's whole budget along one row, stated once: a dataclass whose fields are steps.

    A plan lists the steps in the order of the fields, and the algorithm asks by them, so that neither can say what the other
    does not. A field may hold several steps, or None for one that is not asked; other fields are public numbers.
    """

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        held = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return tuple(step for item in held for step in _steps_of(item))


@dataclass(frozen=True)
class BudgetPlan:
    """The steps of an algorithm. What they cost together is at most the budget; disjoint nodes share one price.

    Where persons are protected who may have several rows, a query costs that many times its epsilon.
    """

    algorithm: str
    budget: Epsilon
    steps: tuple[PlanStep, ...]
    rows_per_unit: int = 1

    def __post_init__(self) -> None:
        for step in self.steps:
            if step.epsilon.units < 1:
                raise EpsilonError(
                    f"epsilon {self.budget} is too small for this plan: {step.what} would get less than 1e-9."
                )
        if self.cost > self.budget:
            raise EpsilonError(f"The plan costs {self.cost}, more than its budget of {self.budget}.")

    @property
    def row_cost(self) -> Epsilon:
        """What the steps cost together along one row."""
        return Epsilon(sum(step.cost.units for step in self.steps))

    @property
    def cost(self) -> Epsilon:
        return per_unit(self.row_cost, self)

    def __str__(self) -> str:
        head = ("step", "epsilon", "times", "cost")
        rows = [(step.what, str(step.epsilon), str(step.times), str(step.cost)) for step in self.steps]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [f"{self.algorithm} at epsilon {self.budget}"]
        for row, step in zip((head, *rows), (None, *self.steps), strict=True):
            cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells) + (f"  {step.expect}" if step and step.expect else ""))
        together = "together" if self.rows_per_unit == 1 else f"together, for persons with {self.rows_per_unit} rows"
        lines.append(f"{together.ljust(widths[0])}  {str(self.cost).rjust(sum(widths[1:]) + 4)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        steps = [
            {"what": step.what, "epsilon": str(step.epsilon), "times": step.times, "cost": str(step.cost)}
            | ({"expect": step.expect} if step.expect else {})
            for step in self.steps
        ]
        persons = {"rows_per_unit": self.rows_per_unit} if self.rows_per_unit > 1 else {}  # steps are priced for a row
        return {"algorithm": self.algorithm, "budget": str(self.budget), "cost": str(self.cost), **persons, "steps": steps}


def _steps_of(item: object) -> Iterator[PlanStep]:
    if isinstance(item, PlanStep):
        yield item
    elif isinstance(item, StatedBudget):
        yield from item.steps
    elif isinstance(item, tuple):
        for part in item:
            yield from _steps_of(part)


def part_of(budget: Epsilon, share: Fraction | int) -> Epsilon:
    """A share of the budget (a fraction), or one of so many equal parts (an integer), rounded down to whole units."""
    if isinstance(share, int):
        return Epsilon(budget.units // share)
    return Epsilon(budget.units * share.numerator // share.denominator)


def off_by(epsilon: Epsilon) -> str:
    """What to expect of a count; nothing for an epsilon of 0, which the plan refuses."""
    return f"each off by {deviation(of_counts(epsilon)):,.3g} rows" if epsilon.units else ""
