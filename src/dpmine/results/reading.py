"""How questions are put in words and replies are read: one class a question, found by type. Nothing here is trusted."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from dpmine.base.epsilon import format_units
from dpmine.base.errors import RequestError
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.schema import Schema
from dpmine.language.keys import Key
from dpmine.language.queries import Query, Question
from dpmine.language.rule_trees import leaf_paths
from dpmine.results.preview import Preview
from dpmine.results.receipts import CellReply, cell_replies

Q = TypeVar("Q", bound=Question)


class Reading(Generic[Q]):
    """The words of one kind of question, and what its reply is to whoever asked."""

    def words(self, question: Q) -> str:
        """The question in a few public words, for statements."""
        raise NotImplementedError

    def expected_error(self, question: Q, quote: Quote, schema: Schema) -> str:
        """How far off the answer is expected to be, in one public sentence: that of the lowest price."""
        raise NotImplementedError

    def read(self, question: Q, reply: CellReply, schema: Schema) -> Any:
        """What the numbers of one cell mean."""
        raise NotImplementedError


_READINGS: dict[type[Question], Reading[Any]] = {}
R = TypeVar("R", bound=type[Reading[Any]])


def reads(kind: type[Question]) -> Callable[[R], R]:
    """Declare how a kind of question is read."""

    def declare(reading: R) -> R:
        if kind in _READINGS:
            raise ValueError(f"{kind.__name__} is read in two ways")
        _READINGS[kind] = reading()
        return reading

    return declare


def reading_of(question: Q) -> Reading[Q]:
    reading = _READINGS.get(type(question))
    if reading is None:
        raise RequestError(f"Nothing reads the answers to {type(question).__name__}. Import the module with its reading.")
    return reading


def words_of(query: Query) -> str:
    """What was asked, of how many cells and at which prices, for statements."""
    cells = sum(1 for _ in leaf_paths(query.rules))
    asked = sorted({epsilon.units for epsilon in query.epsilon if epsilon.units})
    paid = " to ".join(dict.fromkeys(format_units(units) for units in (asked[0], asked[-1])))
    return (
        reading_of(query.question).words(query.question)
        + (f" in {cells} cells" if cells > 1 else "")
        + f" at epsilon {paid}"
    )


def results_of(query: Query, reply: Reply, schema: Schema) -> list[Any]:
    """The answer of each cell; None where it was not asked."""
    reading = reading_of(query.question)
    return [None if found is None else reading.read(query.question, found, schema) for found in cell_replies(reply)]


def preview_of(query: Query, quote: Quote, schema: Schema) -> Preview:
    expected = reading_of(query.question).expected_error(query.question, quote, schema)
    return Preview(quote.cost, quote.remaining, quote.dataset_suffices, quote.cached, expected)


def key_name(key: Key) -> str:
    """What a key is called in statements."""
    return str(getattr(key, "attribute", "a test, part or model"))


def shown_labels(keys: Sequence[Key], schema: Schema) -> tuple[tuple[str, ...], ...]:
    """Of each key the labels that are shown: the schema may drop gaps, whose label is the last one."""
    return tuple(key.labels(schema)[: key.hidden(schema)] for key in keys)
