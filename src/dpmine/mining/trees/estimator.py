"""What every tree and forest offers its user: fit, predict, evaluate, plan, draw, save."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.json_values import from_json, to_json
from dpmine.codes.domain import MOST_ROWS
from dpmine.codes.rows import LARGEST_SCORE
from dpmine.facts.class_labels import codes_of, label_kind, labels_as
from dpmine.facts.schema import Schema
from dpmine.language.model_keys import Predicted
from dpmine.mining.estimators import named_columns
from dpmine.mining.evaluation import Evaluation, evaluate
from dpmine.mining.model_estimator import ModelEstimator, Predictions
from dpmine.models.trees import Node, Trees, columns_of, encode_rows, lookup, rows_with_class
from dpmine.report.trees import depth_that_fits, forest_text, tree_figure, tree_svg, tree_text
from dpmine.tables.asking import Amount
from dpmine.tables.private_table import PrivateTable

WIDEST_IN_A_NOTEBOOK = 10  # cards side by side: notebooks shrink wide pictures to the width of a page


class TreeEstimator(ModelEstimator[Sequence[Node]]):
    """A classifier made of decision trees.

    After fit: `trees_` (the noisy trees) and `classes_` (the schema's classes: numbers where all are whole numbers, booleans
    where they are True and False, else text), beside what every estimator has. Nothing else about the rows is kept: no true
    count, no exact impurity, no number of rows.
    """

    doing = "Growing"
    about_class = True
    max_depth: Any
    trees_: Trees
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    # -- fit and predict --------------------------------------------------------------------------------------------

    def _keep(self, found: Sequence[Node]) -> None:
        classes = self.schema_.class_labels
        self._set(Trees(classes, tuple(found)), label_kind(classes))  # public: rows say nothing about the kind

    def _set(self, trees: Trees, kind: str) -> None:
        self.trees_, self._label_kind = trees, kind
        self.classes_ = labels_as(trees.classes, kind)
        features = [a.name for a in self.schema_.attributes if a.name != self.schema_.class_attribute]
        self.feature_names_in_, self.n_features_in_ = np.array(features, dtype=object), len(features)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row of a public table."""
        places: NDArray[np.intp] = np.argmax(self._sums(X), axis=1)
        labels: NDArray[Any] = self._model("classes_")[places]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class for each row, averaged over the trees; columns in the order of `classes_`."""
        sums = self._sums(X)
        shares: NDArray[np.float64] = sums / sums.sum(axis=1, keepdims=True)
        return shares

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on rows in hand, computed from true labels: for public data only. On private data: evaluate.

        Labels are read by the schema's rules, as in fitting: 1, 1.0 and "1" are one class, and what is no class is `other`.
        Rows without a class by these rules are left out.
        """
        predicted = np.argmax(self._sums(X), axis=1)
        truth = codes_of(y, self.schema_.target)
        if len(truth) != len(predicted):
            raise RequestError(f"The table has {len(predicted)} rows, but y has {len(truth)} labels.")
        judged = rows_with_class(truth, self.schema_)
        weights = None if sample_weight is None else np.asarray(sample_weight)[judged]
        return float(np.average((predicted == truth)[judged], weights=weights))

    def predictions(self, X: Any) -> Predictions:
        """The class of each row and the probability of every class."""
        shares = self.predict_proba(X)
        columns: dict[str, Sequence[object]] = {"predicted": self.classes_[shares.argmax(axis=1)].tolist()}
        for label, column in zip(self.classes_, shares.T, strict=True):
            columns[f"probability {label}"] = [f"{share:.6f}" for share in column]
        return Predictions(columns, {"classes": [str(label) for label in self.classes_]})

    def _sums(self, X: Any) -> NDArray[np.int64]:
        trees: Trees = self._model("trees_")
        rows, count = encode_rows(named_columns(X, self.schema_), self.schema_, columns_of(trees))
        return trees.sums(rows, count, self.schema_)

    def _model(self, name: str) -> Any:
        if not hasattr(self, name):
            raise RequestError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        return getattr(self, name)

    # -- judged privately -------------------------------------------------------------------------------------------

    def predicted(self) -> Predicted:
        """The model as a key: `private.crosstab(model.predicted(), "class", epsilon=...)`."""
        trees: Trees = self._model("trees_")
        return Predicted(tuple(tree.scored() for tree in trees.trees), trees.classes)

    def evaluate(self, private: PrivateTable, *, epsilon: Amount, auc: bool | None = None) -> Evaluation:
        """A noisy confusion matrix, accuracy and (for two classes) AUC on a private table, with intervals. Spends."""
        if not isinstance(private, PrivateTable):
            raise RequestError("evaluate judges on a private table. For public rows in hand: score(X, y).")
        return evaluate(self._model("trees_"), private, epsilon=Epsilon.parse(epsilon), auc=auc)

    # -- drawn ------------------------------------------------------------------------------------------------------

    def to_text(self, *, max_depth: int | None = None) -> str:
        """The tree drawn for a terminal; of a forest the attributes that its trees split by."""
        trees: Trees = self._model("trees_")
        if len(trees.trees) > 1:
            return forest_text(trees, self.schema_)
        return tree_text(trees.trees[0], trees.classes, self.schema_, max_depth=max_depth)

    def to_svg(self, *, tree: int = 0, title: str | None = None, max_depth: int | None = None) -> str:
        """The tree (of a forest: the tree of that number) as an SVG picture."""
        trees: Trees = self._model("trees_")
        return tree_svg(self._tree(tree), trees.classes, self.schema_, title=title, max_depth=max_depth)

    def plot(self, *, tree: int = 0, ax: Any = None, max_depth: int | None = 4) -> Any:
        """The tree (of a forest: the tree of that number) as a matplotlib figure."""
        trees: Trees = self._model("trees_")
        return tree_figure(self._tree(tree), trees.classes, self.schema_, ax=ax, max_depth=max_depth)

    def _tree(self, number: int) -> Node:
        trees: Trees = self._model("trees_")
        if not 0 <= number < len(trees.trees):
            raise RequestError(f"This model has {len(trees.trees)} trees; there is no tree {number}.")
        return trees.trees[number]

    def _repr_svg_(self) -> str | None:
        """Notebooks draw a fitted tree by itself, as deep as it can be read there; a forest has too many."""
        if not hasattr(self, "trees_") or len(self.trees_.trees) != 1:
            return None
        return self.to_svg(max_depth=depth_that_fits(self.trees_.trees[0], WIDEST_IN_A_NOTEBOOK))

    # -- saved ------------------------------------------------------------------------------------------------------

    def learned(self) -> dict[str, Any]:
        trees: Trees = self._model("trees_")
        return {"labels": self._label_kind, "trees": to_json(trees)}

    def read(self, form: dict[str, Any]) -> None:
        trees = from_json(form["trees"], Trees)
        _check(trees, self.schema_)
        self._set(trees, str(form["labels"]))

    def __sklearn_tags__(self) -> Any:
        """Called by scikit-learn alone, so it is there."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=True, categorical=True, string=True, allow_nan=True),
        )


def _check(trees: Trees, schema: Schema) -> None:
    """A model read from a file must fit its own schema, or predicting would fail much later."""
    if trees.classes != schema.class_labels or not trees.trees:
        raise RequestError("The model's trees do not fit its schema.")
    for node in (node for tree in trees.trees for node in tree.nodes()):
        labels = () if node.split is None else node.split.labels(schema)
        if len(node.children) != len(labels) or {len(node.shares), len(node.rows)} != {len(trees.classes)}:
            raise RequestError("The model's trees do not fit its schema.")
        if min(node.shares) < 0 or not 0 < sum(node.shares) <= LARGEST_SCORE or max(map(abs, node.rows)) > 2 * MOST_ROWS:
            raise RequestError("The model's trees hold impossible numbers.")
    Predicted(tuple(tree.scored() for tree in trees.trees), trees.classes)
    for key in {node.split for tree in trees.trees for node in tree.nodes() if node.split is not None}:
        lookup(key, schema)
