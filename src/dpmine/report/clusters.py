"""Clusters as a table for a terminal: noisy sizes and centres in the attributes' own units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmine.report.words import ascii_text, clean, columns_of_text, cut, many

LONGEST_NAME = 20  # letters of an attribute
MOST_DECIMALS = 9


@dataclass(frozen=True)
class Measure:
    """An attribute that clusters lie in, and its public bounds."""

    name: str
    low: float
    high: float

    def words(self, value: float) -> str:
        """A value with as many decimals as tell a thousandth of the range."""
        decimals = min(max(3 - math.floor(math.log10(self.high - self.low)), 0), MOST_DECIMALS)
        text = f"{value:,.{decimals}f}"
        return text.removeprefix("-") if not any(digit in text for digit in "123456789") else text


def clusters_text(
    measures: Sequence[Measure], centres: NDArray[np.float64], sizes: NDArray[np.float64], *, unicode: bool = True
) -> str:
    """A line for each cluster, largest first as they are numbered. With `unicode=False` in ASCII only."""
    names = [cut(clean(measure.name), LONGEST_NAME) for measure in measures]
    head = ["cluster", "rows", "share", *(names if unicode else map(ascii_text, names))]
    everyone = max(float(sizes.sum()), 1e-300)
    lines = [head]
    for number, (centre, size) in enumerate(zip(centres, sizes, strict=True)):
        places = [measure.words(float(value)) for measure, value in zip(measures, centre, strict=True)]
        lines.append([str(number), f"{size:,.0f}", f"{size / everyone:.1%}", *places])
    widths = [max(map(columns_of_text, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(_right(cell, width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def left_out_words(names: Sequence[str]) -> str:
    """A line about attributes in which rows may lack a value."""
    listed = ", ".join(clean(name) for name in names)
    return (
        f"Rows without a value in {listed} are left out."
        if len(names) == 1
        else f"Rows without a value in any of {listed} are left out."
    )


def cluster_words(number: int, measures: Sequence[Measure], centre: NDArray[np.float64], size: float) -> str:
    """A cluster in a few lines, for a tooltip."""
    places = (
        f"{clean(measure.name)} {measure.words(float(value))}" for measure, value in zip(measures, centre, strict=True)
    )
    return "\n".join([f"cluster {number}: about {many(round(size), 'row')}", *places])


def _right(text: str, columns: int) -> str:
    return " " * (columns - columns_of_text(text)) + text
