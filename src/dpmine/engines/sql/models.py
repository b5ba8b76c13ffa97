"""Models as columns: each tree's leaf by number, the sums of scores, the largest sum, the distance to a nearest centre.

In layers, and with cases that are not copied as they grow: the text stays as long as the model, not its square.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from dpmine.codes.rows import (
    BandedDistance,
    BandedSum,
    LargestSum,
    LeafScores,
    NearestCentre,
    RowKey,
    RowScores,
    ScoreBranch,
)
from dpmine.engines.sql.columns import Columns
from dpmine.engines.sql.expressions import by_label, integer, largest_of, layer, minus, plus, sum_of, times
from dpmine.engines.sql.keys import key_of


@dataclass(eq=False, repr=False)
class _Layers:
    """The columns that models add, each layer reading those before it."""

    leaves: dict[str, exp.Expression] = field(default_factory=dict)
    sums: dict[str, exp.Expression] = field(default_factory=dict)
    best: dict[str, exp.Expression] = field(default_factory=dict)
    distances: dict[str, exp.Expression] = field(default_factory=dict)

    def over(self, relation: exp.Expression) -> exp.Expression:
        for added in (self.leaves, self.sums, self.best, self.distances):
            relation = layer(relation, added) if added else relation
        return relation


def with_models(relation: exp.Expression, keys: Sequence[RowKey], columns: Columns) -> exp.Expression:
    """The relation with the columns of every model that the keys read."""
    banded = [key.nearest for key in keys if isinstance(key, BandedDistance)]
    models = dict.fromkeys(key for key in (*keys, *banded) if type(key) in _MODELS)
    layers = _Layers()
    for number, model in enumerate(models):
        _MODELS[type(model)](model, f"m{number}", layers, columns)
    for number, nearest in enumerate(dict.fromkeys(banded)):
        columns.distances[nearest] = f"d{number}"
        layers.distances[f"d{number}"] = _squared_distance(nearest, columns)
    return layers.over(relation)


def _add_largest_sum(model: LargestSum, name: str, layers: _Layers, columns: Columns) -> None:
    _add_sums(model, model.trees, model.size, name, layers, columns)
    _add_best(model, name, layers, columns)


def _add_banded_sum(model: BandedSum, name: str, layers: _Layers, columns: Columns) -> None:
    _add_sums(model, model.trees, 1, name, layers, columns)


def _add_nearest(model: NearestCentre, name: str, layers: _Layers, columns: Columns) -> None:
    columns.sums[model] = [f"{name}s{place}" for place in range(model.size)]
    layers.sums |= dict(zip(columns.sums[model], _nearness(model, columns), strict=True))
    _add_best(model, name, layers, columns)


_MODELS: Mapping[type[RowKey], Callable[[Any, str, _Layers, Columns], None]] = {
    LargestSum: _add_largest_sum,
    BandedSum: _add_banded_sum,
    NearestCentre: _add_nearest,
}


def _add_sums(model: RowKey, trees: Sequence[RowScores], width: int, name: str, layers: _Layers, columns: Columns) -> None:
    scored = [(f"{name}t{place}", tree) for place, tree in enumerate(trees)]
    layers.leaves |= {leaf: _leaf(tree, 0, columns) for leaf, tree in scored}
    columns.sums[model] = [f"{name}s{place}" for place in range(width)]
    for place, each in enumerate(columns.sums[model]):
        scores = [
            columns.dialect.pick([one[place] for one in _leaf_scores(tree)], exp.column(leaf)) for leaf, tree in scored
        ]
        layers.sums[each] = sum_of(scores, columns.dialect.wide)


def _add_best(model: RowKey, name: str, layers: _Layers, columns: Columns) -> None:
    columns.best[model] = f"{name}b"
    layers.best[columns.best[model]] = largest_of(columns.sums[model])


def _nearness(key: NearestCentre, columns: Columns) -> Iterator[exp.Expression]:
    """For each centre the part of minus the squared distance that differs between centres, in whole numbers."""
    positions = positions_of(key, columns)
    for centre in key.centres:
        nearness = integer(-sum(place * place for place in centre))
        for position, place in zip(positions, centre, strict=True):
            nearness = plus(nearness, times(position.copy(), integer(2 * place)))
        yield nearness


def _squared_distance(key: NearestCentre, columns: Columns) -> exp.Expression:
    """To the nearest centre: |x|^2 less the largest nearness, which is |x|^2 - |x - c|^2."""
    squares = sum_of([times(each, each.copy()) for each in positions_of(key, columns)], columns.dialect.wide)
    return minus(squares, exp.column(columns.best[key]))


def positions_of(key: NearestCentre, columns: Columns) -> list[exp.Expression]:
    """Where a row lies in each attribute: its rounded number times a scale, and a gap in the middle."""
    found: list[exp.Expression] = []
    for place, scale in zip(key.places, key.scales, strict=True):
        number = columns.dialect.wide(key_of(place, columns))
        if place.size > place.steps + 1:
            beyond = exp.GT(this=number.copy(), expression=integer(place.steps))
            number = columns.dialect.wide(exp.Case().when(beyond, integer(place.steps // 2)).else_(number))
        found.append(times(number, integer(scale)))
    return found


def _leaf(tree: RowScores, first: int, columns: Columns) -> exp.Expression:
    """The number of the row's leaf in a model's tree, counted from `first`."""
    if not isinstance(tree, ScoreBranch):
        return integer(first)
    if len(tree.children) == 1:
        return _leaf(tree.children[0], first, columns)
    leaves = []
    for child in tree.children:
        leaves.append(_leaf(child, first, columns))
        first += len(_leaf_scores(child))
    return by_label(key_of(tree.key, columns), leaves)


def _leaf_scores(tree: RowScores) -> list[tuple[int, ...]]:
    """The scores of a tree's leaves from left to right."""
    if isinstance(tree, LeafScores):
        return [tree.scores]
    assert isinstance(tree, ScoreBranch)
    return [scores for child in tree.children for scores in _leaf_scores(child)]
