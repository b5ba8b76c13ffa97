"""The sparse histogram as a miner meets it: default threshold, previews, refusals, results and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.executors import Opener
from support.patient_tables import SCHEMA, TABLE, truth
from support.refusals import assert_one_sentence

import dpmine as dm
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, DpmineError, EpsilonError, ExpressionError, RequestError
from dpmine.facts.facts import Unit
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.keys import Bins
from dpmine.results.preview import Preview

HUGE = 1000  # an epsilon at which noise is 0 but for a chance of 2 e^-1000
NAMES = tuple(f"n{place}" for place in range(7))
WIDE = Schema(
    "wide", tuple(Numeric(name, Decimal(0), Decimal(999), Decimal(1), Decimal(0)) for name in NAMES), rows_at_most=1000
)
FEW_ROWS = {name: [place, place, 999] for place, name in enumerate(NAMES)}


@pytest.fixture
def private(opened: Opener) -> dm.PrivateTable:
    return opened(TABLE, SCHEMA, epsilon=1)


@pytest.fixture
def clear(opened: Opener) -> dm.PrivateTable:
    """So much epsilon that answers are exact."""
    return opened(TABLE, SCHEMA, epsilon=1_000_000)


@pytest.fixture
def wide(opened: Opener) -> dm.PrivateTable:
    return opened(FEW_ROWS, WIDE, epsilon=1_000_000)


# -- results -----------------------------------------------------------------------------------------------------------


def test_with_a_huge_epsilon_it_is_the_histogram_of_what_occurs(clear: dm.PrivateTable) -> None:
    found = clear.sparse_histogram("ward", "cough", "age", epsilon=HUGE)
    true = truth("ward", "cough", "age")
    assert found.to_dict() == dict(true)
    assert dict(found.items()) == found.to_dict()
    assert len(found) == len(true)
    assert found.at_least == 1
    assert found.titles == ("ward", "cough", "age")
    assert found.combinations == math.prod(map(len, found.labels)) == 6 * 2 * 111
    assert found.law.fraction == Fraction(1, HUGE)
    assert str(found.receipt.epsilon) == str(found.receipt.cost) == str(HUGE)
    assert not any(isinstance(label, np.generic) for labels in found.to_dict() for label in labels)


def test_a_threshold_strikes_out_what_is_below_it(clear: dm.PrivateTable) -> None:
    true = truth("ward", "age")
    for at_least in (2, 3, 4):
        found = clear.sparse_histogram("ward", "age", epsilon=HUGE, at_least=at_least)
        assert found.to_dict() == {place: count for place, count in true.items() if count >= at_least}
    assert len(clear.sparse_histogram("ward", "age", epsilon=HUGE, at_least=10**6)) == 0


def test_places_are_label_numbers_in_the_order_of_the_histogram(clear: dm.PrivateTable) -> None:
    """Derived keys and tests too; in a view, of the rows of the view."""
    keys: tuple[Any, ...] = ("ward", Bins("age", ("40", "65")), dm.col("age") >= 50)
    view = clear.where("cough == True")
    dense = view.histogram(*keys, epsilon=HUGE)
    found = view.sparse_histogram(*keys, epsilon=HUGE)
    assert found.labels == dense.labels
    assert found.titles == dense.titles
    assert found.places.shape == (len(found), 3)
    np.testing.assert_array_equal(found.places, np.argwhere(dense.counts))
    np.testing.assert_array_equal(found.counts, dense.counts[dense.counts > 0])
    assert clear.sparse_histogram("ward", "ward", epsilon=HUGE).to_dict() == {
        (ward, ward): count for (ward,), count in truth("ward").items()
    }


def test_a_million_billion_combinations_are_as_quick_as_few(wide: dm.PrivateTable) -> None:
    found = wide.sparse_histogram(*NAMES[:6], epsilon=HUGE)
    assert found.combinations == 10**18
    assert found.to_dict() == {("0", "1", "2", "3", "4", "5"): 2, ("999",) * 6: 1}
    np.testing.assert_array_equal(found.places, [[0, 1, 2, 3, 4, 5], [999] * 6])


def test_it_prints_as_one_line(private: dm.PrivateTable) -> None:
    found = private.sparse_histogram("ward", "age", epsilon="0.5", at_least=3)
    assert str(found) == (
        f"{len(found)} of 666 combinations of ward, age with a noisy count of at least 3, epsilon 0.5; of all counts, shown "
        "or not, 95 % are within 6, but those shown were picked for being large"
    )
    assert found.standard_deviation == pytest.approx(math.sqrt(2 * math.exp(-0.5)) / (1 - math.exp(-0.5)))
    assert all(count >= 3 for _, count in found.items())


# -- the default threshold ---------------------------------------------------------------------------------------------


def test_the_default_threshold_lets_about_a_thousand_empty_combinations_through(wide: dm.PrivateTable) -> None:
    """10^12 combinations: a = 1/e, and 10^12 e^-21 / (1 + 1/e) = 554 is the first below a thousand.

    False alarms: below 1e-9, since the number is Poisson with that mean but for 1e-9 of it.
    """
    found = wide.sparse_histogram(*NAMES[:4], epsilon=1)
    assert found.at_least == 21
    assert 10**12 * math.exp(-20) / (1 + math.exp(-1)) > 1000
    assert 405 < len(found) < 715
    assert wide.sparse_histogram("n0", epsilon=1).at_least == 1


def test_the_default_threshold_is_public(opened: Opener) -> None:
    """The same whatever the rows."""
    empty = opened({name: [] for name in NAMES}, WIDE, epsilon=10)
    assert empty.sparse_histogram(*NAMES[:4], epsilon=1).at_least == 21


# -- previews ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_says_how_much_noise_will_show(private: dm.PrivateTable) -> None:
    preview = private.preview.sparse_histogram("ward", "age", epsilon="0.1")
    assert isinstance(preview, Preview)
    assert str(preview) == (
        "This query costs epsilon 0.1; epsilon 1 remains. Every count, shown or not, gets noise of 14.1 (standard "
        "deviation), and those shown are picked for being large; about 316 combinations without any row will be shown, and "
        "counts below 1 left out."
    )
    assert str(private.remaining()) == "1"
    higher = private.preview.sparse_histogram("ward", "age", epsilon="0.1", at_least=30)
    assert "about 17.4 combinations" in higher.expected_error
    assert "counts below 30" in higher.expected_error


def test_the_statement_names_the_question(private: dm.PrivateTable) -> None:
    private.where("age >= 40").sparse_histogram("ward", "age", epsilon="0.1", at_least=5)
    assert "sparse histogram by ward, age, from 5 on" in str(private.statement())


# -- prices ------------------------------------------------------------------------------------------------------------


def test_it_costs_its_epsilon_once_and_a_repeated_question_nothing(private: dm.PrivateTable) -> None:
    first = private.sparse_histogram("ward", "age", epsilon="0.3")
    assert str(private.remaining()) == "0.7"
    again = private.sparse_histogram("ward", "age", epsilon="0.3")
    assert again.to_dict() == first.to_dict()
    assert again.receipt == first.receipt
    assert str(private.remaining()) == "0.7"
    private.sparse_histogram("ward", "age", epsilon="0.3", at_least=2)
    assert str(private.remaining()) == "0.4"
    private.sparse_histogram("age", "ward", epsilon="0.3", request_key="mine")
    assert str(private.remaining()) == "0.1"


def test_a_named_request_is_answered_once(private: dm.PrivateTable) -> None:
    first = private.sparse_histogram("ward", "age", epsilon="0.3", request_key="mine")
    assert private.sparse_histogram("ward", "age", epsilon="0.3", request_key="mine").to_dict() == first.to_dict()
    assert str(private.remaining()) == "0.7"


def test_a_partition_costs_the_largest(private: dm.PrivateTable) -> None:
    for view in private.partition("cough").values():
        view.sparse_histogram("ward", "age", epsilon="0.4")
    assert str(private.remaining()) == "0.6"


def test_beyond_the_budget_nothing_is_asked(private: dm.PrivateTable) -> None:
    with pytest.raises(BudgetError):
        private.sparse_histogram("ward", "age", epsilon=2)
    assert str(private.remaining()) == "1"


def test_persons_with_several_rows_cost_several_times(opened: Opener) -> None:
    schema = Schema("visits", (Nominal("ward", ("a", "b"), "a", missing="a"),), 100, unit=Unit("who", 3))
    rows = {"ward": ["a"] * 5 + ["b"] * 2, "who": ["anna"] * 5 + ["bert", "carl"]}
    private = opened(rows, schema, epsilon=3000)
    found = private.sparse_histogram("ward", epsilon=900)
    assert found.to_dict() == {("a",): 3, ("b",): 2}
    assert (str(found.receipt.epsilon), str(found.receipt.cost)) == ("900", "2700")
    assert str(private.remaining()) == "300"


# -- refusals ----------------------------------------------------------------------------------------------------------


REFUSALS: dict[str, tuple[Callable[[dm.PrivateTable], Any], type[DpmineError], str]] = {
    "threshold 0": (
        lambda wide: wide.sparse_histogram("n0", epsilon=1, at_least=0),
        RequestError,
        r"The threshold 'at_least' is a whole number from 1 to 2147483647. Got 0.",
    ),
    "threshold below 0": (lambda wide: wide.sparse_histogram("n0", epsilon=1, at_least=-3), RequestError, "Got -3"),
    "threshold of no whole rows": (
        lambda wide: wide.sparse_histogram("n0", epsilon=1, at_least=1.5),  # type: ignore[arg-type]
        RequestError,
        r"Got 1\.5",
    ),
    "a truth value": (lambda wide: wide.sparse_histogram("n0", epsilon=1, at_least=True), RequestError, "Got True"),
    "too large a threshold": (
        lambda wide: wide.sparse_histogram("n0", epsilon=1, at_least=2**31),
        RequestError,
        "from 1 to",
    ),
    "too much noise": (
        lambda wide: wide.sparse_histogram(*NAMES[:4], epsilon=1, at_least=5),
        RequestError,
        r"With 1000000000000 combinations and a threshold of 5, noise alone would show about 4\.93e\+09 of them; at most "
        r"1000000 fit one answer\. Raise 'at_least', or use coarser keys\.",
    ),
    "too many combinations": (
        lambda wide: wide.sparse_histogram(*NAMES, epsilon=1),
        RequestError,
        "A sparse histogram has at most 1152921504606846976 combinations. Use coarser keys.",
    ),
    "too many combinations for a double": (
        lambda wide: wide.sparse_histogram(*["n0"] * 128, epsilon=1),
        RequestError,
        "has at most 1152921504606846976 combinations",
    ),
    "too many keys": (
        lambda wide: wide.sparse_histogram(*["n0"] * 129, epsilon=1, at_least=9),
        RequestError,
        "at most 128 keys",
    ),
    "no key": (lambda wide: wide.sparse_histogram(epsilon=1), RequestError, "needs at least one key"),
    "no epsilon": (lambda wide: wide.sparse_histogram("n0", epsilon=0), EpsilonError, "must be positive"),
    "an unknown column": (lambda wide: wide.sparse_histogram("other", epsilon=1), ExpressionError, "not in the schema"),
    "cells": (
        lambda wide: wide.cells("n0").sparse_histogram("n1", epsilon=1),
        AttributeError,
        "before it is split into cells",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_why_and_spends_nothing(wide: dm.PrivateTable, name: str) -> None:
    ask, kind, text = REFUSALS[name]
    with pytest.raises(kind, match=text) as refused:
        ask(wide)
    assert_one_sentence(refused.value)
    assert wide.remaining() == Epsilon.parse(1_000_000)


def test_a_dry_run_refuses_what_the_question_would(wide: dm.PrivateTable) -> None:
    with pytest.raises(RequestError, match="noise alone"):
        wide.preview.sparse_histogram(*NAMES[:4], epsilon=1, at_least=5)
    with pytest.raises(RequestError, match="combinations"):
        wide.preview.sparse_histogram(*NAMES, epsilon=1)


def test_what_fits_exactly_is_answered(wide: dm.PrivateTable) -> None:
    """Just below a million phantoms: 10^12 e^-14 / (1 + 1/e) = 607,895; at 13 it would be 1.65 million."""
    with pytest.raises(RequestError, match="noise alone"):
        wide.sparse_histogram(*NAMES[:4], epsilon=1, at_least=13)
    assert "about 6.08e+05" in wide.preview.sparse_histogram(*NAMES[:4], epsilon=1, at_least=14).expected_error
