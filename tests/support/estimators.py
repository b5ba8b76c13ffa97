"""Estimators as tests make them, by name: trees with forests, and clusterings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import dpmine as dm
from dpmine.mining.clustering.estimator import ClusterEstimator
from dpmine.mining.trees.estimator import TreeEstimator

EVERY: dict[str, Callable[..., TreeEstimator]] = {
    "TreeClassifier": dm.TreeClassifier,
    "DiffPC45": dm.DiffPC45,
    "DiffPID3": dm.DiffPID3,
    "SulqID3": dm.SulqID3,
    "GreedyForest": dm.GreedyForest,
    "RandomForest": partial(dm.RandomForest, trees=3, max_depth=3, seed=7),
}
PUBLISHED = ("DiffPC45", "DiffPID3", "SulqID3")

CLUSTERINGS: dict[str, Callable[..., ClusterEstimator]] = {
    "grid": lambda epsilon=1, **given: dm.KMeans(3, epsilon, seed=1, **given),
    "tree": lambda epsilon=1, **given: dm.KMeans(3, epsilon, method="tree", seed=1, **given),
    "automatic": lambda epsilon=1, **given: dm.KMeans("auto", epsilon, max_clusters=3, seed=1, **given),
    "automatic tree": lambda epsilon=1, **given: dm.KMeans("auto", epsilon, method="tree", max_clusters=3, seed=1, **given),
    "dplloyd": lambda epsilon=1, **given: dm.DPLloyd(3, epsilon, seed=1, **given),
    "dplloyd, better": lambda epsilon=1, **given: dm.DPLloyd(
        3, epsilon, "auto", "spread", "optimal", seed=1, rows=300, **given
    ),
}
