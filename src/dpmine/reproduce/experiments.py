"""Experiments as values: what to run on which data, what a paper printed and said about it, and what a run has to show.

A scene is one draw of the data: a point of the grid and the number of a repetition. All algorithms meet the same scenes,
so their measures are paired, and a difference between two algorithms does not hide behind luck with the sample. The seed
of a scene follows from the experiment's name, the point and the repetition by a stable hash, whatever else is in the grid:
a run over a part of the grid is a part of the whole run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmine.reproduce.pictures import Picture
from dpmine.reproduce.records import Record

Setting = str | int | float
Point = Mapping[str, Setting]
Measures = dict[str, float]

AGREES, UNDECIDED, DISAGREES = "agrees", "undecided", "does not agree"


@dataclass(frozen=True)
class Scene:
    """One draw of the data. Parameters that leave the data as they are do not occur in its point."""

    point: Point
    repetition: int
    seed: int


@dataclass(frozen=True)
class Case:
    """One algorithm at one point, on the data of one scene."""

    point: Point
    algorithm: str
    scene: Scene

    @property
    def key(self) -> str:
        return case_key(self.point, self.algorithm, self.scene.repetition)


@dataclass(frozen=True)
class Published:
    """A printed mean and standard deviation over so many runs; `step` is the unit of the last printed digit.

    Where no deviation is printed (None), theirs is taken to be ours.
    """

    point: Point
    algorithm: str
    mean: float
    std: float | None
    runs: int
    step: float = 0.1
    measure: str = "accuracy"


@dataclass(frozen=True)
class Durations:
    """Seconds with one worker: measured, or for long runs extrapolated from the quick one; None where not known."""

    full: float | None = None
    quick: float | None = None


@dataclass(frozen=True)
class PairedComparison:
    """Which algorithms to compare, on which measure, at which level; `test_share` is test rows / training rows."""

    algorithms: tuple[str, ...]
    test_share: float
    measure: str = "accuracy"
    level: float = 0.05


@dataclass(frozen=True)
class Finding:
    """What there is to see in a run; the verdict, one of the three above, is whether that is what the paper says."""

    verdict: str
    found: str


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and where to look; None where the run does not hold what it takes to judge."""

    says: str
    look: Callable[[Outcome], Finding | None]


@dataclass(frozen=True)
class Experiment:
    """What to run and how to show it.

    source         where the paper describes it
    shows          what there is to see, in a sentence
    points         the grid
    quick_points   the part of the grid that --quick runs
    generate       makes the data of a scene; a function of a module, since worker processes must find it
    measure        runs one case on the data of its scene; a function of a module too
    settings       what else the results depend on; with the version of the package it makes the fingerprint
    data_free      parameters that leave the data as they are: cases that differ in them alone share scenes
    indifferent    algorithms that the data-free parameters do not concern: they run once for all of them
    together       scenes with an equal key run one after another, so that what is slow to make can be kept
    claims         what the paper says in words, to be looked for in the records
    timed          whether it measures time: then only one worker runs, whatever was asked for
    drawings       further pictures, which need no records: each is written to a folder
    decimals       of the means in the table on the terminal
    """

    name: str
    title: str
    source: str
    shows: str
    points: tuple[Point, ...]
    algorithms: tuple[str, ...]
    repetitions: int
    generate: Callable[[Scene], Any]
    measure: Callable[[Case, Any], Measures]
    picture: Picture
    quick_points: tuple[Point, ...] = ()
    quick_repetitions: int = 10
    settings: Mapping[str, Any] = field(default_factory=dict)
    data_free: tuple[str, ...] = ()
    indifferent: tuple[str, ...] = ()
    together: Callable[[Scene], Hashable] | None = None
    published: tuple[Published, ...] = ()
    comparison: PairedComparison | None = None
    claims: tuple[Claim, ...] = ()
    timed: bool = False
    drawings: tuple[Callable[[Path], Path], ...] = ()
    durations: Durations = Durations()
    decimals: int = 1

    def fingerprint(self) -> str:
        """What results may be put together: those of the same settings and the same version of the package."""
        facts = {"experiment": self.name, "settings": dict(self.settings), "version": version("dpmine")}
        return hashlib.sha256(canonical(facts).encode()).hexdigest()[:16]

    def scene(self, point: Point, repetition: int) -> Scene:
        drawn = self._drawn(point)
        return Scene(drawn, repetition, stable_seed(self.name, drawn, repetition))

    def point_for(self, algorithm: str, point: Point) -> Point:
        """The part of a point that concerns an algorithm."""
        return self._drawn(point) if algorithm in self.indifferent else point

    def _drawn(self, point: Point) -> Point:
        return {name: setting for name, setting in point.items() if name not in self.data_free}

    def cases(self, points: Sequence[Point], repetitions: int) -> list[Case]:
        """All cases over these points, each once, those of one scene side by side."""
        found: dict[str, Case] = {}
        for repetition, point, algorithm in itertools.product(range(repetitions), points, self.algorithms):
            scene = self.scene(point, repetition)
            case = Case(self.point_for(algorithm, point), algorithm, scene)
            found.setdefault(case.key, case)
        return list(found.values())


@dataclass(frozen=True)
class Outcome:
    """What a run has to show: the records of all its cases, of which `fresh` were made now."""

    experiment: Experiment
    points: tuple[Point, ...]
    records: tuple[Record, ...]
    fresh: int

    def runs(self, algorithm: str, point: Point) -> list[Record]:
        """The records of an algorithm at a point of the grid."""
        known = dict(self.experiment.point_for(algorithm, point))
        return [record for record in self.records if record.algorithm == algorithm and dict(record.point) == known]


# -- seeds -------------------------------------------------------------------------------------------------------------


def canonical(form: Any) -> str:
    """JSON that is the same for equal contents."""
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def stable_seed(*parts: Any) -> int:
    """A seed from names and numbers: the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256(canonical(parts).encode()).digest()[:8], "big") >> 1


def case_key(point: Point, algorithm: str, repetition: int) -> str:
    return canonical([dict(point), algorithm, repetition])


def grid(**parameters: Sequence[Setting]) -> tuple[Point, ...]:
    """All combinations of the parameters' values, the last one changing fastest."""
    return tuple(dict(zip(parameters, values, strict=True)) for values in itertools.product(*parameters.values()))
