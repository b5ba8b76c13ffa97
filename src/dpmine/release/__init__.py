"""Tables that anyone may mine, bought once: `DiffGen` and `ContingencyTable` as published, `TreeRelease` is ours."""

from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen
from dpmine.release.generaliser import Generaliser
from dpmine.release.released import ReleasedTable
from dpmine.release.tree_release import TreeRelease

__all__ = ["ContingencyTable", "DiffGen", "Generaliser", "ReleasedTable", "TreeRelease"]
