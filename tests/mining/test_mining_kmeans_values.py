"""Clusters lie among values, however coarse or uneven the grid: money columns, gaps, positions, files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from support.opening import HUGE, silent

import dpmine as dm
from dpmine.codes.rows import LARGEST_POSITION
from dpmine.facts.encoding import positions_of_values, rounded_values
from dpmine.facts.kinds.kind import DROP, OWN
from dpmine.facts.kinds.numeric import MOST_GRID_POINTS, Numeric
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.schema import Schema
from dpmine.mining.clustering import kmeans
from dpmine.mining.clustering.space import Points, Space
from dpmine.mining.clustering.synopsis import CLEAR, _clear, _least, tails_of
from dpmine.noise.laws import laplace
from dpmine.noise.spread import deviation
from dpmine.questions.histogram import NoisyCount
from dpmine.tables.private_table import PrivateTable

CENT, MILLION = Decimal("0.01"), Decimal(1_000_000)


def money(name: str = "income", missing: Decimal | str = OWN) -> Numeric:
    """Bounds far wider than most of what people earn, in cents."""
    return Numeric(name, Decimal(0), MILLION, None, missing, CENT, scale="log")


AGE = Numeric("age", Decimal(0), Decimal(100), Decimal(1), OWN)
WEIGHT = Numeric(
    "weight", Decimal(0), Decimal(200), None, DROP, Decimal("0.1"), edges=(Decimal(50), Decimal(70), Decimal(90))
)
PEOPLE = Schema("people", (money(), AGE, WEIGHT), 100_000)
INCOMES = np.round(np.exp(np.random.default_rng(3).normal(7.5, 1.0, 4000)), 2)


# -- positions ---------------------------------------------------------------------------------------------------------


@st.composite
def numbers_with_values(draw: st.DrawFn) -> tuple[Numeric, ...]:
    """Attributes with few and many values, between bounds of many lengths."""
    found = []
    for place in range(draw(st.integers(1, 3))):
        last = draw(st.integers(1, 2**30) | st.sampled_from([1, 4095, 4096, 4097, 131_000, 2**23 - 1, 2**23, 2**30]))
        finest = Decimal(10) ** draw(st.integers(-3, 2))
        high = finest * last
        cut = finest * draw(st.integers(1, last))
        found.append(Numeric(f"x{place}", Decimal(0), high, None, draw(st.sampled_from([OWN, DROP])), finest, (cut,)))
    return tuple(found)


@settings(deadline=None, max_examples=200)
@given(numbers_with_values(), st.sampled_from(["none", "bounds"]))
def test_positions_stay_within_their_bound_and_axes_keep_their_lengths(
    attributes: tuple[Numeric, ...], scaling: str
) -> None:
    space = Space.of(Schema("any", attributes, 100), None, scaling)
    lasts = [attribute.values - 1 for attribute in attributes]
    lengths = [1.0 if scaling == "bounds" else float(a.numbers.high) for a in attributes]
    for last, steps, scale, length, extent in zip(lasts, space.steps, space.scales, lengths, space.extents, strict=True):
        assert 1 <= steps <= last
        assert steps * scale == extent <= LARGEST_POSITION
        assert steps == last or last > MOST_GRID_POINTS
        wanted = length / max(lengths) * LARGEST_POSITION
        if wanted > 100 * MOST_GRID_POINTS or (steps < last and wanted > 1000):
            assert extent == pytest.approx(wanted, rel=0.02)
    assert space.values(space.extents[None])[0] == pytest.approx([float(a.numbers.high) for a in attributes])


def test_few_values_lie_where_the_points_of_an_even_grid_have_always_lain() -> None:
    attributes = tuple(
        Numeric(name, Decimal(0), Decimal(high), Decimal(1), OWN) for name, high in (("a", 1), ("b", 99), ("c", 4095))
    )
    space = Space.of(Schema("even", attributes, 100), None, "bounds")
    assert (space.steps, space.scales) == ((1, 99, 4095), tuple(round((2**23 - 4096) / steps) for steps in space.steps))
    for edges, scale in zip(space.edges, space.scales, strict=True):
        assert edges.tolist() == [(code - 0.5) * scale for code in range(len(edges))]


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 2**30), st.data())
def test_rounding_is_to_the_nearest_step_and_gaps_lie_in_the_middle(last: int, data: st.DataObject) -> None:
    steps = data.draw(st.integers(1, last) | st.just(last))
    values = np.array([0, last, *data.draw(st.lists(st.integers(0, last), max_size=5)), last + 1], dtype=np.uint32)
    wanted = [math.floor(Fraction(int(value) * steps, last) + Fraction(1, 2)) for value in values[:-1]]
    assert rounded_values(values, last, steps).tolist() == [*wanted, steps + 1]
    assert positions_of_values(values, last, steps, 3).tolist() == [*(3 * place for place in wanted), steps // 2 * 3]


@pytest.mark.parametrize("attribute", PEOPLE.attributes, ids=lambda attribute: attribute.name)
def test_rows_lie_in_their_cells_and_evenly_filled_cells_have_their_mean_in_the_middle(attribute: Numeric) -> None:
    space = Space.of(Schema("one", (attribute,), 100), None, "bounds")
    (edges,) = space.edges
    step = space.scales[0]
    assert (np.diff(edges) > 0).all()
    assert edges[0] == pytest.approx(-space.value_lengths[0] / 2)
    assert edges[-1] == pytest.approx(space.extents[0] + space.value_lengths[0] / 2)
    for code, (first, after) in enumerate(zip(attribute.starts, [*attribute.starts[1:], attribute.values], strict=True)):
        values = np.unique(np.linspace(first, after - 1, 1001).round().astype(np.uint32))
        where = space.positions([values])[:, 0]
        assert (where >= edges[code] - step / 2 - 1e-6).all()
        assert (where <= edges[code + 1] + step / 2 + 1e-6).all()
        if len(values) == after - first:
            assert where.mean() == pytest.approx((edges[code] + edges[code + 1]) / 2, abs=step / 2 + 1e-6)


def people(rows: int, seed: int, gaps: float = 0.1) -> dict[str, list[Any]]:
    draw = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {
        "income": draw.choice(INCOMES, rows).tolist(),
        "age": draw.normal(50, 20, rows).round().tolist(),
        "weight": draw.normal(75, 15, rows).round(1).tolist(),
    }
    return {
        name: [None if lost else each for each, lost in zip(column, draw.random(rows) < gaps, strict=True)]
        for name, column in table.items()
    }


@contextmanager
def on(
    engine: str, table: dict[str, list[Any]], folder: Path, schema: Schema = PEOPLE
) -> Iterator[tuple[PrivateTable, Any]]:
    """A table in a file on that engine, without noise, and what is asked of it."""
    file = folder / "people.csv"
    lines = [",".join("" if each is None else str(each) for each in row) for row in zip(*table.values(), strict=True)]
    file.write_text("\n".join([",".join(table), *lines]) + "\n")
    with silent(file, schema, HUGE, engine=engine) as (private, recorder, _):
        yield private, recorder


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("scaling", ["none", "bounds"])
@pytest.mark.filterwarnings("ignore:With scaling='none':dpmine.DpmineWarning")
def test_predict_and_every_engine_give_every_row_the_same_cluster(engine: str, scaling: str, tmp_path: Path) -> None:
    """Rounded values, gaps in the middle."""
    table = people(400, 1)
    with on(engine, table, tmp_path) as (private, _):
        model = dm.DPLloyd(7, 1000, 3, scaling=scaling, seed=2).fit(private)
        assert model.space_.steps[0] < money().values - 1  # rounded
        counted = private.histogram(model.nearest(), epsilon=1).counts
    assert counted.tolist() == np.bincount(model.predict(table), minlength=7).tolist()
    assert sum(counted > 0) > 1
    nobody = model.predict({"income": [None], "age": [None], "weight": [None]})
    middle = [count // 2 * scale for count, scale in zip(model.space_.steps, model.space_.scales, strict=True)]
    assert nobody[0] == np.argmin(np.sum((model.positions_ - middle) ** 2, axis=1))


# -- skewed money ------------------------------------------------------------------------------------------------------


def cost(points: Points, centres: Points) -> float:
    return float(np.sum((points[:, None] - centres) ** 2, axis=2).min(axis=1).sum())


def too_costly(method: str, incomes: Points = INCOMES, k: int = 3) -> float:
    """How much larger the sum of squares is than ordinary k-means', of centres that were found without noise."""
    points = incomes[:, None]
    with silent({"income": incomes.tolist()}, Schema("earners", (money(),), 10_000), HUGE) as (private, _, _):
        model = dm.KMeans(k, 1000, method=method, seed=1).fit(private)
    ordinary = sklearn.cluster.KMeans(k, n_init=10, random_state=0).fit(points)
    return cost(points, model.cluster_centers_) / float(ordinary.inertia_)


