"""Persons who own several rows: at most k of them count, chosen once, before any view.

Of each person the k rows with the smallest keyed hash of name and values are kept; rows with equal hashes are ordered by
their values, and identical rows are interchangeable. (With the name in the hash, no kind of row is preferred throughout.)
So which rows stay depends on that person's own rows and the key, not on row order, duplicates elsewhere or other persons:
adding or removing a person changes at most k rows of what is left.
"""

import numpy as np
from numpy.typing import NDArray

from dpmine.engines.encoding import EncodedTable, Persons, list_ranks, turns
from dpmine.engines.hashing import person_row_hashes
from dpmine.facts.encoding import Lists

SALT = "rows of a person"


def capped(table: EncodedTable, split_key: bytes) -> EncodedTable:
    """The table in which every person owns at most `at_most` rows; itself where the unit is a row."""
    if table.persons is None:
        return table
    kept = _kept(table, table.persons, split_key)
    columns = {name: column[kept] for name, column in table.values.items()}
    lists = {name: _kept_lists(column, kept) for name, column in table.lists.items()}
    return EncodedTable(table.schema, int(kept.sum()), columns, lists, table.encoding)


def _kept(table: EncodedTable, persons: Persons, split_key: bytes) -> NDArray[np.bool_]:
    """Whether each row is among those of its person that count."""
    ranks = [list_ranks(column, table.rows) for column in table.lists.values()]
    values = [values.astype(np.int64) for values in table.values.values()]
    # The last key of lexsort is the first to decide: person, then hash, then values and lists in order, as SQL has them.
    hashes = person_row_hashes(table, persons.hashes, split_key, SALT)
    order = np.lexsort((*reversed(ranks), *reversed(values), hashes, persons.numbers))
    ordered = persons.numbers[order]
    kept = np.zeros(table.rows, dtype=bool)
    kept[order] = (turns(ordered) < table.schema.unit.at_most) & (ordered >= 0)
    return kept


def _kept_lists(column: Lists, kept: NDArray[np.bool_]) -> Lists:
    place = np.cumsum(kept) - 1
    stays = kept[column.rows]
    return Lists(place[column.rows[stays]].astype(np.uint32), column.items[stays])
