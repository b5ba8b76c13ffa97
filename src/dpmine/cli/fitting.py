"""What all `dpmine mine` and `dpmine plan` commands do: refuse what can be refused, then fit, save and tell."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmine.base.epsilon import Epsilon
from dpmine.budget.plans import BudgetPlan
from dpmine.cli.shared import escaped, open_data, out, print_json
from dpmine.mining.model_estimator import ModelEstimator

ModelOut = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model (JSON).", metavar="JSON")]


@dataclass(frozen=True)
class Rows:
    """Where the private rows are, and who asks."""

    file: Path
    schema: Path
    analyst: str
    ledger: Path | None
    version: str
    engine: str


def fit_and_save(model: ModelEstimator[Any], rows: Rows, output: Path) -> Epsilon:
    """Fit and write the model; returns what remains."""
    with closing(open_data(rows.file, rows.schema, rows.ledger, rows.version, rows.engine)) as data:
        private = data.private(rows.analyst)
        model.fit(private)
        remaining = private.remaining()
    model.save(output)
    return remaining


def tell(
    model: ModelEstimator[Any],
    plan: BudgetPlan,
    remaining: Epsilon,
    output: Path,
    *,
    text: str,
    lines: Sequence[str],
    after: str,
    more: dict[str, Any],
    as_json: bool,
) -> None:
    """A fitted model as text, with `lines` of its own and what to do `after`; or as JSON, with `more`."""
    if as_json:
        form = {
            "model": str(output),
            "cost": str(model.cost_),
            "charged": str(model.charged_),
            "remaining": str(remaining),
            "plan": plan.to_dict(),
        }
        print_json(form | more)
        return
    out.print(escaped(text))
    out.print(f"\n{escaped(plan.algorithm)}: epsilon {model.charged_} spent, {remaining} remains. Counts are noisy.")
    for line in lines:
        out.print(escaped(line))
    out.print(f"Saved to {escaped(str(output))}. Next: {escaped(after)}")


def show_plan(model: ModelEstimator[Any], schema: Path, rows: int | None, as_json: bool) -> None:
    plan = model.plan(schema, rows=rows)
    if as_json:
        print_json(plan.to_dict())
    else:
        out.print(escaped(str(plan)))
