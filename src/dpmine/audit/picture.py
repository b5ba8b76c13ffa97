"""The picture of an audit: for every pair what is claimed and what was measured."""

from pathlib import Path
from typing import Any

from dpmine.audit.running import Audit
from dpmine.base.errors import RequestError

CLAIMED, MEASURED, WRONG = "#17202A", "#56B4E9", "#D55E00"  # which people with any kind of colour vision can tell apart


def pyplot() -> Any:
    """matplotlib without a screen, or how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise RequestError("The picture needs matplotlib. Run: pip install 'dpmine[plots]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def write_picture(audit: Audit, path: Path) -> None:
    """Claimed against measured, as a share of the claim, one line a pair."""
    plt = pyplot()
    names = [found.pair.name for found in audit.findings]
    shares = [found.measured / found.pair.claimed for found in audit.findings]
    colours = [MEASURED if found.passed else WRONG for found in audit.findings]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.24 * len(names)))
    places = range(len(names))
    axes.barh(places, shares, color=colours, height=0.7)
    axes.axvline(1, color=CLAIMED, linewidth=2)
    aside = max([1.0, *shares]) * 1.02
    for place, found in zip(places, audit.findings, strict=True):
        axes.text(aside, place, f"{found.measured:.3g} of {found.pair.claimed:g}", va="center", fontsize=8, color="black")
    axes.set_xlim(0, aside * 1.16)
    axes.set_yticks(list(places), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("measured lower bound on epsilon, as a share of the claim")
    axes.set_title(f"dpmine audit --{audit.mode.name}: a bar beyond the line would refute the claim", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
