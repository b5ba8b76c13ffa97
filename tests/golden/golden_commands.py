"""Golden entries: what the command line prints and writes for the same table."""
