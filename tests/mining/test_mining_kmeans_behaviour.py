"""How clustering behaves for its users: predictions, units, order, edges, parameters, and nothing true on the model."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from support.estimators import CLUSTERINGS
from support.opening import HUGE, opened, silent
from support.points import BLOBS, blobs, box_schema, columns, cube, fitted_silently
from support.reachable import leaks, reached_from

import dpmine as dm
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.mining.clustering.estimator import ClusterEstimator

SCHEMA, POINTS = box_schema(2), blobs(100, 1)
ODD = Schema(
    "odd",
    (
        Numeric("age", Decimal(-20), Decimal(80), Decimal("0.5"), Decimal(0)),
        Nominal("colour", ("red", "blue"), "red", missing="red"),
        Numeric("income", Decimal(1000), Decimal(9000), Decimal(20), Decimal(1000)),
    ),
    10_000,
)


def odd_table(seed: int, each: int = 150) -> dict[str, list[Any]]:
    """Two crowds, at (0, 2000) and (60, 8000), of ages with halves and incomes in twenties; the second is smaller."""
    draw = np.random.default_rng(seed)
    age = np.round(2 * np.concatenate([draw.normal(0, 3, each), draw.normal(60, 3, each - 30)])) / 2
    income = 20 * np.round(np.concatenate([draw.normal(2000, 200, each), draw.normal(8000, 200, each - 30)]) / 20)
    return {"age": age.tolist(), "colour": ["red"] * len(age), "income": income.tolist()}


# -- predict and transform ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["none", "bounds"])
@pytest.mark.parametrize("name", CLUSTERINGS)
def test_predict_and_transform_agree_with_brute_force_and_with_the_private_key(name: str, scaling: str) -> None:
    table = odd_table(1)
    with silent(table, ODD, 10) as (private, _, _):
        model = CLUSTERINGS[name](4, scaling=scaling).fit(private)
        counted = private.histogram(model.nearest(), epsilon=1).counts
    predicted = model.predict(table)
    k = len(model.cluster_centers_)
    assert counted.tolist() == np.bincount(predicted, minlength=k).tolist()
    rows = np.array([table["age"], table["income"]]).T
    unit = np.array([1, 1]) if scaling == "none" else np.array([100, 8000])
    away = np.linalg.norm((rows[:, None, :] - model.cluster_centers_) / unit, axis=2)
    assert np.allclose(model.transform(table), away, rtol=2e-3, atol=2e-3 * away.max())  # scales are whole numbers
    nearest = away.argmin(axis=1)
    clear = np.sort(away, axis=1)[:, :2] @ np.array([-1, 1]) > 5e-3 * away.max() if k > 1 else np.ones(len(rows), bool)
    assert (predicted == nearest)[clear].all()
    assert (model.transform(table).argmin(axis=1) == predicted).all()


def test_ties_go_to_the_first_centre_everywhere() -> None:
    """Grid places half way between two centres, in exact integers."""
    schema = box_schema(1, high=4)
    with silent({"x0": [0.0, 1.0, 2.0, 3.0, 4.0]}, schema, 1000) as (private, _, _):
        model = dm.DPLloyd(2, 10, seed=1).fit(private)
        for first, second in ((0, 4), (4, 0), (1, 3)):
            model.positions_ = model.space_.positions([np.array([first, second])])
            predicted = model.predict({"x0": [0, 1, 2, 3, 4]})
            assert predicted[2] == 0
            assert private.histogram(model.nearest(), epsilon=1).counts.tolist() == np.bincount(predicted).tolist()


def test_arrays_frames_and_dicts_of_columns_predict_the_same() -> None:
    model = dm.KMeans(3, HUGE, seed=1, schema=SCHEMA).fit(POINTS)
    wanted = model.predict(POINTS).tolist()
    frame = pd.DataFrame(columns(POINTS)).assign(more="unused")
    for rows in (columns(POINTS), frame, frame[["x1", "x0"]], pa.table(columns(POINTS))):
        assert model.predict(rows).tolist() == wanted
    with pytest.raises(dm.RequestError, match="one column for each of x0, x1"):
        model.predict(POINTS[:, :1])
    with pytest.raises(dm.DataError, match="x1"):
        model.predict({"x0": [1.0]})
    assert model.predict(POINTS[:0]).shape == (0,)
    assert model.transform(POINTS[:0]).shape == (0, 3)


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_a_model_that_is_not_fitted_says_so(method: str) -> None:
    for model in (dm.KMeans(2), dm.DPLloyd(2)):
        with pytest.raises(dm.RequestError, match="not fitted"):
            getattr(model, method)(POINTS)
        with pytest.raises(dm.RequestError, match="not fitted"):
            model.nearest()


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["none", "bounds"])
@pytest.mark.parametrize("make", [dm.KMeans, dm.DPLloyd])
def test_centres_are_in_the_attributes_own_units(make: Any, scaling: str) -> None:
    table = odd_table(2)
    model = make(2, HUGE, scaling=scaling, seed=3).fit(table, schema=ODD)
    rows = np.array([table["age"], table["income"]]).T
    means = np.array([rows[:150].mean(axis=0), rows[150:].mean(axis=0)])
    near = np.array([0.02, 2.0]) if make is dm.DPLloyd else np.array([100, 8000]) / 20  # a grid is off by part of a cell
    if scaling == "none":
        near[0] = max(near[0], 100 if make is dm.KMeans else 0)  # where incomes are long, ages have one cell
    assert (np.abs(model.cluster_centers_ - means) <= near).all()
    assert np.round(model.cluster_sizes_).tolist() == [150, 120]


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_centres_are_ordered_by_noisy_size(name: str) -> None:
    for _ in range(3):
        model = CLUSTERINGS[name](1).fit(POINTS, schema=SCHEMA)
        assert (np.diff(model.cluster_sizes_) <= 0).all()
        assert (model.cluster_sizes_ >= 0).all()


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    model, asked = fitted_silently(CLUSTERINGS[name](5), POINTS, SCHEMA)
    shuffled = np.random.default_rng(9).permutation(POINTS)
    again, asked_again = fitted_silently(CLUSTERINGS[name](5), shuffled, SCHEMA)
    assert [(query, reply.answer.numbers) for query, reply in asked] == [
        (q, reply.answer.numbers) for q, reply in asked_again
    ]
    assert (model.cluster_centers_ == again.cluster_centers_).all()
    assert (model.cluster_sizes_ == again.cluster_sizes_).all()


def test_seeds_make_public_choices_and_no_noise() -> None:
    space = dm.KMeans().space(SCHEMA)
    for starts in ("random", "spread"):
        first, again, other = (dm.DPLloyd(5, 1, starts=starts, seed=seed)._starts(space) for seed in (1, 1, 2))
        assert (first == again).all()
        assert (first != other).any()
    fits = [dm.DPLloyd(3, 1, seed=1).fit(POINTS, schema=SCHEMA).cluster_centers_.tolist() for _ in range(2)]
    assert fits[0] != fits[1]  # 60 numbers with noise of scale 1e5 and more are all the same: far below 1e-6


@pytest.mark.parametrize(("k", "dimensions"), [(1, 2), (7, 1), (20, 2), (20, 5)])
def test_spread_starts_keep_their_distance_and_stay_inside(k: int, dimensions: int) -> None:
    """Each keeps a from the walls and 2a from the others, with a as large as found: never less than for random starts."""
    space = dm.KMeans().space(box_schema(dimensions))

    def apart(points: Any) -> float:
        inside = points / space.extents
        between = [np.linalg.norm(a - b) for place, a in enumerate(inside) for b in inside[:place]]
        return float(min([2 * inside.min(), 2 * (1 - inside).min(), *between]))

    spread = dm.DPLloyd(k, 1, starts="spread", seed=1)._starts(space)
    assert spread.shape == (k, dimensions)
    random = [apart(dm.DPLloyd(k, 1, seed=seed)._starts(space)) for seed in range(10)]
    assert apart(spread) > max(random)


def test_automatic_finds_three_well_separated_clusters() -> None:
    for seed in range(2):
        points = blobs(300, seed)
        model = dm.KMeans("auto", 100, max_clusters=12, seed=seed).fit(points, schema=SCHEMA)
        assert len(model.cluster_centers_) == 3
        assert np.abs(model.cluster_centers_ - BLOBS).max() < 3  # the first blob is the largest
    model = dm.KMeans("auto", 100, max_clusters=6, seed=1).fit(cube(300, 1), schema=box_schema(4))
    assert len(model.cluster_centers_) == 3


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_an_empty_table_gives_a_model(name: str) -> None:
    for epsilon in ("0.1", HUGE):
        model = CLUSTERINGS[name](epsilon).fit({"x0": [], "x1": []}, schema=SCHEMA)
        assert model.cluster_centers_.shape == (len(model.cluster_sizes_), 2)
        assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 100)).all()
        assert len(model.predict(POINTS)) == len(POINTS)
        if epsilon == HUGE:
            assert model.cluster_sizes_.sum() == 0


@pytest.mark.parametrize("name", ["grid", "tree", "dplloyd"])
def test_one_row_and_one_attribute(name: str) -> None:
    model = CLUSTERINGS[name](HUGE).fit({"x0": [42.0]}, schema=box_schema(1))
    assert model.cluster_centers_.shape == (3, 1)
    assert model.cluster_sizes_.sum() == pytest.approx(1, abs=1e-6)
    assert abs(model.cluster_centers_[0, 0] - 42) < 1
    many = CLUSTERINGS[name](HUGE).fit({"x0": [10.0] * 30 + [50.0] * 20 + [90.0] * 10}, schema=box_schema(1))
    if name != "dplloyd":  # whose random starts may miss a cluster
        assert np.abs(many.cluster_centers_[:, 0] - [10, 50, 90]).max() < 1


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_one_cluster_is_the_mean(name: str) -> None:
    if name.startswith("automatic"):
        return
    model = CLUSTERINGS[name](HUGE).set_params(n_clusters=1).fit(POINTS, schema=SCHEMA)
    assert model.cluster_centers_.shape == (1, 2)
    assert np.abs(model.cluster_centers_[0] - POINTS.mean(axis=0)).max() < 1.5
    assert model.cluster_sizes_[0] == pytest.approx(len(POINTS), abs=1e-6)
    assert (model.predict(POINTS) == 0).all()


@pytest.mark.parametrize("name", ["grid", "tree", "dplloyd", "dplloyd, better"])
def test_more_clusters_than_cells(name: str) -> None:
    schema = box_schema(2, high=1)
    table = {"x0": [0.0, 0.0, 1.0, 1.0] * 20, "x1": [0.0, 1.0, 0.0, 1.0] * 20}
    for epsilon in (1, HUGE):
        model = CLUSTERINGS[name](epsilon).set_params(n_clusters=20).fit(table, schema=schema)
        assert model.cluster_centers_.shape == (20, 2)
        assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()
    assert model.cluster_sizes_.sum() == pytest.approx(80, abs=1e-6)


def test_attributes_that_are_named_are_used_in_their_order() -> None:
    points = cube(60, 1)
    model = dm.KMeans(3, HUGE, attributes=["x3", "x0"], seed=1).fit(columns(points), schema=box_schema(4))
    assert model.space_.names == ("x3", "x0")
    assert model.cluster_centers_.shape == (3, 2)
    frame = pd.DataFrame(columns(points))
    assert model.predict(frame).tolist() == model.predict(points[:, [3, 0]]).tolist()
    assert dm.KMeans(2, 1).space(ODD).names == ("age", "income")


# -- handing over data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_frames_arrays_and_private_tables_give_the_same_model(name: str) -> None:
    """At epsilon 1e6 the noise of counts is 0; DPLloyd's sums keep some, a thousandth of a grid step."""
    with opened(columns(POINTS), SCHEMA, HUGE) as private:
        wanted = CLUSTERINGS[name](HUGE).fit(private).cluster_centers_
    for rows in (POINTS, columns(POINTS), pd.DataFrame(columns(POINTS)), pa.table(columns(POINTS))):
        assert np.abs(CLUSTERINGS[name](HUGE).fit(rows, schema=SCHEMA).cluster_centers_ - wanted).max() < 0.02
    assert np.abs(CLUSTERINGS[name](HUGE, schema=SCHEMA).fit(POINTS).cluster_centers_ - wanted).max() < 0.02


