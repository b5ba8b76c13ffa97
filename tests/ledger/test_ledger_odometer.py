"""The odometer against its definition, by brute force over a universe of rows small enough to list."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ledger_auditor import Tree
from support.ledgers import SCHEMA, open_ledger, small_table

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import LedgerTampered, RequestError
from dpmine.base.wire import value_hash
from dpmine.kernel.ledger.accounts import Request, Reservation
from dpmine.kernel.ledger.odometer import Charge, Charged, Totals, add_charge, charge_of, root_node
from dpmine.language.columns import col
from dpmine.language.keys import AttributeKey, Bins, Test
from dpmine.language.queries import Query, resolve
from dpmine.language.resolver import MOST_STEPS
from dpmine.language.resolving_keys import resolve_key
from dpmine.language.resolving_predicates import resolve_predicate
from dpmine.language.rule_trees import split_leaf
from dpmine.language.views import LEAF, Cell, Rules, Split, View, Where
from dpmine.questions.histogram import Histogram

# -- a universe of rows, and questions about it stated twice: for dpmine, and as plain functions of a row -------------


def cost_of(charge: Charge) -> int:
    """What a charge costs on its own, with nothing spent before, by the definition."""
    return tree_of(charge).total()


def tree_of(charge: Charge) -> Tree:
    tree = Tree()
    tree.add(charge.form())
    return tree


@dataclass(frozen=True)
class Row:
    ward: str
    sex: str
    age: int


ROWS = [Row(*values) for values in itertools.product(("north", "south", "west"), ("f", "m"), range(4))]

PREDICATES: list[tuple[Any, Callable[[Row], bool]]] = [
    (col("sex") == "f", lambda row: row.sex == "f"),
    (col("age") >= 2, lambda row: row.age >= 2),
    (col("ward").isin(["north", "south"]), lambda row: row.ward != "west"),
    ((col("sex") == "f") | (col("age") < 1), lambda row: row.sex == "f" or row.age < 1),
    (~(col("ward") == "north"), lambda row: row.ward != "north"),
]
KEYS: list[tuple[Any, int, Callable[[Row], int]]] = [
    (AttributeKey("ward"), 3, lambda row: ("north", "south", "west").index(row.ward)),
    (AttributeKey("sex"), 2, lambda row: ("f", "m").index(row.sex)),
    (Bins("age", ("2",)), 2, lambda row: int(row.age >= 2)),
    (Bins("age", ("1", "3")), 3, lambda row: (row.age >= 1) + (row.age >= 3)),
    (col("ward").groups({"coast": ["north", "west"]}), 2, lambda row: int(row.ward == "south")),
    (Test(col("age") >= 1), 2, lambda row: int(row.age >= 1)),
]

Step = tuple[Any, ...]  # ("where", predicate) or ("cell", key, index), by their places in the lists above


@dataclass(frozen=True)
class Asked:
    """A query as plain data: steps of a view, a rule tree (None, or a key and its children), units for each leaf."""

    steps: tuple[Step, ...]
    rules: Any
    units: tuple[int, ...]

    def query(self) -> Query:
        steps = tuple(
            Where(PREDICATES[step[1]][0]) if step[0] == "where" else Cell(KEYS[step[1]][0], step[2]) for step in self.steps
        )
        return Query(View(steps), _rules(self.rules), Histogram(()), tuple(Epsilon(units) for units in self.units))

    def charge(self) -> Charge:
        return charge_of(resolve(self.query(), SCHEMA))

    def leaves(self) -> list[tuple[tuple[Step, ...], int]]:
        """The whole path and the units of every cell that is asked."""
        paths = [(*self.steps, *path) for path in _leaf_paths(self.rules)]
        return [(path, units) for path, units in zip(paths, self.units, strict=True) if units]


def _rules(rules: Any) -> Rules:
    return LEAF if rules is None else Split(KEYS[rules[0]][0], tuple(_rules(child) for child in rules[1]))


def _leaf_paths(rules: Any) -> list[tuple[Step, ...]]:
    if rules is None:
        return [()]
    key, children = rules
    return [(("cell", key, index), *path) for index, child in enumerate(children) for path in _leaf_paths(child)]


def loss_of_row(row: Row, queries: list[Asked]) -> int:
    """What the queries may tell about one row: the sum of the units of all cells that hold it."""
    return sum(units for asked in queries for path, units in asked.leaves() if all(_holds(step, row) for step in path))


def _holds(step: Step, row: Row) -> bool:
    return PREDICATES[step[1]][1](row) if step[0] == "where" else KEYS[step[1]][2](row) == step[2]


def tree_formula(leaves: list[tuple[tuple[Step, ...], int]]) -> int:
    """The definition of a view's total, straight from the list of everything ever asked below it."""
    own = sum(units for path, units in leaves if not path)
    wheres: dict[int, list[Any]] = defaultdict(list)
    partitions: dict[int, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for path, units in leaves:
        if path and path[0][0] == "where":
            wheres[path[0][1]].append((path[1:], units))
        elif path:
            partitions[path[0][1]][path[0][2]].append((path[1:], units))
    dearest = [max(tree_formula(cell) for cell in cells.values()) for cells in partitions.values()]
    return own + sum(tree_formula(below) for below in wheres.values()) + sum(dearest)


# -- random queries ---------------------------------------------------------------------------------------------------

_cells = st.integers(0, len(KEYS) - 1).flatmap(
    lambda key: st.tuples(st.just("cell"), st.just(key), st.integers(0, KEYS[key][1] - 1))
)
_steps = st.lists(st.tuples(st.just("where"), st.integers(0, len(PREDICATES) - 1)) | _cells, max_size=3).map(tuple)


def _trees(depth: int) -> st.SearchStrategy[Any]:
    if depth == 0:
        return st.none()
    split = st.integers(0, len(KEYS) - 1).flatmap(
        lambda key: st.tuples(st.just(key), st.tuples(*[_trees(depth - 1)] * KEYS[key][1]))
    )
    return st.none() | split


def _with_units(drawn: tuple[tuple[Step, ...], Any]) -> st.SearchStrategy[Asked]:
    leaves = len(_leaf_paths(drawn[1]))
    units = st.lists(st.integers(0, 5), min_size=leaves, max_size=leaves).filter(any).map(tuple)
    return units.map(lambda units: Asked(drawn[0], drawn[1], units))


queries = st.tuples(_steps, _trees(2)).flatmap(_with_units)
lists_of_queries = st.lists(queries, min_size=1, max_size=8)

# -- the checks that right and wrong odometers face -------------------------------------------------------------------

Adder = Callable[[Totals, str, Charge], int]


def check_odometer(asked: list[Asked], add: Adder) -> None:
    """Charge the queries one by one; after each, the total must equal the formula and bound the loss of every row."""
    totals: dict[str, int] = {}
    spent = 0
    for number, query in enumerate(asked, start=1):
        spent += add(totals, "root", query.charge())
        so_far = asked[:number]
        assert spent == tree_formula([leaf for earlier in so_far for leaf in earlier.leaves()])
        assert spent >= max(loss_of_row(row, so_far) for row in ROWS)


def test_the_universe_names_every_predicate_and_key_differently():
    tests = {value_hash(resolve_predicate(predicate, SCHEMA)) for predicate, _ in PREDICATES}
    keys = {value_hash(resolve_key(key, SCHEMA)) for key, _, _ in KEYS}
    assert (len(tests), len(keys)) == (len(PREDICATES), len(KEYS))


@given(lists_of_queries)
def test_the_incremental_total_equals_the_definition_and_bounds_the_loss_of_every_row(asked):
    check_odometer(asked, add_charge)


@given(lists_of_queries, st.randoms(use_true_random=False))
def test_the_order_of_charges_does_not_change_any_total(asked, chance):
    shuffled = list(asked)
    chance.shuffle(shuffled)
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    assert sum(add_charge(first, "root", query.charge()) for query in asked) == first["root"]
    assert sum(add_charge(second, "root", query.charge()) for query in shuffled) == second["root"]
    assert first == second


@given(lists_of_queries)
def test_an_increase_is_never_negative_and_never_above_the_price_alone(asked):
    totals: dict[str, int] = {}
    for query in asked:
        assert 0 <= add_charge(totals, "root", query.charge()) <= cost_of(query.charge())


@given(queries)
def test_a_charge_on_an_empty_odometer_costs_its_price_and_reads_exactly_the_nodes_it_names(asked):
    totals: dict[str, int] = {}
    charge = asked.charge()
    assert add_charge(totals, "root", charge) == cost_of(charge) == tree_formula(asked.leaves())
    assert set(totals) == set(charge.names("root"))


@given(queries)
def test_a_charge_survives_the_json_of_the_log(asked):
    charge = asked.charge()
    assert Charge.from_form(json.loads(json.dumps(charge.form()))) == charge


VIEW = [0, "view", "", 5]
UNREADABLE = {
    "nothing": None,
    "a number": 5,
    "no nodes": [],
    "no view": [[0, "where", "w", 5]],
    "a short node": [VIEW, [0, "where", "w"]],
    "two views": [VIEW, [0, "view", "", 5]],
    "a parent below": [VIEW, [2, "where", "w", 5], [0, "where", "v", 5]],
    "its own parent": [VIEW, [1, "where", "w", 5]],
    "a parent before the first": [VIEW, [-1, "where", "w", 5]],
    "an unknown kind": [VIEW, [0, "free", "w", 5]],
    "a cell of no partition": [VIEW, [0, "cell", "1", 5]],
    "a partition within a partition": [VIEW, [0, "partition", "p", 0], [1, "partition", "q", 0]],
    "a partition that is charged": [VIEW, [0, "partition", "p", 5]],
    "a node twice": [VIEW, [0, "where", "w", 5], [0, "where", "w", 5]],
    "a name that is no text": [VIEW, [0, "where", 3, 5]],
    "units that are text": [[0, "view", "", "5"]],
    "units that are true": [[0, "view", "", True]],
    "units that are no whole number": [[0, "view", "", 0.5]],
    "a negative charge": [[0, "view", "", -1]],
    "a negative charge below": [VIEW, [0, "partition", "p", 0], [1, "cell", "1", -1]],
}


@pytest.mark.parametrize("form", UNREADABLE.values(), ids=UNREADABLE)
def test_a_charge_that_cannot_be_read_is_tampering(form):
    with pytest.raises(LedgerTampered, match="cannot be read"):
        Charge.from_form(form)


def test_the_odometer_takes_no_negative_charge_from_anybody():
    with pytest.raises(RequestError, match="never negative"):
        Charge((Charged(0, "view", "", -1),))
    plan = resolve(Query(View(), Split(AttributeKey("ward"), (LEAF,) * 3), Histogram(()), (Epsilon(9),)), SCHEMA)
    with pytest.raises(RequestError, match="never negative"):
        charge_of(replace(plan, units=(9, -9, 9)))


@given(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from(["1", "2"]), queries), min_size=1, max_size=6))
def test_the_ledger_charges_both_accounts_by_the_definition_and_previews_exactly_that(asked):
    asked = list(dict.fromkeys(asked))  # a repeated query is a cached answer
    ledger = open_ledger(None, cap=10**6)
    try:
        for analyst in ("ann", "bob"):
            ledger.grant(analyst, 10**6)
        for number, (analyst, version, query) in enumerate(asked, start=1):
            before = ledger.account(analyst).spent
            root = root_node(version, SCHEMA.fingerprint, "generated")
            request = Request(analyst, f"key {number}", f"plan {number}", root, "[]", query.charge())
            previewed, suffices, answered = ledger.preview(request)
            assert suffices
            assert not answered
            assert isinstance(ledger.reserve(request), Reservation)
            assert ledger.account(analyst).spent - before == previewed
            assert ledger.account(analyst).spent == _by_definition(asked[:number], {analyst})
            assert ledger.account("").spent == _by_definition(asked[:number], {"ann", "bob"})
        ledger.verify()
    finally:
        ledger.close()


