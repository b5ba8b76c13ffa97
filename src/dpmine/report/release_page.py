"""One page about a released table: for anyone, or, with true numbers beside the released ones, for its owner alone.

The public page is built from the sheet, the released bars and what was bought: no function of this module is ever given a
table, and only `owner_page` takes numbers that were computed from rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.report.bar_charts import Series, bars_svg, columns_svg, interval_words, share_words
from dpmine.report.html_parts import facts_list, html_table, html_text, page, section
from dpmine.report.words import many

OWNER_ONLY = "OWNER ONLY: computed from true rows, not private, do not publish"
LONG_LIST = 12  # values of a cut that are shown at once


@dataclass(frozen=True)
class ReleasedBars:
    """How many released records each bar of an attribute has."""

    attribute: str
    is_numeric: bool
    labels: tuple[str, ...]
    records: tuple[float, ...]


@dataclass(frozen=True)
class NoisyBars:
    """The same bars, counted among the private rows and paid for: each within `half_width` in 95 % of the cases."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    half_width: int


@dataclass(frozen=True)
class NoisyJudgement:
    """What a model that learned from the release is worth on the private rows, paid for.

    confusion  noisy counts of predicted (rows) by true class (columns)
    accuracy   the share of right predictions, and the ends of its interval
    majority   about the accuracy of always answering the most frequent class
    """

    learner: str
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    half_width: int
    accuracy: tuple[float, float, float]
    majority: float


@dataclass(frozen=True)
class PaidCheck:
    """Noisy numbers about the private rows, bought to be published."""

    epsilon: str
    bars: Mapping[str, NoisyBars]
    judgement: NoisyJudgement


@dataclass(frozen=True)
class SelfTest:
    """A model that learned from a part of the released records, tried on the others: released numbers alone."""

    learner: str
    accuracy: float
    majority: float


@dataclass(frozen=True)
class TrueUtility:
    """Accuracies on true rows of a model that learned from true rows and of one that learned from the release."""

    learner: str
    from_rows: float
    from_release: float


@dataclass(frozen=True)
class OwnerView:
    """TRUE NUMBERS, for the owner alone: rows in each bar, and accuracies on a test part of the rows."""

    bars: Mapping[str, tuple[int, ...]]
    utility: tuple[TrueUtility, ...]
    majority: float
    taught_rows: int
    test_rows: int


DRAFTED = "The schema was drafted from the rows, outside the budget: the epsilon below does not cover what it says."


def release_page(
    sheet: Mapping[str, Any], bars: Sequence[ReleasedBars], self_test: SelfTest, check: PaidCheck | None = None
) -> str:
    """The public page: released numbers, and those that were paid for."""
    figures = [_public_figure(one, check) for one in bars]
    sections = [
        _facts(sheet, check),
        _meaning(sheet),
        _cuts(sheet),
        section("Distributions", f"<p>{_distribution_words(check)}</p>{_legend(check)}{_grid(figures)}"),
        _public_utility(sheet, self_test, check),
        _budget(sheet, check),
    ]
    title = f"{sheet['dataset']}: a released table"
    warning = f'<p class="banner" role="alert">{html_text(DRAFTED)}</p>' if sheet.get("schema_drafted") else ""
    return _page(title, "", f"{warning}<h1>{html_text(title)}</h1>", sections, sheet)


def owner_page(sheet: Mapping[str, Any], bars: Sequence[ReleasedBars], view: OwnerView) -> str:
    """The owner's page: true numbers beside the released ones, and a warning wherever they stand."""
    figures = [_owner_figure(one, view.bars[one.attribute]) for one in bars]
    words = "<p>Shares of the true rows (before) and of the released records (after), value by value.</p>"
    sections = [
        _facts(sheet, None),
        _cuts(sheet),
        section("Before and after", f"{words}{_legend_of('after: released', 'before: true rows')}{_grid(figures)}"),
        _owner_distances(bars, view),
        _owner_utility(view),
    ]
    title = f"{sheet['dataset']}: the released table and the true one"
    banner = f'<p class="banner" role="alert">{OWNER_ONLY}</p>'
    return _page(f"OWNER ONLY - {title}", "owner", f"{banner}<h1>{html_text(title)}</h1>", sections, sheet)


def distance(some: Sequence[float], others: Sequence[float]) -> float:
    """The total variation distance of two distributions: the largest difference of any set's share."""
    return sum(abs(one - other) for one, other in zip(shares_of(some), shares_of(others), strict=True)) / 2


def shares_of(counts: Sequence[float]) -> tuple[float, ...]:
    """Counts as shares of their sum; all 0 where noise left nothing."""
    total = sum(counts)
    return tuple(count / total if total > 0 else 0.0 for count in counts)


# -- the parts of a page ---------------------------------------------------------------------------------------------


