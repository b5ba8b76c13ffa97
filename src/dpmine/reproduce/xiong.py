"""The comparison of k-means with "Laplace k-means" in Xiong's course slides on privacy-preserving data mining, slide 52.

The text keeps the algorithm (slides 47 to 51: T = 10, random starts, equal halves for sizes and sums) and two sentences; the
pictures are lost, and with them data, k and epsilon. So the data are generated here: in a box of 100 x 100 four large
clusters far apart from each other and from a group of three small ones, which are close to each other; where they lie is
drawn anew for each run, and k is 7. A cluster is found if a centre lies within 4 of its true one. The true centres are at
least 8 apart, so a centre finds one cluster at most.

The slides' "Dom" is taken as the sum of both half sides of the box, as it must be for two coordinates. Starts are uniform in
the box, since starts among the rows would not be private; Lloyd without noise has the same starts and as many steps.
Ordinary k-means with several starts and swaps (`weighted_kmeans`) tells what the points themselves allow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.public_random import public_generator
from dpmine.engines.encoding import EncodedTable
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.estimator import ClusterEstimator
from dpmine.mining.clustering.kmeans import KMeans
from dpmine.owner.opening import open as open_table
from dpmine.postprocess.weighted_kmeans import weighted_kmeans
from dpmine.reproduce.claims import all_above, difference, mean_of
from dpmine.reproduce.experiments import (
    AGREES,
    DISAGREES,
    Case,
    Claim,
    Durations,
    Experiment,
    Finding,
    Measures,
    Outcome,
    PairedComparison,
    Point,
    Scene,
    grid,
)
from dpmine.reproduce.pictures import BLACK, BLUE, GREY, ORANGE, RED, Picture, Style
from dpmine.reproduce.plots import RESOLUTION, TEXT, pyplot
from dpmine.reproduce.tree_runs import encoded

Points = NDArray[np.float64]

SLIDES = "Xiong, course slides, Privacy preserving data mining"
NAME = "xiong-kmeans"
SIDE, STEP = 100, Decimal("0.1")
FAR, FAR_ROWS, FAR_DEVIATION = 4, 2000, 2.0
CLOSE, CLOSE_ROWS, CLOSE_DEVIATION = 3, 200, 1.0
APART = 35.0  # at least, between large clusters, and from them to the middle of the small ones
NEIGHBOURS = 8.0  # between small clusters
MARGIN = 12.0  # between the edge of the box and the middle of any group
WITHIN = 4.0  # of the true centre a cluster is found
K = FAR + CLOSE
STEPS = 10
ROWS_AT_MOST = 10_000
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
CLUSTERS = ("far", "close")
RUNS = 50
SAME = 10.0  # points within which two shares of clusters count as the same

ORDINARY = "ordinary k-means"
LLOYD = "Lloyd (T = 10)"
DPLLOYD = "DPLloyd (T = 10)"
BETTER = "DPLloyd, better constants"
OURS = "KMeans"
STYLES = {
    ORDINARY: Style(BLACK, "P", ":"),
    LLOYD: Style(GREY, "X", "--"),
    DPLLOYD: Style(RED, "^"),
    BETTER: Style(ORANGE, "s"),
    OURS: Style(BLUE, "o"),
}


# -- data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plane:
    """Generated points with their true centres; what was fitted to them is kept, since far and close share a fit."""

    points: Points
    far: Points
    close: Points
    seed: int
    table: EncodedTable
    fits: dict[tuple[str, float | None], Points] = field(default_factory=dict)


def schema() -> Schema:
    axes = tuple(Numeric(axis, Decimal(0), Decimal(SIDE), STEP, Decimal(0)) for axis in "xy")
    return Schema("plane", axes, ROWS_AT_MOST)


def far_and_close(scene: Scene) -> Plane:
    """Round Gaussians: large ones far apart, and small ones at the corners of a triangle."""
    draw = public_generator(scene.seed)
    sites = _sites(draw)
    far, middle = sites[:FAR], sites[FAR]
    angles = draw.uniform(0, 2 * math.pi) + 2 * math.pi * np.arange(CLOSE) / CLOSE
    radius = NEIGHBOURS / (2 * math.sin(math.pi / CLOSE))
    close = middle + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    drawn = [centre + FAR_DEVIATION * draw.standard_normal((FAR_ROWS, 2)) for centre in far]
    drawn += [centre + CLOSE_DEVIATION * draw.standard_normal((CLOSE_ROWS, 2)) for centre in close]
    points = np.clip(np.concatenate(drawn), 0, SIDE)
    table = encoded({axis: points[:, place].tolist() for place, axis in enumerate("xy")}, schema())
    return Plane(points, far, close, scene.seed, table)


def _sites(draw: np.random.Generator) -> Points:
    """The middles of the large clusters and of the group of small ones, drawn until they are far enough apart."""
    while True:
        sites = draw.uniform(MARGIN, SIDE - MARGIN, (FAR + 1, 2))
        gaps = np.linalg.norm(sites[:, None] - sites[None], axis=2)
        if gaps[np.triu_indices(len(sites), 1)].min() >= APART:
            return sites


# -- algorithms --------------------------------------------------------------------------------------------------------


def found_clusters(case: Case, plane: Plane) -> Measures:
    """The share of the far or of the close clusters that an algorithm finds, in %."""
    epsilon = None if case.algorithm in WITHOUT_PRIVACY else float(case.point["epsilon"])
    wanted = (case.algorithm, epsilon)
    if wanted not in plane.fits:
        plane.fits[wanted] = centres_of(case.algorithm, plane, epsilon)
    return {"found": share_found(plane.fits[wanted], plane.far if case.point["clusters"] == "far" else plane.close)}


def share_found(centres: Points, true: Points) -> float:
    """True centres are at least twice `WITHIN` apart, so that no centre is near two of them."""
    away = np.linalg.norm(true[:, None] - centres[None], axis=2)
    return float(np.mean(away.min(axis=1) <= WITHIN) * 100)


def centres_of(algorithm: str, plane: Plane, epsilon: float | None) -> Points:
    if epsilon is None:
        return WITHOUT_PRIVACY[algorithm](plane)
    model = PRIVATE[algorithm](epsilon, plane.seed)
    with open_table(plane.table, schema=plane.table.schema, ledger=None, cap=model.budget) as data:
        model.fit(data.grant("experiment", epsilon=model.budget), progress=False)
    return model.cluster_centers_


def _starts(plane: Plane) -> Points:
    """Those of `DPLloyd` with the same seed."""
    return public_generator(plane.seed).uniform(0, 1, (K, 2)) * SIDE


def _lloyd(plane: Plane) -> Points:
    """The slides' algorithm without noise. A cluster without points keeps its centre."""
    centres = _starts(plane)
    for _ in range(STEPS):
        nearest = np.argmin(np.sum((plane.points[:, None] - centres[None]) ** 2, axis=2), axis=1)
        for number in np.unique(nearest):
            centres[number] = plane.points[nearest == number].mean(axis=0)
    return centres


