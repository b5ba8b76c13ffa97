"""Long work in worker processes: one way for experiments and audits alike."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from dpmine.base.errors import RequestError

AHEAD = 2  # tasks handed to each worker before it is done with the one before
THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def worked(work: Callable[[Task], Result], tasks: Sequence[Task], workers: int, what: str) -> Iterator[Iterator[Result]]:
    """The results as they are finished; in this process where one worker is enough. Workers must be able to find `work`."""
    if workers < 1:
        raise RequestError(f"{what} needs at least 1 worker. Got {workers} instead.")
    if workers == 1 or len(tasks) < 2:
        yield map(work, tasks)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn"))
        try:
            yield _as_finished(pool, work, tasks, AHEAD * workers)
        finally:
            pool.shutdown(cancel_futures=True)


def _as_finished(
    pool: ProcessPoolExecutor, work: Callable[[Task], Result], tasks: Sequence[Task], most: int
) -> Iterator[Result]:
    waiting: set[Future[Result]] = set()
    for task in tasks:
        waiting.add(pool.submit(work, task))
        if len(waiting) >= most:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers are as many as there should be threads, so libraries inside them must not start more."""
    before = {name: os.environ.get(name) for name in THREAD_COUNTS}
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))
    try:
        yield
    finally:
        for name, setting in before.items():
            if setting is None:
                del os.environ[name]
            else:
                os.environ[name] = setting
