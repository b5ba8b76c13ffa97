"""Pictures of experiments drawn: lines with bands of uncertainty, published numbers as open markers."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmine.base.errors import RequestError
from dpmine.reproduce.experiments import Outcome, Point, Setting
from dpmine.reproduce.pictures import BLACK, Picture, Style
from dpmine.reproduce.summaries import Row, summarise

BAND = 1.96  # standard errors to either side: 95 % of means lie within
RESOLUTION = 150  # dots per inch
LETTERS_AN_INCH = 18  # of a note; a longer line than the figure would push the legend away from the panels
TEXT, SOFT_TEXT = "#333333", "#5A5A5A"


def pyplot() -> Any:
    """matplotlib, drawing to files only; it comes with the extra `plots`."""
    try:
        import matplotlib
    except ImportError:
        raise RequestError("Drawing an experiment needs matplotlib. Run: pip install 'dpmine[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def draw(outcome: Outcome, folder: Path, ringed: Sequence[Row] = ()) -> list[Path]:
    """Write the picture of an experiment, or one for each page, and return the files; some means may wear a ring."""
    picture = outcome.experiment.picture
    rows = [row for row in summarise(outcome) if row.measure == picture.measure]
    files = []
    for page in _settings(outcome.points, picture.pages):
        ending = picture.ending if page is None else f"{picture.ending}.{picture.pages}-{page}"
        shown = [row for row in rows if _fits(row.point, picture.pages, page)]
        path = folder / f"{outcome.experiment.name}{ending}.png"
        files.append(_draw_page(outcome, shown, page, path, ringed))
    return files


def _draw_page(outcome: Outcome, rows: Sequence[Row], page: Setting | None, path: Path, ringed: Sequence[Row]) -> Path:
    picture = outcome.experiment.picture
    down, across = _settings(outcome.points, picture.rows), _settings(outcome.points, picture.columns)
    title = outcome.experiment.title if page is None else f"{outcome.experiment.title}, {picture.pages} {page}"
    sheet = Sheet(len(down), len(across))
    for i, low in enumerate(down):
        for j, side in enumerate(across):
            axes = sheet.panels[i][j]
            shown = [row for row in rows if _fits(row.point, picture.rows, low) and _fits(row.point, picture.columns, side)]
            for place, algorithm in enumerate(outcome.experiment.algorithms):
                line = [row for row in shown if row.algorithm == algorithm]
                draw_line(axes, line, picture, picture.style(algorithm, place))
            _draw_published(axes, outcome, shown)
            _draw_rings(axes, [row for row in shown if row in ringed], picture.x)
            named = [f"{n} {s}" for n, s in ((picture.rows, low), (picture.columns, side)) if s is not None]
            axes.set_title(", ".join(named), fontsize=9, color=TEXT)
    if picture.log_x:
        sheet.log_x(sorted({float(row.point[picture.x]) for row in rows if picture.x in row.point}))
    sheet.finish(title, picture.x_title, picture.y_title, notes(outcome, rows))
    return sheet.save(path)


def draw_line(axes: Any, rows: Sequence[Row], picture: Picture, style: Style) -> None:
    """The means of one algorithm; one that no value of the parameter along the axis belongs to is a level line."""
    for row in rows:
        if picture.x not in row.point:
            axes.axhline(row.mean, color=style.colour, linestyle=style.line, linewidth=1.3, label=row.algorithm)
    line = sorted((row for row in rows if picture.x in row.point), key=lambda row: float(row.point[picture.x]))
    if not line:
        return
    xs = [float(row.point[picture.x]) for row in line]
    if picture.bands:
        low, high = ([row.mean + side * BAND * row.standard_error for row in line] for side in (-1, 1))
        axes.fill_between(xs, low, high, color=style.colour, alpha=0.18, linewidth=0)
    marker = style.marker or ("_" if len(line) == 1 else "")  # a lone point without a marker would not be seen
    look = {"color": style.colour, "linestyle": style.line, "marker": marker}
    axes.plot(xs, [row.mean for row in line], **look, markersize=4, linewidth=1.5, label=line[0].algorithm)


def _draw_published(axes: Any, outcome: Outcome, rows: Sequence[Row]) -> None:
    picture = outcome.experiment.picture
    for place, algorithm in enumerate(outcome.experiment.algorithms):
        printed = [row.published for row in rows if row.algorithm == algorithm and row.published is not None]
        style = picture.style(algorithm, place)
        for found in printed:
            level = picture.x not in found.point  # stands at the left edge
            axes.errorbar(
                [0.0 if level else float(found.point[picture.x])],
                [found.mean],
                yerr=None if found.std is None else [BAND * found.std / math.sqrt(found.runs)],
                fmt=style.marker,
                color=style.colour,
                markerfacecolor="none",
                markersize=9,
                capsize=3,
                linewidth=1,
                clip_on=not level,
                **({"transform": axes.get_yaxis_transform()} if level else {}),
            )


def _draw_rings(axes: Any, rows: Sequence[Row], x: str) -> None:
    places = [float(row.point[x]) for row in rows], [row.mean for row in rows]
    axes.plot(*places, linestyle="none", marker="o", markersize=10, markerfacecolor="none", color=BLACK, linewidth=1)


def notes(outcome: Outcome, rows: Sequence[Row]) -> str:
    """What a reader must know: how many runs, what the bands are, what the open markers are."""
    picture = outcome.experiment.picture
    most = max((row.runs for row in rows), default=0)
    first = f"{outcome.experiment.source}; {most} {'run' if most == 1 else 'runs'} a point"
    if picture.bands and most > 1:
        first += "; bands: 95 % interval of the mean (lines share their samples: differences are surer than bands)"
    published = "open markers: published" if any(row.published is not None for row in rows) else ""
    return "\n".join(part for part in (first, published, picture.note) if part)


class Sheet:
    """A figure of equal panels with one legend, one title and a note below."""

    def __init__(self, rows: int, columns: int) -> None:
        single = rows == columns == 1
        size = (7.6, 4.9) if single else (min(3.4 * columns + 2.4, 18), 2.7 * rows + 1.7)
        self._figure, self.panels = pyplot().subplots(
            rows, columns, figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained"
        )
        for axes in self.panels.flat:
            axes.grid(axis="y", color="#E3E3E3", linewidth=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(colors=TEXT, labelsize=8)
            axes.xaxis.set_major_formatter(lambda tick, _: short(tick))

    def log_x(self, ticks: Sequence[float]) -> None:
        """A logarithmic axis with ticks at the values themselves, as many as fit."""
        from matplotlib.ticker import NullLocator

        shown = _thinned(ticks)
        for axes in self.panels.flat:
            axes.set_xscale("log")
            axes.set_xticks(shown, [short(tick) for tick in shown])
            axes.xaxis.set_minor_locator(NullLocator())

    def finish(self, title: str, x_title: str, y_title: str, note: str) -> None:
        figure = self._figure
        figure.suptitle(title, fontsize=11, color=TEXT, x=0.01, ha="left")
        if self.panels.size == 1:
            self.panels[0][0].set_xlabel(x_title, fontsize=9, color=TEXT)
            self.panels[0][0].set_ylabel(y_title, fontsize=9, color=TEXT)
        else:
            figure.supxlabel(x_title, fontsize=9, color=TEXT)
            figure.supylabel(y_title, fontsize=9, color=TEXT)
        named: dict[str, Any] = {}
        for axes in self.panels.flat:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                named.setdefault(label, handle)
        figure.legend(
            list(named.values()), list(named), loc="outside right upper", frameon=False, fontsize=8, handlelength=3.2
        )
        longest = int(LETTERS_AN_INCH * figure.get_figwidth())
        note = "\n".join(line for part in note.splitlines() for line in textwrap.wrap(part, longest))
        figure.text(0.01, -0.012, note, fontsize=7, color=SOFT_TEXT, va="top", ha="left", wrap=False)

    def save(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._figure.savefig(path, dpi=RESOLUTION, bbox_inches="tight", facecolor="white")
        pyplot().close(self._figure)
        return path


def _thinned(ticks: Sequence[float]) -> list[float]:
    """Ticks that are at least a fifth of a tenfold apart, so that their labels do not touch."""
    shown: list[float] = []
    for tick in ticks:
        if not shown or math.log10(tick / shown[-1]) >= 0.17:
            shown.append(tick)
    return shown


def short(number: float) -> str:
    """50000 as 50k, 0.5 as 0.5."""
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _settings(points: Sequence[Point], name: str | None) -> list[Setting | None]:
    """The values of a parameter in the order of the grid; for no parameter, one panel for all."""
    return [None] if name is None else list(dict.fromkeys(point[name] for point in points))


def _fits(point: Point, name: str | None, setting: Setting | None) -> bool:
    return name is None or name not in point or point[name] == setting
