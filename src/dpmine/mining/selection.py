"""Private selection among a few configurations: each is fitted on one part of the rows, and one is chosen on the other.

The parts are disjoint, so the price is the larger of the two, not their sum: every candidate gets an equal share of
epsilon on the training part, and the choice has all of epsilon on the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.budget.rows import per_row
from dpmine.mining.trees.estimator import TreeEstimator
from dpmine.tables.asking import Amount
from dpmine.tables.private_table import PrivateTable


@dataclass(frozen=True)
class Selection:
    """The chosen model, fitted; and the other candidates, which are as private and may be looked at too."""

    best: TreeEstimator
    index: int
    candidates: tuple[TreeEstimator, ...]
    cost: Epsilon
    charged: Epsilon

    def __str__(self) -> str:
        lines = [f"{'->' if place == self.index else '  '} {model!r}" for place, model in enumerate(self.candidates)]
        return "\n".join([*lines, f"chosen privately, epsilon {self.cost}"])


def select_model(
    private: PrivateTable,
    candidates: Sequence[TreeEstimator],
    *,
    epsilon: Amount,
    validation: float | str | Decimal = "0.2",
) -> Selection:
    """Fit copies of the candidates at equal shares of epsilon, and choose privately the one with most right predictions.

    Example: dm.select_model(private, [dm.TreeClassifier(max_depth=4), dm.TreeClassifier(max_depth=7)], epsilon=1)
    """
    if not candidates:
        raise RequestError("Name at least one configuration to choose from.")
    if not all(isinstance(model, TreeEstimator) for model in candidates):
        raise RequestError("Candidates are models such as dm.TreeClassifier(max_depth=4), not fitted yet.")
    budget = Epsilon.parse(epsilon)
    each_row = per_row(budget, private.schema)
    private = private.with_room_for(each_row)
    before = private.remaining().units
    train, held_out = private.split(test=validation, salt="select-model")
    each = Epsilon(budget.units // len(candidates))
    models = [type(model)(**{**model.get_params(), "epsilon": str(each)}) for model in candidates]
    for model in models:
        model.plan(private.schema)  # every mistake shows before anything is spent
    fitted = tuple(model.fit(train) for model in models)
    chosen = held_out.choose_model([model.predicted() for model in fitted], epsilon=each_row)
    charged = Epsilon(before - private.remaining().units)
    return Selection(fitted[chosen.index], chosen.index, fitted, budget, charged)
