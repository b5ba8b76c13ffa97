"""The owner opens a table and grants budgets. Alone joins kernel and engines."""

from dpmine.owner.data_set import DataSet
from dpmine.owner.ledgers import BESIDE_THE_FILE, default_ledger, open_ledger, open_ledger_over
from dpmine.owner.opening import open  # noqa: A004 (dm.open is the name users type)

__all__ = ["BESIDE_THE_FILE", "DataSet", "default_ledger", "open", "open_ledger", "open_ledger_over"]
