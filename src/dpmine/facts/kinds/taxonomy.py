"""Public hierarchies over categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmine.base.errors import SchemaError


@dataclass(frozen=True)
class TaxonomyNode:
    """A node of a public hierarchy over categories; a node without children is a category."""

    name: str
    children: tuple[TaxonomyNode, ...] = ()

    def leaves(self) -> tuple[str, ...]:
        if not self.children:
            return (self.name,)
        return tuple(leaf for child in self.children for leaf in child.leaves())

    def nodes(self) -> tuple[TaxonomyNode, ...]:
        return (self, *(node for child in self.children for node in child.nodes()))

    @classmethod
    def parse(cls, name: str, form: Any) -> TaxonomyNode:
        """Nested tables; a list holds categories, null or an empty table is a category."""
        if isinstance(form, list) and all(isinstance(leaf, str) for leaf in form):
            return cls(name, tuple(cls(leaf) for leaf in form))
        if form is None or form == {}:
            return cls(name)
        if isinstance(form, dict):
            return cls(name, tuple(cls.parse(child, inner) for child, inner in form.items()))
        raise SchemaError(f"The taxonomy node {name!r} must be a table or a list of categories.")

    def form(self) -> Any:
        """The inverse of parse. Where one child is a table all are: TOML writes lists before tables."""
        if all(not child.children for child in self.children):
            return [child.name for child in self.children]
        forms = {child.name: child.form() for child in self.children}
        if any(isinstance(form, dict) for form in forms.values()):
            return {name: form if isinstance(form, dict) else {leaf: {} for leaf in form} for name, form in forms.items()}
        return forms
