"""A released table: groups of generalised records with noisy counts, and what follows from them without further cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.public_random import PublicGenerator, public_generator
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.kind import MISSING, OWN, Attribute
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.registry import values_of
from dpmine.facts.schema import Schema
from dpmine.models.cuts import CutValue
from dpmine.noise.laws import DiscreteLaplace
from dpmine.noise.phantoms import phantoms
from dpmine.noise.spread import deviation, excess, half_width, of_counts

Columns = dict[str, list[Any]]
MOST_ROWS_WRITTEN = 20_000_000
Weights = NDArray[np.float64]


@dataclass(frozen=True)
class GroupCounting:
    """How a release counted its groups; public numbers.

    epsilon   for each count, along one row
    at_least  the smallest noisy count that is shown; None where all are
    possible  how many counts there are, shown or not
    adjusted  whether the noisy counts were changed afterwards to add up
    """

    epsilon: Epsilon
    at_least: int | None
    possible: int
    adjusted: bool = False

    @property
    def law(self) -> DiscreteLaplace:
        """Of the noise in a count."""
        return of_counts(self.epsilon)

    @property
    def scale(self) -> float:
        return float(self.law.fraction)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a count."""
        return deviation(self.law)

    @property
    def half_width(self) -> int:
        """A count is off by at most this much in 95 % of the cases."""
        return half_width(self.law, 0.95)

    @property
    def phantoms(self) -> float:
        """How many counts would be shown by noise alone, were all of them empty: a bound, as some are not."""
        return 0 if self.at_least is None else phantoms(self.possible, self.law, self.at_least)

    @property
    def phantom_records(self) -> float:
        """How many records those would have: noise that reaches the threshold exceeds it, too."""
        return self.phantoms * ((self.at_least or 0) + excess(self.law))


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTable:
    """Groups of records that agree on every generalised value, with the noisy number of records of each class.

    values    for each attribute its generalised values
    groups    for each group the number of its value of each attribute, in the order of `values`
    counts    for each group the noisy number of records of each class
    weights   for each attribute how frequent its shown codes are, by noisy counts; those left out are taken as evenly
              distributed
    counting  how the groups were counted
    notes     what else a reader must know
    planned_rows  the noisy number of rows that the budget plan follows from, where it does
    """

    schema: Schema
    values: dict[str, tuple[CutValue, ...]]
    groups: NDArray[np.int64]
    counts: NDArray[np.int64]
    weights: Mapping[str, Weights] = field(default_factory=dict)
    counting: GroupCounting | None = None
    notes: tuple[str, ...] = ()
    planned_rows: int | None = None

    def __len__(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    @property
    def rows_written(self) -> int:
        """How many of the records `rows` and `raw_rows` have: all, up to 20 million."""
        return min(len(self), MOST_ROWS_WRITTEN)

    def __repr__(self) -> str:
        """Its values, attribute by attribute."""
        width = max(map(len, self.values), default=0)
        lines = [f"{name.ljust(width)}  {', '.join(texts)}" for name, texts in self.value_names().items()]
        return "\n".join([f"{len(self):,} records in {len(self.groups):,} groups", *lines])

    def value_names(self) -> dict[str, tuple[str, ...]]:
        """For each attribute the names of its generalised values: its cut, in readable form."""
        return {name: tuple(value.name for value in values) for name, values in self.values.items()}

    @property
    def target(self) -> str:
        return self.schema.require_class()

    def to_dict(self) -> dict[tuple[str, ...], dict[str, int]]:
        """The names of each group's values, and its noisy count of each class."""
        names = [[value.name for value in values] for values in self.values.values()]
        classes = self.schema.class_labels
        return {
            tuple(known[place] for known, place in zip(names, group, strict=True)): dict(zip(classes, counts, strict=True))
            for group, counts in zip(self.groups.tolist(), self.counts.tolist(), strict=True)
        }

    def rows(self) -> Columns:
        """The table as generalised records, each group as often as its counts say: a dict of columns."""
        group, label = self._repeated()
        columns: Columns = {}
        for place, (name, values) in enumerate(self.values.items()):
            names = np.array([value.name for value in values], dtype=object)
            columns[name] = names[self.groups[group, place]].tolist()
        return self._with_class(columns, label)

    def generalised_schema(self) -> Schema:
        """The public facts about `rows()`: every attribute has its generalised values as categories."""
        attributes: list[Attribute] = []
        for attribute in self.schema.attributes:
            if attribute.name in self.values:
                attributes.append(_generalised(attribute.name, [value.name for value in self.values[attribute.name]]))
            elif attribute.name == self.target:
                attributes.append(attribute)
        return replace(self.schema, attributes=tuple(attributes), unit=Unit())

    def raw_codes(self, seed: int | None = None) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int64]]:
        """Records in the attributes' own domains, as codes, and their class numbers.

        Within a group each attribute is drawn on its own, among the codes that its value stands for, as frequent as the
        released weights say, or evenly; never a gap that the schema drops. Only released numbers are used, so it costs
        nothing, whatever the seed.
        """
        random = public_generator(seed)
        group, label = self._repeated()
        order = random.permutation(len(group))
        group, label = group[order], label[order]
        codes = {}
        for place, (name, values) in enumerate(self.values.items()):
            chances = [self.chances(name, value) for value in values]
            codes[name] = _drawn(values, chances, self.groups[group, place], random)
        return codes, label

    def raw_rows(self, seed: int | None = None) -> Columns:
        """Records in the attributes' own domains, ready for any learner: a dict of columns.

        A number is the middle of its cell of the grid; a gap is None, which files leave empty.
        """
        codes, label = self.raw_codes(seed)
        columns = {name: values_of(self.schema.single(name))[codes[name]].tolist() for name in codes}
        return self._with_class(columns, label)

    def chances(self, name: str, value: CutValue) -> Weights:
        """How likely each code of a generalised value is to be drawn."""
        attribute, codes = self.schema.single(name), np.array(value.codes)
        shown = codes != (attribute.size if attribute.hidden_code is None else attribute.hidden_code)
        weights = shown.astype(np.float64)
        if name in self.weights:
            weights[shown] = np.maximum(self.weights[name][codes[shown]], 0)
        return np.asarray(weights / weights.sum() if weights.sum() > 0 else shown / shown.sum())

    def _repeated(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The group and the class of each record; of more than can be written, so many as stand for all in proportion."""
        classes = len(self.schema.class_labels)
        ends = np.cumsum(self.counts.ravel())
        if len(self) > self.rows_written:
            ends = np.floor(ends / ends[-1] * self.rows_written).astype(np.int64)
        cell = np.repeat(np.arange(self.counts.size), np.diff(ends, prepend=0))
        return cell // classes, cell % classes

    def _with_class(self, columns: Columns, label: NDArray[np.int64]) -> Columns:
        """The columns in the order of the schema, the class among them."""
        columns[self.target] = np.array(self.schema.class_labels, dtype=object)[label].tolist()
        order = [attribute.name for attribute in self.schema.attributes if attribute.name in columns]
        return {name: columns[name] for name in order}


def _drawn(
    values: Sequence[CutValue], chances: Sequence[Weights], value: NDArray[np.int64], random: PublicGenerator
) -> NDArray[np.int64]:
    """For each record a code under its value, by the chances of these."""
    found = np.zeros(len(value), dtype=np.int64)
    order = np.argsort(value, kind="stable")
    bounds = np.searchsorted(value[order], np.arange(len(values) + 1))
    for number in np.unique(value).tolist():
        places = order[bounds[number] : bounds[number + 1]]
        codes = np.array(values[number].codes)
        found[places] = codes[random.choice(len(codes), size=len(places), p=chances[number])]
    return found


def _generalised(name: str, values: Sequence[str]) -> Nominal:
    """An attribute whose categories are generalised values; that of gaps alone, which comes last, stays one of gaps."""
    if values[-1] == MISSING:
        return Nominal(name, tuple(values[:-1]), missing=OWN)
    return Nominal(name, tuple(values), values[0], missing=values[0])
