"""Checkpoints: the replayed state in texts, so that a long log need not be replayed from its first row.

Each text states what changed since the one before, whose digest it names, and an entry of the log names the newest digest.
So the hash chain covers every text, and the digest in an entry that the anchor has seen proves them all. What changed
follows from the entries alone: everybody who replays them gets the same text, and a text that they do not imply is refused.
docs/decisions/0019 has the reasoning.
"""

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dpmine.base.errors import LedgerTampered
from dpmine.base.wire_values import canonical_json
from dpmine.kernel.ledger.accounts import Account


@dataclass(slots=True)
class RequestState:
    """A request that was charged, with its answer by hash."""

    plan: str
    cost: int
    token: str
    """Of the attempt that may store the answer."""
    resumed: bool = False
    answer: str | None = None
    sequence: int | None = None
    """The row of its answer, and that row's digest."""
    digest: str = ""


@dataclass
class State:
    """What a log implies."""

    facts: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    requests: dict[tuple[str, str], RequestState] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    """The key of each (analyst, plan)."""


@dataclass
class Changes:
    """What changed since the last checkpoint, whose digest is `previous`."""

    previous: str = ""
    totals: dict[str, set[str]] = field(default_factory=dict)
    requests: set[tuple[str, str]] = field(default_factory=set)
    letters: int = 0
    """Of the entries since then."""


def text_of(state: State, since: Changes, newest: int) -> str:
    """The text of a checkpoint after the row `newest`: all facts and accounts, the totals and requests that changed."""
    requests = [(*name, *_fields(state.requests[name])) for name in sorted(since.requests)]
    form = {
        "previous": since.previous,
        "newest": newest,
        "facts": state.facts,
        "accounts": [_fields(state.accounts[name]) for name in sorted(state.accounts)],
        "totals": {name: {node: state.totals[name][node] for node in nodes} for name, nodes in since.totals.items()},
        "requests": requests,
    }
    return canonical_json(form).decode()


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_named(entry: str) -> str:
    """The digest that the entry of a checkpoint names."""
    try:
        form = json.loads(entry)
        if form["do"] == "checkpoint":
            return str(form["sha256"])
    except (KeyError, TypeError, ValueError):
        pass
    raise _edited()


def restored(texts: Iterable[str], digest: str) -> State:
    """The state that the texts of all checkpoints imply together. The newest has that digest, and names the one before."""
    state, previous = State(), ""
    try:
        with _uncollected():
            for text in texts:
                form = json.loads(text)
                if form["previous"] != previous:
                    raise _edited()
                _take(state, form)
                previous = text_digest(text)
    except (KeyError, AttributeError, TypeError, ValueError):
        raise _edited() from None
    if previous != digest:
        raise _edited()
    return state


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing that is made here is garbage, and to look for some among millions of values takes as long as to make them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _take(state: State, form: dict[str, Any]) -> None:
    state.facts = form["facts"]
    state.accounts = {fields[0]: Account(*fields) for fields in form["accounts"]}
    for name, totals in form["totals"].items():
        state.totals.setdefault(name, {}).update(totals)
    for analyst, key, *fields in form["requests"]:
        state.requests[analyst, key] = RequestState(*fields)
        state.keys[analyst, fields[0]] = key


def _fields(item: Any) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in item.__dataclass_fields__)


def _edited() -> LedgerTampered:
    return LedgerTampered("A checkpoint of the ledger is not the one that its log names: it was edited outside dpmine.")
