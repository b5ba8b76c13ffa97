"""Private choices that a test makes instead of the mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from dpmine.kernel.door import Kernel

Chooser = Callable[[np.ndarray], int]
"""From the scores of all candidates to the number of one."""


@contextmanager
def choosing(choose: Chooser) -> Iterator[None]:
    """Every private choice is made by a function of the true scores, and not by the mechanism."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Kernel, "_choose", lambda self, mechanism, scores, masses, rate: choose(scores))
        yield


def first_best(scores: np.ndarray) -> int:
    """A best candidate, the first of equal ones: the tie rule of the baselines."""
    return int(np.argmax(scores))


def halving(scores: np.ndarray) -> int:
    """The middle one of many split points and the first one of few values: an interval is halved, then its left half."""
    return len(scores) // 2 if len(scores) > 4 else 0


class Scripted:
    """Choices laid down by a test, as pairs of how many candidates there must be and which one is taken."""

    def __init__(self, *script: tuple[int, int]) -> None:
        self.left = list(script)

    def __call__(self, scores: np.ndarray) -> int:
        candidates, taken = self.left.pop(0)
        assert len(scores) == candidates
        return taken


class Drawn:
    """Choices at random whatever the scores, kept: what any noise could have made of them."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self.taken: list[int] = []

    def __call__(self, scores: np.ndarray) -> int:
        self.taken.append(int(self._draw.integers(len(scores))))
        return self.taken[-1]
