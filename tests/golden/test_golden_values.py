"""Every answer, model, release and cost is what golden_values.json says, and nothing that can be asked is missing there."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import pytest
from golden_commands import commands_of
from golden_file import ENTRIES, FILE, ON_DUCKDB, computed, difference, readable, recorded
from golden_seams import Stream, pinned

import dpmine as dm
from dpmine.codes.choices import CALIBRATIONS, MECHANISMS
from dpmine.codes.choose_split import SPLIT_SCORES
from dpmine.codes.designed_statistic import STATISTICS
from dpmine.codes.vector_sums import BALLS
from dpmine.design.finite_mechanisms import LOSSES, FiniteMechanism
from dpmine.design.priors import MECHANISMS as DESIGNED
from dpmine.kernel.samplers.entropy import Entropy
from dpmine.language.keys import Key
from dpmine.language.predicates import COMPARISONS, Predicate
from dpmine.language.queries import Question
from dpmine.language.splits import Splits
from dpmine.language.views import Rules, Step
from dpmine.mining.estimators import Estimator
from dpmine.noise.finite_tables import LATTICE_KINDS, LatticeNoise
from dpmine.release.estimator import ReleaseEstimator

IF_MEANT = "If that is meant: python tests/golden/write_golden_values.py, and say why in the commit."
VALUES = recorded()


def differing(name: str, engine: str = "memory") -> str:
    return difference(VALUES[name], computed(name, engine).form, name)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_every_golden_value_comes_out_again(name: str) -> None:
    assert name in VALUES, f"{name!r} has no golden value yet. {IF_MEANT}"
    assert not (found := differing(name)), f"{found}. {IF_MEANT}"


@pytest.mark.parametrize("name", sorted(ON_DUCKDB))
def test_where_duckdb_counts_the_golden_values_are_the_same(name: str) -> None:
    assert not (found := differing(name, "duckdb")), f"{found}, by DuckDB."


def test_every_golden_value_has_an_entry_and_the_file_is_laid_out_as_it_is_written() -> None:
    assert list(VALUES) == sorted(ENTRIES)
    assert FILE.read_text(encoding="utf-8") == readable(VALUES) + "\n"


# -- nothing is missing ------------------------------------------------------------------------------------------------


def leaves_below(base: type) -> set[type]:
    """Every class of the package below another one that has no class below itself."""
    found: set[type] = set()
    waiting = [base]
    while waiting:
        cls = waiting.pop()
        below = [each for each in cls.__subclasses__() if each.__module__.split(".")[0] == "dpmine"]
        waiting += below
        if not below and cls is not base:
            found.add(cls)
    return found


def values_in(item: Any) -> Iterator[Any]:
    """A value of a query, and every value inside it."""
    waiting = [item]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += () if set(map(type, part)) <= {int, str} else part
        elif dataclasses.is_dataclass(part):
            yield part
            waiting += [getattr(part, field.name) for field in dataclasses.fields(part)]


@lru_cache(maxsize=1)
def asked() -> list[Any]:
    """Every value inside every query that an entry asked."""
    return [part for name in ENTRIES for query in computed(name).asked for part in values_in(query)]


def names(classes: Iterable[type]) -> list[str]:
    return sorted(cls.__name__ for cls in classes)


@pytest.mark.parametrize("base", [Question, Splits, Step, Rules, Key, Predicate], ids=lambda base: base.__name__)
def test_every_kind_of_question_split_step_rule_key_and_predicate_has_a_golden_value(base: type) -> None:
    wanted = leaves_below(base)
    assert len(wanted) > 1
    assert not names(wanted - {type(part) for part in asked()})


Variants = set[tuple[Any, ...]]


def variants(kind: str, *fields: str) -> Variants:
    """The values of these fields over all questions of that kind."""
    return {tuple(getattr(part, field) for field in fields) for part in asked() if type(part).__name__ == kind}


@pytest.mark.parametrize(
    ("kind", "fields", "wanted"),
    [
        ("ChooseLabel", ("mechanism", "calibration"), set(itertools.product(MECHANISMS, CALIBRATIONS))),
        ("ChooseModel", ("mechanism", "calibration"), set(itertools.product(MECHANISMS, CALIBRATIONS))),
        (
            "ChooseSplit",
            ("score", "mechanism", "calibration"),
            set(itertools.product(SPLIT_SCORES, MECHANISMS, CALIBRATIONS)),
        ),
        ("VectorSums", ("ball", "with_count"), set(itertools.product(BALLS, (False, True)))),
        ("Moments", ("what",), {("mean",), ("variance",), ("covariance",)}),
        ("Bins", ("missing",), {("apart",), ("last",)}),
        ("Groups", ("missing",), {("apart",), ("last",)}),
        ("Compare", ("op",), {(op,) for op in COMPARISONS}),
        ("DesignedStatistic", ("statistic",), {(statistic,) for statistic in STATISTICS}),
        ("LatticeNoise", ("kind",), {(kind,) for kind in LATTICE_KINDS}),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_every_variant_of_a_question_has_a_golden_value(kind: str, fields: tuple[str, ...], wanted: Variants) -> None:
    assert not sorted(wanted - variants(kind, *fields))


def test_statistics_are_told_through_every_kind_of_noise() -> None:
    found = {(part.statistic, type(part.noise)) for part in asked() if type(part).__name__ == "DesignedStatistic"}
    assert {noise for _, noise in found} == {FiniteMechanism, LatticeNoise}
    assert {statistic for statistic, noise in found if noise is FiniteMechanism} >= {"count", "mean", "median", "max"}


def recorded_under(name: str) -> Iterator[Any]:
    """Whatever the file says under that name, anywhere."""
    waiting = list(VALUES.values())
    while waiting:
        form = waiting.pop()
        if isinstance(form, dict):
            waiting += form.values()
            if name in form:
                yield form[name]
        elif isinstance(form, list):
            waiting += form


def test_every_designed_mechanism_and_loss_has_a_golden_value() -> None:
    told = {str(name).split(" + ")[0].split(",")[0] for name in recorded_under("mechanism")}
    assert not set(DESIGNED) - {"auto"} - told
    assert not set(LOSSES) - set(recorded_under("loss"))


PAID = [name for name, method in vars(dm.PrivateTable).items() if not name.startswith("_") and inspect.isfunction(method)]
PAID = [name for name in PAID if "epsilon" in inspect.signature(getattr(dm.PrivateTable, name)).parameters]
NOT_QUESTIONS = {"with_room_for", "ask"}


NO_GOLDEN_PREVIEW = {"choose_model", "crosstab", "min", "offset_sums", "private_tree"}


@pytest.mark.parametrize("method", sorted(set(PAID) - NOT_QUESTIONS))
def test_every_question_of_a_private_table_has_a_golden_value_and_a_preview_where_it_has_one(method: str) -> None:
    under = [name for name in ENTRIES if name.startswith(f"{method}/")]
    assert under
    if method not in NO_GOLDEN_PREVIEW:
        assert any("preview" in name for name in under)


def fitted() -> list[Estimator]:
    return [model for name in ENTRIES for model in computed(name).fitted]


def test_every_estimator_and_release_has_a_golden_value() -> None:
    wanted = leaves_below(Estimator)
    assert wanted >= {getattr(dm, name) for name in dm.__all__ if inspect.isclass(getattr(dm, name))} & wanted
    assert len(wanted & leaves_below(ReleaseEstimator)) > 1
    assert not names(wanted - {type(model) for model in fitted()})


def test_every_parameter_of_every_estimator_is_away_from_its_default_in_a_golden_value() -> None:
    moved = {
        (type(model), field.name)
        for model in fitted()
        for field in dataclasses.fields(model)  # type: ignore[arg-type]
        if getattr(model, field.name) != field.default
    }
    every = {(cls, field.name) for cls in leaves_below(Estimator) for field in dataclasses.fields(cls)}
    # The schema of an estimator is for rows in hand, which have an entry of their own; scaling is always stated, and both
    # ways have one.
    missing = {(cls.__name__, name) for cls, name in every - moved if name not in ("schema", "scaling")}
    assert not sorted(missing)
    scalings = {(type(model).__name__, model.scaling) for model in fitted() if hasattr(model, "scaling")}
    assert scalings >= {("KMeans", "none"), ("KMeans", "bounds"), ("DPLloyd", "none"), ("DPLloyd", "bounds")}


@pytest.mark.parametrize("group", ["query", "release", "mine"])
def test_every_command_that_spends_has_a_golden_value(group: str) -> None:
    head = f"command/{group} "
    under = {name.removeprefix(head).split(",")[0] for name in ENTRIES if name.startswith(head)}
    assert under == commands_of(group)


def test_a_question_that_is_forgotten_is_noticed() -> None:
    """Planted: a question and an estimator that no entry asks."""
    for base in (Question, Estimator):
        forgotten = type("Forgotten", (base,), {"__module__": "dpmine.forgotten"})
        assert forgotten in leaves_below(base)
        assert forgotten not in {type(part) for part in [*asked(), *fitted()]}
        del forgotten
        gc.collect()
        assert "Forgotten" not in names(leaves_below(base))


def test_a_value_that_changed_is_named_with_its_place() -> None:
    """Planted: one number off, one entry gone, one that is new, one whole number that became a float."""
    before = {"counts": [[1, 2], [3, 4]], "text": "a"}
    assert not difference(before, {"counts": [[1, 2], [3, 4]], "text": "a"}, "x")
    assert difference(before, {**before, "counts": [[1, 2], [3, 5]]}, "x") == "x, counts[1][1]: 4 on file, 5 now"
    assert difference(before, {**before, "counts": [[1, 2], [3, 4.0]]}, "x") == "x, counts[1][1]: 4 on file, 4.0 now"
    assert difference(before, {**before, "counts": [[1, 2]]}, "x") == "x, counts: 2 items on file, 1 now"
    assert difference(before, {"counts": before["counts"]}, "x") == "x: 'text' is gone"
    assert difference(before, {**before, "more": 1}, "x") == "x: 'more' is new"


# -- the fake random bits ----------------------------------------------------------------------------------------------


def test_a_stream_gives_the_same_bytes_however_it_is_asked() -> None:
    one, other = Stream("a"), Stream("a")
    assert one.bytes(100) == b"".join(other.bytes(size) for size in (1, 60, 0, 39))
    assert Stream("a").bytes(16) != Stream("b").bytes(16)


def test_without_the_fake_bits_answers_are_as_random_as_ever() -> None:
    with pinned("a"):
        fake = Entropy().bytes(32)
    with pinned("a"):
        assert Entropy().bytes(32) == fake
    assert len({Entropy().bytes(32), Entropy().bytes(32), fake}) == 3


def test_the_order_of_entries_does_not_matter() -> None:
    """Some entries worked out alone and the other way round, in a fresh process."""
    some = sorted(ENTRIES)[::-17]
    code = f"from test_golden_values import differing\nprint([differing(name) for name in {some!r}])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=FILE.parent, check=True)
    assert ran.stdout.strip() == str([""] * len(some))
