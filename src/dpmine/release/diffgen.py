"""DiffGen: a generalised table for classification (Mohammed, Chen, Fung and Yu 2011, Algorithm 1).

Every attribute starts at its most general value. Private choices push the cuts down, h times, towards values that tell the
classes apart; then each group of records that agree on all generalised values is released with its noisy count. All choices
read one-attribute-by-class counts only, so the rows are read twice: once for those, once for the groups.

What the authors left for future work is here too, each switchable, to measure what it is worth (benchmarks/release.py):

    monotone scores   Max moves the same way for all candidates when a row is added, so R = S instead of 2S
    one choice        the point of a numeric split is chosen together with the value to specialise, not beforehand
    gain score        what a specialisation wins, and not how many rows it is about
    adaptive h        a noisy number of rows says how many groups rise out of the noise: until there are so many
    budget returned   what rounds did not need goes to the counts
    a known total     a little is spent on the number of rows, and counts are made to add up to it: no phantom rows
    frequencies       noisy one-attribute counts say how frequent the values are that a generalised one stands for
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.budget.plans import PlanStep, StatedBudget, off_by, part_of
from dpmine.codes.choose_split import MOST_CANDIDATES
from dpmine.codes.queries import MOST_COUNTS, MOST_KEYS
from dpmine.facts.kinds.kind import Ordered
from dpmine.facts.schema import Schema
from dpmine.language.keys import Bins
from dpmine.language.splits import Divide, Splits, Thresholds
from dpmine.language.views import LEAF
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.parameters import check_number, check_word
from dpmine.models.cuts import Cut, NumericCut, combinations, cut_nodes, predictors, root_cut
from dpmine.postprocess.totals import with_total
from dpmine.questions.choose_split import ChosenSplit
from dpmine.release.counting import AUTO, MOST_CUT_ATTRIBUTES, MOST_GROUPS_AUTO, check_threshold, count_groups, most_groups
from dpmine.release.cut_release import CutRelease
from dpmine.release.released import ReleasedTable
from dpmine.tables.asking import SplitScore
from dpmine.tables.private_table import PrivateTable

SCORES: dict[str, SplitScore] = {"max": "max", "infogain": "infogain-per-row", "max-gain": "gain", "gini-gain": "gini-gain"}
"""The scores as the kernel names them: what the paper calls InfoGain is the gain a row."""
MOST_SPECIALISATIONS = 1_000
MOST_VALUES = MOST_KEYS // 2  # to choose from in one round: every specialisation has a key of its own
FEWEST_AUTO, MOST_AUTO = 3, 30  # specialisations where they follow from the number of rows
GROUP_NOISE = 10  # scales of its noise that a group's count has on average, where specialisations follow from the rows


TOO_FEW = (
    "Values were specialised {} times instead of {}: nothing was left to specialise, or every further specialisation would "
    "have made more groups than the threshold allows."
)


@dataclass(frozen=True)
class DiffGenBudget(StatedBudget):
    """A row is in every choice, so choices add up; groups are disjoint, so their counts do not."""

    rounds: int
    """h of the paper."""
    most_groups: int
    """Specialisations that would make more groups than this, empty or not, are no candidates."""
    total: PlanStep | None
    frequencies: PlanStep | None
    points: PlanStep | None
    """All choices are made at epsilon' of the paper: of the first split points,"""
    values: PlanStep
    """of the values to specialise,"""
    new_points: PlanStep | None
    """of the split points of new intervals."""
    counts: PlanStep
    """Of the groups; what choices did not need is added where it is returned."""

    @property
    def choosing(self) -> int:
        """What all choices have together, in units."""
        return sum(step.cost.units for step in (self.points, self.values, self.new_points) if step is not None)


