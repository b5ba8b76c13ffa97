"""Queries and answers as frozen values: a view of the table, its cells, one question, and an epsilon for each cell.

A *view* narrows the table step by step. A *rule tree* splits the view into disjoint cells, and one query asks all
its cells at once. A cell is named by its path of (key, label) pairs, the same whether the path stands in the view or
in the rule tree, so a finer rule tree nests inside a coarser one and the odometer takes the maximum over cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.expressions import Bins, Group, Groups, Key, Predicate
from dpmine.finite import FiniteMechanism, LatticeNoise
from dpmine.intervals import noise_scale
from dpmine.model_keys import LARGEST_POSITION, MOST_DIMENSIONS, Nearest, Predicted
from dpmine.schema import MOST_ROWS, Nominal, Numeric, Schema
from dpmine.told_statistics import STATISTICS
from dpmine.values import value

# What one query may ask for: limits by public parameters, checked before anything is charged.
MOST_NUMBERS = 5_000_000  # in one answer
MOST_COUNTS = 50_000_000  # behind one answer
MOST_CELLS = 65_536
MOST_STEPS = 100  # to a cell, in view and rules together: charges are nested as deep, and logs must stay readable
MOST_FITTED_STEPS = MOST_STEPS // 2  # of a view that a model is fitted to: the model's own trees need the rest
MOST_KEYS = 4_096  # different keys in rules and question together
MOST_HISTOGRAM_KEYS = 16
MOST_SPARSE_KEYS = 128
MOST_COMBINATIONS = 2**60  # of a sparse histogram, in all cells together
FEW_PHANTOMS = 1_000  # combinations without rows that an automatic threshold lets through, about
MOST_PHANTOMS = 1_000_000  # combinations without rows that a sparse histogram may be expected to show
MOST_FAMILIES = 4_096  # of candidate splits in a cell
MOST_CANDIDATES = 200_000  # in a cell
MOST_DIFFERENT_EPSILONS = 1_000
MOST_BONUS = MOST_ROWS  # of staying: no gain is larger
MOST_MODELS = 1_000  # in one choice
MOST_COPIES = 1_000_000  # equal candidates of permute-and-flip, which flips a coin for each
DEEPEST_PRIVATE_TREE = 60
LARGEST_CUT_SCORE = 2**40  # times the square of 4,096 codes stays inside 64 bits
MOST_PRIVATE_NODES = 65_535  # of a private tree, counted level by level: its leaves are cells of one query
MOST_PRIVATE_CUTS = MOST_KEYS - 1  # different ones: each is a key of that query
MECHANISMS = ("exponential", "permute-and-flip")
CALIBRATIONS = ("monotone", "generic")
BALLS = ("l-infinity", "l1")
LONGEST_PRIOR = 16_384  # characters of what is recorded about a public prior
SPLIT_SCORES = ("max", "gini", "infogain", "mixed", "gain", "gini-gain", "infogain-per-row")


# -- where -----------------------------------------------------------------------------------------------------------


class Step:
    """One narrowing of a view. Every step has stability 1: it maps each row to itself or to nothing."""


@value("where")
class Where(Step):
    """Keep the rows for which the predicate holds."""

    predicate: Predicate


@value("cell")
class Cell(Step):
    """Keep the rows with one label of a key: a cell of the partition by that key."""

    key: Key
    index: int


@value("view")
class View:
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> View:
        return View((*self.steps, step))


class Rules:
    """A public rule tree: a leaf, or a key whose labels lead to rule trees."""


@value("leaf")
class Leaf(Rules):
    pass


@value("split")
class Split(Rules):
    key: Key
    children: tuple[Rules, ...]


LEAF = Leaf()


def leaf_paths(rules: Rules) -> Iterator[tuple[tuple[Key, int], ...]]:
    """The path of each leaf from left to right, as pairs of key and label index."""
    stack: list[tuple[Rules, tuple[tuple[Key, int], ...]]] = [(rules, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, Split):
            for index in range(len(node.children) - 1, -1, -1):
                stack.append((node.children[index], (*path, (node.key, index))))
        else:
            yield path


def split_leaf(rules: Rules, number: int, key: Key, labels: int) -> Rules:
    """The rule tree with its leaf of that number replaced by a split on `key`."""
    grown, seen = _split_leaf(rules, number, key, labels, 0)
    if number >= seen:
        raise RequestError(f"The rule tree has {seen} leaves; there is no leaf {number}.")
    return grown


def _split_leaf(rules: Rules, number: int, key: Key, labels: int, seen: int) -> tuple[Rules, int]:
    if not isinstance(rules, Split):
        return (Split(key, (LEAF,) * labels) if seen == number else rules), seen + 1
    children = []
    for child in rules.children:
        grown, seen = _split_leaf(child, number, key, labels, seen)
        children.append(grown)
    return Split(rules.key, tuple(children)), seen


# -- what ------------------------------------------------------------------------------------------------------------


class Question:
    """What is asked of every cell."""


@value("count")
class Count(Question):
    """The number of rows, with discrete Laplace noise. One row changes one cell's count by one: L1 sensitivity 1."""


