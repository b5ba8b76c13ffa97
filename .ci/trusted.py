"""The trusted part: every module that the kernel reaches by import statements, with its lines of code.

    python .ci/trusted.py           print them
    python .ci/trusted.py --write   bring the numbers in docs/trusted.md up to date

Lines of code are lines with code on them: no blanks, comments or docstrings. Import statements inside functions and for type
checkers count like any others; of `dpmine/__init__.py`, which shows users everything, nothing is followed.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "trusted.md"
ROW = re.compile(r"^\| `(dpmine[\w.]*)` \| +(\d+) \| (.+) \|$")
TOTAL = re.compile(r"\*\*[\d,]+ lines of code in \d+ modules\*\*")
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((SOURCE / "dpmine").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(text: str, package: str = "") -> set[str]:
    """What the import statements of a module of that package name, wherever they stand."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            names |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return names


def imports_by_name(text: str) -> bool:
    """Whether a module may import what no statement names, so that it could not be followed."""
    calls = {
        node.func.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    named = {name.partition(".")[0] for name in imported(text, "dpmine")}
    return bool(calls & {"__import__", "exec", "eval"}) or bool(named & {"importlib", "runpy"})


def closure(known: dict[str, Path]) -> list[str]:
    """The modules of the kernel and all that they reach, with the packages that these stand in."""
    waiting = [name for name in known if name == "dpmine.kernel" or name.startswith("dpmine.kernel.")]
    reached = set(waiting)
    while waiting:
        here = waiting.pop()
        package = here if known[here].name == "__init__.py" else here.rpartition(".")[0]
        for name in imported(known[here].read_text(encoding="utf-8"), package):
            parts = name.split(".")
            for end in range(2, len(parts) + 1):
                part = ".".join(parts[:end])
                if part in known and part not in reached:
                    reached.add(part)
                    waiting.append(part)
    return sorted(reached)


def code_lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def trusted() -> dict[str, int]:
    """The trusted modules that hold any code, with their lines."""
    known = modules()
    counted = {name: code_lines(known[name]) for name in closure(known)}
    return {name: lines for name, lines in counted.items() if lines}


def listed(page: str) -> dict[str, int]:
    """What docs/trusted.md says."""
    return {row[1]: int(row[2]) for line in page.splitlines() if (row := ROW.match(line))}


def brought_up_to_date(page: str, counted: dict[str, int]) -> str:
    lines = []
    for line in page.splitlines():
        row = ROW.match(line)
        if row is None:
            lines.append(TOTAL.sub(f"**{sum(counted.values()):,} lines of code in {len(counted)} modules**", line))
        elif row[1] in counted:
            lines.append(f"| `{row[1]}` | {counted[row[1]]} | {row[3]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    counted = trusted()
    if "--write" in sys.argv:
        PAGE.write_text(brought_up_to_date(PAGE.read_text(encoding="utf-8"), counted), encoding="utf-8")
        missing = sorted(set(counted) - set(listed(PAGE.read_text(encoding="utf-8"))))
        sys.exit(f"docs/trusted.md does not say why these are trusted: {', '.join(missing)}" if missing else 0)
    for name, lines in counted.items():
        print(f"{lines:6}  {name}")
    print(f"{sum(counted.values()):6}  in {len(counted)} modules")