@dataclass(repr=False, eq=False)
class DiffGen(CutRelease):
    """A generalised table for classification. The defaults are the paper's; see the module for what else there is.

    epsilon          the whole privacy budget
    specialisations  h, how often a cut is pushed down; "auto" follows from epsilon and the noisy number of rows
    score            "max" or "infogain"; not in the paper: "max-gain", "gini-gain"
    calibration      "generic" for the paper's 2S, "monotone" for Max's R = S
    points           "first": a numeric value's split point is chosen beforehand; "joint": with the value itself
    leftover         give what choices did not need to the counts
    threshold        the smallest count that is released; "auto": so high that about 1,000 empty groups pass it
    total_share      the share of epsilon for the number of rows, to which counts are then made to add up; 0: they are not
    frequency_share  the share of epsilon for one-attribute counts, by which raw values are drawn; 0: evenly
    schema           the public facts with their taxonomies, for fit(X, y)

    Example: dm.DiffGen(epsilon=1, specialisations=10).fit(private).rows()
    """

    epsilon: Amount = 1.0
    specialisations: int | str = 10
    score: str = "max"
    calibration: str = "generic"
    points: str = "first"
    leftover: bool = False
    threshold: int | str = 1
    total_share: float = 0.0
    frequency_share: float = 0.0
    schema: SchemaLike = None

    # -- the budget plan --------------------------------------------------------------------------------------------

    def title(self, schema: Schema) -> str:
        return f"DiffGen ({self.score})"

    def budget_for(self, schema: Schema, rows: float = 0) -> DiffGenBudget:
        """Half of what is left goes to |A_n| + 2h choices alike (h where points come with values), half to the counts."""
        budget, first = self.row_budget(schema), self.points == "first"
        attributes, numeric = len(predictors(schema)), len(_numeric(schema))
        total = part_of(budget, Fraction(str(self.total_share)))
        frequencies = part_of(budget, Fraction(str(self.frequency_share)) / attributes)
        left = Epsilon(budget.units - total.units - frequencies.units * attributes)
        h, worth_it = self._rounds(left, rows)
        choices = numeric + 2 * h if first else h
        choice = part_of(left, 2 * choices)
        counts = Epsilon(left.units - choice.units * choices)
        return DiffGenBudget(
            h,
            min(worth_it, most_groups(self.threshold, counts)),
            PlanStep.if_any("count the rows", total),
            PlanStep.if_any("count the values of every attribute", frequencies, attributes),
            PlanStep("choose a split point of every numeric attribute", choice, numeric) if first and numeric else None,
            PlanStep("choose the value to specialise", choice, h),
            PlanStep("choose split points of new intervals", choice, h) if first else None,
            PlanStep("count the groups by class", counts, 1, off_by(counts)),
        )

    def _rounds(self, left: Epsilon, rows: float) -> tuple[int, int]:
        """h, and how many groups are worth making: as given, or as many as rise out of the noise in so many rows."""
        if self.specialisations != AUTO:
            return int(self.specialisations), MOST_GROUPS_AUTO
        worth = max(rows, 0) * float(left) / 2 / GROUP_NOISE
        rounds = min(max(round(log2(max(worth, 1))), FEWEST_AUTO), MOST_AUTO)
        return rounds, max(round(worth), 2**FEWEST_AUTO)

    def check(self, schema: Schema) -> None:
        if not predictors(schema):
            raise RequestError("The schema has no attribute but the class that could be released.")
        if self.specialisations != AUTO:
            check_number("specialisations", self.specialisations, 1, MOST_SPECIALISATIONS, whole=True)
        elif not self.total_share:
            raise RequestError("specialisations='auto' follows from the number of rows: give total_share, such as 0.02.")
        for name in ("total_share", "frequency_share"):
            check_number(name, getattr(self, name), 0, 0.9)
        if self.total_share + self.frequency_share > 0.9:
            raise RequestError("total_share and frequency_share together must leave a tenth of epsilon.")
        check_word("score", self.score, tuple(SCORES))
        check_word("calibration", self.calibration, ("generic", "monotone"))
        check_word("points", self.points, ("first", "joint"))
        if self.threshold != AUTO:
            check_number("threshold", self.threshold, 1, 1_000_000_000, whole=True)
        check_threshold(self.threshold, self.budget_for(schema).counts.epsilon)
        self._check_candidates(schema)

    def _check_candidates(self, schema: Schema) -> None:
        """Refuse, before anything is spent, a schema whose candidates could become too many for one choice."""
        nodes = [cut_nodes(attribute) for attribute in predictors(schema)]
        sizes = [attribute.size for attribute in predictors(schema)]
        rounds = MOST_AUTO if self.specialisations == AUTO else int(self.specialisations)
        if sum(nodes) + rounds > MOST_VALUES:
            raise RequestError(f"The taxonomies and specialisations make more than {MOST_VALUES} values to choose from.")
        behind = max(sum(sizes), (rounds + 1) * max(sizes)) * len(schema.class_labels)
        if sum(sizes) > MOST_CANDIDATES or behind > MOST_COUNTS:
            raise RequestError("The attributes have too many values for one choice. Use coarser grids.")

    # -- Algorithm 1 ------------------------------------------------------------------------------------------------

    def _learn(self, private: PrivateTable, progress: Progress) -> ReleasedTable:
        schema = private.schema
        total = self.budget_for(schema).total
        rows = 0 if total is None else int(private.count(epsilon=total.epsilon))
        budget = self.budget_for(schema, rows)
        weights = self._frequencies(private, budget.frequencies)
        specialising = Specialising(private, self, budget)
        for _ in progress.steps(range(budget.rounds), "specialisations"):  # line 6
            if not specialising.go_on():  # lines 7 to 10
                break
        cuts = specialising.cuts
        returned = specialising.unspent if self.leftover else 0
        counts = Epsilon(budget.counts.epsilon.units + returned)
        groups, table, counting = count_groups(private, cuts, counts, self.threshold)  # line 12
        if total is not None:
            table = with_total(table, rows)
        self.cuts_ = {cut.attribute.name: cut for cut in cuts}
        kept = table.sum(axis=1) > 0
        values = {cut.attribute.name: cut.values() for cut in cuts}
        counting = replace(counting, adjusted=total is not None)
        planned = rows if self.specialisations == AUTO else None
        notes = () if specialising.made == budget.rounds else (TOO_FEW.format(specialising.made, budget.rounds),)
        return ReleasedTable(schema, values, groups[kept], table[kept], weights, counting, notes, planned)

    def _frequencies(self, private: PrivateTable, step: PlanStep | None) -> dict[str, NDArray[np.float64]]:
        if step is None:
            return {}
        names = [attribute.name for attribute in predictors(private.schema)]
        return {name: private.histogram(name, epsilon=step.epsilon).nonnegative().astype(np.float64) for name in names}


