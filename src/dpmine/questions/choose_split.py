"""The split that best separates the class, chosen privately."""

from dataclasses import dataclass

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.codes.answers import Quote
from dpmine.codes.choose_split import MOST_CANDIDATES, MOST_FAMILIES, SPLIT_SCORES, ResolvedChooseSplit
from dpmine.codes.splits import ResolvedSplits
from dpmine.facts.schema import Schema
from dpmine.language.candidates import candidate, number_of_candidates
from dpmine.language.keys import Key
from dpmine.language.resolver import Resolver
from dpmine.language.splits import Splits, Stay
from dpmine.noise.laws import ChoiceLoss
from dpmine.questions.choices import Choice, choice_law, loss_sentence
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@value("choose-split")
class ChooseSplit(Choice):
    """The split that best separates the class, by one joint choice over all candidates of all families.

    `candidates` holds one tuple of families for all cells, or one for each cell.
    """

    candidates: tuple[tuple[Splits, ...], ...]
    score: str
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()
        if self.score == "gainratio":
            raise RequestError("The gain ratio has unbounded sensitivity, so no noise can protect it. Use gini or max.")
        if self.score not in SPLIT_SCORES:
            raise RequestError(f"The score must be one of {', '.join(SPLIT_SCORES)}. Got {self.score!r} instead.")

    def families(self, cell: int) -> tuple[Splits, ...]:
        return self.candidates[cell] if len(self.candidates) > 1 else self.candidates[0]

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedChooseSplit:
        target = resolver.attribute(resolver.schema.require_class())
        if len(self.candidates) not in (1, cells):
            raise RequestError(f"Give the candidates once, or for each of the {cells} cells. Got {len(self.candidates)}.")
        families = tuple(_resolved(listed, cell, resolver) for cell, listed in enumerate(self.candidates))
        bound = resolver.schema.rows_at_most if self.score == "infogain" else 0  # other scores need no bound
        return ResolvedChooseSplit(target, families, self.score, bound, self.mechanism, self.calibration)


def _resolved(families: tuple[Splits, ...], cell: int, resolver: Resolver) -> tuple[ResolvedSplits, ...]:
    splitting = [family.resolve(resolver) for family in families if not isinstance(family, Stay)]
    if not splitting:
        raise RequestError(f"There is no split to choose from in cell {cell}.")
    rest = iter(splitting)
    resolved = tuple(family.beside(splitting[0]) if isinstance(family, Stay) else next(rest) for family in families)
    if len(resolved) > MOST_FAMILIES or sum(family.candidates for family in resolved) > MOST_CANDIDATES:
        raise RequestError(f"One choice has at most {MOST_FAMILIES} families and {MOST_CANDIDATES} candidates.")
    return resolved


@dataclass(frozen=True)
class ChosenSplit:
    """The split a private choice picked, as the key to split by."""

    key: Key
    family: int
    labels: tuple[str, ...]
    law: ChoiceLoss
    receipt: Receipt

    def __str__(self) -> str:
        shown = ", ".join(self.labels[:6]) + (", ..." if len(self.labels) > 6 else "")
        return f"{self.key.title}: {shown} (chosen privately, epsilon {self.receipt.epsilon})"


@dataclass(frozen=True)
class Stayed:
    """The private choice was not to split."""

    law: ChoiceLoss
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
        law, receipt = choice_law(reply), reply.receipt
        return Stayed(law, receipt) if key is None else ChosenSplit(key, family, key.labels(schema), law, receipt)


def _candidate(families: tuple[Splits, ...], index: int, schema: Schema) -> tuple[int, Key | None]:
    for number, family in enumerate(families):
        size = number_of_candidates(family, schema)
        if index < size:
            return number, candidate(family, schema, index)
        index -= size
    raise RequestError("The answer names a candidate that was not asked for.")
