"""From what users write to integer codes: checks a query against the schema and gives it one canonical form.

Engines, prices and the cache see resolved values only: attributes by name, values by code. Two texts that mean the
same cells and question (`age >= 40`, `age > 39`) resolve alike, so the second is a free cached answer.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
from fractions import Fraction

from dpmine.epsilon import UNITS, Epsilon
from dpmine.errors import ExpressionError, RequestError
from dpmine.expressions import (
    And,
    AttributeKey,
    Bins,
    Compare,
    Contains,
    Groups,
    IsIn,
    Key,
    Not,
    Or,
    Part,
    Predicate,
    Test,
    list_attribute,
)
from dpmine.finite import FiniteMechanism, LatticeNoise, exact_text
from dpmine.model_keys import (
    LARGEST_POSITION,
    Nearest,
    NearestBands,
    Predicted,
    ScoreBands,
    ScoreLeaf,
    ScoreSplit,
    ScoreTree,
)
from dpmine.plans import (
    All,
    Any_,
    BandedDistance,
    BandedSum,
    BestLabel,
    BestModel,
    BestRank,
    BestSplit,
    Branch,
    ByChildren,
    ByDivision,
    ByLabel,
    BySubset,
    ByThreshold,
    Cells,
    ClippedSums,
    Counts,
    Enter,
    GrownCuts,
    HashedPart,
    Holds,
    InCodes,
    Keep,
    LargestSum,
    LeafScores,
    NearestCentre,
    Negation,
    Plan,
    PowerSums,
    Recode,
    RowCuts,
    RowKey,
    RowQuestion,
    RowRules,
    RowScores,
    RowSplits,
    RowStep,
    RowTest,
    ScoreBranch,
    SparseCounts,
    Tested,
    ToldStatistic,
    VectorOfSums,
    Whole,
    count_leaves,
    is_small,
)
from dpmine.queries import (
    LARGEST_CUT_SCORE,
    MOST_CANDIDATES,
    MOST_CELLS,
    MOST_COMBINATIONS,
    MOST_COPIES,
    MOST_COUNTS,
    MOST_FAMILIES,
    MOST_HISTOGRAM_KEYS,
    MOST_KEYS,
    MOST_NUMBERS,
    MOST_PHANTOMS,
    MOST_SPARSE_KEYS,
    MOST_STEPS,
    Cell,
    ChooseLabel,
    ChooseModel,
    ChooseSplit,
    Count,
    Divide,
    Histogram,
    Moments,
    Multiway,
    OffsetSums,
    PrivateTree,
    Quantile,
    Query,
    Question,
    Rules,
    SparseHistogram,
    Specialise,
    Split,
    Splits,
    Stay,
    Step,
    Subsets,
    Thresholds,
    Told,
    VectorSums,
    Where,
    phantoms,
    shares,
)
from dpmine.schema import MOST_ROWS, Nominal, Numeric, Schema, plain
from dpmine.told_statistics import largest_value, sensitivity_of, told_attribute, value_range
from dpmine.values import canonical, tag_of

CELLS_AT_ONCE = 256  # cells whose scores are held at a time
LARGEST_STEPS = 2**30  # one row's value in steps; times fewer than 2^31 rows, every exact sum stays below 2^61
TOO_SMALL = "Epsilon is too small for this question: the noise would not fit 64 bits."

# -- resolving ---------------------------------------------------------------------------------------------------------


KnownKeys = dict[Key, RowKey]
"""Small keys that were resolved under one schema: trees cut at the same places again and again."""


def resolve(query: Query, schema: Schema, known_keys: KnownKeys | None = None) -> Plan:
    """Check a query against the public schema and bring it into canonical form. Looks at no row."""
    resolver = _Resolver(schema, known_keys, asked=True)
    _check_depth(len(query.view.steps))
    steps = tuple(resolver.step(step) for step in query.view.steps)
    rules = resolver.rules(query.rules, len(steps))
    leaves = count_leaves(rules)
    units = query.epsilon_units(leaves)
    question = resolver.question(query.question, leaves)
    _check_size(question, leaves)
    if isinstance(question, PowerSums):
        _check_scale(question, min(paid for paid in units if paid))
    if isinstance(question, SparseCounts):
        _check_phantoms(question, units)
    if isinstance(question, ClippedSums) and max(question.radii) * UNITS > units[0] * 2**50:
        raise RequestError(TOO_SMALL)
    if isinstance(question, ToldStatistic):
        _check_told(question, Epsilon(units[0]))
    if isinstance(question, VectorOfSums):
        _check_vector(question, units[0])
    return Plan(Cells(steps, rules), question, units, schema.fingerprint)


def resolve_cells(steps: tuple[Step, ...], rules: Rules, schema: Schema) -> Cells:
    """Only the cells of a query, as many as you like, for engines that are asked on their own."""
    resolver = _Resolver(schema, None, most_cells=MOST_ROWS)
    return Cells(tuple(resolver.step(step) for step in steps), resolver.rules(rules))


def _check_depth(steps: int) -> None:
    if steps > MOST_STEPS:
        raise RequestError(f"A cell may lie at most {MOST_STEPS} steps deep, in the view and the rule tree together.")


def _check_size(question: RowQuestion, leaves: int) -> None:
    """Refuse, before anything is charged, what would not fit: all limits are public."""
    if isinstance(question, Counts):
        if len(question.keys) > MOST_HISTOGRAM_KEYS:
            raise RequestError(f"A histogram may have at most {MOST_HISTOGRAM_KEYS} keys.")
        counts = leaves * question.bins
        if counts > MOST_NUMBERS:
            raise RequestError(f"This query asks for {counts} counts; one answer holds {MOST_NUMBERS}. Use coarser keys.")
    elif isinstance(question, SparseCounts):
        if len(question.keys) > MOST_SPARSE_KEYS:
            raise RequestError(f"A sparse histogram may have at most {MOST_SPARSE_KEYS} keys.")
        if leaves * question.bins > MOST_COMBINATIONS:
            raise RequestError(f"A sparse histogram has at most {MOST_COMBINATIONS} combinations. Use coarser keys.")
        return  # what it holds in memory follows from the rows, not from the combinations
    elif isinstance(question, (ClippedSums, GrownCuts, ToldStatistic, VectorOfSums)):
        return  # limited by the number of centres, of nodes, and of attributes
    elif isinstance(question, (BestLabel, BestRank, PowerSums)):
        flips = isinstance(question, BestLabel) and question.mechanism == "permute-and-flip"
        if flips and question.key.size > MOST_COPIES:
            raise RequestError(f"Permute-and-flip takes at most {MOST_COPIES} candidates. Use the exponential mechanism.")
        counts = leaves * question.key.size
    elif isinstance(question, BestModel):
        counts = leaves * question.target.size * sum(model.size for model in question.models)
    else:
        assert isinstance(question, BestSplit)
        for families in question.families:
            if len(families) > MOST_FAMILIES or sum(family.candidates for family in families) > MOST_CANDIDATES:
                raise RequestError(f"One choice has at most {MOST_FAMILIES} families and {MOST_CANDIDATES} candidates.")
        keys = {family.key for families in question.families for family in families}
        most = max(sum(family.candidates for family in families) for families in question.families)
        counts = question.target.size * max(leaves * sum(key.size for key in keys), min(leaves, CELLS_AT_ONCE) * most)
    if counts > MOST_COUNTS:
        raise RequestError(f"This query needs {counts} counts; at most {MOST_COUNTS} fit one query. Use coarser keys.")


def _check_phantoms(question: SparseCounts, units: tuple[int, ...]) -> None:
    """Refuse a threshold so low that noise alone would fill the answer."""
    expected = sum(phantoms(question.bins, Epsilon(paid), question.at_least) for paid in units if paid)
    if expected > MOST_PHANTOMS:
        raise RequestError(
            f"With {question.bins} combinations and a threshold of {question.at_least}, noise alone would show about "
            f"{expected:.3g} of them; at most {MOST_PHANTOMS} fit one answer. Raise 'at_least', or use coarser keys."
        )


def _check_scale(question: PowerSums, units: int) -> None:
    """Refuse noise that would not fit 64 bits."""
    share = units // len(question.powers)
    if share < 1 or max(question.sensitivities) * UNITS > share * 2**50:
        raise RequestError(TOO_SMALL)


def _check_told(question: ToldStatistic, epsilon: Epsilon) -> None:
    """Refuse noise that does not keep epsilon, exactly, for the sensitivity that follows from the schema."""
    if isinstance(question.noise, FiniteMechanism):
        moves = Fraction(question.sensitivity)
        if not question.noise.keeps(epsilon, moves):
            raise RequestError(
                f"This mechanism does not keep epsilon {epsilon} where one row can move the {question.statistic} by "
                f"{question.sensitivity}: it needs {question.noise.epsilon(moves):.9g}. Design it for that sensitivity."
            )
        return
    if not 0 <= question.noise.inner < question.steps:
        raise RequestError(f"The inner width of this staircase is a whole number below {question.steps}, in steps.")
    if question.steps * UNITS > epsilon.units * 2**50:
        raise RequestError(TOO_SMALL)


def _check_vector(question: VectorOfSums, units: int) -> None:
    """Refuse noise that would not fit 64 bits, and inner widths that are not inside their lengths."""
    if question.ball == "l1":
        share = min(shares(units, len(question.lengths)))
        if share < 1 or max(question.lengths) * UNITS > share * 2**50:
            raise RequestError(TOO_SMALL)
        return
    if any(not 0 <= inner < length for inner, length in zip(question.inner, question.lengths, strict=True)):
        raise RequestError(f"Inner widths are at least 0 and below the lengths {question.lengths}.")
    if max(question.lengths) * UNITS > units * 2**50:
        raise RequestError(TOO_SMALL)


class _Resolver:
    """Resolves the parts of one query; a key that occurs again is resolved once."""

    def __init__(
        self, schema: Schema, known_keys: KnownKeys | None, *, asked: bool = False, most_cells: int = MOST_CELLS
    ) -> None:
        self._schema = schema
        self._known = {} if known_keys is None else known_keys
        self._asked = asked
        self._most_cells = most_cells
        self._predicates = _Predicates(schema)
        self._keys: dict[Key, RowKey] = {}
        self._same: dict[int, tuple[Key, RowKey]] = {}  # by identity: to compare large keys takes time
        self._cells = 1

    def key(self, key: Key) -> RowKey:
        if id(key) not in self._same:
            self._same[id(key)] = key, self._key(key)
        return self._same[id(key)][1]

    def _key(self, key: Key) -> RowKey:
        if key not in self._keys:
            if len(self._keys) >= MOST_KEYS:
                raise RequestError(f"One query may use at most {MOST_KEYS} different keys.")
            self._keys[key] = self._known.get(key) or self._resolved(key)
        return self._keys[key]

    def _resolved(self, key: Key) -> RowKey:
        if isinstance(key, Test):
            return Tested(self.predicate(key.predicate))
        found = resolve_key(key, self._schema)
        if is_small(found) and isinstance(key, (AttributeKey, Bins)):  # others may be small and yet hold many values
            if len(self._known) >= MOST_KEYS:
                self._known.clear()
            self._known[key] = found
        return found

    def predicate(self, predicate: Predicate) -> RowTest:
        return self._predicates.asked(predicate) if self._asked else self._predicates.resolve(predicate)

    def step(self, step: Step) -> RowStep:
        if isinstance(step, Where):
            return Keep(self.predicate(step.predicate))
        assert isinstance(step, Cell)
        key = self.key(step.key)
        if not 0 <= step.index < key.size:
            raise RequestError(f"The key has {key.size} labels; there is no label {step.index}.")
        return Enter(key, step.index)

    def rules(self, rules: Rules, depth: int = 0) -> RowRules | None:
        if not isinstance(rules, Split):
            return None
        _check_depth(depth + 1)
        key = self.key(rules.key)
        if len(rules.children) != key.size:
            raise RequestError(f"A split by {rules.key.title!r} needs {key.size} children. Got {len(rules.children)}.")
        self._cells += max(len(rules.children) - 1, 1)  # a key of one label makes no cell, but a level
        if self._cells > self._most_cells:  # a short request may name one part many times
            raise RequestError(
                f"This query has too many cells; one query may have at most {self._most_cells}, and as many splits."
            )
        return Branch(key, tuple([self.rules(child, depth + 1) for child in rules.children]))

    def question(self, question: Question, leaves: int) -> RowQuestion:
        if isinstance(question, Count):
            return Counts(())
        if isinstance(question, Histogram):
            return Counts(tuple(self.key(key) for key in question.keys))
        if isinstance(question, SparseHistogram):
            return SparseCounts(tuple(self.key(key) for key in question.keys), question.at_least)
        if isinstance(question, Moments):
            return self.moments(question)
        if isinstance(question, Told):
            self.one_cell(leaves)
            return self.told(question)
        if isinstance(question, VectorSums):
            self.one_cell(leaves)
            return self.vector(question)
        if isinstance(question, OffsetSums):
            nearest = self.key(question.nearest)
            assert isinstance(nearest, NearestCentre)
            self.one_cell(leaves)
            return ClippedSums(nearest, question.origins, question.radii)
        if isinstance(question, PrivateTree):
            self.one_cell(leaves)
            return self.private_tree(question)
        if isinstance(question, Quantile):
            self.numeric(question.attribute)
            return BestRank(self.key(AttributeKey(question.attribute)), question.numerator, question.denominator)
        if isinstance(question, ChooseLabel):
            return BestLabel(self.key(question.key), question.mechanism, question.calibration)
        target = self.key(AttributeKey(self._schema.require_class()))
        if isinstance(question, ChooseModel):
            for model in question.models:
                if model.classes != self._schema.class_labels:
                    raise RequestError("A model's classes must be those of the schema, in the same order.")
            models = tuple(self.key(model) for model in question.models)
            return BestModel(target, models, question.mechanism, question.calibration)
        assert isinstance(question, ChooseSplit)
        if len(question.candidates) not in (1, leaves):
            raise RequestError(
                f"Give the candidates once, or for each of the {leaves} cells. Got {len(question.candidates)}."
            )
        families = tuple(self.families(cell, cell_families) for cell, cell_families in enumerate(question.candidates))
        bound = self._schema.rows_at_most if question.score == "infogain" else 0  # other scores need no bound
        return BestSplit(target, families, question.score, bound, question.mechanism, question.calibration)

    def moments(self, question: Moments) -> PowerSums:
        grid = question.grid(self._schema)
        sensitivities = tuple(grid.sensitivity(power) for power in question.powers)
        if max(sensitivities) >= LARGEST_STEPS:
            raise RequestError(f"The values of {question.attribute!r} are too large for exact sums. Use a coarser step.")
        key = self.key(AttributeKey(question.attribute))
        return PowerSums(key, grid.first, grid.step, question.powers, sensitivities)

    def told(self, question: Told) -> ToldStatistic:
        attribute = told_attribute(question.statistic, question.attribute, self._schema)
        moves = sensitivity_of(question.statistic, attribute)
        if isinstance(question.noise, LatticeNoise) and largest_value(attribute) >= LARGEST_STEPS * Fraction(
            question.noise.step
        ):
            raise RequestError(f"A step of {question.noise.step} is too fine for exact values. Use a larger step.")
        if attribute is None:
            return ToldStatistic(question.statistic, None, "0", "1", question.noise, exact_text(moves))
        low, _, step = value_range(attribute)
        key = self.key(AttributeKey(attribute.name))
        return ToldStatistic(question.statistic, key, exact_text(low), exact_text(step), question.noise, exact_text(moves))

    def vector(self, question: VectorSums) -> VectorOfSums:
        grids, lengths = question.grids(self._schema), question.lengths(self._schema)
        if max(lengths) >= LARGEST_STEPS:
            raise RequestError("The values of these attributes are too large for exact sums. Use coarser steps.")
        keys = tuple(self.key(AttributeKey(name)) for name in question.attributes)
        firsts, steps = tuple(grid.first for grid in grids), tuple(grid.step for grid in grids)
        return VectorOfSums(keys, firsts, steps, question.with_count, question.ball, question.inner, lengths)

    def one_cell(self, leaves: int) -> None:
        if leaves > 1:
            raise RequestError("This question is asked of a whole view, not of its cells.")

    def private_tree(self, question: PrivateTree) -> GrownCuts:
        rules = []
        for rule in question.rules:
            self.numeric(rule.attribute)
            size, bins = self._schema.single(rule.attribute).size, len(rule.edges)
            runs = bins * (bins + 1) // 2
            rising = all(low < high for low, high in itertools.pairwise(rule.edges))
            if not rule.edges or rule.edges[0] != 0 or not rising or rule.edges[-1] >= size:
                raise RequestError(f"The bins of {rule.attribute!r} begin at rising codes, from 0 on.")
            if len(rule.scores) != runs or len(rule.cuts) != runs or runs > MOST_COUNTS:
                raise RequestError(f"{bins} bins of {rule.attribute!r} need {runs} scores and cuts.")
            places = iter(rule.cuts)
            for first in range(bins):
                for after in range(first + 1, bins + 1):
                    cut = next(places)
                    if after - first > 1 and not first < cut < after:
                        raise RequestError(f"A run of bins of {rule.attribute!r} must be cut inside.")
            if max(map(abs, (*rule.scores, rule.inside))) > LARGEST_CUT_SCORE:
                raise RequestError(f"What a cut is worth lies within +-{LARGEST_CUT_SCORE}.")
            rules.append(RowCuts(rule.attribute, size, rule.edges, rule.scores, rule.cuts, rule.inside))
        return GrownCuts(tuple(rules), question.deepest)

    def numeric(self, name: str) -> None:
        if not isinstance(self._schema.single(name), Numeric):
            raise RequestError(f"{name!r} is not numeric, so it has no quantiles and no intervals.")

    def families(self, cell: int, families: tuple[Splits, ...]) -> tuple[RowSplits, ...]:
        splitting = [self.family(family) for family in families if not isinstance(family, Stay)]
        if not splitting:
            raise RequestError(f"There is no split to choose from in cell {cell}.")
        resolved = iter(splitting)
        return tuple(
            Whole(splitting[0].key, family.bonus) if isinstance(family, Stay) else next(resolved) for family in families
        )

    def family(self, family: Splits) -> RowSplits:
        if isinstance(family, Multiway):
            return ByLabel(self.key(family.key))
        if isinstance(family, Specialise):
            return self.specialisation(family)
        if isinstance(family, Divide):
            codes = family.codes(self._schema)
            return ByDivision(self.key(AttributeKey(family.attribute)), codes.start, codes.stop)
        if isinstance(family, Thresholds):
            codes = family.codes(self._schema)
            return ByThreshold(self.key(AttributeKey(family.attribute)), codes.start, len(codes))
        assert isinstance(family, Subsets)
        attribute = self._schema.single(family.attribute)
        if not isinstance(attribute, Nominal):
            raise RequestError(f"{family.attribute!r} is numeric: use thresholds.")
        subsets = []
        for members in family.subsets:
            codes_of_members = tuple(sorted({attribute.code(member) for member in members}))
            if not 0 < len(codes_of_members) < attribute.size:
                raise RequestError(f"A subset of {family.attribute!r} must leave something on both sides.")
            subsets.append(codes_of_members)
        return BySubset(self.key(AttributeKey(family.attribute)), tuple(subsets))

    def specialisation(self, family: Specialise) -> ByChildren:
        """Children as codes of the attribute itself, so that all specialisations of it read the same counts."""
        cut = self.key(family.key)
        if not isinstance(cut, Recode):
            raise RequestError("A specialisation is of one attribute: give its cut as bins or groups.")
        children: dict[int, list[tuple[int, int]]] = {label: [] for label in family.labels}
        for first, end, label in cut.stretches(self._schema.single(cut.attribute).size):
            if label in children:
                children[label].append((first, end))
        if not all(children.values()):
            raise RequestError(f"A specialisation of {cut.attribute!r} has a child that holds no value.")
        return ByChildren(self.key(AttributeKey(cut.attribute)), tuple(map(tuple, children.values())))


def resolve_key(key: Key, schema: Schema) -> RowKey:
    if isinstance(key, AttributeKey):
        return Recode(key.attribute, (), schema.single(key.attribute).size)
    if isinstance(key, Bins):
        numeric = schema.single(key.attribute)
        starts = [numeric.first_code_at_least(cut) for cut in key.numbers(schema)]  # type: ignore[union-attr]
        changes = sorted({0, *(start for start in starts if start < numeric.size)})
        return Recode(key.attribute, tuple((code, bisect.bisect_right(starts, code)) for code in changes), len(starts) + 1)
    if isinstance(key, Groups):
        return Recode(key.attribute, _runs(key.table(schema)), len(key.groups) + 1)
    if isinstance(key, Test):
        return Tested(resolve_predicate(key.predicate, schema))
    if isinstance(key, Predicted):
        return LargestSum(tuple(_scores(tree, schema) for tree in key.trees), len(key.classes))
    if isinstance(key, ScoreBands):
        trees = tuple(_scores(tree, schema, key.place) for tree in key.trees)
        return BandedSum(trees, key.edges, len(key.edges) + 1)
    if isinstance(key, Nearest):
        return _nearest(key, schema)
    if isinstance(key, NearestBands):
        return BandedDistance(_nearest(key.nearest, schema), key.edges, len(key.edges) + 1)
    assert isinstance(key, Part)
    return HashedPart(key.salt, key.weights, len(key.weights))


def _nearest(key: Nearest, schema: Schema) -> NearestCentre:
    for name, scale in zip(key.attributes, key.scales, strict=True):
        attribute = schema.single(name)
        if not isinstance(attribute, Numeric):
            raise RequestError(f"{name!r} is not numeric, so nothing is near or far in it.")
        if (attribute.size - 1) * scale > LARGEST_POSITION:
            raise RequestError(f"The scale of {name!r} is too large: positions go up to {LARGEST_POSITION}.")
    return NearestCentre(key.attributes, key.scales, key.centres, len(key.centres))


def _scores(tree: ScoreTree, schema: Schema, place: int | None = None) -> RowScores:
    """A model's tree on codes; with `place`, only that score of each leaf."""
    if isinstance(tree, ScoreLeaf):
        return LeafScores(tree.scores if place is None else (tree.scores[place],))
    assert isinstance(tree, ScoreSplit)
    key = resolve_key(tree.key, schema)
    assert isinstance(key, Recode)
    if len(tree.children) != key.size:
        raise RequestError(f"A split by {tree.key.title!r} needs {key.size} children. Got {len(tree.children)}.")
    return ScoreBranch(key, tuple(_scores(child, schema, place) for child in tree.children))


