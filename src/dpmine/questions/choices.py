"""What all private choices share."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.language.queries import Question

MOST_COPIES = 1_000_000  # equal candidates of permute-and-flip, which flips a coin for each
MECHANISMS = ("exponential", "permute-and-flip")
CALIBRATIONS = ("monotone", "generic")


class Choice(Question):
    """One candidate chosen privately in each cell. `mechanism` and `calibration` say how."""

    mechanism: str
    calibration: str

    def check(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise RequestError(f"The mechanism must be one of {', '.join(MECHANISMS)}. Got {self.mechanism!r}.")
        if self.calibration not in CALIBRATIONS:
            raise RequestError(f"The calibration must be one of {', '.join(CALIBRATIONS)}. Got {self.calibration!r}.")
