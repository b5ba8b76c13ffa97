"""How long a ledger with a long log takes to open, to verify, and to go on.

    python benchmarks/ledger_opening.py [--quick] [--only NAME...] [--rehearse]

The log is written through the ledger's own store and replay, in bulk: charges and answers of plain counts by a few analysts,
with checkpoints where a ledger in use would keep them. It is opened, asked once, and opened again; `verify` then replays all
of it, and `without` measures how long opening would take if there were no checkpoints, on a tenth of the log. --quick leaves
both of these out.

Keys:
    entries                    of the log
    megabytes                  of the ledger's file
    checkpoints                that were kept
    seconds[name]              open: opening; first: the first answer; verify: everything replayed; without: see above
    processor_seconds[name]    of them in this process, which other work on the machine does not lengthen
    resident_megabytes         of the process after opening
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire import to_wire, value_hash
from dpmine.kernel.ledger import replay as replaying
from dpmine.kernel.ledger.accounts import DATASET, Request, Reservation
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.chain import answer_hash
from dpmine.kernel.ledger.checkpoints import text_digest
from dpmine.kernel.ledger.odometer import Charge, Charged
from dpmine.kernel.ledger.replay import Increase, Replay
from dpmine.kernel.ledger.store import Rows
from dpmine.language.queries import Query
from dpmine.language.views import LEAF, View
from dpmine.owner.head_files import AnchorFile
from dpmine.owner.ledgers import book_at
from dpmine.owner.sqlite_store import SQLiteStore
from dpmine.questions.histogram import Histogram
from harness import arguments, finish, say, sized

T = TypeVar("T")

ENTRIES = sized(1_000_000, 400)
replaying.LETTERS = sized(replaying.LETTERS, 50_000)  # a short log has checkpoints, too
AT_ONCE = 2_500  # questions in one transaction
ANALYSTS = [f"analyst {number}" for number in range(7)]
CAP = 10**15
ROOT = "0" * 64
TOKEN = "0" * 32
ANSWER = b'{"epsilon":["0.1"],"is":"answer","numbers":[[17]],"sensitivity":1}'


def main() -> None:
    args = arguments(__doc__ or "", ["open", "verify", "without"], peers=("verify", "without"))
    result: dict[str, Any] = {"entries": ENTRIES, "seconds": {}, "processor_seconds": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.db"
        result["checkpoints"] = write_log(path, ENTRIES, with_checkpoints=True)
        result["megabytes"] = round(path.stat().st_size / 1e6)
        if "open" in args.names:
            ledger = timed(result, "open", lambda: opened(path))
            result["resident_megabytes"] = resident()
            timed(result, "first", lambda: pay(ledger, CAP // 2))
            ledger.close()
        if "verify" in args.names:
            ledger = opened(path)
            timed(result, "verify", ledger.verify)
            ledger.close()
        if "without" in args.names:
            short = Path(folder) / "short.db"
            write_log(short, ENTRIES // 10, with_checkpoints=False)
            timed(result, "without", lambda: opened(short)).close()
    finish(result)


def timed(result: dict[str, Any], name: str, run: Callable[[], T]) -> T:
    started, worked = time.perf_counter(), time.process_time()
    found = run()
    result["seconds"][name] = round(time.perf_counter() - started, 4)
    result["processor_seconds"][name] = round(time.process_time() - worked, 4)
    say(f"{name}: {result['seconds'][name]} s")
    return found


def opened(path: Path, cap: int | None = None) -> Ledger:
    return book_at(path, dataset="long", cap=cap)


def asked(units: int, analyst: str = ANALYSTS[0]) -> Request:
    """A plain count at a price of its own, so that none was asked before."""
    query = Query(View(), LEAF, Histogram(()), (Epsilon(units),))
    question, plan = to_wire(query).decode(), value_hash(query) + "@" + ROOT
    charge = Charge((Charged(0, "view", "", units),))
    return Request(analyst, "plan:" + plan, plan, ROOT, question, charge)


def pay(ledger: Ledger, units: int) -> None:
    reservation = ledger.reserve(asked(units))
    assert isinstance(reservation, Reservation)
    ledger.store(reservation, ANSWER)


class Writer:
    """Writes entries as a ledger does, but thousands in a transaction, and the anchor's lines at the end."""

    def __init__(self, path: Path, *, with_checkpoints: bool) -> None:
        self._with_checkpoints = with_checkpoints
        self._store = SQLiteStore(path)
        self._anchor = AnchorFile(path).path
        self._lines: list[str] = []
        self.replay = Replay()
        with self._store.reading() as rows:
            self.replay.follow(rows.log(0))

    def write(self, entries: int) -> None:
        units = 0
        while self.replay.newest[0] + 1 < entries:
            with self._store.writing() as rows:
                for _ in range(min(AT_ONCE, (entries - self.replay.newest[0]) // 2)):
                    units += 1
                    self._ask(rows, asked(units, ANALYSTS[units % len(ANALYSTS)]))
        self._store.close()
        with open(self._anchor, "a") as anchor:
            anchor.writelines(self._lines)

    def _ask(self, rows: Rows, request: Request) -> None:
        if self._with_checkpoints and self.replay.is_checkpoint_due:
            text = self.replay.checkpoint_text()
            rows.keep_checkpoint(self.replay.newest[0] + 1, text)
            self._add(rows, {"do": "checkpoint", "sha256": text_digest(text)})
        increases = [self.replay.increase(name, ROOT, request.charge) for name in (request.analyst, DATASET)]
        costs = [increase for increase, _ in increases]
        self._add(rows, {"do": "reserve", "cost": costs, "token": TOKEN, **request.form()}, increases)
        rows.keep_answer(self.replay.newest[0] + 1, ANSWER)
        answer = {"do": "answer", "analyst": request.analyst, "key": request.key, "sha256": answer_hash(ANSWER)}
        self._add(rows, answer)

    def _add(self, rows: Rows, entry: dict[str, Any], increases: list[Increase] | None = None) -> None:
        row, entry = self.replay.next_row(entry)
        rows.append(row)
        self.replay.add(row, entry, increases)
        self._lines.append(f"{row[0]} {row[2]}\n")


def write_log(path: Path, entries: int, *, with_checkpoints: bool) -> int:
    """Make a ledger with so many entries, and return how many checkpoints it has."""
    with closing(opened(path, cap=2 * CAP)) as ledger:
        for analyst in ANALYSTS:
            ledger.grant(analyst, CAP)
    writer = Writer(path, with_checkpoints=with_checkpoints)
    writer.write(entries)
    return len(writer.replay.checkpoints)


def resident() -> int:
    """Megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 1_000_000


if __name__ == "__main__":
    main()
