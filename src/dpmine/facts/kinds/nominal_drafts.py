"""Drafts of nominal columns: which categories there are, or why a column is better dropped."""

from dpmine.base.decimals import plain
from dpmine.facts.kinds.columns import ColumnInHand, Proposal
from dpmine.facts.kinds.identifying import identifying, too_many
from dpmine.facts.kinds.kind import DROP, MISSING
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric_drafts import why_codes
from dpmine.facts.kinds.taxonomy_by_names import taxonomy_by_names

MOST_DRAFTED_CATEGORIES = 200
FREQUENT = 100  # categories are listed of many, if
NEARLY_ALL = 0.9  # of the rows have one of these
OTHERS = ("other", "?", "unknown", "n/a")  # categories that a draft takes for `other`

NOTHING = "no row has a value"
READ_FROM_DATA = "list read from the data: state the public one; what it lacks counts as {}"


def propose_nominal(column: ColumnInHand) -> Proposal[Nominal]:
    dropped = identifying(column)
    if dropped is not None:
        return dropped
    categories = _in_order(column, list(column.counts))
    if not categories:
        return Proposal(None, NOTHING)
    why = why_codes(column) if column.amounts.are_numbers else None
    if len(categories) > MOST_DRAFTED_CATEGORIES:
        return _frequent(column, categories, why)
    other = next((text for text in categories if text.lower() in OTHERS), None)
    attribute = Nominal(column.name, categories, other, taxonomy_by_names(categories, other))
    checks = [READ_FROM_DATA.format("missing" if other is None else repr(other))]
    if why is not None and len(categories) > 2:
        checks.append('if these are amounts, write kind = "numeric" with low and high')
    if _are_written_otherwise(column):
        checks.append("categories stand as they are written here: 1.0 is not 1")
    return Proposal(attribute, why or _words(len(categories)), "; ".join(checks))


def propose_class(column: ColumnInHand) -> Proposal[Nominal]:
    """Of the class, whatever it looks like: all its values, without a taxonomy or a category for the rest."""
    categories = _in_order(column, list(column.counts))
    if not categories:
        return Proposal(None, NOTHING)
    if len(categories) > MOST_DRAFTED_CATEGORIES:
        return Proposal(None, "too many different values to be classes")
    check = "list read from the data: state the public one; rows with another class, or none, are left out"
    return Proposal(Nominal(column.name, categories, missing=DROP), f"the class, with {_words(len(categories))}", check)


def _frequent(column: ColumnInHand, categories: tuple[str, ...], why: str | None) -> Proposal[Nominal]:
    """The frequent ones of very many categories, and one for the rest."""
    listed = [text for text, _ in column.counts.most_common(FREQUENT)]
    if sum(column.counts[text] for text in listed) < NEARLY_ALL * sum(column.counts.values()):
        return too_many(column)
    others = [text for text in categories if text.lower() in OTHERS]
    other = others[0] if others else next(name for name in ("other", "Other", "(other)") if name not in column.counts)
    ordered = _in_order(column, [text for text in listed if text != other])
    proposed = Nominal(column.name, (*ordered, other), other, taxonomy_by_names((*ordered, other), other))
    return Proposal(
        proposed,
        f"{why or 'very many texts'}, of which a hundred are those of nine tenths of the rows",
        READ_FROM_DATA.format(repr(other)),
    )


def _are_written_otherwise(column: ColumnInHand) -> bool:
    """Whether some category is a number in another way of writing than a frame of numbers has: 1.0, 007."""
    numbers = {text: column.number(text) for text in column.counts}
    return any(number is not None and text != plain(number) for text, number in numbers.items())


def _words(categories: int) -> str:
    return "one category" if categories == 1 else "two categories" if categories == 2 else f"{categories} categories"


def _in_order(column: ColumnInHand, texts: list[str]) -> tuple[str, ...]:
    """By number where they are numbers, else by text. The label of gaps is no category."""
    texts = sorted(text for text in texts if text != MISSING)
    if column.amounts.are_numbers:
        numbers = {text: column.number(text) for text in texts}
        texts.sort(key=lambda text: (numbers[text] is None, numbers[text] or 0))
    return tuple(texts)
