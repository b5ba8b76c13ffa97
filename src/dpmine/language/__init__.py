"""What can be said about rows: predicates, keys, views, rules, queries, and what they mean on codes."""
