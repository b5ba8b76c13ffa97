"""Class labels as users hold them: their type follows from the schema's words for the classes, never from rows.

A schema states classes as text. Where all of these are whole numbers a model speaks of numbers, where they are True and
False of truth, else of text; so one row's label can change neither the type of a prediction nor a field of a saved model.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.value_texts import text_of_value

LARGEST_LABEL = 2**63  # whole numbers from here on do not fit numpy's; such classes stay text
TRUTH = {"False": False, "True": True}
READ_AS: dict[str, Callable[[str], Any]] = {"int": int, "bool": TRUTH.__getitem__, "float": float}
"""By the kind of labels in a saved model; "float" is in older files only."""


def label_kind(classes: Sequence[str]) -> str:
    """Whether the schema's classes are whole numbers, truth, or text."""
    if all(text in TRUTH for text in classes):
        return "bool"
    return "int" if all(map(_is_whole, classes)) else "text"


def labels_as(classes: Sequence[str], kind: str) -> NDArray[Any]:
    """The schema's classes in the type that users hold them in, or an error if they are not of that kind."""
    if kind not in READ_AS:
        return np.array(classes, dtype=object)
    try:
        labels = [READ_AS[kind](text) for text in classes]
    except (ValueError, KeyError):
        labels = []
    if len(set(labels)) < len(classes):
        raise RequestError(f"The model's classes are {', '.join(map(repr, classes[:5]))}, which are not of type {kind}.")
    return np.array(labels)


def words_of(y: Any, classes: Sequence[str]) -> list[str | None]:
    """Each label of y in the schema's words, on its own; None where it is missing. Refuses by the shape of y alone.

    Under classes that are whole numbers True is 1 and 3.0 is 3; under True and False 1 is True. A label that is no class
    stays what it is, and counts as the schema's `other`, or as missing, like any other value.
    """
    kind = label_kind(classes)
    return [_word(item, kind) for item in _one_column(y)]


def codes_of(y: Any, target: Nominal) -> NDArray[np.intp]:
    """The code of each label of a public y, that of gaps where the schema gives it no class, as for private rows.

    Refuses labels of which not one is a class.
    """
    classes = target.categories
    words = words_of(y, classes)
    if words and not any(word in target.codes for word in words):
        raise RequestError(
            f"None of the labels in y is a class of the model: {', '.join(map(repr, classes[:5]))}. Give y in these words."
        )
    found = [target.empty_code if word is None else target.codes.get(word, target.unlisted_code) for word in words]
    return np.array(found, dtype=np.intp)


def _one_column(y: Any) -> Iterable[Any]:
    if len(getattr(y, "shape", (0,))) != 1 or isinstance(y, (str, bytes, dict)) or not hasattr(y, "__iter__"):
        raise RequestError("y must be one column: a list, an array or a series with one label for each row.")
    values: Iterable[Any] = y.tolist() if hasattr(y, "tolist") else y
    return values


def _is_whole(text: str) -> bool:
    return (
        text.removeprefix("-").isdecimal() and len(text) < 21 and str(int(text)) == text and abs(int(text)) < LARGEST_LABEL
    )


def _word(item: Any, kind: str) -> str | None:
    number = None if kind == "text" else _whole(item)
    if number is None or (kind == "bool" and number not in (0, 1)):
        return text_of_value(item)
    return str(number) if kind == "int" else str(bool(number))


def _whole(item: Any) -> int | None:
    """A number without a fraction, or a truth value, as an int; None for whatever is neither."""
    if isinstance(item, (bool, np.bool_)):
        return int(item)
    if not isinstance(item, (int, float, Decimal, np.integer, np.floating)):
        return None
    if isinstance(item, Decimal) and not item.is_finite():
        return None
    number: Any = item
    return int(number) if abs(number) < LARGEST_LABEL and number == int(number) else None
