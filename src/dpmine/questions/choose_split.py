"""The split that best separates the class, chosen privately."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.queries import ResolvedQuestion
from dpmine.language.resolved import RowKey
from dpmine.language.resolver import Resolver
from dpmine.questions.choices import Choice
from dpmine.questions.splits import ResolvedSplits, Splits, Stay

MOST_FAMILIES = 4_096  # of candidate splits in a cell
MOST_CANDIDATES = 200_000  # in a cell
CELLS_AT_ONCE = 256  # cells whose scores are held at a time
SPLIT_SCORES = ("max", "gini", "infogain", "mixed", "gain", "gini-gain", "infogain-per-row")


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


@value("resolved-choose-split")
class ResolvedChooseSplit(ResolvedQuestion):
    """The split of each cell that scores best. The bound on rows is part of the question, as scores are built for it."""

    target: RowKey
    families: tuple[tuple[ResolvedSplits, ...], ...]
    score: str
    rows_at_most: int
    mechanism: str
    calibration: str

    def families_of(self, cell: int) -> tuple[ResolvedSplits, ...]:
        return self.families[cell] if len(self.families) > 1 else self.families[0]

    @property
    def most_candidates(self) -> int:
        """In any cell."""
        return max(sum(family.candidates for family in families) for families in self.families)

    def counts(self, cells: int) -> int:
        keys = {family.key for families in self.families for family in families}
        scores = min(cells, CELLS_AT_ONCE) * self.most_candidates
        return self.target.size * max(cells * sum(key.size for key in keys), scores)
