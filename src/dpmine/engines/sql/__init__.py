"""Engines that compile aggregates to SQL: one compiler, a dialect for each database, and a connection of its own."""
