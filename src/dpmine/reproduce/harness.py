"""Experiments as values, and the loop that runs them: generator x algorithms x grid x repetitions.

A scene is one draw of the data: a point of the grid and the number of a repetition. All algorithms meet the same scenes,
so their measures are paired, and a difference between two algorithms does not hide behind luck with the sample. The seed
of a scene follows from the experiment's name, the point and the repetition by a stable hash, whatever else is in the grid:
a run over a part of the grid is a part of the whole run. Seeds rule the data only. The noise that protects comes from the
kernel's entropy, which has no seed, so measures of private algorithms differ from run to run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmine.errors import RequestError
from dpmine.progress import Progress
from dpmine.reproduce.records import Record, RecordFile
from dpmine.workers import worked

if TYPE_CHECKING:
    from dpmine.reproduce.claims import Claim
    from dpmine.reproduce.plots import Picture
    from dpmine.reproduce.significance import PairedComparison

MOST_DEFAULT_WORKERS = 2  # more only when asked: others may need the machine

Setting = str | int | float
Point = Mapping[str, Setting]
Measures = dict[str, float]


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
        from importlib.metadata import version

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


# -- the loop ----------------------------------------------------------------------------------------------------------


def default_workers() -> int:
    return min(MOST_DEFAULT_WORKERS, os.cpu_count() or 1)


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    only: Mapping[str, Sequence[Setting]] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Run what is still missing, and return the records of all cases asked for.

    Every finished case is appended to `<folder>/<name>.jsonl` at once: a run that was stopped goes on where it was.
    """
    workers = 1 if experiment.timed else default_workers() if workers is None else workers
    points = chosen_points(experiment, quick=quick, only=only or {})
    runs = _repetitions(experiment, quick, repetitions)
    cases = experiment.cases(points, runs)
    file = RecordFile(folder / f"{experiment.name}.jsonl", experiment.fingerprint())
    known = {case_key(record.point, record.algorithm, record.repetition): record for record in file.read()}
    missing = [case for case in cases if case.key not in known]
    scenes = _by_scene(experiment, missing)
    bar = Progress(experiment.name, shown=progress)
    with worked(partial(work, experiment.generate, experiment.measure), scenes, workers, "An experiment") as finished:
        for fresh in bar.steps(finished, "samples", total=len(scenes)):
            for record in fresh:
                file.append(record)
                known[case_key(record.point, record.algorithm, record.repetition)] = record
    return Outcome(experiment, points, tuple(known[case.key] for case in cases), len(missing))


def _repetitions(experiment: Experiment, quick: bool, asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise RequestError(f"An experiment needs at least 1 run. Got {asked} instead.")
    return asked or (experiment.quick_repetitions if quick else experiment.repetitions)


def chosen_points(experiment: Experiment, *, quick: bool, only: Mapping[str, Sequence[Setting]]) -> tuple[Point, ...]:
    """The grid, or its quick part, or of the whole grid those points whose parameters have the values asked for."""
    for name, values in only.items():
        known = sorted({point[name] for point in experiment.points if name in point})
        strange = [value for value in values if value not in known]
        if not known:
            names = ", ".join(experiment.points[0])
            raise RequestError(f"{experiment.name} has no parameter {name!r}. It has: {names}.")
        if strange:
            listed = ", ".join(map(str, known))
            raise RequestError(f"{experiment.name} is not run with {name} = {strange[0]}. It is run with: {listed}.")
    points = experiment.quick_points if quick and experiment.quick_points and not only else experiment.points
    return tuple(point for point in points if all(point[name] in values for name, values in only.items()))


def _by_scene(experiment: Experiment, cases: Sequence[Case]) -> list[list[Case]]:
    """The cases of each scene, scenes of one kind together where the experiment asks for it."""
    scenes: dict[int, list[Case]] = {}
    for case in cases:
        scenes.setdefault(case.scene.seed, []).append(case)
    listed = list(scenes.values())
    if experiment.together is None:
        return listed
    kinds: dict[Hashable, list[list[Case]]] = {}
    for group in listed:
        kinds.setdefault(experiment.together(group[0].scene), []).append(group)
    return [group for kind in kinds.values() for group in kind]


def work(generate: Callable[[Scene], Any], measure: Callable[[Case, Any], Measures], cases: Sequence[Case]) -> list[Record]:
    """Draw the data of one scene and run its cases on it."""
    data = generate(cases[0].scene)
    return [
        Record(case.point, case.algorithm, case.scene.repetition, case.scene.seed, measure(case, data)) for case in cases
    ]
