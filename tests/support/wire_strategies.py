"""Hypothesis strategies for every value that crosses the door, with awkward names and texts."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from dpmine.base.epsilon import LARGEST, UNITS, Epsilon
from dpmine.codes.answers import Answer, Head, Quote, Reply
from dpmine.codes.choices import CALIBRATIONS, MECHANISMS
from dpmine.codes.choose_split import SPLIT_SCORES
from dpmine.codes.designed_statistic import STATISTICS
from dpmine.codes.private_tree import DEEPEST_PRIVATE_TREE
from dpmine.codes.rows import LARGEST_DISTANCE, LARGEST_POSITION, LARGEST_SCORE, MOST_DIMENSIONS, MOST_TREES
from dpmine.codes.splits import MOST_BONUS
from dpmine.codes.vector_sums import BALLS
from dpmine.design.finite_mechanisms import LOSSES
from dpmine.design.priors import MECHANISMS as DESIGNS
from dpmine.design.priors import Prior
from dpmine.language.keys import APART, LAST, AttributeKey, Bins, ByCalendar, Group, Groups, Key, Part, Test
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit, ScoreTree
from dpmine.language.predicates import COMPARISONS, And, Compare, Contains, IsIn, IsMissing, Not, Or, Predicate
from dpmine.language.queries import Query, Question
from dpmine.language.splits import Multiway, Splits, Stay, Subsets, Thresholds
from dpmine.language.views import LEAF, Cell, Rules, Split, Step, View, Where
from dpmine.models.trees import Node, Trees
from dpmine.noise.finite_tables import FiniteTable, LatticeNoise
from dpmine.noise.laws import BoxStaircase, ChoiceLoss, DiscreteLaplace, FiniteLaw, Law, NoisyComparisons
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_model import ChooseModel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.designed_statistic import DesignedStatistic
from dpmine.questions.histogram import Histogram
from dpmine.questions.moments import Moments
from dpmine.questions.offset_sums import OffsetSums
from dpmine.questions.private_tree import CutRule, PrivateTree
from dpmine.questions.quantile import Quantile
from dpmine.questions.total import Total
from dpmine.questions.vector_sums import VectorSums
from dpmine.results.preview import Preview
from dpmine.results.statements import Allotment, Spending, Statement

AWKWARD = ["", " ", "and", "OR", "not", "in", "contains", "true", "False", "age", "ward", "a.b", "-1", "1e5", "0x1", "=="]
AWKWARD += ['say "hi"', "it's", "back\\slash", "end\\", '\\"', "a, b", "[x]", "(y)", "a:b", "new\nline", "tab\t", "\x00"]
AWKWARD += ["na\u00efve", "\u65e5\u672c", "\uff46\uff55", "\u0661\u0662", "\U0001d7d9", "\u00a0", "\u2028", "\U0001f48a"]
AWKWARD += ["\x1f", "<", "x" * 300]
any_text = st.sampled_from(AWKWARD) | st.text(max_size=12)
with_surrogates = any_text | st.text(st.characters(exclude_categories=()), max_size=4)
units = st.integers(0, LARGEST * UNITS) | st.sampled_from([0, 1, UNITS // 10, UNITS])
epsilons = units.map(Epsilon)
integers = st.integers(-(2**70), 2**70) | st.integers(-5, 5)


def tuples(items: st.SearchStrategy, *, least: int = 0, most: int = 4) -> st.SearchStrategy:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def predicates_over(text: st.SearchStrategy[str], *, one_part: bool = True) -> st.SearchStrategy[Predicate]:
    """Predicates of any shape; without `one_part` no and/or has exactly one part (it has no text of its own)."""
    simple = (
        st.builds(Compare, text, st.sampled_from(COMPARISONS), text)
        | st.builds(IsIn, text, tuples(text))
        | st.builds(Contains, text, tuples(text))
        | st.builds(IsMissing, text)
        | st.sampled_from([And(()), Or(())])
    )
    least = 1 if one_part else 2
    return st.recursive(
        simple,
        lambda inner: (
            st.builds(Not, inner) | st.builds(And, tuples(inner, least=least)) | st.builds(Or, tuples(inner, least=least))
        ),
        max_leaves=8,
    )


predicates = predicates_over(with_surrogates)
weights = tuples(st.integers(1, 1000), least=2)
parts = st.builds(Part, any_text.filter(lambda text: len(text) <= 200), weights)
places_of_gaps = st.sampled_from([APART, LAST])
groups = st.builds(Group, with_surrogates, tuples(with_surrogates))
column_keys: st.SearchStrategy[Key] = (
    st.builds(AttributeKey, with_surrogates)
    | st.builds(Bins, with_surrogates, tuples(with_surrogates, least=1), places_of_gaps)
    | st.builds(Groups, with_surrogates, tuples(groups), any_text, places_of_gaps)
)
scores = st.integers(-LARGEST_SCORE, LARGEST_SCORE) | st.integers(-2, 2)
fitting_keys: st.SearchStrategy[Key] = st.sampled_from([AttributeKey("ward"), Bins("age", ("3", "7"))])  # three labels


def score_trees(width: int) -> st.SearchStrategy[ScoreTree]:
    """Trees with that many scores at each leaf; some fit the schema of the tests, most fit none."""
    leaves = st.builds(ScoreLeaf, st.tuples(*[scores] * width))
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(ScoreSplit, column_keys, tuples(inner))
            | st.builds(ScoreSplit, fitting_keys, st.tuples(inner, inner, inner))
        ),
        max_leaves=6,
    )


def trees_of(width: int) -> st.SearchStrategy[tuple[ScoreTree, ...]]:
    return tuples(score_trees(width), least=1, most=3)


names_of_classes = st.lists(with_surrogates, min_size=2, max_size=4, unique=True).map(tuple) | st.just(("and", "a, b", "-1"))
predictions = names_of_classes.flatmap(lambda names: st.builds(Predicted, trees_of(len(names)), st.just(names)))
largest_sum = LARGEST_SCORE * MOST_TREES
rising = st.sets(st.integers(-largest_sum, largest_sum), min_size=1, max_size=4).map(sorted).map(tuple)
bands = st.integers(1, 3).flatmap(lambda width: st.builds(ScoreBands, trees_of(width), st.integers(0, width - 1), rising))
places = st.integers(0, LARGEST_POSITION) | st.integers(0, 3)


@st.composite
def nearest_keys(draw: st.DrawFn) -> Nearest:
    names = draw(st.lists(with_surrogates, min_size=1, max_size=3, unique=True))
    centre = st.tuples(*[places] * len(names))
    steps, scales = (draw(st.tuples(*[st.integers(1, 2**70)] * len(names))) for _ in range(2))
    return Nearest(tuple(names), steps, scales, draw(tuples(centre, least=1)))


@st.composite
def offset_sums(draw: st.DrawFn) -> OffsetSums:
    nearest = draw(nearest_keys())
    origin = st.tuples(*[st.integers(-LARGEST_POSITION, LARGEST_POSITION)] * len(nearest.attributes))
    count = len(nearest.centres)
    radii = st.integers(1, LARGEST_POSITION * MOST_DIMENSIONS)
    return OffsetSums(nearest, draw(st.tuples(*[origin] * count)), draw(st.tuples(*[radii] * count)))


distances = st.sets(st.integers(0, LARGEST_DISTANCE), min_size=1, max_size=4).map(sorted).map(tuple)
clusters = nearest_keys() | st.builds(NearestBands, nearest_keys(), distances)
by_calendar: st.SearchStrategy[Key] = st.builds(ByCalendar, with_surrogates, any_text)
keys: st.SearchStrategy[Key] = (
    column_keys | by_calendar | st.builds(Test, predicates) | parts | predictions | bands | clusters
)
cut_rules = st.builds(CutRule, with_surrogates, tuples(integers), tuples(integers), tuples(integers), integers)
private_trees = st.builds(
    PrivateTree,
    st.lists(cut_rules, min_size=1, max_size=3, unique_by=lambda rule: rule.attribute).map(tuple),
    st.integers(1, DEEPEST_PRIVATE_TREE),
)
exact_texts = st.fractions(-1000, 1000, max_denominator=60).map(str)
positive_texts = st.fractions(Fraction(1, 50), 1000, max_denominator=60).map(str)
lattices = st.builds(LatticeNoise, positive_texts, st.just("staircase"), st.integers(0, 50)) | st.builds(
    LatticeNoise, positive_texts, st.just("geometric"), st.just(0)
)


@st.composite
def finite_tables(draw: st.DrawFn) -> FiniteTable:
    """Rows of up to four weights that add up to 12."""
    outputs = draw(st.lists(st.fractions(-9, 9, max_denominator=7), min_size=1, max_size=4, unique=True).map(sorted))
    cuts = st.lists(st.integers(0, 12), min_size=len(outputs) - 1, max_size=len(outputs) - 1).map(sorted)
    rows = []
    for ends in draw(st.lists(cuts, min_size=1, max_size=4)):
        rows.append(tuple(after - before for before, after in zip([0, *ends], [*ends, 12], strict=True)))
    return FiniteTable(draw(exact_texts), draw(positive_texts), tuple(map(str, outputs)), tuple(rows))


@st.composite
def vector_sums(draw: st.DrawFn) -> VectorSums:
    names = tuple(draw(st.lists(with_surrogates, min_size=1, max_size=3, unique=True)))
    with_count, ball = draw(st.booleans()), draw(st.sampled_from(BALLS))
    wanted = (len(names) + with_count) * (ball == "l-infinity")
    return VectorSums(names, with_count, draw(st.booleans()), ball, tuple(draw(st.tuples(*[integers] * wanted))))


priors = st.builds(
    Prior,
    st.sampled_from(["flat", "normal:1:2", "laplace:-1:.5", "triangle:0:1:2", "weights:1,0,2.5"]),
    st.none() | st.integers(-9, 0).map(str),
    st.none() | st.integers(1, 9).map(str),
    st.none() | positive_texts,
    st.sampled_from(LOSSES),
    st.sampled_from(DESIGNS),
)
told_statistics = st.builds(
    DesignedStatistic,
    st.sampled_from([name for name in STATISTICS if name != "count"]),
    with_surrogates,
    lattices | finite_tables(),
    st.none() | any_text,
) | st.builds(DesignedStatistic, st.just("count"), st.none(), lattices | finite_tables(), st.none() | any_text)
steps: st.SearchStrategy[Step] = st.builds(Where, predicates) | st.builds(Cell, keys, integers)
views = st.builds(View, tuples(steps))
rules: st.SearchStrategy[Rules] = st.recursive(
    st.just(LEAF), lambda inner: st.builds(Split, keys, tuples(inner, least=1)), max_leaves=6
)
families: st.SearchStrategy[Splits] = (
    st.builds(Multiway, keys)
    | st.builds(Thresholds, with_surrogates, st.none() | any_text, st.none() | any_text)
    | st.builds(Subsets, with_surrogates, tuples(st.lists(any_text, max_size=3, unique=True).map(tuple), least=1))
    | st.builds(Stay, st.integers(0, MOST_BONUS))
)
mechanisms = st.sampled_from(MECHANISMS)
calibrations = st.sampled_from(CALIBRATIONS)
questions: st.SearchStrategy[Question] = (
    st.just(Histogram(()))
    | st.builds(Histogram, tuples(keys, least=1))
    | st.builds(Moments, tuples(any_text, least=1, most=2))
    | st.builds(Total, any_text)
    | st.builds(Quantile, any_text, st.sampled_from([0, 1]), st.sampled_from([1]))
    | st.builds(Quantile, any_text, st.just(1), st.integers(2, 1000))
    | st.builds(ChooseLabel, keys, mechanisms, calibrations)
    | st.builds(ChooseSplit, tuples(tuples(families)), st.sampled_from(SPLIT_SCORES), mechanisms, calibrations)
    | st.builds(ChooseModel, tuples(predictions, least=1), mechanisms, calibrations)
    | offset_sums()
    | private_trees
    | told_statistics
    | vector_sums()
)
queries = st.builds(Query, views, rules, questions, tuples(epsilons))
nodes: st.SearchStrategy[Node] = st.recursive(
    st.builds(Node, tuples(integers), tuples(integers)),
    lambda inner: st.builds(Node, tuples(integers), tuples(integers), st.none() | column_keys, tuples(inner, most=2)),
    max_leaves=5,
)
heads = st.builds(Head, integers, any_text)
some_epsilons = st.integers(1, LARGEST * UNITS).map(Epsilon)
positive_scales = st.fractions(min_value=Fraction(1, 10**9), max_value=10**12, max_denominator=10**9).map(str)
laplaces = st.builds(DiscreteLaplace, positive_scales)
staircases = st.builds(
    lambda lengths, epsilon: BoxStaircase(tuple(lengths), tuple(length // 2 for length in lengths), epsilon, 0),
    st.lists(st.integers(1, 2**40), min_size=1, max_size=3),
    some_epsilons,
)
losses = st.builds(ChoiceLoss, st.integers(1, 2**30), positive_scales, some_epsilons)
comparisons = st.builds(NoisyComparisons, laplaces, st.integers(0, 10**6))
laws = st.one_of(laplaces, staircases, losses, comparisons, st.builds(FiniteLaw, finite_tables()))
each_law = tuples(tuples(laws, least=1), most=2)
answers = st.builds(Answer, tuples(st.none() | tuples(integers)), each_law, tuples(epsilons))
quotes = st.builds(Quote, epsilons, epsilons, st.booleans(), st.booleans(), each_law, tuples(epsilons))
replies = st.builds(Reply, answers, epsilons, heads)
previews = st.builds(Preview, epsilons, epsilons, st.booleans(), st.booleans(), any_text)
allotments = st.builds(Allotment, any_text, epsilons, epsilons, st.booleans())
spendings = st.builds(Spending, any_text, any_text, epsilons, any_text, st.booleans())
statements = st.builds(
    Statement,
    any_text,
    any_text,
    any_text,
    any_text,
    any_text,
    any_text,
    st.booleans(),
    epsilons,
    st.none() | epsilons,
    tuples(allotments, least=1),
    tuples(spendings),
)

# What an executor sends or receives, and fitted trees as they are saved, by the class it is read as.
BY_CLASS: dict[type, st.SearchStrategy] = {
    Predicate: predicates,
    Key: keys,
    ScoreTree: score_trees(2),
    Group: st.builds(Group, with_surrogates, tuples(with_surrogates)),
    Step: steps,
    View: views,
    Rules: rules,
    Splits: families,
    Question: questions,
    CutRule: cut_rules,
    LatticeNoise: lattices,
    FiniteTable: finite_tables(),
    Prior: priors,
    Query: queries,
    Head: heads,
    Answer: answers,
    Law: laws,
    Quote: quotes,
    Reply: replies,
    Preview: previews,
    Allotment: allotments,
    Spending: spendings,
    Statement: statements,
    Node: nodes,
    Trees: st.builds(Trees, tuples(any_text), tuples(nodes)),
}
