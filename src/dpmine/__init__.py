"""dpmine: differentially private data mining. `import dpmine as dm`."""

from dpmine.dataset import DataSet, open  # noqa: A004 (dm.open is the name users type)
from dpmine.epsilon import Epsilon
from dpmine.errors import (
    AnswerError,
    BudgetError,
    DataError,
    DpmineError,
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
from dpmine.queries import Leaf, Split, Subsets, Thresholds, one_versus_rest
from dpmine.renewal import Renewal
from dpmine.schema import ItemList, Nominal, Numeric, Schema
from dpmine.tables import PrivateTable

__version__ = "0.1.0"

__all__ = [
    "AnswerError",
    "BudgetError",
    "DataError",
    "DataSet",
    "DpmineError",
    "Epsilon",
    "EpsilonError",
    "ExpressionError",
    "ItemList",
    "Leaf",
    "LedgerError",
    "LedgerTampered",
    "Nominal",
    "Numeric",
    "PrivateTable",
    "Renewal",
    "RequestError",
    "RequestInProgress",
    "Schema",
    "SchemaError",
    "Split",
    "Subsets",
    "Thresholds",
    "col",
    "one_versus_rest",
    "open",
    "parse_key",
    "parse_predicate",
]
