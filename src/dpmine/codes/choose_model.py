"""The model that is right about most rows, chosen privately: on codes."""

from dpmine.base.wire_values import value
from dpmine.codes.choices import check_choice
from dpmine.codes.domain import require
from dpmine.codes.queries import ResolvedQuestion
from dpmine.codes.rows import Checker, RowKey


@value("resolved-choose-model")
class ResolvedChooseModel(ResolvedQuestion):
    """The key whose label agrees with the target in most rows."""

    target: RowKey
    models: tuple[RowKey, ...]
    mechanism: str
    calibration: str

    def check(self, see: Checker, cells: int) -> None:
        see(self.target, *self.models)
        check_choice(self.mechanism, self.calibration, len(self.models))
        require(bool(self.models), "there are models to choose from")
        sizes = {self.target.size - model.size for model in self.models}
        require(sizes <= {0, 1}, "models predict the target's labels, but perhaps for the last, of gaps")

    def counts(self, cells: int) -> int:
        return cells * self.target.size * sum(model.size for model in self.models)
