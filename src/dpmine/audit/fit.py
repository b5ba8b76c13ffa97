"""Do drawn outcomes follow the exact law? A test whose false-alarm rate holds for any number of runs and outcomes.

With n runs, k outcomes and the relative entropy D of the drawn frequencies to the law, E[exp(t n D)] <= (1 - t)^-(k - 1)
for 0 <= t < 1 (Agrawal 2020, Finite-sample concentration of the multinomial in relative entropy). The best t gives
P(n D >= x) <= exp(-x) (e x / (k - 1))^(k - 1). The chi-square approximation is sharper, and wrong at rates of 1e-8.
"""

import math
from collections.abc import Mapping
from typing import Any

from dpmine.audit.bounds import Counts

EXPECTED = 20.0  # outcomes of which fewer are expected are put together, to keep k small

Law = Mapping[Any, float]
"""The probability of each outcome; what is missing to 1 belongs to all others together."""


def fit_failure(counts: Counts, law: Law) -> float:
    """The largest probability with which draws from this law look as bad as these; small means: another law."""
    runs = sum(counts.values())
    apart = {outcome: chance for outcome, chance in law.items() if chance * runs >= EXPECTED}
    rest = max(1 - math.fsum(apart.values()), 0.0)
    seen = [(counts.get(outcome, 0), chance) for outcome, chance in apart.items()]
    others = runs - sum(times for times, _ in seen)
    if rest > 1e-12 or others:
        seen.append((others, max(rest, 1e-15)))
    evidence = math.fsum(times * math.log(times / (runs * chance)) for times, chance in seen if times)
    return entropy_tail(evidence, len(seen) - 1)


def entropy_tail(evidence: float, freedom: int) -> float:
    """exp(-x) (e x / d)^d where that is below 1, for the evidence x = n D and d = k - 1."""
    if freedom == 0 or evidence <= freedom:
        return 1.0
    return math.exp(freedom - evidence + freedom * math.log(evidence / freedom))
