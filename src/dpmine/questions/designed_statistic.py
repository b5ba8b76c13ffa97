"""One statistic of a view, through noise that was designed for it beforehand."""

from __future__ import annotations

from fractions import Fraction

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.facts.facts import Facts
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.queries import Question, ResolvedQuestion, of_one_cell
from dpmine.language.resolved import Recode
from dpmine.language.resolver import Resolver
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.questions.value_grids import largest_fits

STATISTICS = ("count", "sum", "mean", "max", "median")
BOUNDED = ("mean", "max", "median")
LONGEST_PRIOR = 16_384  # characters of what is recorded about a public prior


def attribute_of(statistic: str, name: str | None, schema: Facts) -> Numeric | None:
    """The attribute that a statistic is about; a count is about none."""
    if name is None:
        return None
    return schema.numeric(name, f"it has no {statistic}")


def value_range(attribute: Numeric) -> tuple[Fraction, Fraction, Fraction]:
    """Lowest and highest value that rows can have, and the step of the grid between them."""
    low, step = Fraction(attribute.low), Fraction(attribute.step)
    return low, low + step * (attribute.size - 1), step


def sensitivity_of(statistic: str, attribute: Numeric | None) -> Fraction:
    """By how much adding or removing one row can move the exact value. docs/proofs.md#told-statistics."""
    if attribute is None:
        return Fraction(1)
    low, high, step = value_range(attribute)
    if statistic == "sum":
        return max(abs(low), abs(high)) or step
    width = high - low or step  # a grid of one point moves nothing; then there is more noise than needed
    return width / 2 if statistic == "mean" else width


@value("designed-statistic")
class DesignedStatistic(Question):
    """One statistic of a view, told through noise that was designed for it beforehand.

    statistic   count, sum, mean, max or median; all but the count are of a numeric attribute
    noise       a mechanism on a finite grid, or noise on a lattice for an answer without bounds
    prior       what was publicly known beforehand when the noise was designed, for the record: it decides nothing here

    By how much one row moves the statistic follows from the schema; noise that would not keep epsilon for it is refused.
    """

    statistic: str
    attribute: str | None
    noise: FiniteTable | LatticeNoise
    prior: str | None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise RequestError(f"The statistic must be one of {', '.join(STATISTICS)}. Got {self.statistic!r:.60}.")
        if (self.attribute is None) != (self.statistic == "count"):
            raise RequestError("A count is of no attribute; every other statistic is of one.")
        if self.prior is not None and len(self.prior) > LONGEST_PRIOR:
            raise RequestError(f"A prior is recorded in at most {LONGEST_PRIOR} characters.")

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedDesignedStatistic:
        of_one_cell(cells)
        attribute = attribute_of(self.statistic, self.attribute, resolver.schema)
        if isinstance(self.noise, LatticeNoise) and not largest_fits(_largest(attribute) / Fraction(self.noise.step)):
            raise RequestError(f"A step of {self.noise.step} is too fine for exact values. Use a larger step.")
        key = None if attribute is None else resolver.attribute(attribute.name)
        return ResolvedDesignedStatistic(self.statistic, key, self.noise)


@value("resolved-designed-statistic")
class ResolvedDesignedStatistic(ResolvedQuestion):
    """One statistic of what the codes of an attribute stand for; of none, the number of rows."""

    statistic: str
    key: Recode | None
    noise: FiniteTable | LatticeNoise


def _largest(attribute: Numeric | None) -> Fraction:
    """The largest absolute value of one row, where a row of a count is 1."""
    if attribute is None:
        return Fraction(1)
    low, high, _ = value_range(attribute)
    return max(abs(low), abs(high))
