"""A design problem as a page or a picture: candidates side by side, loss against epsilon, the chosen table, colluders.

All of it follows from public facts; nothing here has seen data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from dpmine.design.candidates import LAPLACE, PRIOR_ALONE, REMAP, Candidate
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.workbench import RUNS, Curve, Look, keeps_exactly
from dpmine.report.bar_charts import text_svg
from dpmine.report.drawing import COLOURS, FONTS, INK, PAPER
from dpmine.report.heat_maps import heat_map_shapes
from dpmine.report.html_parts import facts_list, html_table, html_text, page, section
from dpmine.report.line_charts import Line, LineChart, chart_shapes, legend_height, tall_chart_shapes
from dpmine.report.words import cut, many

CHART, HEAT_MAP, COLLUSION = (920.0, 380.0), (456.0, 380.0), (464.0, 380.0)
PHONE = (380.0, 330.0)  # of a figure of a page, which narrow screens do not shrink below what can be read
MARGIN, HEADING = 28.0, 22.0
LONGEST_TITLE = 96
EPSILON_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
FAMILIES = {
    "optimal": COLOURS[0],
    "geometric": COLOURS[1],
    "staircase": COLOURS[2],
    "randomised-response": COLOURS[3],
    "heuristic": COLOURS[4],
    LAPLACE: COLOURS[5],
    "risk-averse": COLOURS[6],
    PRIOR_ALONE: "#9A7B52",
}
REMAPPED, BESIDE = "6 4", "2 3"  # dashes of what is remapped, and of what is only there to compare with


@dataclass(frozen=True)
class _Figure:
    title: str
    words: str
    width: float
    height: float
    shapes: tuple[str, ...]

    def svg(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        label = f"<title>{escape(self.title)}</title><desc>{escape(self.words)}</desc>"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" color="{INK}" font-family="{FONTS}">'
        return f"{head}{label}{''.join(self.shapes)}</svg>"

    def html(self, for_phones: _Figure | None = None) -> str:
        head = f"<figcaption><h3>{html_text(self.title)}</h3></figcaption>"
        drawn = self.svg()
        if for_phones is not None:
            drawn = f'<div class="wide">{drawn}</div><div class="narrow">{for_phones.svg()}</div>'
        return f"<figure>{head}{drawn}<p>{html_text(self.words)}</p></figure>"


def mechanism_page(look: Look, version: str) -> str:
    """The page: facts, the candidates as a table, and three figures; on phones the first has its legend below."""
    title = "Designing noise for one answer"
    loss, small_loss = _loss_figure(look), _loss_figure(look, for_phones=True)
    matrix, collusion = _matrix_figure(look, PHONE), _collusion_figure(look, for_phones=True)
    sections = [
        section("The question", facts_list(_facts(look))),
        section("Mechanisms side by side", f"{_candidates(look)}<p>{html_text(look.chosen.why)}</p>"),
        section("At other epsilons", loss.html(small_loss)),
        section("The mechanism, and users who pool answers", f'<div class="grid">{matrix.html()}{collusion.html()}</div>'),
    ]
    footer = f"From public facts alone, made by dpmine {html_text(version)}."
    return page(title, f"<h1>{html_text(title)}</h1>", sections, footer)


def mechanism_svg(look: Look) -> str:
    """The three figures as one picture."""
    loss, matrix, collusion = _loss_figure(look), _matrix_figure(look, HEAT_MAP), _collusion_figure(look)
    width = loss.width + 2 * MARGIN
    top = MARGIN + 56
    below = top + HEADING + loss.height + 18
    height = below + HEADING + matrix.height + MARGIN / 2
    chosen = look.chosen.candidate
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" color="{INK}" font-family="{FONTS}">',
            f"<title>Designing noise: {escape(_question(look))}</title>",
            f"<desc>{escape(f'{loss.words} {matrix.words} {collusion.words}')}</desc>",
            f'<rect width="{width:g}" height="{height:g}" rx="10" fill="{PAPER}"/>',
            _heading(MARGIN, MARGIN + 14, f"Taken: {chosen.name}, expected loss {chosen.expected_loss:.4g}", 18),
            text_svg(MARGIN, MARGIN + 36, cut(_question(look), 130), "start", 12),
            *_placed(loss, MARGIN, top),
            *_placed(matrix, MARGIN, below),
            *_placed(collusion, MARGIN + matrix.width, below),
            "</svg>\n",
        ]
    )


def verdict(candidate: Candidate, look: Look) -> str:
    """What the exact check says of a candidate's epsilon; noise of real numbers is no table that could be checked."""
    kept = keeps_exactly(candidate, look.setting)
    return "real numbers" if kept is None else "kept exactly" if kept else "NOT KEPT"


def measured_epsilon(candidate: Candidate, look: Look) -> float | None:
    """The epsilon that the table needs; None where there is no table."""
    if not isinstance(candidate.mechanism, FiniteMechanism):
        return None
    return candidate.mechanism.epsilon(look.setting.sensitivity)


# -- parts ---------------------------------------------------------------------------------------------------------------