@pytest.mark.parametrize("method", ["grid", "tree"])
def test_centres_of_a_skewed_money_column_are_as_good_as_ordinary_ones(method: str) -> None:
    """At an epsilon at which noise is 0, whether it is left out or not: what is lost is lost to cells and clipping."""
    assert 1 <= too_costly(method) < 1.1


def test_the_mean_of_a_skewed_money_column_is_found_by_any_method() -> None:
    """Ten cells to a power of ten, each counted in its middle, are off by a few per cent; clipped offsets leave out the far
    end of a cluster's rows; nothing but rounding is lost where all of epsilon goes to sums of values."""
    schema = Schema("earners", (money(),), 10_000)
    for model, within in (
        (dm.KMeans(1, HUGE), 0.03),
        (dm.KMeans(1, HUGE, method="tree"), 0.2),
        (dm.DPLloyd(1, HUGE, 2), 1e-4),
    ):
        with silent({"income": INCOMES.tolist()}, schema, model.budget) as (private, _, _):
            assert model.fit(private).cluster_centers_[0, 0] == pytest.approx(INCOMES.mean(), rel=within)


def test_the_cells_of_a_log_grid_are_counted_exactly_and_hold_their_rows() -> None:
    model = dm.KMeans(3, 1000, seed=1)
    with silent({"income": INCOMES.tolist()}, Schema("earners", (money(),), 10_000), model.budget) as (private, _, _):
        model.fit(private)
    low = model.space_.values(model.synopsis_.corners)[:, 0]
    high = model.space_.values(model.synopsis_.corners + 2 * model.synopsis_.half)[:, 0]
    assert low[1:] == pytest.approx(high[:-1])
    halves = model.synopsis_.weights.reshape(-1, 2).sum(axis=1)  # each cell was halved after it was counted
    counts, _ = np.histogram(INCOMES, bins=[*low[::2], high[-1]])
    assert halves == pytest.approx(counts)


