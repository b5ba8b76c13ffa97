"""The split that best separates the class, chosen privately: on codes."""

from functools import cached_property

from dpmine.base.wire_values import value
from dpmine.codes.choices import check_choice
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey
from dpmine.codes.splits import ResolvedSplits

MOST_FAMILIES = 4_096  # of candidate splits in a cell
MOST_CANDIDATES = 200_000  # in a cell: their masses stay below 2^50
CELLS_AT_ONCE = 256  # cells whose scores are held at a time


SPLIT_SCORES = ("max", "gini", "infogain", "mixed", "gain", "gini-gain", "infogain-per-row")


@value("resolved-choose-split")
class ResolvedChooseSplit(ResolvedQuestion):
    """The split of each cell that scores best. The bound on rows is part of the question, as scores are built for it."""

    target: RowKey
    families: tuple[tuple[ResolvedSplits, ...], ...]
    score: str
    rows_at_most: int
    mechanism: str
    calibration: str

    def check(self, see: Checker, cells: int) -> None:
        see(self.target)
        require(self.score in SPLIT_SCORES, "there is no such score")
        bound = see.domain.rows_at_most if self.score == "infogain" else 0  # other scores need none
        require(self.rows_at_most == bound, "the bound on rows is the table's")
        require(len(self.families) in (1, cells) and all(self.families), "each cell has splits to choose from")
        for families in self.families:
            see(*families)
            require(len(families) <= MOST_FAMILIES, "families are few")
        require(self.most_candidates <= MOST_CANDIDATES, "candidates are few")
        check_choice(self.mechanism, self.calibration, self.most_candidates)

    def families_of(self, cell: int) -> tuple[ResolvedSplits, ...]:
        return self.families[cell] if len(self.families) > 1 else self.families[0]

    @cached_property
    def even_candidates(self) -> int:
        """In any cell, if every family had as many as its largest: each has the same share of the base measure."""
        return max(len(families) * max(family.candidates for family in families) for families in self.families)

    @cached_property
    def most_candidates(self) -> int:
        """In any cell."""
        return max(sum(family.candidates for family in families) for families in self.families)

    def counts(self, cells: int) -> int:
        keys = {family.key for families in self.families for family in families}
        scores = min(cells, CELLS_AT_ONCE) * self.most_candidates
        return self.target.size * max(cells * sum(key.size for key in keys), scores)