@value("histogram")
class Histogram(Question):
    """The number of rows for every combination of labels, each with discrete Laplace noise.

    A row falls into exactly one combination of one cell, so the whole table of counts has L1 sensitivity 1.
    """

    keys: tuple[Key, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise RequestError("A histogram needs at least one key.")


@value("sparse-histogram")
class SparseHistogram(Question):
    """Of a histogram with any number of combinations, the noisy counts that reach a public threshold.

    In law it is the histogram with its smaller counts struck out, so it has the same L1 sensitivity 1; but combinations
    without rows are never listed one by one, so there may be 10^18 of them.
    """

    keys: tuple[Key, ...]
    at_least: int

    def __post_init__(self) -> None:
        if not self.keys:
            raise RequestError("A histogram needs at least one key.")
        if type(self.at_least) is not int or not 1 <= self.at_least <= MOST_ROWS:
            raise RequestError(f"The threshold 'at_least' is a whole number from 1 to {MOST_ROWS}. Got {self.at_least}.")


def phantoms(combinations: int, epsilon: Epsilon, at_least: int) -> float:
    """How many combinations without rows are expected to reach the threshold by noise alone."""
    rate = float(epsilon)
    return math.exp(min(math.log(combinations) - rate * at_least, 700)) / (1 + math.exp(-rate))  # no double holds 10^400


def threshold_for(combinations: int, epsilon: Epsilon, most_phantoms: float) -> int:
    """The smallest threshold, from 1 on, that lets at most so many combinations without rows through, on average."""
    rate = float(epsilon)
    logarithm = math.log(combinations) - math.log1p(math.exp(-rate)) - math.log(most_phantoms)
    lowest = max(math.floor(logarithm / rate) - 1, 1)
    return next(level for level in itertools.count(lowest) if phantoms(combinations, epsilon, level) <= most_phantoms)


@value("moments")
class Moments(Question):
    """Sums of powers of a numeric attribute's values, each clamped to the public grid, with discrete Laplace noise.

    Values are whole multiples of the grid's unit. `powers` are the sums asked for: (1,) the sum, (0, 1) what a mean needs,
    (0, 1, 2) what a variance needs. With `centred`, values are taken relative to the middle of the grid, which makes the
    sums' sensitivities smaller. A row changes the sum of power k by at most the largest absolute value to the power k, and
    each sum is paid by its own share of epsilon.
    """

    attribute: str
    powers: tuple[int, ...]
    centred: bool

    def __post_init__(self) -> None:
        if self.powers not in ((1,), (0, 1), (0, 1, 2)):
            raise RequestError("Moments are asked as (1,), (0, 1) or (0, 1, 2).")

    def grid(self, schema: Schema) -> ValueGrid:
        attribute = schema.single(self.attribute)
        if not isinstance(attribute, Numeric):
            raise RequestError(f"{self.attribute!r} is not numeric, so its values have no sum.")
        return ValueGrid.of(attribute, centred=self.centred)


@dataclass(frozen=True)
class ValueGrid:
    """The values of a numeric attribute as integers: code c stands for (first + step * c) * unit + centre."""

    first: int
    step: int
    size: int
    unit: Fraction
    centre: Fraction

    @classmethod
    def of(cls, attribute: Numeric, *, centred: bool) -> ValueGrid:
        low, step = Fraction(attribute.low), Fraction(attribute.step)
        unit = Fraction(
            math.gcd(low.numerator * step.denominator, step.numerator * low.denominator), low.denominator * step.denominator
        )
        first, width = int(low / unit), int(step / unit)
        middle = first + width * ((attribute.size - 1) // 2) if centred else 0
        return cls(first - middle, width, attribute.size, unit, middle * unit)

    @property
    def last(self) -> int:
        return self.first + self.step * (self.size - 1)

    @property
    def largest(self) -> int:
        """The largest absolute value: by how much one row can change the sum."""
        return max(abs(self.first), abs(self.last), 1)

    def sensitivity(self, power: int) -> int:
        return int(self.largest**power)


def shares(units: int, parts: int) -> tuple[int, ...]:
    """Whole units as evenly as possible, adding up exactly."""
    return tuple(units // parts + (place < units % parts) for place in range(parts))


@value("told")
class Told(Question):
    """One statistic of a view, told through noise that was designed for it beforehand.

    statistic   count, sum, mean, max or median; all but the count are of a numeric attribute
    noise       a mechanism on a finite grid, or noise on a lattice for an answer without bounds
    prior       what was publicly known beforehand when the noise was designed, for the record: it decides nothing here

    By how much one row moves the statistic follows from the schema; noise that would not keep epsilon for it is refused.
    """

    statistic: str
    attribute: str | None
    noise: FiniteMechanism | LatticeNoise
    prior: str | None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise RequestError(f"The statistic must be one of {', '.join(STATISTICS)}. Got {self.statistic!r:.60}.")
        if (self.attribute is None) != (self.statistic == "count"):
            raise RequestError("A count is of no attribute; every other statistic is of one.")
        if self.prior is not None and len(self.prior) > LONGEST_PRIOR:
            raise RequestError(f"A prior is recorded in at most {LONGEST_PRIOR} characters.")


@value("vector-sums")
class VectorSums(Question):
    """The sums of several numeric attributes at once, and the number of rows before them if wanted, with one noise for all.

    One row moves every sum, each by at most the attribute's largest absolute value (relative to the middle of its grid
    where centred), and the number of rows by one. With ball "l-infinity" the noise is a staircase over boxes of these
    lengths, `inner` being how far its first level reaches; with "l1" it is independent, for even shares of epsilon.
    """

    attributes: tuple[str, ...]
    with_count: bool
    centred: bool
    ball: str
    inner: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.attributes) <= MOST_DIMENSIONS or len(set(self.attributes)) < len(self.attributes):
            raise RequestError(f"Sums at once are of 1 to {MOST_DIMENSIONS} different attributes.")
        if self.ball not in BALLS:
            raise RequestError(f"The ball must be one of {', '.join(BALLS)}. Got {self.ball!r:.60}.")
        wanted = len(self.attributes) + self.with_count if self.ball == "l-infinity" else 0
        if len(self.inner) != wanted or any(type(steps) is not int for steps in self.inner):
            raise RequestError(f"Sums at once under this ball need {wanted} inner widths, whole numbers.")

    def grids(self, schema: Schema) -> tuple[ValueGrid, ...]:
        found = []
        for name in self.attributes:
            attribute = schema.single(name)
            if not isinstance(attribute, Numeric):
                raise RequestError(f"{name!r} is not numeric, so its values have no sum.")
            found.append(ValueGrid.of(attribute, centred=self.centred))
        return tuple(found)

    def lengths(self, schema: Schema) -> tuple[int, ...]:
        """By how much one row can move each number, in units of the attributes' grids."""
        return ((1,) if self.with_count else ()) + tuple(grid.largest for grid in self.grids(schema))


@value("offset-sums")
class OffsetSums(Question):
    """For each cluster the sum of its rows' offsets from an origin, clipped, with discrete Laplace noise.

    Clusters are those of the nearest centres. An offset is the row's position less the cluster's origin, attribute by
    attribute; if the absolute values add up to more than the cluster's radius, it is shortened to that, each part rounded
    towards 0. So a row changes the sums of one cluster, by at most its radius in all: L1 sensitivity.
    """

    nearest: Nearest
    origins: tuple[tuple[int, ...], ...]
    radii: tuple[int, ...]

    def __post_init__(self) -> None:
        clusters, dimensions = len(self.nearest.centres), len(self.nearest.attributes)
        if len(self.origins) != clusters or any(len(origin) != dimensions for origin in self.origins):
            raise RequestError("Every cluster needs an origin, with a position in every attribute.")
        if any(type(place) is not int or abs(place) > LARGEST_POSITION for origin in self.origins for place in origin):
            raise RequestError(f"An origin's positions are whole numbers within +-{LARGEST_POSITION}.")
        largest = LARGEST_POSITION * MOST_DIMENSIONS
        if len(self.radii) != clusters or any(
            type(radius) is not int or not 1 <= radius <= largest for radius in self.radii
        ):
            raise RequestError(f"Every cluster needs a radius, a whole number from 1 to {largest}.")


@value("cut-rule")
class CutRule:
    """Where a private tree would cut an attribute, for every interval of it: public numbers, fixed beforehand.

    edges   the first codes of bins that divide the attribute's codes
    scores  for each run of bins, from bin i to before bin j, how much cutting it is worth, in the order (0, 1), (0, 2), ...,
            (1, 2), ...; a run of one bin has no score here
    cuts    for each run the bin before which it is cut
    inside  what cutting two codes inside one bin apart is worth; an interval of w codes is worth w^2 times that, and is cut
            in the middle
    """

    attribute: str
    edges: tuple[int, ...]
    scores: tuple[int, ...]
    cuts: tuple[int, ...]
    inside: int

    def __post_init__(self) -> None:
        if {type(number) for number in (*self.edges, *self.scores, *self.cuts, self.inside)} != {int}:
            raise RequestError(f"Edges, scores and cuts of {self.attribute!r} are whole numbers.")


@value("private-tree")
class PrivateTree(Question):
    """Which nodes of a tree of cuts are split further, where many rows are: the structure alone, no counts.

    A node goes on where its rows, less a public amount for each level above it, exceed a threshold by noisy comparison
    (PrivTree). Where a node is cut follows from the rules: in the attribute whose interval is worth most. One price for the
    whole tree, however deep it grows.
    """

    rules: tuple[CutRule, ...]
    deepest: int

    def __post_init__(self) -> None:
        names = [rule.attribute for rule in self.rules]
        if not 1 <= len(names) <= MOST_DIMENSIONS or len(set(names)) < len(names):
            raise RequestError(f"A private tree cuts 1 to {MOST_DIMENSIONS} different attributes.")
        if type(self.deepest) is not int or not 1 <= self.deepest <= DEEPEST_PRIVATE_TREE:
            raise RequestError(f"A private tree has 1 to {DEEPEST_PRIVATE_TREE} levels.")


@value("quantile")
class Quantile(Question):
    """A grid point at or near the quantile of order numerator / denominator, by the exponential mechanism.

    The score of a point is minus how many rows (times the denominator) it is away from being that quantile.
    """

    attribute: str
    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        if not (0 <= self.numerator <= self.denominator <= 1000 and self.denominator > 0):
            raise RequestError("A quantile's order is between 0 and 1, with at most 3 decimals.")
        if math.gcd(self.numerator, self.denominator) != 1:
            raise RequestError("A quantile's order must be a fraction in lowest terms.")


class Choice(Question):
    """One candidate chosen privately in each cell. `mechanism` and `calibration` say how."""

    mechanism: str
    calibration: str

    def check(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise RequestError(f"The mechanism must be one of {', '.join(MECHANISMS)}. Got {self.mechanism!r}.")
        if self.calibration not in CALIBRATIONS:
            raise RequestError(f"The calibration must be one of {', '.join(CALIBRATIONS)}. Got {self.calibration!r}.")


@value("choose-label")
class ChooseLabel(Choice):
    """The label of a key that most rows have; the score of a label is its count."""

    key: Key
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()


class Splits:
    """A family of candidate splits.

    Under the exponential mechanism each family has the same share of the base measure, shared evenly by its candidates;
    permute-and-flip counts every candidate of every family once.
    """

    def size(self, schema: Schema) -> int:
        """The number of candidates."""
        raise NotImplementedError

    def candidate(self, schema: Schema, index: int) -> Key | None:
        """One candidate as the key it splits by; None where it does not split."""
        raise NotImplementedError


@value("multiway")
class Multiway(Splits):
    """One candidate: split by every label of the key."""

    key: Key

    def size(self, schema: Schema) -> int:
        return 1

    def candidate(self, schema: Schema, index: int) -> Key:
        return self.key


@value("thresholds")
class Thresholds(Splits):
    """Two-way splits of a numeric attribute at every grid point above `low` and up to `high` (default: the domain)."""

    attribute: str
    low: str | None = None
    high: str | None = None

    def codes(self, schema: Schema) -> range:
        """A candidate at code c sends the codes below c to the left."""
        attribute = schema.single(self.attribute)
        if not isinstance(attribute, Numeric):
            raise RequestError(f"{self.attribute!r} is not numeric, so it has no thresholds.")
        low = attribute.low if self.low is None else attribute.number(self.low)
        high = attribute.high if self.high is None else attribute.number(self.high)
        first = attribute.first_code_at_least(low)
        if first < attribute.size and attribute.point(first) == low:
            first += 1
        first = max(first, 1)  # a split at the lowest point would send nothing to the left
        last = attribute.floor_code(high) if high >= attribute.low else 0
        if first > last:
            raise RequestError(f"No grid point of {self.attribute!r} lies between the given low and high.")
        return range(first, last + 1)

    def size(self, schema: Schema) -> int:
        return len(self.codes(schema))

    def candidate(self, schema: Schema, index: int) -> Key:
        return Bins(self.attribute, (schema.single(self.attribute).label(self.codes(schema)[index]),))


@value("subsets")
class Subsets(Splits):
    """Two-way splits of a nominal attribute: each listed set of categories against the others."""

    attribute: str
    subsets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.subsets:
            raise RequestError(f"Subsets of {self.attribute!r}: list at least one.")
        if any(len(set(members)) != len(members) for members in self.subsets):
            raise RequestError(f"Subsets of {self.attribute!r}: a subset names a category twice.")

    def size(self, schema: Schema) -> int:
        return len(self.subsets)

    def candidate(self, schema: Schema, index: int) -> Key:
        members = self.subsets[index]
        name = " or ".join(members)
        return Groups(self.attribute, (Group(name, members),), rest=f"not {name}")


@value("specialise")
class Specialise(Splits):
    """One candidate: of the rows under one value of a generalised attribute, the split into the value's children.

    `key` is the attribute's cut after the specialisation and `labels` are the children in it. Rows with another label do
    not count, so that candidates of one choice are about different rows.
    """

    key: Key
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) != len(self.labels):
            raise RequestError("A specialisation has at least two different children.")

    def size(self, schema: Schema) -> int:
        return 1

    def candidate(self, schema: Schema, index: int) -> Key:
        return self.key


@value("divide")
class Divide(Splits):
    """Two-way splits of one interval of a numeric attribute, from grid point `first` to `last`, at every point inside it.

    Like `Specialise`, of all points at once: rows outside the interval do not count.
    """

    attribute: str
    first: str
    last: str

    def codes(self, schema: Schema) -> range:
        """The codes of the interval; a candidate at code c sends the codes below c to the left."""
        attribute = schema.single(self.attribute)
        if not isinstance(attribute, Numeric):
            raise RequestError(f"{self.attribute!r} is not numeric, so it cannot be divided.")
        ends = [attribute.floor_code(attribute.number(text)) for text in (self.first, self.last)]
        if ends[0] >= ends[1]:
            raise RequestError(f"An interval of {self.attribute!r} needs at least two grid points to be divided.")
        return range(ends[0], ends[1] + 1)

    def size(self, schema: Schema) -> int:
        return len(self.codes(schema)) - 1

    def candidate(self, schema: Schema, index: int) -> Key:
        return Bins(self.attribute, (schema.single(self.attribute).label(self.codes(schema)[index + 1]),))


@value("stay")
class Stay(Splits):
    """One candidate: no split. Its score is that of the whole cell plus a public bonus in units of the score (rows).

    So a tree stops where no split gains more than the bonus, without asking how many rows there are.
    """

    bonus: int

    def __post_init__(self) -> None:
        if type(self.bonus) is not int or not 0 <= self.bonus <= MOST_BONUS:
            raise RequestError(f"The bonus of staying is a whole number between 0 and {MOST_BONUS}. Got {self.bonus}.")

    def size(self, schema: Schema) -> int:
        return 1

    def candidate(self, schema: Schema, index: int) -> None:
        return None


def one_versus_rest(schema: Schema, name: str) -> Subsets:
    """Every single category of an attribute, and every inner node of its taxonomy, against the others."""
    attribute = schema.single(name)
    if not isinstance(attribute, Nominal):
        raise RequestError(f"{name!r} is numeric: use thresholds.")
    subsets: list[tuple[str, ...]] = [(category,) for category in attribute.categories]
    if attribute.taxonomy is not None:
        inner = [node.leaves() for node in attribute.taxonomy.nodes() if node.children]
        subsets += [leaves for leaves in inner if 1 < len(leaves) < attribute.size]
    return Subsets(name, tuple(dict.fromkeys(subsets)))


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


@value("choose-model")
class ChooseModel(Choice):
    """The model that predicts the class of most rows; the score of a model is the number of rows it is right about."""

    models: tuple[Predicted, ...]
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()
        if not 1 <= len(self.models) <= MOST_MODELS:
            raise RequestError(f"One choice has 1 to {MOST_MODELS} models. Got {len(self.models)}.")
        if not all(isinstance(model, Predicted) for model in self.models):
            raise RequestError("Models to choose from are predictions: keys of the kind Predicted.")


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


# -- answers ---------------------------------------------------------------------------------------------------------


@value("head")
class Head:
    """The ledger's newest row when the answer was stored: keep it, and a ledger that lost rows cannot deny it."""

    sequence: int
    digest: str


@value("answer")
class Answer:
    """What leaves the door: noisy integers, or choices, for each cell that was asked (None where epsilon was 0)."""

    numbers: tuple[tuple[int, ...] | None, ...]
    epsilon: tuple[Epsilon, ...]
    sensitivity: int

    def scale(self, cell: int) -> Fraction:
        """The noise scale of a cell's counts: sensitivity / epsilon."""
        return noise_scale(self.sensitivity, self.epsilon[cell])


@value("reply")
class Reply:
    """What an executor hands back: the answer, what it cost the analyst, and the ledger's head at its row."""

    answer: Answer
    cost: Epsilon
    head: Head


@value("preview")
class Preview:
    """What a query would cost and how far off its answer would be, from public facts and the ledger's own state.

    Of the data set's cap it says only whether it has room: how much is left follows from what others asked.
    """

    cost: Epsilon
    remaining: Epsilon
    dataset_suffices: bool
    cached: bool
    expected_error: str

    def __str__(self) -> str:
        paid = "is free: it is already answered" if self.cached else f"costs epsilon {self.cost}"
        full = "" if self.cached or self.dataset_suffices else " The data set's cap has no room for it."
        return f"This query {paid}; epsilon {self.remaining} remains.{full} {self.expected_error}"
