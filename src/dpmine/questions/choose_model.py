"""The model that is right about most rows, chosen privately."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.model_keys import Predicted
from dpmine.language.queries import ResolvedQuestion
from dpmine.language.resolved import RowKey
from dpmine.language.resolver import Resolver
from dpmine.questions.choices import Choice

MOST_MODELS = 1_000  # in one choice


@value("choose-model")
class ChooseModel(Choice):
    """The model that predicts the class of most rows; the score of a model is the number of rows it is right about."""

    models: tuple[Predicted, ...]
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()
        if not 1 <= len(self.models) <= MOST_MODELS:
            raise RequestError(f"One choice has 1 to {MOST_MODELS} models. Got {len(self.models)}.")
        if not all(isinstance(model, Predicted) for model in self.models):
            raise RequestError("Models to choose from are predictions: keys of the kind Predicted.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedChooseModel:
        target = resolver.attribute(resolver.schema.require_class())
        if any(model.classes != resolver.schema.class_labels for model in self.models):
            raise RequestError("A model's classes must be those of the schema, in the same order.")
        models = tuple(resolver.key(model) for model in self.models)
        return ResolvedChooseModel(target, models, self.mechanism, self.calibration)


@value("resolved-choose-model")
class ResolvedChooseModel(ResolvedQuestion):
    """The key whose label agrees with the target in most rows."""

    target: RowKey
    models: tuple[RowKey, ...]
    mechanism: str
    calibration: str

    def counts(self, cells: int) -> int:
        return cells * self.target.size * sum(model.size for model in self.models)
