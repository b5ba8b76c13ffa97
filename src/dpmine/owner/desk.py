"""Where names become codes: between executors, which speak of columns and values, and the kernel, which knows codes alone.

Nothing here is trusted. What is translated wrongly is another question than was asked, and never one that costs too little.
"""

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import BudgetError, RequestError
from dpmine.base.wire import from_wire, to_wire
from dpmine.budget.rows import per_row
from dpmine.codes.answers import Quote, Reply
from dpmine.facts.facts import Facts
from dpmine.kernel.door import TOO_DEEP, Kernel
from dpmine.kernel.ledger.book import Ledger
from dpmine.language.queries import Query, resolve
from dpmine.language.resolver import KnownKeys


class Desk:
    """Takes queries as they travel, and hands them to the kernel on codes."""

    def __init__(self, kernel: Kernel, schema: Facts) -> None:
        self._kernel = kernel
        self._schema = schema
        self._known_keys: KnownKeys = {}

    @property
    def ledger(self) -> Ledger:
        return self._kernel.ledger

    @property
    def version(self) -> str:
        return self._kernel.version

    def answer(self, request: bytes, *, analyst: str, key: str | None = None) -> Reply:
        """Charge, compute, store, release."""
        query, on_codes = self._read(request)
        try:
            return self._kernel.answer(on_codes, asked=to_wire(query).decode("ascii"), analyst=analyst, key=key)
        except BudgetError as error:
            short = BudgetError(f"{error} {self._advice(error)}", requested=error.requested, remaining=error.remaining)
        raise short

    def preview(self, request: bytes, *, analyst: str) -> Quote:
        """What a query would cost, and by which laws it would be answered. Looks at no row and spends nothing."""
        _, on_codes = self._read(request)
        return self._kernel.preview(on_codes, analyst=analyst)

    def _advice(self, short: BudgetError) -> str:
        if short.remaining is None:
            return "Ask with less, or ask the data owner."
        affordable = per_row(Epsilon.parse_or_zero(short.remaining), self._schema)
        if not affordable.units:
            return "Ask the data owner for more."
        return f"Ask with at most {affordable}, or ask the data owner for more."

    def _read(self, request: bytes) -> tuple[Query, bytes]:
        """The query, and what it means on codes."""
        try:
            query = from_wire(request, Query)
            return query, to_wire(resolve(query, self._schema, self._known_keys))
        except RecursionError:
            raise RequestError(TOO_DEEP) from None