def resolve_predicate(predicate: Predicate, schema: Schema, *, asked: bool = False) -> RowTest:
    """The codes that a predicate holds for.

    What users ask (`asked`) must be able to hold, part by part: a comparison that the public bounds and grid make false for
    every row, and an `or` and `and` of which the same can be told, are refused, so that nobody pays for an empty view. What
    is true for every row (`age <= 200` where 110 is the bound, or its negation's negation) only narrows nothing, and may be
    asked. Bins beyond the bounds may be too: they say what they are, and an empty bin adds nothing to the price of others.
    """
    resolver = _Predicates(schema)
    return resolver.asked(predicate) if asked else resolver.resolve(predicate)


class _Predicates:
    """Resolves predicates; one that stands in many places is resolved, named and looked through once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._found: dict[int, tuple[Predicate, RowTest]] = {}  # by identity, as everything here
        self._names: dict[int, tuple[RowTest, bytes]] = {}
        self._empty: dict[int, tuple[RowTest, bool]] = {}

    def resolve(self, predicate: Predicate) -> RowTest:
        if id(predicate) not in self._found:
            self._found[id(predicate)] = predicate, self._resolved(predicate)
        return self._found[id(predicate)][1]

    def _resolved(self, predicate: Predicate) -> RowTest:
        schema = self._schema
        if isinstance(predicate, Compare):
            return _compare(predicate, schema)
        if isinstance(predicate, IsIn):
            schema.single(predicate.attribute)
            equal = [_compare(Compare(predicate.attribute, "==", text), schema).ranges for text in predicate.values]
            return InCodes(predicate.attribute, _merge([pair for ranges in equal for pair in ranges]))
        if isinstance(predicate, Contains):
            attribute = list_attribute(schema, predicate.attribute)
            return Holds(predicate.attribute, tuple(sorted({attribute.code(item) for item in predicate.items})))
        if isinstance(predicate, Not):
            part = self.resolve(predicate.part)
            if isinstance(part, InCodes):
                return InCodes(part.attribute, _complement(part.ranges, schema.single(part.attribute).size))
            return part.part if isinstance(part, Negation) else Negation(part)
        assert isinstance(predicate, (And, Or))
        cls = All if isinstance(predicate, And) else Any_
        flat: dict[bytes, RowTest] = {}
        for part in map(self.resolve, predicate.parts):
            for inner in part.parts if isinstance(part, cls) else (part,):
                flat[self._name(inner)] = inner
        return next(iter(flat.values())) if len(flat) == 1 else cls(tuple(flat[name] for name in sorted(flat)))

    def _name(self, test: RowTest) -> bytes:
        """A name that two different tests do not share; parts are put in the order of their names."""
        if id(test) not in self._names:
            if isinstance(test, (All, Any_)):
                form = tag_of(type(test)).encode() + b"".join(map(self._name, test.parts))
            elif isinstance(test, Negation):
                form = tag_of(type(test)).encode() + self._name(test.part)
            else:
                form = canonical(test)
            self._names[id(test)] = test, hashlib.blake2b(form, digest_size=32).digest()
        return self._names[id(test)][1]

    def asked(self, predicate: Predicate) -> RowTest:
        """Resolve what a user asks, or refuse it: the smallest part that can never hold is named."""
        found = self.resolve(predicate)
        parts: dict[int, Predicate] = {}
        waiting = [predicate]
        while waiting:
            part = waiting.pop()
            if id(part) not in parts:
                parts[id(part)] = part
                waiting += part.parts if isinstance(part, (And, Or)) else ()  # below a `not` an empty part empties nothing
        for part in reversed(parts.values()):
            if isinstance(part, IsIn):
                for equal in (Compare(part.attribute, "==", text) for text in part.values):
                    if not _compare(equal, self._schema).ranges:
                        raise ExpressionError(_why_never(equal, self._schema))
            if self.never(self.resolve(part)):
                raise ExpressionError(_why_never(part, self._schema))
        return found

    def never(self, test: RowTest) -> bool:
        """Whether public facts alone make a test false for every row. May overlook it across several attributes."""
        if id(test) not in self._empty:
            self._empty[id(test)] = test, self._never(test)
        return self._empty[id(test)][1]

    def _never(self, test: RowTest) -> bool:
        schema = self._schema
        if isinstance(test, InCodes):
            return not test.ranges
        if isinstance(test, Holds):
            return len(test.items) > list_attribute(schema, test.attribute).at_most
        if isinstance(test, Negation):
            return self._always(test.part)
        if isinstance(test, Any_):
            return all(map(self.never, test.parts))
        assert isinstance(test, All)
        outside = {
            name: [_complement(one, schema.single(name).size) for one in found] for name, found in _ranges_of(test).items()
        }
        return any(map(self.never, test.parts)) or any(_cover(schema, *one) for one in outside.items())

    def _always(self, test: RowTest) -> bool:
        """Whether the public facts alone make a test true for every row. What is negated is no negation itself."""
        if isinstance(test, InCodes):
            return _cover(self._schema, test.attribute, [test.ranges])
        if isinstance(test, Holds):
            return not test.items
        if isinstance(test, Negation):
            return self.never(test.part)
        assert isinstance(test, (All, Any_))
        if isinstance(test, All):
            return all(map(self._always, test.parts))
        covered = any(_cover(self._schema, *one) for one in _ranges_of(test).items())
        return covered or any(map(self._always, test.parts))


def _ranges_of(test: All | Any_) -> dict[str, list[tuple[tuple[int, int], ...]]]:
    """The ranges of the parts that test codes, by attribute."""
    found: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    for part in test.parts:
        if isinstance(part, InCodes):
            found.setdefault(part.attribute, []).append(part.ranges)
    return found


def _cover(schema: Schema, name: str, ranges: list[tuple[tuple[int, int], ...]]) -> bool:
    """Whether together they hold all codes of an attribute."""
    return _merge([pair for one in ranges for pair in one]) == ((0, schema.single(name).size),)


def _why_never(predicate: Predicate, schema: Schema) -> str:
    """What was asked, what the schema allows, and what to write instead."""
    if isinstance(predicate, IsIn):
        return f"{predicate} is true for no row: it names no value of {predicate.attribute!r}. Nothing was spent; name one."
    if not isinstance(predicate, Compare):
        return (
            f"{predicate} is true for no row: by the schema's bounds and categories no values can meet all of it. "
            "Nothing was spent; leave a part out, or ask for other values."
        )
    attribute = schema.single(predicate.attribute)
    if isinstance(attribute, Nominal):
        only = attribute.categories[0]
        return f"{predicate} is true for no row: {only!r} is its only category. Nothing was spent; leave the comparison out."
    first, last = attribute.label(0), attribute.label(attribute.size - 1)
    floor = attribute.label(attribute.floor_code(attribute.number(predicate.value)))
    op, bound = {"<": ("<=", first), "<=": ("<=", first), "==": ("==", floor)}.get(predicate.op, (">=", last))
    return (
        f"{predicate} is true for no row: values of {attribute.name!r} are rounded down to the schema's grid from {first} "
        f"to {last} in steps of {plain(attribute.step)}, and clamped to its ends. Nothing was spent; write a comparison "
        f"that such values can meet, for example {Compare(attribute.name, op, bound)}."
    )


def _compare(predicate: Compare, schema: Schema) -> InCodes:
    attribute = schema.single(predicate.attribute)
    if isinstance(attribute, Nominal):
        if predicate.op not in ("==", "!="):
            raise ExpressionError(f"{predicate.attribute!r} is nominal: only == and != compare it.")
        start = attribute.code(predicate.value)
        after = start + 1
    else:
        number = attribute.number(predicate.value)
        start = attribute.first_code_at_least(number)
        exact = start < attribute.size and attribute.point(start) == number
        after = start + 1 if exact else start
    size = attribute.size
    ranges = {
        "==": [(start, after)],
        "!=": [(0, start), (after, size)],
        "<": [(0, start)],
        "<=": [(0, after)],
        ">": [(after, size)],
        ">=": [(start, size)],
    }[predicate.op]
    return InCodes(predicate.attribute, _merge(ranges))


def _complement(ranges: tuple[tuple[int, int], ...], size: int) -> tuple[tuple[int, int], ...]:
    starts = [0, *(high for _, high in ranges)]
    ends = [*(low for low, _ in ranges), size]
    return _merge(list(zip(starts, ends, strict=True)))


def _runs(table: list[int]) -> tuple[tuple[int, int], ...]:
    return tuple((code, item) for code, item in enumerate(table) if code == 0 or table[code - 1] != item)


def _merge(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in ranges if pair[0] < pair[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