class Specialising:
    """The cuts while they are pushed down, and what that has spent."""

    def __init__(self, private: PrivateTable, settings: DiffGen, budget: DiffGenBudget) -> None:
        self._private = private
        self._settings = settings
        self._budget = budget
        self._classes = len(private.schema.class_labels)
        self._round = 0
        self.made = 0
        self._families: dict[int, tuple[Cut, dict[int, Splits]]] = {}
        self.unspent = budget.choosing
        self.cuts: list[Cut] = [root_cut(attribute) for attribute in predictors(private.schema)]  # lines 1 and 2
        if budget.points is not None:  # line 4
            for place, cut in enumerate(self.cuts):
                if isinstance(cut, NumericCut):
                    self.cuts[place] = self._with_points(cut, cut.divisible(), budget.points)

    def go_on(self) -> bool:
        """One round: choose a value and specialise it. False if none was left that makes no more groups than allowed."""
        self._round += 1
        specialised = sum(len(cut) > 1 for cut in self.cuts)
        candidates = [(place, value) for place, cut in enumerate(self.cuts) for value in self._values(cut)]
        candidates = [
            (place, value)
            for place, value in candidates
            if combinations(self.cuts, self._classes) // len(self.cuts[place]) * self._grown(place, value)
            <= self._budget.most_groups
            and (len(self.cuts[place]) > 1 or specialised < MOST_CUT_ATTRIBUTES)
        ]
        if not candidates:
            return False
        families: list[Splits] = [self._family(*candidate) for candidate in candidates]
        chosen = self._private.choose(  # line 7
            families,
            epsilon=self._spend(self._budget.values),
            score=SCORES[self._settings.score],
            calibration=self._settings.calibration,
        )
        assert isinstance(chosen, ChosenSplit)
        self.made += 1
        place, value = candidates[chosen.family]
        cut = self.cuts[place]
        if not isinstance(cut, NumericCut):
            self.cuts[place] = cut.specialised(value)  # line 8
        elif self._settings.points == "joint":
            assert isinstance(chosen.key, Bins)
            self.cuts[place] = cut.split_at(value, cut.attribute.floor_code(chosen.key.numbers(self._private.schema)[0]))
        else:
            new = cut.specialised(value)
            last = self._round == self._budget.rounds  # nobody would use the points of the last round
            self.cuts[place] = new if last else self._with_points(new, [value, value + 1], self._budget.new_points)  # line 9
        return True

    def _values(self, cut: Cut) -> list[int]:
        """The values of a cut that can be specialised."""
        return cut.divisible() if isinstance(cut, NumericCut) and self._settings.points == "joint" else cut.candidates()

    def _grown(self, place: int, value: int) -> int:
        """How many values the cut of an attribute would have after a specialisation."""
        return len(self.cuts[place]) + self.cuts[place].children(value) - 1

    def _family(self, place: int, value: int) -> Splits:
        cut = self.cuts[place]
        made_for, families = self._families.get(place, (None, {}))
        if made_for is not cut:  # most cuts do not change from round to round
            families = {}
            self._families[place] = (cut, families)
        if value not in families:
            families[value] = self._made_family(cut, value)
        return families[value]

    def _made_family(self, cut: Cut, value: int) -> Splits:
        if isinstance(cut, NumericCut) and self._settings.points == "joint":
            return Divide(cut.attribute.name, *cut.span(value))
        return cut.candidate(value)

    def _with_points(self, cut: NumericCut, intervals: Sequence[int], step: PlanStep | None) -> NumericCut:
        """The cut with a private choice of a split point in some of its intervals, which share one price."""
        wanted = [interval for interval in intervals if interval in cut.divisible()]
        if not wanted or step is None:
            return cut
        spent = self._spend(step)
        key = cut.key()
        cells = self._private.cells(LEAF if key is None else key)
        # Intervals that are not asked need some candidates too, whichever.
        spans = [cut.span(place if place in wanted else wanted[0]) for place in range(len(cut))]
        families = [[Thresholds(cut.attribute.name, *span)] for span in spans]
        chosen = cells.choose(
            families,
            epsilon=[spent if place in wanted else 0 for place in range(len(cut))],
            score=SCORES[self._settings.score],
            calibration=self._settings.calibration,
        )
        points = {}
        for place in wanted:
            split = chosen[place]
            assert isinstance(split, ChosenSplit)
            assert isinstance(split.key, Bins)
            points[place] = cut.attribute.floor_code(split.key.numbers(self._private.schema)[0])
        return cut.with_points(points)

    def _spend(self, step: PlanStep) -> Epsilon:
        self.unspent -= step.epsilon.units
        return step.epsilon


def _numeric(schema: Schema) -> list[Ordered]:
    return [attribute for attribute in predictors(schema) if isinstance(attribute, Ordered)]
