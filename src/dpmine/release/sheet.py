"""The sheet that goes out beside a released table: what it is, what it cost, and how to read its numbers.

It holds parameters, public facts and what follows from released numbers; nothing in it is computed from the rows.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan
from dpmine.facts.kinds.kind import DROP, OWN, Ordered, Single
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.models.cuts import CutValue
from dpmine.release.released import GroupCounting, ReleasedTable

FORMAT = "dpmine-release"
FORMAT_VERSION = 2
DRAFTED = (
    "BUT the schema was drafted by looking at the rows (drafted = true): its ranges, categories and taxonomies were learned "
    "outside the budget, and the epsilon above does not cover them."
)


def release_sheet(
    released: ReleasedTable,
    *,
    algorithm: str,
    parameters: Mapping[str, Any],
    plan: BudgetPlan,
    charged: Epsilon,
    raw: bool,
) -> dict[str, Any]:
    """The sheet as plain JSON."""
    from importlib.metadata import version

    schema, counting = released.schema, released.counting
    counts = {"shown": int((released.counts > 0).sum())} | ({} if counting is None else _counting_form(counting))
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "dpmine": version("dpmine"),
        "date": datetime.now(UTC).date().isoformat(),
        "dataset": schema.name,
        "schema_fingerprint": schema.fingerprint,
        "schema": schema.to_toml(),
        "schema_drafted": schema.drafted,
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
        "records_written": released.rows_written,
        "class": {"name": released.target, "values": list(schema.class_labels)},
        "attributes": {
            name: schema.single(name).words | _attribute_form(schema.single(name), values)
            for name, values in sorted_by(schema, released.values)
        },
        "groups": len(released.groups),
        "counts": counts,
        "meaning": _meaning(released, parameters, plan, raw),
    }


def sorted_by(schema: Schema, values: Mapping[str, tuple[CutValue, ...]]) -> list[tuple[str, tuple[CutValue, ...]]]:
    """The released attributes in the order of the schema, as the table has them."""
    return [(attribute.name, values[attribute.name]) for attribute in schema.attributes if attribute.name in values]


def _attribute_form(attribute: Single, values: tuple[CutValue, ...]) -> dict[str, Any]:
    return {"kind": attribute.kind, "values": [_value_form(attribute, value) for value in values]}


def _value_form(attribute: Single, value: CutValue) -> dict[str, Any]:
    """The first and the last value, or the categories, that a generalised value stands for; and whether gaps do too."""
    codes = [code for code in value.codes if code < attribute.cells]
    form: dict[str, Any] = {"name": value.name}
    if not isinstance(attribute, Ordered):
        form["categories"] = [attribute.label(code) for code in codes]
    elif codes:
        after = attribute.starts[codes[-1] + 1] if codes[-1] + 1 < attribute.cells else attribute.values
        form["from"], form["to"] = _as_told(attribute, attribute.starts[codes[0]]), _as_told(attribute, after - 1)
    return form if len(codes) == len(value.codes) else form | {"missing": True}


def _as_told(attribute: Ordered, value: int) -> int | float | str:
    """A value as a number, whole where all are; of what is no number as text."""
    point = attribute.value_point(value)
    if not isinstance(attribute, Numeric):
        return attribute.written(point)
    whole = attribute.numbers.low.denominator == attribute.numbers.step.denominator == 1
    return int(point) if whole else float(point)


def _meaning(released: ReleasedTable, parameters: Mapping[str, Any], plan: BudgetPlan, raw: bool) -> list[str]:
    """What a reader who never heard of dpmine must know to use the numbers."""
    schema = released.schema
    sentences = [
        f"The release is differentially private with epsilon {plan.cost} (delta 0): to {schema.unit.neighbours} changes the "
        f"probability of any released table by at most a factor exp({plan.cost}).",
        *([DRAFTED] if schema.drafted else []),
        "Whatever is computed from the table costs no further budget.",
        "Records that agree on all generalised values form a group. How many records of each class a group has is a noisy "
        "count.",
        *([] if released.counting is None else _counting_words(released.counting)),
    ]
    if released.rows_written < len(released):
        sentences.append(
            f"Of {len(released):,} records {released.rows_written:,} are written, each standing for as many as any other."
        )
    left_out = [attribute.name for attribute in schema.lists]
    if left_out:
        sentences.append(f"Lists are not released: {', '.join(left_out)}.")
    sentences += released.notes
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
    return sentences + _gap_words(released, raw)


def _gap_words(released: ReleasedTable, raw: bool) -> list[str]:
    """What becomes of records without a value, and of numbers whose grid is coarser than they are."""
    attributes = [released.schema.single(name) for name in released.values]
    own, dropped = ([a.name for a in attributes if a.gap == gap] for gap in (OWN, DROP))
    coarse = [a.name for a in attributes if isinstance(a, Ordered) and a.cells < a.values]
    sentences = []
    if raw and coarse:
        sentences.append(
            f"A number of {', '.join(coarse)} stands for all values in its cell of the grid, and is the middle of them."
        )
    if own:
        sentences.append(
            f"An empty {', '.join(own)} says that the record has no value there."
            if raw
            else f"Records without a value of {', '.join(own)} are under the values with 'missing' under 'attributes'."
        )
    if dropped:
        sentences.append(
            f"Records without a value of {', '.join(dropped)} were counted under the values with 'missing' under "
            f"'attributes'{', and were given one of these values' if raw else ''}: nothing tells them apart."
        )
    if released.schema.target.gap is not None:
        sentences.append(f"Records without a value of {released.target} are not in the table.")
    return sentences


def _counting_form(counting: GroupCounting) -> dict[str, Any]:
    form = {
        "epsilon": str(counting.epsilon),
        "noise": "discrete Laplace",
        "noise_scale": _rounded(counting.scale),
        "standard_deviation": _rounded(counting.deviation),
        "off_by_at_most_in_95_percent": counting.half_width,
        "possible": counting.possible,
    }
    if counting.at_least is None:
        return form
    if counting.adjusted:  # records by noise alone were taken away again, nobody knows where
        return form | {"threshold": counting.at_least}
    return form | {
        "threshold": counting.at_least,
        "empty_but_shown_at_most_about": _rounded(counting.phantoms),
        "records_in_those_at_most_about": _rounded(counting.phantom_records),
    }


def _counting_words(counting: GroupCounting) -> list[str]:
    sentences = [
        f"The noise of a count is discrete Laplace noise of scale {_rounded(counting.scale):g}. Of all counts, shown "
        f"or not, 95 % are within {counting.half_width:,} of the true one. Sums over many groups carry the noise of each."
    ]
    if counting.at_least is not None:
        sentences.append(
            f"Noisy counts below {counting.at_least:,} were left out: a group that is missing has few records, not always "
            "none. Those shown were picked for being large: small ones are too high on average, and near the threshold many "
            "are noise alone, so that 95 % does not hold among them."
        )
    if counting.adjusted:
        sentences.append(
            "The counts were then made to add up and to be no less than 0: shown counts differ from the noisy ones that are "
            "described above, and some of them may belong to groups without records."
        )
    elif counting.at_least is not None:
        sentences.append(
            f"Groups without records get noise too. Of the {counting.possible:,} counts that were possible, up to about "
            f"{_rounded(counting.phantoms):,.0f} may be shown though no record is there, and these would hold about "
            f"{_rounded(counting.phantom_records):,.0f} of the table's records."
        )
    return sentences


def _rounded(number: float) -> float:
    """Three digits: more would pretend to a precision that nobody needs."""
    return float(f"{number:.3g}")
