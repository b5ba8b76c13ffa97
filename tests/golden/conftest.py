"""The exact laws that draws are compared with live beside the kernel's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "kernel"))
