"""What every private clustering offers: fit, predict, transform, sizes, a paid inertia, a plot."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.epsilon import Epsilon
from dpmine.errors import RequestError
from dpmine.mining.clustering.lloyd import nearest_of
from dpmine.mining.clustering.space import Points, Space
from dpmine.mining.clustering.synopsis import Synopsis
from dpmine.mining.estimators import Estimator, SchemaLike, check_number, named_columns
from dpmine.model_keys import MOST_CENTRES, Nearest
from dpmine.progress import Progress
from dpmine.schema import Schema
from dpmine.tables import PrivateTable, open_in_memory
from dpmine.tree_models import encode_rows


class ClusterEstimator(Estimator):
    """A clustering by centres.

    After fit: `cluster_centers_` (in the attributes' own units), `cluster_sizes_` (noisy numbers of rows), `space_` (the
    attributes and their scales), `schema_`, `cost_`, `charged_`. No labels, no inertia and no number of rows of the training
    data are kept.
    """

    attributes: tuple[str, ...] | list[str] | None
    scaling: str

    cluster_centers_: Points
    cluster_sizes_: NDArray[np.float64]
    positions_: Points
    synopsis_: Synopsis
    space_: Space
    schema_: Schema
    cost_: Epsilon
    charged_: Epsilon

    def _cluster(self, private: PrivateTable, space: Space, progress: Progress) -> tuple[Points, NDArray[np.float64]]:
        """Ask the private table, spend at most the budget, and return centres (in positions) and noisy sizes."""
        raise NotImplementedError

    def space(self, schema: Schema) -> Space:
        return Space.of(schema, self.attributes, self.scaling)

    def fit(self, X: Any, y: Any = None, *, schema: SchemaLike = None, progress: bool | None = None) -> Self:
        """Find clusters in a private table, or in rows in hand: fit(private) or fit(X, schema=...). `y` is not used."""
        private = self._private(X, None, schema)
        plan = self.plan(private.schema)  # states every mistake in the parameters before anything is spent
        space = self.space(private.schema)
        before = private.remaining().units
        guarded = private.with_room_for(Epsilon(plan.cost.units // plan.rows_per_unit))
        positions, sizes = self._cluster(guarded, space, Progress(f"Clustering by {plan.algorithm}", shown=progress))
        order = np.argsort(-sizes, kind="stable")
        self.positions_ = np.array(space.nearest(positions[order]).centres, dtype=np.float64)
        self.cluster_centers_, self.cluster_sizes_ = space.values(self.positions_), sizes[order]
        self.space_, self.schema_, self.cost_ = space, private.schema, plan.cost
        self.charged_ = Epsilon(before - private.remaining().units)
        return self

    def _private(self, data: Any, y: Any, schema: SchemaLike) -> PrivateTable:
        """As for classifiers, but without a class."""
        if isinstance(data, PrivateTable):
            if schema is not None:
                raise RequestError("A private table brings its schema along: call fit(private) alone.")
            return data
        facts = self._facts(schema)
        return open_in_memory(named_columns(data, facts), facts, self.budget)

    def nearest(self) -> Nearest:
        """The clusters as a key: `private.histogram(model.nearest(), epsilon=...)`."""
        return self._fitted().space_.nearest(self.positions_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The number of the nearest centre for each row of a public table."""
        return nearest_of(self._positions(X), self.positions_)

    def transform(self, X: Any) -> Points:
        """The distance of each row of a public table to every centre, in the units that clusters are made in.

        With scaling "none" these are the attributes' own units; with "bounds" every attribute is 1 long.
        """
        space = self._fitted().space_
        unit = float(space.attributes[0].step) / space.scales[0]
        if self.scaling == "bounds":
            unit = 1 / float(space.extents.max())
        points = self._positions(X)
        away = np.sqrt(np.stack([np.sum((points - centre) ** 2, axis=1) for centre in self.positions_], axis=1))
        distances: Points = away * unit
        return distances

    def _positions(self, X: Any) -> Points:
        space = self._fitted().space_
        rows, _ = encode_rows(_columns(X, space), self.schema_, list(space.names))
        return space.positions([rows[name] for name in space.names])

    def _fitted(self) -> Self:
        if not hasattr(self, "positions_"):
            raise RequestError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        return self


def _columns(X: Any, space: Space) -> Any:
    """Columns of an array are the clustered attributes, in order."""
    if not isinstance(X, np.ndarray):
        return X
    if X.ndim != 2 or X.shape[1] != space.dimensions:
        raise RequestError(f"An array needs one column for each of {', '.join(space.names)}. Got shape {X.shape}.")
    return {name: X[:, place].tolist() for place, name in enumerate(space.names)}


def check_clusters(clusters: object, name: str = "n_clusters") -> int:
    """The number of clusters, or an error that says what it may be."""
    check_number(name, clusters, 1, MOST_CENTRES, whole=True)
    return int(clusters)  # type: ignore[call-overload, no-any-return]
