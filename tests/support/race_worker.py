"""A process that races for a ledger: several threads ask their queries at once and report what they got.

Usage: python -m support.race_worker LEDGER THREADS. Standard input: queries as JSON lines {"analyst", "query"}, then "go".
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from support.ledgers import PatientLedger, desk_on, hash_of, open_ledger

from dpmine.base.errors import BudgetError
from dpmine.base.wire import from_wire, to_wire
from dpmine.language.queries import Query
from dpmine.owner.desk import Desk


def ask_all(desk: Desk, asked: list[tuple[str, Query]], threads: int) -> list[dict[str, Any]]:
    """Ask everything from several threads that start together; one report for each query."""
    barrier = threading.Barrier(threads)
    reports: list[dict[str, Any]] = []

    def work(mine: list[tuple[str, Query]]) -> None:
        barrier.wait()
        for analyst, query in mine:
            reports.append(_ask(desk, analyst, query))

    workers = [threading.Thread(target=work, args=(asked[start::threads],)) for start in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return reports


def _ask(desk: Desk, analyst: str, query: Query) -> dict[str, Any]:
    try:
        reply = desk.answer(to_wire(query), analyst=analyst)
    except BudgetError:
        return {"refused": True}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    return {"sequence": reply.head.sequence, "digest": reply.head.digest, "sha256": hash_of(reply), "cost": reply.cost.units}


def main(path: str, threads: str) -> None:
    ledger = open_ledger(Path(path), kind=PatientLedger)
    desk = desk_on(ledger)
    asked = []
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, "go\n"):
        form = json.loads(line)
        asked.append((form["analyst"], from_wire(form["query"], Query)))
    print(json.dumps(ask_all(desk, asked, int(threads))), flush=True)
    ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
