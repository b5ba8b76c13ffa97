"""A tree that is finer where more rows are (PrivTree)."""

from __future__ import annotations

from dataclasses import dataclass

from dpmine.facts.schema import Schema
from dpmine.language.answers import Quote
from dpmine.noise.laws import NoisyComparisons
from dpmine.questions.private_tree import PrivateTree
from dpmine.results.reading import Reading, reads
from dpmine.results.receipts import CellReply, Receipt


@dataclass(frozen=True)
class GrownPrivateTree:
    """Which nodes of a private tree are cut: parents first, from left to right."""

    bits: tuple[int, ...]
    receipt: Receipt


@reads(PrivateTree)
class PrivateTreeReading(Reading[PrivateTree]):
    def words(self, question: PrivateTree) -> str:
        return "private tree by " + ", ".join(rule.attribute for rule in question.rules)

    def expected_error(self, question: PrivateTree, quote: Quote, schema: Schema) -> str:
        (law,) = quote.laws[0]
        assert isinstance(law, NoisyComparisons)
        rows = law.decay
        return f"A node is cut about where it holds more rows than {rows} for each level above it, give or take {2 * rows}."

    def read(self, question: PrivateTree, reply: CellReply, schema: Schema) -> GrownPrivateTree:
        return GrownPrivateTree(reply.numbers, reply.receipt)
