"""Two independent samplers of the same law: OpenDP's, and the published rejection sampler in plain Python."""

from __future__ import annotations

import math
import secrets
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.laws import ALARM, laplace_bins, laplace_edges, laplace_law, p_value, p_value_of_two

from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import ExactNoise

ours = ExactNoise(Entropy())


def bernoulli(numerator: int, denominator: int) -> bool:
    return secrets.randbelow(denominator) < numerator


def bernoulli_exp(numerator: int, denominator: int) -> bool:
    """True with probability exp(-numerator/denominator), for a fraction in [0, 1]."""
    k = 1
    while bernoulli(numerator, denominator * k):
        k += 1
    return k % 2 == 1


def rejection_sampler(scale: Fraction) -> int:
    """Canonne, Kamath and Steinke's sampler for the scale t/s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = secrets.randbelow(t)
        if not bernoulli_exp(u, t):
            continue
        v = 0
        while bernoulli_exp(1, 1):
            v += 1
        magnitude = (u + t * v) // s
        minus = bernoulli(1, 2)
        if not (minus and magnitude == 0):
            return -magnitude if minus else magnitude


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(50)], ids=str)
def test_the_published_rejection_sampler_agrees(scale: Fraction) -> None:
    theirs = np.array([rejection_sampler(scale) for _ in range(25_000)])
    edges = laplace_edges(scale)
    assert p_value(laplace_bins(theirs, edges), laplace_law(scale, edges)) > ALARM
    mine = laplace_bins(ours.discrete_laplace(scale, 500_000), edges)
    assert p_value_of_two(laplace_bins(theirs, edges), mine) > ALARM


def opendp_noise() -> Any:
    pytest.importorskip("opendp")
    from dpmine.owner.opendp_noise import OpenDPNoise

    return OpenDPNoise()


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(100)], ids=str)
def test_opendp_agrees(scale: Fraction) -> None:
    theirs = opendp_noise().discrete_laplace(scale, 100_000)
    assert theirs.dtype == np.int64
    edges = laplace_edges(scale)
    assert p_value(laplace_bins(theirs, edges), laplace_law(scale, edges)) > ALARM
    mine = laplace_bins(ours.discrete_laplace(scale, 1_000_000), edges)
    assert p_value_of_two(laplace_bins(theirs, edges), mine) > ALARM


def test_the_two_sample_check_catches_noise_for_a_tenth_more_epsilon() -> None:
    """Planted mistake: scale / 1.1."""
    edges = laplace_edges(Fraction(7, 3))
    right = laplace_bins(ours.discrete_laplace(Fraction(7, 3), 1_000_000), edges)
    wrong = laplace_bins(ours.discrete_laplace(Fraction(70, 33), 100_000), edges)
    assert p_value_of_two(wrong, right) < ALARM


class Recorder:
    """Stands in for OpenDP and keeps the scale it was asked for."""

    def __init__(self) -> None:
        self.m = self
        self.scales: list[float] = []

    def atom_domain(self, **unused: Any) -> None: ...

    def vector_domain(self, *unused: Any) -> None: ...

    def l1_distance(self, **unused: Any) -> None: ...

    def make_laplace(self, domain: None, distance: None, scale: float) -> Any:
        self.scales.append(scale)
        return lambda zeros: zeros


def never_less_noise(asked: float, scale: Fraction) -> bool:
    """The double is at least the scale, and the next smaller double would not be."""
    return Fraction(asked) >= scale > Fraction(math.nextafter(asked, 0))


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 10**15))
def test_opendp_gets_the_scale_rounded_up(units: int) -> None:
    pytest.importorskip("opendp")
    from dpmine.owner.opendp_noise import OpenDPNoise

    source = OpenDPNoise.__new__(OpenDPNoise)
    source._dp, source._samplers = Recorder(), {}
    scale = Fraction(10**9, units)
    assert source.discrete_laplace(scale, 3).tolist() == [0, 0, 0]
    (asked,) = source._dp.scales
    assert never_less_noise(asked, scale)


def test_the_rounding_check_catches_the_nearest_double() -> None:
    assert not all(never_less_noise(float(Fraction(10**9, units)), Fraction(10**9, units)) for units in range(1, 100))
