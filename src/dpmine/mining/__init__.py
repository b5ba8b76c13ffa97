"""Algorithms on private tables: each asks queries alone, and states its budget before it spends."""
