"""Entropy: uniform, exact where it can be checked exactly, never repeated by a forked process, never seeded."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.bits import Script, bits64
from support.laws import ALARM, frequencies, p_value

import dpmine as dm
import dpmine.kernel
from dpmine.kernel.samplers.entropy import Entropy


@pytest.mark.parametrize("bound", [2, 3, 5, 6, 7, 10, 100])
def test_below_is_uniform(bound: int) -> None:
    drawn = frequencies(lambda: Entropy().below(bound), bound, 60_000)
    assert p_value(drawn, [1 / bound] * bound) > ALARM


def test_below_a_bound_between_powers_of_two_is_uniform_in_its_upper_part_too() -> None:
    bound = 3 * 2**90
    drawn = frequencies(lambda: Entropy().below(bound) * 12 // bound, 12, 30_000)
    assert p_value(drawn, [1 / 12] * 12) > ALARM


@pytest.mark.parametrize("bound", range(1, 65))
def test_below_keeps_every_value_under_the_bound_and_draws_again_above_it(bound: int) -> None:
    width = (bound - 1).bit_length()
    for first in range(2**width):
        script = Script(bytes([first]), bytes([bound - 1])) if width else Script()
        drawn = Entropy.below(script, bound)
        assert drawn == (first if first < bound else bound - 1)
        assert script.used_up == (width == 0 or first >= bound)


def test_the_uniformity_check_catches_a_remainder() -> None:
    """Planted mistake: reducing 8 bits modulo 100 favours the low values."""
    drawn = frequencies(lambda: Entropy().bits(8) % 100, 100, 60_000)
    assert p_value(drawn, [1 / 100] * 100) < ALARM


@pytest.mark.parametrize("count", [2, 3, 4])
def test_order_is_uniform_over_all_permutations(count: int) -> None:
    number = {order: place for place, order in enumerate(itertools.permutations(range(count)))}
    drawn = frequencies(lambda: number[tuple(Entropy().order(count).tolist())], len(number), 40_000)
    assert p_value(drawn, [1 / math.factorial(count)] * len(number)) > ALARM


def test_the_order_check_catches_a_swap_shuffle_that_is_not_uniform() -> None:
    """Planted mistake: swapping each place with any place reaches 27 equally likely ways, not a multiple of 6."""
    number = {order: place for place, order in enumerate(itertools.permutations(range(3)))}

    def shuffled() -> int:
        order = [0, 1, 2]
        for place in range(3):
            other = Entropy().below(3)
            order[place], order[other] = order[other], order[place]
        return number[tuple(order)]

    assert p_value(frequencies(shuffled, 6, 40_000), [1 / 6] * 6) < ALARM


def test_order_sorts_64_bit_tags_and_draws_them_all_again_when_two_are_equal() -> None:
    script = Script(bits64(7), bits64(9), bits64(7), bits64(2**64 - 1), bits64(0), bits64(2**63))
    assert script.order(3).tolist() == [1, 2, 0]
    assert script.used_up


@pytest.mark.parametrize("count", [0, 1])
def test_order_of_nothing_or_one_needs_no_luck(count: int) -> None:
    assert Entropy().order(count).tolist() == list(range(count))


def test_words_and_bits_read_all_their_bits() -> None:
    words = Entropy().words(100_000)
    assert words.dtype == np.dtype("<u4")
    for shift in range(0, 32, 8):
        octets = np.bincount((words >> shift) & 255, minlength=256)
        assert p_value(octets, [1 / 256] * 256) > ALARM
    for count in (0, 1, 3, 8, 13, 64, 128):
        drawn = [Entropy().bits(count) for _ in range(200)]
        assert all(0 <= number < 2**count for number in drawn)
        assert max(drawn, default=0) > (2**count - 1) // 2 if count else max(drawn) == 0  # missed with chance 2^-200


FORKS = """
import os, sys
from dpmine.kernel.samplers.entropy import Entropy

class Buffered(Entropy):  # planted mistake: bits kept in the process
    held = b""
    def bytes(self, count):
        if len(self.held) < count:
            self.held = os.urandom(1 << 16)
        drawn, self.held = self.held[:count], self.held[count:]
        return drawn

source = {"entropy": Entropy, "buffered": Buffered}[sys.argv[1]]()
source.words(1000), source.order(10), source.below(1000)
tags = []
for _ in range(16):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = [source.bits(128) for _ in range(64)]
        os.write(writing, b"".join(tag.to_bytes(16, "big") for tag in drawn))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    tags += [text[place:place + 16] for place in range(0, len(text), 16)]
tags += [source.bits(128).to_bytes(16, "big") for _ in range(64)]
print(len(tags), len(set(tags)))
"""


def _tags_of_forks(source: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", FORKS, source], capture_output=True, text=True, check=True, timeout=60)
    drawn, distinct = map(int, done.stdout.split())
    return drawn, distinct


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_processes_never_repeat_a_128_bit_tag() -> None:
    """False-alarm rate: below 2^-100."""
    assert _tags_of_forks("entropy") == (17 * 64, 17 * 64)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_fork_check_catches_buffered_bits() -> None:
    drawn, distinct = _tags_of_forks("buffered")
    assert drawn == 17 * 64
    assert distinct < drawn


def _public_parameters() -> list[tuple[str, str]]:
    found = []
    for name in dm.__all__:
        thing = getattr(dm, name)
        members = [("", thing)]
        if inspect.isclass(thing):
            members += [(f".{member}", method) for member, method in inspect.getmembers(thing, inspect.isroutine)]
        for suffix, member in members:
            if suffix.startswith(".__") or not callable(member):
                continue
            try:
                signature = inspect.signature(member)
            except ValueError:  # some built-in types tell no signature
                continue
            found += [(name + suffix, parameter) for parameter in signature.parameters]
    return found


RELEASES = ("ContingencyTable.rows", "DiffGen.rows", "TreeRelease.rows")


def test_nothing_public_takes_a_seed_or_a_random_source() -> None:
    parameters = _public_parameters()
    assert ("open", "noise") in parameters
    assert ("PrivateTable.count", "epsilon") in parameters
    # A forest's public structure and the starts of DPLloyd are drawn before any row is asked about, raw rows of a release
    # and the starts of KMeans from released numbers; colluders are simulated from a public prior.
    drawing = ("RandomForest", "DPLloyd", "KMeans", "FiniteMechanism.colluders_error", *RELEASES)
    public = [(name, "seed") for name in drawing]
    forbidden = ("seed", "random", "rng", "entropy", "generator", "state")
    assert sorted(pair for pair in parameters if any(part in pair[1].lower() for part in forbidden)) == sorted(public)


def test_the_kernel_uses_no_other_random_source() -> None:
    """No module of the kernel names numpy.random or imports random or secrets."""
    for path in Path(dpmine.kernel.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("random", "default_rng", "RandomState"), path.name
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not {"random", "secrets", "numpy.random"} & set(names), path.name
