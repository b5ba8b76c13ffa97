"""The label that most rows have, chosen privately."""

from __future__ import annotations

from dpmine.base.errors import RequestError
from dpmine.base.wire_values import value
from dpmine.language.keys import Key
from dpmine.language.queries import ResolvedQuestion
from dpmine.language.resolved import RowKey
from dpmine.language.resolver import Resolver
from dpmine.questions.choices import MOST_COPIES, Choice


@value("choose-label")
class ChooseLabel(Choice):
    """The label of a key that most rows have; the score of a label is its count."""

    key: Key
    mechanism: str
    calibration: str

    def __post_init__(self) -> None:
        self.check()

    def resolve(self, resolver: Resolver, cells: int) -> ResolvedChooseLabel:
        key = resolver.key(self.key)
        if self.mechanism == "permute-and-flip" and key.size > MOST_COPIES:
            raise RequestError(f"Permute-and-flip takes at most {MOST_COPIES} candidates. Use the exponential mechanism.")
        return ResolvedChooseLabel(key, self.mechanism, self.calibration)


@value("resolved-choose-label")
class ResolvedChooseLabel(ResolvedQuestion):
    """The value of the key that most rows have."""

    key: RowKey
    mechanism: str
    calibration: str

    def counts(self, cells: int) -> int:
        return cells * self.key.size
