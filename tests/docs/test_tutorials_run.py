"""The tutorials run as they are printed, block after block, and cost what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorials").glob("*.md"))


def test_there_are_tutorials_for_everybody() -> None:
    assert {"owner.md", "analyst.md", "scientist.md", "researcher.md"} <= {path.name for path in TUTORIALS}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    assert any("assert" in block for block in blocks)
    script = tmp_path / "tutorial.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
