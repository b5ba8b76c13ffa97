"""Which noise several sums at once should have: one box for all of them, or independent noise for each."""

import math
from collections.abc import Sequence

from dpmine.base.epsilon import Epsilon, shares
from dpmine.design.staircase_costs import geometric_loss
from dpmine.noise.boxes import FEW_LEVELS, BoxNoise


def best_ball(lengths: tuple[int, ...], epsilon: Epsilon, ball: str | None) -> tuple[str, tuple[int, ...]]:
    """The ball asked for, or that of the smaller expected error, from two numbers on the box; and its inner widths."""
    if ball == "l1":
        return "l1", ()
    inner = best_inner_boxes(lengths, epsilon)
    if ball is None and cross_error(lengths, epsilon) < box_error(lengths, inner, epsilon):
        return "l1", ()
    return "l-infinity", inner


def box_error(lengths: tuple[int, ...], inner: tuple[int, ...], epsilon: Epsilon) -> float:
    """Expected absolute errors in lengths, of all numbers together."""
    box = BoxNoise(lengths, inner, epsilon)
    return math.fsum(box.mean_error(place) / length for place, length in enumerate(lengths))


def cross_error(lengths: tuple[int, ...], epsilon: Epsilon) -> float:
    paid = shares(epsilon.units, len(lengths))
    if min(paid) < 1:
        return math.inf
    return math.fsum(geometric_loss(length, Epsilon(share)) / length for length, share in zip(lengths, paid, strict=True))


def best_inner_boxes(lengths: Sequence[int], epsilon: Epsilon) -> tuple[int, ...]:
    """How far the first level of a staircase over boxes should reach: least expected error relative to the lengths.

    All coordinates reach the same share of their lengths, the best of a few.
    """
    rate = float(epsilon)
    if rate < FEW_LEVELS:  # hundreds of levels: where the first one ends makes no difference
        return tuple(length // 2 for length in lengths)
    shares = [place / 64 for place in range(64)] + [1 / (1 + math.exp(min(rate / 2, 700)))]
    candidates = {tuple(min(max(round(share * length - 0.5), 0), length - 1) for length in lengths) for share in shares}

    def error(inner: tuple[int, ...]) -> float:
        noise = BoxNoise(tuple(lengths), inner, epsilon)
        return math.fsum(noise.mean_error(place) / length for place, length in enumerate(lengths))

    return min(sorted(candidates), key=error)
