"""SQL for exact counts, as SQLGlot expressions over a relation of integer codes.

The relation `coded` has one integer column for each attribute (a0, a1, ...), one list of item codes for each list attribute
(l0, l1, ...) and, where parts are asked for, the row's number among identical rows. Every name and constant in the SQL is
ours or an integer: no text of an analyst or an owner ever becomes SQL text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from sqlglot import exp

from dpmine.engines.hashing import PRIME, item_numbers, multipliers, part_ends
from dpmine.engines.persons import SALT as PERSONS
from dpmine.plans import (
    All,
    Any_,
    BandedDistance,
    BandedSum,
    Branch,
    Cells,
    ClippedSums,
    Enter,
    HashedPart,
    Holds,
    InCodes,
    Keep,
    LargestSum,
    LeafScores,
    NearestCentre,
    Negation,
    Recode,
    RowKey,
    RowRules,
    RowScores,
    RowTest,
    ScoreBranch,
    Tested,
    count_leaves,
)
from dpmine.schema import ItemList, Schema

FEW_RUNS = 8  # more runs than this are looked up in an array
OCCURRENCE = "occurrence"


class CountQuery:
    """Builds the query for counts by groups of keys in the cells of a view."""

    def __init__(self, schema: Schema, split_key: bytes) -> None:
        self._schema = schema
        self._split_key = split_key
        singles = [a.name for a in schema.attributes if not isinstance(a, ItemList)]
        lists = [a.name for a in schema.attributes if isinstance(a, ItemList)]
        self._columns = {name: f"a{place}" for place, name in enumerate(singles)}
        self._lists = {name: f"l{place}" for place, name in enumerate(lists)}
        self._hashes: dict[str, str] = {}
        self._sums: dict[RowKey, list[str]] = {}
        self._best: dict[RowKey, str] = {}
        self._distances: dict[NearestCentre, str] = {}

    def counts(self, cells: Cells, groups: Sequence[tuple[RowKey, ...]]) -> tuple[exp.Select, list[RowKey]]:
        """`SELECT cell, k0, k1, ..., count(*)` by grouping sets, and the key behind each k."""
        keys = list({key: None for group in groups for key in group})
        place = {key: f"k{number}" for number, key in enumerate(keys)}
        read = [*keys, *_keys_of(cells)]
        source = self._with_models(self._with_parts(read), read)
        inner = exp.select(exp.alias_(self._cell(cells.rules, 0), "cell"))
        for key in keys:
            inner = inner.select(exp.alias_(self._key(key), place[key]))
        inner = inner.from_(source)
        for step in cells.steps:
            inner = inner.where(self._step(step))
        # The same keys in another order are one set: asked twice, every row would be counted twice.
        distinct = {frozenset(group): tuple(dict.fromkeys(group)) for group in groups}
        sets = [
            exp.Tuple(expressions=[exp.column("cell"), *(exp.column(place[key]) for key in group)])
            for group in distinct.values()
        ]
        outer = exp.select(
            "cell", *(exp.column(name) for name in place.values()), exp.alias_(exp.Count(this=exp.Star()), "n")
        )
        outer = outer.from_(inner.subquery("celled"))
        outer.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        return outer, keys

    def clipped_sums(self, cells: Cells, question: ClippedSums) -> exp.Select:
        """`SELECT cluster, s0, s1, ...`: for each centre that has rows the sums of their clipped offsets."""
        nearest = question.nearest
        read = [nearest, *_keys_of(cells)]
        source = self._with_models(self._with_parts(read), read)
        rows = exp.select(exp.alias_(self._key(nearest), "cluster"))
        for name in nearest.attributes:
            rows = rows.select(exp.alias_(exp.column(self._columns[name]), self._columns[name]))
        rows = rows.from_(source)
        for step in cells.steps:
            rows = rows.where(self._step(step))
        offsets: dict[str, exp.Expression] = {}
        for place, (name, scale) in enumerate(zip(nearest.attributes, nearest.scales, strict=True)):
            origin = element(_array([origin[place] for origin in question.origins]), exp.column("cluster"))
            position = _times(_big(exp.column(self._columns[name])), _int(scale))
            offsets[f"o{place}"] = exp.paren(exp.Sub(this=position, expression=_big(origin)))
        offsets["radius"] = _big(element(_array(list(question.radii)), exp.column("cluster")))
        relation = _layer(rows.subquery("clustered"), offsets)
        lengths = [exp.Abs(this=exp.column(f"o{place}")) for place in range(len(nearest.attributes))]
        relation = _layer(relation, {"length": _sum_of(lengths)})
        sums = []
        for place in range(len(nearest.attributes)):
            short = _times(_big(exp.Abs(this=exp.column(f"o{place}"))), exp.column("radius"))
            clipped = _times(
                exp.Sign(this=exp.column(f"o{place}")), exp.paren(exp.IntDiv(this=short, expression=exp.column("length")))
            )
            within = exp.LTE(this=exp.column("length"), expression=exp.column("radius"))
            each = exp.Case().when(within, exp.column(f"o{place}")).else_(_big(clipped))
            sums.append(exp.alias_(_big(exp.Sum(this=each)), f"s{place}"))
        return exp.select("cluster", *sums).from_(relation).group_by("cluster")

    # -- rows -------------------------------------------------------------------------------------------------------

    def _step(self, step: object) -> exp.Expression:
        if isinstance(step, Keep):
            return self._test(step.test)
        assert isinstance(step, Enter)
        return exp.EQ(this=exp.paren(self._key(step.key)), expression=_int(step.index))

    def _cell(self, rules: RowRules | None, first: int) -> exp.Expression:
        """The number of the row's leaf, counted from `first`."""
        if rules is None:
            return _int(first)
        assert isinstance(rules, Branch)
        key = self._key(rules.key)
        if all(child is None for child in rules.children):
            return _add(_big(key), _int(first))
        if len(rules.children) == 1:
            return self._cell(rules.children[0], first)
        case = exp.Case(this=exp.paren(key))
        for label, child in enumerate(rules.children):
            leaf = self._cell(child, first)
            last = label == len(rules.children) - 1
            case = case.else_(leaf, copy=False) if last else case.when(_int(label), leaf, copy=False)
            first += count_leaves(child)
        return case

    def _key(self, key: RowKey) -> exp.Expression:
        if isinstance(key, Recode):
            return _lookup(exp.column(self._columns[key.attribute]), key.runs)
        if isinstance(key, Tested):
            return exp.Case().when(self._test(key.test), _int(1)).else_(_int(0))
        if isinstance(key, (LargestSum, NearestCentre)):
            return _place_of(self._best[key], self._sums[key])
        if isinstance(key, BandedSum):
            return _band(exp.column(self._sums[key][0]), key.edges)
        if isinstance(key, BandedDistance):
            return _band(exp.column(self._distances[key.nearest]), key.edges)
        assert isinstance(key, HashedPart)
        return self._part(key)

    def _test(self, test: RowTest) -> exp.Expression:
        if isinstance(test, InCodes):
            column = exp.column(self._columns[test.attribute])
            size = self._schema.single(test.attribute).size
            return _any([_between(column, low, high, size) for low, high in test.ranges])
        if isinstance(test, Holds):
            held = exp.column(self._lists[test.attribute])
            return _all([exp.ArrayContains(this=held, expression=_int(item)) for item in test.items])
        if isinstance(test, Negation):
            return exp.not_(exp.paren(self._test(test.part)))
        assert isinstance(test, (All, Any_))
        parts = [self._test(part) for part in test.parts]
        return _all(parts) if isinstance(test, All) else _any(parts)

    # -- models -----------------------------------------------------------------------------------------------------

    def _with_models(self, relation: exp.Expression, keys: Sequence[RowKey]) -> exp.Expression:
        """The relation with a model's sums as columns: each tree's leaf by number, the sums of its scores, the largest sum.

        In layers, and with cases that are not copied as they grow: the text stays as long as the model, not its square.
        """
        banded = [key.nearest for key in keys if isinstance(key, BandedDistance)]
        models = list({key: None for key in (*keys, *banded) if isinstance(key, (LargestSum, BandedSum, NearestCentre))})
        leaves: dict[str, exp.Expression] = {}
        sums: dict[str, exp.Expression] = {}
        best: dict[str, exp.Expression] = {}
        for number, key in enumerate(models):
            if isinstance(key, NearestCentre):
                self._sums[key] = [f"m{number}s{place}" for place in range(key.size)]
                sums |= dict(zip(self._sums[key], self._nearness(key), strict=True))
                self._best[key] = f"m{number}b"
                best[self._best[key]] = _largest(self._sums[key])
                continue
            scored = [(f"m{number}t{place}", tree) for place, tree in enumerate(key.trees)]
            leaves |= {name: self._leaf(tree, 0) for name, tree in scored}
            width = key.size if isinstance(key, LargestSum) else 1
            self._sums[key] = [f"m{number}s{place}" for place in range(width)]
            for place, name in enumerate(self._sums[key]):
                sums[name] = _sum_of([_leaf_score(leaf_name, tree, place) for leaf_name, tree in scored])
            if isinstance(key, LargestSum):
                self._best[key] = f"m{number}b"
                best[self._best[key]] = _largest(self._sums[key])
        if not models:
            return relation
        summed = _layer(_layer(relation, leaves) if leaves else relation, sums)
        with_best = _layer(summed, best) if best else summed
        self._distances = {nearest: f"d{number}" for number, nearest in enumerate(dict.fromkeys(banded))}
        distances = {name: self._squared_distance(nearest) for nearest, name in self._distances.items()}
        return _layer(with_best, distances) if distances else with_best

    def _nearness(self, key: NearestCentre) -> Iterator[exp.Expression]:
        """For each centre the part of minus the squared distance that differs between centres, in whole numbers."""
        for centre in key.centres:
            nearness: exp.Expression = _int(-sum(place * place for place in centre))
            for name, scale, place in zip(key.attributes, key.scales, centre, strict=True):
                nearness = _add(nearness, _times(_big(exp.column(self._columns[name])), _int(2 * scale * place)))
            yield nearness

    def _squared_distance(self, key: NearestCentre) -> exp.Expression:
        """To the nearest centre: |x|^2 less the largest nearness, which is |x|^2 - |x - c|^2."""
        positions = [
            _times(_big(exp.column(self._columns[name])), _int(scale))
            for name, scale in zip(key.attributes, key.scales, strict=True)
        ]
        squares = _sum_of([_times(position, position.copy()) for position in positions])
        return exp.paren(exp.Sub(this=squares, expression=exp.column(self._best[key])))

    def _leaf(self, tree: RowScores, first: int) -> exp.Expression:
        """The number of the row's leaf in a model's tree, counted from `first`."""
        if isinstance(tree, LeafScores):
            return _int(first)
        assert isinstance(tree, ScoreBranch)
        case = exp.Case(this=exp.paren(self._key(tree.key)))
        for label, child in enumerate(tree.children):
            leaf = self._leaf(child, first)
            last = label == len(tree.children) - 1
            case = case.else_(leaf, copy=False) if last else case.when(_int(label), leaf, copy=False)
            first += len(_leaf_scores(child))
        return case if len(tree.children) > 1 else self._leaf(tree.children[0], first - len(_leaf_scores(tree)))

    # -- parts ------------------------------------------------------------------------------------------------------

    def _with_parts(self, keys: Sequence[RowKey]) -> exp.Expression:
        """The relation of codes with a column of hashes for each split that the query reads, one round a layer."""
        salts = {key.salt: None for key in keys if isinstance(key, HashedPart)}
        relation: exp.Expression = exp.to_table("coded")
        if not salts:
            return relation
        everything = [exp.column(name) for name in (*self._columns.values(), *self._lists.values())]
        number = exp.Window(this=exp.RowNumber(), partition_by=everything)
        relation = _layer(relation, {OCCURRENCE: _minus_one(number)})
        self._hashes = {salt: f"h{place}" for place, salt in enumerate(salts)}
        rounds = {salt: self._drawn(salt)[:3] for salt in salts}
        relation = _layer(relation, {f"{self._hashes[salt]}r0": self._sum(salt) for salt in salts})
        for turn in range(3):
            stirred = {}
            for salt, name in self._hashes.items():
                stirred[f"{name}r{turn + 1}"] = _stirred(exp.column(f"{name}r{turn}"), rounds[salt][turn])
            relation = _layer(relation, stirred)
        return relation

    def capped(self, at_most: int) -> exp.Select:
        """The relation `coded` from `encoded`, which also names each row's person: as `persons.capped`, row for row."""
        rounds = self._drawn(PERSONS)[:3]
        named = _add(_mod(call("md5_number_upper", exp.column("person"))), _int(1))  # as in `encoding.name_hash`
        start = _mod(_add(self._content(PERSONS), _times(_big(named), _int(self._drawn(PERSONS)[3]))))
        relation = _layer(exp.to_table("encoded"), {"r0": start})
        for turn in range(3):
            relation = _layer(relation, {f"r{turn + 1}": _stirred(exp.column(f"r{turn}"), rounds[turn])})
        names = (*self._columns.values(), *self._lists.values())
        order = [exp.Ordered(this=exp.column(name), nulls_first=False) for name in ("r3", *names)]
        number = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("person")], order=exp.Order(expressions=order))
        ranked = _layer(relation, {"turn": number})
        has_person = exp.not_(exp.Is(this=exp.column("person"), expression=exp.null()))
        return (
            exp.select(*(exp.column(name) for name in names))
            .from_(ranked)
            .where(exp.LTE(this=exp.column("turn"), expression=_int(at_most)))
            .where(has_person)
        )

    def _drawn(self, salt: str) -> list[int]:
        return multipliers(self._split_key, salt, 5 + len(self._columns) + len(self._lists))

    def _sum(self, salt: str) -> exp.Expression:
        """The same integers as in `hashing.row_parts`, before the rounds."""
        place = _add(_mod(_big(exp.column(OCCURRENCE))), _int(1))
        return _mod(_add(self._content(salt), _times(place, _int(self._drawn(salt)[3]))))

    def _content(self, salt: str) -> exp.Expression:
        drawn = self._drawn(salt)
        numbers: list[exp.Expression] = [exp.column(name) for name in self._columns.values()]
        numbers += [self._item_sum(attribute, name, drawn[:3]) for attribute, name in self._lists.items()]
        hashed: exp.Expression = _int(drawn[4])
        for number, factor in zip(numbers, drawn[5:], strict=True):
            hashed = _mod(_add(hashed, _times(_add(_big(number), _int(1)), _int(factor))))
        return hashed

    def _part(self, key: HashedPart) -> exp.Expression:
        hashed = exp.column(f"{self._hashes[key.salt]}r3")
        case = exp.Case()
        for part, end in enumerate(part_ends(key.weights)):
            case = case.when(exp.LT(this=hashed.copy(), expression=_int(end)), _int(part))
        return case.else_(_int(len(key.weights) - 1))

    def _item_sum(self, attribute: str, name: str, rounds: list[int]) -> exp.Expression:
        listed = self._schema.attribute(attribute)
        assert isinstance(listed, ItemList)
        stirred = _array(item_numbers(len(listed.items), rounds))
        item = element(stirred, exp.column("x"))
        each = exp.Lambda(this=item, expressions=[exp.to_identifier("x")])
        total = call("list_sum", call("list_transform", exp.column(name), each))
        return _mod(_big(exp.Coalesce(this=total, expressions=[_int(0)])))


