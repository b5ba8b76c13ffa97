"""Reading and growing rule trees. Nothing here is trusted: the door counts cells by itself."""

from collections.abc import Iterator

from dpmine.base.errors import RequestError
from dpmine.language.keys import Key
from dpmine.language.views import LEAF, Rules, Split


def leaf_paths(rules: Rules) -> Iterator[tuple[tuple[Key, int], ...]]:
    """The path of each leaf from left to right, as pairs of key and label index."""
    stack: list[tuple[Rules, tuple[tuple[Key, int], ...]]] = [(rules, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, Split):
            for index in range(len(node.children) - 1, -1, -1):
                stack.append((node.children[index], (*path, (node.key, index))))
        else:
            yield path


def split_leaf(rules: Rules, number: int, key: Key, labels: int) -> Rules:
    """The rule tree with its leaf of that number replaced by a split on `key`."""
    grown, seen = _split_leaf(rules, number, key, labels, 0)
    if number >= seen:
        raise RequestError(f"The rule tree has {seen} leaves; there is no leaf {number}.")
    return grown


def _split_leaf(rules: Rules, number: int, key: Key, labels: int, seen: int) -> tuple[Rules, int]:
    if not isinstance(rules, Split):
        return (Split(key, (LEAF,) * labels) if seen == number else rules), seen + 1
    children = []
    for child in rules.children:
        grown, seen = _split_leaf(child, number, key, labels, seen)
        children.append(grown)
    return Split(rules.key, tuple(children)), seen