def _facts(sheet: Mapping[str, Any], check: PaidCheck | None) -> str:
    privacy, counts = sheet["privacy"], sheet["counts"]
    half_width = counts.get("off_by_at_most_in_95_percent")
    facts = [
        ("algorithm", sheet["algorithm"]),
        ("epsilon of the release", privacy["epsilon_disclosed"]),
        *([("epsilon of the check on this page", check.epsilon)] if check else []),
        ("released records (noisy)", f"{sheet['records']:,}"),
        ("groups shown", f"{sheet['groups']:,}"),
        *([] if half_width is None else [("noise of 95 % of all counts, shown or not, at most", f"{half_width:,}")]),
        ("rows", sheet["rows"]),
        ("date", sheet["date"]),
    ]
    return section("What was released", facts_list(facts))


def _meaning(sheet: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{html_text(sentence)}</li>" for sentence in sheet["meaning"])
    return section("How to read it", f"<ul>{items}</ul>")


def _cuts(sheet: Mapping[str, Any]) -> str:
    rows = []
    for name, form in sheet["attributes"].items():
        values = [value["name"] for value in form["values"]]
        listed = ", ".join(map(html_text, values[:LONG_LIST]))
        if len(values) > LONG_LIST:
            rest = ", ".join(map(html_text, values[LONG_LIST:]))
            listed += f"<details><summary>and {len(values) - LONG_LIST:,} more</summary>{rest}</details>"
        rows.append([_named(name, form), f"{len(values):,}", listed])
    table = html_table("The values of each attribute in the released table", ["attribute", "values", "which"], rows, "lrl")
    return section("How far values were generalised", table)


def _named(name: str, form: Mapping[str, Any]) -> str:
    """An attribute with the unit of its numbers and what the schema says of it."""
    unit = f" ({html_text(form['measured_in'])})" if "measured_in" in form else ""
    return f"{html_text(name)}{unit}" + (f"<br>{html_text(form['description'])}" if "description" in form else "")


def _public_figure(bars: ReleasedBars, check: PaidCheck | None) -> str:
    series = [Series("released", shares_of(bars.records))]
    header, columns = ["value", "released records"], [[f"{count:,.0f}" for count in bars.records]]
    if check is not None:
        noisy = check.bars[bars.attribute]
        total = sum(noisy.counts)
        off_by = noisy.half_width / total if total > 0 else 0.0
        series.append(Series("checked", shares_of(noisy.counts), off_by))
        header.append(f"noisy count of rows (±{noisy.half_width:,})")
        columns.append([f"{count:,}" for count in noisy.counts])
    rows = [list(row) for row in zip(map(html_text, bars.labels), *columns, strict=True)]
    table = html_table(f"{bars.attribute}: released records", header, rows, "lrr")
    return _figure(bars, series, "", table)


def _owner_figure(bars: ReleasedBars, true_rows: Sequence[int]) -> str:
    series = [Series("released", shares_of(bars.records)), Series("true rows", shares_of(true_rows))]
    away = f"Total variation distance {share_words(distance(bars.records, true_rows))}."
    rows = [
        [html_text(label), f"{record:,.0f}", f"{row:,}"]
        for label, record, row in zip(bars.labels, bars.records, true_rows, strict=True)
    ]
    table = html_table(f"{bars.attribute}: {OWNER_ONLY}", ["value", "released records", "true rows"], rows, "lrr")
    return _figure(bars, series, f"<p>{away}</p>{_mark()}", table)


def _figure(bars: ReleasedBars, series: Sequence[Series], more: str, table: str) -> str:
    title = f"Distribution of {bars.attribute}"
    if bars.is_numeric:
        ends = [label.split(" ")[0] for label in bars.labels]
        picture = columns_svg(title, bars.labels, ends, series)
    else:
        picture = bars_svg(title, bars.labels, series)
    numbers = f"<details><summary>numbers</summary>{table}</details>"
    return f"<figure><figcaption><h3>{html_text(bars.attribute)}</h3></figcaption>{picture}{more}{numbers}</figure>"


def _distribution_words(check: PaidCheck | None) -> str:
    words = (
        "Shares of the released records; the class comes first. Where values were generalised, records are spread over the "
        "values that theirs stands for, as rows drawn back into the raw domains are on average."
    )
    if check is None:
        return words
    return (
        f"{words} Beside them, checked against the rows at epsilon {html_text(check.epsilon)}: noisy counts that were paid "
        "for; the thin lines are their 95 % intervals, each on its own."
    )


def _public_utility(sheet: Mapping[str, Any], self_test: SelfTest, check: PaidCheck | None) -> str:
    counts = sheet["counts"]
    measures = [
        ("shown", "counts shown", ",d"),
        ("possible", "counts possible", ",d"),
        ("standard_deviation", "standard deviation of the noise in a count, in records", ",g"),
        ("off_by_at_most_in_95_percent", "noise of 95 % of all counts, shown or not, at most", ",d"),
        ("threshold", "smallest count shown", ",d"),
        ("empty_but_shown_at_most_about", "counts shown without any true record, at most about", ",.0f"),
        ("records_in_those_at_most_about", "released records in those, at most about", ",.0f"),
    ]
    rows = [[words, format(counts[name], style)] for name, words, style in measures if name in counts]
    rows += [
        [f"{html_text(self_test.learner)}, learned from and tried on released records", share_words(self_test.accuracy)],
        ["always the most frequent class, on released records", share_words(self_test.majority)],
    ]
    if check is not None:
        learner = f"{html_text(check.judgement.learner)}, learned from the release and tried on the rows"
        rows += [
            [
                f"{learner}; checked against the rows at epsilon {html_text(check.epsilon)} (95 % interval of noise)",
                interval_words(*check.judgement.accuracy),
            ],
            ["always the most frequent class, on the rows, about", share_words(check.judgement.majority)],
        ]
    table = html_table("Utility", ["measure", "value"], rows, "lr")
    return section("What it is good for", table + ("" if check is None else _confusion(check)))


def _confusion(check: PaidCheck) -> str:
    judged = check.judgement
    caption = (
        f"Checked against the rows at epsilon {check.epsilon}: noisy counts of predicted by true class, each within "
        f"{judged.half_width:,} in 95 % of the cases"
    )
    rows = [
        [f"predicted {html_text(name)}", *(f"{count:,}" for count in counts)]
        for name, counts in zip(judged.classes, judged.confusion, strict=True)
    ]
    header = ["", *(f"truly {name}" for name in judged.classes)]
    return html_table(caption, header, rows, "l" + "r" * len(judged.classes))


def _budget(sheet: Mapping[str, Any], check: PaidCheck | None) -> str:
    plan = sheet["privacy"]["plan"]
    rows = [
        [html_text(step["what"]), html_text(step["epsilon"]), f"{step['times']:,}", html_text(step["cost"])]
        for step in plan["steps"]
    ]
    costs = [Epsilon.parse(plan["cost"])]
    if check is not None:
        costs.append(Epsilon.parse(check.epsilon))
        rows.append(["check of this page against the rows", "", "", html_text(check.epsilon)])
    together = Epsilon(sum(cost.units for cost in costs))
    rows.append([f"together, to {html_text(sheet['privacy']['neighbours'])}", "", "", str(together)])
    table = html_table(f"Budget plan of {plan['algorithm']}", ["step", "epsilon", "times", "cost"], rows, "lrrr")
    return section("How the budget was planned", table)


def _owner_distances(bars: Sequence[ReleasedBars], view: OwnerView) -> str:
    rows = [[html_text(one.attribute), share_words(distance(one.records, view.bars[one.attribute]))] for one in bars]
    table = html_table(f"Total variation distances. {OWNER_ONLY}", ["attribute", "distance"], rows, "lr")
    return section("How far the distributions moved", f"{_mark()}{table}")


def _owner_utility(view: OwnerView) -> str:
    rows = [[html_text(one.learner), share_words(one.from_rows), share_words(one.from_release)] for one in view.utility]
    rows.append(["always the most frequent class", share_words(view.majority), ""])
    header = ["learner", "learned from true rows", "learned from the release"]
    table = html_table(f"Accuracy on a test part of the true rows. {OWNER_ONLY}", header, rows, "lrr")
    words = (
        f"<p>A random third of the rows ({many(view.test_rows, 'row')}) is the test part; {view.taught_rows:,} others "
        "taught the first column. The release was made from all rows, the test part among them.</p>"
    )
    return section("What it is good for", f"{_mark()}{words}{table}")


# -- HTML ------------------------------------------------------------------------------------------------------------


def _page(title: str, kind: str, head: str, sections: Sequence[str], sheet: Mapping[str, Any]) -> str:
    footer = f"Schema {html_text(sheet['schema_fingerprint'][:16])}…, made by dpmine {html_text(sheet['dpmine'])}."
    return page(title, head, sections, footer, kind=kind)


def _grid(figures: Sequence[str]) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'


def _legend(check: PaidCheck | None) -> str:
    return "" if check is None else _legend_of("released", f"checked against the rows at epsilon {check.epsilon}")


def _legend_of(first: str, second: str) -> str:
    return (
        f'<p class="legend"><span class="swatch first"></span>{html_text(first)} '
        f'<span class="swatch second"></span>{html_text(second)}</p>'
    )


def _mark() -> str:
    return f'<p class="mark">{OWNER_ONLY}</p>'