def _by_definition(asked: list[tuple[str, str, Asked]], analysts: set[str]) -> int:
    return sum(
        tree_formula(
            [leaf for analyst, v, query in asked if analyst in analysts and v == version for leaf in query.leaves()]
        )
        for version in ("1", "2")
    )


# -- planted mistakes: each must be caught by the same check ----------------------------------------------------------

CELL_NORTH = Asked((("cell", 0, 0),), None, (5,))
CELL_SOUTH = Asked((("cell", 0, 1),), None, (5,))
CELL_SOUTH_AGAIN = Asked((("cell", 0, 1),), None, (4,))
WHERE_F = Asked((("where", 0),), None, (5,))
WHERE_OLD = Asked((("where", 1),), None, (4,))


def test_an_odometer_that_prices_each_query_on_its_own_is_caught():
    def alone(totals: Totals, root: str, charge: Charge) -> int:
        return cost_of(charge)

    with pytest.raises(AssertionError):
        check_odometer([CELL_NORTH, CELL_SOUTH], alone)


def test_an_odometer_that_prices_against_a_stale_snapshot_is_caught():
    class Stale:
        """Two queries read the totals before either writes: both see that the cell costs nothing more."""

        def __init__(self) -> None:
            self.snapshot: dict[str, int] = {}

        def __call__(self, totals: Totals, root: str, charge: Charge) -> int:
            if len(self.snapshot) == 0:
                increase = add_charge(totals, root, charge)
                self.snapshot = dict(totals)
                return increase
            return add_charge(dict(self.snapshot), root, charge)

    with pytest.raises(AssertionError):
        check_odometer([CELL_NORTH, CELL_SOUTH, CELL_SOUTH_AGAIN], Stale())


