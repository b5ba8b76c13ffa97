"""Fitted models as values: trees of public rules with noisy numbers, and how far attributes are generalised."""
