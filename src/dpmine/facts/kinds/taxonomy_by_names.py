"""Drafts a taxonomy from the names of categories, and from nothing else."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from dpmine.facts.kinds.taxonomy import TaxonomyNode

FEW_CATEGORIES = 3  # so many, apart from `other`, are drafted without a taxonomy: there is little to generalise
TAXONOMY_ROOT = "Any"
WORD = re.compile(r"[^-_/.,;:()\s]+")


def taxonomy_by_names(categories: Iterable[str], other: str | None = None) -> TaxonomyNode | None:
    """Categories grouped by the words that their names begin with; None where that gives no group.

    It is a function of the set of names and is given nothing else. A grouping by how often categories occur, or by the
    classes of their rows, would be learned from rows, and DiffGen takes the taxonomy for public.
    """
    rest = [] if other is None else [other]  # it takes what is not listed, so it belongs to no group
    named = sorted(set(categories).difference(rest))
    if len(named) <= FEW_CATEGORIES:
        return None
    groups = _groups(named)
    if not groups:
        return None
    taken = {category.casefold() for category in (*named, *rest)}
    root = _unused(TAXONOMY_ROOT, taken)
    nodes = [TaxonomyNode(_unused(_shared_beginning(group), taken), tuple(map(TaxonomyNode, group))) for group in groups]
    grouped = {category for group in groups for category in group}
    alone = [category for category in (*named, *rest) if category not in grouped]
    return TaxonomyNode(root, (*nodes, *map(TaxonomyNode, alone)))


def _groups(named: Sequence[str]) -> list[list[str]]:
    """Two or more names that go on with the same word, after the words with which all names begin."""
    skipped = _shared_words(named)  # what all share tells none of them apart, and would put all below one node
    groups: dict[str, list[str]] = {}
    for name in named:
        words = _words(name)[skipped:]
        # A number in front is an amount, a rank, a range or a date: '10-14' and '10-19', '1st-4th'. It names no kind.
        if words and words[0][0].isalpha():
            groups.setdefault(words[0], []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _words(name: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(name)]


def _shared_words(names: Iterable[str]) -> int:
    places = zip(*map(_words, names), strict=False)
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, places))


def _shared_beginning(names: Sequence[str]) -> str:
    """The words with which all these names begin, as the first of them writes them."""
    words = list(WORD.finditer(names[0]))
    return names[0][words[0].start() : words[_shared_words(names) - 1].end()]


def _unused(name: str, taken: set[str]) -> str:
    """A name for a node that no category and no other node has; it counts as taken from now on."""
    while name.casefold() in taken:
        name += " (all)"
    taken.add(name.casefold())
    return name