def test_a_crowd_says_nothing_of_a_neighbour_that_is_far_wider() -> None:
    """One row of noise there would outweigh the crowd. A few rows in cells of its own kind do say something."""
    crowd = np.array([[0, 500, 1, 0, 0], [0, 800, 0, 0, 0], [0, 500, 0, 0, 0]])
    narrow, wide = np.ones(5), np.array([1.0, 1.0, 5.0, 25.0, 125.0])
    assert _clear(crowd, 1.0, (np.ones(3), narrow))[:, 2].all()
    assert not _clear(crowd, 1.0, (np.ones(3), wide))[:, 2:].any()
    crowd[:, 2] = 9
    assert _clear(crowd, 1.0, (np.ones(3), wide))[:, 2].all()
    assert _clear(crowd, 1.0, (np.ones(3), wide))[:, :2].all()  # a wider neighbour's rows still speak for a narrower cell


def test_a_single_row_of_noise_is_never_clear_at_an_epsilon_at_which_noise_is_seldom() -> None:
    """Whole numbers that differ from 0 once in 150 times, by at least 1, have a deviation of 0.12: 8 of these."""
    law = laplace(1, dm.Epsilon.parse(5))
    spike = np.zeros((9, 9), dtype=np.int64)
    spike[4, 4] = 1
    even = (np.ones(9), np.ones(9))
    assert not _clear(spike, tails_of(law), even).any()
    assert _clear(spike, deviation(law), even).any()