def _stirred(before: exp.Expression, factor: int) -> exp.Expression:
    """One round, as in `hashing._stirred`."""
    return _mod(_add(_times(before, _mod(_add(before.copy(), _int(factor)))), _int(factor)))


def _leaf_scores(tree: RowScores) -> list[tuple[int, ...]]:
    """The scores of a tree's leaves from left to right."""
    if isinstance(tree, LeafScores):
        return [tree.scores]
    assert isinstance(tree, ScoreBranch)
    return [scores for child in tree.children for scores in _leaf_scores(child)]


def _leaf_score(leaf: str, tree: RowScores, place: int) -> exp.Expression:
    return element(_array([scores[place] for scores in _leaf_scores(tree)]), exp.column(leaf))


def _sum_of(numbers: Sequence[exp.Expression]) -> exp.Expression:
    """Added in pairs, so that a sum over many trees does not nest deep."""
    added = [_big(number) for number in numbers]
    while len(added) > 1:
        added = [_add(*pair) if len(pair) == 2 else pair[0] for pair in (added[i : i + 2] for i in range(0, len(added), 2))]
    return added[0]


def _largest(names: Sequence[str]) -> exp.Expression:
    first, *others = [exp.column(name) for name in names]
    return exp.Greatest(this=first, expressions=others) if others else first


