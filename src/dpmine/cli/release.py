"""`dpmine release`: a table that anyone may mine, its sheet, and pages about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.budget.plans import BudgetPlan
from dpmine.budget.rows import per_row
from dpmine.cli.release_files import ReleaseFiles, check_table, write_table, write_text
from dpmine.cli.shared import (
    Analyst,
    AsJson,
    Budget,
    Data,
    EngineName,
    LedgerFile,
    SchemaFile,
    Version,
    err,
    escaped,
    ledger_path,
    named_witness,
    one_sentence_errors,
    open_data,
    out,
    print_json,
)
from dpmine.facts.schema import Schema
from dpmine.owner.head_files import FileWitness
from dpmine.owner.witnesses import witness_of
from dpmine.release.estimator import ReleaseEstimator
from dpmine.release.generaliser import Generaliser
from dpmine.report.words import and_more, many
from dpmine.tables.private_table import PrivateTable

if TYPE_CHECKING:
    from dpmine.report.release_page import PaidCheck

app = typer.Typer(help="Release a table that anyone may mine; it is charged once.", no_args_is_help=True)

LEARNERS_SEED = 0  # of the draw that teaches the pages' trees, so that a check asked again asks the same and is free
MANY_PHANTOMS = 0.5  # of the records: from here on, say how to have fewer

TableOut = Annotated[
    Path, typer.Option("--out", "-o", help="Where to write the table: a .csv or .parquet file.", metavar="FILE")
]
Specialisations = Annotated[
    str | None, typer.Option("--specialisations", help="How often values are made more specific.", metavar="H")
]
Score = Annotated[
    str | None, typer.Option("--score", help="max or infogain. Default: the algorithm's own.", metavar="SCORE")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Another parameter, such as threshold=auto. May be given again.", metavar="NAME=VALUE"),
]
Raw = Annotated[
    bool | None,
    typer.Option(
        "--raw/--generalised", help="Records drawn back into the raw domains, or generalised ones. Default: raw for tree."
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Of that draw, to have the same rows again.", min=0, metavar="N")]
SheetOut = Annotated[
    Path | None,
    typer.Option("--sheet", help="Where to write the sheet. Default: the table's name and .json.", metavar="JSON"),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write a page about the release, to publish.", metavar="HTML")
]
CheckEpsilon = Annotated[
    str | None,
    typer.Option("--check-epsilon", help="Check the page against the rows, for this much more epsilon.", metavar="EPS"),
]
OwnerReport = Annotated[
    Path | None,
    typer.Option("--owner-report", help="Also write a page with TRUE numbers beside, for the owner alone.", metavar="HTML"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
PlanOnly = Annotated[bool, typer.Option("--plan", "--dry-run", help="Say what would be spent and written; spend nothing.")]


@app.callback()
def main() -> None:
    """Release a table that anyone may mine; it is charged once."""


@dataclass(frozen=True)
class _Order:
    """What a command was asked for."""

    estimator: ReleaseEstimator
    schema: Schema
    plans: list[BudgetPlan]
    files: ReleaseFiles
    check: Epsilon | None
    raw: bool
    seed: int | None

    @property
    def cost(self) -> Epsilon:
        """All that will be spent at most."""
        return Epsilon(sum(plan.cost.units for plan in self.plans))


def _add_algorithm(name: str, module: str, estimator: str, summary: str) -> None:
    """Add the command that releases a table by one algorithm."""

    def command(
        file: Data,
        schema: SchemaFile,
        epsilon: Budget,
        output: TableOut,
        specialisations: Specialisations = None,
        score: Score = None,
        settings: Settings = None,
        raw: Raw = None,
        seed: Seed = None,
        sheet: SheetOut = None,
        report: Report = None,
        check_epsilon: CheckEpsilon = None,
        owner_report: OwnerReport = None,
        force: Force = False,
        plan: PlanOnly = False,
        analyst: Analyst = "owner",
        ledger: LedgerFile = None,
        version: Version = "1",
        engine: EngineName = "memory",
        as_json: AsJson = False,
    ) -> None:
        from dpmine.release.paid_check import plan_check

        with one_sentence_errors():
            facts = Schema.load(schema)
            given = _given({"specialisations": specialisations, "score": score}, _named(settings or []))
            chosen = _estimator(name, getattr(import_module(module), estimator), epsilon, given)
            if check_epsilon is not None and report is None:
                raise RequestError("--check-epsilon buys numbers for the public page: name that page with --report.")
            check = None if check_epsilon is None else Epsilon.parse(check_epsilon, name="check-epsilon")
            files = ReleaseFiles(output, sheet or output.with_name(f"{output.name}.json"), report, owner_report)
            plans = [chosen.plan(facts)] if check is None else [chosen.plan(facts), plan_check(check, facts)]
            order = _Order(chosen, facts, plans, files, check, chosen.raw_by_default if raw is None else raw, seed)
            files.check(facts, [file, schema, *_ledger_files(ledger_path(file, facts, ledger))], force=force)
            with closing(open_data(file, schema, ledger, version, engine)) as data:
                private = data.private(analyst)
                _warn_of_draft(order)
                if plan:
                    _show_plan(order, private, as_json)
                else:
                    _release(order, private, file, as_json)

    example = f"dpmine release {name} patients.parquet --schema patients.toml --epsilon 1 --out public.csv"
    command.__doc__ = (
        f"{summary}\n\nWrites the table and, beside it, a sheet that says how to read it.\n\nExample: {example}"
    )
    app.command(name=name)(command)


_add_algorithm(
    "tree", "dpmine.release.tree_release", "TreeRelease", "The table to publish: groups are the leaves of a private tree."
)
_add_algorithm(
    "contingency", "dpmine.release.contingency", "ContingencyTable", "Every combination of values, with noise: to compare."
)
_add_algorithm(
    "diffgen", "dpmine.release.diffgen", "DiffGen", "A generalised table for classification (Mohammed and others, 2011)."
)


@app.command()
def generalise(
    sheet: Annotated[Path, typer.Argument(help="The sheet beside a released table.", metavar="SHEET")],
    file: Data,
    output: Annotated[Path, typer.Option("--out", "-o", help="Where to write: a .csv or .parquet file.", metavar="FILE")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Generalise other rows, such as a test set, as a released table is. Costs nothing and needs no ledger.

    Example: dpmine release generalise public.csv.json test.csv --out test-general.csv
    """
    with one_sentence_errors():
        generaliser = Generaliser.load(sheet)
        check_table(output, generaliser.schema, [sheet, file], force=force)
        columns = generaliser.transform(file)
        write_table(output, columns)
        rows = len(next(iter(columns.values()), []))
        if as_json:
            print_json({"rows": rows, "out": str(output)})
        else:
            out.print(f"Generalised {rows:,} rows; written to {escaped(str(output))}.")


