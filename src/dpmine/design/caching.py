"""Designs by their public parameters, kept in memory and in files: a linear program is solved once.

A file is believed only as far as it can be checked: it has to decode, fit the setting, and pass the exact check.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from dpmine.base.errors import DpmineError
from dpmine.base.json_values import from_text, to_text
from dpmine.base.wire_values import canonical_json
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.setting import Setting
from dpmine.noise.finite_tables import FiniteTable, exact_text

VERSION = 1  # of what the builders do; raise it when a design comes out differently
MOST_IN_MEMORY = 64
_LONGEST_FILE = 8 * 1024 * 1024

_memory: dict[str, FiniteMechanism] = {}


def cached(kind: str, setting: Setting, details: tuple[str, ...], build: Callable[[], FiniteMechanism]) -> FiniteMechanism:
    """The mechanism of that name and these public parameters: from memory, from its file, or built now."""
    name = _name(kind, setting, details)
    if name not in _memory:
        path = cache_folder() / f"{name}.json"
        mechanism = _read(path, setting)
        if mechanism is None:
            mechanism = build()
            _write(path, mechanism)
        while len(_memory) >= MOST_IN_MEMORY:
            _memory.pop(next(iter(_memory)))
        _memory[name] = mechanism
    return _memory[name]


def forget() -> None:
    """Empty the memory; files stay."""
    _memory.clear()


def cache_folder() -> Path:
    """DPMINE_CACHE, or a folder below the user's cache."""
    if given := os.environ.get("DPMINE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpmine" / "designs"


@lru_cache(maxsize=1024)
def _name(kind: str, setting: Setting, details: tuple[str, ...]) -> str:
    facts = [setting.low, setting.high, setting.step, setting.sensitivity]
    form = [VERSION, kind, [exact_text(fact) for fact in facts], str(setting.epsilon), list(details)]
    return hashlib.blake2b(canonical_json(form), digest_size=20).hexdigest()


def _read(path: Path, setting: Setting) -> FiniteMechanism | None:
    try:
        if path.stat().st_size > _LONGEST_FILE:
            return None
        mechanism = FiniteMechanism.of(from_text(path.read_text(encoding="ascii"), FiniteTable))
    except (OSError, ValueError, DpmineError):
        return None
    fits = (mechanism.low, mechanism.step, len(mechanism.weights)) == (
        exact_text(setting.low),
        exact_text(setting.step),
        setting.points,
    )
    return mechanism if fits and mechanism.keeps(setting.epsilon, setting.sensitivity) else None


def _write(path: Path, mechanism: FiniteMechanism) -> None:
    """Whole or not at all. A folder that cannot be written to only costs time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".design-")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(to_text(mechanism))
            os.replace(partial, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
