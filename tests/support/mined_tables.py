"""Small tables to learn a class from: attributes of every kind, and rows whose class follows some of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.kind import Single
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.kinds.taxonomy import TaxonomyNode
from dpmine.facts.schema import Schema

Table = dict[str, list[Any]]
TAXONOMY = TaxonomyNode.parse("any", {"warm": ["red", "yellow"], "cold": ["blue", "green"]})


def schema_of(*, numeric: bool = True, classes: int = 2, lists: bool = False, rows_at_most: int = 1000) -> Schema:
    """Nominal attributes of 4 (with a taxonomy), 3, 2 categories and one, and numeric ones of 21, 8 and 2 grid points."""
    attributes: list[Nominal | Numeric | ItemList] = [
        Nominal("colour", ("red", "blue", "yellow", "green"), "red", TAXONOMY, missing="red"),
        Nominal("kind", ("a", "b", "c"), "a", missing="a"),
        Nominal("flag", ("no", "yes"), "no", missing="no"),
    ]
    if numeric:
        attributes += [
            Numeric("size", Decimal(0), Decimal(10), Decimal("0.5"), Decimal(0)),
            Numeric("age", Decimal(5), Decimal(12), Decimal(1), Decimal(5)),
            Numeric("half", Decimal(0), Decimal(1), Decimal(1), Decimal(0)),
        ]
    if lists:
        attributes += [ItemList("past", ("flu", "asthma"), 2), Nominal("constant", ("only",), "only", missing="only")]
    labels = tuple(f"c{number}" for number in range(classes))
    return Schema("mined", (*attributes, Nominal("class", labels, labels[0], missing=labels[0])), rows_at_most, "class")


def table_of(schema: Schema, rows: int, seed: int, *, clear: float = 0.75) -> Table:
    """Rows whose class follows warm or cold colours, the kind, and the size where there is one, most of the time."""
    draw = np.random.default_rng(seed)
    codes = {a.name: draw.integers(0, a.size, rows) for a in schema.singles}
    leaning = codes["colour"] % 2 + (codes["kind"] == 2)
    if "size" in codes:
        leaning = np.where(codes["size"] > 12, 0, leaning)
    classes = len(schema.class_labels)
    codes["class"] = np.where(draw.random(rows) < clear, leaning % classes, codes["class"])
    table: Table = {}
    for attribute in schema.attributes:
        if isinstance(attribute, ItemList):
            table[attribute.name] = ["|".join(attribute.items[: int(place)]) for place in draw.integers(0, 3, rows)]
        elif isinstance(attribute, Numeric):
            table[attribute.name] = [float(attribute.point(int(code))) for code in codes[attribute.name]]
        elif isinstance(attribute, Single):
            table[attribute.name] = [attribute.label(int(code)) for code in codes[attribute.name]]
    return table


def without_class(table: Table, target: str = "class") -> Table:
    return {name: column for name, column in table.items() if name != target}
