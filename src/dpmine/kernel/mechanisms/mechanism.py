"""How a question is answered: by which laws, and from which exact numbers. One file a question beside this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.codes.aggregates import Engine
from dpmine.codes.domain import Domain, require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Cells
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import Integers, NoiseSource, add_noise, clipped
from dpmine.kernel.samplers.staircase import box_staircase
from dpmine.noise.laws import BoxStaircase, DiscreteLaplace, Law

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
    domain: Domain
    engine: Engine
    noise: NoiseSource
    entropy: Entropy
    choose: Choose

    def each(self, answer: Callable[[int, int], Numbers]) -> list[Numbers | None]:
        """The answer of each cell that is asked, by its number and its price in units."""
        return [answer(cell, units) if units else None for cell, units in enumerate(self.units)]

    def noisy(self, exact: Sequence[int], laws: Sequence[Law]) -> Numbers:
        """Whole numbers with the noise that their laws state, one for each: of its own, or of one box for all of them."""
        first = laws[0]
        if isinstance(first, BoxStaircase):
            (noise,) = box_staircase(self.entropy, first.lengths, first.inner, epsilon=first.epsilon.fraction)
            return tuple(clipped(number + more) for number, more in zip(exact, noise, strict=True))
        numbers = np.array(exact, dtype=np.int64)[:, None]
        scales = [law.fraction for law in laws if isinstance(law, DiscreteLaplace)]
        return tuple(int(add_noise(one, self.noise, scale)[0]) for one, scale in zip(numbers, scales, strict=True))


_MECHANISMS: dict[type[ResolvedQuestion], "Mechanism[Any, Any]"] = {}


class Mechanism(Generic[Q, L]):
    """How one kind of question is answered.

    Sensitivities follow from the resolved question and the public domain, here and nowhere else.
    """

    def __init_subclass__(cls, *, answers: type[ResolvedQuestion]) -> None:
        if answers in _MECHANISMS:
            raise ValueError(f"two mechanisms answer {answers.__name__}")
        _MECHANISMS[answers] = cls()

    def laws(self, question: Q, domain: Domain, epsilon: Epsilon) -> tuple[L, ...]:
        """The law of each number of a cell at this price, or one for all. Refuses, before any charge, what cannot be."""
        raise NotImplementedError

    def release(self, asked: Asked[Q, L]) -> list[Numbers | None]:
        """The numbers of each cell, by the laws that `asked` states; None where a cell is not asked."""
        raise NotImplementedError


def mechanism_of(question: Q) -> Mechanism[Q, Any]:
    return _MECHANISMS[type(question)]


def laws_of(question: ResolvedQuestion, domain: Domain, units: tuple[int, ...]) -> dict[int, tuple[Law, ...]]:
    """The laws of every price, from the lowest one on. Whatever cannot be answered is refused here, before any charge."""
    require(type(question) in _MECHANISMS, f"no mechanism was imported that answers {type(question).__name__}")
    return {paid: mechanism_of(question).laws(question, domain, Epsilon(paid)) for paid in sorted(set(units) - {0})}
