"""Audit pairs: two neighbouring tables, a question asked through the real door, and what is claimed about it.

For speed a small table is repeated, once for each label of an attribute "copy", and one query asks all copies as cells:
each cell is a run of its own, since rows of other copies do not reach it and noise is drawn for every cell anew.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from dpmine.audit.fit import Law
from dpmine.base.epsilon import Epsilon
from dpmine.facts.kinds.kind import Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.columns import key_of
from dpmine.language.queries import Question
from dpmine.language.views import LEAF, Rules, Split
from dpmine.tables.asking import Amounts, query_of
from dpmine.tables.private_table import PrivateTable

COPY = "copy"
ROUNDS = 40  # of a full audit; a quick one has one

Row = Mapping[str, Any]
Outcome = Hashable


@dataclass(frozen=True)
class AuditPair:
    """What to run, on what, and what it must not exceed.

    covers     dotted names of the mechanisms, questions, keys, scores and algorithms that a run goes through
    why        why these neighbours are the worst case, in a sentence
    epsilon    what one run is granted, and must not exceed
    distance   by how many protected units the tables differ; the claim is epsilon times that
    tables     the rows of both tables, in order; with copies, those of one copy
    ask        the outcomes of one run: one for each copy, or one
    laws       the exact law of an outcome on each table, where it is known
    runs       a side and round, to judge the event; a third as many more choose it
    asks       how often one ledger is asked; 1 where an outcome depends on the ledger's secret key
    needs      a module without which the pair cannot run
    tight      whether at least 0.9 of the claim must be measured in a full audit
    """

    name: str
    covers: tuple[str, ...]
    why: str
    epsilon: str
    schema: Schema
    tables: tuple[Sequence[Row], Sequence[Row]]
    ask: Callable[[PrivateTable], Sequence[Outcome]]
    laws: tuple[Law, Law] | None = None
    runs: int = 20_000
    distance: int = 1
    asks: int = 20
    noise: str = "exact"
    needs: str | None = None
    tight: bool = False
    rounds: int = ROUNDS

    @property
    def granted(self) -> Epsilon:
        return Epsilon.parse(self.epsilon)

    @property
    def claimed(self) -> float:
        return float(self.granted) * self.distance

    @property
    def copies(self) -> int:
        return copies_of(self.schema)

    @property
    def tests(self) -> int:
        """How many chances of a false alarm it has: the bound, and the law on either table."""
        return 1 if self.laws is None else 3

    @property
    def available(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None


def copies_of(schema: Schema) -> int:
    return next((attribute.size for attribute in schema.singles if attribute.name == COPY), 1)


def copied_schema(copies: int, *attributes: Attribute, **facts: Any) -> Schema:
    """A schema with an attribute that numbers the copies first."""
    labels = tuple(str(number) for number in range(copies))
    facts = {"rows_at_most": 1_000_000, **facts}
    return Schema("audited", (Nominal(COPY, labels, labels[0], missing=labels[0]), *attributes), **facts)


def columns_of(schema: Schema, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The table: rows as given, or all of them once for each copy, copy after copy.

    Where persons are protected, those of different copies are different persons.
    """
    names = [attribute.name for attribute in schema.attributes if attribute.name != COPY]
    copies = copies_of(schema)
    columns = {name: [row[name] for row in rows] * copies for name in names}
    if any(attribute.name == COPY for attribute in schema.attributes):
        columns[COPY] = [str(number) for number in range(copies) for _ in rows]
    if schema.unit.column is not None:
        persons = [row[schema.unit.column] for row in rows]
        columns[schema.unit.column] = [f"{number} {person}" for number in range(copies) for person in persons]
    return columns


def answers(private: PrivateTable, question: Question, epsilon: Amounts, rules: Rules | str = COPY) -> list[tuple[int, ...]]:
    """Any question asked of all cells at once, as the door allows; the table's own methods ask some of one view only."""
    if isinstance(rules, str):
        key = key_of(rules)
        rules = Split(key, (LEAF,) * len(key.labels(private.schema)))
    reply = private._executor.answer(query_of(private.schema, private._view, rules, question, epsilon))
    return [numbers for numbers in reply.answer.numbers if numbers is not None]
