"""What a ledger says, as statements: all of it to the owner, an analyst's own part to an analyst."""

from __future__ import annotations

from typing import Any

from dpmine.base.epsilon import Epsilon
from dpmine.base.wire import from_wire
from dpmine.facts.schema import Schema
from dpmine.kernel.ledger.accounts import DATASET, Account
from dpmine.kernel.ledger.book import Ledger
from dpmine.language.queries import Query
from dpmine.results.reading import words_of
from dpmine.results.statements import Allotment, Spending, Statement


def statement_of(ledger: Ledger, schema: Schema, version: str, analyst: str | None = None) -> Statement:
    """The ledger in plain sentences: all of it for the owner, an analyst's own part for an analyst."""
    whole = ledger.account(DATASET)
    entries = ledger.entries()
    reserved = [entry for entry in entries if entry["do"] == "reserve" and analyst in (None, entry["analyst"])]
    answered = {(entry["analyst"], entry["key"]) for entry in entries if entry["do"] == "answer"}
    accounts = ledger.accounts() if analyst is None else [ledger.account(analyst)]
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


def _allotment(account: Account) -> Allotment:
    return Allotment(account.name, Epsilon(account.allotment), Epsilon(account.spent), account.revoked)


def _spending(entry: dict[str, Any], answered: set[tuple[str, str]]) -> Spending:
    who, key = entry["analyst"], entry["key"]
    words = words_of(from_wire(entry["question"], Query))
    return Spending(who, words, Epsilon(entry["cost"][0]), entry["at"], (who, key) in answered)
