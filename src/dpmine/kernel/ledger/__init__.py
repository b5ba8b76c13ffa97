"""The ledger: budgets that are never overspent."""