def test_wide_leaves_count_only_where_they_rise_clearly() -> None:
    counted = NoisyCount(0, laplace(1, dm.Epsilon.parse(1)), None)  # type: ignore[arg-type]
    usual, clear = deviation(counted.law), CLEAR * tails_of(counted.law)
    noisy, lengths = np.array([900.0, 700, 3, 3, 9]), np.array([10.0, 12, 11, 500, 500])
    assert _least(noisy, lengths, counted).tolist() == [usual, usual, usual, clear, clear]
    assert _least(noisy / 1000, lengths, counted).tolist() == [usual] * 5  # where nothing is sure, nothing is far wider


def test_cells_that_are_taken_as_equally_wide_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: positions by code, as if every cell were as wide as any other; and every cell at its lower edge."""

    def even(space: Space) -> tuple[Points, ...]:
        cells = [attribute.cells for attribute in space.attributes]
        return tuple(np.linspace(0, extent, count + 1) for count, extent in zip(cells, space.extents, strict=True))

    honest = kmeans.grid_synopsis

    def lower(*asked: Any) -> Any:
        found = honest(*asked)
        return type(found)(found.points - found.half, found.weights, found.half, found.grid)

    for method in ("grid", "tree"):
        with monkeypatch.context() as patched:
            patched.setattr(Space, "edges", property(even))
            assert too_costly(method) > 1.1
    with monkeypatch.context() as patched:
        patched.setattr(kmeans, "grid_synopsis", lower)
        assert too_costly("grid", np.round(np.random.default_rng(5).uniform(100_000, 199_999, 4000), 2), 1) > 1.1


# -- gaps --------------------------------------------------------------------------------------------------------------

MODELS: dict[str, Any] = {
    "grid": lambda: dm.KMeans(3, 5, seed=1),
    "tree": lambda: dm.KMeans(3, 20, method="tree", seed=1),
    "automatic": lambda: dm.KMeans("auto", 5, ["income", "weight"], max_clusters=3, seed=1),
    "dplloyd": lambda: dm.DPLloyd(3, 5, seed=1, shares="optimal"),
}


def without_gaps(table: dict[str, list[Any]], names: Any) -> dict[str, list[Any]]:
    kept = [place for place in range(len(table["age"])) if all(table[name][place] is not None for name in names)]
    return {name: [column[place] for place in kept] for name, column in table.items()}


def fits_alike(make: Any) -> bool:
    """Whether rows with gaps in the attributes that are clustered by make no difference, to fit and to inertia."""
    table, found = people(300, 2), []
    names = make().attributes or list(table)
    for rows in (table, without_gaps(table, names)):
        model = make()
        with silent(rows, PEOPLE, model.budget.fraction + 1) as (private, _, _):
            model.fit(private)
            inertia = model.inertia(private, epsilon=1)
        synopsis = getattr(model, "synopsis_", None)
        weights = None if synopsis is None else synopsis.weights.tolist()
        found.append((model.cluster_centers_.tolist(), model.cluster_sizes_.tolist(), weights, inertia.value))
    return found[0] == found[1]


@pytest.mark.parametrize("name", MODELS)
def test_rows_with_gaps_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where they are not (planted), that is seen: gaps would be counted in the middle, or as the highest values."""
    assert fits_alike(MODELS[name])
    monkeypatch.setattr(Space, "known", lambda space, private: private)
    assert not fits_alike(MODELS[name])


