"""Splitting criteria: which of them a private choice can use."""

from dpmine.base.errors import RequestError
from dpmine.mining.parameters import check_word

PUBLISHED_SCORES = ("max", "gini", "infogain")


def check_criterion(criterion: str, allowed: tuple[str, ...] = PUBLISHED_SCORES) -> None:
    """Refuse, before anything is spent, a splitting criterion that the exponential mechanism cannot use."""
    if "".join(letter for letter in str(criterion).lower() if letter.isalpha()) == "gainratio":
        raise RequestError(
            "The gain ratio divides by the information value, which can be as small as you like: its sensitivity has no "
            "bound, so no noise can protect it. Use max, gini or infogain."
        )
    check_word("criterion", criterion, allowed)
