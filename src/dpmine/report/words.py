"""A tree in words: conditions of branches, counts and shares, as people would say them."""

import unicodedata
from collections.abc import Sequence

from dpmine.base.errors import RequestError
from dpmine.facts.kinds.kind import MISSING
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.language.keys import LAST, AttributeKey, Bins, Groups, Key, Test
from dpmine.language.predicates import Compare, IsMissing, Not
from dpmine.models.trees import MILLION, Node

NOTE = "Counts are noisy"

_IS_MISSING, _HAS_VALUE, _OR_MISSING = "is missing", "has a value", " or missing"

LONGEST_LABEL = 48  # letters of a condition in the text drawing
LONGEST_NAME = 24  # letters of a class
FEW_VALUES = 3  # named in a label
MANY_VALUES = 60  # named in a tooltip


def condition(key: Key, number: int, schema: Schema, *, at_most: int = MANY_VALUES) -> str:
    """What holds for the rows that a split sends to its child of this number, naming at most so many values."""
    if isinstance(key, Test):
        return _test_words(key, number, schema)
    answer = _answer(key, number, schema, at_most)
    title = schema.single(key.attribute).title if isinstance(key, (AttributeKey, Bins, Groups)) else key.title
    return f"{clean(title)} {answer}"


def _answer(key: Key, number: int, schema: Schema, at_most: int) -> str:
    """The condition without the name of the attribute, such as '< 40' or 'is north or east'."""
    if isinstance(key, Bins):
        return _bin_answer(key, number, schema)
    if isinstance(key, Groups):
        return _group_answer(key, number, schema, at_most)
    if isinstance(key, AttributeKey):
        attribute = schema.single(key.attribute)
        return _IS_MISSING if number == attribute.missing_code else f"is {clean(attribute.label(number))}"
    return f"is {clean(key.labels(schema)[number])}"


def short_answer(key: Key, number: int, schema: Schema) -> str:
    """The answer for an edge below a card that already names the attribute."""
    return _answer(key, number, schema, FEW_VALUES).removeprefix("is ")


def _bin_answer(key: Bins, number: int, schema: Schema) -> str:
    """Gaps lie behind every number: in the last bin, or in one of their own behind it."""
    *cuts, last = key.written(schema)
    cuts = cuts if last == MISSING else [*cuts, last]  # of numbers
    gap = schema.single(key.attribute).gap is not None
    if number > len(cuts):
        return _IS_MISSING
    if not cuts:
        return _HAS_VALUE
    or_missing = _OR_MISSING if gap and last != MISSING and key.missing == LAST else ""
    if number == len(cuts):
        return f">= {cuts[-1]}{or_missing}"
    return f"< {cuts[0]}" if number == 0 else f"{cuts[number - 1]} to <{cuts[number]}"


def _group_answer(key: Groups, number: int, schema: Schema, at_most: int) -> str:
    attribute = key.nominal(schema)
    table = key.table(schema)
    inside = [category for code, category in enumerate(attribute.categories) if table[code] == number]
    outside = [category for code, category in enumerate(attribute.categories) if table[code] != number]
    gap = attribute.missing_code is not None and table[attribute.missing_code] == number
    if gap and not inside:
        return _IS_MISSING
    if inside and not outside and attribute.gap is not None and not gap:
        return _HAS_VALUE
    or_missing = _OR_MISSING if gap else ""
    comma = "," if gap else ""
    is_rest = number == len(key.groups)
    named = _taxonomy_name(attribute, inside)
    if named is not None:
        return f"in {clean(named)}{or_missing}"
    left_out = _taxonomy_name(attribute, outside)
    if is_rest and left_out is not None:
        return f"not in {clean(left_out)}{comma}{or_missing}"
    if not inside or not outside:
        return "is anything else" if not inside else "is anything"
    if is_rest and len(outside) < len(inside):
        return f"{_none_of(outside, at_most)}{comma}{or_missing}"
    return f"is {_one_of(inside, at_most)}{or_missing}"


def _taxonomy_name(attribute: Nominal, values: Sequence[str]) -> str | None:
    """The name that the public hierarchy has for exactly these categories."""
    if attribute.taxonomy is None:
        return None
    wanted = sorted(values)
    return next((n.name for n in attribute.taxonomy.nodes() if n.children and sorted(n.leaves()) == wanted), None)


def _one_of(values: Sequence[str], at_most: int) -> str:
    """north; north or east; north, east or 4 more."""
    names = [clean(value) for value in values]
    if len(names) > at_most:
        names = [*names[: at_most - 1], f"{len(names) - at_most + 1:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _none_of(values: Sequence[str], at_most: int) -> str:
    names = [clean(value) for value in values]
    if len(names) == 1:
        return f"is not {names[0]}"
    return f"is neither {names[0]} nor {names[1]}" if len(names) == 2 else f"is none of {and_more(names, at_most)}"


def and_more(names: Sequence[str], at_most: int) -> str:
    if len(names) > at_most:
        names = [*names[: at_most - 1], f"{len(names) - at_most + 1:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _test_words(key: Test, number: int, schema: Schema) -> str:
    """Of the rows for which a test is not true; what a gap leaves open is not true either."""
    asked = key.predicate
    if number == 1:
        return clean(str(asked))
    if isinstance(asked, Compare):
        opposite = str(Compare(asked.attribute, _OPPOSITE[asked.op], asked.value))
        return clean(opposite) + (_OR_MISSING if schema.single(asked.attribute).gap is not None else "")
    return clean(str(Not(asked))) if isinstance(asked, IsMissing) else f"not {clean(str(asked))}"


def total_rows(node: Node) -> int:
    """The noisy number of rows, drawn as 0 where noise pushed it below."""
    return max(0, sum(node.rows))


def rows_words(node: Node) -> str:
    return f"about {many(total_rows(node), 'row')}"


def many(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def percent(share: int) -> str:
    """Whole percent; what is not quite nothing or everything is not called so."""
    if 0 < share < MILLION // 200:
        return "<1 %"
    if MILLION - MILLION // 200 < share < MILLION:
        return ">99 %"
    return f"{(share + MILLION // 200) // (MILLION // 100)} %"


def clean(text: str) -> str:
    """Without line ends and control characters, which neither terminals nor XML should be given."""
    return "".join(
        " " if letter.isspace() else letter if _may_stand(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _may_stand(letter: str) -> bool:
    """Letters that print, and the two joiners that some scripts need between them."""
    return letter.isprintable() or letter in "\u200c\u200d"


def ascii_text(text: str) -> str:
    return text.replace("…", "...").encode("ascii", "backslashreplace").decode("ascii")


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def columns_of_text(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(0 if unicodedata.combining(part) else 2 if unicodedata.east_asian_width(part) in "WF" else 1 for part in text)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - columns_of_text(text))


def hidden_words(node: Node) -> str:
    leaves = sum(1 for _ in node.leaves())
    return f"... {leaves:,} more {'leaf' if leaves == 1 else 'leaves'}"


def check_tree(tree: Node, classes: Sequence[str], max_depth: int | None) -> None:
    if len(classes) != len(tree.rows):
        raise RequestError(
            f"The tree counts {len(tree.rows)} classes, so it needs as many names. Got {len(classes)} instead."
        )
    if max_depth is not None and max_depth < 0:
        raise RequestError(f"The 'max_depth' parameter must be 0 or more. Got {max_depth} instead.")
