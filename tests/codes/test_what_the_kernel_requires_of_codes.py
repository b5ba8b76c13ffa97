"""Queries on codes that no honest desk makes: each is refused before any charge, by the one check that it breaks.

For every `require` of `dpmine.codes` there is a query that breaks it and nothing else: the kernel refuses it, and with that
one check left out (the planted mistake) it is let through. So no check is missing from this list, and none is idle.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.noise import Silent

import dpmine.codes
from dpmine.base.epsilon import LARGEST, UNITS
from dpmine.base.errors import DpmineError, RequestError
from dpmine.base.wire import to_wire
from dpmine.codes import private_tree, rows
from dpmine.codes.choices import MOST_COPIES
from dpmine.codes.choose_label import ResolvedChooseLabel
from dpmine.codes.choose_model import ResolvedChooseModel
from dpmine.codes.choose_split import MOST_CANDIDATES, MOST_FAMILIES, ResolvedChooseSplit
from dpmine.codes.designed_statistic import ResolvedDesignedStatistic
from dpmine.codes.domain import MOST_ROWS
from dpmine.codes.histogram import ResolvedHistogram
from dpmine.codes.moments import ResolvedMoments
from dpmine.codes.offset_sums import LARGEST_RADIUS, ResolvedOffsetSums
from dpmine.codes.private_tree import DEEPEST_PRIVATE_TREE, LARGEST_CUT_SCORE, ResolvedCutRule, ResolvedPrivateTree
from dpmine.codes.quantile import FINEST_ORDER, ResolvedQuantile
from dpmine.codes.queries import MOST_COUNTS, MOST_NUMBERS, MOST_PRICES, MOST_STEPS, ResolvedQuery, ResolvedQuestion
from dpmine.codes.rows import (
    LARGEST_DISTANCE,
    LARGEST_POSITION,
    LARGEST_SCORE,
    MOST_CENTRES,
    MOST_CLASSES,
    MOST_DIMENSIONS,
    MOST_LABELS,
    MOST_PARTS,
    MOST_TREES,
    BandedDistance,
    BandedSum,
    Branch,
    Cells,
    Cyclic,
    Enter,
    HashedPart,
    Holds,
    InCodes,
    InValues,
    Keep,
    LargestSum,
    LeafScores,
    NearestCentre,
    Negation,
    Recode,
    RecodeValues,
    Rounded,
    RowRules,
    RowStep,
    RowTest,
    ScoreBranch,
)
from dpmine.codes.sparse_histogram import ResolvedSparseHistogram
from dpmine.codes.splits import (
    MOST_BONUS,
    ResolvedMultiway,
    ResolvedSpecialise,
    ResolvedSplits,
    ResolvedStay,
    ResolvedSubsets,
    ResolvedThresholds,
)
from dpmine.codes.total import ResolvedTotal
from dpmine.codes.vector_sums import ResolvedVectorSums
from dpmine.engines.registry import ENGINES, open_table
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.kernel.door import Kernel
from dpmine.noise.finite_tables import LatticeNoise
from dpmine.owner.ledgers import book_at

WIDE = 4_000  # values from 0.001 on, a thousand apart: in units of a thousandth their sums leave 64 bits
FINE = 2**20  # steps, whose squares leave 64 bits

SCHEMA = Schema(
    "world",
    (
        Nominal("c", ("a", "b"), "a", missing="a"),
        Nominal("one", ("x",), "x", missing="x"),
        Numeric("n", Decimal(0), Decimal(9), Decimal(1), Decimal(0)),
        Numeric("w", Decimal("0.001"), Decimal("3999000.001"), Decimal(1000), Decimal(1), Decimal(1000)),
        Numeric("f", Decimal(0), Decimal(FINE), Decimal(2**10), Decimal(0), Decimal(1)),
        Numeric("bit", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
        Numeric("gap", Decimal(0), Decimal(9), Decimal(3), resolution=Decimal(1)),
        Nominal("blank", ("s", "t")),
        ItemList("l", ("p", "q"), 3),
    ),
    rows_at_most=1000,
    class_attribute="c",
)
ROWS = {
    "c": ["a", "b", "a"],
    "one": ["x", "x", "x"],
    "n": [0, 9, 4],
    "w": [0.001, 1000.001, 1.0],
    "f": [0, FINE, 5],
    "bit": [0, 0, 0],
    "gap": [4, None, 8],
    "blank": ["s", None, "t"],
    "l": ["p", "p|q", ""],
}

C, N = Recode("c", (), 2), Recode("n", (), 10)
IN, IW, IF, IG = Rounded("n", 9, 10), Rounded("w", WIDE - 1, WIDE), Rounded("f", FINE, FINE + 1), Rounded("gap", 9, 11)
HALF, BIT = Rounded("n", 4, 5), Rounded("bit", 1, 2)
NEAR = NearestCentre((IN,), (1,), ((0,), (9,)), 2)
LEAF = LeafScores((0, 1))
COUNT = ResolvedHistogram(())
GEOMETRIC = LatticeNoise("1", "geometric", 0)
RULE = ResolvedCutRule("n", 10, (0, 5), (1, 1, 1), (0, 1, 0), 1)


def labels(size: int) -> Recode:
    """A key of that many labels, of which every row has the first."""
    return Recode("n", ((0, 0),), size)


@dataclass(frozen=True)
class Wrong:
    """A query that one check alone refuses."""

    question: ResolvedQuestion = COUNT
    steps: tuple[RowStep, ...] = ()
    rules: RowRules | None = None
    units: tuple[int, ...] = (UNITS,)
    schema: str = SCHEMA.fingerprint

    @property
    def query(self) -> ResolvedQuery:
        return ResolvedQuery(Cells(self.steps, self.rules), self.question, self.units, self.schema)


def by(*keys: Any) -> Wrong:
    return Wrong(ResolvedHistogram(keys))


def choosing(*families: ResolvedSplits) -> Wrong:
    return Wrong(ResolvedChooseSplit(C, (families,), "gini", 0, "exponential", "monotone"))


SPLIT = ResolvedChooseSplit(C, ((ResolvedMultiway(N),),), "gini", 0, "exponential", "monotone")
TREE = ResolvedPrivateTree((RULE,), 3)
SUMS = ResolvedVectorSums((IN,), False, False, "l-infinity", (0,))
OFFSETS = ResolvedOffsetSums(NEAR, ((0,), (9,)), (1, 1))
TWO_CELLS = Branch(C, (None, None))


def rule(**other: Any) -> Wrong:
    return Wrong(ResolvedPrivateTree((replace(RULE, **other),), 3))


WRONG: dict[tuple[str, str], Wrong] = {
    ("ResolvedQuery.check", "it is about another schema"): Wrong(schema="0" * 64),
    ("ResolvedQuery.check", "each cell has a price"): Wrong(units=(UNITS, UNITS)),
    ("ResolvedQuery.check", "prices are 0 or more, and one of them is"): Wrong(rules=TWO_CELLS, units=(UNITS, -1)),
    ("ResolvedQuery.check", "few prices differ"): Wrong(
        rules=Branch(labels(MOST_PRICES + 1), (None,) * (MOST_PRICES + 1)), units=tuple(range(1, MOST_PRICES + 2))
    ),
    ("ResolvedQuery.check", "a view has few steps"): Wrong(steps=(Keep(InCodes("n", ((0, 9),))),) * (MOST_STEPS + 1)),
    ("ResolvedQuery.check", "at most {MOST_COUNTS} counts fit one query"): Wrong(
        ResolvedChooseLabel(labels(MOST_COUNTS + 1), MOST_COUNTS + 1, "exponential", "monotone")
    ),
    ("one_cell", "this question is asked of a whole view"): Wrong(SUMS, rules=TWO_CELLS, units=(UNITS, UNITS)),
    ("Domain.column", "no such attribute is here: {name:.60}"): by(Recode("l", (), 2)),
    ("Domain.values", "values are of an ordered attribute"): Wrong(steps=(Keep(InValues("blank", ((0, 1),))),)),
    ("InCodes.check", "ranges of codes rise"): Wrong(steps=(Keep(InCodes("n", ((3, 5), (5, 7)))),)),
    ("InValues.check", "ranges of values rise"): Wrong(steps=(Keep(InValues("gap", ((10, 12),))),)),
    ("Holds.check", "items are codes"): Wrong(steps=(Keep(Holds("l", (2,))),)),
    ("_check_runs", "labels are small"): Wrong(steps=(Enter(labels(MOST_LABELS + 1), 0),)),
    ("Recode.check", "an attribute has as many labels as codes"): by(Recode("n", (), 9)),
    ("_check_runs", "runs rise from 0 on"): by(Recode("n", ((0, 0), (0, 1)), 2)),
    ("_check_runs", "a run's label is below the key's size"): by(RecodeValues("n", ((0, 0), (5, 2)), 2)),
    ("Rounded.check", "rounding is to values or coarser"): by(Rounded("n", 10, 11)),
    ("Rounded.check", "rounding has a label for each step, and one for a gap"): by(Rounded("gap", 9, 10)),
    ("Cyclic.check", "stretches are of an ordered attribute"): by(Cyclic("c", 0, 1, 7, 7)),
    ("Cyclic.check", "a round has stretches, and each of them values"): by(Cyclic("n", 0, -1, -7, -7)),
    ("Cyclic.check", "a round is small, and begun at most once"): by(Cyclic("n", 7, 1, 7, 7)),
    ("Cyclic.check", "a round has a label for each stretch, and one for a gap"): by(Cyclic("n", 0, 1, 7, 8)),
    ("Tested.check", "a test has two labels"): by(rows.Tested(InCodes("n", ((0, 5),)), 3)),
    ("HashedPart.check", "every part has a weight"): by(HashedPart("salt", (1, 1), 3)),
    ("HashedPart.check", "weights are small"): by(HashedPart("salt", (MOST_PARTS, 1), 2)),
    ("HashedPart.check", "a salt is text"): by(HashedPart("\ud800", (1, 1), 2)),
    ("LeafScores.check", "scores are bounded"): by(LargestSum((LeafScores((LARGEST_SCORE + 1, 0)),), 2)),
    ("ScoreBranch.check", "a tree splits by codes or values of one attribute"): by(
        LargestSum((ScoreBranch(rows.Tested(InCodes("n", ((0, 5),))), (LEAF, LEAF)),), 2)
    ),
    ("ScoreBranch.check", "a tree has a child for every label"): by(LargestSum((ScoreBranch(C, (LEAF,) * 3),), 2)),
    ("check_trees", "a model has some trees and classes"): by(
        LargestSum((LeafScores((0,) * (MOST_CLASSES + 1)),), MOST_CLASSES + 1)
    ),
    ("check_trees", "every leaf has a score for each class"): by(
        LargestSum((ScoreBranch(C, (LEAF, LeafScores((0, 1, 2)))),), 2)
    ),
    ("BandedSum.check", "bands have rising edges"): by(BandedSum((LeafScores((0,)),), (3, 3), 3)),
    ("NearestCentre.check", "centres lie in different attributes"): by(NearestCentre((IN, HALF), (1, 1), ((0, 0),), 1)),
    ("NearestCentre.check", "there are centres"): by(NearestCentre((IN,), (1,), ((0,),), 2)),
    ("NearestCentre.check", "positions are bounded"): by(NearestCentre((IN,), (LARGEST_POSITION // 9 + 1,), ((0,),), 1)),
    ("NearestCentre.check", "so are centres"): by(NearestCentre((IN,), (1,), ((-1,),), 1)),
    ("BandedDistance.check", "bands have rising edges"): by(BandedDistance(NEAR, (3, 3), 3)),
    ("Enter.check", "a cell is one of its key's"): Wrong(steps=(Enter(C, 2),)),
    ("Branch.check", "rules have a child for every label"): Wrong(rules=Branch(C, (None,) * 3), units=(UNITS,) * 3),
    ("ResolvedHistogram.check", "one answer holds them"): by(labels(MOST_NUMBERS + 1)),
    ("ResolvedSparseHistogram.check", "a threshold is a number of rows"): Wrong(ResolvedSparseHistogram((C,), 0)),
    ("ResolvedSparseHistogram.check", "there are few enough combinations to number them"): Wrong(
        ResolvedSparseHistogram((labels(MOST_LABELS), labels(MOST_LABELS)), 9)
    ),
    ("ResolvedMoments.check", "moments are of one attribute, of its square, or of two"): Wrong(
        ResolvedMoments((IN, IG, BIT))
    ),
    ("ResolvedMoments.check", "a square is of equal amounts"): Wrong(ResolvedMoments((IN, HALF))),
    ("ResolvedMoments.check", "exact sums fit 64 bits"): Wrong(ResolvedMoments((IF, IF))),
    ("ResolvedTotal.check", "a sum is of values as they are"): Wrong(ResolvedTotal(HALF)),
    ("ResolvedTotal.check", "exact sums fit 64 bits"): Wrong(ResolvedTotal(IW)),
    ("ResolvedVectorSums.check", "sums are of different attributes"): Wrong(replace(SUMS, amounts=(IN, IN), inner=(0, 0))),
    ("ResolvedVectorSums.check", "sums are of values as they are"): Wrong(replace(SUMS, amounts=(HALF,))),
    ("ResolvedVectorSums.check", "there is no such ball"): Wrong(replace(SUMS, ball="l2", inner=())),
    ("ResolvedVectorSums.check", "a staircase over boxes has a width for each number"): Wrong(
        replace(SUMS, with_count=True)
    ),
    ("ResolvedVectorSums.check", "exact sums fit 64 bits"): Wrong(replace(SUMS, amounts=(IW,))),
    ("ResolvedOffsetSums.check", "every cluster has an origin and a radius"): Wrong(replace(OFFSETS, radii=(1,))),
    ("ResolvedOffsetSums.check", "an origin has a position in every attribute"): Wrong(
        replace(OFFSETS, origins=((0,), (9, 9)))
    ),
    ("ResolvedOffsetSums.check", "origins are positions"): Wrong(replace(OFFSETS, origins=((0,), (-LARGEST_POSITION - 1,)))),
    ("ResolvedOffsetSums.check", "radii are at least 1"): Wrong(replace(OFFSETS, radii=(1, 0))),
    ("ResolvedQuantile.check", "a quantile is chosen among few points"): Wrong(ResolvedQuantile(IF, 1, 2)),
    ("ResolvedQuantile.check", "an order is a fraction from 0 to 1"): Wrong(ResolvedQuantile(IN, 2, 1)),
    ("ResolvedChooseLabel.check", "there are labels to choose from"): Wrong(
        ResolvedChooseLabel(C, 3, "exponential", "monotone")
    ),
    ("check_choice", "there is no such way to choose"): Wrong(ResolvedChooseLabel(C, 2, "exponential", "none")),
    ("check_choice", "permute-and-flip takes few candidates"): Wrong(
        ResolvedChooseLabel(labels(MOST_COPIES + 1), MOST_COPIES + 1, "permute-and-flip", "monotone")
    ),
    ("ResolvedChooseModel.check", "there are models to choose from"): Wrong(
        ResolvedChooseModel(C, (), "exponential", "monotone")
    ),
    ("ResolvedChooseModel.check", "models predict the target's labels, but perhaps for the last, of gaps"): Wrong(
        ResolvedChooseModel(C, (C, labels(3)), "exponential", "monotone")
    ),
    ("ResolvedChooseSplit.check", "there is no such score"): Wrong(replace(SPLIT, score="best")),
    ("ResolvedChooseSplit.check", "the bound on rows is the table's"): Wrong(
        replace(SPLIT, score="infogain", rows_at_most=10)
    ),
    ("ResolvedChooseSplit.check", "each cell has splits to choose from"): Wrong(replace(SPLIT, families=((),))),
    ("ResolvedChooseSplit.check", "families are few"): choosing(*[ResolvedMultiway(N)] * (MOST_FAMILIES + 1)),
    ("ResolvedChooseSplit.check", "candidates are few"): choosing(
        ResolvedThresholds(labels(MOST_CANDIDATES + 2), 0, MOST_CANDIDATES + 2, 1, MOST_CANDIDATES + 1)
    ),
    ("ResolvedThresholds.check", "thresholds lie between codes"): choosing(ResolvedThresholds(N, 0, 10, 1, 10)),
    ("ResolvedSubsets.check", "subsets are of the key's codes"): choosing(ResolvedSubsets(N, ((0, 10),))),
    ("ResolvedSpecialise.check", "each child holds codes"): choosing(ResolvedSpecialise(N, (((0, 1),), ()))),
    ("ResolvedSpecialise.check", "no two children share a code"): choosing(ResolvedSpecialise(N, (((0, 2),), ((1, 3),)))),
    ("ResolvedSpecialise.check", "a child's codes are the key's"): choosing(ResolvedSpecialise(N, (((0, 11),),))),
    ("ResolvedStay.check", "a bonus is a number of rows"): choosing(ResolvedMultiway(N), ResolvedStay(N, -1)),
    ("ResolvedDesignedStatistic.check", "there is such a statistic"): Wrong(
        ResolvedDesignedStatistic("mode", IN, GEOMETRIC)
    ),
    ("ResolvedDesignedStatistic.check", "values are as they are"): Wrong(
        ResolvedDesignedStatistic("median", HALF, GEOMETRIC)
    ),
    ("ResolvedDesignedStatistic.check", "exact values fit 64 bits"): Wrong(
        ResolvedDesignedStatistic("sum", IW, LatticeNoise("1/1000", "geometric", 0))
    ),
    ("ResolvedCutRule.check", "rules know how many codes there are"): rule(size=9),
    ("ResolvedCutRule.check", "bins begin at rising codes, from 0 on"): rule(edges=(1, 5)),
    ("ResolvedCutRule.check", "each run of bins has a score and a cut"): rule(scores=(1, 1)),
    ("ResolvedCutRule.check", "a run is cut inside"): rule(cuts=(0, 2, 0)),
    ("ResolvedCutRule.check", "scores are bounded"): rule(inside=LARGEST_CUT_SCORE + 1),
    ("ResolvedPrivateTree.check", "a tree cuts different attributes"): Wrong(replace(TREE, rules=(RULE, RULE))),
    ("ResolvedPrivateTree.check", "a tree has some levels, and not too many"): Wrong(replace(TREE, deepest=0)),
    ("ResolvedPrivateTree.check", "rules have few bins"): Wrong(TREE),  # where a limit of 3 is set below
}
IDS = [f"{where}: {words}" for where, words in WRONG]

MORE: dict[str, Wrong] = {
    "a branch without cells": Wrong(rules=Branch(Recode("n", (), 0), ()), units=()),
    "a branch without cells inside another": Wrong(
        rules=Branch(C, (Branch(Recode("n", (), 0), ()), Branch(Recode("n", (), 0), ()))), units=()
    ),
    "all prices 0": Wrong(units=(0,)),
    "a price beyond the largest": Wrong(units=(LARGEST * UNITS + 1,)),
    "an attribute that is not there": by(Recode("nobody", (), 2)),
    "a list where one value is asked": Wrong(steps=(Keep(InCodes("l", ((0, 1),))),)),
    "one value where a list is asked": Wrong(steps=(Keep(Holds("c", (0,))),)),
    "a number of what has none": Wrong(ResolvedQuantile(Rounded("c", 1, 2), 1, 2)),
    "a range that ends beyond the codes": Wrong(steps=(Keep(InCodes("n", ((8, 11),))),)),
    "a range that begins before them": Wrong(steps=(Keep(InCodes("n", ((-1, 2),))),)),
    "values of what has none": Wrong(steps=(Keep(InValues("c", ((0, 1),))),)),
    "values that are recoded of what has none": by(RecodeValues("blank", ((0, 0),), 2)),
    "values of a list": Wrong(steps=(Keep(InValues("l", ((0, 1),))),)),
    "a range that begins before the values": Wrong(steps=(Keep(InValues("n", ((-1, 2),))),)),
    "an empty range of values": Wrong(steps=(Keep(InValues("n", ((2, 2),))),)),
    "a range beyond the values where no gap is": Wrong(steps=(Keep(InValues("n", ((9, 11),))),)),
    "values without a run": by(RecodeValues("n", (), 10)),
    "a run beyond the values": by(RecodeValues("gap", ((0, 0), (11, 1)), 2)),
    "rounding to no step": by(Rounded("n", 0, 1)),
    "a gap where none is": by(Rounded("n", 9, 11)),
    "rounding of what is no number": by(Rounded("c", 1, 2)),
    "an empty range": Wrong(steps=(Keep(InCodes("n", ((2, 2),))),)),
    "an item below 0": Wrong(steps=(Keep(Holds("l", (-1,))),)),
    "runs that leave the first code out": by(Recode("n", ((1, 0),), 2)),
    "a run beyond the codes": by(Recode("n", ((0, 0), (10, 1)), 2)),
    "a label below 0": by(Recode("n", ((0, -1),), 2)),
    "labels beyond 128 bits, which SQL has no whole numbers for": Wrong(
        steps=(Enter(Recode("n", ((0, 2**127 - 1),), 2**128), 2**127),)
    ),
    "sizes whose product takes forever": by(*[labels(10**4200)] * 100),
    "a round that begins before its first value": by(Cyclic("n", -1, 1, 7, 7)),
    "a round that is too long for 32 bits": Wrong(steps=(Enter(Cyclic("n", 0, MOST_LABELS, 2, 2), 0),)),
    "a round without stretches": by(Cyclic("n", 0, 1, 0, 0)),
    "a part of weight 0": by(HashedPart("salt", (1, 0), 2)),
    "a single part": by(HashedPart("salt", (1,), 1)),
    "too many trees": by(LargestSum((LEAF,) * (MOST_TREES + 1), 2)),
    "no tree": by(LargestSum((), 2)),
    "no class": by(LargestSum((LeafScores(()),), 0)),
    "two scores where a sum is of one": by(BandedSum((LEAF,), (3,), 2)),
    "bands without an edge": by(BandedSum((LeafScores((0,)),), (), 1)),
    "bands of another number": by(BandedSum((LeafScores((0,)),), (3,), 3)),
    "an edge beyond every score": by(BandedSum((LeafScores((0,)),), (MOST_TREES * LARGEST_SCORE + 1,), 2)),
    "a distance without an edge": by(BandedDistance(NEAR, (), 1)),
    "an edge beyond every distance": by(BandedDistance(NEAR, (LARGEST_DISTANCE + 1,), 2)),
    "an edge below 0": by(BandedDistance(NEAR, (-1,), 2)),
    "a scale beyond 64 bits where all codes are 0": by(NearestCentre((BIT, IN), (10**20, 1), ((5, 0), (0, 9)), 2)),
    "a scale beyond all doubles": Wrong(ResolvedOffsetSums(NearestCentre((BIT,), (10**310,), ((0,),), 1), ((0,),), (1,))),
    "a scale of 0": by(NearestCentre((IN,), (0,), ((0,),), 1)),
    "positions beyond their bound": by(NearestCentre((IN,), (LARGEST_POSITION,), ((0,),), 1)),
    "a centre beyond it": by(NearestCentre((IN,), (1,), ((LARGEST_POSITION + 1,),), 1)),
    "a scale too few": by(NearestCentre((IN, IG), (1,), ((0, 0),), 1)),
    "no attribute": by(NearestCentre((), (), ((),), 1)),
    "too many attributes": by(NearestCentre((IN,) * (MOST_DIMENSIONS + 1), (1,) * 33, ((0,) * (MOST_DIMENSIONS + 1),), 1)),
    "no centre": by(NearestCentre((IN,), (1,), (), 0)),
    "too many centres": by(NearestCentre((IN,), (1,), ((0,),) * (MOST_CENTRES + 1), MOST_CENTRES + 1)),
    "a cell below 0": Wrong(steps=(Enter(C, -1),)),
    "a child too few": Wrong(rules=Branch(C, (None,)), units=(UNITS,)),
    "a threshold beyond the rows": Wrong(ResolvedSparseHistogram((C,), MOST_ROWS + 1)),
    "no moment": Wrong(ResolvedMoments(())),
    "products that leave 64 bits": Wrong(ResolvedMoments((IF, IW))),
    "a square whose gap is counted once": Wrong(ResolvedMoments((IG, Rounded("gap", 9, 10)))),
    "a third power": Wrong(ResolvedMoments((IN, IN, IN))),
    "a total of what is no number": Wrong(ResolvedTotal(Rounded("blank", 1, 3))),
    "no label": Wrong(ResolvedChooseLabel(C, 0, "exponential", "monotone")),
    "a rule for what has no order": rule(attribute="blank", size=2, edges=(0,), scores=(0,), cuts=(0,)),
    "a rule that cuts gaps off": rule(attribute="gap", size=5),
    "points of many cells that do not fit together": Wrong(
        ResolvedQuantile(Rounded("f", FINE - 1, FINE), 1, 2), rules=Branch(labels(48), (None,) * 48), units=(UNITS,) * 48
    ),
    "a twentieth of too little for the number of rows": Wrong(ResolvedTotal(IG), units=(19,)),
    "that of a quantile": Wrong(ResolvedQuantile(IG, 1, 2), units=(19,)),
    "no sum": Wrong(replace(SUMS, amounts=(), inner=())),
    "widths where each number has noise of its own": Wrong(replace(SUMS, ball="l1", inner=(0,))),
    "a width as large as its length": Wrong(replace(SUMS, inner=(9,))),
    "a width below 0": Wrong(replace(SUMS, inner=(-1,))),
    "a radius beyond every offset": Wrong(replace(OFFSETS, radii=(1, LARGEST_RADIUS + 1))),
    "an order below 0": Wrong(ResolvedQuantile(IN, -1, 2)),
    "an order of nothing": Wrong(ResolvedQuantile(IN, 0, 0)),
    "an order that is too fine": Wrong(ResolvedQuantile(IN, 1, FINEST_ORDER + 1)),
    "an unknown mechanism": Wrong(ResolvedChooseLabel(C, 2, "noisy-max", "monotone")),
    "families for three cells of one": Wrong(replace(SPLIT, families=((ResolvedMultiway(N),),) * 3)),
    "a bound on rows that no score has asked for": Wrong(replace(SPLIT, rows_at_most=1000)),
    "a threshold before the first code": choosing(ResolvedThresholds(N, 0, 10, 0, 3)),
    "thresholds over codes that are not there": choosing(ResolvedThresholds(N, 0, 11, 1, 3)),
    "no threshold": choosing(ResolvedThresholds(N, 0, 10, 1, 0)),
    "a subset of no code": choosing(ResolvedSubsets(N, ((),))),
    "no subset": choosing(ResolvedSubsets(N, ())),
    "a code below 0": choosing(ResolvedSubsets(N, ((-1,),))),
    "no child": choosing(ResolvedSpecialise(N, ())),
    "a child that ends before it begins": choosing(ResolvedSpecialise(N, (((5, 2),),))),
    "a child before the first code": choosing(ResolvedSpecialise(N, (((-1, 2),),))),
    "a child that counts a code twice": choosing(ResolvedSpecialise(N, (((0, 2), (1, 3)),))),
    "a bonus beyond the rows": choosing(ResolvedMultiway(N), ResolvedStay(N, MOST_BONUS + 1)),
    "a count of an attribute": Wrong(ResolvedDesignedStatistic("count", IN, GEOMETRIC)),
    "a sum of none": Wrong(ResolvedDesignedStatistic("sum", None, GEOMETRIC)),
    "a rule that cuts before the first bin": rule(cuts=(0, 0, 0)),
    "a rule without bins": rule(edges=(), scores=(), cuts=()),
    "scores below their bound": rule(scores=(1, -LARGEST_CUT_SCORE - 1, 1)),
    "no rule": Wrong(replace(TREE, rules=())),
    "a tree that is too deep": Wrong(replace(TREE, deepest=DEEPEST_PRIVATE_TREE + 1)),
}


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(dpmine.codes.__path__, "dpmine.codes."):
        yield importlib.import_module(found.name)


def required() -> set[tuple[str, str]]:
    """Every call of `require`: the function that it stands in, and its words as they are written."""
    found = set()

    def look(node: ast.AST, inside: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            here = (*inside, child.name) if isinstance(child, ast.ClassDef | ast.FunctionDef) else inside
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "require":
                words = child.args[1]
                text = words.value if isinstance(words, ast.Constant) else ast.unparse(words)[2:-1]
                found.add((".".join(here), text))
            look(child, here)

    for module in modules():
        look(ast.parse(inspect.getsource(module)), ())
    return found


@dataclass
class World:
    """A kernel and what it charged."""

    kernel: Kernel
    engine: str

    def ask(self, query: ResolvedQuery) -> Any:
        reply = self.kernel.answer(to_wire(query), asked="", analyst="ann")
        return reply.answer.numbers

    @property
    def spent(self) -> int:
        return self.kernel.ledger.account("ann").spent


def world_of(engine: str, path: Any, schema: Schema = SCHEMA, table_rows: Any = ROWS, noise: Any = None) -> World:
    pd.DataFrame(table_rows).to_csv(path, index=False)
    table = open_table(str(path), schema, engine, None)
    ledger = book_at(None, dataset="world", cap=10**15)
    ledger.grant("ann", 10**15)
    counting = table.engine(bytes(32))
    kernel = Kernel(schema.domain, counting, ledger, version="1", encoding=table.encoding, noise=noise or Silent())
    return World(kernel, engine)


@pytest.fixture(scope="module", params=list(ENGINES))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(request.param, tmp_path_factory.mktemp("world") / "rows.csv")


def leave_out(patch: pytest.MonkeyPatch, where: str, words: str) -> None:
    """The planted mistake: one call of `require` does nothing."""
    start = words.partition("{")[0]
    require: Callable[[bool, str], None] = dpmine.codes.domain.require

    def forgetful(holds: bool, otherwise: str) -> None:
        if sys._getframe(1).f_code.co_qualname != where or not otherwise.startswith(start):
            require(holds, otherwise)

    for module in modules():
        if hasattr(module, "require"):
            patch.setattr(module, "require", forgetful)


def test_every_check_has_a_query_that_breaks_it() -> None:
    assert required() == set(WRONG)


@pytest.mark.parametrize(("where", "words"), WRONG, ids=IDS)
def test_a_query_that_breaks_one_check_is_refused_by_it_before_any_charge(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str, words: str
) -> None:
    if words == "rules have few bins":
        monkeypatch.setattr(private_tree, "MOST_COUNTS", 3)
    before = world.spent
    with pytest.raises(RequestError, match="no query on the codes of this table") as refused:
        world.ask(WRONG[where, words].query)
    assert words.partition("{")[0] in str(refused.value)
    assert world.spent == before


@pytest.mark.parametrize(("where", "words"), WRONG, ids=IDS)
def test_without_that_check_it_would_be_let_through(monkeypatch: pytest.MonkeyPatch, where: str, words: str) -> None:
    """So it is that check alone which refuses it, and one that is missing is noticed."""
    if words == "rules have few bins":
        monkeypatch.setattr(private_tree, "MOST_COUNTS", 3)
    leave_out(monkeypatch, where, words)
    WRONG[where, words].query.check(SCHEMA.domain)


@pytest.mark.parametrize("name", MORE)
def test_no_other_query_that_makes_no_sense_is_charged(world: World, name: str) -> None:
    before = world.spent
    with pytest.raises(RequestError):
        world.ask(MORE[name].query)
    assert world.spent == before


RIGHT = {
    "a split": SPLIT,
    "a tree": TREE,
    "sums": SUMS,
    "offsets": OFFSETS,
    "a designed sum": ResolvedDesignedStatistic("sum", IN, GEOMETRIC),
    "a designed median of gaps": ResolvedDesignedStatistic("median", IG, GEOMETRIC),
    "a quantile": ResolvedQuantile(IN, 1, 2),
    "a quantile of gaps": ResolvedQuantile(IG, 1, 2),
    "a quantile of rounded values": ResolvedQuantile(Rounded("f", FINE - 1, FINE), 1, 2),
    "a mean": ResolvedMoments((IF,)),
    "a variance": ResolvedMoments((HALF, HALF)),
    "a covariance": ResolvedMoments((IN, IG)),
    "a total": ResolvedTotal(IF),
    "a total of gaps": ResolvedTotal(IG),
    "a model that splits by values": ResolvedHistogram(
        (LargestSum((ScoreBranch(RecodeValues("gap", ((0, 0), (5, 1)), 2), (LEAF, LEAF)),), 2),)
    ),
    "a choice among all labels but the last": ResolvedChooseLabel(IG, 10, "exponential", "monotone"),
    "a model that never tells a gap": ResolvedChooseModel(Recode("blank", (), 3), (C,), "exponential", "monotone"),
    "a histogram by everything": ResolvedHistogram((C, NEAR, BandedDistance(NEAR, (3,), 2), LargestSum((LEAF,), 2))),
    "a histogram of rounds": ResolvedHistogram(
        (Cyclic("gap", 6, 2, 4, 5), Cyclic("n", 0, 1, MOST_NUMBERS // 10, MOST_NUMBERS // 10))
    ),
    "a histogram of values": ResolvedHistogram((IG, RecodeValues("gap", ((0, 1), (5, 0), (10, 2)), 3))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_all_of_these_were_made_from_is_answered(world: World, name: str) -> None:
    """Or the tests above would show nothing."""
    before = world.spent
    assert world.ask(Wrong(RIGHT[name]).query)[0] is not None
    assert world.spent == before + UNITS


# -- at the limits -----------------------------------------------------------------------------------------------------


def test_the_largest_labels_are_told_apart(world: World) -> None:
    """Where labels are rounded, cells of one price hold the same rows: as many answers as one likes for one price."""
    last = MOST_LABELS - 1
    key = Recode("n", ((0, last),), MOST_LABELS)
    counted = [world.ask(Wrong(steps=(Enter(key, label),)).query)[0] for label in (last, last - 1, last - 64, 0)]
    assert counted == [(3,), (0,), (0,), (0,)]


@pytest.mark.parametrize("many", [0, 1, 3])
def test_the_largest_scales_are_answered_whatever_the_rows(tmp_path: Any, many: int) -> None:
    """An error that only some rows cause tells of them."""
    near = NearestCentre((BIT, IN), (LARGEST_POSITION, 1), ((LARGEST_POSITION, 0), (0, 9)), 2)
    for engine in ENGINES:
        some = {name: values[:many] for name, values in ROWS.items()}
        world = world_of(engine, tmp_path / f"{engine}.csv", table_rows=some)
        banded = BandedDistance(near, (LARGEST_DISTANCE,), 2)
        assert world.ask(by(near).query) == ((0, many),)
        assert world.ask(by(banded).query) == ((many, 0),)
        sums = ResolvedOffsetSums(near, ((0, 0), (0, 9)), (LARGEST_RADIUS, LARGEST_RADIUS))
        assert world.ask(Wrong(sums).query) == ((0, 0, 0, sum(some["n"]) - 9 * many),)


def test_the_finest_values_are_rounded_and_summed_without_overflow_on_every_engine(tmp_path: Any) -> None:
    """2^30 steps: what is rounded goes up to 2^61 on the way."""
    most = 2**30
    schema = Schema(
        "fine", (Numeric("x", Decimal(0), Decimal(most), Decimal(2**20), resolution=Decimal(1)),), rows_at_most=10
    )
    values = [0, 1, most // 2, most - 1, most, 2 * most, None]
    rounded = [min(value or 0, most) for value in values[:-1]]
    for engine in ENGINES:
        world = world_of(engine, tmp_path / f"{engine}.csv", schema, {"x": values, "y": range(7)})
        whole, less, few = (Rounded("x", steps, steps + 2) for steps in (most, most - 1, 2**15))
        asked = {
            ResolvedTotal(whole): (sum(rounded), 6),
            ResolvedMoments((whole,)): (sum(rounded), 6 * most - sum(rounded)),
            ResolvedMoments((less,)): (sum((2 * value * (most - 1) + most) // (2 * most) for value in rounded),),
            ResolvedMoments((few, few)): (0 + 0 + 2**28 + 3 * 2**30,),
        }
        for question, wanted in asked.items():
            (numbers,) = world.ask(Wrong(question, schema=schema.fingerprint).query)
            assert numbers[: len(wanted)] == wanted
        by_halves = ResolvedHistogram((Rounded("x", 1, 3), RecodeValues("x", ((0, 0), (1, 1), (most + 1, 2)), 3)))
        (counted,) = world.ask(Wrong(by_halves, schema=schema.fingerprint).query)
        assert counted == (1, 1, 0, 0, 4, 0, 0, 0, 1)


def test_the_longest_answer_can_be_read_back_from_the_ledger(tmp_path: Any) -> None:
    """Asked again it is free, and the same."""
    world = world_of("memory", tmp_path / "rows.csv")
    query = by(labels(MOST_NUMBERS)).query
    first, spent = world.ask(query), world.spent
    assert world.ask(query) == first
    assert world.spent == spent
    assert np.count_nonzero(first[0]) == 1


@pytest.mark.parametrize("nested", [40, 90])
def test_a_stack_that_is_nearly_used_up_is_no_oracle(tmp_path: Any, nested: int) -> None:
    """From whatever depth a table without rows is answered, one with a row is, too: there is more to go through in it."""

    def asked(frames: int) -> ResolvedQuery:
        """Of a view of its own for each depth: what was counted before would be remembered."""
        kept: RowTest = InCodes("w", ((0, WIDE - frames),))
        for _ in range(nested):
            kept = Negation(kept)
        more = (Keep(InCodes("w", ((0, WIDE - 1_000 - frames - place),))) for place in range(MOST_STEPS - 1))
        return Wrong(steps=(Keep(kept), *more)).query

    def from_below(world: World, frames: int, query: ResolvedQuery) -> str:
        if frames:
            return from_below(world, frames - 1, query)
        before = world.spent
        try:
            world.ask(query)
        except DpmineError as error:
            return f"{type(error).__name__}, {world.spent - before} charged"
        return "answered"

    none, one = (
        world_of("memory", tmp_path / f"{rows}.csv", table_rows={name: values[:rows] for name, values in ROWS.items()})
        for rows in (0, 1)
    )
    depths = range(0, sys.getrecursionlimit() - 150, 7)
    came = [[from_below(world, frames, asked(frames)) for frames in depths] for world in (none, one)]
    assert set(came[0]) == {"answered", "RequestError, 0 charged"}
    assert came[0] == came[1]
