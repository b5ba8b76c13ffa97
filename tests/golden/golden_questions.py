"""Golden entries: every question of a private table, with every mechanism, calibration, score and kind of noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from golden_forms import solved
from golden_table import DATED, GAPS, PERSONS, SCHEMA
from golden_world import question

import dpmine as dm
from dpmine import col
from dpmine.codes.choices import CALIBRATIONS, MECHANISMS
from dpmine.codes.choose_split import SPLIT_SCORES
from dpmine.language.keys import Key, Part
from dpmine.language.model_keys import Nearest, NearestBands, Predicted, ScoreBands, ScoreLeaf, ScoreSplit
from dpmine.language.predicates import And, Contains, Predicate
from dpmine.language.splits import Divide, Multiway, Specialise
from dpmine.questions.private_tree import CutRule

EPSILON = "0.5"
NEAREST = Nearest(("age", "dose"), (100, 20), (1, 5), ((30, 20), (60, 60), (80, 90)))
"""Centres in positions, of which a step of age is 1 long and a step of dose 5."""
BY_COUGH = ScoreSplit(dm.parse_key("cough"), (ScoreLeaf((7, 3)), ScoreLeaf((4, 6))))
BY_AGE = ScoreSplit(dm.parse_key("age:40:60"), (ScoreLeaf((9, 1)), ScoreLeaf((5, 5)), ScoreLeaf((2, 8))))
DIAGNOSES = ("healthy", "sick")
COUGHING = Predicted((BY_COUGH,), DIAGNOSES)
BOTH = Predicted((BY_COUGH, BY_AGE), DIAGNOSES)
AGES = Predicted((BY_AGE,), DIAGNOSES)

# -- counts and histograms ---------------------------------------------------------------------------------------------

question("count/plain", lambda table: table.count(epsilon=EPSILON), duckdb=True)
question("count/tiny epsilon", lambda table: table.count(epsilon="0.000001"))
question("count/large epsilon", lambda table: table.count(epsilon=40))
question("count/of a view", lambda table: table.where(col("age") >= 40).where("cough == yes").count(epsilon=EPSILON))
question("count/of a part", lambda table: table.partition("ward")["south"].count(epsilon=EPSILON), duckdb=True)
question("count/of persons", lambda table: table.count(epsilon=EPSILON), schema=PERSONS)
question("count/preview", lambda table: table.preview.count(epsilon=EPSILON))
question("count/interval of a small view", lambda table: table.where("age >= 99").count(epsilon="0.05"))


def _train_and_test(table: dm.PrivateTable, **options: Any) -> Any:
    return [part.count(epsilon=EPSILON) for part in table.split(**options)]


question("count/of train and test", _train_and_test, duckdb=True)
question("count/of another split", lambda table: _train_and_test(table, test="0.35", salt="again"), duckdb=True)
question("count/of train and test of persons", _train_and_test, schema=PERSONS)

LEAF = dm.Leaf()
RULES = dm.Split(dm.parse_key("cough"), (LEAF, dm.Split(dm.parse_key("age:40:60"), (LEAF, LEAF, LEAF))))

question("count_cells/of a key", lambda table: table.cells("ward").count(epsilon=EPSILON), duckdb=True)
question("count_cells/of a rule tree", lambda table: table.cells(RULES).count(epsilon=EPSILON), duckdb=True)
question("count_cells/each at its own price", lambda table: table.cells(RULES).count(epsilon=["0.1", 0, "0.5", "0.1"]))
question("count_cells/preview", lambda table: table.cells(RULES).preview.count(epsilon=EPSILON))

question("histogram/by a column", lambda table: table.histogram("ward", epsilon=EPSILON), duckdb=True)
question("histogram/by grid points", lambda table: table.histogram("dose", epsilon=EPSILON))
question(
    "histogram/by two keys", lambda table: table.histogram("ward", col("age").bins(30, 60), epsilon=EPSILON), duckdb=True
)
question("histogram/of persons", lambda table: table.histogram("ward", epsilon=EPSILON), schema=PERSONS)
question("histogram/preview", lambda table: table.preview.histogram("ward", "cough", epsilon=EPSILON))
question("crosstab/ward and diagnosis", lambda table: table.crosstab("ward", "diagnosis", epsilon=EPSILON))
question("histogram_cells/of a rule tree", lambda table: table.cells(RULES).histogram("diagnosis", epsilon=EPSILON))
question("histogram_cells/each at its own price", lambda table: table.cells("cough").histogram("ward", epsilon=[0, EPSILON]))
question("histogram_cells/preview", lambda table: table.cells("cough").preview.histogram("ward", epsilon=1))

MANY = ("ward", "cough", "age", "dose", "weight")

question("sparse_histogram/by five columns", lambda table: table.sparse_histogram(*MANY, epsilon=1), duckdb=True)
question("sparse_histogram/with a threshold", lambda table: table.sparse_histogram("ward", "dose", epsilon=1, at_least=7))
question("sparse_histogram/few combinations", lambda table: table.sparse_histogram("ward", "cough", epsilon=EPSILON))
question("sparse_histogram/preview", lambda table: table.preview.sparse_histogram(*MANY, epsilon=1))

# -- predicates and keys -----------------------------------------------------------------------------------------------

PREDICATES: dict[str, Predicate] = {
    "==": col("ward") == "south",
    "!=": col("ward") != "south",
    "<": col("age") < 40,
    "<=": col("age") <= 40,
    ">": col("dose") > 2.25,
    ">=": col("dose") >= "2.2",
    "between": col("weight").between(60, 90),
    "in": col("ward").isin(["south", "east"]),
    "in numbers": col("dose").isin([0.5, 1, 2.75]),
    "contains": col("history").contains("flu"),
    "contains both": Contains("history", ("flu", "asthma")),
    "and": (col("cough") == "yes") & (col("age") >= 40),
    "or": (col("cough") == "yes") | (col("age") >= 60) | (col("ward") == "east"),
    "not": ~col("history").contains("flu"),
    "always": And(()),
}


def _predicate(predicate: Predicate) -> Callable[[dm.PrivateTable], Any]:
    def ask(table: dm.PrivateTable) -> Any:
        as_text = str(predicate)
        return {"text": as_text, "count": int(table.where(dm.parse_predicate(as_text)).count(epsilon=1))}

    return ask


for _name, _kept in PREDICATES.items():
    question(f"predicate/{_name}", _predicate(_kept), duckdb=_name in ("in numbers", "contains both", "or", "not"))

KEYS: dict[str, Key] = {
    "column": dm.parse_key("cough"),
    "bins": col("age").bins(18, "40", 65.0),
    "bins between grid points": col("dose").bins("0.3", "2.6"),
    "groups": col("ward").groups({"warm": ["south", "east"]}, rest="cold"),
    "part": Part("three", (3, 2, 5)),
    "predicted": BOTH,
    "score bands": ScoreBands((BY_COUGH, BY_AGE), 1, (5, 8, 11)),
    "nearest": NEAREST,
    "nearest bands": NearestBands(NEAREST, (50, 200, 800)),
}


def _key(key: Key) -> Callable[[dm.PrivateTable], Any]:
    return lambda table: table.histogram(key, epsilon=1)


for _name, _by in KEYS.items():
    question(f"key/{_name}", _key(_by), duckdb=True)
question("key/test", lambda table: table.histogram(col("age") >= 40, "diagnosis", epsilon=1), duckdb=True)

# -- sums, means, quantiles --------------------------------------------------------------------------------------------

for _column in ("age", "dose"):
    question(f"sum/{_column}", lambda table, column=_column: table.sum(column, epsilon=EPSILON))
    question(f"mean/{_column}", lambda table, column=_column: table.mean(column, epsilon=EPSILON))
    question(f"variance/{_column}", lambda table, column=_column: table.variance(column, epsilon=EPSILON), duckdb=True)
    question(f"median/{_column}", lambda table, column=_column: table.median(column, epsilon=EPSILON))
    question(f"std/{_column}", lambda table, column=_column: table.std(column, epsilon=EPSILON), duckdb=True)
question("covariance/age and dose", lambda table: table.covariance("age", "dose", epsilon=EPSILON), duckdb=True)
question("covariance/preview", lambda table: table.preview.covariance("age", "dose", epsilon=EPSILON))
question("sum/of persons", lambda table: table.sum("age", epsilon=EPSILON), schema=PERSONS)
question("mean/of too few rows", lambda table: table.where("age >= 99").mean("age", epsilon="0.1"))
question("variance/of too few rows", lambda table: table.where("age >= 99").variance("age", epsilon="0.1"))
question("quantile/a quarter", lambda table: table.quantile("age", "0.25", epsilon=EPSILON), duckdb=True)
question("quantile/three decimals", lambda table: table.quantile("dose", 0.875, epsilon=EPSILON))
question("min/age", lambda table: table.min("age", epsilon=EPSILON))
question("max/age", lambda table: table.max("age", epsilon=EPSILON))
for _name in ("sum", "mean", "variance", "std", "median", "max"):
    question(f"{_name}/preview", lambda table, name=_name: getattr(table.preview, name)("dose", epsilon=EPSILON))
question("quantile/preview", lambda table: table.preview.quantile("age", "0.25", epsilon=EPSILON))

for _name in ("sums", "means"):
    for _ball in (None, "l1", "l-infinity"):
        question(
            f"{_name}/ball {_ball}",
            lambda table, name=_name, ball=_ball: getattr(table, name)(["age", "dose", "weight"], epsilon=1, ball=ball),
            duckdb=_ball is None,
        )
    question(f"{_name}/of one column", lambda table, name=_name: getattr(table, name)(["age"], epsilon=1))
    question(f"{_name}/preview", lambda table, name=_name: getattr(table.preview, name)(["age", "dose"], epsilon=1))
question("means/of persons", lambda table: table.means(["age", "dose"], epsilon=1), schema=PERSONS)
question("means/of too few rows", lambda table: table.where("age >= 99").means(["age", "dose"], epsilon="0.1"))

# -- of rows that lack a value -----------------------------------------------------------------------------------------

GAPPED: dict[str, Callable[[dm.PrivateTable], Any]] = {
    "histogram/of gaps with a label": lambda table: table.histogram("ward", "age", epsilon=1),
    "histogram/of dropped gaps": lambda table: table.histogram("cough", "dose", epsilon=1),
    "histogram/of bins and gaps": lambda table: table.histogram(col("age").bins(30, 50.5), epsilon=1),
    "histogram/of groups and gaps": lambda table: table.histogram(col("ward").groups({"warm": ["south"]}), epsilon=1),
    "histogram/on a logarithmic grid": lambda table: table.histogram("weight", epsilon=1),
    "sparse_histogram/of dropped gaps": lambda table: table.sparse_histogram("cough", "ward", epsilon=1, at_least=3),
    "count/of rows that lack a value": lambda table: table.where("age is missing or ward is missing").count(epsilon=1),
    "count/where a gap leaves it open": lambda table: table.where(~(col("age") > 40.5)).count(epsilon=1),
    "count/of parts of rows with gaps": _train_and_test,
    "sum/of rows that have a value": lambda table: table.sum("age", epsilon=EPSILON),
    "mean/of rows that have a value": lambda table: table.mean("age", epsilon=EPSILON),
    "variance/of rows that have a value": lambda table: table.variance("dose", epsilon=EPSILON),
    "covariance/of rows that have both": lambda table: table.covariance("age", "dose", epsilon=EPSILON),
    "sums/of rows that have each": lambda table: table.sums(["age", "dose"], epsilon=1),
    "means/of rows that have all": lambda table: table.means(["age", "dose"], epsilon=1),
    "median/of rows that have a value": lambda table: table.median("dose", epsilon=EPSILON),
    "median/geometric of rows that have a value": lambda table: table.median("age", epsilon=1, design="geometric"),
    "choose/of a label that is no gap": lambda table: table.choose("cough", epsilon=1),
    "choose/of splits with gaps": lambda table: table.choose(["age", "dose", "ward"], score="max", epsilon=1),
}
for _name, _ask in GAPPED.items():
    question(_name, _ask, schema=GAPS, duckdb=True)

# -- of dates ----------------------------------------------------------------------------------------------------------

BY_DATE: dict[str, Callable[[dm.PrivateTable], Any]] = {
    "histogram/of months": lambda table: table.histogram(col("admitted").by("month"), epsilon=1),
    "histogram/of weekdays": lambda table: table.histogram(col("admitted").by("weekday"), epsilon=1),
    "count/from a date on": lambda table: table.where(col("admitted") >= "2014-02-03").count(epsilon=1),
    "median/of dates": lambda table: table.median("admitted", epsilon=1),
}
for _name, _ask in BY_DATE.items():
    question(_name, _ask, schema=DATED, duckdb=True)

# -- through designed noise --------------------------------------------------------------------------------------------

FIXED = ("geometric", "staircase", "heuristic", "randomised-response")
"""Mechanisms in closed form; "optimal", "risk-averse" and what "auto" may take are solved by scipy."""

for _by in ("geometric", "staircase"):
    question(f"count/{_by}", lambda table, by=_by: table.count(epsilon=EPSILON, design=by))
    question(f"sum/{_by}", lambda table, by=_by: table.sum("dose", epsilon=EPSILON, design=by), duckdb=_by == "geometric")
for _by in FIXED:
    question(
        f"count/{_by} within bounds",
        lambda table, by=_by: table.count(epsilon=EPSILON, design=dm.prior("flat", low=0, high=300, by=by)),
    )
    for _statistic in ("mean", "median", "max"):
        question(
            f"{_statistic}/{_by}",
            lambda table, by=_by, statistic=_statistic: getattr(table, statistic)("dose", epsilon=1, design=by),
        )
question(
    "sum/a prior on a lattice",
    lambda table: table.sum("age", epsilon=EPSILON, design=dm.prior("normal:10000:800", low=0, high=20_000, by="staircase")),
)
PRIORS = {
    "normal": dm.prior("normal:2:1", by="geometric"),
    "laplace": dm.prior("laplace:2:0.5", loss="squared", by="geometric"),
    "triangle": dm.prior("triangle:0:2:5", by="staircase"),
    "weights": dm.prior("weights:1,2,3,4,5,6", low=0, high=5, step=1, loss="miss", by="heuristic"),
}
for _name, _prior in PRIORS.items():
    question(f"median/prior {_name}", lambda table, prior=_prior: table.median("dose", epsilon=1, design=prior))
OWN = dm.FiniteMechanism("0", "5", ("0", "5"), ((2, 1), (1, 2)))
question("median/a mechanism of one's own", lambda table: table.median("dose", epsilon=1, design=OWN))
question("mean/geometric of persons", lambda table: table.mean("dose", epsilon=1, design="geometric"), schema=PERSONS)
question("mean/geometric preview", lambda table: table.preview.mean("dose", epsilon=1, design="geometric"))
for _by in ("auto", "optimal", "risk-averse"):
    question(
        f"mean/{_by}", lambda table, by=_by: solved(table.mean("dose", epsilon=1, design=dm.prior("normal:2:1", by=by)))
    )
question("count/auto", lambda table: table.count(epsilon=EPSILON, design="auto"))

# -- for clusterings ---------------------------------------------------------------------------------------------------

ORIGINS, RADII = [[40, 40], [60, 60], [80, 90]], [60, 30, 7]
CUT_RULES = (CutRule("age", (0, 50), (0, 7, 0), (0, 1, 0), 1), CutRule("dose", (0,), (0,), (0,), 2))

question("offset_sums/three clusters", lambda table: table.offset_sums(NEAREST, ORIGINS, RADII, epsilon=1), duckdb=True)
question("private_tree/two attributes", lambda table: table.private_tree(CUT_RULES, epsilon=8), duckdb=True)
question("private_tree/of one level", lambda table: table.private_tree(CUT_RULES, epsilon=1, deepest=1))

# -- choices -----------------------------------------------------------------------------------------------------------

SUBSETS = dm.Subsets("ward", (("north",), ("north", "east")))
FAMILIES: dict[str, list[Any]] = {
    "columns": ["ward", "cough"],
    "thresholds": ["age"],
    "thresholds between": [dm.Thresholds("dose", "1", "3")],
    "subsets": [SUBSETS],
    "one versus rest": [dm.one_versus_rest(SCHEMA, "ward")],
    "specialisations": [
        Specialise(col("ward").groups({"outer": ["north", "south"]}, rest="inner"), (0, 1)),
        Specialise(dm.parse_key("age:40:60"), (1, 2)),
    ],
    "divisions": [Divide("age", "20", "60"), Divide("dose", "0", "5")],
    "staying": ["cough", dm.Stay(5)],
    "staying whole": [Multiway(dm.parse_key("weight")), dm.Stay(1000)],
    "all of them": ["ward", "cough", "age", dm.Thresholds("dose"), SUBSETS, dm.Stay(3)],
}
GAINS = ("gain", "gini-gain", "infogain-per-row")

for _mechanism in MECHANISMS:
    for _calibration in CALIBRATIONS:
        _how: Any = {"mechanism": _mechanism, "calibration": _calibration}
        question(
            f"choose/label by {_mechanism}, {_calibration}",
            lambda table, how=_how: table.choose("ward", epsilon="0.05", **how),
        )
        question(
            f"choose_model/{_mechanism}, {_calibration}",
            lambda table, how=_how: table.choose_model([COUGHING, AGES, BOTH], epsilon="0.05", **how),
            duckdb=_mechanism == "permute-and-flip",
        )
        for _score in SPLIT_SCORES:
            _among = [family for family in FAMILIES["all of them"] if not isinstance(family, dm.Stay)]
            question(
                f"choose/split by {_score}, {_mechanism}, {_calibration}",
                lambda table, score=_score, among=_among, how=_how: table.choose(among, score=score, epsilon=EPSILON, **how),
                duckdb=_score == "mixed" and _mechanism == "exponential" and _calibration == "monotone",
            )
for _name, _among in FAMILIES.items():
    _score = "gain" if _name in ("specialisations", "divisions") else "gini"
    question(
        f"choose/among {_name}",
        lambda table, score=_score, among=_among: table.choose(among, score=score, epsilon=2),
        duckdb=_name in ("specialisations", "divisions", "all of them"),
    )
question("choose/preview", lambda table: table.preview.choose(["ward", "age"], score="gini", epsilon=EPSILON))
question("choose/preview of a label", lambda table: table.preview.choose("ward", epsilon=EPSILON))
question("choose/label of a test", lambda table: table.choose(col("age") >= 40, epsilon="0.05"))
question("choose/of persons", lambda table: table.choose(["ward", "age"], score="max", epsilon=EPSILON), schema=PERSONS)
question("choose_cells/labels", lambda table: table.cells("cough").choose("ward", epsilon=["0.2", "0.1"]))
question(
    "choose_cells/splits of every cell alike",
    lambda table: table.cells(RULES).choose(["age", "ward"], score="mixed", epsilon=EPSILON),
    duckdb=True,
)
question(
    "choose_cells/splits of each cell's own",
    lambda table: table.cells("cough").choose([["age"], ["ward", "dose"]], score="max", epsilon=[EPSILON, 1]),
)
question(
    "choose_cells/not asked in one cell",
    lambda table: table.cells("cough").choose(["age"], score="max", epsilon=[0, 1]),
)
question("choose_cells/preview", lambda table: table.cells("cough").preview.choose(["age"], score="max", epsilon=1))

# -- at an epsilon that leaves no noise --------------------------------------------------------------------------------

EXACT = 900
EVEN = "ward == west and cough == no and diagnosis == sick"
"""A view of an even number of rows, whose two doses in the middle differ."""
NOBODY = col("age") == 99
"""Nobody in the table is so old, though the schema allows it."""
HOLDS = [col("history").contains(item) for item in ("flu", "asthma", "allergy")]

for _where, _rows in (("all rows", And(())), ("an even number of rows", dm.parse_predicate(EVEN)), ("no rows", NOBODY)):
    for _statistic in ("sum", "mean", "variance", "median", "max"):
        question(
            f"{_statistic}/without noise of {_where}",
            lambda table, statistic=_statistic, rows=_rows: getattr(table.where(rows), statistic)("dose", epsilon=EXACT),
            duckdb=_statistic == "variance",
        )
    for _statistic in ("mean", "median", "max"):
        question(
            f"{_statistic}/geometric without noise of {_where}",
            lambda table, statistic=_statistic, rows=_rows: getattr(table.where(rows), statistic)(
                "dose", epsilon=EXACT, design="geometric"
            ),
        )
    question(
        f"means/without noise of {_where}",
        lambda table, rows=_rows: table.where(rows).means(["age", "dose", "weight"], epsilon=EXACT),
    )
    question(f"count/without noise of {_where}", lambda table, rows=_rows: table.where(rows).count(epsilon=EXACT))
question("count/without noise of persons", lambda table: table.count(epsilon=EXACT / 2), schema=PERSONS, duckdb=True)
question("histogram/without noise", lambda table: table.histogram("ward", "cough", "diagnosis", epsilon=EXACT))
question("histogram/without noise of a list's items", lambda table: table.histogram(*HOLDS, epsilon=EXACT))
question("offset_sums/without noise", lambda table: table.offset_sums(NEAREST, ORIGINS, RADII, epsilon=EXACT))
question("private_tree/without noise", lambda table: table.private_tree(CUT_RULES, epsilon=EXACT, deepest=5))
question("sparse_histogram/without noise", lambda table: table.sparse_histogram("ward", "dose", epsilon=EXACT))
for _score in SPLIT_SCORES:
    question(
        f"choose_cells/best by {_score}",
        lambda table, score=_score: table.cells("ward").choose(
            ["cough", "age", "weight", dm.Stay(2)], score=score, epsilon=EXACT
        ),
    )
