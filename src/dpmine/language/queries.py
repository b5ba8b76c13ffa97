"""A query: the cells of a view, one question, and an epsilon for each cell; and what it means on integer codes.

Questions themselves stand in `dpmine.questions`, one file each: what is asked, and what it means on codes. The kernel has a
mechanism for each meaning (`dpmine.kernel.mechanisms`).
"""

from __future__ import annotations

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import Facts
from dpmine.language.resolved import Cells, count_leaves
from dpmine.language.resolver import KnownKeys, Resolver
from dpmine.language.views import Rules, View

MOST_COUNTS = 50_000_000  # behind one answer
MOST_DIFFERENT_EPSILONS = 1_000


class ResolvedQuestion:
    """What a question means under one schema, on integer codes: what is priced, cached and computed."""

    def counts(self, cells: int) -> int:
        """How many exact counts the engine holds for the answer, where that follows from public sizes."""
        return 0

    def check(self, units: tuple[int, ...]) -> None:
        """Refuse, before anything is charged, what an answer could not hold at these prices. All limits are public."""


class Question:
    """What is asked of every cell."""

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedQuestion:
        """Check the question against the schema and bring it into canonical form."""
        raise NotImplementedError


@value("query")
class Query:
    """One request: the cells of a view, a question, and an epsilon for all cells or for each (0: not asked)."""

    view: View
    rules: Rules
    question: Question
    epsilon: tuple[Epsilon, ...]

    def epsilon_units(self, cells: int) -> tuple[int, ...]:
        """Epsilon of each cell in integer units."""
        units = tuple(epsilon.units for epsilon in self.epsilon)
        if len(units) not in (1, cells):
            raise RequestError(f"The query has {cells} cells: give one epsilon, or {cells}. Got {len(units)}.")
        if max(units) <= 0:
            raise RequestError("Epsilon must be positive in at least one cell.")
        if len(set(units)) > MOST_DIFFERENT_EPSILONS:
            raise RequestError(f"One query may use at most {MOST_DIFFERENT_EPSILONS} different epsilons.")
        return units if len(units) == cells else units * cells


@value("resolved-query")
class ResolvedQuery:
    """The canonical form of a query under one schema: what is priced, cached and computed."""

    cells: Cells
    question: ResolvedQuestion
    units: tuple[int, ...]
    schema: str


def resolve(query: Query, schema: Facts, known_keys: KnownKeys | None = None) -> ResolvedQuery:
    """Check a query against the public schema and bring it into canonical form. Looks at no row."""
    resolver = Resolver(schema, known_keys, asked=True)
    cells = resolver.cells(query.view, query.rules)
    leaves = count_leaves(cells.rules)
    units = query.epsilon_units(leaves)
    question = query.question.resolve(resolver, leaves)
    counts = question.counts(leaves)
    if counts > MOST_COUNTS:
        raise RequestError(f"This query needs {counts} counts; at most {MOST_COUNTS} fit one query. Use coarser keys.")
    question.check(units)
    return ResolvedQuery(cells, question, units, schema.fingerprint)


def of_one_cell(cells: int) -> None:
    """Refuse a question about a whole view where the view is split into cells."""
    if cells > 1:
        raise RequestError("This question is asked of a whole view, not of its cells.")
