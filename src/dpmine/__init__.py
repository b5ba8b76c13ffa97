"""dpmine: differentially private data mining. `import dpmine as dm`."""

from dpmine.audit import AuditResult, audit
from dpmine.dataset import DataSet, open  # noqa: A004 (dm.open is the name users type)
from dpmine.design.priors import Prior, prior
from dpmine.epsilon import Epsilon
from dpmine.errors import (
    AnswerError,
    BudgetError,
    DataError,
    DpmineError,
    DpmineWarning,
    EpsilonError,
    ExpressionError,
    LedgerError,
    LedgerTampered,
    RequestError,
    RequestInProgress,
    SchemaError,
)
from dpmine.expression_text import parse_key, parse_predicate
from dpmine.expressions import col
from dpmine.finite import FiniteMechanism
from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.kmeans import KMeans
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.saving import load
from dpmine.mining.selection import select_model
from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.sulq_id3 import SulqID3
from dpmine.queries import Leaf, Split, Stay, Subsets, Thresholds, one_versus_rest
from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen
from dpmine.release.generaliser import Generaliser
from dpmine.release.tree_release import TreeRelease
from dpmine.renewal import Renewal
from dpmine.results import DesignedAnswer
from dpmine.schema import ItemList, Nominal, Numeric, Schema
from dpmine.tables import PrivateTable

__version__ = "0.1.0"

__all__ = [
    "AnswerError",
    "AuditResult",
    "BudgetError",
    "ContingencyTable",
    "DPLloyd",
    "DataError",
    "DataSet",
    "DesignedAnswer",
    "DiffGen",
    "DiffPC45",
    "DiffPID3",
    "DpmineError",
    "DpmineWarning",
    "Epsilon",
    "EpsilonError",
    "ExpressionError",
    "FiniteMechanism",
    "Generaliser",
    "GreedyForest",
    "ItemList",
    "KMeans",
    "Leaf",
    "LedgerError",
    "LedgerTampered",
    "Nominal",
    "Numeric",
    "Prior",
    "PrivateTable",
    "RandomForest",
    "Renewal",
    "RequestError",
    "RequestInProgress",
    "Schema",
    "SchemaError",
    "Split",
    "Stay",
    "Subsets",
    "SulqID3",
    "Thresholds",
    "TreeClassifier",
    "TreeRelease",
    "audit",
    "col",
    "load",
    "one_versus_rest",
    "open",
    "parse_key",
    "parse_predicate",
    "prior",
    "select_model",
]
