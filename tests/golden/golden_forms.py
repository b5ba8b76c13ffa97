"""What a user sees of an answer, a model or a release, as plain JSON: numbers, labels, intervals' ends, costs and texts.

Left out is what follows from something else than table, question and noise: times, the ledger's heads and hashes, and what
the owner's budget says (the data set's remaining). Floats have 9 significant digits.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan
from dpmine.language.keys import Key
from dpmine.language.predicates import Predicate
from dpmine.mining.evaluation import Evaluation
from dpmine.questions.choose_label import ChosenLabel
from dpmine.questions.choose_model import ChosenModel
from dpmine.questions.choose_split import ChosenSplit, Stayed
from dpmine.questions.designed_statistic import CredibleInterval, DesignedAnswer
from dpmine.questions.histogram import NoisyCount, NoisyHistogram
from dpmine.questions.offset_sums import NoisyOffsetSums
from dpmine.questions.private_tree import GrownPrivateTree
from dpmine.questions.quantile import ChosenQuantile
from dpmine.questions.sparse_histogram import NoisySparseHistogram
from dpmine.questions.vector_sums import NoisyVectorSums
from dpmine.release.released import ReleasedTable
from dpmine.results.estimates import Estimate
from dpmine.results.intervals import Interval
from dpmine.results.preview import Preview
from dpmine.results.receipts import Receipt

DIGITS = 9
FEW_LINES = 14  # of a text that is recorded whole


@singledispatch
def form_of(item: Any) -> Any:
    raise TypeError(f"golden_forms does not know how to record {type(item).__name__}: say there what a user sees of it")


@form_of.register(str)
@form_of.register(bool)
@form_of.register(int)
@form_of.register(type(None))
def _(item: Any) -> Any:
    return item


@form_of.register(float)
def _(item: float) -> Any:
    return (float(f"{item:.{DIGITS}g}") + 0.0) if math.isfinite(item) else str(item)


@form_of.register(Fraction)
@form_of.register(Decimal)
@form_of.register(Epsilon)
@form_of.register(Predicate)
def _(item: Any) -> str:
    return str(item)


@form_of.register(np.generic)
def _(item: Any) -> Any:
    return form_of(item.item())


@form_of.register(np.ndarray)
def _(item: Any) -> Any:
    return form_of(item.tolist())


@form_of.register(list)
@form_of.register(tuple)
def _(item: Any) -> Any:
    return [form_of(part) for part in item]


@form_of.register(dict)
def _(item: dict[Any, Any]) -> Any:
    return {str(name): form_of(part) for name, part in item.items()}


@form_of.register
def _(item: Key) -> Any:
    return item.title


@form_of.register
def _(item: Receipt) -> Any:
    return {"epsilon": str(item.epsilon), "cost": str(item.cost)}


@form_of.register(Interval)
@form_of.register(CredibleInterval)
def _(item: Any) -> Any:
    return {"from": form_of(item.low), "to": form_of(item.high), "confidence": item.confidence, "note": item.note}


def _text(item: Any) -> Any:
    """How it prints: a line, or a list of lines where they are few."""
    lines = str(item).splitlines()
    return {} if len(lines) > FEW_LINES else {"text": lines[0] if len(lines) == 1 else lines}


def _paid(item: Any) -> Any:
    return form_of(item.receipt)


# -- answers -----------------------------------------------------------------------------------------------------------


@form_of.register
def _(item: NoisyCount) -> Any:
    seen = {"value": item.value, "scale": form_of(item.law.fraction), "deviation": form_of(item.standard_deviation)}
    return {**seen, "interval": form_of(item.interval()), **_text(item), **_paid(item)}


@form_of.register
def _(item: NoisyHistogram) -> Any:
    named = {"titles": item.titles, "labels": item.labels, "counts": item.counts, "scale": item.law.fraction}
    first = next(iter(item.items()))[0]
    return {**form_of(named), "first interval": form_of(item.interval(first)), **_text(item), **_paid(item)}


@form_of.register
def _(item: NoisySparseHistogram) -> Any:
    shown = [[*labels, count] for labels, count in item.items()]
    stated = {"at_least": item.at_least, "combinations": item.combinations, "scale": form_of(item.law.fraction)}
    return {"titles": form_of(item.titles), "shown": shown, **stated, **_text(item), **_paid(item)}


@form_of.register
def _(item: Estimate) -> Any:
    seen = {"value": item.value, "from": item.low, "to": item.high, "confidence": item.confidence, "note": item.note}
    return {**form_of(seen), **_text(item), **_paid(item)}


@form_of.register
def _(item: NoisyVectorSums) -> Any:
    each = {name: [item[name].value, item[name].low, item[name].high] for name in item}
    return {"rows": item.rows, "ball": item.ball, "each": form_of(each), **_text(item), **_paid(item)}


@form_of.register
def _(item: NoisyOffsetSums) -> Any:
    return {"sums": form_of(item.sums), "scales": form_of([law.fraction for law in item.laws]), **_paid(item)}


@form_of.register
def _(item: GrownPrivateTree) -> Any:
    return {"cut": form_of(item.bits), **_paid(item)}


@form_of.register
def _(item: date) -> Any:
    return item.isoformat()


@form_of.register
def _(item: ChosenQuantile) -> Any:
    seen = {"value": item.value, "order": item.order, "rows_away": item.rows_away}
    return {**form_of(seen), **_text(item), **_paid(item)}


@form_of.register
def _(item: ChosenLabel) -> Any:
    return {"label": item.label, "number": item.index, **_text(item), **_paid(item)}


@form_of.register
def _(item: ChosenSplit) -> Any:
    seen = {"by": item.key.title, "labels": form_of(item.labels), "family": item.family}
    return {**seen, **_text(item), **_paid(item)}


@form_of.register
def _(item: Stayed) -> Any:
    return {**_text(item), **_paid(item)}


@form_of.register
def _(item: ChosenModel) -> Any:
    return {"model": item.index, **_text(item), **_paid(item)}


@form_of.register
def _(item: DesignedAnswer) -> Any:
    """Of a mechanism that was built from a closed form: exactly what it said."""
    seen = {"value": item.value, "released": item.released, "mechanism": item.mechanism, "loss": item.loss}
    expected = {"expected_loss": item.expected_loss, "prior_loss": item.prior_loss, "prior": item.prior}
    return {**form_of(seen | expected), "interval": form_of(item.interval()), **_text(item), **_paid(item)}


def solved(item: DesignedAnswer) -> Any:
    """Of a mechanism that a linear program found: what does not depend on the solver."""
    return {"mechanism": item.mechanism, "expected_loss": float(f"{item.expected_loss:.3g}"), **_paid(item)}


@form_of.register
def _(item: Preview) -> Any:
    """Without what is left of the data set's cap."""
    seen = {"cost": str(item.cost), "remaining": str(item.remaining), "cached": item.cached}
    return {**seen, "expected_error": item.expected_error}


# -- plans, evaluations, releases --------------------------------------------------------------------------------------


@form_of.register
def _(item: BudgetPlan) -> Any:
    return form_of(item.to_dict())


@form_of.register
def _(item: Evaluation) -> Any:
    return form_of(item.to_dict() | {"text": str(item).splitlines()})


@form_of.register
def _(item: ReleasedTable) -> Any:
    groups = [[*group, *counts.values()] for group, counts in item.to_dict().items()]
    seen = {"records": len(item), "values": item.value_names(), "groups": groups, "weights": dict(item.weights)}
    return form_of(seen | {"planned_rows": item.planned_rows})
