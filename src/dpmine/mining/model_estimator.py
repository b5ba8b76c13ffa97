"""Estimators that fit a model, whatever it learned: it is saved as JSON, told as text, drawn, and predicts rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema
from dpmine.mining.estimators import Estimator, Found

FORMAT, FORMAT_VERSION = "dpmine model", 2
LONGEST_FILE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Predictions:
    """What is written for the rows of a public table: columns by name, and by its kind what may be predicted."""

    columns: dict[str, Sequence[object]]
    outcomes: dict[str, list[Any]]


class ModelEstimator(Estimator[Found]):
    """An estimator whose fitted models are files too."""

    # -- what a kind of model brings ----------------------------------------------------------------------------------

    def learned(self) -> dict[str, Any]:
        """What fitting found, as plain JSON."""
        raise NotImplementedError

    def read(self, form: dict[str, Any]) -> None:
        """The inverse of `learned`, with `schema_` and `cost_` known. Refuses what no fit could have found."""
        raise NotImplementedError

    def to_text(self) -> str:
        """The model for a terminal."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """The model as a picture."""
        raise NotImplementedError

    def predictions(self, X: Any) -> Predictions:
        """What `dpmine predict` writes for the rows of a public table."""
        raise NotImplementedError

    # -- saved --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model as JSON; `dm.load` reads it back."""
        try:
            Path(path).write_text(json.dumps(self.to_json(), indent=1, default=_plain) + "\n", encoding="utf-8")
        except OSError as error:
            raise RequestError(f"Cannot write {str(path)!r}: {error.strerror}.") from None

    def to_json(self) -> dict[str, Any]:
        """The fitted model as plain JSON: parameters, public facts and noisy numbers."""
        learned = self.learned()
        params = {name: str(item) if name == "epsilon" else item for name, item in self.get_params().items()}
        params.pop("schema")
        head = {"format": FORMAT, "version": FORMAT_VERSION, "algorithm": type(self).__name__, "params": params}
        return head | {"cost": str(self.cost_), "schema": self.schema_.to_toml()} | learned

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        model = cls(**form["params"])
        model.cost_ = Epsilon.parse_or_zero(form["cost"], name="cost")
        model.schema_ = Schema.from_toml(form["schema"], where="the model's schema")
        model.read(form)
        return model


def _plain(item: Any) -> Any:
    """numpy's numbers among the parameters, as JSON knows them."""
    if isinstance(item, np.generic):
        return item.item()
    raise TypeError(f"{type(item).__name__} cannot be saved")
