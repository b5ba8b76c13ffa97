"""The memory engine: exact counts over a dictionary-encoded table, by chunked bincount.

The embedded default, and the executable specification that every other engine is held to.
"""

from dpmine.engines.memory.cells import CellIds, cell_ids
from dpmine.engines.memory.engine import MemoryEngine

__all__ = ["CellIds", "MemoryEngine", "cell_ids"]
