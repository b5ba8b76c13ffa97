"""Exact draws from integer laws, from the operating system's entropy alone."""
