"""A recoding key read out: for engines and for whoever asks, not for the kernel."""

from dpmine.codes.rows import Recode


def labels_by_code(key: Recode, codes: int) -> list[int]:
    """The key's value for every one of the attribute's codes."""
    return [item for first, end, item in stretches(key, codes) for _ in range(first, end)]


def stretches(key: Recode, codes: int) -> list[tuple[int, int, int]]:
    """Codes from a first one to before an end that share a value, in order, with that value."""
    if not key.runs:
        return [(code, code + 1, code) for code in range(codes)]
    ends = [*(first for first, _ in key.runs[1:]), codes]
    return [(first, end, item) for (first, item), end in zip(key.runs, ends, strict=True)]
