"""dpmm's AIM or MST on one split; runs in an environment of its own, see release.py.

    python peer_dpmm.py given.npz AIM 1 0 made.npz

Reads an .npz file (codes of all columns, their sizes, for each split which rows are for training), fits to the training rows
of the split on the public domain, and writes as many synthetic rows as there were, with the seconds of the fit. Delta is
1e-9: neither mechanism can do without. The settings are the package's own, with one process.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM  # type: ignore[import-not-found]
from dpmm.models.mst import MSTGM  # type: ignore[import-not-found]

DELTA = 1e-9
MECHANISMS: dict[str, Any] = {"AIM": AIMGM, "MST": MSTGM}


def main() -> None:
    warnings.filterwarnings("ignore")
    file, mechanism, epsilon, split, made = sys.argv[1:]
    given = np.load(file)
    training = given["codes"][given["training"][int(split)]]
    names = [f"column{place}" for place in range(training.shape[1])]
    domain = dict(zip(names, given["sizes"].tolist(), strict=True))
    started = time.perf_counter()
    model = MECHANISMS[mechanism](epsilon=float(epsilon), delta=DELTA, n_jobs=1)
    model.set_random_state(np.random.RandomState(int(split)))
    model.set_domain(domain)
    model.fit(pd.DataFrame(training, columns=names))
    rows = model.generate(n_records=len(training))[names].to_numpy()
    np.savez(made, codes=rows, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main()
