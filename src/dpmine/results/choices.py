"""What all private choices share in words."""

from __future__ import annotations

from dpmine.language.answers import Quote
from dpmine.noise.laws import ChoiceLoss


def loss_sentence(quote: Quote, scope: str) -> str:
    (law,) = quote.laws[0]
    assert isinstance(law, ChoiceLoss)
    return f"In 95 % of the cases the choice is at most {law.bound(0.95):.3g} {scope} below the best."
