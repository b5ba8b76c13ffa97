"""Properties of any value, each tried on a few values always and on many with the slow tests."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

Test = Callable[..., None]


def few_and_many(*drawn: Any, few: int, many: int) -> Callable[[Test], Test]:
    """`@given` for what a test takes last, once with few examples and once, marked as slow, with many."""

    def twins(check: Test) -> Test:
        tried: Callable[[Test], Test] = given(*drawn)
        runs: dict[int, Test] = {count: settings(max_examples=count)(tried(check)) for count in (few, many)}

        @functools.wraps(check, updated=())
        def test(examples: int, **handed: Any) -> None:
            runs[examples](**handed)

        handed = [each.replace(kind=each.KEYWORD_ONLY) for each in inspect.signature(runs[few]).parameters.values()]
        size = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = inspect.Signature([*handed, size])  # type: ignore[attr-defined]
        sizes = [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
        twin: Test = pytest.mark.parametrize("examples", sizes)(test)
        return twin

    return twins
