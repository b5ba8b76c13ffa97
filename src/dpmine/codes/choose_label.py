"""The label that most rows have, chosen privately: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.choices import check_choice
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey


@value("resolved-choose-label")
class ResolvedChooseLabel(ResolvedQuestion):
    """The value of the key that most rows have."""

    key: RowKey
    mechanism: str
    calibration: str

    def check(self, see: Checker, cells: int) -> None:
        see(self.key)
        check_choice(self.mechanism, self.calibration, self.key.size)

    def counts(self, cells: int) -> int:
        return cells * self.key.size
