"""The label that most rows have, chosen privately: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.choices import check_choice
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey


@value("resolved-choose-label")
class ResolvedChooseLabel(ResolvedQuestion):
    """Of the first labels of the key the one that most rows have: the last one, of gaps, may stay out of the choice."""

    key: RowKey
    labels: int
    mechanism: str
    calibration: str

    def check(self, see: Checker, cells: int) -> None:
        see(self.key)
        require(1 <= self.labels <= self.key.size, "there are labels to choose from")
        check_choice(self.mechanism, self.calibration, self.labels)

    def counts(self, cells: int) -> int:
        return cells * self.key.size
