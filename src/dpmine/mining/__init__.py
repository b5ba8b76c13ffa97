"""Algorithms on private tables: each asks queries alone, and states its budget before it spends."""

from dpmine.mining.clustering import DPLloyd, KMeans
from dpmine.mining.evaluation import Evaluation, Measured
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.loading import load
from dpmine.mining.selection import Selection, select_model
from dpmine.mining.trees import DiffPC45, DiffPID3, SulqID3, TreeClassifier

__all__ = [
    "DPLloyd",
    "DiffPC45",
    "DiffPID3",
    "Evaluation",
    "GreedyForest",
    "KMeans",
    "Measured",
    "RandomForest",
    "Selection",
    "SulqID3",
    "TreeClassifier",
    "load",
    "select_model",
]
