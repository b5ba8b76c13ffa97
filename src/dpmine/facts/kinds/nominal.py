"""Nominal attributes: one of a list of public categories."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dpmine.base.errors import ExpressionError, SchemaError
from dpmine.facts.kinds.kind import DROP, MISSING, OWN, Single, known_of
from dpmine.facts.kinds.taxonomy import TaxonomyNode

MOST_CATEGORIES = 65_536


@dataclass(frozen=True)
class Nominal(Single):
    """An attribute with a public list of categories.

    other    what values not in the list become: one of the categories; None: they count as missing
    missing  what nulls become: "own", "drop", or one of the categories
    """

    kind: ClassVar[str] = "nominal"

    categories: tuple[str, ...]
    other: str | None = None
    taxonomy: TaxonomyNode | None = None
    missing: str = OWN

    def __post_init__(self) -> None:
        if not 1 <= len(self.categories) <= MOST_CATEGORIES:
            raise SchemaError(f"Attribute {self.name!r} must have 1 to {MOST_CATEGORIES} categories.")
        if len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"Attribute {self.name!r} lists a category twice.")
        if MISSING in (*self.categories, *self._inner_names):
            raise SchemaError(f"Attribute {self.name!r}: {MISSING!r} is the label of gaps. Call it otherwise.")
        if self.other is not None and self.other not in self.categories:
            raise SchemaError(f"Attribute {self.name!r}: 'other' must be one of its categories. Got {self.other!r}.")
        if self.missing not in (OWN, DROP, *self.categories):
            raise SchemaError(
                f'Attribute {self.name!r}: \'missing\' must be "own", "drop" or one of its categories. Got {self.missing!r}.'
            )
        if self.taxonomy is not None and sorted(self.taxonomy.leaves()) != sorted(self.categories):
            raise SchemaError(f"Attribute {self.name!r}: the taxonomy's leaves must be its categories, each once.")
        for node in self.taxonomy.nodes() if self.taxonomy is not None else ():
            if len({child.name for child in node.children}) != len(node.children):
                raise SchemaError(f"Attribute {self.name!r}: the taxonomy has two children of one name below {node.name!r}.")

    @property
    def _inner_names(self) -> tuple[str, ...]:
        return () if self.taxonomy is None else tuple(node.name for node in self.taxonomy.nodes() if node.children)

    @property
    def cells(self) -> int:
        return len(self.categories)

    @property
    def gap(self) -> str | None:
        return self.missing if self.missing in (OWN, DROP) else None

    @cached_property
    def codes(self) -> dict[str, int]:
        return {category: code for code, category in enumerate(self.categories)}

    @property
    def empty_code(self) -> int:
        """The code of rows without a value."""
        return self.codes[self.missing] if self.gap is None else self.cells

    @property
    def unlisted_code(self) -> int:
        """The code of values that are not in the list."""
        return self.empty_code if self.other is None else self.codes[self.other]

    def code(self, text: str) -> int:
        """The code of a category named in a request."""
        if text == MISSING:
            raise ExpressionError(f"Nothing compares with a gap. Write: {self.name} is missing.")
        if text not in self.codes:
            raise ExpressionError(f"{self.name!r} has no category {text!r}. The schema knows: {known_of(self.categories)}.")
        return self.codes[text]

    def place(self, text: str) -> int:
        """The code of a category, or of gaps by their label."""
        return self.cells if text == MISSING and self.gap is not None else self.code(text)

    def codes_of(self, text: str) -> tuple[int, int]:
        code = self.code(text)
        return code, code + 1

    def label(self, code: int) -> str:
        return self.categories[code] if code < self.cells else MISSING

    def describe(self) -> str:
        if self.cells == 1:
            return f"{self.categories[0]!r} is its only category"
        return f"its categories are {known_of(self.categories)}"

    def form(self) -> dict[str, Any]:
        form: dict[str, Any] = {"kind": self.kind, "categories": list(self.categories)}
        if self.other is not None:
            form["other"] = self.other
        form["missing"] = self.missing
        if self.taxonomy is not None:
            form["taxonomy"] = {self.taxonomy.name: self.taxonomy.form()}
        return form
