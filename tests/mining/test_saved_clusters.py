"""Clusterings in files: they come back as they were, and what no fit could have found is refused."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attributes import numeric

import dpmine as dm
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.schema import Schema
from dpmine.mining.clustering import saved_synopsis

NAMES = ("x", "y", "z")
SCHEMA = Schema(
    "points",
    (*(numeric(name, -5, 5, "0.1") for name in NAMES), Nominal("ward", ("a", "b"), "a", missing="a")),
    10_000,
)
RANDOM = np.random.default_rng(5)
X = {name: RANDOM.normal([[-3], [0], [3]][place % 3], 0.5, (3, 100)).ravel().tolist() for place, name in enumerate(NAMES)}
X["ward"] = ["a"] * 300
MODELS: dict[str, Any] = {
    "grid": dm.KMeans(3, epsilon=5, attributes=("x", "y"), schema=SCHEMA),
    "grid of one": dm.KMeans(2, epsilon=5, attributes=["z"], schema=SCHEMA),
    "grid of three": dm.KMeans("auto", epsilon=5, max_clusters=3, scaling="bounds", seed=2, schema=SCHEMA),
    "tree": dm.KMeans(3, epsilon=5, method="tree", schema=SCHEMA),
    "lloyd": dm.DPLloyd(3, epsilon=5, iterations=2, schema=SCHEMA),
}
FITTED = {name: model.fit(X) for name, model in MODELS.items()}
every = pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)


@every
def test_saved_clusters_come_back_as_they_were(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again: Any = dm.load(tmp_path / "model.json")
    assert type(again) is type(model)
    assert json.loads(json.dumps(again.to_json())) == json.loads(json.dumps(model.to_json()))
    assert (again.space_, again.schema_, again.cost_) == (model.space_, model.schema_, model.cost_)
    for name in ("cluster_centers_", "cluster_sizes_", "positions_"):
        assert (getattr(again, name) == getattr(model, name)).all()
    assert (again.predict(X) == model.predict(X)).all()
    assert (again.transform(X) == model.transform(X)).all()
    assert again.nearest() == model.nearest()
    assert again.to_text() == model.to_text()
    assert again._repr_svg_() == model._repr_svg_()
    assert again.set_params(schema=SCHEMA).fit(X).cost_ == model.cost_


@every
def test_a_saved_synopsis_comes_back_to_the_last_bit(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again: Any = dm.load(tmp_path / "model.json")
    assert hasattr(again, "synopsis_") == isinstance(model, dm.KMeans)
    if isinstance(model, dm.KMeans):
        assert again.synopsis_.grid == model.synopsis_.grid
        for name in ("points", "weights", "half", "corners"):
            assert (getattr(again.synopsis_, name) == getattr(model.synopsis_, name)).all()


def test_the_file_says_what_it_holds_and_nothing_else() -> None:
    form = FITTED["grid"].to_json()
    assert list(form) == [
        *("format", "version", "algorithm", "params", "cost", "schema"),
        *("attributes", "steps", "scales", "centres", "sizes", "synopsis"),
    ]
    assert (form["algorithm"], form["attributes"]) == ("KMeans", ["x", "y"])
    assert all(type(place) is int for centre in form["centres"] for place in centre)


def test_a_large_synopsis_is_left_out_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(saved_synopsis, "MOST_SAVED", 10)
    FITTED["grid"].save(tmp_path / "model.json")
    again: Any = dm.load(tmp_path / "model.json")
    assert not hasattr(again, "synopsis_")
    assert 'class="shade"' in FITTED["grid"].to_svg()
    assert 'class="shade"' not in again.to_svg()
    assert (again.predict(X) == FITTED["grid"].predict(X)).all()


def test_only_fitted_clusters_are_saved_told_and_drawn(tmp_path: Path) -> None:
    model = dm.KMeans(3, epsilon=1)
    for use in (model.to_json, model.to_text, model.to_svg, model.plot, lambda: model.predictions(X)):
        with pytest.raises(dm.RequestError, match="not fitted yet"):
            use()
    assert model._repr_svg_() is None
    with pytest.raises(dm.RequestError, match="not fitted yet"):
        model.save(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


@every
def test_only_two_attributes_draw_themselves(model: Any) -> None:
    assert (model._repr_svg_() is None) == (model.space_.dimensions != 2)


@every
def test_maps_are_drawn_or_refused_by_the_number_of_attributes(model: Any) -> None:
    if model.space_.dimensions == 1:
        with pytest.raises(dm.RequestError, match="A map shows two attributes"):
            model.to_svg()
    else:
        assert f"epsilon {model.cost_}" in model.to_svg()
        assert model.to_svg(title="where they are").count("where they are") == 2
        assert model.plot(*model.space_.names[:2]).axes


# -- damaged files -----------------------------------------------------------------------------------------------------

WRONG_NUMBERS = [
    (("sizes", 0), -1, "impossible numbers"),
    (("sizes", 0), float("nan"), "impossible numbers"),
    (("sizes", 0), float("inf"), "impossible numbers"),
    (("sizes", 0), 1e19, "impossible numbers"),
    (("sizes", 0), True, None),
    (("sizes",), [1], "do not fit"),
    (("steps", 0), 0, "steps"),
    (("steps", 0), 1.5, "steps"),
    (("steps", 0), 101, "more steps than values"),
    (("steps",), [100], "steps"),
    (("scales", 0), 0, "scale"),
    (("scales", 0), 2**40, "scales are impossible"),
    (("scales",), [1], "scale"),
    (("centres", 0, 0), -1, "positions"),
    (("centres", 0, 0), 1.5, "positions"),
    (("centres", 0, 0), 2**23 + 1, "positions"),
    (("centres",), [], "centres"),
    (("attributes",), [], "attribute"),
    (("attributes", 0), "ward", "not numeric|not in the schema"),
    (("attributes", 0), "y", "different"),
    (("synopsis", "kind"), "cloud", "unknown kind"),
    (("synopsis", "weights", 0), -1, "impossible numbers"),
    (("synopsis", "weights"), [1, 2, 3], "does not fit"),
    (("synopsis", "half", 0, 0), 0, "impossible numbers"),
    (("synopsis", "points", 0, 0), 1e300, "impossible numbers"),
    (("synopsis", "points", 0, 0), float("nan"), "impossible numbers"),
    (("synopsis", "points"), [[0] * 1000, [0] * 1000], "larger than any|does not fit"),
]


@pytest.mark.parametrize("name", ["grid", "tree"])
@pytest.mark.parametrize(("path", "wrong", "words"), WRONG_NUMBERS)
def test_impossible_numbers_are_refused(
    name: str, path: tuple[Any, ...], wrong: Any, words: str | None, tmp_path: Path
) -> None:
    form = damaged(FITTED[name].to_json(), path, wrong)
    (tmp_path / "model.json").write_text(json.dumps(form))
    if words is None:
        dm.load(tmp_path / "model.json")
        return
    with pytest.raises(dm.DpmineError, match=words):
        dm.load(tmp_path / "model.json")


def test_a_centre_outside_the_bounds_is_refused(tmp_path: Path) -> None:
    """Inside the positions of the longest attribute, and outside of its own."""
    facts = Schema("box", tuple(numeric(name, 0, high) for name, high in (("a", 100), ("b", 10))), 100)
    model = dm.DPLloyd(2, epsilon=1, scaling="none", schema=facts).fit({"a": [1, 2], "b": [3, 4]})
    form = damaged(model.to_json(), ("centres", 0, 1), 2**22)
    (tmp_path / "model.json").write_text(json.dumps(form))
    with pytest.raises(dm.RequestError, match="do not fit its schema"):
        dm.load(tmp_path / "model.json")


def damaged(form: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    form = json.loads(json.dumps(form))
    at = form
    for key in path[:-1]:
        at = at[key]
    if wrong == "drop it":
        del at[path[-1]]
    else:
        at[path[-1]] = wrong
    return form


def places(form: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a form; of long lists the first two."""
    found = [path] if path else []
    items = form.items() if isinstance(form, dict) else enumerate(form[:2]) if isinstance(form, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


PLACES = [(name, path) for name in ("grid", "tree", "lloyd") for path in places(FITTED[name].to_json())]
WRONG = [None, -1, 0, 2**70, 10**400, 1.5, "", "x", [], {}, True, [[]], "1e400", float("nan"), "drop it"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(WRONG))
def test_damaged_clusters_are_refused_or_work(place: tuple[str, tuple[Any, ...]], wrong: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(json.dumps(damaged(FITTED[place[0]].to_json(), place[1], wrong)))
        try:
            model: Any = dm.load(path)
        except dm.DpmineError:
            return
    assert np.isfinite(model.transform(X)).all()
    assert len(model.predict(X)) == 300
    model.to_text()
    model.to_svg()
    repr(model)
