"""What lives beside other tests: the wire of JSON text (surface), exact laws of choices (kernel), tiny tables (privacy)."""

import sys
from pathlib import Path

for folder in ("surface", "kernel", "privacy"):
    sys.path.insert(0, str(Path(__file__).parent.parent / folder))
