"""What statistics of an attribute with gaps share: a part of the price counts the rows that they are about."""

from dpmine.base.epsilon import Epsilon
from dpmine.codes.domain import Domain
from dpmine.codes.rows import Rounded

COUNTED = 20  # one part in so many counts rows


def counted_share(amount: Rounded, domain: Domain, epsilon: Epsilon) -> tuple[Epsilon, ...]:
    """What the statistic is paid with, and what its number of rows is, where gaps are possible; together epsilon."""
    if not domain.column(amount.attribute).gap:
        return (epsilon,)
    counted = epsilon.units // COUNTED
    return Epsilon(epsilon.units - counted), Epsilon(counted)
