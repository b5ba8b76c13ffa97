"""Drawings of fitted models, for the terminal, for pages and for notebooks. They show public and noisy numbers only."""
