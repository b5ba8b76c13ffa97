"""Audit pairs of private choices, among more than a hundred candidates.

With two equal candidates a correct exponential mechanism shows half of its epsilon, so a missing factor 2 would not be
seen. Here one candidate that is seldom chosen gains on all others by the score's whole range: that shows all of it.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from dpmine.audit.laws import (
    Buckets,
    Numbers,
    by_group,
    exponential_law,
    independent,
    permute_and_flip_law,
    rank_scores,
    score_range,
    split_score,
)
from dpmine.audit.pairs import AuditPair, Outcome, Row, answers, copied_schema
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.language.candidates import number_of_candidates
from dpmine.language.keys import AttributeKey, Bins, Group, Groups
from dpmine.language.model_keys import Predicted, ScoreLeaf, ScoreSplit
from dpmine.language.splits import Divide, Multiway, Specialise, Splits, Stay, Subsets, Thresholds
from dpmine.questions.choose_label import ChooseLabel
from dpmine.questions.choose_model import ChooseModel
from dpmine.questions.choose_split import ChooseSplit
from dpmine.questions.quantile import Quantile
from dpmine.tables.private_table import PrivateTable

EXPONENTIAL, FLIP = "exponential", "permute-and-flip"
MECHANISM = {
    EXPONENTIAL: "dpmine.kernel.samplers.choice.exponential",
    FLIP: "dpmine.kernel.samplers.choice.permute_and_flip",
}
SCORES = {
    "max": "dpmine.kernel.scores.MaxScore",
    "gini": "dpmine.kernel.scores.GiniScore",
    "infogain": "dpmine.kernel.scores.InfoGainScore",
    "mixed": "dpmine.kernel.scores.MixedScore",
}
GAINS = {
    "gain": "dpmine.kernel.scores.GainScore",
    "gini-gain": "dpmine.kernel.scores.GainScore",
    "infogain-per-row": "dpmine.kernel.scores.InfoGainPerRow",
}
SPLITS = "dpmine.questions.choose_split.ChooseSplit"
CROWD = 60  # rows of one class that a row of the other joins, or not
LABELS = tuple(f"l{number}" for number in range(128))
ILL = Nominal("ill", ("no", "yes"), "no", missing="no")
RISING, OTHERS = "the one", "others"


def choice_pairs() -> Iterator[AuditPair]:
    for mechanism in (EXPONENTIAL, FLIP):
        for calibration in ("monotone", "generic"):
            yield _label(mechanism, calibration)
    yield _quantile("quantile", 1, 10)
    yield _median()
    yield _quantile_with_gaps()
    for score in SCORES:
        yield _split(score, EXPONENTIAL)
    yield _split("gini", FLIP)
    yield _split_points("gini", "generic")
    yield _split_points("infogain", "monotone")
    yield _families_by_permute_and_flip()
    for score in GAINS:
        yield _specialisations(score, EXPONENTIAL)
    yield _specialisations("gain", FLIP)
    yield _model(EXPONENTIAL)
    yield _model(FLIP)


def _law_of(mechanism: str, scores: Sequence[float], masses: Sequence[float], rate: float) -> Numbers:
    return exponential_law(scores, masses, rate) if mechanism == EXPONENTIAL else permute_and_flip_law(scores, rate)


def _label(mechanism: str, calibration: str) -> AuditPair:
    ahead = 2 if calibration == "monotone" else 4
    rate = 1.0 if calibration == "monotone" else 0.5
    groups = [RISING] + [OTHERS] * (len(LABELS) - 1)

    def law(rows: int) -> dict[Any, float]:
        return by_group(_law_of(mechanism, [rows] + [0] * (len(LABELS) - 1), [1] * len(LABELS), rate), groups)

    def ask(private: PrivateTable) -> list[Outcome]:
        question = ChooseLabel(AttributeKey("label"), mechanism, calibration)
        return [groups[chosen] for (chosen,) in answers(private, question, 1)]

    return AuditPair(
        f"label-by-{mechanism}" + ("" if calibration == "monotone" else "-generic"),
        ("dpmine.questions.choose_label.ChooseLabel", MECHANISM[mechanism], "dpmine.kernel.scores.CountScore"),
        "One label of 128 gains a row; it starts a little ahead, so that it is chosen often enough to be measured."
        + ("" if calibration == "monotone" else " Counts only rise, so the generic factor 2 leaves half of epsilon unused."),
        "1",
        copied_schema(500, Nominal("label", LABELS, LABELS[0], missing=LABELS[0])),
        ([{"label": LABELS[0]}] * ahead, [{"label": LABELS[0]}] * (ahead + 1)),
        ask,
        laws=(law(ahead), law(ahead + 1)),
        runs=8_000,
    )


def _quantile(name: str, numerator: int, denominator: int) -> AuditPair:
    """Order 1/10: of 20 rows 2 lie low. A row at the bottom makes points that were too low better and all others worse."""
    size = 128
    before = [0] * size
    before[1], before[11], before[-1] = 1, 1, 18
    after = [1, *before[1:]]
    rate = 1 / (2 * max(numerator, denominator - numerator))
    groups = [min(point, 12) if point in (0, 1, 11) else 2 if point < 11 else 12 for point in range(size)]

    def ask(private: PrivateTable) -> list[Outcome]:
        question = Quantile("size", numerator, denominator)
        return [groups[chosen] for (chosen,) in answers(private, question, 1)]

    laws = [
        by_group(exponential_law(rank_scores(counts, numerator, denominator), [1] * size, rate), groups)
        for counts in (before, after)
    ]
    rows: list[list[Row]] = [
        [{"size": point} for point, count in enumerate(counts) for _ in range(count)] for counts in (before, after)
    ]
    return AuditPair(
        name,
        ("dpmine.questions.quantile.Quantile", "dpmine.kernel.scores.RankScore", MECHANISM[EXPONENTIAL]),
        "A row at the bottom raises the scores of the few points below the quantile by all that one row can, and lowers "
        "those of the hundred above by as much.",
        "1",
        copied_schema(250, Numeric("size", Decimal(0), Decimal(size - 1), Decimal(1), Decimal(0))),
        (rows[0], rows[1]),
        ask,
        laws=(laws[0], laws[1]),
        runs=8_000,
    )


def _median() -> AuditPair:
    size = 128
    before = [0] * size
    before[20], before[-1] = 1, 1
    after = [1, *before[1:]]
    groups = ["low" if point <= 20 else "high" for point in range(size)]
    laws = [by_group(exponential_law(rank_scores(counts, 1, 2), [1] * size, 0.5), groups) for counts in (before, after)]

    def ask(private: PrivateTable) -> list[Outcome]:
        return [groups[chosen] for (chosen,) in answers(private, Quantile("size", 1, 2), 1)]

    return AuditPair(
        "median",
        ("dpmine.questions.quantile.Quantile", MECHANISM[EXPONENTIAL]),
        "A row at the bottom pulls the median down to few low points, away from the hundred between the two rows.",
        "1",
        copied_schema(250, Numeric("size", Decimal(0), Decimal(size - 1), Decimal(1), Decimal(0))),
        ([{"size": 20}, {"size": 127}], [{"size": 0}, {"size": 20}, {"size": 127}]),
        ask,
        laws=(laws[0], laws[1]),
        runs=8_000,
    )


def _quantile_with_gaps() -> AuditPair:
    """Points that are finer than codes, of which few have rows, and rows without a value, which no rank knows."""
    size = 128
    before = [0] * size
    before[1], before[11], before[-1] = 1, 1, 18
    after = [1, *before[1:]]
    groups = ["own" if point == 0 else "low" if point <= 11 else "high" for point in range(size)]
    rows_told = Buckets((21,))
    laws = [
        independent(
            by_group(exponential_law(rank_scores(counts, 1, 10), [1] * size, 0.95 / 18), groups),
            rows_told.law(sum(counts), 20.0),
        )
        for counts in (before, after)
    ]

    def ask(private: PrivateTable) -> list[Outcome]:
        points, counts = zip(*answers(private, Quantile("size", 1, 10), 1), strict=True)
        return list(zip([groups[point] for point in points], rows_told.of(counts), strict=True))

    gaps: list[Row] = [{"size": None}] * 2
    rows = [[{"size": point} for point, count in enumerate(counts) for _ in range(count)] for counts in (before, after)]
    return AuditPair(
        "quantile-with-gaps",
        ("dpmine.questions.quantile.Quantile", "dpmine.kernel.scores.RankScore", MECHANISM[EXPONENTIAL]),
        "A row at the bottom, where nobody was, moves scores as in the pair without gaps, and the number of rows by one.",
        "1",
        copied_schema(250, Numeric("size", Decimal(0), Decimal(size - 1), Decimal(64), resolution=Decimal(1))),
        ([*gaps, *rows[0]], [*gaps, *rows[1]]),
        ask,
        laws=(laws[0], laws[1]),
        runs=8_000,
    )


def _split(score: str, mechanism: str) -> AuditPair:
    """A crowd is of class no and has the last letter; the new row is of class yes and has the first.

    Only the split that takes the first letter away keeps the classes apart: its score stays (of Max: rises by one) while
    those of the others fall by the whole range (of Max: stay). Under permute-and-flip, which knows no families, it would be
    chosen too seldom to be measured, so there two rows like the new one stand for a lead.
    """
    lead = 0 if mechanism == EXPONENTIAL else 2
    letters = Nominal("letter", LABELS, LABELS[0], missing=LABELS[0])
    size = Numeric("size", Decimal(0), Decimal(63), Decimal(1), Decimal(0))
    flag = Nominal("flag", ("x", "y"), "x", missing="x")
    slices = [Subsets("letter", tuple((label,) for label in LABELS[start : start + 21])) for start in range(1, 64, 21)]
    families: tuple[Splits, ...] = (
        Subsets("letter", (LABELS[:1],)),
        *slices,
        Thresholds("size", "0", "30"),
        Thresholds("size", "30", "63"),
        Multiway(AttributeKey("flag")),
        Stay(0),
    )
    sizes = [1, *(len(family.subsets) for family in slices), 30, 33, 1, 1]
    groups: list[Outcome] = [min(number, 1) for number, count in enumerate(sizes) for _ in range(count)]
    schema = copied_schema(250, letters, size, flag, ILL, class_attribute="ill", rows_at_most=CROWD)
    assert [number_of_candidates(family, schema) for family in families] == sizes
    masses = [2**32 // count for count in sizes for _ in range(count)]
    crowd = {"letter": LABELS[-1], "size": 20, "flag": "x", "ill": "no"}
    new = {"letter": LABELS[0], "size": 20, "flag": "x", "ill": "yes"}

    def law(rows: int) -> dict[Any, float]:
        apart = split_score(score, [(CROWD, 0), (0, rows)])
        together = split_score(score, [(CROWD, rows), (0, 0)])
        scores = [apart] + [together] * (len(groups) - 1)
        return by_group(_law_of(mechanism, scores, masses, 1 / score_range(score, CROWD)), groups)

    def ask(private: PrivateTable) -> list[Outcome]:
        question = ChooseSplit((families,), score, mechanism, "monotone")
        return [groups[chosen] for (chosen,) in answers(private, question, 1)]

    return AuditPair(
        f"split-by-{score}" + ("" if mechanism == EXPONENTIAL else f"-by-{mechanism}"),
        (
            SPLITS,
            SCORES[score],
            MECHANISM[mechanism],
            *(f"dpmine.language.splits.{name}" for name in ("Subsets", "Thresholds", "Multiway", "Stay")),
        ),
        f"One row of another class joins {CROWD} of one class under {len(groups) - 1} candidates, and one holds it apart.",
        "1",
        schema,
        ([*[crowd] * CROWD, *[new] * lead], [*[crowd] * CROWD, *[new] * (lead + 1)]),
        ask,
        laws=(law(lead), law(lead + 1)),
        runs=5_000,
    )


def _split_points(score: str, calibration: str) -> AuditPair:
    """Split points of one numeric attribute: the rows of class no lie at 1, the few of class yes at 0."""
    grid = 128
    few = 3
    range_ = score_range(score, CROWD) * (2 if calibration == "generic" else 1)

    def law(rows: int) -> dict[Any, float]:
        apart = split_score(score, [(0, rows), (CROWD, 0)])
        together = split_score(score, [(CROWD, rows), (0, 0)])
        return by_group(exponential_law([apart] + [together] * (grid - 2), [1] * (grid - 1), 1 / range_), groups)

    groups = [RISING] + [OTHERS] * (grid - 2)

    def ask(private: PrivateTable) -> list[Outcome]:
        question = ChooseSplit(((Thresholds("size"),),), score, EXPONENTIAL, calibration)
        return [groups[chosen] for (chosen,) in answers(private, question, 1)]

    crowd = [{"size": 1, "ill": "no"}] * CROWD
    return AuditPair(
        f"split-points-by-{score}-{calibration}",
        (SPLITS, SCORES[score], "dpmine.language.splits.Thresholds", MECHANISM[EXPONENTIAL]),
        f"One more row of class yes at 0: only the lowest of {grid - 1} split points holds it apart from the crowd.",
        "1",
        copied_schema(
            100,
            Numeric("size", Decimal(0), Decimal(grid - 1), Decimal(1), Decimal(0)),
            ILL,
            class_attribute="ill",
            rows_at_most=CROWD,
        ),
        ([*crowd, *([{"size": 0, "ill": "yes"}] * few)], [*crowd, *([{"size": 0, "ill": "yes"}] * (few + 1))]),
        ask,
        laws=(law(few), law(few + 1)),
        runs=6_000,
    )


def _families_by_permute_and_flip() -> AuditPair:
    """A split in a family of its own and one in a family of 120 are equal; the new row makes the second better by one.

    Both must count once. An order drawn by the families' masses, with one flip a candidate, is not private: the first
    would come first 120 times out of 121, and the row would show in every time it is declined.
    """
    letters = Nominal("letter", LABELS, LABELS[0], missing=LABELS[0])
    flag = Nominal("flag", ("x", "y"), "x", missing="x")
    crowd: list[Row] = [{"letter": LABELS[-1], "flag": "x", "ill": "no"}] * 15
    ill: list[Row] = [{"letter": LABELS[0], "flag": "y", "ill": "yes"}] * 15
    families: tuple[Splits, ...] = (
        Multiway(AttributeKey("flag")),
        Subsets("letter", tuple((label,) for label in LABELS[:120])),
    )
    groups: list[Outcome] = ["flag", "letter", *["others"] * 119]

    def law(rows: int) -> dict[Any, float]:
        flagged = split_score("max", [(15, rows), (0, 15)])
        lettered = split_score("max", [(15, 0), (0, 15 + rows)])
        together = split_score("max", [(15, 15 + rows)])
        return by_group(permute_and_flip_law([flagged, lettered, *[together] * 119], 1.0), groups)

    def ask(private: PrivateTable) -> list[Outcome]:
        return [groups[chosen] for (chosen,) in answers(private, ChooseSplit((families,), "max", FLIP, "monotone"), 1)]

    return AuditPair(
        "families-by-permute-and-flip",
        (SPLITS, MECHANISM[FLIP], SCORES["max"], "dpmine.language.splits.Multiway", "dpmine.language.splits.Subsets"),
        "Two splits tie far above 119 others, and the new row makes the one with the smaller family share better by one.",
        "1",
        copied_schema(250, letters, flag, ILL, class_attribute="ill"),
        ([*crowd, *ill], [*crowd, *ill, {"letter": LABELS[0], "flag": "x", "ill": "yes"}]),
        ask,
        laws=(law(0), law(1)),
        runs=3_000,
    )


def _specialisations(score: str, mechanism: str) -> AuditPair:
    """Healthy red rows of size 1, blue ones of size 0 that are ill; the new row is red, of size 2 and ill.

    Among rows of size 1 and 2 it makes size tell who is ill: that candidate rises. Of all rows, it blurs what colour told:
    these candidates fall. So one row moves two candidates apart by up to twice the sensitivity, which is why R is 2S.
    """
    healthy, ill, others = (6, 60, 1) if score == "gini-gain" else (1, 1, 20)
    by_size = Divide("size", "1", "2") if score == "gini-gain" else Specialise(Bins("size", ("1", "2")), (1, 2))
    by_colour = Specialise(AttributeKey("colour"), (0, 1))
    groups: list[Outcome] = [RISING, *[OTHERS] * others]

    def law(new: int) -> dict[Any, float]:
        rising = split_score(score, [(healthy, 0), (0, new)])
        falling = split_score(score, [(healthy, new), (0, ill)])
        scores = [rising] + [falling] * others
        return by_group(_law_of(mechanism, scores, [1] * len(scores), 1 / score_range(score, 1)), groups)

    def ask(private: PrivateTable) -> list[Outcome]:
        question = ChooseSplit(((by_size, *[by_colour] * others),), score, mechanism, "monotone")
        return [groups[chosen] for (chosen,) in answers(private, question, 1)]

    rows: list[Row] = [{"colour": "red", "size": 1, "ill": "no"}] * healthy
    rows += [{"colour": "blue", "size": 0, "ill": "yes"}] * ill
    return AuditPair(
        f"specialisations-by-{score}" + ("" if mechanism == EXPONENTIAL else f"-by-{mechanism}"),
        (
            SPLITS,
            GAINS[score],
            MECHANISM[mechanism],
            "dpmine.language.splits.Specialise",
            *(["dpmine.language.splits.Divide"] if isinstance(by_size, Divide) else []),
        ),
        f"The row is about the rows of two candidates: it raises one gain and lowers all others ({others}).",
        "1",
        copied_schema(
            200 if score == "gini-gain" else 500,
            Nominal("colour", ("red", "blue"), "red", missing="red"),
            Numeric("size", Decimal(0), Decimal(2), Decimal(1), Decimal(0)),
            ILL,
            class_attribute="ill",
        ),
        (rows, [*rows, {"colour": "red", "size": 2, "ill": "yes"}]),
        ask,
        laws=(law(0), law(1)),
        runs=8_000,
    )


def _model(mechanism: str) -> AuditPair:
    """Model i says yes for letter i and no for all others."""
    letters = Nominal("letter", LABELS[:120], LABELS[0], missing=LABELS[0])
    models = tuple(
        Predicted(
            (ScoreSplit(Groups("letter", (Group(label, (label,)),), rest="rest"), (ScoreLeaf((0, 1)), ScoreLeaf((1, 0)))),),
            ("no", "yes"),
        )
        for label in letters.categories
    )
    groups = [RISING] + [OTHERS] * (len(models) - 1)

    def law(rows: int) -> dict[Any, float]:
        scores = [rows] + [0] * (len(models) - 1)
        return by_group(_law_of(mechanism, scores, [1] * len(models), 1.0), groups)

    def ask(private: PrivateTable) -> list[Outcome]:
        return [groups[chosen] for (chosen,) in answers(private, ChooseModel(models, mechanism, "monotone"), 1)]

    row = {"letter": LABELS[0], "ill": "yes"}
    return AuditPair(
        f"model-by-{mechanism}",
        (
            "dpmine.questions.choose_model.ChooseModel",
            MECHANISM[mechanism],
            "dpmine.language.model_keys.Predicted",
            "dpmine.kernel.scores.CountScore",
        ),
        "One model of 120 is right about the new row.",
        "1",
        copied_schema(250, letters, ILL, class_attribute="ill"),
        ([row] * 2, [row] * 3),
        ask,
        laws=(law(2), law(3)),
        runs=5_000,
    )
