"""Failing closed where the interpreter itself gives up."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dpmine.base.errors import LedgerError

P = ParamSpec("P")
T = TypeVar("T")


def failing_closed(method: Callable[P, T]) -> Callable[P, T]:
    """A stack or memory that is used up anywhere in the ledger's work is a ledger's error, like a disk that is full."""

    @functools.wraps(method)
    def guarded(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return method(*arguments, **options)
        except RecursionError:
            raise LedgerError("The ledger cannot be used from so deep a stack. Nothing is answered.") from None
        except MemoryError:
            raise LedgerError("The ledger cannot be used: there is too little memory. Nothing is answered.") from None

    return guarded