def _ledger_files(ledger: Path) -> list[Path]:
    """The ledger, what SQLite and the anchor keep beside it, and the file of its witness."""
    witness = witness_of(named_witness())
    elsewhere = [witness.path] if isinstance(witness, FileWitness) else []
    return [*(ledger.with_name(ledger.name + ending) for ending in ("", ".anchor", "-wal", "-shm", "-journal")), *elsewhere]


# -- parameters --------------------------------------------------------------------------------------------------------


def _named(settings: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in settings]
    wrong = next((text for text, (name, sign, _) in zip(settings, pairs, strict=True) if not (name and sign)), None)
    if wrong is not None:
        raise RequestError(f"--set needs NAME=VALUE, such as threshold=auto. Got {wrong!r} instead.")
    return {name.strip(): text.strip() for name, _, text in pairs}


def _given(options: dict[str, str | None], settings: dict[str, str]) -> dict[str, str | None]:
    twice = next((name for name in settings if options.get(name) is not None), None)
    if twice is not None:
        raise RequestError(f"{twice!r} is given twice: by --{twice} and by --set.")
    return options | settings


def _estimator(
    algorithm: str, chosen: type[ReleaseEstimator], epsilon: str, given: dict[str, str | None]
) -> ReleaseEstimator:
    """The estimator with the parameters that were given; those are checked when it plans."""
    known: Any = chosen
    defaults = {field.name: field.default for field in fields(known) if field.init}
    allowed = [name for name in defaults if name not in ("epsilon", "schema")]
    parameters: dict[str, Any] = {}
    for name, text in given.items():
        if text is None:
            continue
        if name not in allowed:
            raise RequestError(f"{algorithm} has no parameter {name!r}. It has {', '.join(allowed)}.")
        parameters[name] = _value(text)
        if isinstance(defaults[name], bool) != isinstance(parameters[name], bool):
            what = "true or false" if isinstance(defaults[name], bool) else "no truth value"
            raise RequestError(f"{name} must be {what}. Got {text!r} instead.")
    made: ReleaseEstimator = known(epsilon=epsilon, **parameters)
    return made


