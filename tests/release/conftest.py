"""What lives beside other tests: small worlds of the miners (mining), exact laws (kernel), tiny tables (privacy)."""

import sys
from pathlib import Path

for folder in ("mining", "kernel", "privacy"):
    sys.path.insert(0, str(Path(__file__).parent.parent / folder))