def _ordinary(plane: Plane) -> Points:
    return weighted_kmeans(plane.points, np.ones(len(plane.points)), K, seed=plane.seed).centres


def _dplloyd(epsilon: float, seed: int) -> ClusterEstimator:
    return DPLloyd(K, epsilon=epsilon, iterations=STEPS, starts="random", shares="equal", scaling="none", seed=seed)


def _better(epsilon: float, seed: int) -> ClusterEstimator:
    return DPLloyd(K, epsilon=epsilon, iterations="auto", starts="spread", shares="optimal", scaling="none", seed=seed)


def _kmeans(epsilon: float, seed: int) -> ClusterEstimator:
    return KMeans(K, epsilon=epsilon, scaling="none", seed=seed)


WITHOUT_PRIVACY: dict[str, Callable[[Plane], Points]] = {ORDINARY: _ordinary, LLOYD: _lloyd}
"""NOT PRIVATE: they see the points themselves."""
PRIVATE: dict[str, Callable[[float, int], ClusterEstimator]] = {DPLLOYD: _dplloyd, BETTER: _better, OURS: _kmeans}


# -- what the slides say -------------------------------------------------------------------------------------------------


def far_ones_are_found(outcome: Outcome) -> Finding | None:
    """At the largest epsilon that was run, as many as Lloyd finds without noise from the same starts, or nearly."""
    points = _points(outcome, "far")
    if not points:
        return None
    ours, plain = mean_of(outcome, DPLLOYD, points[-1]), mean_of(outcome, LLOYD, points[-1])
    shown = f"{_means(outcome, DPLLOYD, points)}; without noise {plain:.0f} %"
    return Finding(AGREES if ours >= plain - SAME else DISAGREES, shown)


def close_ones_are_not(outcome: Outcome) -> Finding | None:
    """At every epsilon fewer than ordinary k-means finds: those that the points allow to be told apart."""
    points = _points(outcome, "close")
    gaps = [difference(outcome, (ORDINARY, point), (DPLLOYD, point), 0.0) for point in points]
    if not gaps:
        return None
    plain, best = (mean_of(outcome, algorithm, points[-1]) for algorithm in (LLOYD, ORDINARY))
    levels = f"without noise {plain:.0f} %, {ORDINARY} {best:.0f} %"
    least = min(gaps, key=lambda gap: gap.mean)
    return Finding(all_above(gaps), f"{_means(outcome, DPLLOYD, points)}; {levels}, which is {least} more at least")


