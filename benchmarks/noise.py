"""Draws per second of discrete Laplace noise: ours beside OpenDP's exact sampler and numpy's inexact Laplace.

Keys:
    size                              how many draws a vector has
    runs                              how many turns the medians are of
    draws_per_second[scale][method]   ours, OpenDP's and numpy's
    ratio_to_opendp                   the smallest ratio of ours to OpenDP over the scales
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpmine.kernel.samplers.entropy import Entropy
from dpmine.kernel.samplers.laplace import ExactNoise
from harness import arguments, finish, interleaved, median, peer, say, sized

SIZE = sized(100_000, rehearsal=300)
RUNS = sized(7, rehearsal=1)
SCALES = {"0.5": Fraction(1, 2), "1": Fraction(1), "10": Fraction(10), "100": Fraction(100), "10000": Fraction(10_000)}


def main() -> None:
    names = arguments(__doc__ or "", [*METHODS], peers=("opendp", "numpy")).names
    speed: dict[str, dict[str, float]] = {}
    for label, scale in SCALES.items():
        seconds = interleaved(RUNS, **{name: METHODS[name](scale) for name in names})
        speed[label] = {name: round(SIZE / median(times)) for name, times in seconds.items()}
        say(f"scale {label:>6}: " + ", ".join(f"{name} {rate / 1e6:.2f} M/s" for name, rate in speed[label].items()))
    result: dict[str, object] = {"size": SIZE, "runs": RUNS, "draws_per_second": speed}
    if {"ours", "opendp"} <= set(names):
        result["ratio_to_opendp"] = round(min(rates["ours"] / rates["opendp"] for rates in speed.values()), 2)
    finish(result)


def ours(scale: Fraction):  # type: ignore[no-untyped-def]
    source = ExactNoise(Entropy())
    return lambda: source.discrete_laplace(scale, SIZE)


def opendp(scale: Fraction):  # type: ignore[no-untyped-def]
    peer("opendp")
    from dpmine.owner.opendp_noise import OpenDPNoise

    source = OpenDPNoise()
    return lambda: source.discrete_laplace(scale, SIZE)


def inexact(scale: Fraction):  # type: ignore[no-untyped-def]
    draw = np.random.default_rng()
    return lambda: np.rint(draw.laplace(0.0, float(scale), SIZE)).astype(np.int64)


METHODS = {"ours": ours, "opendp": opendp, "numpy": inexact}

if __name__ == "__main__":
    main()
