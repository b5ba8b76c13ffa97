"""How many lines of a table's files could not be read, and why: true counts, for the owner only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

UNREAD_AT_MOST = 0.01  # the share of lines that a check lets pass

NOT_CLOSED = "a quote that is never closed"
NO_OBJECT = "no JSON object"
NOT_DECODED = "bytes that are not {encoding}, each read as U+FFFD"
TOO_FEW = "fewer values than columns, the rest missing"
TOO_MANY = "more values than columns, the rest dropped"


Flat = Sequence[str | None]
"""The texts of rows, one row after the other: a list for each of a million rows would keep Python's collector busy."""


@dataclass(repr=False)
class LinesRead:
    """What became of the lines of text files; of other tables every row is read. A line counts under each of its reasons."""

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Lines that are no rows, by reason."""
    in_part: Counter[str] = field(default_factory=Counter)
    """Rows that do not say all that their lines said, by reason."""

    @property
    def lines(self) -> int:
        """Header, comments and empty lines are none of these."""
        return self.rows + self.left_out.total()

    @property
    def share(self) -> float:
        """The share of lines that were not read as they stand."""
        return min(1.0, (self.left_out.total() + self.in_part.total()) / self.lines) if self.lines else 0.0

    def form(self) -> dict[str, Any]:
        return {"lines": self.lines, "left_out": dict(self.left_out), "read_in_part": dict(self.in_part)}

    def sentences(self) -> list[str]:
        """For the owner; none where all was read as it stands."""
        told = (("left out", self.left_out), ("read in part", self.in_part))
        return [
            f"{counts.total()} of {self.lines} lines were {what}: "
            + "; ".join(f"{count} for {reason}" for reason, count in counts.items())
            + "."
            for what, counts in told
            if counts
        ]
