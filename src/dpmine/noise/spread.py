"""How far noise reaches: what laws say to whoever reads an answer. Doubles, for display and design; none draws noise."""

import math
from fractions import Fraction
from functools import singledispatch

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.noise.boxes import BoxNoise
from dpmine.noise.confidence import check_confidence
from dpmine.noise.laplace import noise_deviation, noise_half_width
from dpmine.noise.laws import BoxStaircase, ChoiceLoss, DiscreteLaplace, NoiseLaw, laplace

_INSTEAD = "Ask `loss_bound` of a choice's law, and an answer of a finite mechanism for its interval()."


@singledispatch
def deviation(law: NoiseLaw) -> float:
    """The standard deviation of the noise."""
    raise RequestError(f"A {type(law).__name__} is no noise in a number. {_INSTEAD}")


@singledispatch
def half_width(law: NoiseLaw, confidence: float) -> int:
    """The smallest t with P(abs(noise) <= t) >= confidence."""
    raise RequestError(f"A {type(law).__name__} is no noise in a number. {_INSTEAD}")


@deviation.register
def _of_laplace(law: DiscreteLaplace) -> float:
    return noise_deviation(law.fraction)


@half_width.register
def _width_of_laplace(law: DiscreteLaplace, confidence: float) -> int:
    return noise_half_width(law.fraction, confidence)


def box_of(law: BoxStaircase) -> BoxNoise:
    return BoxNoise(law.lengths, law.inner, law.epsilon)


@deviation.register
def _of_staircase(law: BoxStaircase) -> float:
    return box_of(law).deviation(law.place)


@half_width.register
def _width_of_staircase(law: BoxStaircase, confidence: float) -> int:
    return box_of(law).half_width(confidence, law.place)


# -- counts ------------------------------------------------------------------------------------------------------------


def of_counts(epsilon: Epsilon) -> DiscreteLaplace:
    """The noise in each count of a histogram at this price: for plans, before anything is asked."""
    return laplace(1, epsilon)


def log_tail(law: DiscreteLaplace, threshold: int) -> float:
    """The logarithm of P(noise >= threshold), for a threshold from 1 on: a^threshold / (1 + a), a = exp(-1 / scale)."""
    rate = float(1 / law.fraction)
    return -rate * threshold - math.log1p(math.exp(-rate))


def excess(law: DiscreteLaplace) -> float:
    """By how much noise that reaches a threshold, from 1 on, exceeds it on average: a / (1 - a)."""
    return 1 / math.expm1(min(float(1 / law.fraction), 700))


# -- choices -----------------------------------------------------------------------------------------------------------


def loss_scale(law: ChoiceLoss) -> float:
    """By so much a worse candidate can look like the better one, in units of the score."""
    return float(Fraction(law.range)) / float(law.epsilon)


def loss_bound(law: ChoiceLoss, confidence: float) -> float:
    """The loss of a choice is at most this with the stated confidence."""
    check_confidence(confidence)
    if not isinstance(law, ChoiceLoss):
        raise RequestError(f"A {type(law).__name__} is no private choice. Ask its `deviation` or `half_width`.")
    rate = float(law.epsilon) / float(Fraction(law.range))
    return (math.log(law.candidates) - math.log1p(-confidence)) / rate