def _value(text: str) -> bool | int | float | str:
    """What a parameter's text means: true, false, a whole number, a number, or a word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# -- planned and done --------------------------------------------------------------------------------------------------


def _show_plan(order: _Order, private: PrivateTable, as_json: bool) -> None:
    files = {option: str(path) for option, path in order.files.wanted().items()}
    remaining = private.remaining()
    if as_json:
        plans = [plan.to_dict() for plan in order.plans]
        print_json({"plans": plans, "cost": str(order.cost), "remaining": str(remaining), "files": files})
        return
    out.print("\n\n".join(escaped(str(plan)) for plan in order.plans))
    out.print(f"\nIn all at most epsilon {order.cost}; {remaining} remains. Nothing was spent.")
    out.print(f"Would write {', '.join(map(escaped, files.values()))}.")
    _warn_owner(order)


def _release(order: _Order, private: PrivateTable, table: Path, as_json: bool) -> None:
    """Spend, then write. The whole sum must be there before the first new question."""
    from dpmine.release.paid_check import buy_check

    before = private.remaining()
    estimator, files = order.estimator, order.files
    # Without a check estimators look after this themselves. The check is not asked of the guarded table: of a release that
    # was bought before, its own price is all that must be left.
    estimator.fit(private.with_room_for(per_row(order.cost, order.schema)))
    released, seed = estimator.release(), LEARNERS_SEED if order.seed is None else order.seed
    check = None if order.check is None else buy_check(private, released, epsilon=order.check, seed=seed)
    remaining = private.remaining()
    charged = Epsilon(before.units - remaining.units)

    sheet = _sheet(order, check)
    write_table(files.table, estimator.rows(raw=order.raw, seed=order.seed))
    write_text(files.sheet, _json_text(sheet))
    if files.report is not None:
        write_text(files.report, _public_page(order, sheet, check, seed))
    if files.owner_report is not None:
        write_text(files.owner_report, _owner_page(order, sheet, table, seed), private=True)

    if as_json:
        written = {option: str(path) for option, path in files.wanted().items()}
        spent = {"cost": str(order.cost), "charged": str(charged), "remaining": str(remaining)}
        print_json({**spent, "files": written, "sheet": sheet})
    else:
        _tell(order, sheet, charged, remaining, check)
    _warn_owner(order)


def _sheet(order: _Order, check: PaidCheck | None) -> dict[str, Any]:
    """The estimator's sheet, with the file that it is about and what was bought besides."""
    drawn = {"seed": order.seed} if order.raw and order.seed is not None else {}
    sheet = {**order.estimator.sheet(raw=order.raw), "table": {"file": order.files.table.name, **drawn}}
    if check is None:
        return sheet
    privacy = {**sheet["privacy"], "epsilon_of_the_check": check.epsilon, "epsilon_disclosed_in_all": str(order.cost)}
    return {**sheet, "privacy": privacy, "check": asdict(check)}


def _public_page(order: _Order, sheet: dict[str, Any], check: PaidCheck | None, seed: int) -> str:
    from dpmine.release.bars import released_bars
    from dpmine.release.learning import self_test
    from dpmine.report.release_page import release_page

    released = order.estimator.release()
    return release_page(sheet, released_bars(released), self_test(released, seed), check)


def _owner_page(order: _Order, sheet: dict[str, Any], table: Path, seed: int) -> str:
    """NOT PRIVATE: reads the true rows."""
    from dpmine.release.bars import released_bars
    from dpmine.release.owner_view import owner_view
    from dpmine.report.release_page import owner_page

    released = order.estimator.release()
    return owner_page(sheet, released_bars(released), owner_view(table, released, seed))


def _json_text(form: Any) -> str:
    return json.dumps(form, indent=2, ensure_ascii=False) + "\n"


def _tell(order: _Order, sheet: dict[str, Any], charged: Epsilon, remaining: Epsilon, check: PaidCheck | None) -> None:
    width = max(map(len, sheet["attributes"]))
    for name, form in sheet["attributes"].items():
        values = [value["name"] for value in form["values"]]
        out.print(escaped(f"{name.ljust(width)}  {and_more(values, 8)}"))
    counts = sheet["counts"]
    out.print(f"\n{many(sheet['records'], 'record')} in {many(sheet['groups'], 'group')}. Counts are noisy.")
    if sheet["records_written"] < sheet["records"]:
        out.print(f"Of these {sheet['records_written']:,} are written, each standing for as many as any other.")
    if "off_by_at_most_in_95_percent" in counts:
        within = counts["off_by_at_most_in_95_percent"]
        out.print(f"Of all counts of a group's records, shown or not, 95 % are within {within:,} of the truth.")
    phantom = counts.get("records_in_those_at_most_about", 0)
    if phantom > MANY_PHANTOMS * sheet["records"]:
        adding_up = ", counts made to add up (--set total_share=0.02)" if "total_share" in sheet["parameters"] else ""
        out.print(
            f"Beware: up to about {phantom:,.0f} records may be noise alone, in groups that are empty. Fewer groups, a "
            f"higher threshold (--set threshold=auto){adding_up} or `release tree` help, at a new charge."
        )
    if check is not None:
        value, low, high = check.judgement.accuracy
        out.print(
            f"Checked: {check.judgement.learner} taught by it is right about {value:.1%} ({low:.1%} to {high:.1%}) of rows."
        )
    if charged.units:
        out.print(f"Epsilon {charged} spent, {remaining} remains.")
    else:
        out.print(f"Nothing was charged: the same was bought before and is the same again. Epsilon {remaining} remains.")
    out.print(f"Written: {', '.join(escaped(str(path)) for path in order.files.wanted().values())}")


def _warn_of_draft(order: _Order) -> None:
    """Before anything is spent."""
    if order.schema.drafted:
        err.print(
            "[bold yellow]Warning:[/] The schema was drafted from the rows, which no epsilon covers. Review it by public "
            "knowledge and delete 'drafted = true' before you publish."
        )


def _warn_owner(order: _Order) -> None:
    warning = order.files.owner_warning()
    if warning is not None:
        err.print(f"[bold yellow]Warning:[/] {escaped(warning)}")