def _points(outcome: Outcome, clusters: str) -> list[Point]:
    """Those of the run that are about these clusters, from the smallest epsilon to the largest."""
    return sorted((p for p in outcome.points if p["clusters"] == clusters), key=lambda p: float(p["epsilon"]))


def _means(outcome: Outcome, algorithm: str, points: list[Point]) -> str:
    shares = [f"{mean_of(outcome, algorithm, point):.0f} % at epsilon {point['epsilon']:g}" for point in points]
    return f"{algorithm}: {', '.join(shares)}"


# -- the experiment ------------------------------------------------------------------------------------------------------


def xiong_experiments() -> tuple[Experiment, ...]:
    return (_slide_52(),)


def _slide_52() -> Experiment:
    return Experiment(
        name=NAME,
        title="k-means with noise in every step: far clusters are found, small close ones are not (slide 52)",
        source=f"{SLIDES}, slide 52",
        shows="clusters that are far apart are found, small ones that are close by are not; KMeans needs less epsilon",
        points=grid(clusters=CLUSTERS, epsilon=EPSILONS),
        algorithms=tuple(STYLES),
        repetitions=RUNS,
        quick_points=grid(clusters=CLUSTERS, epsilon=(0.1, 1.0, 5.0)),
        quick_repetitions=10,
        generate=far_and_close,
        measure=found_clusters,
        settings={
            "far": [FAR, FAR_ROWS, FAR_DEVIATION, APART],
            "close": [CLOSE, CLOSE_ROWS, CLOSE_DEVIATION, NEIGHBOURS],
            "within": WITHIN,
            "iterations": STEPS,
        },
        data_free=("clusters", "epsilon"),
        comparison=PairedComparison((OURS, DPLLOYD, LLOYD), 0.0, "found"),
        claims=(
            Claim("Laplace k-means can distinguish clusters that are far apart", far_ones_are_found),
            Claim("Laplace k-means can't distinguish small clusters that are close by", close_ones_are_not),
        ),
        drawings=(draw_centres,),
        durations=Durations(50, 7),
        picture=Picture(
            x="epsilon",
            x_title="epsilon",
            y_title="clusters found, %",
            measure="found",
            log_x=True,
            columns="clusters",
            note=f"found: a centre within {WITHIN:g} of the true one; {FAR} clusters of {FAR_ROWS} points far apart, "
            f"{CLOSE} of {CLOSE_ROWS} points {NEIGHBOURS:g} apart, in a box of {SIDE} x {SIDE}",
            styles=STYLES,
        ),
    )


def draw_centres(folder: Path, *, epsilon: float = 1.0, repetition: int = 0) -> Path:
    """The slide's picture: the points of one repetition, which are public, and the centres that each algorithm finds."""
    plane = far_and_close(_slide_52().scene({}, repetition))
    figure, panels = pyplot().subplots(1, len(STYLES), figsize=(3.0 * len(STYLES), 3.5), sharey=True, layout="constrained")
    for axes, (algorithm, style) in zip(panels, STYLES.items(), strict=True):
        centres = centres_of(algorithm, plane, None if algorithm in WITHOUT_PRIVACY else epsilon)
        counts = [f"{share_found(centres, true) / 100 * len(true):.0f} of {len(true)}" for true in (plane.far, plane.close)]
        _draw_panel(axes, plane, centres, style)
        axes.set_title(f"{algorithm}\nfar {counts[0]}, close {counts[1]}", fontsize=9, color=TEXT)
    title = f"Points, and the centres that were found at epsilon {epsilon:g} (the first two: without privacy)"
    figure.suptitle(title, fontsize=11, color=TEXT, x=0.01, ha="left")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.centres.png"
    figure.savefig(path, dpi=RESOLUTION, bbox_inches="tight", facecolor="white")
    pyplot().close(figure)
    return path


def _draw_panel(axes: Any, plane: Plane, centres: Points, style: Style) -> None:
    axes.plot(*plane.points.T, linestyle="none", marker=".", markersize=1, color="#BBBBBB", rasterized=True)
    axes.plot(*centres.T, linestyle="none", marker=style.marker, markersize=7, color=style.colour, markeredgecolor="white")
    axes.set_xlim(0, SIDE)
    axes.set_ylim(0, SIDE)
    axes.set_aspect("equal")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=TEXT, labelsize=8)
