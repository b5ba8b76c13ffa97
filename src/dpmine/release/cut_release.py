"""What releases share whose groups are all combinations of the values of cuts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpmine.facts.encoding import Codes
from dpmine.models.cuts import Cut
from dpmine.release.counting import groups_of
from dpmine.release.estimator import ReleaseEstimator


class CutRelease(ReleaseEstimator):
    """A release by cuts. After fit: `cuts_`, how far each attribute is generalised."""

    cuts_: dict[str, Cut]

    def _groups_of(self, rows: Mapping[str, Codes], count: int) -> NDArray[np.int64]:
        return groups_of(list(self.cuts_.values()), rows, count)