def test_what_is_missing_or_too_much_is_said() -> None:
    with pytest.raises(dm.RequestError, match="needs the public facts"):
        dm.KMeans(2).fit(POINTS)
    with pytest.raises(dm.RequestError, match="one column for each of x0, x1"):
        dm.KMeans(2).fit(POINTS[:, :1], schema=SCHEMA)
    with opened(columns(POINTS), SCHEMA, 1) as private:
        with pytest.raises(dm.RequestError, match="brings its schema along"):
            dm.KMeans(2).fit(private, schema=SCHEMA)
        assert str(private.remaining()) == "1"


# -- parameters --------------------------------------------------------------------------------------------------------

FIELDS = {
    dm.KMeans: ["n_clusters", "epsilon", "attributes", "scaling", "method", "max_clusters", "seed", "schema"],
    dm.DPLloyd: [
        *("n_clusters", "epsilon", "iterations", "starts", "shares", "attributes", "scaling", "rows", "seed", "schema"),
    ],
}


@pytest.mark.parametrize("kind", FIELDS)
def test_parameters_are_the_fields_and_nothing_fitted_is_one(kind: Any) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    assert names == FIELDS[kind]
    assert not [name for name in names if name.endswith("_")]
    model = kind(3, 5, seed=1).fit(POINTS, schema=SCHEMA)
    assert list(model.get_params()) == names
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "cluster_centers_")
    assert repr(copied) == repr(model) == f"{kind.__name__}(n_clusters=3, epsilon=5, seed=1)"
    assert repr(kind()) == f"{kind.__name__}()"
    assert model.set_params(n_clusters=2, seed=4) is model
    assert len(model.cluster_centers_) == 3  # until the next fit
    assert len(model.fit(POINTS, schema=SCHEMA).cluster_centers_) == 2
    with pytest.raises(dm.RequestError, match="has no parameter 'n_init'"):
        model.set_params(n_init=10)


