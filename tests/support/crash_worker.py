"""A process that makes processes to be killed: forking a loaded interpreter makes a thousand crashes affordable.

Standard input: one JSON line for each child, {"ledger", "witness", "cap", "queries", "threads", "step", "kill_after",
"eager"}. The child opens the ledger itself, asks the queries and writes what was released to a pipe. It kills itself
with SIGKILL at the named step of the protocol, or is killed from here after `kill_after` seconds. An eager child has the
planted mistake: it releases before it stores. Standard output: one JSON line, how it ended and what it had released.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from support.ledgers import ImpatientLedger, desk_on, hash_of, open_ledger

from dpmine.base.errors import RequestInProgress
from dpmine.codes.answers import Head
from dpmine.kernel.ledger.accounts import Reservation, Stored
from dpmine.owner.witnesses import witness_of

released = -1  # where the child writes what it lets out


def release(head: Head, sha256: str) -> None:
    line = {"sequence": head.sequence, "digest": head.digest, "sha256": sha256}
    os.write(released, json.dumps(line).encode() + b"\n")


class EagerLedger(ImpatientLedger):
    """Lets the answer out before it is stored."""

    def store(self, reservation: Reservation, answer: bytes, *, patience: float = 60.0) -> Stored:
        release(Head(0, ""), hashlib.sha256(answer).hexdigest())
        return super().store(reservation, answer, patience=patience)


def die_at(step: str | None) -> Any:
    def checkpoint(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return checkpoint


def ask(task: dict[str, Any]) -> None:
    """In the child: open, ask, and let every answer out."""
    checkpoint = die_at(task["step"])
    kind = EagerLedger if task["eager"] else ImpatientLedger
    witness = witness_of(task["witness"])
    ledger = open_ledger(Path(task["ledger"]), cap=task["cap"], kind=kind, at_step=checkpoint, witness=witness)
    ledger.grant("ann", task["cap"])
    desk = desk_on(ledger, checkpoint=checkpoint)
    asked = [text.encode() for text in task["queries"]]

    failures = []

    def work(mine: list[bytes]) -> None:
        for query in mine:
            try:
                reply = desk.answer(query, analyst="ann")
            except RequestInProgress:
                continue  # it died twice before, or another thread is at it
            except Exception as error:
                failures.append(error)
                raise
            release(reply.head, hash_of(reply))

    threads = [threading.Thread(target=work, args=(asked[start :: task["threads"]],)) for start in range(task["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    if failures:
        raise failures[0]


def run(task: dict[str, Any]) -> dict[str, Any]:
    global released
    source, released = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            ask(task)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(released)
    if task["kill_after"] is not None:
        time.sleep(task["kill_after"])
        os.kill(child, signal.SIGKILL)
    with os.fdopen(source, "rb") as pipe:
        lines = pipe.read().split(b"\n")
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"ended": ended, "released": [json.loads(line) for line in lines[:-1]]}


if __name__ == "__main__":
    for given in sys.stdin:
        print(json.dumps(run(json.loads(given))), flush=True)
