"""A fitted model as a key: public rule trees whose leaves hold integer scores, added up over the trees.

With these keys a model is judged where the rows are: a histogram by prediction and class is a confusion matrix. Scores
are integers, so every engine gives every row the same label, to the last bit.
"""

import itertools
from collections.abc import Iterator

from dpmine.base.errors import ExpressionError
from dpmine.base.wire_values import value
from dpmine.codes.rows import (
    LARGEST_DISTANCE,
    LARGEST_POSITION,
    LARGEST_SCORE,
    MOST_CENTRES,
    MOST_CLASSES,
    MOST_DIMENSIONS,
    MOST_TREES,
)
from dpmine.facts.facts import Facts
from dpmine.language.keys import AttributeKey, Bins, Groups, Key

MOST_NODES = 65_536  # in all trees of a model
DEEPEST_TREE = 40  # JSON nests two levels a node
MOST_BANDS = 4_096


class ScoreTree:
    """A rule tree with scores at its leaves."""


@value("score-leaf")
class ScoreLeaf(ScoreTree):
    scores: tuple[int, ...]


@value("score-split")
class ScoreSplit(ScoreTree):
    key: Key
    children: tuple[ScoreTree, ...]


@value("predicted")
class Predicted(Key):
    """The class with the largest sum of scores over all trees; of equal ones the first."""

    trees: tuple[ScoreTree, ...]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_trees(self.trees, len(self.classes))
        if len(self.classes) > MOST_CLASSES:
            raise ExpressionError(f"A prediction has at most {MOST_CLASSES} classes. Got {len(self.classes)}.")
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise ExpressionError("A prediction needs at least two different classes.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        return self.classes

    @property
    def title(self) -> str:
        return "predicted"


@value("score-bands")
class ScoreBands(Key):
    """The summed score of one class, cut at rising edges; a band holds its lower edge and not its upper one."""

    trees: tuple[ScoreTree, ...]
    place: int
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        check_trees(self.trees, None)
        if not self.edges or any(low >= high for low, high in itertools.pairwise(self.edges)):
            raise ExpressionError("Bands of a score need edges that rise.")
        if len(self.edges) >= MOST_BANDS or any(type(edge) is not int for edge in self.edges):
            raise ExpressionError(f"A score has at most {MOST_BANDS} bands, with whole numbers as edges.")
        if max(map(abs, self.edges)) > LARGEST_SCORE * MOST_TREES:
            raise ExpressionError("An edge lies beyond the largest possible score.")
        if not all(0 <= self.place < len(leaf.scores) for tree in self.trees for leaf in score_leaves(tree)):
            raise ExpressionError(f"Not every leaf has a score number {self.place}.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        return tuple(f"band {number + 1}" for number in range(len(self.edges) + 1))

    @property
    def title(self) -> str:
        return "score"


def _is_positive(number: object) -> bool:
    return type(number) is int and number > 0


@value("nearest")
class Nearest(Key):
    """The nearest of some centres; of equally near ones the first.

    The position of a row in an attribute is its number, rounded to that many steps between the bounds, times the attribute's
    scale, a whole number, and so are the centres' positions: distances are whole numbers, and every engine finds the same
    centre, to the last bit. A row without a value lies in the middle.
    """

    attributes: tuple[str, ...]
    steps: tuple[int, ...]
    scales: tuple[int, ...]
    centres: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        dimensions = len(self.attributes)
        if not 1 <= dimensions <= MOST_DIMENSIONS or len(set(self.attributes)) < dimensions:
            raise ExpressionError(f"Centres lie in 1 to {MOST_DIMENSIONS} different attributes.")
        numbers = (*self.scales, *self.steps)
        if len(self.scales) != dimensions or len(self.steps) != dimensions or not all(map(_is_positive, numbers)):
            raise ExpressionError("Every attribute needs steps and a scale, positive whole numbers.")
        if not 1 <= len(self.centres) <= MOST_CENTRES or any(len(centre) != dimensions for centre in self.centres):
            raise ExpressionError(f"There are 1 to {MOST_CENTRES} centres, each with a position in every attribute.")
        places = [place for centre in self.centres for place in centre]
        if any(type(place) is not int or not 0 <= place <= LARGEST_POSITION for place in places):
            raise ExpressionError(f"A centre's positions are whole numbers from 0 to {LARGEST_POSITION}.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        return tuple(f"cluster {number}" for number in range(len(self.centres)))

    @property
    def title(self) -> str:
        return "cluster"


@value("nearest-bands")
class NearestBands(Key):
    """The squared distance to the nearest centre, in positions squared, cut at rising edges; a band holds its lower edge.

    A noisy histogram by it tells, up to the width of the bands, how close the rows lie to their centres.
    """

    nearest: Nearest
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.edges) >= MOST_BANDS or any(type(edge) is not int for edge in self.edges):
            raise ExpressionError(f"A distance has at most {MOST_BANDS} bands, with whole numbers as edges.")
        if not self.edges or any(low >= high for low, high in itertools.pairwise(self.edges)):
            raise ExpressionError("Bands of a distance need edges that rise.")
        if not 0 <= self.edges[0] <= self.edges[-1] <= LARGEST_DISTANCE:
            raise ExpressionError(f"Edges of a squared distance lie between 0 and {LARGEST_DISTANCE}.")

    def labels(self, schema: Facts) -> tuple[str, ...]:
        return tuple(f"band {number + 1}" for number in range(len(self.edges) + 1))

    @property
    def title(self) -> str:
        return "distance"


def score_leaves(tree: ScoreTree) -> Iterator[ScoreLeaf]:
    """From left to right."""
    if isinstance(tree, ScoreSplit):
        for child in tree.children:
            yield from score_leaves(child)
    else:
        assert isinstance(tree, ScoreLeaf)
        yield tree


def check_trees(trees: tuple[ScoreTree, ...], classes: int | None) -> None:
    """Limits by public numbers, so that no model can exhaust us or overflow a sum."""
    if not 1 <= len(trees) <= MOST_TREES:
        raise ExpressionError(f"A model has 1 to {MOST_TREES} trees. Got {len(trees)}.")
    waiting = [(tree, 0) for tree in trees]
    seen = 0
    while waiting:
        tree, depth = waiting.pop()
        seen += 1
        if seen > MOST_NODES or depth > DEEPEST_TREE:
            raise ExpressionError(f"A model has at most {MOST_NODES} nodes, {DEEPEST_TREE} levels deep.")
        if isinstance(tree, ScoreSplit):
            if not isinstance(tree.key, (AttributeKey, Bins, Groups)):
                raise ExpressionError("A model's tree splits by a column, by bins or by groups.")
            waiting.extend((child, depth + 1) for child in tree.children)
        else:
            assert isinstance(tree, ScoreLeaf)
            if classes not in (None, len(tree.scores)):
                raise ExpressionError(f"Every leaf needs {classes} scores, one for each class.")
            if any(type(score) is not int or abs(score) > LARGEST_SCORE for score in tree.scores):
                raise ExpressionError(f"A score must be a whole number within +-{LARGEST_SCORE}.")
