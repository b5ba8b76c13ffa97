"""A query on codes: disjoint cells, one question, and a price for each cell."""

from dpmine.base.epsilon import LARGEST, UNITS
from dpmine.base.wire_values import value
from dpmine.codes.domain import Domain, require
from dpmine.codes.rows import Cells, Checker, count_leaves

MOST_COUNTS = 50_000_000  # behind one answer: no number of a cell and its keys' labels can wrap
MOST_NUMBERS = 5_000_000  # in one answer
MOST_PRICES = 1_000  # different ones in one query: each has its laws
MOST_STEPS = 100  # of a view: charges are nested as deep
MOST_KEYS = 4_096  # different keys in rules and question together


class ResolvedQuestion:
    """What a question means under one schema, on integer codes: what is priced, cached and computed."""

    def counts(self, cells: int) -> int:
        """How many exact counts the engine holds for the answer, where that follows from public sizes."""
        return 0

    def check(self, see: Checker, cells: int) -> None:
        """Refuse what its mechanism does not cover; `see` looks at its parts. All limits are public."""
        raise NotImplementedError


@value("resolved-query")
class ResolvedQuery:
    """The canonical form of a query under one schema: what is priced, cached and computed."""

    cells: Cells
    question: ResolvedQuestion
    units: tuple[int, ...]
    schema: str

    def check(self, domain: Domain) -> None:
        """Refuse, before anything is charged, what is not a query on the codes of this table. Looks at no row."""
        require(self.schema == domain.fingerprint, "it is about another schema")
        cells = count_leaves(self.cells.rules)
        require(len(self.units) == cells > 0, "each cell has a price")
        require(min(self.units) >= 0 and 0 < max(self.units) <= LARGEST * UNITS, "prices are 0 or more, and one of them is")
        require(len(set(self.units)) <= MOST_PRICES, "few prices differ")
        require(len(self.cells.steps) <= MOST_STEPS, "a view has few steps")
        see = Checker(domain)
        see(*self.cells.steps, self.cells.rules)
        self.question.check(see, cells)
        require(self.question.counts(cells) <= MOST_COUNTS, f"at most {MOST_COUNTS} counts fit one query")


def one_cell(cells: int) -> None:
    require(cells == 1, "this question is asked of a whole view")
