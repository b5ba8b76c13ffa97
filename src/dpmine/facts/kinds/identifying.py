"""Columns that tell rows or people apart, for drafts: identifiers, free text, and columns that may name persons."""

from collections import Counter
from itertools import accumulate
from typing import Any

from dpmine.facts.kinds.column_names import DIRECT, names_identifiers, names_persons, words_of
from dpmine.facts.kinds.columns import ColumnInHand, Proposal

FEW_TEXTS = 20  # so many different ones are taken for categories, whatever they are called
LONG_TEXT = 40  # letters, or
MANY_WORDS = 4  # on average: free text
MOST_OF_THEM = 0.95  # of the persons have at most as many rows as a draft proposes
ROWS_EACH = 100  # on average, of what is called a patient: values with more are groups, whatever they are called
ROWS_OF_A_PERSON = 1000  # are the most that a unit may have

ONE_ROW_EACH = "every row has a value of its own: an identifier"
FREE = "free text: sentences can be neither counted nor compared, and may name people"
MOSTLY_OWN = "most of its values belong to one row each: an identifier, or texts that nobody shares"
NAMED_DIRECTLY = "by its name it says who somebody is"
REPEATED = "its values look like the names of persons or things that own several rows"


def identifying(column: ColumnInHand) -> Proposal[Any] | None:
    """Why a column that tells rows or people apart is dropped; None if it may be categories."""
    different, rows = len(column.counts), sum(column.counts.values())
    if different <= FEW_TEXTS:
        return None
    if different == rows:
        return _dropped(FREE if _is_free_text(column) else ONE_ROW_EACH)
    if words_of(column.name) & DIRECT:
        return _dropped(NAMED_DIRECTLY, rows_of_most(column))
    named = names_identifiers(column.name) or names_persons(column.name)
    if named and rows <= ROWS_EACH * different:
        return _dropped(REPEATED, rows_of_most(column))
    if 2 * different <= rows:
        return None
    return _dropped(FREE if _is_free_text(column) else MOSTLY_OWN)


def too_many(column: ColumnInHand) -> Proposal[Any]:
    """Why a column with very many different texts is dropped, which may be the names of persons."""
    if 2 * len(column.counts) <= sum(column.counts.values()) and _are_codes(column):
        return _dropped(REPEATED, rows_of_most(column))
    return _dropped(FREE if _is_free_text(column) else "too many different texts to be categories")


def rows_of_most(column: ColumnInHand) -> int | None:
    """How many rows 95 % of its values have at most, rounded up; None where floats would name persons, which is refused."""
    if column.source.holds_floats(column.name):
        return None
    sizes = Counter(rows for text, rows in column.counts.items() if text.strip())
    total = sum(sizes.values())
    below = zip(sorted(sizes), accumulate(sizes[size] for size in sorted(sizes)), strict=True)
    most = next((size for size, values in below if values >= MOST_OF_THEM * total), 1)
    return min(round_up(most), ROWS_OF_A_PERSON)


def round_up(number: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, and so on."""
    power = int(10 ** (len(str(number)) - 1))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= number)


def _dropped(why: str, persons: int | None = None) -> Proposal[Any]:
    return Proposal(None, why, persons=persons)


def _is_free_text(column: ColumnInHand) -> bool:
    texts = column.counts
    letters, words = sum(map(len, texts)), sum(len(text.split()) for text in texts)
    return letters >= LONG_TEXT * len(texts) or words >= MANY_WORDS * len(texts)


def _are_codes(column: ColumnInHand) -> bool:
    """Short words with a digit, nearly all of them."""
    codes = sum(not any(map(str.isspace, text)) and any(map(str.isdigit, text)) for text in column.counts)
    return 10 * codes >= 9 * len(column.counts)
