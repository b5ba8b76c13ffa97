"""What all private choices share."""

from dpmine.codes.domain import require

MOST_COPIES = 1_000_000  # equal candidates of permute-and-flip, which flips a coin for each


MECHANISMS = ("exponential", "permute-and-flip")


CALIBRATIONS = ("monotone", "generic")


def check_choice(mechanism: str, calibration: str, candidates: int) -> None:
    require(mechanism in MECHANISMS and calibration in CALIBRATIONS, "there is no such way to choose")
    require(mechanism == "exponential" or candidates <= MOST_COPIES, "permute-and-flip takes few candidates")
