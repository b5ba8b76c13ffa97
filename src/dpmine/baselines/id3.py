"""NOT PRIVATE: Quinlan's ID3 (Machine Learning 1, 1986) on true rows, the reference for SuLQ-ID3 and DiffP-ID3."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmine.base.errors import RequestError
from dpmine.baselines.greedy import SCORES, Chooser, Counts, Layout, NodeCounts, ReferenceTree, Scores, first_best
from dpmine.language.candidates import every_category
from dpmine.language.keys import Key


class ID3(ReferenceTree):
    """NOT PRIVATE. Splits into all values of a nominal attribute, each attribute at most once on a path.

    A node is a leaf when it is pure or empty, when no attribute is left or none raises the score, and at the largest depth.
    An empty leaf has the label of its parent. Of equal attributes the first in the schema is taken. `max_depth=None` is the
    depth that a model may have at all. Numeric attributes are refused.

    Private trees cannot see that a split gains nothing, and with `max` most first splits of a good tree do not: they leave
    every majority as it is. `split_without_gain=True` goes on as private trees do, and is the fairer reference there.
    """

    def __init__(self, max_depth: int | None = None, score: str = "infogain", *, split_without_gain: bool = False) -> None:
        super().__init__(max_depth, score, list(SCORES))
        self.split_without_gain = split_without_gain

    def _chooser(self, layout: Layout) -> Chooser:
        for attribute in layout.attributes:
            if attribute.ordered:
                raise RequestError(
                    f"ID3 splits by categories, and {attribute.name!r} is numeric. Discretise it: describe it in the schema "
                    "as a nominal attribute with a category for each bin. C45 finds thresholds by itself."
                )
        return _ByAllValues(SCORES[self.score], self.split_without_gain)


@dataclass(frozen=True)
class _ByAllValues(Chooser):
    score: Callable[[Counts], Scores]
    without_gain: bool

    def best(self, view: NodeCounts) -> tuple[Key, int | None] | None:
        gains = np.where(view.open, view.multiway(self.score) - self.score(view.node), -np.inf)
        number = first_best(gains, view.rounding)
        if number is None or (gains[number] <= view.rounding and not self.without_gain):
            return None
        return every_category(view.layout.schema, view.layout.attributes[number].name), number
