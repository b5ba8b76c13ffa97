"""OpenDP's discrete Laplace sampler as an optional noise provider: `pip install dpmine[opendp]`."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.kernel.samplers.laplace import Integers


class OpenDPNoise:
    """Discrete Laplace noise drawn by OpenDP.

    Claim        as ExactNoise; the scale is rounded up to a double first, so never less noise than was paid for.
    Sensitivity  L1, declared by the query, not by this class.
    Proof        OpenDP's own, for `make_laplace` on integers.
    Assumes      OpenDP's sampler and its source of bits.
    Not covered  time: OpenDP's sampler rejects, so its time varies with the noise drawn.
    Reference    Canonne, Kamath, Steinke 2020, Algorithm 2.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise RequestError("The noise provider 'opendp' is not installed. Run: pip install 'dpmine[opendp]'.") from None
        dp.enable_features("contrib")
        self._dp: Any = dp
        self._samplers: dict[float, Any] = {}

    def actual_scale(self, scale: Fraction) -> Fraction:
        """Rounded up to a double."""
        rounded = float(scale)
        return Fraction(rounded if Fraction(rounded) >= scale else math.nextafter(rounded, math.inf))

    def discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        rounded = float(self.actual_scale(scale))
        if rounded not in self._samplers:
            domain = self._dp.vector_domain(self._dp.atom_domain(T="i64"))
            self._samplers[rounded] = self._dp.m.make_laplace(domain, self._dp.l1_distance(T="i64"), scale=rounded)
        return np.array(self._samplers[rounded]([0] * size), dtype=np.int64).reshape(size)
