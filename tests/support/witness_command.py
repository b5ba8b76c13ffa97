"""A witness as a program that keeps what it is told in a folder.

Usage: witness_command.py FOLDER tell ID SEQUENCE DIGEST, or witness_command.py FOLDER ask ID.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: str, what: str, ledger: str, *head: str) -> int:
    if not Path(folder).is_dir():
        return 1  # the disk is not there
    told = Path(folder) / ledger
    known = dict(line.split() for line in told.read_text().splitlines()) if told.exists() else {}
    if what == "ask":
        if known:
            newest = max(known, key=int)
            print(newest, known[newest])
        return 0
    sequence, digest = head
    if known.get(sequence, digest) != digest:
        return 1  # another ledger of the same name: a copy
    with told.open("a") as file:
        file.write(f"{sequence} {digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
