"""What experiments with trees share: algorithms by name, and the accuracy of a tree on rows that it has not seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmine.base.public_random import public_generator
from dpmine.baselines import C45, ID3
from dpmine.engines.encoding import EncodedTable, encode
from dpmine.facts.schema import Schema
from dpmine.facts.sources import reading
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.mining.trees.sulq_id3 import SulqID3
from dpmine.owner.opening import open as open_table
from dpmine.release.estimator import ReleaseEstimator
from dpmine.reproduce.experiments import stable_seed

Model = TypeVar("Model", bound=TreeEstimator | ReleaseEstimator)

SCORES = {"InfoGain": "infogain", "Gini": "gini", "Max": "max"}
BINS = 10  # of a numeric attribute, for algorithms that know categories only


@dataclass(frozen=True)
class Sample:
    """Training and test rows, encoded once for all algorithms that meet them."""

    training: EncodedTable
    test: EncodedTable


def encoded(table: Any, schema: Schema) -> EncodedTable:
    with reading(table, schema.read, schema.columns) as source:
        return encode(source, schema)


def part_of_table(table: EncodedTable, places: NDArray[np.intp], schema: Schema | None = None) -> EncodedTable:
    """The rows at these places as a table of their own, without encoding them again; lists are left behind."""
    columns = {name: codes[places] for name, codes in table.values.items()}
    return EncodedTable(schema or table.schema, len(places), columns, {}, table.encoding)


def fold_of(table: EncodedTable, name: str, repetition: int, folds: int) -> Sample:
    """One fold of a cross-validation: as many repetitions in a row as there are folds are those of one named shuffle."""
    shuffle, fold = divmod(repetition, folds)
    order = public_generator(stable_seed(name, shuffle)).permutation(table.rows)
    parts = np.array_split(order, folds)
    rest = np.concatenate([part for number, part in enumerate(parts) if number != fold])
    return Sample(part_of_table(table, np.sort(rest)), part_of_table(table, np.sort(parts[fold])))


def accuracy(algorithm: str, sample: Sample, *, epsilon: float, depth: int) -> float:
    """Fit an algorithm to the training rows; the percentage of test rows that it then gets right."""
    schema = sample.training.schema
    target = schema.require_class()
    if algorithm in REFERENCES:
        reference = REFERENCES[algorithm](depth)
        columns = sample.training.codes
        reference.fit_codes(columns, columns[target], schema)
        predicted = reference.predict_codes(sample.test.codes, sample.test.rows)
    else:
        model = fitted(PRIVATE[algorithm](epsilon, depth), sample.training)
        predicted = np.argmax(model.trees_.sums(sample.test.codes, sample.test.rows, schema), axis=1)
    return float(np.mean(predicted == sample.test.codes[target]) * 100)


def fitted(model: Model, table: EncodedTable) -> Model:
    """Fit with a budget of its own: a ledger in memory that grants this one model all it asks for."""
    with open_table(table, schema=table.schema, ledger=None, cap=model.budget) as data:
        model.fit(data.grant("experiment", epsilon=model.budget), progress=False)
    return model


# -- algorithms by name ------------------------------------------------------------------------------------------------


def _diffp_id3(criterion: str) -> Callable[[float, int], TreeEstimator]:
    def build(epsilon: float, depth: int) -> TreeEstimator:
        return DiffPID3(epsilon=epsilon, max_depth=depth, criterion=criterion, bins=BINS)

    return build


def _diffp_c45(criterion: str) -> Callable[[float, int], TreeEstimator]:
    def build(epsilon: float, depth: int) -> TreeEstimator:
        return DiffPC45(epsilon=epsilon, max_depth=depth, criterion=criterion)

    return build


def _sulq_id3(epsilon: float, depth: int) -> TreeEstimator:
    return SulqID3(epsilon=epsilon, max_depth=depth, bins=BINS)


def _tree_classifier(epsilon: float, depth: int) -> TreeEstimator:
    return TreeClassifier(epsilon=epsilon)


def _greedy_forest(epsilon: float, depth: int) -> TreeEstimator:
    return GreedyForest(epsilon=epsilon)


def _random_forest(epsilon: float, depth: int) -> TreeEstimator:
    return RandomForest(epsilon=epsilon)


PRIVATE: dict[str, Callable[[float, int], TreeEstimator]] = {
    **{f"DiffP-ID3 {title}": _diffp_id3(score) for title, score in SCORES.items()},
    **{f"DiffP-C4.5 {title}": _diffp_c45(score) for title, score in SCORES.items()},
    "SuLQ-ID3": _sulq_id3,
    "TreeClassifier": _tree_classifier,
    "GreedyForest": _greedy_forest,
    "RandomForest": _random_forest,
}
"""Private algorithms, made from epsilon and depth; those that choose their own depth ignore the latter."""


def _id3(depth: int) -> Any:
    return ID3(max_depth=None)


def _c45(*, pruning: bool, limited: bool = False) -> Callable[[int], Any]:
    def build(depth: int) -> Any:
        return C45(max_depth=depth if limited else None, pruning=pruning)

    return build


REFERENCES: dict[str, Callable[[int], Any]] = {
    "ID3": _id3,
    "C4.5": _c45(pruning=True),
    "C4.5 unpruned": _c45(pruning=False),
    "C4.5 of the same depth": _c45(pruning=True, limited=True),
}
"""NOT PRIVATE: ordinary trees of any depth, as Weka grows them; one is held to the depth of the private trees."""
