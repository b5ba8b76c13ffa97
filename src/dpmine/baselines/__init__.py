"""NOT PRIVATE: ordinary decision trees that read the true rows, as references to measure private trees against.

A tree fitted here shows exact counts of the rows it was fitted on. Use it on public data, or keep it to yourself.
"""

from dpmine.baselines.c45 import C45
from dpmine.baselines.greedy import GreedyTree
from dpmine.baselines.id3 import ID3
from dpmine.baselines.tds import TDS

__all__ = ["C45", "GreedyTree", "ID3", "TDS"]