def test_a_gap_in_another_column_leaves_no_row_out() -> None:
    table = people(300, 3)
    model = dm.DPLloyd(1, HUGE, 1, attributes=["age"])
    with silent(table, PEOPLE, model.budget) as (private, _, _):
        model.fit(private)
    ages = [min(max(age, 0), 100) for age in table["age"] if age is not None]
    assert model.cluster_sizes_.tolist() == [len(ages)]
    assert model.cluster_centers_[0, 0] == pytest.approx(np.mean(ages), abs=1e-4)


def test_the_model_says_that_rows_with_gaps_are_left_out() -> None:
    table = people(100, 4, gaps=0.0)
    told = dm.KMeans(2, 5, seed=1).fit(table, schema=PEOPLE).to_text()
    assert told.endswith("\nRows without a value in any of income, age, weight are left out.")
    told = dm.KMeans(2, 5, ["age"], seed=1).fit(table, schema=PEOPLE).to_text()
    assert told.endswith("\nRows without a value in age are left out.")
    complete = Schema("whole", (Numeric("age", Decimal(0), Decimal(100), Decimal(1), Decimal(0)),), 1000)
    assert "left out" not in dm.KMeans(2, 5, seed=1).fit({"age": [1, 2, 3]}, schema=complete).to_text()


def test_where_every_row_has_a_gap_there_is_nothing_to_find() -> None:
    table = {"income": [None] * 50, "age": [None] * 50, "weight": [None] * 50}
    for make in MODELS.values():
        model = make()
        with silent(table, PEOPLE, model.budget) as (private, _, _):
            assert model.fit(private).cluster_sizes_.sum() == 0


# -- engines and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_log_grids_and_gaps_are_the_same_on_every_engine(name: str, tmp_path: Path) -> None:
    found = []
    for engine in ("memory", "duckdb"):
        model = MODELS[name]()
        with on(engine, people(200, 5), tmp_path) as (private, recorder):
            model.fit(private)
        answers = [(query, reply.answer.numbers) for query, reply in recorder.asked]
        found.append((answers, model.cluster_centers_.tolist(), model.cluster_sizes_.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", MODELS)
def test_models_of_log_grids_and_gaps_come_back_from_their_files(name: str, tmp_path: Path) -> None:
    table = people(300, 6)
    model = MODELS[name]().fit(table, schema=PEOPLE)
    model.save(tmp_path / "model.json")
    again: Any = dm.load(tmp_path / "model.json")
    assert json.loads(json.dumps(again.to_json())) == json.loads(json.dumps(model.to_json()))
    assert (again.space_, again.schema_, again.nearest()) == (model.space_, model.schema_, model.nearest())
    assert (again.predict(table) == model.predict(table)).all()
    assert (again.cluster_centers_ == model.cluster_centers_).all()
    assert again.to_text() == model.to_text()
    assert again.to_svg(x="income", y="weight") == model.to_svg(x="income", y="weight")
    with dm.open(table, schema=PEOPLE, ledger=None, cap=1) as data:
        assert again.inertia(data.grant("alice", epsilon=1), epsilon=1).value >= 0


def test_public_rows_are_read_by_the_rules_of_the_schema(tmp_path: Path) -> None:
    """A point that parts thousands would make every value a thousand times too small, and every row the same cluster."""
    values = [f"{1 + row % 2 * 7}.{100 + row}" for row in range(200)]  # 1.100 to 8.299, that is 1,100 to 8,299
    path = tmp_path / "costs.csv"
    path.write_text("cost;x\n" + "".join(f"{text};1\n" for text in values), encoding="utf-8")
    cost = Numeric("cost", Decimal(0), Decimal(10_000), Decimal(100))
    schema = Schema("costs", (cost,), 1000, read=ReadingRules(sep=";", thousands=".", decimal=","))
    data = dm.open(path, schema=schema, cap=100, ledger=None)
    model = dm.KMeans(2, epsilon=50, seed=1).fit(data.grant("miner", epsilon=50))
    found = model.predict(path)
    assert sorted(np.bincount(found, minlength=2).tolist()) == [100, 100]
    data.close()
