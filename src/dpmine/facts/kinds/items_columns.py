"""Columns of lists: their table in a schema file, the codes of their items, and drafts of the alphabet."""

from typing import Any

import numpy as np

from dpmine.facts.encoding import Lists, smallest_type
from dpmine.facts.kinds.columns import ColumnInHand, ColumnKind, Proposal
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.sources import Source
from dpmine.facts.toml_tables import refuse_unknown_keys, texts_of, value_at

LIST_SEPARATOR = "|"
MOST_DRAFTED_ITEMS = 10_000
FIRST_ROWS = 100  # of a column of lists some of these show it


class ItemColumns(ColumnKind[ItemList, Lists]):
    name = ItemList.kind

    def read(self, name: str, table: dict[str, Any], where: str) -> ItemList:
        refuse_unknown_keys(table, {"kind", "items", "at_most", "separator"}, where)
        separator = value_at(table, "separator", str, where) if "separator" in table else LIST_SEPARATOR
        items = texts_of(table.get("items", []), f"{where}: 'items'")
        return ItemList(name, items, value_at(table, "at_most", int, where), separator)

    def encode(self, source: Source, attribute: ItemList) -> Lists:
        """Of each row the first `at_most` known items, in order."""
        rows: list[int] = []
        items: list[int] = []
        for row, texts in enumerate(source.lists(attribute.name, attribute.separator)):
            known = [attribute.codes[text] for text in texts if text in attribute.codes][: attribute.at_most]
            rows.extend([row] * len(known))
            items.extend(known)
        return Lists(np.array(rows, dtype=np.uint32), np.array(items, dtype=smallest_type(len(attribute.items))))

    def check(self, source: Source, attribute: ItemList) -> dict[str, int]:
        lists = source.lists(attribute.name, attribute.separator)
        known = [[item for item in row if item in attribute.codes] for row in lists]
        return {
            "unknown items, left out": sum(map(len, lists)) - sum(map(len, known)),
            f"rows with more than {attribute.at_most} items, cut": sum(len(row) > attribute.at_most for row in known),
        }

    def recognises(self, column: ColumnInHand) -> bool:
        """Nested values, or texts of which most have the separator."""
        nested = any(text.startswith("[") for text in column.texts[:FIRST_ROWS] if text)
        return nested or sum(LIST_SEPARATOR in text for text in column.distinct) * 2 > len(column.distinct)

    def propose(self, column: ColumnInHand) -> Proposal[ItemList]:
        lists = column.source.lists(column.name, LIST_SEPARATOR)
        items = sorted({item for row in lists for item in row})
        if not items:
            return Proposal(None, "its lists hold nothing")
        if len(items) > MOST_DRAFTED_ITEMS:
            return Proposal(None, "lists of too many different items")
        proposed = ItemList(column.name, tuple(items), max(map(len, lists)), LIST_SEPARATOR)
        return Proposal(proposed, "lists of items", "list and 'at_most' read from the data: state public ones")

    def domain(self, attribute: ItemList) -> str:
        return f"at most {attribute.at_most:,} of {len(attribute.items):,} items"
