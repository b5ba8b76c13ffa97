"""What a log's entries say, before they get their time and nonce."""

from __future__ import annotations

import hashlib
from typing import Any

from dpmine.kernel.ledger.accounts import Request
from dpmine.kernel.ledger.checkpoints import text_digest


def create_entry(cap: int, facts: dict[str, str]) -> dict[str, Any]:
    return {"do": "create", "cap": cap, "facts": facts}


def grant_entry(analyst: str, units: int) -> dict[str, Any]:
    return {"do": "grant", "analyst": analyst, "units": units}


def revoke_entry(analyst: str) -> dict[str, Any]:
    return {"do": "revoke", "analyst": analyst}


def reserve_entry(request: Request, costs: list[int], token: str) -> dict[str, Any]:
    """Everything that was asked and charged; `costs` are the analyst's and the data set's."""
    return {
        "do": "reserve",
        "analyst": request.analyst,
        "key": request.key,
        "plan": request.plan,
        "root": request.root,
        "question": request.question,
        "currency": request.currency,
        "charge": request.charge.form(),
        "cost": costs,
        "token": token,
        "drafted": request.drafted,
    }


def resume_entry(analyst: str, key: str, token: str) -> dict[str, Any]:
    return {"do": "resume", "analyst": analyst, "key": key, "token": token}


def answer_entry(analyst: str, key: str, answer: bytes) -> dict[str, Any]:
    return {"do": "answer", "analyst": analyst, "key": key, "sha256": answer_hash(answer)}


def checkpoint_entry(text: str) -> dict[str, Any]:
    return {"do": "checkpoint", "sha256": text_digest(text)}


def answer_hash(answer: Any) -> str:
    """What the log states of an answer's bytes; no hash at all for what is not bytes."""
    return hashlib.sha256(answer).hexdigest() if type(answer) is bytes else ""
