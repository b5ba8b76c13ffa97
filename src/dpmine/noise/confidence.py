"""How sure an interval is."""

from dpmine.base.errors import RequestError


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise RequestError(f"The confidence must be between 0 and 1. Got {confidence} instead.")
