"""What a ledger says, as statements: all of it to the owner, an analyst's own part to an analyst."""

import json
from collections.abc import Iterator
from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import RequestError
from dpmine.base.wire import from_wire
from dpmine.base.wire_values import json_of
from dpmine.codes.answers import Answer, Reply
from dpmine.facts.schema import Schema
from dpmine.kernel.ledger.accounts import DATASET, Account, Stored
from dpmine.kernel.ledger.book import Ledger
from dpmine.kernel.ledger.chain import checked_chain
from dpmine.kernel.ledger.guard import failing_closed
from dpmine.language.queries import Query
from dpmine.results.reading import words_of
from dpmine.results.statements import Allotment, PaidAnswer, Spending, Statement


def statement_of(ledger: Ledger, schema: Schema, version: str, analyst: str | None = None) -> Statement:
    """The ledger in plain sentences: all of it for the owner, an analyst's own part for an analyst."""
    whole = ledger.account(DATASET)
    entries = entries_of(ledger)
    reserved = [entry for entry in entries if entry["do"] == "reserve" and analyst in (None, entry["analyst"])]
    answered = {(entry["analyst"], entry["key"]) for entry in entries if entry["do"] == "answer"}
    accounts = accounts_of(ledger) if analyst is None else [ledger.account(analyst)]
    return Statement(
        dataset=ledger.fact("dataset"),
        version=version,
        currency=ledger.fact("currency"),
        neighbours=ledger.fact("neighbours"),
        unit=schema.unit.name,
        renewal=ledger.fact("renewal"),
        schema_drafted=schema.drafted or any(entry["drafted"] for entry in reserved),
        cap=Epsilon(whole.allotment),
        dataset_spent=Epsilon(whole.spent) if analyst is None else None,
        allotments=tuple(_allotment(account) for account in accounts),
        spendings=tuple(_spending(entry, answered) for entry in reserved),
    )


@failing_closed
def entries_of(ledger: Ledger) -> list[dict[str, Any]]:
    """Every log entry, oldest first; their chain is checked on the way."""
    with ledger.looking() as rows:
        return [json.loads(text) for _, text, _ in checked_chain(rows.log(0))]


def accounts_of(ledger: Ledger) -> list[Account]:
    """The analysts' accounts by name; the data set's own is `ledger.account(DATASET)`."""
    names = {entry["analyst"] for entry in entries_of(ledger) if entry["do"] == "grant"}
    return [ledger.account(name) for name in sorted(names)]


def paid_answers(ledger: Ledger, analyst: str) -> tuple[PaidAnswer, ...]:
    """What an analyst asked and was answered, oldest answer first."""
    return tuple(_paid_answer(question, at, stored) for question, at, stored in paid(ledger, analyst))


def paid(ledger: Ledger, analyst: str) -> Iterator[tuple[str, str, Stored]]:
    """The same as the ledger keeps it: the question's canonical text, when it was answered, and the answer."""
    if analyst == DATASET:
        raise RequestError(f"The owner has granted nothing to {analyst!r}.")
    if ledger.account(analyst).revoked:
        raise RequestError(f"The owner has revoked the access of {analyst!r}.")
    questions = {}
    for entry in entries_of(ledger):
        if entry.get("analyst") != analyst:
            continue
        if entry["do"] == "reserve":
            questions[entry["key"]] = entry["question"]
        elif entry["do"] == "answer":
            stored = ledger.stored(analyst, entry["key"])
            assert stored is not None  # its entry is in the log
            yield questions[entry["key"]], entry["at"], stored


def _paid_answer(question: str, at: str, stored: Stored) -> PaidAnswer:
    reply = Reply(from_wire(stored.answer, Answer), Epsilon(stored.cost), stored.head)
    return PaidAnswer(from_wire(question, Query), reply, at)


def _allotment(account: Account) -> Allotment:
    return Allotment(account.name, Epsilon(account.allotment), Epsilon(account.spent), account.revoked)


def _spending(entry: dict[str, Any], answered: set[tuple[str, str]]) -> Spending:
    who, key = entry["analyst"], entry["key"]
    return Spending(who, _words(entry["question"]), Epsilon(entry["cost"][0]), entry["at"], (who, key) in answered)


def _words(question: str) -> str:
    """What was asked. Whoever reads a ledger need not have the packages of all who asked."""
    try:
        return words_of(from_wire(question, Query))
    except RequestError:
        rows = json_of(question)
        return f"a question {rows[rows[-1][3]][0]!r} of a package that is not loaded here"
