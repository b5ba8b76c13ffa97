"""Points to cluster, as tables of numeric attributes alone, and fits on them without noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.attributes import numeric
from support.mined_tables import Table
from support.opening import silent

from dpmine.codes.answers import Reply
from dpmine.facts.schema import Schema
from dpmine.language.queries import Query
from dpmine.mining.clustering.estimator import ClusterEstimator

Points = NDArray[np.float64]
BLOBS = ((20, 20), (80, 30), (50, 80))


def box_schema(dimensions: int, *, high: int = 100, step: str = "1", low: int = 0, rows_at_most: int = 10_000) -> Schema:
    """Numeric attributes x0, x1, ... alone."""
    return Schema("points", tuple(numeric(f"x{place}", low, high, step) for place in range(dimensions)), rows_at_most)


def columns(points: Points) -> Table:
    return {f"x{place}": points[:, place].tolist() for place in range(points.shape[1])}


def blobs(each: int, seed: int, centres: Sequence[Sequence[float]] = BLOBS, *, spread: float = 4) -> Points:
    """Whole numbers around some centres, within 0 .. 100; the first blob is the largest."""
    draw = np.random.default_rng(seed)
    drawn = [draw.normal(centre, spread, (each - 2 * place, len(centre))) for place, centre in enumerate(centres)]
    return np.clip(np.rint(np.vstack(drawn)), 0, 100)


def cube(each: int, seed: int, dimensions: int = 4) -> Points:
    """Three blobs in more dimensions."""
    return blobs(each, seed, [[20] * dimensions, [80] * dimensions, [20, 80] * (dimensions // 2)])


def fitted_silently(model: ClusterEstimator, points: Points, schema: Schema) -> tuple[Any, list[tuple[Query, Reply]]]:
    """The model without noise, and what its fit asked."""
    with silent(columns(points), schema, model.budget) as (private, recorder, _):
        return model.fit(private), recorder.asked