def test_an_odometer_that_takes_where_views_for_disjoint_is_caught():
    def overlapping_as_disjoint(totals: Totals, root: str, charge: Charge) -> int:
        before = totals.get(root, 0)
        for name, inner in tree_of(charge).wheres.items():
            totals[name] = totals.get(name, 0) + inner.total()
            totals[root] = max(totals.get(root, 0), totals[name])
        return totals[root] - before

    with pytest.raises(AssertionError):
        check_odometer([WHERE_F, WHERE_OLD], overlapping_as_disjoint)


def test_an_odometer_that_sums_over_cells_is_caught():
    def every_cell(totals: Totals, root: str, charge: Charge) -> int:
        return sum(node.own for node in charge.nodes)

    with pytest.raises(AssertionError):
        check_odometer([CELL_NORTH, CELL_SOUTH], every_cell)


@pytest.mark.parametrize("asked", [[CELL_NORTH, CELL_SOUTH, CELL_SOUTH_AGAIN], [WHERE_F, WHERE_OLD]])
def test_the_right_odometer_passes_where_the_planted_mistakes_are_caught(asked):
    check_odometer(asked, add_charge)


# -- through the door -------------------------------------------------------------------------------------------------


@pytest.fixture
def owner():
    with dm.open(small_table(), schema=SCHEMA, cap=100) as dataset:
        dataset.grant("ann", epsilon=50)
        yield dataset


