"""The label that most rows have, chosen privately."""

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.choices import MOST_COPIES
from dpmine.codes.choose_label import ResolvedChooseLabel
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.language.resolver import Resolver
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choices import Choice, choice_law, loss_sentence
from dpmine.results.reading import Reading, key_name, reads
from dpmine.results.receipts import CellReply, Receipt


@value("choose-label")
class ChooseLabel(Choice):
    """The label of a key that most rows have; the score of a label is its count."""

    key: Key
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedChooseLabel:
        key = resolver.key(self.key)
        if self.mechanism == "permute-and-flip" and key.size > MOST_COPIES:
            raise RequestError(f"Permute-and-flip takes at most {MOST_COPIES} candidates. Use the exponential mechanism.")
        hidden = self.key.hidden(resolver.schema)
        return ResolvedChooseLabel(key, key.size if hidden is None else hidden, self.mechanism, self.calibration)


@dataclass(frozen=True)
class ChosenLabel:
    """The label a private choice picked; most often, not always, the most frequent one."""

    label: str
    index: int
    law: ChoiceLoss
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
        return ChosenLabel(question.key.labels(schema)[index], index, choice_law(reply), reply.receipt)
