"""Lists of items from a public alphabet."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.facts.kinds.kind import Listed, known_of
from dpmine.facts.kinds.nominal import MOST_CATEGORIES


@dataclass(frozen=True)
class ItemList(Listed):
    """A list-valued attribute over a public alphabet, such as a history of diagnoses.

    Unknown items are left out, and of each row only the first `at_most` known items count.
    """

    kind: ClassVar[str] = "items"

    items: tuple[str, ...]
    at_most: int
    separator: str = "|"

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= MOST_CATEGORIES or len(set(self.items)) != len(self.items):
            raise SchemaError(f"Attribute {self.name!r} must list 1 to {MOST_CATEGORIES} distinct items.")
        if any(not item.strip() for item in self.items):
            raise SchemaError(f"Attribute {self.name!r} lists an empty item.")
        if not 1 <= self.at_most <= 100_000:
            raise SchemaError(f"Attribute {self.name!r}: 'at_most' must be between 1 and 100000.")
        if not self.separator:
            raise SchemaError(f"Attribute {self.name!r}: 'separator' must not be empty.")

    @cached_property
    def codes(self) -> dict[str, int]:
        return {item: code for code, item in enumerate(self.items)}

    def code(self, text: str) -> int:
        if text not in self.codes:
            raise ExpressionError(f"{self.name!r} has no item {text!r}. The schema knows: {known_of(self.items)}.")
        return self.codes[text]

    def form(self) -> dict[str, Any]:
        return {"kind": self.kind, "items": list(self.items), "at_most": self.at_most, "separator": self.separator}
