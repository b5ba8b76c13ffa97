"""The loop that runs an experiment: generator x algorithms x grid x repetitions.

Seeds rule the data only. The noise that protects comes from the kernel's entropy, which has no seed, so measures of private
algorithms differ from run to run.
"""

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.base.workers import worked
from dpmine.reproduce.experiments import Case, Experiment, Measures, Outcome, Point, Scene, Setting, case_key
from dpmine.reproduce.records import Record, RecordFile

MOST_DEFAULT_WORKERS = 2  # more only when asked: others may need the machine


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