def spent(owner: dm.DataSet) -> str:
    return str(owner.statement().allotments[0].spent)


def test_disjoint_views_cost_the_dearest_of_them(owner):
    wards = owner.private("ann").partition("ward")
    for ward, epsilon in zip(wards.values(), ("0.1", "0.4", "0.2"), strict=True):
        ward.count(epsilon=epsilon)
    assert spent(owner) == "0.4"


def test_where_views_add_up_even_if_they_happen_to_be_disjoint(owner):
    table = owner.private("ann")
    table.where("sex == f").count(epsilon="0.1")
    table.where("sex == m").count(epsilon="0.2")
    assert spent(owner) == "0.3"


def test_epsilon_may_differ_from_cell_to_cell_and_zero_cells_are_free(owner):
    owner.private("ann").cells("ward").count(epsilon=["0.3", "0.1", 0])
    assert spent(owner) == "0.3"
    owner.private("ann").cells("ward").count(epsilon=[0, "0.2", "0.3"])
    assert spent(owner) == "0.3"
    owner.private("ann").cells("ward").count(epsilon=[0, "0.2", 0])
    assert spent(owner) == "0.5"


def test_a_cell_is_the_same_cell_in_a_view_and_in_a_rule_tree(owner):
    table = owner.private("ann")
    table.partition("ward")["north"].count(epsilon="0.2")
    table.cells("ward").count(epsilon=["0.2", "0.4", "0.4"])
    assert spent(owner) == "0.4"
    table.partition("ward")["north"].partition("sex")["f"].count(epsilon="0.1")
    assert spent(owner) == "0.5"


def test_a_tree_grown_level_by_level_costs_its_depth_times_the_epsilon_of_a_level(owner):
    table = owner.private("ann")
    keys = [(AttributeKey("ward"), 3), (AttributeKey("sex"), 2), (Bins("age", ("2",)), 2)]
    rules: Rules = LEAF
    leaves = 1
    for level, (key, labels) in enumerate(keys, start=1):
        for leaf in reversed(range(leaves)):
            rules = split_leaf(rules, leaf, key, labels)
        leaves *= labels
        assert len(table.cells(rules).count(epsilon="0.1")) == leaves
        assert spent(owner) == str(Epsilon(level * 10**8))


def test_a_ragged_tree_costs_its_longest_path(owner):
    table = owner.private("ann")
    rules = Split(AttributeKey("ward"), (LEAF, LEAF, LEAF))
    table.cells(rules).count(epsilon="0.1")
    deeper = split_leaf(rules, 0, AttributeKey("sex"), 2)
    table.cells(deeper).count(epsilon=["0.1", "0.1", 0, 0])
    assert spent(owner) == "0.2"
    table.cells(deeper).count(epsilon=[0, 0, "0.1", "0.2"])  # catches up with the first ward, then passes it
    assert spent(owner) == "0.3"