def _place_of(best: str, sums: Sequence[str]) -> exp.Expression:
    """The place of the largest sum; of equal ones the first."""
    if len(sums) == 1:
        return _int(0)
    case = exp.Case(this=exp.column(best))
    for place, name in enumerate(sums[:-1]):
        case = case.when(exp.column(name), _int(place), copy=False)
    return case.else_(_int(len(sums) - 1), copy=False)


def _band(total: exp.Expression, edges: Sequence[int]) -> exp.Expression:
    """How many of the rising edges are at or below the sum."""
    case = exp.Case()
    for band, edge in enumerate(edges):
        case = case.when(exp.LT(this=total.copy(), expression=_int(edge)), _int(band), copy=False)
    return case.else_(_int(len(edges)), copy=False)


def _keys_of(cells: Cells) -> list[RowKey]:
    """Every key that the cells of a query read."""
    keys = [step.key for step in cells.steps if isinstance(step, Enter)]
    waiting = [cells.rules]
    while waiting:
        rules = waiting.pop()
        if isinstance(rules, Branch):
            keys.append(rules.key)
            waiting.extend(rules.children)
    return keys


def _layer(relation: exp.Expression, columns: dict[str, exp.Expression]) -> exp.Expression:
    """The relation with more columns."""
    select = exp.select("*", *(exp.alias_(item, name) for name, item in columns.items())).from_(relation)
    return select.subquery("layer")


