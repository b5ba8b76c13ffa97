"""Data to play with. Generated rows only; nothing here is private."""

from dpmine.datasets.patients import patients, patients_schema, slide_records

__all__ = ["patients", "patients_schema", "slide_records"]
