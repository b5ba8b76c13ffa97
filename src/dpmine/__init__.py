"""dpmine: differentially private data mining. `import dpmine as dm`: what `dm.` shows is public, and nothing else is."""

from dpmine import datasets
from dpmine.audit import AuditResult, audit
from dpmine.base.epsilon import Epsilon
from dpmine.base.errors import (
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
from dpmine.budget.renewal import Renewal
from dpmine.design.finite_mechanisms import FiniteMechanism
from dpmine.design.priors import Prior, prior
from dpmine.facts.kinds.dates import Date, DateTime, Time
from dpmine.facts.kinds.items import ItemList
from dpmine.facts.kinds.nominal import Nominal
from dpmine.facts.kinds.numeric import Numeric
from dpmine.facts.schema import Schema
from dpmine.language.candidates import one_versus_rest
from dpmine.language.columns import col
from dpmine.language.parsing import parse_key, parse_predicate
from dpmine.language.splits import Stay, Subsets, Thresholds
from dpmine.language.views import Leaf, Split
from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.kmeans import KMeans
from dpmine.mining.forests import GreedyForest, RandomForest
from dpmine.mining.loading import load
from dpmine.mining.selection import select_model
from dpmine.mining.trees.classifier import TreeClassifier
from dpmine.mining.trees.diffp_c45 import DiffPC45
from dpmine.mining.trees.diffp_id3 import DiffPID3
from dpmine.mining.trees.sulq_id3 import SulqID3
from dpmine.owner import DataSet, open  # noqa: A004 (dm.open is the name users type)
from dpmine.questions.designed_statistic import DesignedAnswer
from dpmine.release.contingency import ContingencyTable
from dpmine.release.diffgen import DiffGen
from dpmine.release.generaliser import Generaliser
from dpmine.release.tree_release import TreeRelease
from dpmine.tables.private_table import PrivateTable

__version__ = "0.1.0"

__all__ = [
    "AnswerError",
    "AuditResult",
    "BudgetError",
    "ContingencyTable",
    "DPLloyd",
    "DataError",
    "DataSet",
    "Date",
    "DateTime",
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
    "Time",
    "TreeClassifier",
    "TreeRelease",
    "audit",
    "col",
    "datasets",
    "load",
    "one_versus_rest",
    "open",
    "parse_key",
    "parse_predicate",
    "prior",
    "select_model",
]


def __dir__() -> list[str]:
    """The public names, without the packages that they come from."""
    return [*__all__, "__version__"]
