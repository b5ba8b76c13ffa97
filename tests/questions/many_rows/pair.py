"""The audit pair of the question: one row short of the number that is asked, and just that many."""

from __future__ import annotations

import math

from dpmine.audit.pairs import AuditPair, Outcome, answers, copied_schema
from dpmine.facts.kinds.nominal import Nominal
from dpmine.tables.private_table import PrivateTable
from many_rows.question import ManyRows

AT_LEAST = 2


def many_rows_pair() -> AuditPair:
    """With noise Z of scale 1 the answer is 1 if Z >= 1, and then if Z >= 0: a / (1 + a) and 1 / (1 + a), a = exp(-1)."""
    rarely = 1 / (1 + math.e)

    def ask(private: PrivateTable) -> list[Outcome]:
        return [seems for (seems,) in answers(private, ManyRows(AT_LEAST), 1)]

    return AuditPair(
        "many-rows",
        ("many_rows.question.ManyRows", "many_rows.mechanism.NoisyComparison"),
        "The row that is added is the one that decides: both answers change by the whole factor.",
        "1",
        copied_schema(1_000, Nominal("letter", ("a", "b"), "a", missing="a")),
        ([{"letter": "a"}] * (AT_LEAST - 1), [{"letter": "a"}] * AT_LEAST),
        ask,
        laws=({0: 1 - rarely, 1: rarely}, {0: rarely, 1: 1 - rarely}),
        tight=True,
    )
