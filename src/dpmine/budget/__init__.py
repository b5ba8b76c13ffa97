"""Arithmetic of budgets: steps and plans before anything is spent, what a row pays of it, and caps that grow.

Public: `StatedBudget`, `PlanStep` and `BudgetPlan` in `plans`, `per_row` and `per_unit` in `rows`, `Renewal` in `renewal`.
They are imported from there: the ledger needs renewals alone, and what it imports is trusted.
"""
