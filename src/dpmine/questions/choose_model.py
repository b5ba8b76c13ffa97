"""The model that is right about most rows, chosen privately."""

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.choose_model import ResolvedChooseModel
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Predicted
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choices import Choice, choice_law, loss_sentence
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt

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


@dataclass(frozen=True)
class ChosenModel:
    """Which of several models a private choice picked: most often one that is right about most rows."""

    index: int
    law: ChoiceLoss
    receipt: Receipt

    def __str__(self) -> str:
        return f"model {self.index} (chosen privately, epsilon {self.receipt.epsilon})"


@reads(ChooseModel)
class ChooseModelReading(Reading[ChooseModel]):
    def words(self, question: ChooseModel) -> str:
        return f"choice among {len(question.models)} models"

    def expected_error(self, question: ChooseModel, quote: Quote, schema: Schema) -> str:
        return loss_sentence(quote, "right predictions")

    def read(self, question: ChooseModel, reply: CellReply, schema: Schema) -> ChosenModel:
        return ChosenModel(reply.numbers[0], choice_law(reply), reply.receipt)
