"""diffprivlib's KMeans on given points; runs in the peers' environment, see kmeans.py.

Reads an .npz file (points, low and high bounds, k), prints one JSON object: epsilon -> `centres`, one array a run, and
`seconds` a fit.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import KMeans
from threadpoolctl import threadpool_limits


def main() -> None:
    warnings.filterwarnings("ignore")
    given = np.load(sys.argv[1])
    epsilons, runs = sys.argv[2].split(","), int(sys.argv[3])
    points, bounds, k = given["points"], (given["low"], given["high"]), int(given["k"])
    result = {}
    for epsilon in epsilons:
        centres, took = [], 0.0
        for _ in range(runs):
            started = time.perf_counter()
            model = KMeans(k, epsilon=float(epsilon), bounds=bounds).fit(points)
            took += (time.perf_counter() - started) / runs
            centres.append(model.cluster_centers_.tolist())
        result[epsilon] = {"centres": centres, "seconds": took}
        print("diffprivlib", epsilon, f"{took:.2f} s a fit", file=sys.stderr, flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
