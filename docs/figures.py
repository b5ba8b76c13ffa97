"""The figures of docs/architecture.md: layers, modules, lines and the trusted part, counted as `.ci/trusted.py` counts.

python docs/figures.py           print the figures
python docs/figures.py --write   bring the column "after" and the parts of what is trusted up to date
"""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PARTS = ("kernel.ledger", "codes", "kernel.mechanisms", "base", "kernel.samplers", "noise", "kernel.scores", "kernel.door")
"""Of what is trusted; the rest is the renewal of caps."""


def counting() -> ModuleType:
    """The script that counts."""
    spec = importlib.util.spec_from_file_location("trusted", ROOT / ".ci" / "trusted.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures() -> dict[str, int]:
    """Each figure by the first words of its row."""
    count = counting()
    modules, trusted = count.modules(), count.trusted()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    found = {
        "layers": len(contract["layers"]),
        "modules": len(modules),
        "lines of code": sum(map(count.code_lines, modules.values())),
        "what the kernel reaches: modules with code": len(trusted),
        "what the kernel reaches: lines of code": sum(trusted.values()),
    }
    inside = {part: [name for name in trusted if f"{name}.".startswith(f"dpmine.{part}.")] for part in PARTS}
    return found | {f"`dpmine.{part}`": sum(trusted[name] for name in names) for part, names in inside.items()}


def brought_up_to_date(page: str, found: dict[str, int]) -> str:
    """The last number of each figure's row replaced."""
    for words, figure in found.items():
        row = re.compile(rf"^(\| {re.escape(words)} \|.* )[\d,]+ \|$", re.MULTILINE)
        page, times = row.subn(rf"\g<1>{figure:,} |", page)
        assert times == 1, words
    return page


if __name__ == "__main__":
    counted = figures()
    if "--write" in sys.argv:
        PAGE.write_text(brought_up_to_date(PAGE.read_text(encoding="utf-8"), counted), encoding="utf-8")
    for words, figure in counted.items():
        print(f"{figure:8,}  {words}")