def _minus_one(number: exp.Expression) -> exp.Expression:
    return exp.Sub(this=number, expression=_int(1))


def _lookup(column: exp.Expression, runs: tuple[tuple[int, int], ...]) -> exp.Expression:
    """The value of the run that the column's code lies in; no runs: the code itself."""
    if not runs:
        return column
    if len(runs) > FEW_RUNS:
        table: list[int] = []
        for (_, item), (after, _) in itertools.pairwise(runs):
            table += [item] * (after - len(table))
        last_start, last_item = runs[-1]
        # Codes from the last run on are clamped to its first place.
        clamped = exp.Least(this=column, expressions=[_int(last_start)])
        return element(_array([*table, last_item]), clamped)
    case = exp.Case()
    for (_, item), (after, _) in itertools.pairwise(runs):
        case = case.when(exp.LT(this=column.copy(), expression=_int(after)), _int(item))
    return case.else_(_int(runs[-1][1])) if len(runs) > 1 else _int(runs[0][1])


def _between(column: exp.Expression, low: int, high: int, size: int) -> exp.Expression:
    """low <= column < high, without the comparisons that always hold."""
    parts: list[exp.Expression] = []
    if low > 0:
        parts.append(exp.GTE(this=column.copy(), expression=_int(low)))
    if high < size:
        parts.append(exp.LT(this=column.copy(), expression=_int(high)))
    return _all(parts)


def _all(parts: Sequence[exp.Expression]) -> exp.Expression:
    return exp.paren(exp.and_(*parts)) if parts else exp.true()


def _any(parts: Sequence[exp.Expression]) -> exp.Expression:
    return exp.paren(exp.or_(*parts)) if parts else exp.false()


def _int(number: int) -> exp.Expression:
    return exp.Literal.number(number) if number >= 0 else exp.paren(exp.Literal.number(number))


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A function of the engine, by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def element(array: exp.Expression, place: exp.Expression) -> exp.Expression:
    """The element at a place counted from 0. We say that we count from 1: SQLGlot shifts only where it knows the type."""
    return exp.Bracket(this=array, expressions=[_add(_big(place), _int(1))], offset=1)


def _array(numbers: Sequence[int]) -> exp.Expression:
    return exp.paren(exp.Array(expressions=[_int(number) for number in numbers]))


def _big(number: exp.Expression) -> exp.Expression:
    return exp.cast(number, "BIGINT")


def _add(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Add(this=left, expression=right))


def _times(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Mul(this=left, expression=right))


def _mod(number: exp.Expression) -> exp.Expression:
    return exp.paren(exp.Mod(this=number, expression=_int(PRIME)))
