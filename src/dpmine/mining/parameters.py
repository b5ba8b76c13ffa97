"""An estimator's parameters as scikit-learn's users know them, and the checks that they pass before anything is spent."""

import dataclasses
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

from dpmine.base.errors import RequestError
from dpmine.facts.schema import Schema


class Parameters:
    """The fields of a dataclass as parameters: read, changed and shown by name, stored as given."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter names and values; `deep` is for scikit-learn, no parameter holds further ones."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change parameters; what was fitted stays as it is until the next fit."""
        known = self.get_params()
        for name, setting in params.items():
            if name not in known:
                raise RequestError(f"{type(self).__name__} has no parameter {name!r}. It has {', '.join(known)}.")
            setattr(self, name, setting)
        return self

    def __repr__(self) -> str:
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            setting = getattr(self, field.name)
            if setting != field.default:
                shown.append(f"{field.name}={setting.name if isinstance(setting, Schema) else setting!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def check_number(name: str, number: object, low: float, high: float, *, whole: bool = False) -> None:
    """A parameter must be a number in a range, or the error says which one is not."""
    kind = Integral if whole else Real
    if isinstance(number, bool) or not isinstance(number, kind) or not low <= float(number) <= high:
        sort = "a whole number" if whole else "a number"
        raise RequestError(f"{name} must be {sort} from {low:g} to {high:g}. Got {number!r} instead.")


def check_word(name: str, word: object, allowed: Sequence[str]) -> None:
    """A parameter must be one of a few words."""
    if word not in allowed:
        raise RequestError(f"{name} must be one of {', '.join(allowed)}. Got {word!r} instead.")


def check_seed(seed: object) -> None:
    """The seed of public choices, or None. Checked before anything is spent: what needs it comes last."""
    if seed is not None:
        check_number("seed", seed, 0, 2**63, whole=True)
