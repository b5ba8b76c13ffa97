"""The question is asked, previewed, stated, read again and audited; what came of it is printed as one JSON object."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from support.executors import across_the_wire

import dpmine as dm
import many_rows.mechanism
from dpmine.audit.catalogue import all_pairs
from dpmine.audit.mutants import patched
from dpmine.audit.running import QUICK, judge, number_of_tests
from dpmine.audit.sampling import Task, draw
from dpmine.base.epsilon import Epsilon
from dpmine.datasets import patients, patients_schema
from dpmine.noise.laws import DiscreteLaplace, laplace
from dpmine.results.reading import results_of
from dpmine.tables.private_table import PrivateTable
from many_rows.pair import many_rows_pair
from many_rows.question import ManyRows

QUESTION = ManyRows(100)


def asked(private: PrivateTable) -> dict[str, Any]:
    preview = private.preview.ask(QUESTION, epsilon="0.5")
    found = private.ask(QUESTION, epsilon="0.5")
    in_wards = private.cells("ward").ask(QUESTION, epsilon=["0.5", "0.25", 0, 0, 0, 0])
    few = private.where("age >= 40").ask(ManyRows(10_000), epsilon="0.5")
    paid = private._executor.answers()
    (again,) = results_of(paid[0].query, paid[0].reply, private.schema)
    return {
        "preview": [str(preview.cost), preview.expected_error],
        "answer": [found.seems, str(found), found.law.scale],
        "few": few.seems,
        "cells": [None if each is None else str(each.receipt.epsilon) for each in in_wards],
        "spent": str(private.statement().allotments[0].spent),
        "statement": [spending.what for spending in private.statement().spendings],
        "paid": len(paid),
        "the same again": again == found,
        "free again": str(private.preview.ask(QUESTION, epsilon="0.5").cost),
    }


def refused(private: PrivateTable) -> list[str]:
    """What is too little to pay for, before any charge; and what cannot be written down at all."""
    said = []
    for ask in (lambda: private.ask(QUESTION, epsilon=100), lambda: ManyRows(0)):
        try:
            ask()
        except dm.DpmineError as error:
            said.append(str(error))
    return said


def audited(planted: AbstractContextManager[None] = nullcontext()) -> list[str]:  # noqa: B008 (it does nothing)
    """What the quick audit has against the question."""
    pair = many_rows_pair()
    failure = QUICK.false_alarms / number_of_tests([*all_pairs().values(), pair])
    with planted:
        drawn = draw(pair, Task(pair.name, pair.runs))
    return judge(pair, None, [drawn], failure).violations


def half_the_noise(sensitivity: int, epsilon: Epsilon) -> DiscreteLaplace:
    return laplace(sensitivity, Epsilon(2 * epsilon.units))


if __name__ == "__main__":
    with dm.open(patients(1_000), schema=patients_schema(), ledger=None, cap=8) as data:
        local = data.grant("alice", epsilon=2)
        came = {
            "local": asked(local),
            "json": asked(across_the_wire(data.grant("bob", epsilon=2))),
            "refused": refused(local),
            "audit": audited(),
            "planted": audited(patched(many_rows.mechanism, "laplace", half_the_noise)),
        }
    print(json.dumps(came))
