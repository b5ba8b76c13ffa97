"""A query: the cells of a view, one question, and an epsilon for each cell; and what it means on integer codes.

Questions themselves stand in `dpmine.questions`, one file each: what is asked, and what it means on codes. The kernel has a
mechanism for each meaning (`dpmine.kernel.mechanisms`).
"""

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire import from_wire
from dpmine.base.wire_values import value
from dpmine.codes.queries import MOST_COUNTS, MOST_PRICES, ResolvedQuery, ResolvedQuestion
from dpmine.codes.rows import count_leaves
from dpmine.facts.facts import Facts
from dpmine.language.resolver import KnownKeys, Resolver
from dpmine.language.views import Rules, View

LONGEST_REQUEST = 4 * 1024 * 1024  # characters


class Question:
    """What is asked of every cell."""

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedQuestion:
        """Check the question against the schema and bring it into canonical form."""
        raise NotImplementedError

    def check_prices(self, resolver: Resolver, units: tuple[int, ...]) -> None:
        """Refuse what would not fit an answer at these prices of its cells."""


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
        if len(set(units)) > MOST_PRICES:
            raise RequestError(f"One query may use at most {MOST_PRICES} different epsilons.")
        return units if len(units) == cells else units * cells


def received(text: str | bytes) -> Query:
    """A query as somebody sent it across a network whom nobody trusts."""
    if len(text) > LONGEST_REQUEST:
        raise RequestError(f"The request is longer than {LONGEST_REQUEST} characters.")
    return from_wire(text, Query)


def resolve(query: Query, schema: Facts, known_keys: KnownKeys | None = None) -> ResolvedQuery:
    """Check a query against the public schema and bring it into canonical form. Looks at no row."""
    resolver = Resolver(schema, known_keys)
    cells = resolver.cells(query.view, query.rules)
    leaves = count_leaves(cells.rules)
    units = query.epsilon_units(leaves)
    question = query.question.resolve(resolver, leaves)
    query.question.check_prices(resolver, units)
    counts = question.counts(leaves)
    if counts > MOST_COUNTS:
        raise RequestError(f"This query needs {counts} counts; at most {MOST_COUNTS} fit one query. Use coarser keys.")
    return ResolvedQuery(cells, question, units, schema.fingerprint)


def of_one_cell(cells: int) -> None:
    """Refuse a question about a whole view where the view is split into cells."""
    if cells > 1:
        raise RequestError("This question is asked of a whole view, not of its cells.")
