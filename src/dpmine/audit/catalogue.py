"""All audit pairs, by their names."""

from functools import cache

from dpmine.audit.algorithm_pairs import algorithm_pairs
from dpmine.audit.choice_pairs import choice_pairs
from dpmine.audit.designed_pairs import designed_pairs
from dpmine.audit.noise_pairs import noise_pairs
from dpmine.audit.pairs import AuditPair
from dpmine.base.errors import RequestError


@cache
def all_pairs() -> dict[str, AuditPair]:
    """Every pair by its name."""
    listed = (*noise_pairs(), *designed_pairs(), *choice_pairs(), *algorithm_pairs())
    found = {pair.name: pair for pair in listed}
    if len(found) < len(listed):
        raise RequestError("Two audit pairs share a name.")
    return found
