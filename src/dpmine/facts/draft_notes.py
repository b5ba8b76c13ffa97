"""Why a draft proposes what it proposes, column by column, and what its owner must check.

The words end up as comments in a schema file, which may be published: they name no values and no counts of rows.
"""

from dataclasses import dataclass
from typing import Any

DROPPED, UNIT = "dropped", "unit"


@dataclass(frozen=True)
class ColumnNote:
    """One line of the table, about one column.

    gaps     whether rows without a value were seen
    persons  how many rows most of its values have, of a column that may name persons
    """

    name: str
    kind: str
    domain: str
    why: str
    check: str
    gaps: bool = False
    persons: int | None = None

    def form(self) -> dict[str, Any]:
        form = {"column": self.name, "kind": self.kind, "domain": self.domain, "why": self.why, "check": self.check}
        return form | {"gaps": self.gaps} | ({} if self.persons is None else {"rows_of_most_persons": self.persons})

    @property
    def checks(self) -> list[str]:
        """What its owner has to look at, in the table."""
        gaps = ["has gaps, which get a label of their own"] if self.gaps else []
        persons = [f"most of its values have at most {self.persons:,} rows: the unit?"] if self.persons is not None else []
        return [*([self.check] if self.check else []), *gaps, *persons]

    def comments(self) -> str:
        return _comment(f"Why: {self.why}.") + (_comment(f"Check: {self.check}.") if self.check else "")


@dataclass(frozen=True)
class DraftNotes:
    """What a draft says of every column, in the table's order."""

    columns: tuple[ColumnNote, ...]
    suggested: str | None = None
    """The column that looks most like one that names persons, where none was named."""

    def form(self) -> list[dict[str, Any]]:
        return [note.form() for note in self.columns]

    def of(self, name: str) -> ColumnNote:
        return next(note for note in self.columns if note.name == name)

    def commented(self, toml: str) -> str:
        """The head of a schema file, with comments on what was dropped and on whom the guarantee might protect."""
        return "".join(self._before(line) + line + self._after(line) for line in toml.splitlines(keepends=True))

    def _before(self, line: str) -> str:
        if line == "[unit]\n":
            return "".join(note.comments() for note in self.columns if note.kind == UNIT)
        if not line.startswith("drop = "):
            return ""
        dropped = [note for note in self.columns if note.kind == DROPPED]
        return _comment("Columns that are never read:") + "".join(
            _comment(f"  {note.name}: {note.why}" + (f" (most at most {note.persons})" if note.persons else ""))
            for note in dropped
        )

    def _after(self, line: str) -> str:
        if line != 'unit = "row"\n' or self.suggested is None:
            return ""
        import tomli_w

        column = tomli_w.dumps({"column": self.suggested}).strip()
        return _comment(
            f"{self.suggested} looks as if it named persons or things that own several rows. To protect them instead of "
            "single rows, put this in place of the line above; 'at_most' was read from the data, and every answer costs "
            "that many times as much:"
        ) + (f"# unit = {{ {column}, at_most = {self.of(self.suggested).persons} }}\n")


def _comment(text: str) -> str:
    """Comment lines of about a hundred letters; a column's name may hold anything."""
    lines, line = [], "#"
    for word in "".join(letter if letter.isprintable() else "?" for letter in text).split(" "):
        if len(line) + len(word) > 110 and line != "#":
            lines.append(line)
            line = "#"
        line += f" {word}"
    return "\n".join([*lines, line]) + "\n"
