"""Public facts about a table: the schema, its kinds of attributes, and how files are read under it."""
