"""The split that best separates the class, chosen privately."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.language.keys import Key
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.splits import Splits
from dpmine.results.choices import loss_sentence
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True)
class ChosenSplit:
    """The split a private choice picked, as the key to split by."""

    key: Key
    family: int
    labels: tuple[str, ...]
    receipt: Receipt

    def __str__(self) -> str:
        shown = ", ".join(self.labels[:6]) + (", ..." if len(self.labels) > 6 else "")
        return f"{self.key.title}: {shown} (chosen privately, epsilon {self.receipt.epsilon})"


@dataclass(frozen=True)
class Stayed:
    """The private choice was not to split."""

    receipt: Receipt

    def __str__(self) -> str:
        return f"no split (chosen privately, epsilon {self.receipt.epsilon})"


@reads(ChooseSplit)
class ChooseSplitReading(Reading[ChooseSplit]):
    def words(self, question: ChooseSplit) -> str:
        return f"choice of a split by {question.score}"

    def expected_error(self, question: ChooseSplit, quote: Quote, schema: Schema) -> str:
        return loss_sentence(quote, f"of the {question.score} score")

    def read(self, question: ChooseSplit, reply: CellReply, schema: Schema) -> ChosenSplit | Stayed:
        family, key = _candidate(question.families(reply.cell), reply.numbers[0], schema)
        return Stayed(reply.receipt) if key is None else ChosenSplit(key, family, key.labels(schema), reply.receipt)


def _candidate(families: tuple[Splits, ...], index: int, schema: Schema) -> tuple[int, Key | None]:
    for number, family in enumerate(families):
        size = family.size(schema)
        if index < size:
            return number, family.candidate(schema, index)
        index -= size
    raise RequestError("The answer names a candidate that was not asked for.")
