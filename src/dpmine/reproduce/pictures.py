"""How the picture of an experiment is laid out: what goes along the axes and across panels, and how lines look.

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; markers differ too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"),
    "#7F7F7F",
)
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, GREY)
MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class Style:
    """How the line of one algorithm looks."""

    colour: str
    marker: str = "o"
    line: str = "-"


@dataclass(frozen=True)
class Picture:
    """What goes where: a parameter along the axis, further ones across panels and over several pictures."""

    x: str
    x_title: str
    y_title: str = "accuracy on the test set, %"
    measure: str = "accuracy"
    log_x: bool = False
    bands: bool = True
    columns: str | None = None
    rows: str | None = None
    pages: str | None = None
    note: str = ""
    ending: str = ""
    styles: Mapping[str, Style] = field(default_factory=dict)

    def style(self, algorithm: str, place: int) -> Style:
        return self.styles.get(algorithm, Style(PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]))
