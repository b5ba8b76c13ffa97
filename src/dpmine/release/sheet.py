"""The sheet that goes out beside a released table: what it is, what it cost, and how to read its numbers.

It holds parameters, public facts and what follows from released numbers; nothing in it is computed from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from dpmine.epsilon import Epsilon
from dpmine.intervals import noise_deviation, noise_half_width, noise_scale
from dpmine.mining.budget_plans import BudgetPlan
from dpmine.queries import phantoms
from dpmine.release.cuts import CutValue
from dpmine.release.released import ReleasedTable, plain_values
from dpmine.schema import Numeric, Schema, Single

FORMAT = "dpmine-release"
FORMAT_VERSION = 1
CONFIDENCE = 0.95


@dataclass(frozen=True)
class GroupCounting:
    """How a release counted its groups; public numbers.

    epsilon   for each count, along one row
    at_least  the smallest noisy count that is shown; None where all are
    possible  how many counts there are, shown or not
    """

    epsilon: Epsilon
    at_least: int | None
    possible: int

    @property
    def scale(self) -> float:
        return 1 / float(self.epsilon)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a count."""
        return noise_deviation(noise_scale(1, self.epsilon))

    @property
    def half_width(self) -> int:
        """A count is off by at most this much in 95 % of the cases."""
        return noise_half_width(noise_scale(1, self.epsilon), CONFIDENCE)

    @property
    def phantoms(self) -> float:
        """How many counts would be shown by noise alone, were all of them empty: a bound, as some are not."""
        return 0 if self.at_least is None else phantoms(self.possible, self.epsilon, self.at_least)

    @property
    def phantom_records(self) -> float:
        """How many records those would have: noise that reaches the threshold exceeds it by 1 / (exp(epsilon) - 1)."""
        return self.phantoms * ((self.at_least or 0) + 1 / math.expm1(float(self.epsilon)))

    def form(self) -> dict[str, Any]:
        form = {
            "epsilon": str(self.epsilon),
            "noise": "discrete Laplace",
            "noise_scale": _rounded(self.scale),
            "standard_deviation": _rounded(self.deviation),
            "off_by_at_most_in_95_percent": self.half_width,
            "possible": self.possible,
        }
        if self.at_least is None:
            return form
        return form | {
            "threshold": self.at_least,
            "empty_but_shown_at_most_about": _rounded(self.phantoms),
            "records_in_those_at_most_about": _rounded(self.phantom_records),
        }

    def words(self) -> list[str]:
        sentences = [
            f"The noise of a count is discrete Laplace noise of scale {_rounded(self.scale):g}: a count is within "
            f"{self.half_width:,} of the true one in 95 % of the cases, each count on its own; among many counts some are "
            "further off. Sums over many groups carry the noise of every group."
        ]
        if self.at_least is not None:
            sentences += [
                f"Noisy counts below {self.at_least:,} were left out: a group that is missing has few records, not always "
                "none, and small counts that are shown are too high on average.",
                f"Groups without records get noise too. Of the {self.possible:,} counts that were possible, up to about "
                f"{_rounded(self.phantoms):,.0f} may be shown though no record is there, and these would hold about "
                f"{_rounded(self.phantom_records):,.0f} of the table's records.",
            ]
        return sentences


def combinations_of(released: ReleasedTable) -> int:
    """Combinations of generalised values and class."""
    return math.prod(map(len, released.values.values())) * len(released.schema.class_labels)


def release_sheet(
    released: ReleasedTable,
    *,
    algorithm: str,
    parameters: Mapping[str, Any],
    plan: BudgetPlan,
    charged: Epsilon,
    counting: GroupCounting | None,
    raw: bool,
) -> dict[str, Any]:
    """The sheet as plain JSON."""
    schema = released.schema
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "dpmine": version("dpmine"),
        "date": datetime.now(UTC).date().isoformat(),
        "dataset": schema.name,
        "schema_fingerprint": schema.fingerprint,
        "algorithm": algorithm,
        "parameters": dict(parameters),
        "privacy": {
            "epsilon_disclosed": str(plan.cost),
            "epsilon_charged": str(charged),
            "neighbours": schema.unit.neighbours,
            "plan": plan.to_dict(),
        },
        "rows": "drawn back into the raw domains" if raw else "generalised",
        "records": len(released),
        "class": {"name": released.target, "values": list(schema.class_labels)},
        "attributes": {
            name: _attribute_form(schema.single(name), values) for name, values in sorted_by(schema, released.values)
        },
        "groups": len(released.groups),
        "counts": {"shown": int((released.counts > 0).sum())} | ({} if counting is None else counting.form()),
        "meaning": _meaning(released, parameters, plan, counting, raw),
    }


def sorted_by(schema: Schema, values: Mapping[str, tuple[CutValue, ...]]) -> list[tuple[str, tuple[CutValue, ...]]]:
    """The released attributes in the order of the schema, as the table has them."""
    return [(attribute.name, values[attribute.name]) for attribute in schema.attributes if attribute.name in values]


def _attribute_form(attribute: Single, values: tuple[CutValue, ...]) -> dict[str, Any]:
    if isinstance(attribute, Numeric):
        points = plain_values(attribute)
        spans = [
            {"name": value.name, "from": points[value.codes[0]].item(), "to": points[value.codes[-1]].item()}
            for value in values
        ]
        return {"kind": "numeric", "values": spans}
    named = [{"name": value.name, "categories": [attribute.label(code) for code in value.codes]} for value in values]
    return {"kind": "nominal", "values": named}


def _meaning(
    released: ReleasedTable, parameters: Mapping[str, Any], plan: BudgetPlan, counting: GroupCounting | None, raw: bool
) -> list[str]:
    """What a reader who never heard of dpmine must know to use the numbers."""
    schema = released.schema
    sentences = [
        f"The release is differentially private with epsilon {plan.cost} (delta 0): to {schema.unit.neighbours} changes the "
        f"probability of any released table by at most a factor exp({plan.cost}).",
        "Whatever is computed from the table costs no further budget.",
        "Records that agree on all generalised values form a group. How many records of each class a group has is a noisy "
        "count.",
        *([] if counting is None else counting.words()),
    ]
    if parameters.get("leftover"):
        sentences.append(
            "What choices did not need went to the counts: their noise, and an automatic threshold, are smaller than said."
        )
    if parameters.get("total_share"):
        sentences.append(
            "A noisy number of rows was bought too, and the counts were then made to add up to it: shown counts differ from "
            "the noisy ones that are described above."
        )
    if raw:
        how = "as often as noisy one-attribute counts say" if released.weights else "each as likely as the other"
        sentences.append(
            "Rows are synthetic: every value was drawn at random among those that its generalised value stands for, "
            f"{how}, and independently of the record's other values. No row is a person's record."
        )
    else:
        sentences.append(
            "Values are generalised: each stands for all raw values listed under 'attributes', and the table does not say "
            "how often each of those occurs."
        )
    return sentences


def _rounded(number: float) -> float:
    """Three digits: more would pretend to a precision that nobody needs."""
    return float(f"{number:.3g}")
