"""How a question is answered: by which laws, and from which exact numbers. One file a question beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from dpmine.base.epsilon import Epsilon
from dpmine.facts.facts import Facts
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import Integers, NoiseSource
from dpmine.language.aggregates import Engine
from dpmine.language.queries import ResolvedQuestion
from dpmine.language.resolved import Cells
from dpmine.noise.laws import Law

Q = TypeVar("Q", bound=ResolvedQuestion)
L = TypeVar("L", bound=Law)
Numbers = tuple[int, ...]
Choose = Callable[[str, Integers, Integers, Fraction], int]
"""One private choice: by which mechanism, among which integer scores, with which masses, at which rate."""


@dataclass(frozen=True, repr=False, eq=False)
class Asked(Generic[Q, L]):
    """A question that is charged, and what may be drawn on to answer it."""

    question: Q
    cells: Cells
    units: tuple[int, ...]
    """The price of each cell; 0 where it is not asked."""
    laws: Mapping[int, tuple[L, ...]]
    """Of each price, as `Mechanism.laws` said before anything was charged."""
    facts: Facts
    engine: Engine
    noise: NoiseSource
    entropy: Entropy
    choose: Choose

    def each(self, answer: Callable[[int, int], Numbers]) -> list[Numbers | None]:
        """The answer of each cell that is asked, by its number and its price in units."""
        return [answer(cell, units) if units else None for cell, units in enumerate(self.units)]


class Mechanism(Generic[Q, L]):
    """How one kind of question is answered.

    Sensitivities follow from the resolved question and the public facts, here and nowhere else.
    """

    def laws(self, question: Q, facts: Facts, epsilon: Epsilon) -> tuple[L, ...]:
        """The law of each number of a cell at this price, or one for all. Refuses, before any charge, what cannot be."""
        raise NotImplementedError

    def check(self, question: Q, laws: Mapping[int, tuple[L, ...]], units: tuple[int, ...]) -> None:
        """Refuse, before any charge, what follows from all cells and their laws together."""

    def release(self, asked: Asked[Q, L]) -> list[Numbers | None]:
        """The numbers of each cell, by the laws that `asked` states; None where a cell is not asked."""
        raise NotImplementedError


_MECHANISMS: dict[type[ResolvedQuestion], Mechanism[Any, Any]] = {}
M = TypeVar("M", bound=type[Mechanism[Any, Any]])


def answers(kind: type[ResolvedQuestion]) -> Callable[[M], M]:
    """Declare the mechanism of a kind of question."""

    def declare(mechanism: M) -> M:
        if kind in _MECHANISMS:
            raise ValueError(f"two mechanisms answer {kind.__name__}")
        _MECHANISMS[kind] = mechanism()
        return mechanism

    return declare


def mechanism_of(question: Q) -> Mechanism[Q, Any]:
    return _MECHANISMS[type(question)]


def laws_of(question: ResolvedQuestion, facts: Facts, units: tuple[int, ...]) -> dict[int, tuple[Law, ...]]:
    """The laws of every price, from the lowest one on. Whatever cannot be answered is refused here, before any charge."""
    mechanism = mechanism_of(question)
    laws = {paid: mechanism.laws(question, facts, Epsilon(paid)) for paid in sorted(set(units) - {0})}
    mechanism.check(question, laws, units)
    return laws
