"""What all private choices share."""

from dpmine.base.errors import RequestError
from dpmine.codes.answers import Quote
from dpmine.codes.choices import CALIBRATIONS, MECHANISMS
from dpmine.language.queries import Question
from dpmine.noise.laws import ChoiceLoss
from dpmine.noise.spread import loss_bound
from dpmine.results.receipts import CellReply


class Choice(Question):
    """One candidate chosen privately in each cell. `mechanism` and `calibration` say how."""

    mechanism: str
    calibration: str

    def check(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise RequestError(f"The mechanism must be one of {', '.join(MECHANISMS)}. Got {self.mechanism!r}.")
        if self.calibration not in CALIBRATIONS:
            raise RequestError(f"The calibration must be one of {', '.join(CALIBRATIONS)}. Got {self.calibration!r}.")


def choice_law(reply: CellReply) -> ChoiceLoss:
    """By how much less than the best the choice in a cell may score."""
    (law,) = reply.laws
    assert isinstance(law, ChoiceLoss)
    return law


def loss_sentence(quote: Quote, scope: str) -> str:
    (law,) = quote.laws[0]
    assert isinstance(law, ChoiceLoss)
    return f"In 95 % of the cases the choice is at most {loss_bound(law, 0.95):.3g} {scope} below the best."
