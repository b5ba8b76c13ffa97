"""Decision trees: as published, and ours."""

from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.sulq_id3 import SulqID3

__all__ = ["DiffPC45", "DiffPID3", "SulqID3", "TreeClassifier"]
