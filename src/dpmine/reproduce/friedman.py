"""The experiments of Friedman and Schuster, "Data Mining with Differential Privacy" (KDD 2010), section 5.

Numbers are printed for Table 1 only; of the figures the text keeps the settings and what is to be seen in them. Where the
text is silent, this is what is done here: test sets are drawn anew for each run; the trees of section 5.1.2 are the same for
all sizes and noise levels; figures 6 and 7 have no noise in the learning data; the ordinary trees have no depth limit, as in
Weka, except in figure 8; sizes and budgets along the axes of figures 3 to 8 are chosen to cover what the text describes.
Rows in a branch that saw no training rows get the class of the branch above. Weka's Id3 leaves them unclassified; in Table 1
that makes no difference, since with two values a split that leaves one branch empty gains nothing and is never made.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from dpmine.datasets import RandomTree, adult, adult_schema
from dpmine.datasets.folder import data_file
from dpmine.engines.encoding import EncodedTable
from dpmine.reproduce.experiments import (
    Case,
    Durations,
    Experiment,
    Measures,
    PairedComparison,
    Published,
    Scene,
    grid,
    stable_seed,
)
from dpmine.reproduce.pictures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, Picture, Style
from dpmine.reproduce.tree_runs import SCORES, Sample, accuracy, encoded, fold_of

PAPER = "Friedman and Schuster 2010"
TEST_ROWS = 10_000
TREES, RUNS_OF_A_TREE = 10, 20
FOLDS, SHUFFLES = 10, 10
ADULT_FILE = "adult.parquet"

ID3_SCORES = tuple(f"DiffP-ID3 {score}" for score in SCORES)
C45_SCORES = tuple(f"DiffP-C4.5 {score}" for score in SCORES)
SIZES = (100, 250, 500, 750, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000)
NUMERIC_SIZES = (500, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 10_000)
DEEP_SIZES = (1000, 2000, 3000, 5000, 7000, 10_000, 15_000, 20_000, 30_000, 50_000)
GRID_SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000)
BUDGETS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)

COLOURS = {"InfoGain": (BLUE, "o"), "Gini": (ORANGE, "s"), "Max": (GREEN, "D")}
STYLES = {
    **{f"DiffP-ID3 {score}": Style(*look) for score, look in COLOURS.items()},
    **{f"DiffP-C4.5 {score}": Style(*look) for score, look in COLOURS.items()},
    "SuLQ-ID3": Style(RED, "^"),
    "ID3": Style(BLACK, "P", "--"),
    "C4.5": Style(BLACK, "P", "--"),
    "C4.5 unpruned": Style(GREY, "X", ":"),
    "C4.5 of the same depth": Style(BLACK, "P", "--"),
}
BY_DISCRETISING = {f"DiffP-ID3 {score}": Style(colour, marker, "--") for score, (colour, marker) in COLOURS.items()}

TABLE_1 = {  # accuracy and standard deviation by number of samples
    1000: ((90.1, 1.5), (57.0, 17.3), (69.3, 24.3), (94.7, 15.3), (57.7, 18.1)),
    2000: ((92.8, 1.0), (60.5, 20.4), (93.0, 17.4), (100, 0.0), (57.0, 17.4)),
    3000: ((94.9, 0.7), (66.1, 23.5), (99.0, 7.0), (100, 0.0), (55.8, 15.9)),
    4000: ((96.5, 0.6), (74.7, 25.0), (99.75, 3.5), (100, 0.0), (59.0, 19.2)),
    5000: ((97.7, 0.5), (79.0, 24.7), (100, 0.0), (100, 0.0), (62.3, 21.5)),
}
TABLE_1_ALGORITHMS = ("ID3", *ID3_SCORES, "SuLQ-ID3")


# -- one split (5.1.1) -------------------------------------------------------------------------------------------------


def one_binary_split(scene: Scene) -> Sample:
    """Ten binary attributes, of which one decides the class; every value replaced with probability 0.1."""
    return _drawn(RandomTree.single_split(nominal=10), scene, noise=0.1, bound=5000)


def one_numeric_split(scene: Scene) -> Sample:
    """Seven binary and three numeric attributes; one of these decides at 35; replaced with probability 0.1."""
    return _drawn(RandomTree.single_split(nominal=7, numeric=3), scene, noise=0.1, bound=max(NUMERIC_SIZES))


def one_clean_numeric_split(scene: Scene) -> Sample:
    """The same without noise."""
    return _drawn(RandomTree.single_split(nominal=7, numeric=3), scene, noise=0.0, bound=max(NUMERIC_SIZES))


def _drawn(tree: RandomTree, scene: Scene, *, noise: float, bound: int) -> Sample:
    schema = tree.schema(rows_at_most=bound)
    training = tree.sample(int(scene.point["samples"]), noise=noise, seed=stable_seed(scene.seed, "training"))
    test = tree.sample(TEST_ROWS, seed=stable_seed(scene.seed, "test"))
    return Sample(encoded(training, schema), encoded(test, schema))


def at_tenth(case: Case, sample: Sample) -> Measures:
    return {"accuracy": accuracy(case.algorithm, sample, epsilon=0.1, depth=1)}


def at_fifth(case: Case, sample: Sample) -> Measures:
    return {"accuracy": accuracy(case.algorithm, sample, epsilon=0.2, depth=1)}


def _published() -> tuple[Published, ...]:
    found = []
    for samples, numbers in TABLE_1.items():
        for algorithm, (mean, std) in zip(TABLE_1_ALGORITHMS, numbers, strict=True):
            step = 0.01 if mean == 99.75 else 0.1
            found.append(Published({"samples": samples}, algorithm, mean, std, 200, step))
    return tuple(found)


# -- larger trees (5.1.2) ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _tree(number: int, depth: int, nominal: int, numeric: int, values: int) -> RandomTree:
    """Tree number so and so of its kind: the same for every sample size and noise level."""
    seed = stable_seed("friedman tree", number, depth, nominal, numeric, values)
    return RandomTree.draw(depth=depth, nominal=nominal, numeric=numeric, values=values, classes=values, seed=seed)


def tree_number(scene: Scene) -> int:
    """Runs take turns among the trees, so that a few runs see several of them."""
    return scene.repetition % TREES


def deep_binary(scene: Scene) -> Sample:
    """Depth 5 over ten binary attributes, no noise."""
    return _drawn(_tree(tree_number(scene), 5, 10, 0, 2), scene, noise=0.0, bound=50_000)


def deep_mixed(scene: Scene) -> Sample:
    """Depth 5 over seven binary and three numeric attributes, no noise."""
    return _drawn(_tree(tree_number(scene), 5, 7, 3, 2), scene, noise=0.0, bound=50_000)


def any_depth(scene: Scene) -> Sample:
    """Depth, number of values and noise as the point says."""
    depth, values = int(scene.point["depth"]), int(scene.point["values"])
    return _drawn(_tree(tree_number(scene), depth, 10, 0, values), scene, noise=float(scene.point["noise"]), bound=50_000)


def same_tree(scene: Scene) -> Any:
    return scene.point["depth"], scene.point["values"], tree_number(scene)


def at_one(case: Case, sample: Sample) -> Measures:
    return {"accuracy": accuracy(case.algorithm, sample, epsilon=1.0, depth=int(case.point.get("depth", 5)))}


# -- Adult (5.2) -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _adult(file: Path) -> EncodedTable:
    """The complete rows; `file` is where they are read from, so that another folder is another table."""
    return encoded(adult(complete=True), adult_schema(complete=True, rows_at_most=50_000))


def adult_fold(scene: Scene) -> Sample:
    """One fold of a ten-fold cross-validation: ten repetitions in a row are the folds of one shuffle."""
    return fold_of(_adult(data_file(ADULT_FILE)), "friedman adult", scene.repetition, FOLDS)


def at_budget(case: Case, sample: Sample) -> Measures:
    return {"accuracy": accuracy(case.algorithm, sample, epsilon=float(case.point.get("epsilon", 1.0)), depth=5)}


# -- the experiments ---------------------------------------------------------------------------------------------------


def friedman_experiments() -> tuple[Experiment, ...]:
    """All experiments of section 5, in its order."""
    return (
        Experiment(
            name="friedman-table1",
            title="A single split on a binary attribute, B = 0.1 (Table 1)",
            source=f"{PAPER}, 5.1.1, Table 1",
            shows="Max finds the split from 1,000 samples on, Gini from 2,000, InfoGain rarely, SuLQ-ID3 hardly ever",
            points=grid(samples=tuple(TABLE_1)),
            algorithms=TABLE_1_ALGORITHMS,
            repetitions=200,
            quick_repetitions=60,
            generate=one_binary_split,
            measure=at_tenth,
            durations=Durations(154, 40),
            settings={"epsilon": 0.1, "noise": 0.1, "bound": 5000, "test_rows": TEST_ROWS},
            published=_published(),
            picture=_over_samples(),
        ),
        Experiment(
            name="friedman-fig3",
            title="A single split on a binary attribute, B = 0.1 (Figure 3)",
            source=f"{PAPER}, 5.1.1, Figure 3",
            shows="Table 1 over more sizes: the less sensitive the score, the fewer samples it needs",
            points=grid(samples=SIZES),
            quick_points=grid(samples=(100, 500, 1000, 1500, 2000, 3000, 4000, 5000)),
            algorithms=TABLE_1_ALGORITHMS,
            repetitions=200,
            quick_repetitions=30,
            generate=one_binary_split,
            measure=at_tenth,
            durations=Durations(450, 41),
            settings={"epsilon": 0.1, "noise": 0.1, "bound": 5000, "test_rows": TEST_ROWS},
            published=_published(),
            picture=_over_samples(),
        ),
        Experiment(
            name="friedman-fig4",
            title="A single split on a numeric attribute, B = 0.1 (Figure 4)",
            source=f"{PAPER}, 5.1.1, Figure 4",
            shows="the same order of the scores, but a numeric split needs more samples",
            points=grid(samples=NUMERIC_SIZES),
            quick_points=grid(samples=(1000, 2000, 4000, 6000, 10_000)),
            algorithms=("C4.5", "C4.5 unpruned", *C45_SCORES),
            repetitions=200,
            quick_repetitions=15,
            generate=one_numeric_split,
            measure=at_tenth,
            durations=Durations(2100, 90),
            settings={"epsilon": 0.1, "noise": 0.1, "bound": max(NUMERIC_SIZES), "test_rows": TEST_ROWS},
            picture=_over_samples(),
        ),
        Experiment(
            name="friedman-fig5",
            title="A numeric split against ten bins, B = 0.2 (Figure 5)",
            source=f"{PAPER}, 5.1.1, Figure 5",
            shows="bins win with few samples; with many, split points at the right place do",
            points=grid(samples=NUMERIC_SIZES),
            quick_points=grid(samples=(500, 1000, 2000, 4000, 6000, 10_000)),
            algorithms=(*C45_SCORES, *ID3_SCORES),
            repetitions=200,
            quick_repetitions=40,
            generate=one_clean_numeric_split,
            measure=at_fifth,
            durations=Durations(230, 30),
            settings={"epsilon": 0.2, "noise": 0.0, "bound": max(NUMERIC_SIZES), "test_rows": TEST_ROWS},
            picture=Picture(
                x="samples",
                x_title="training samples",
                note="solid: split points (DiffP-C4.5), dashed: ten bins (DiffP-ID3)",
                styles={**STYLES, **BY_DISCRETISING},
            ),
        ),
        Experiment(
            name="friedman-fig6",
            title="A tree of depth 5 over 10 binary attributes, B = 1 (Figure 6)",
            source=f"{PAPER}, 5.1.2, Figure 6",
            shows="Max leads with few samples and falls behind Gini and InfoGain with many: the depth limit binds it",
            points=grid(samples=DEEP_SIZES),
            quick_points=grid(samples=(1000, 3000, 10_000, 50_000)),
            algorithms=("ID3", *ID3_SCORES, "SuLQ-ID3"),
            repetitions=TREES * RUNS_OF_A_TREE,
            quick_repetitions=30,
            generate=deep_binary,
            measure=at_one,
            durations=Durations(737, 36),
            settings={"epsilon": 1.0, "noise": 0.0, "depth": 5, "bound": 50_000, "trees": TREES, "test_rows": TEST_ROWS},
            picture=_over_samples(log_x=True),
        ),
        Experiment(
            name="friedman-fig7",
            title="A tree of depth 5 over 7 binary and 3 numeric attributes, B = 1 (Figure 7)",
            source=f"{PAPER}, 5.1.2, Figure 7",
            shows="the same with split points: Max first, then Gini, then InfoGain as samples grow",
            points=grid(samples=DEEP_SIZES),
            quick_points=grid(samples=(1000, 3000, 10_000, 50_000)),
            algorithms=("C4.5", *C45_SCORES),
            repetitions=TREES * RUNS_OF_A_TREE,
            quick_repetitions=20,
            generate=deep_mixed,
            measure=at_one,
            durations=Durations(1600, 71),
            settings={"epsilon": 1.0, "noise": 0.0, "depth": 5, "bound": 50_000, "trees": TREES, "test_rows": TEST_ROWS},
            picture=_over_samples(log_x=True),
        ),
        Experiment(
            name="friedman-fig8",
            title="Adult: accuracy against the privacy budget, depth 5 (Figure 8)",
            source=f"{PAPER}, 5.2, Figure 8",
            shows="Max does better than Gini and Gini better than InfoGain; all gain with the budget",
            points=grid(epsilon=BUDGETS),
            quick_points=grid(epsilon=(0.5, 1.0, 2.0, 4.0, 10.0)),
            algorithms=(*C45_SCORES, "C4.5 of the same depth"),
            repetitions=SHUFFLES * FOLDS,
            quick_repetitions=FOLDS,
            generate=adult_fold,
            measure=at_budget,
            durations=Durations(1550, 77),
            settings={"depth": 5, "folds": FOLDS, "bound": 50_000},
            data_free=("epsilon",),
            indifferent=("C4.5 of the same depth",),
            comparison=PairedComparison(tuple(reversed(C45_SCORES)), 1 / (FOLDS - 1)),
            picture=Picture(x="epsilon", x_title="privacy budget B", log_x=True, styles=STYLES),
        ),
        Experiment(
            name="friedman-grid",
            title="Trees over 10 nominal attributes, B = 1 (5.1.2)",
            source=f"{PAPER}, 5.1.2",
            shows="every depth, number of values and noise level: small samples favour Max, large ones Gini and InfoGain",
            points=grid(depth=(3, 5, 10), values=(2, 3, 5), noise=(0.0, 0.1, 0.2), samples=GRID_SIZES),
            quick_points=grid(depth=(3, 5, 10), values=(2, 3, 5), noise=(0.1,), samples=(1000, 10_000, 50_000)),
            algorithms=("ID3", *ID3_SCORES, "SuLQ-ID3"),
            repetitions=TREES * RUNS_OF_A_TREE,
            quick_repetitions=1,
            generate=any_depth,
            measure=at_one,
            durations=Durations(75_000, 103),
            settings={"epsilon": 1.0, "bound": 50_000, "trees": TREES, "test_rows": TEST_ROWS},
            together=same_tree,
            picture=Picture(
                x="samples",
                x_title="training samples",
                log_x=True,
                columns="values",
                rows="depth",
                pages="noise",
                styles=STYLES,
            ),
        ),
    )


def _over_samples(*, log_x: bool = False) -> Picture:
    return Picture(x="samples", x_title="training samples", log_x=log_x, styles=STYLES)
