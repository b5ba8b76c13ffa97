"""From what users write to integer codes: checks the parts of a query against the schema and gives them one canonical form.

Engines, prices and the cache see resolved values only: attributes by name, values by code. Two texts that mean the
same cells and question (`age >= 40`, `age > 39`) resolve alike, so the second is a free cached answer.
"""

from dpmine.base.errors import RequestError
from dpmine.codes.domain import MOST_ROWS
from dpmine.codes.queries import MOST_KEYS, MOST_STEPS
from dpmine.codes.rows import (
    Branch,
    Cells,
    Enter,
    Keep,
    Recode,
    Rounded,
    RowKey,
    RowRules,
    RowStep,
    RowTest,
    Tested,
    is_small,
)
from dpmine.facts.facts import Facts
from dpmine.language.keys import AttributeKey, Bins, Key, Test
from dpmine.language.predicates import Predicate
from dpmine.language.resolving_keys import resolve_key, rounded
from dpmine.language.resolving_predicates import PredicateResolver
from dpmine.language.views import Cell, Rules, Split, Step, View, Where

MOST_CELLS = 65_536
MOST_FITTED_STEPS = MOST_STEPS // 2  # of a view that a model is fitted to: the model's own trees need the rest

KnownKeys = dict[Key, RowKey]
"""Small keys that were resolved under one schema: trees cut at the same places again and again."""


class Resolver:
    """Resolves the parts of one query; a key that occurs again is resolved once."""

    def __init__(self, schema: Facts, known_keys: KnownKeys | None = None, *, most_cells: int = MOST_CELLS) -> None:
        self.schema = schema
        self._known = {} if known_keys is None else known_keys
        self._most_cells = most_cells
        self._predicates = PredicateResolver(schema)
        self._keys: dict[Key, RowKey] = {}
        self._same: dict[int, tuple[Key, RowKey]] = {}  # by identity: to compare large keys takes time
        self._cells = 1

    def cells(self, view: View, rules: Rules) -> Cells:
        _check_depth(len(view.steps))
        steps = tuple(self._step(step) for step in view.steps)
        return Cells(steps, self._rules(rules, len(steps)))

    def key(self, key: Key) -> RowKey:
        if id(key) not in self._same:
            self._same[id(key)] = key, self._key(key)
        return self._same[id(key)][1]

    def attribute(self, name: str) -> Recode:
        """Each value of an attribute as a key."""
        key = self.key(AttributeKey(name))
        assert isinstance(key, Recode)
        return key

    def amount(self, name: str, so: str, *, most: int | None = None, dates: bool = False) -> Rounded:
        """The numbers of an attribute as they are, or rounded to at most so many steps; dates have quantiles alone."""
        attribute = self.schema.measured(name, so) if dates else self.schema.numeric(name, so)
        return rounded(attribute, attribute.values - 1 if most is None else most)

    def predicate(self, predicate: Predicate) -> RowTest:
        return self._predicates.resolve(predicate)

    def _key(self, key: Key) -> RowKey:
        if key not in self._keys:
            if len(self._keys) >= MOST_KEYS:
                raise RequestError(f"One query may use at most {MOST_KEYS} different keys.")
            self._keys[key] = self._known.get(key) or self._resolved(key)
        return self._keys[key]

    def _resolved(self, key: Key) -> RowKey:
        if isinstance(key, Test):
            return Tested(self.predicate(key.predicate))
        found = resolve_key(key, self.schema)
        if is_small(found) and isinstance(key, (AttributeKey, Bins)):  # others may be small and yet hold many values
            if len(self._known) >= MOST_KEYS:
                self._known.clear()
            self._known[key] = found
        return found

    def _step(self, step: Step) -> RowStep:
        if isinstance(step, Where):
            return Keep(self.predicate(step.predicate))
        assert isinstance(step, Cell)
        key = self.key(step.key)
        if not 0 <= step.index < key.size:
            raise RequestError(f"The key has {key.size} labels; there is no label {step.index}.")
        return Enter(key, step.index)

    def _rules(self, rules: Rules, depth: int = 0) -> RowRules | None:
        if not isinstance(rules, Split):
            return None
        _check_depth(depth + 1)
        key = self.key(rules.key)
        if len(rules.children) != key.size:
            raise RequestError(f"A split by {rules.key.title!r} needs {key.size} children. Got {len(rules.children)}.")
        self._cells += max(len(rules.children) - 1, 1)  # a key of one label makes no cell, but a level
        if self._cells > self._most_cells:  # a short request may name one part many times
            raise RequestError(
                f"This query has too many cells; one query may have at most {self._most_cells}, and as many splits."
            )
        return Branch(key, tuple([self._rules(child, depth + 1) for child in rules.children]))


def resolve_cells(steps: tuple[Step, ...], rules: Rules, schema: Facts) -> Cells:
    """Only the cells of a query, as many as you like, for engines that are asked on their own."""
    return Resolver(schema, most_cells=MOST_ROWS).cells(View(steps), rules)


def _check_depth(steps: int) -> None:
    if steps > MOST_STEPS:
        raise RequestError(f"A cell may lie at most {MOST_STEPS} steps deep, in the view and the rule tree together.")
