"""A check fails where numbers are written otherwise than the schema reads them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import dpmine as dm
from dpmine.facts.checking import check_table, require_read
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.reading_rules import ReadingRules
from dpmine.facts.schema import Schema

WEIGHT = Numeric("weight", Decimal(20), Decimal(200), Decimal(5), resolution=Decimal("0.1"))


def written(path: Path, texts: list[str]) -> Path:
    path.write_text("weight;x\n" + "".join(f"{text};1\n" for text in texts))
    return path


def test_numbers_with_a_comma_that_the_schema_does_not_know_are_no_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "w.csv", ["70,5", "81,2", "64,0"] * 50)
    wrong = check_table(path, Schema("w", (WEIGHT,), 1000, read=ReadingRules(sep=";")))
    with pytest.raises(dm.DataError, match="Most texts in 'weight' are no numbers"):
        require_read(wrong, unread_at_most=0.01)
    require_read(check_table(path, Schema("w", (WEIGHT,), 1000, read=ReadingRules(sep=";", decimal=","))), unread_at_most=0)


@pytest.mark.parametrize("gap", ["", "NA", "n/a", "-", "NULL"])
def test_a_column_of_gaps_is_no_wrong_reading(gap: str, tmp_path: Path) -> None:
    path = written(tmp_path / "w.csv", [gap] * 95 + ["70"] * 5)
    require_read(check_table(path, Schema("w", (WEIGHT,), 1000, read=ReadingRules(sep=";"))), unread_at_most=0)
