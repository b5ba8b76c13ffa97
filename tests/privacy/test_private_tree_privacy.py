"""The private tree by brute force: exact probabilities of every structure on neighbouring tables, and the worst long paths.

A node is cut if b + Z > 0. What b is for each node is read off the real code, by noise that a test decides; the law of Z is
written down again here. Structures are all trees of at most four levels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.kernels import kernel_over
from support.laws import ALARM, p_value
from support.noise import Decided

from dpmine.base.epsilon import UNITS, Epsilon
from dpmine.codes.private_tree import CutNode, ResolvedCutRule, cut_of, whole_box
from dpmine.codes.rows import Branch, Recode
from dpmine.engines.cutting import RuleCutting
from dpmine.engines.encoding import encode
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.facts.sources import open_source
from dpmine.kernel.door import Kernel
from dpmine.kernel.mechanisms import private_tree
from dpmine.kernel.mechanisms.private_tree import comparisons, grow_private_tree
from dpmine.language.queries import Query, resolve
from dpmine.language.views import LEAF, View
from dpmine.noise.laws import laplace
from dpmine.owner.ledgers import book_at
from dpmine.questions.private_tree import CutRule, PrivateTree, tree_of

EPSILONS = ("0.25", "0.5", "1", "2", "3", "5", "12")
SLACK = 1e-11
Tree = tuple[Any, ...]  # () is a leaf, (left, right) is cut
FAR = 2**40  # noise that decides


def halved(size: int) -> list[ResolvedCutRule]:
    """One attribute, cut in the middle again and again."""
    return [ResolvedCutRule("x", size, (0,), (0,), (0,), 1)]


@functools.cache
def trees(deepest: int) -> tuple[Tree, ...]:
    if deepest == 0:
        return ((),)
    below = trees(deepest - 1)
    return ((), *itertools.product(below, below))


def counting(counts: Sequence[int], rules: Sequence[ResolvedCutRule]) -> Callable[[Any], np.ndarray]:
    """The rows of every leaf, for a table with so many rows of each code of one attribute."""

    def counted(row_rules: Any) -> np.ndarray:
        def leaves(branch: Any, codes: range) -> Iterator[int]:
            if branch is None:
                yield sum(counts[code] for code in codes)
                return
            assert isinstance(branch, Branch)
            assert isinstance(branch.key, Recode)
            cut = branch.key.runs[1][0]
            yield from leaves(branch.children[0], range(codes.start, cut))
            yield from leaves(branch.children[1], range(cut, codes.stop))

        return np.array(list(leaves(row_rules, range(rules[0].size))), dtype=np.int64)

    return counted


def shape(node: CutNode) -> Tree:
    return () if node.cut is None else tuple(shape(child) for child in node.children)


def grown(counts: Sequence[int], epsilon: str, deepest: int, draw: Callable[[int, int], Sequence[int]]) -> Tree:
    rules = halved(len(counts))
    root = grow_private_tree(
        RuleCutting(counting(counts, rules)), rules, deepest, Decided(draw), comparisons(Epsilon.parse(epsilon))
    )
    return shape(root)


# -- the law -----------------------------------------------------------------------------------------------------------


def cut_chances(b: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """ln P(b + Z > 0) and ln P(b + Z <= 0), for P(Z = z) proportional to a^abs(z), a = exp(-1 / scale)."""
    a = math.exp(-1 / scale)

    def log_of_at_least(edge: np.ndarray) -> np.ndarray:  # ln P(Z >= edge)
        low = -edge / scale - math.log1p(a)
        high = np.log1p(-np.exp((np.minimum(edge, 1) - 1) / scale) / (1 + a))
        return np.where(edge >= 1, low, high)

    return log_of_at_least(1 - b), log_of_at_least(b)


def node_counts(counts: Sequence[int], levels: int) -> list[np.ndarray]:
    """The rows of every node of the full tree, level by level."""
    table = np.array(counts, dtype=np.int64)
    return [table.reshape(2**level, -1).sum(axis=1) for level in range(levels)]


def claimed(counts: Sequence[int], epsilon: str, levels: int) -> np.ndarray:
    """b of every node of the full tree, as the docstring says."""
    delta = comparisons(Epsilon.parse(epsilon)).decay
    rows = node_counts(counts, levels)
    return np.concatenate([np.maximum(-delta, row - level * delta) for level, row in enumerate(rows)])


@functools.cache
def members(deepest: int) -> tuple[np.ndarray, np.ndarray]:
    """For each structure which nodes of the full tree it cuts, and which of those that could be cut it does not."""
    places = 2**deepest - 1
    cut = np.zeros((len(trees(deepest)), places))
    kept = np.zeros_like(cut)
    for number, tree in enumerate(trees(deepest)):
        waiting = [(tree, 0)]
        while waiting:
            node, place = waiting.pop()
            if place >= places:
                continue
            (cut if node else kept)[number, place] = 1
            if node:
                waiting += [(node[0], 2 * place + 1), (node[1], 2 * place + 2)]
    return cut, kept


def structure_law(b: np.ndarray, scale: float, deepest: int) -> np.ndarray:
    """ln P of every structure."""
    cut, kept = members(deepest)
    yes, no = cut_chances(b, scale)
    logs: np.ndarray = cut @ yes + kept @ no
    return logs


def test_the_law_adds_up() -> None:
    assert [len(trees(deepest)) for deepest in range(5)] == [1, 2, 5, 26, 677]
    for epsilon, counts in (("1", (3, 0, 9, 1, 0, 0, 2, 5)), ("0.25", (0,) * 8), ("5", (40, 0, 0, 0, 0, 0, 0, 1))):
        law = structure_law(claimed(counts, epsilon, 3), 3 / float(epsilon), 3)
        assert math.fsum(np.exp(law)) == pytest.approx(1, abs=1e-12)


# -- the real code has this law ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_real_code_cuts_a_node_exactly_where_the_law_says(epsilon: str) -> None:
    """Every structure comes out for noise at its thresholds: 1 - b for nodes that are cut, one less for the others."""
    draw = np.random.default_rng(1)
    for counts in [
        (0,) * 8,
        (9,) * 8,
        *draw.geometric(0.2, (6, 8)) - 1,
        *draw.integers(0, 30, (4, 8)) * (draw.random(8) < 0.3),
    ]:
        b = claimed(counts, epsilon, 3)
        for tree in trees(3):
            level: list[tuple[Tree, int]] = [(tree, 0)]
            script: list[list[int]] = []
            while level:
                script.append([int(1 - b[place]) if node else int(-b[place]) for node, place in level])
                level = [
                    (child, 2 * place + 1 + side) for node, place in level for side, child in enumerate(node) if place < 3
                ]
            assert grown(counts, epsilon, 3, lambda turn, size, script=script: script[turn]) == tree


def test_noise_of_scale_three_over_epsilon_is_drawn_for_every_node_of_a_level() -> None:
    noise = Decided(lambda turn, size: [FAR] * size)
    grow_private_tree(RuleCutting(counting((1,) * 8, halved(8))), halved(8), 3, noise, comparisons(Epsilon.parse("0.7")))
    assert noise.asked == [(Fraction(30, 7), nodes) for nodes in (1, 2, 4)]


def probed(counts: Sequence[int], epsilon: str, levels: int) -> tuple[np.ndarray, float]:
    """b of every node, read off the real code, and the scale of its noise: no formula of ours."""
    reach = sum(counts) + 6 * decay_of_claim(epsilon) + 2
    found = []
    scales: set[Fraction] = set()
    rules = halved(len(counts))
    for level in range(levels):
        least = np.full(2**level, reach + 1)
        low, high = np.full(2**level, -reach - 1), np.full(2**level, reach + 1)  # not cut at low, cut at high
        while np.any(high - low > 1):
            middle = (low + high) // 2
            noise = Decided(lambda turn, size, middle=middle, level=level: middle if turn == level else [FAR] * size)
            root = grow_private_tree(
                RuleCutting(counting(counts, rules)), rules, level + 1, noise, comparisons(Epsilon.parse(epsilon))
            )
            here = [node for node in root.nodes() if node.depth == level]
            cut = np.array([node.cut is not None for node in here])
            low, high = np.where(cut, low, middle), np.where(cut, middle, high)
            scales.update(noise.scales)
        least = high
        found.append(1 - least)
    (scale,) = scales
    return np.concatenate(found), float(scale)


def decay_of_claim(epsilon: str) -> int:
    return math.ceil(3 * math.log(2) / float(epsilon)) + 1


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_what_is_read_off_the_real_code_is_what_is_claimed(epsilon: str) -> None:
    draw = np.random.default_rng(2)
    for counts in [(0,) * 16, (5,) + (0,) * 15, *draw.geometric(0.3, (3, 16)) - 1]:
        b, scale = probed(counts, epsilon, 4)
        np.testing.assert_array_equal(b, claimed(counts, epsilon, 4))
        assert scale == pytest.approx(3 / float(epsilon))


# -- neighbours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_structure_tells_neighbours_apart_by_more_than_epsilon(epsilon: str) -> None:
    """Every table of a few rows on eight codes, every row that is added, all 26 structures; then larger tables."""
    delta = comparisons(Epsilon.parse(epsilon)).decay
    draw = np.random.default_rng(3)
    few = [rows for count in range(4) for rows in itertools.combinations_with_replacement(range(8), count)]
    listed = [np.bincount(np.array(rows, dtype=np.int64), minlength=8) for rows in few]
    listed += [np.eye(8, dtype=np.int64)[code] * rows for code in (0, 5) for rows in range(4 * delta + 3)]
    listed += list(draw.geometric(1 / (1 + delta), (150, 8)) - 1)
    worst = 0.0
    for counts in listed:
        before = structure_law(claimed(counts, epsilon, 3), 3 / float(epsilon), 3)
        for code in range(8):
            more = np.array(counts)
            more[code] += 1
            ratio = structure_law(claimed(more, epsilon, 3), 3 / float(epsilon), 3) - before
            worst = max(worst, float(np.abs(ratio).max()))
    assert worst <= float(epsilon) * (1 + SLACK)
    assert worst >= (0.75 if epsilon == "0.25" else 0.66) * float(epsilon)


def path_loss(levels: Sequence[float], scale: float) -> float:
    """Of a path whose nodes are all cut, with those b before a row is added."""
    b = np.array(levels, dtype=np.float64)
    return float(np.sum(cut_chances(b + 1, scale)[0] - cut_chances(b, scale)[0]))


@pytest.mark.parametrize("depth", [2, 5, 60])
def test_the_longest_paths_lose_at_most_epsilon(depth: int) -> None:
    """The worst path of the proof: the last node above the floor and, going up, each level at least delta more."""
    shares = []
    for units in [
        *np.geomspace(10**6, 40 * UNITS, 150).astype(np.int64).tolist(),
        *(UNITS * k // 100 for k in range(1, 400)),
    ]:
        epsilon = Epsilon(int(units))
        delta, scale = comparisons(epsilon).decay, 3 / float(epsilon)
        starts = {-delta, -delta + 1, -1, 0, 1, *np.linspace(-delta, delta, 9).astype(int).tolist()}
        lost = max(
            path_loss([start + level * delta for level in range(depth)], scale) for start in starts if start >= -delta
        )
        assert lost <= float(epsilon) * (1 + SLACK)
        shares.append(lost / float(epsilon))
    assert max(shares) > {2: 0.66, 5: 0.84, 60: 0.86}[depth]
    assert max(shares) < 0.9


def test_a_path_of_sixty_levels_of_the_real_code_is_at_the_floor_where_the_proof_says() -> None:
    """One code is cut off a level and all rows are behind the last cut; noise at the threshold, and one less."""
    epsilon, rows, deepest = Epsilon.parse("1"), 40, 60
    bins = deepest + 1
    runs = [(first, after) for first in range(bins) for after in range(first + 1, bins + 1)]
    chain = [ResolvedCutRule("x", bins, tuple(range(bins)), (1,) * len(runs), tuple(first + 1 for first, _ in runs), 0)]
    counts = (0,) * deepest + (rows,)
    delta = comparisons(epsilon).decay
    b = [max(-delta, rows - level * delta) for level in range(deepest)]
    assert b[14:16] == [-2, -3]

    def depth(stop: int) -> int:
        def draw(turn: int, size: int) -> list[int]:
            mine = -b[turn] if turn == stop else 1 - b[turn]
            return [mine] if size == 1 else [-FAR, mine]

        root = grow_private_tree(RuleCutting(counting(counts, chain)), chain, deepest, Decided(draw), comparisons(epsilon))
        return max(node.depth for node in root.nodes())

    assert [depth(stop) for stop in range(deepest)] == list(range(deepest))
    assert depth(deepest) == deepest


def test_a_level_costs_so_many_rows_that_noise_is_halved() -> None:
    """a^delta <= 1/2, also for noise of a scale rounded up to a double; and delta is the smallest such number, or nearly."""
    for units in [1, 2, 3, 7, 10**3, 10**6, 12345678, *(UNITS * k // 40 for k in range(1, 400)), 1000 * UNITS, 10**15]:
        epsilon = Epsilon(units)
        delta = comparisons(epsilon).decay
        rate = Decimal(units) / Decimal(3 * UNITS)
        assert type(delta) is int
        assert delta >= 1
        assert (-rate * delta / (1 + Decimal(2) ** -52)).exp() <= Decimal("0.5")
        assert (-rate * (delta - 1) * (1 - Decimal("0.0001"))).exp() > Decimal("0.5")


# -- through the door --------------------------------------------------------------------------------------------------


def test_structures_through_the_door_follow_the_law() -> None:
    """6,000 trees of at most three levels on one table. False alarms: below 1e-6 (`laws`)."""
    schema = Schema("line", (Numeric("x", Decimal(0), Decimal(7), Decimal(1), Decimal(0)),), 100)
    rows = [0.0] * 9 + [2.0] * 3 + [7.0] * 2
    table = encode(open_source({"x": rows}), schema)
    kernel = kernel_over(table, book_at(None, dataset="line", cap=1), Kernel)
    query = Query(View(), LEAF, PrivateTree((CutRule("x", (0,), (0,), (0,), 1),), 3), (Epsilon.parse("2"),))
    plan = resolve(query, schema)
    seen = dict.fromkeys(trees(3), 0)
    for _ in range(6_000):
        (bits,) = kernel._compute(plan).numbers
        assert bits is not None
        seen[shape(tree_of(bits, halved(8)))] += 1
    counts = np.bincount(np.array(rows, dtype=np.int64), minlength=8)
    law = np.exp(structure_law(claimed(counts, "2", 3), 1.5, 3))
    assert p_value(list(seen.values()), law.tolist()) > ALARM
    for wrong, scale in ((claimed(counts, "2", 3), 0.5), (claimed(np.maximum(counts - 1, 0), "2", 3), 1.5)):
        assert p_value(list(seen.values()), np.exp(structure_law(wrong, scale, 3)).tolist()) < ALARM


# -- planted mistakes --------------------------------------------------------------------------------------------------


def levelled(maximum: Callable[[np.ndarray, int], np.ndarray]) -> SimpleNamespace:
    """numpy for the module under test, with another maximum: so that the floor is changed and nothing else."""
    return SimpleNamespace(**{**vars(np), "maximum": maximum})


@contextmanager
def planted(**changes: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name, change in changes.items():
            patched.setattr(private_tree, name, change)
        yield


MISTAKES: dict[str, Callable[[], Any]] = {
    "no decay for a level": lambda: planted(decay_of=lambda noise: 0),
    "a decay that is too small": lambda: planted(decay_of=lambda noise: 1),
    "noise of scale 1 / epsilon": lambda: planted(laplace=lambda sensitivity, epsilon: laplace(1, epsilon)),
    "noise of scale 2 / epsilon": lambda: planted(laplace=lambda sensitivity, epsilon: laplace(2, epsilon)),
    "no floor": lambda: planted(np=levelled(lambda biased, floor: biased)),
    "a floor ten levels down": lambda: planted(np=levelled(lambda biased, floor: np.maximum(biased, 10 * floor))),
}


def worst_probed_loss(epsilon: str) -> float:
    """Over tables whose rows all lie at one code, and one more there: read off the real code, four levels deep."""
    tables = [(rows,) + (0,) * 15 for rows in range(decay_of_claim(epsilon) + 2)]
    known = [probed(counts, epsilon, 4) for counts in tables]
    laws = [structure_law(b, scale, 4) for b, scale in known]
    return max(float(np.abs(after - before).max()) for before, after in itertools.pairwise(laws))


def test_the_check_passes_the_real_code() -> None:
    assert 0.75 * 0.25 < worst_probed_loss("0.25") <= 0.25 * (1 + SLACK)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_check_catches(name: str) -> None:
    with MISTAKES[name]():
        assert worst_probed_loss("0.25") > 0.25 * 1.05


def test_whole_box_and_cuts_of_the_tiny_domain_are_what_the_checks_think() -> None:
    rules = halved(8)
    cut = cut_of(whole_box(rules), rules)
    assert cut is not None
    assert (cut.place, cut.code) == (0, 4)
