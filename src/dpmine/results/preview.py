"""What a question would cost and how far off its answer would be, before anything is spent."""

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire_values import value


@value("preview")
class Preview:
    """A quote of the door, with its laws in words.

    Of the data set's cap it says only whether it has room: how much is left follows from what others asked.
    """

    cost: Epsilon
    remaining: Epsilon
    dataset_suffices: bool
    cached: bool
    expected_error: str

    def __str__(self) -> str:
        paid = "is free: it is already answered" if self.cached else f"costs epsilon {self.cost}"
        full = "" if self.cached or self.dataset_suffices else " The data set's cap has no room for it."
        return f"This query {paid}; epsilon {self.remaining} remains.{full} {self.expected_error}"