def test_a_partition_and_then_a_where_nest(owner):
    wards = owner.private("ann").partition("ward")
    wards["north"].where("sex == f").count(epsilon="0.1")
    wards["north"].where("age >= 2").count(epsilon="0.1")
    wards["south"].where("age >= 2").count(epsilon="0.15")
    assert spent(owner) == "0.2"
    owner.private("ann").where("age >= 2").partition("ward")["south"].count(epsilon="0.1")
    assert spent(owner) == "0.3"


def test_two_partitions_of_one_view_add_up(owner):
    table = owner.private("ann")
    table.partition("ward")["north"].count(epsilon="0.1")
    table.partition("sex")["f"].count(epsilon="0.1")
    assert spent(owner) == "0.2"


def test_train_and_test_parts_are_disjoint_and_another_salt_is_another_split(owner):
    train, test = owner.private("ann").split(test="0.25")
    train.count(epsilon="0.3")
    test.count(epsilon="0.2")
    assert spent(owner) == "0.3"
    owner.private("ann").split(test="0.25", salt="again")[1].count(epsilon="0.2")
    assert spent(owner) == "0.5"


def test_a_dry_run_says_exactly_what_the_query_will_cost(owner):
    table = owner.private("ann")
    table.partition("ward")["north"].count(epsilon="0.5")
    south = table.partition("ward")["south"]
    assert str(south.preview.count(epsilon="0.3").cost) == "0"
    south.count(epsilon="0.3")
    assert spent(owner) == "0.5"
    assert str(south.preview.count(epsilon="0.4").cost) == "0.2"
    south.count(epsilon="0.4")
    assert spent(owner) == "0.7"
    assert south.preview.count(epsilon="0.4").cached


def test_every_version_and_every_meaning_of_the_codes_is_a_root_and_roots_add_up(tmp_path):
    other = dm.Schema(
        "clinic", (*SCHEMA.attributes[:2], dm.Nominal("age", ("0", "1", "2", "3"), "0", missing="0")), rows_at_most=1000
    )
    spent = []
    for schema, version in ((SCHEMA, "1"), (SCHEMA, "2"), (other, "1")):
        with dm.open(small_table(schema), schema=schema, ledger=tmp_path / "l.db", cap=10, version=version) as dataset:
            wards = dataset.grant("ann", epsilon=10).partition("ward")
            wards["north"].count(epsilon="0.1")
            wards["south"].count(epsilon="0.1")
            spent.append(str(dataset.statement().dataset_spent))
    assert spent == ["0.1", "0.2", "0.3"]


def test_a_public_bound_or_class_that_changes_no_code_is_the_same_root(tmp_path):
    other = dm.Schema("clinic", SCHEMA.attributes, rows_at_most=500, class_attribute="sex")
    for schema in (SCHEMA, other):
        with dm.open(small_table(schema), schema=schema, ledger=tmp_path / "l.db", cap=10) as dataset:
            dataset.grant("ann", epsilon=10).count(epsilon="0.1")
            assert str(dataset.statement().dataset_spent) == "0.1"


# -- depth ------------------------------------------------------------------------------------------------------------


def test_the_deepest_view_is_charged_and_the_ledger_can_be_read_from_a_deep_call_stack(tmp_path):
    def from_deep_below(levels: int) -> None:
        if levels:
            return from_deep_below(levels - 1)
        return open_ledger(tmp_path / "l.db").close()

    with dm.open(small_table(), schema=SCHEMA, ledger=tmp_path / "l.db", cap=10) as dataset:
        view = dataset.grant("ann", epsilon=1)
        for _ in range(MOST_STEPS):
            view = view.partition("ward")["north"]
        view.count(epsilon="0.1")
    from_deep_below(400)


def test_a_view_too_deep_to_be_logged_is_refused_and_costs_nothing(owner):
    view = owner.private("ann")
    for _ in range(MOST_STEPS - 1):
        view = view.where("sex == f")
    two_more = Split(AttributeKey("ward"), (LEAF, LEAF, Split(AttributeKey("sex"), (LEAF, LEAF))))
    with pytest.raises(RequestError, match=f"at most {MOST_STEPS} steps deep"):
        view.cells(two_more).count(epsilon="0.1")
    with pytest.raises(RequestError, match=f"at most {MOST_STEPS} steps deep"):
        view.where("sex == f").where("sex == f").count(epsilon="0.1")
    assert spent(owner) == "0"
