"""What every refusal must be: one short line that ends like a sentence."""

from __future__ import annotations


def assert_one_sentence(error: BaseException) -> None:
    text = str(error)
    assert text
    assert "\n" not in text
    assert text.endswith(".")
    assert len(text) < 600