def _question(look: Look) -> str:
    return f"{look.setting}, prior {look.prior}, {look.prior.loss} loss"


def _facts(look: Look) -> list[tuple[str, object]]:
    setting = look.setting
    return [
        ("range", f"{setting.low} to {setting.high}"),
        ("grid", f"{many(setting.points, 'point')} in steps of {setting.step}"),
        ("sensitivity", f"{setting.sensitivity} ({many(setting.steps, 'step')})"),
        ("epsilon", setting.epsilon),
        ("prior", look.prior),
        ("loss", look.prior.loss),
        ("mechanism", look.chosen.candidate.name),
        ("chosen by", look.prior.by),
    ]


def _candidates(look: Look) -> str:
    pooled = [] if look.colluders is None else [f"error of {many(look.colluders, 'colluder')}"]
    rows = []
    for each in look.candidates:
        taken = each.name == look.chosen.candidate.name
        name = f"<strong>{html_text(each.name)}</strong> (taken)" if taken else html_text(each.name)
        errors = [f"{look.colluders_errors[each.name]:.3g}" if each.name in look.colluders_errors else ""] if pooled else []
        needed = measured_epsilon(each, look)
        shown = verdict(each, look) if needed is None else f"{needed:.4g}, {verdict(each, look)}"
        rows.append([name, f"{each.expected_loss:.4g}", f"{each.worst_loss:.4g}", shown, *errors, html_text(each.note)])
    header = ["mechanism", "expected loss", "worst loss", "epsilon", *pooled, "note"]
    caption = f"By rising expected {look.prior.loss} loss under the prior; worst: over the values that the prior allows"
    return html_table(caption, header, rows, "lrrl" + "r" * len(pooled) + "l")


def _chart_figure(title: str, words: str, chart: LineChart, size: tuple[float, float], *, for_phones: bool) -> _Figure:
    if not for_phones:
        return _Figure(title, words, *size, tuple(chart_shapes(chart, *size)))
    width, height = PHONE[0], PHONE[1] + legend_height(chart)
    return _Figure(title, words, width, height, tuple(tall_chart_shapes(chart, width, height)))


def _loss_figure(look: Look, *, for_phones: bool = False) -> _Figure:
    order = {each.name: place for place, each in enumerate(look.candidates)}
    curves = sorted(look.losses, key=lambda curve: order.get(curve.name, len(order)))
    lines = tuple(_line(_rooted(curve, look), thick=curve.name == look.chosen.candidate.name) for curve in curves)
    title = "root of the expected squared loss" if look.prior.loss == "squared" else f"expected {look.prior.loss} loss"
    here = float(look.setting.epsilon)
    chart = LineChart("epsilon", title, lines, EPSILON_TICKS, at=here)
    words = (
        f"The dotted line marks epsilon {look.setting.epsilon}; the legend runs from the least loss there to the largest."
    )
    return _chart_figure("Expected loss against epsilon", words, chart, CHART, for_phones=for_phones)


def _rooted(curve: Curve, look: Look) -> Curve:
    """Squared losses are drawn by their roots, in the units of the answer: large ones would press the others down."""
    return replace(curve, ys=tuple(map(math.sqrt, curve.ys))) if look.prior.loss == "squared" else curve


def _matrix_figure(look: Look, size: tuple[float, float]) -> _Figure:
    chosen = look.chosen.candidate
    assert isinstance(chosen.mechanism, FiniteMechanism)
    words = "Each row is the law of what is released when that value is true. Shade: square root of the probability."
    title = f"The mechanism taken: {chosen.name}"
    return _Figure(title, words, *size, tuple(heat_map_shapes(chosen.mechanism, *size)))


def _collusion_figure(look: Look, *, for_phones: bool = False) -> _Figure:
    lines = tuple(_line(curve, thick=curve.name == look.chosen.candidate.name) for curve in look.collusion)
    counts = tuple(lines[0].xs) if lines else ()
    chart = LineChart("colluders, one answer each", "mean distance of their guess", lines, counts)
    words = (
        f"k users pool answers of epsilon {look.setting.epsilon} each and take the likeliest true value ({RUNS:,} simulated "
        f"cases a point). A flat curve is no privacy: k answers cost k times epsilon."
    )
    return _chart_figure("Error against the number of colluders", words, chart, COLLUSION, for_phones=for_phones)


def _line(curve: Curve, *, thick: bool) -> Line:
    family = curve.name.removesuffix(REMAP)
    dash = REMAPPED if curve.name.endswith(REMAP) else BESIDE if family in (PRIOR_ALONE, LAPLACE) else ""
    return Line(curve.name, curve.xs, curve.ys, FAMILIES[family], dash, thick)


def _heading(x: float, y: float, text: str, size: float) -> str:
    words = escape(cut(text, LONGEST_TITLE))
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" font-weight="600" fill="currentColor">{words}</text>'


def _placed(figure: _Figure, left: float, top: float) -> list[str]:
    heading = _heading(left, top + 12, figure.title, 13.5)
    return [heading, f'<g transform="translate({left:g} {top + HEADING:g})">', *figure.shapes, "</g>"]