def test_a_fit_returns_the_model_and_ignores_y() -> None:
    model = dm.KMeans(2, 1, schema=SCHEMA)
    assert model.fit(POINTS, [0] * len(POINTS)) is model


# -- nothing true ------------------------------------------------------------------------------------------------------

ROWS = 9973  # a number that nothing else has
FITTED = {"cluster_centers_", "cluster_sizes_", "positions_", "space_", "schema_", "cost_", "charged_", "synopsis_"}
ALLOWED = FITTED | {"feature_names_in_", "n_features_in_"}
TRUE = ("labels_", "inertia_", "n_iter_", "n_samples_", "n_rows_", "score_")


def true_things(model: ClusterEstimator) -> list[str]:
    """What no model may hold: the table, anything as long as it, its number of rows, or what follows from labels."""
    found = leaks(model, ROWS)
    found += [name for name in vars(model) if name.endswith("_") and name not in ALLOWED]
    found += [name for name in TRUE if hasattr(model, name)]
    for path, thing in reached_from(model):
        if isinstance(thing, np.ndarray) and thing.size and (np.any(thing == ROWS) or thing.sum() == ROWS):
            found.append(path)
        if isinstance(thing, float) and thing == ROWS:
            found.append(path)
    return found


@pytest.mark.parametrize("handed", ["private", "rows"])
@pytest.mark.parametrize("name", CLUSTERINGS)
def test_nothing_of_the_table_can_be_reached_from_a_fitted_model(name: str, handed: str) -> None:
    """At epsilon 0.5 noisy sizes add up to the true number of rows by chance only (1 in 8 or less), so seven retries."""
    points = np.random.default_rng(1).integers(0, 101, (ROWS, 2)).astype(float)
    schema = box_schema(2, rows_at_most=100_000)
    for _ in range(8):
        model = CLUSTERINGS[name]("0.5")
        if handed == "private":
            with opened(columns(points), schema, "0.5") as private:
                model.fit(private)
        else:
            model.fit(points, schema=schema)
        found = true_things(model)
        if not found:
            break
    assert found == []
    assert FITTED - {"synopsis_"} <= set(vars(model))
    assert len(pickle.dumps(model)) < 8 * ROWS * 2


def test_the_walk_finds_what_is_hidden() -> None:
    points = np.random.default_rng(1).integers(0, 101, (ROWS, 2)).astype(float)
    model: Any = dm.KMeans(3, "0.5", seed=1).fit(points, schema=box_schema(2))
    sizes = model.cluster_sizes_
    with opened(columns(POINTS), SCHEMA) as private:
        for hidden in (private, np.zeros(ROWS), {"deep": [ROWS]}, np.array([ROWS - 1.0, 1.0]), lambda: private):
            model.space_ = hidden
            assert true_things(model)
    for name in ("labels_", "inertia_", "n_iter_"):
        other = copy.copy(model)
        setattr(other, name, 0)
        assert name in true_things(other)
    model.cluster_sizes_ = np.append(sizes, ROWS - sizes.sum())
    assert any("cluster_sizes_" in path for path in true_things(model))


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_a_model_is_pickled_and_copied_whole(name: str) -> None:
    model = CLUSTERINGS[name](1).fit(POINTS, schema=SCHEMA)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 (our own)
        assert (again.cluster_centers_ == model.cluster_centers_).all()
        assert (again.predict(POINTS) == model.predict(POINTS)).all()
        assert again.nearest() == model.nearest()
