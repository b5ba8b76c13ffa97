"""From what users write to questions: columns instead of keys, a list of columns instead of families of splits."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import to_text
from dpmine.base.wire import DEEPEST
from dpmine.codes.domain import MOST_ROWS
from dpmine.codes.vector_sums import BALLS, lengths_of
from dpmine.design.balls import best_ball
from dpmine.design.priors import Named
from dpmine.design.statistic_noise import Design, design
from dpmine.facts.schema import Schema
from dpmine.language.candidates import every_category
from dpmine.language.columns import Column, key_of
from dpmine.language.empty_predicates import refuse_empty
from dpmine.language.keys import Key
from dpmine.language.predicates import Predicate
from dpmine.language.queries import Query, Question
from dpmine.language.splits import Multiway, Splits, Thresholds
from dpmine.language.views import LEAF, Leaf, Rules, Split, View
from dpmine.noise.spread import of_counts
from dpmine.noise.thresholds import threshold_for
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_model import ChooseModel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.designed_statistic import DesignedStatistic
from dpmine.questions.histogram import Histogram
from dpmine.questions.moments import Moments
from dpmine.questions.quantile import Quantile
from dpmine.questions.sparse_histogram import SparseHistogram, combinations_of
from dpmine.questions.total import Total
from dpmine.questions.vector_sums import VectorSums, value_grids
from dpmine.results.reading import reading_of

Amount = Epsilon | str | int | float | Decimal
Amounts = Amount | Sequence[Amount]
"""One epsilon for all cells, or one for each."""
ColumnName = str | Column
Keyed = ColumnName | Key | Predicate
SplitScore = Literal["max", "gini", "infogain", "mixed", "gain", "gini-gain", "infogain-per-row"]
Candidates = Keyed | Sequence[Keyed | Splits]
LOWEST, MEDIAN, HIGHEST = "0.005", "0.5", "0.995"


def query_of(schema: Schema, view: View, rules: Rules, question: Question, epsilon: Amounts) -> Query:
    """The query; refused where nobody would want to pay for it. Choices by the class are about the rows that have one."""
    if isinstance(epsilon, (list, tuple)):
        amounts = tuple(Epsilon.parse_or_zero(amount) for amount in epsilon)
        if not amounts:
            raise RequestError("Give one epsilon, or one for each cell.")
    else:
        amounts = (Epsilon.parse(epsilon),)  # type: ignore[arg-type]
    if not isinstance(question, Question):
        raise RequestError(f"A question is a value such as Histogram or Quantile. Got {type(question).__name__} instead.")
    reading_of(question)  # whoever could not read the answer is told before it is paid
    about_class = isinstance(question, (ChooseSplit, ChooseModel))
    query = Query(view.with_class(schema) if about_class else view, rules, question, amounts)
    try:
        refuse_empty(query, schema)
    except RecursionError:
        raise RequestError(f"The request is nested deeper than {DEEPEST} values, or there is too little stack.") from None
    return query


def name_of(column: ColumnName) -> str:
    """What a column is called, where one is asked about."""
    if isinstance(column, Column):
        return column.name
    if not isinstance(column, str):
        raise RequestError(f"Name one column, such as 'age'. Got {type(column).__name__} instead.")
    return column


def rules_of(rules: Rules | Keyed, schema: Schema) -> Rules:
    """A rule tree, or the one that a single key makes."""
    if not isinstance(rules, Rules):
        key = key_of(rules)
        return Split(key, (LEAF,) * len(key.labels(schema)))
    waiting, seen = [rules], {id(rules)}
    while waiting:
        here: Any = waiting.pop()
        if isinstance(here, Split):
            if not isinstance(here.key, Key) or not isinstance(here.children, tuple):
                found = f"{type(here.key).__name__} and {type(here.children).__name__}"
                raise RequestError(f"dm.Split takes a key, such as dm.parse_key('ward'), and a tuple of rules. Got {found}.")
            waiting += [child for child in here.children if id(child) not in seen]
            seen.update(map(id, here.children))
        elif not isinstance(here, Leaf):
            raise RequestError(f"Rules are dm.Split and dm.Leaf. Got {type(here).__name__} among them.")
    return rules


def total(column: ColumnName) -> Total:
    return Total(name_of(column))


def mean(column: ColumnName) -> Moments:
    return Moments((name_of(column),))


def variance(column: ColumnName) -> Moments:
    return Moments((name_of(column),) * 2)


def covariance(first: ColumnName, second: ColumnName) -> Moments:
    names = name_of(first), name_of(second)
    if names[0] == names[1]:
        raise RequestError(f"A covariance is of two columns. Ask for the variance of {names[0]!r}.")
    return Moments(names)


def histogram(by: Sequence[Keyed]) -> Histogram:
    if not by:
        raise RequestError("A histogram needs at least one key.")
    return Histogram(tuple(key_of(item) for item in by))


def sparse_histogram(schema: Schema, by: Sequence[Keyed], epsilon: Amount, at_least: int | None) -> SparseHistogram:
    """By default with the smallest threshold that lets about 1,000 combinations without rows through by noise alone."""
    keys = tuple(key_of(item) for item in by)
    if at_least is not None:
        return SparseHistogram(keys, at_least)
    threshold = threshold_for(combinations_of(SparseHistogram(keys, 1), schema), of_counts(Epsilon.parse(epsilon)))
    if threshold > MOST_ROWS:
        raise RequestError("Epsilon is too small for so many combinations: no count would reach the threshold.")
    return SparseHistogram(keys, threshold)


def quantile(column: ColumnName, order: float | str | Decimal) -> Quantile:
    try:
        fraction = Fraction(Decimal(str(order)))
    except (InvalidOperation, ValueError, OverflowError):
        fraction = Fraction(-1)
    if not 0 <= fraction <= 1 or 1000 % fraction.denominator:
        raise RequestError(f"A quantile's order is between 0 and 1, with at most 3 decimals. Got {order!r} instead.")
    return Quantile(name_of(column), fraction.numerator, fraction.denominator)


def designed(
    schema: Schema, statistic: str, column: ColumnName | None, epsilon: Amount, named: Named
) -> tuple[Design, DesignedStatistic]:
    """A statistic through the noise that was asked for, with what is to be said of that noise."""
    name = None if column is None else name_of(column)
    made = design(schema, statistic, name, epsilon=Epsilon.parse(epsilon), mechanism=named)
    return made, DesignedStatistic(statistic, name, made.noise, to_text(made.stated))


def vector_sums(
    schema: Schema, columns: Sequence[ColumnName], epsilon: Amount, ball: str | None, *, means: bool
) -> VectorSums:
    """With the ball of the smaller expected error where none is named."""
    if isinstance(columns, (str, Column)) or not all(isinstance(name, (str, Column)) for name in columns):
        raise RequestError(f"Name the columns as a list, such as ['age', 'weight']. Got {columns!r:.60}.")
    if ball is not None and ball not in BALLS:
        raise RequestError(f"The ball must be one of {', '.join(BALLS)}. Got {ball!r:.60}.")
    cross = VectorSums(tuple(map(name_of, columns)), means, means, "l1", ())
    lengths = lengths_of(value_grids(schema, cross.attributes, centred=means), with_count=means)
    return VectorSums(cross.attributes, means, means, *best_ball(lengths, Epsilon.parse(epsilon), ball))


def choice(
    schema: Schema, among: Sequence[Candidates], score: str, mechanism: str | None, calibration: str
) -> ChooseLabel | ChooseSplit:
    """A choice with one entry of candidates for all cells, or one for each."""
    if score == "count":
        if len(among) != 1 or isinstance(among[0], (list, tuple)):
            raise RequestError("With score 'count', name one key whose labels compete.")
        key: Any = among[0]
        return ChooseLabel(key_of(key), mechanism or "permute-and-flip", calibration)
    candidates = []
    for cell in among:
        listed: Any = cell if isinstance(cell, (list, tuple)) else [cell]
        candidates.append(tuple(splits_of(item, schema) for item in listed))
    return ChooseSplit(tuple(candidates), score, mechanism or "exponential", calibration)


def splits_of(item: Keyed | Splits, schema: Schema) -> Splits:
    """What a user may name where candidate splits are wanted: an ordered column means all its thresholds.

    A column of categories means the split into all of them.
    """
    if isinstance(item, Splits):
        return item
    if isinstance(item, (str, Column)):
        name = item if isinstance(item, str) else item.name
        return Thresholds(name) if schema.single(name).ordered else Multiway(every_category(schema, name))
    return Multiway(key_of(item))
