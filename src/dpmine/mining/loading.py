"""Reading fitted models back: `dm.load`."""

import json
from pathlib import Path
from typing import Any

from dpmine.base.errors import DpmineError, RequestError
from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.kmeans import KMeans
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.model_estimator import FORMAT, FORMAT_VERSION, LONGEST_FILE, ModelEstimator
from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.sulq_id3 import SulqID3

TREES = (TreeClassifier, DiffPC45, DiffPID3, SulqID3, GreedyForest, RandomForest)
ALGORITHMS: dict[str, type[ModelEstimator[Any]]] = {cls.__name__: cls for cls in (*TREES, KMeans, DPLloyd)}
"""Every algorithm whose models can be saved, by the name in the file."""


def load(path: str | Path) -> ModelEstimator[Any]:
    """A model that was saved with `save`."""
    try:
        if Path(path).stat().st_size > LONGEST_FILE:
            raise RequestError(f"{str(path)!r} is longer than any saved model.")
        form: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RequestError(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"{str(path)!r} is not a saved model: {type(error).__name__}.") from None
    if not isinstance(form, dict) or form.get("format") != FORMAT:
        raise RequestError(f"{str(path)!r} is not a saved model.")
    if form.get("version") != FORMAT_VERSION:
        raise RequestError(f"{str(path)!r} was saved in format {form.get('version')}; this dpmine reads {FORMAT_VERSION}.")
    if not isinstance(form.get("algorithm"), str) or form["algorithm"] not in ALGORITHMS:
        raise RequestError(f"{str(path)!r} holds an unknown algorithm. Known are {', '.join(ALGORITHMS)}.")
    try:
        return ALGORITHMS[form["algorithm"]].from_json(form)
    except DpmineError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RequestError(f"{str(path)!r} is not a complete model: {error}.") from None
