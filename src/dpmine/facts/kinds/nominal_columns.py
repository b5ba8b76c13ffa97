"""Columns of categories: their table in a schema file, their codes, and drafts with taxonomies made from names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import SchemaError
from dpmine.facts.encoding import Codes, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, Proposal, SingleColumns, table_of
from dpmine.facts.kinds.kind import DROP, OWN
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.nominal_drafts import propose_nominal
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import refuse_unknown_keys, texts_of, value_at

TAXONOMY_WARNING = (
    "#\n"
    "# Taxonomies are proposals, made from the categories' names alone: names that begin with the same words form a group.\n"
    "# Correct each by public knowledge, such as an official classification, or delete it; NAME = [] stands in no group.\n"
    "# Never group categories because they behave alike in the rows: that would reveal rows outside the budget.\n"
)
TAXONOMY_REMINDER = "# Proposed from names alone. Correct it by public knowledge, never by what the rows show.\n"


class NominalColumns(SingleColumns[Nominal]):
    name = Nominal.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> Nominal:
        refuse_unknown_keys(table, {"kind", "categories", "other", "taxonomy", "missing"}, where)
        categories = texts_of(table.get("categories", []), f"{where}: 'categories'")
        if not categories:
            raise SchemaError(f"{where} must list its categories.")
        other = value_at(table, "other", str, where) if "other" in table else None
        missing = value_at(table, "missing", str, where) if "missing" in table else OWN
        return Nominal(name, categories, other, _taxonomy(table.get("taxonomy"), where), missing)

    def write(self, attribute: Nominal, *, drafted: bool, gaps: bool = True) -> str:
        """The taxonomy is written apart, so that a comment can stand above it."""
        import tomli_w

        table = table_of(attribute, gaps=gaps)
        taxonomy = table.pop("taxonomy", None)
        text = "\n" + tomli_w.dumps({"attributes": {attribute.name: table}})
        if taxonomy is None:
            return text
        apart = tomli_w.dumps({"attributes": {attribute.name: {"taxonomy": taxonomy}}})
        return text + "\n" + (TAXONOMY_REMINDER if drafted else "") + apart

    def draft_warning(self, attribute: Nominal) -> str:
        return "" if attribute.taxonomy is None else TAXONOMY_WARNING

    def encode(self, source: Source, attribute: Nominal) -> Codes:
        """Known categories by code; a text that is not listed becomes `other`, or a gap as nulls are."""
        codes = source.category_codes(attribute.name, attribute.categories)
        if attribute.unlisted_code == attribute.empty_code:
            codes = np.where(codes < 0, attribute.empty_code, codes)
        elif np.any(codes < 0):
            empty = np.array([text is None for text in source.texts(attribute.name)], dtype=bool)
            codes = np.where(codes >= 0, codes, np.where(empty, attribute.empty_code, attribute.unlisted_code))
        return codes.astype(smallest_type(attribute.size))

    def shown(self, attribute: Nominal) -> NDArray[Any]:
        return np.array([*attribute.categories, None][: attribute.size], dtype=object)

    def check(self, source: Source, attribute: Nominal) -> dict[str, int]:
        codes = source.category_codes(attribute.name, attribute.categories)
        empty = sum(text is None for text in source.texts(attribute.name))
        unknown = int(np.sum(codes < 0)) - empty
        rest = "counted as missing" if attribute.other is None else f"sent to {attribute.other!r}"
        return {_missing(attribute.missing): empty, f"not listed, {rest}": unknown}

    def recognises(self, column: ColumnInHand) -> bool:
        """Any column can be read as categories: this kind is asked last."""
        return True

    def propose(self, column: ColumnInHand) -> Proposal[Nominal]:
        return propose_nominal(column)

    def domain(self, attribute: Nominal) -> str:
        if attribute.cells == 1:
            return f"one category: {attribute.categories[0]}"
        return (
            f"{attribute.cells:,} categories: {', '.join(attribute.categories[:3])}{', ...' if attribute.cells > 3 else ''}"
        )


def _missing(missing: str) -> str:
    return "missing" if missing in (OWN, DROP) else f"missing, sent to {missing!r}"


def _taxonomy(form: Any, where: str) -> TaxonomyNode | None:
    if form is None:
        return None
    if not isinstance(form, dict) or len(form) != 1:
        raise SchemaError(f"{where}: the taxonomy must be a table with one root.")
    ((root, inner),) = form.items()
    return TaxonomyNode.parse(root, inner)
