"""The label that most rows have, chosen privately."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.questions.choose_label import ChooseLabel
from dpmine.results.choices import loss_sentence
from dpmine.results.reading import Reading, key_name, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True)
class ChosenLabel:
    """The label a private choice picked; most often, not always, the most frequent one."""

    label: str
    index: int
    receipt: Receipt

    def __str__(self) -> str:
        return f"{self.label} (chosen privately, epsilon {self.receipt.epsilon})"


@reads(ChooseLabel)
class ChooseLabelReading(Reading[ChooseLabel]):
    def words(self, question: ChooseLabel) -> str:
        return f"choice of the most frequent {key_name(question.key)}"

    def expected_error(self, question: ChooseLabel, quote: Quote, schema: Schema) -> str:
        return loss_sentence(quote, "rows")

    def read(self, question: ChooseLabel, reply: CellReply, schema: Schema) -> ChosenLabel:
        (index,) = reply.numbers
        return ChosenLabel(question.key.labels(schema)[index], index, reply.receipt)
