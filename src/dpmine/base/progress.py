"""Progress on long work: a bar on the terminal that appears only where somebody is looking and has waited a second."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds before a bar appears


class Progress:
    """Reports the steps of one piece of work; `shown=None` shows a bar only on a terminal."""

    def __init__(self, title: str, *, shown: bool | None = None) -> None:
        self._title = title
        self._shown = sys.stderr.isatty() if shown is None else shown

    def steps(self, items: Iterable[T], unit: str, total: int | None = None) -> Iterator[T]:
        """Go through the items; after a second of waiting a bar shows how far it is."""
        if not self._shown:
            yield from items
            return
        total = len(items) if total is None and isinstance(items, Sized) else total
        started = time.monotonic()
        waiting = iter(items)
        for done, item in enumerate(waiting, start=1):
            yield item
            if time.monotonic() - started > PATIENCE and done != total:
                yield from self._with_bar(waiting, unit, total, done)
                return

    def _with_bar(self, waiting: Iterator[T], unit: str, total: int | None, done: int) -> Iterator[T]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._title, total=total, completed=done)
            for item in waiting:
                yield item
                bar.advance(task)


QUIET = Progress("", shown=False)
