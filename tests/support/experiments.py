"""Experiments without trees, whose outcomes are known beforehand, and a made-up Adult, for tests of the harness."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpmine.datasets import adult_facts
from dpmine.reproduce.experiments import Case, Experiment, Measures, Scene, grid
from dpmine.reproduce.pictures import Picture


def drawn(scene: Scene) -> float:
    """A number that the seed alone decides."""
    return float(scene.seed % 1000)


def added(case: Case, data: float) -> Measures:
    """What was drawn and a constant for each algorithm and budget, so that paired differences have no variance."""
    return {"score": data + {"plain": 0.0, "better": 2.0}[case.algorithm] + float(case.point.get("epsilon", 0))}


def refuses_late_repetitions(case: Case, data: float) -> Measures:
    """Stops a run in its middle, as a crash would."""
    if case.scene.repetition >= 2:
        raise RuntimeError("stopped")
    return added(case, data)


def kills_its_process(case: Case, data: float) -> Measures:
    if case.scene.repetition >= 2:
        os._exit(9)
    return added(case, data)


def small(**changes: Any) -> Experiment:
    """Two algorithms, two sizes, two budgets that share their data, five repetitions."""
    experiment = Experiment(
        name="small",
        title="A small experiment",
        source="nowhere",
        shows="nothing",
        points=grid(size=(10, 20), epsilon=(0.5, 1.0)),
        algorithms=("plain", "better"),
        repetitions=5,
        quick_points=grid(size=(10,), epsilon=(0.5,)),
        quick_repetitions=2,
        generate=drawn,
        measure=added,
        data_free=("epsilon",),
        settings={"colour": "red"},
        picture=Picture(x="size", x_title="size", measure="score", columns="epsilon"),
    )
    return replace(experiment, **changes)


def write_small_adult(folder: Path) -> None:
    """A made-up Adult: 600 uniform rows whose income follows from the years of education; taxonomies of two halves."""
    draw = np.random.default_rng(5)
    columns: dict[str, Any] = {}
    halves: dict[str, Any] = {}
    for name in adult_facts.COLUMNS:
        if name in adult_facts.RANGES:
            low, high, _ = adult_facts.RANGES[name]
            columns[name] = draw.integers(low, high + 1, 600)
            continue
        categories = adult_facts.CATEGORIES[name]
        columns[name] = draw.choice(np.array(categories, dtype=object), 600)
        if len(categories) > 3:
            parts = (categories[: len(categories) // 2], categories[len(categories) // 2 :])
            halves[name] = {"Any": {f"half {number}": dict.fromkeys(part) for number, part in enumerate(parts)}}
    columns["income"] = np.where(columns["education_num"] > 10, ">50K", "<=50K")
    folder.mkdir()
    pd.DataFrame(columns).to_parquet(folder / "adult.parquet")
    (folder / adult_facts.TAXONOMY_FILE).write_text(json.dumps(halves), encoding="utf-8")


def lines_of(folder: Path) -> list[str]:
    return (folder / "small.jsonl").read_text(encoding="utf-8").splitlines()
