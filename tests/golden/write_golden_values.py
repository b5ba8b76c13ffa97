"""Writes tests/golden/golden_values.json: python tests/golden/write_golden_values.py

The file holds the exact answer, model and cost of every question, estimator and release of the package, for one small
table and fake random bits. A change to a value is a visible change to that file, with its reason in the commit: run this
only when a value was meant to change, and read the diff before you commit it. A new entry draws from a stream of its own,
so it changes no other one.
"""

from __future__ import annotations

from golden_file import ENTRIES, FILE, computed, readable


def main() -> None:
    values = {name: computed(name).form for name in sorted(ENTRIES)}
    FILE.write_text(readable(values) + "\n", encoding="utf-8")
    print(f"{len(values)} golden values, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
