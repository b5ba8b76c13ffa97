"""Data to play with: generated rows, and loaders for public data sets that stay outside. Nothing here is private."""

from dpmine.datasets.adult_facts import adult_schema
from dpmine.datasets.blow_up import blown_up, diffgen_blow_up
from dpmine.datasets.census_facts import census_income_schema
from dpmine.datasets.loaders import Graph, adult, census_income, graphs, points, sequences, transactions
from dpmine.datasets.patients import patients, patients_schema, slide_records
from dpmine.datasets.random_trees import RandomTree

__all__ = [
    "Graph",
    "RandomTree",
    "adult",
    "adult_schema",
    "blown_up",
    "census_income",
    "census_income_schema",
    "diffgen_blow_up",
    "graphs",
    "patients",
    "patients_schema",
    "points",
    "sequences",
    "slide_records",
    "transactions",
]
