"""Every error dpmine raises on purpose, in one hierarchy.

    DpmineError
    ├── RequestError            a mistake in what was asked; nothing was spent        exit code 2
    │   ├── SchemaError         the public facts are wrong or incomplete
    │   ├── ExpressionError     a predicate or key that the schema does not allow
    │   ├── EpsilonError        an epsilon that is not a positive number
    │   └── DataError           a table that cannot be read (seen by the owner only)
    ├── BudgetError             the budget is short; nothing was spent                exit code 3
    ├── LedgerError             the ledger cannot be trusted or written; no answer    exit code 2
    │   ├── LedgerTampered      the ledger disagrees with itself, its anchor or its witness
    │   └── RequestInProgress   the same request is being answered elsewhere
    └── AnswerError             failed after the charge, which stands                 exit code 2

    DpmineWarning           a warning: what was asked is done, but it may not be what was meant
    └── OwnerWarning        may hold true counts: given where a table is opened, to whoever opens it

A message says what was asked, what is allowed and what to do next. It never holds a value computed from rows.
"""


class DpmineError(Exception):
    """Base of every error that dpmine raises on purpose."""

    exit_code = 2


class RequestError(DpmineError):
    """A mistake in the request. Nothing was spent."""


class SchemaError(RequestError):
    """The schema is wrong or does not fit what was asked of it."""


class ExpressionError(RequestError):
    """A predicate or key that is malformed or unknown to the schema."""


class EpsilonError(RequestError):
    """An epsilon that is not a positive finite number."""


class DataError(RequestError):
    """A table that cannot be read. Only owners open tables, so only owners see this."""


class BudgetError(DpmineError):
    """The budget is short. Nothing was spent.

    `remaining` is what the analyst has left; None where it is the data set's cap that has no room.
    """

    exit_code = 3

    def __init__(self, message: str, *, requested: str, remaining: str | None) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class LedgerError(DpmineError):
    """The ledger could not be read or written, so nothing was answered."""


class LedgerTampered(LedgerError):
    """The ledger disagrees with its hash chain, its odometers, its anchor or its witness."""


class RequestInProgress(LedgerError):
    """The same request is reserved and not yet answered."""


class AnswerError(DpmineError):
    """The request failed after it was charged. The charge stands, and the cause is not shown."""


class DpmineWarning(UserWarning):
    """What was asked is done, but it may not be what was meant. It follows from public facts and parameters alone."""


class OwnerWarning(DpmineWarning):
    """What an owner must know of a table's files. It may hold true counts; nothing that analysts are told depends on it."""
