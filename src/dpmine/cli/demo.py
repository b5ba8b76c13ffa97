"""`dpmine demo`: an owner and a miner meet at the door, on generated patients."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.panel import Panel
from rich.table import Table

import dpmine as dm
from dpmine.baselines import GreedyTree
from dpmine.cli.shared import escaped, out, print_json
from dpmine.datasets import patients, patients_schema
from dpmine.report.trees import tree_text

FRESH_ROWS, FRESH_SEED = 10_000, 2  # public: patients that were in no private table
DRAWN_DEPTH = 4


def run_demo(rows: int, *, as_json: bool) -> None:
    """Tell the story; with JSON, only its numbers."""
    started = time.perf_counter()
    records = patients(rows)
    schema = patients_schema()
    with (
        tempfile.TemporaryDirectory() as folder,
        dm.open(records, schema=schema, ledger=Path(folder) / "ledger.db", cap=4) as data,
    ):
        private = data.grant("alice", epsilon=1)
        story = _ask(private)
        story |= _grow(private, records)
        story["left"].append(("tree", private.remaining()))
        story["refusal"] = _refusal(private)
        story["statement"] = private.statement()
    story["seconds"] = time.perf_counter() - started
    if as_json:
        print_json(_numbers(story, records))
    else:
        _tell(story, records, rows)


def _ask(private: dm.PrivateTable) -> dict[str, Any]:
    """Every question of the demo, in order, with what remains after it."""
    story: dict[str, Any] = {"left": []}

    def ask(name: str, answer: Any) -> None:
        story[name] = answer
        story["left"].append((name, private.remaining()))

    adults = private.where(dm.col("age") >= 40)
    story["preview"] = adults.preview.histogram("ward", epsilon=0.1)
    ask("count", private.count(epsilon=0.05))
    ask("wards", adults.histogram("ward", epsilon=0.1))
    ask("again", adults.histogram("ward", epsilon=0.1))
    ask("asthma", private.where("history contains asthma and cough == True").count(epsilon=0.05))
    ask("by ward", {name: part.count(epsilon=0.1) for name, part in private.partition("ward").items()})
    attributes = ["blood_pressure", "weight", "temperature", "cough", "age", "ward"]
    ask("root", private.choose(attributes, score="gini", epsilon=0.1))
    cells = private.cells(story["root"].key)
    ask("children", cells.choose(attributes, score="gini", epsilon=0.1))
    return story


def _grow(private: dm.PrivateTable, records: dict[str, list[object]]) -> dict[str, Any]:
    """A private tree, judged privately; and, because these patients are made up, an ordinary tree beside it."""
    train, test = private.split(test=0.2)
    tree = dm.TreeClassifier(epsilon=0.4).fit(train)
    evaluation = tree.evaluate(test, epsilon=0.1)
    fresh = patients(FRESH_ROWS, seed=FRESH_SEED)
    truth = np.array(fresh[private.schema.require_class()], dtype=object)
    ordinary = GreedyTree(max_depth=tree.trees_.trees[0].depth).fit(records, schema=private.schema)
    return {
        "tree": tree,
        "evaluation": evaluation,
        "accuracy": tree.score(fresh, truth),
        "ordinary": ordinary,
        "accuracy_without_privacy": float(np.mean(np.asarray(ordinary.predict(fresh)) == truth)),
    }


def _refusal(private: dm.PrivateTable) -> str:
    try:
        private.count(epsilon=2)
    except dm.BudgetError as error:
        return str(error)
    raise AssertionError("the budget is no wall")


def _tell(story: dict[str, Any], records: dict[str, list[object]], rows: int) -> None:
    left = dict(story["left"])
    title = f"[bold]dpmine demo[/]: {rows} generated patients, an owner, and alice, who never sees a record."
    out.print(Panel(title), soft_wrap=False)
    out.print("[bold]1. The owner[/] states public facts (a schema), a cap of epsilon 4, and grants alice epsilon 1.")
    out.print("   data = dm.open(records, schema=schema, ledger='ledger.db', cap=4)")
    out.print("   private = data.grant('alice', epsilon=1)\n")
    out.print("[bold]2. Alice asks what a question would cost,[/] then asks it.")
    out.print(f"   [dim]{escaped(str(story['preview']))}[/]")
    out.print(_wards(story["wards"], records))
    out.print(f"   The column 'truth' is shown because these patients are made up. Epsilon {left['wards']} remains.")
    out.print(f"   Asking the same again is free and gives the same noise: epsilon {left['again']} remains.\n")
    out.print("[bold]3. Disjoint groups share one price.[/] Counting each of 6 wards at epsilon 0.1 costs 0.1 in all:")
    counts = ", ".join(f"{ward} {int(count)}" for ward, count in story["by ward"].items())
    out.print(f"   {counts}. Epsilon {left['by ward']} remains.")
    out.print(f"   Asthma and coughing: {escaped(str(story['asthma']))}.\n")
    out.print("[bold]4. A private choice:[/] which attribute best separates the sick from the healthy?")
    out.print(f"   At the root: {escaped(str(story['root']))}.")
    for label, chosen in zip(story["root"].labels, story["children"], strict=True):
        out.print(f"   where {story['root'].key.title} is {escaped(label)}: {escaped(str(chosen))}.")
    out.print(f"   All cells of a level are one query and one price. Epsilon {left['children']} remains.\n")
    out.print("[bold]5. A decision tree,[/] grown on 80 % of the patients at epsilon 0.4 and judged on the others at 0.1:")
    out.print("   tree = dm.TreeClassifier(epsilon=0.4).fit(train); tree.evaluate(test, epsilon=0.1)")
    out.print(escaped(story["tree"].to_text(max_depth=DRAWN_DEPTH)))
    out.print("\n   The ordinary tree beside it, grown without privacy on all patients:")
    out.print(escaped(_ordinary_text(story["ordinary"])))
    out.print(Panel(escaped(str(story["evaluation"])), title="paid evaluation"), soft_wrap=False)
    out.print(
        f"   On {FRESH_ROWS} fresh patients: private {story['accuracy']:.1%}, "
        f"without privacy {story['accuracy_without_privacy']:.1%}. Epsilon {left['tree']} remains.\n"
    )
    out.print("[bold]6. The budget is a wall.[/] Alice asks for a count at epsilon 2:")
    out.print(f"   [red]{escaped(story['refusal'])}[/]\n")
    out.print("[bold]7. The statement[/] that alice can show anyone:")
    out.print(Panel(escaped(str(story["statement"]))), soft_wrap=False)
    out.print(f"Done in {story['seconds']:.1f} s. Next: dpmine --help, or the README's ten-line example.")


def _wards(noisy: Any, records: dict[str, list[object]]) -> Table:
    table = Table(title="patients of 40 and older by ward, epsilon 0.1")
    for heading in ("ward", "noisy count", "truth", ""):
        table.add_column(heading, justify="left" if heading in ("ward", "") else "right")
    truth = _true_wards(records)
    for (ward,), count in noisy.items():
        bar = "█" * round(30 * max(count, 0) / max(max(truth.values()), 1))
        table.add_row(ward, str(count), str(truth.get(ward, 0)), f"[cyan]{bar}[/]")
    return table


def _ordinary_text(ordinary: GreedyTree) -> str:
    return tree_text(ordinary.trees_.trees[0], ordinary.trees_.classes, ordinary.schema_, max_depth=2)


def _true_wards(records: dict[str, list[object]]) -> dict[str, int]:
    """What no analyst would see: the demo's patients are made up."""
    truth: dict[str, int] = {}
    for ward, age in zip(records["ward"], records["age"], strict=True):
        if int(str(age)) >= 40:
            truth[str(ward)] = truth.get(str(ward), 0) + 1
    return truth


def _numbers(story: dict[str, Any], records: dict[str, list[object]]) -> dict[str, Any]:
    return {
        "count": int(story["count"]),
        "wards": {labels[0]: count for labels, count in story["wards"].items()},
        "wards_true_because_generated": _true_wards(records),
        "root": story["root"].key.title,
        "tree": story["tree"].to_json()["trees"],
        "evaluation": story["evaluation"].to_dict(),
        "accuracy_on_fresh_patients": story["accuracy"],
        "accuracy_without_privacy": story["accuracy_without_privacy"],
        "children": [chosen.key.title for chosen in story["children"]],
        "refusal": story["refusal"],
        "spent": str(story["statement"].allotments[0].spent),
        "remaining": [[name, str(left)] for name, left in story["left"]],
        "guarantee": story["statement"].guarantee,
        "seconds": round(story["seconds"], 2),
    }
