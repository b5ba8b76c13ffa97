"""The model that is right about most rows, chosen privately."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.questions.choose_model import ChooseModel
from dpmine.results.choices import loss_sentence
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True)
class ChosenModel:
    """Which of several models a private choice picked: most often one that is right about most rows."""

    index: int
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
        return ChosenModel(reply.numbers[0], reply.receipt)
