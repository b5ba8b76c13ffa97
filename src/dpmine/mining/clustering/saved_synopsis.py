"""A synopsis in a saved model: of a grid its axes and weights, of a tree every leaf; checked when it is read."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.errors import RequestError
from dpmine.mining.clustering.space import Points, Space
from dpmine.mining.clustering.synopsis import Synopsis

MOST_SAVED = 50_000  # cells: a larger synopsis is left out of the file
LARGEST_SIZE = 1e18  # rows, noise and all, at the smallest epsilon


def synopsis_form(synopsis: Synopsis | None) -> dict[str, Any] | None:
    """Plain JSON, or None where there is nothing to save or too much."""
    if synopsis is None or len(synopsis.weights) > MOST_SAVED:
        return None
    weights = synopsis.weights.tolist()
    if synopsis.grid is None:
        form = {name: getattr(synopsis, name).tolist() for name in ("points", "half", "corners")}
        return {"kind": "tree", "weights": weights} | form
    axes = {name: _axes(getattr(synopsis, name), synopsis.grid) for name in ("points", "half")}
    return {"kind": "grid", "weights": weights} | axes


def synopsis_of(form: Any, space: Space) -> Synopsis | None:
    """The inverse of `synopsis_form`."""
    if form is None:
        return None
    weights = noisy_sizes(form["weights"])
    if form["kind"] == "grid":
        points, half = (_meshed([_numbers(axis) for axis in form[name]], space) for name in ("points", "half"))
        found = Synopsis(points, weights, half, tuple(len(axis) for axis in form["points"]))
    elif form["kind"] == "tree":
        points, half, lower = (_numbers(form[name]) for name in ("points", "half", "corners"))
        found = Synopsis(points, weights, half, lower=lower)
    else:
        raise RequestError("The model's synopsis is of an unknown kind.")
    _check(found, space)
    return found


def noisy_sizes(form: Any) -> NDArray[np.float64]:
    """Numbers of rows from a file."""
    sizes = _numbers(form)
    if sizes.ndim != 1 or np.any(sizes < 0) or np.any(sizes > LARGEST_SIZE):
        raise RequestError("The model's clusters hold impossible numbers.")
    return sizes


def _numbers(form: Any) -> Points:
    numbers = np.asarray(form)
    if numbers.dtype.kind not in "iuf" or not np.all(np.isfinite(numbers)):
        raise RequestError("The model's clusters hold impossible numbers.")
    return numbers.astype(np.float64)


def _axes(numbers: Points, grid: tuple[int, ...]) -> list[list[float]]:
    """The coordinates along each axis of a grid."""
    table = numbers.reshape((*grid, len(grid)))
    return [np.moveaxis(table[..., place], place, 0).reshape(side, -1)[:, 0].tolist() for place, side in enumerate(grid)]


def _meshed(axes: list[Points], space: Space) -> Points:
    if len(axes) != space.dimensions or any(axis.ndim != 1 for axis in axes):
        raise RequestError("The model's synopsis does not fit its attributes.")
    if math.prod(len(axis) for axis in axes) > MOST_SAVED:
        raise RequestError("The model's synopsis is larger than any saved one.")
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.dimensions)


def _check(synopsis: Synopsis, space: Space) -> None:
    """Cells with a length, inside the box, each with its weight."""
    shape = (len(synopsis.weights), space.dimensions)
    if not shape[0] or any(numbers.shape != shape for numbers in (synopsis.points, synopsis.half, synopsis.corners)):
        raise RequestError("The model's synopsis does not fit its attributes.")
    room = space.value_lengths
    ends = (synopsis.points, synopsis.corners, synopsis.corners + 2 * synopsis.half)
    outside = any(np.any(numbers < -room) or np.any(numbers > space.extents + room) for numbers in ends)
    if outside or np.any(synopsis.half <= 0):
        raise RequestError("The model's synopsis holds impossible numbers.")
