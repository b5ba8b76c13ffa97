"""What every private clustering offers: fit, predict, transform, sizes, a paid inertia, a map."""

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.progress import Progress
from dpmine.budget.rows import per_row, per_unit
from dpmine.codes.rows import MOST_CENTRES
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Nearest
from dpmine.mining.clustering.inertia import private_inertia
from dpmine.mining.clustering.mapping import map_of, measures_of
from dpmine.mining.clustering.saved_synopsis import noisy_sizes, synopsis_form, synopsis_of
from dpmine.mining.clustering.space import Points, Space, nearest_of, warn_of_units
from dpmine.mining.clustering.synopsis import Synopsis
from dpmine.mining.estimators import Amount, SchemaLike
from dpmine.mining.model_estimator import ModelEstimator, Predictions
from dpmine.mining.parameters import check_number
from dpmine.models.trees import encode_values
from dpmine.report.cluster_maps import ClusterMap, map_figure, map_svg
from dpmine.report.clusters import clusters_text, left_out_words
from dpmine.results.estimates import Estimate
from dpmine.tables.opening import open_in_memory
from dpmine.tables.private_table import PrivateTable

Clusters = tuple[Points, NDArray[np.float64]]
"""Centres, in positions, and noisy sizes."""


class ClusterEstimator(ModelEstimator[Clusters]):
    """A clustering by centres: fit(private), or fit(X, schema=...), where a `y` is not used.

    After fit: `cluster_centers_` (in the attributes' own units), `cluster_sizes_` (noisy numbers of rows) and `space_` (the
    attributes and where their values lie), beside what every estimator has. No labels, no inertia and no number of rows of
    the training data are kept.

    Rows that lack a value in any of the attributes are left out of fit and inertia: they are in no cluster's size. Where a
    new row lacks one, predict takes it to lie in the middle.
    """

    doing = "Clustering by"
    attributes: tuple[str, ...] | list[str] | None
    scaling: str

    cluster_centers_: Points
    cluster_sizes_: NDArray[np.float64]
    positions_: Points
    synopsis_: Synopsis
    space_: Space

    def _cluster(self, private: PrivateTable, space: Space, progress: Progress) -> Clusters:
        """Ask the private table by the steps of the budget."""
        raise NotImplementedError

    def space(self, schema: Schema) -> Space:
        return Space.of(schema, self.attributes, self.scaling)

    def _learn(self, private: PrivateTable, progress: Progress) -> Clusters:
        space = self.space(private.schema)
        warn_of_units(space, self.scaling)
        return self._cluster(space.known(private), space, progress)

    def _keep(self, found: Clusters) -> None:
        """Largest first."""
        positions, sizes = found
        order = np.argsort(-sizes, kind="stable")
        self.space_ = self.space(self.schema_)
        self.positions_ = np.array(self.space_.nearest(positions[order]).centres, dtype=np.float64)
        self.cluster_centers_, self.cluster_sizes_ = self.space_.values(self.positions_), sizes[order]

    def _private(self, data: Any, y: Any, schema: SchemaLike) -> AbstractContextManager[PrivateTable]:
        """As for classifiers, but `y` is not used."""
        return super()._private(data, None, schema)

    def _opened(self, data: Any, y: Any, schema: SchemaLike) -> AbstractContextManager[PrivateTable]:
        """Of rows in hand only the clustered columns: others are not even read."""
        facts = self._facts(schema)
        space = self.space(facts)
        only = replace(facts, attributes=space.attributes, class_attribute=None)
        return open_in_memory(_columns(data, space), only, self.budget)

    def nearest(self) -> Nearest:
        """The clusters as a key: `private.histogram(model.nearest(), epsilon=...)`."""
        return self._fitted().space_.nearest(self.positions_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The number of the nearest centre for each row of a public table."""
        return nearest_of(self._positions(X), self.positions_)

    def transform(self, X: Any) -> Points:
        """The distance of each row of a public table to every centre, in the units that clusters are made in.

        With scaling "bounds" every attribute is 1 long; with "none" these are the attributes' own units.
        """
        points = self._positions(X)
        away = np.sqrt(np.stack([np.sum((points - centre) ** 2, axis=1) for centre in self.positions_], axis=1))
        distances: Points = away * self._unit()
        return distances

    def inertia(self, private: PrivateTable, *, epsilon: Amount) -> Estimate:
        """The sum of squared distances of private rows to their nearest centres, noisy, with an interval. Spends.

        In the units of `transform`. The epsilon is what it costs, as with the estimators.
        """
        if not isinstance(private, PrivateTable):
            raise RequestError("inertia is asked of a private table. For public rows in hand: transform(X).min(axis=1).")
        if any(private.schema.single(a.name) != a for a in self._fitted().space_.attributes):
            raise RequestError("This table states other ranges or grids for the attributes that were clustered by.")
        paid = per_row(Epsilon.parse(epsilon), private.schema)
        found = private_inertia(private, self.nearest(), self.space_, self._unit(), paid)
        return replace(found, receipt=replace(found.receipt, epsilon=per_unit(paid, private.schema)))

    def _unit(self) -> float:
        """How long one position is, in the units that clusters are made in."""
        space = self._fitted().space_
        longest = int(np.argmax(space.extents))  # whose scale is the least rounded
        if self.scaling == "bounds":
            return 1 / float(space.extents[longest])
        return float(space.units[longest]) / space.scales[longest]

    def predictions(self, X: Any) -> Predictions:
        """The number of each row's cluster."""
        return Predictions({"cluster": self.predict(X).tolist()}, {"clusters": list(range(len(self.positions_)))})

    def _positions(self, X: Any) -> Points:
        space = self._fitted().space_
        values, _ = encode_values(_columns(X, space), self.schema_, space.names)
        return space.positions([values[name] for name in space.names])

    # -- drawn ------------------------------------------------------------------------------------------------------

    def to_text(self) -> str:
        """A table of noisy sizes and centres for a terminal, and whose gaps leave rows out."""
        text = clusters_text(measures_of(self._fitted().space_), self.cluster_centers_, self.cluster_sizes_)
        gaps = self.space_.with_gaps
        return text if not gaps else f"{text}\n{left_out_words(gaps)}"

    def to_svg(self, *, x: str | None = None, y: str | None = None, title: str | None = None) -> str:
        """A map of two attributes (else the first two) as an SVG picture: where rows are, centres and noisy sizes."""
        return map_svg(self._map(x, y, title))

    def plot(self, x: str | None = None, y: str | None = None, ax: Any = None) -> Any:
        """The same map as a matplotlib figure, on `ax` where given."""
        return map_figure(self._map(x, y, None), ax=ax)

    def _map(self, x: str | None, y: str | None, title: str | None) -> ClusterMap:
        space, synopsis = self._fitted().space_, getattr(self, "synopsis_", None)
        clusters = "1 cluster" if len(self.positions_) == 1 else f"{len(self.positions_)} clusters"
        heading = title if title is not None else f"{clusters} of {self.schema_.name}, epsilon {self.cost_}"
        return map_of(heading, space, self.positions_, self.cluster_sizes_, synopsis, x, y)

    def _repr_svg_(self) -> str | None:
        """Notebooks draw clusters in two attributes by themselves."""
        return self.to_svg() if hasattr(self, "positions_") and self.space_.dimensions == 2 else None

    # -- saved ------------------------------------------------------------------------------------------------------

    def learned(self) -> dict[str, Any]:
        space = self._fitted().space_
        return {
            "attributes": list(space.names),
            "steps": list(space.steps),
            "scales": list(space.scales),
            "centres": self.positions_.astype(np.int64).tolist(),
            "sizes": self.cluster_sizes_.tolist(),
            "synopsis": synopsis_form(getattr(self, "synopsis_", None)),
        }

    def read(self, form: dict[str, Any]) -> None:
        space = Space.read(self.schema_, form["attributes"], form["steps"], form["scales"])
        nearest = Nearest(space.names, space.steps, space.scales, tuple(map(tuple, form["centres"])))
        centres = np.array(nearest.centres, dtype=np.float64)
        sizes = noisy_sizes(form["sizes"])
        if np.any(centres > space.extents) or len(sizes) != len(centres):
            raise RequestError("The model's centres do not fit its schema.")
        synopsis = synopsis_of(form["synopsis"], space)
        if synopsis is not None:
            self.synopsis_ = synopsis
        self.space_, self.positions_, self.cluster_sizes_ = space, centres, sizes
        self.cluster_centers_ = space.values(centres)

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
