"""diffprivlib's tree, forest and logistic regression on given folds; runs in the peers' environment, see adult_trees.py.

Reads an .npz file (codes of the 14 attributes, their sizes, the class, a matrix of fold numbers), prints one JSON object:
measure -> algorithm -> epsilon -> list of values, one a fold. Bounds are the public ranges of the codes.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier
from sklearn.metrics import roc_auc_score


def one_hot(codes: np.ndarray, sizes: np.ndarray, nominal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nominal attributes as one column a category, numeric ones scaled to [0, 1] by their public range."""
    parts = []
    for place, size in enumerate(sizes):
        if nominal[place]:
            parts.append(np.eye(size, dtype=np.float64)[codes[:, place]])
        else:
            parts.append(codes[:, [place]] / (size - 1))
    points = np.hstack(parts)
    return points, np.zeros(points.shape[1]), np.ones(points.shape[1])


def main() -> None:
    warnings.filterwarnings("ignore")
    given = np.load(sys.argv[1])
    epsilons = [float(text) for text in sys.argv[2].split(",")]
    codes, sizes, nominal, target, folds = (given[name] for name in ("codes", "sizes", "nominal", "target", "folds"))
    plain = (codes.astype(np.float64), np.zeros(len(sizes)), sizes - 1.0)
    wide = one_hot(codes, sizes, nominal)
    makers = {
        "diffprivlib-tree": (
            plain,
            lambda e, low, high: DecisionTreeClassifier(5, epsilon=e, bounds=(low, high), classes=[0, 1]),
        ),
        "diffprivlib-tree-onehot": (
            wide,
            lambda e, low, high: DecisionTreeClassifier(5, epsilon=e, bounds=(low, high), classes=[0, 1]),
        ),
        "diffprivlib-forest": (
            plain,
            lambda e, low, high: RandomForestClassifier(10, epsilon=e, bounds=(low, high), classes=[0, 1], max_depth=5),
        ),
        "diffprivlib-logistic": (
            wide,
            lambda e, low, high: LogisticRegression(epsilon=e, data_norm=float(np.sqrt(len(sizes))), max_iter=1000),
        ),
    }
    result: dict[str, dict[str, dict[str, list[float]]]] = {"accuracy": {}, "auc": {}}
    for name, ((points, low, high), make) in makers.items():
        for epsilon in epsilons:
            accuracy, area = [], []
            for fold in range(int(folds[0].max()) + 1):
                held_out = folds[0] == fold
                model = make(epsilon, low, high).fit(points[~held_out], target[~held_out])
                accuracy.append(float(np.mean(model.predict(points[held_out]) == target[held_out])))
                shares = np.nan_to_num(model.predict_proba(points[held_out])[:, 1], nan=0.5)
                area.append(float(roc_auc_score(target[held_out], shares)))
            result["accuracy"].setdefault(name, {})[f"{epsilon:g}"] = accuracy
            result["auc"].setdefault(name, {})[f"{epsilon:g}"] = area
            print(name, epsilon, np.mean(accuracy), np.mean(area), file=sys.stderr, flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
