"""The folder of public data sets that the environment variable DPMINE_DATA names: none of its files is in the repository."""

import os
from pathlib import Path

from dpmine.base.errors import DataError

VARIABLE = "DPMINE_DATA"


def data_file(name: str) -> Path:
    """The file of that name in the folder of public data sets."""
    named = os.environ.get(VARIABLE)
    if not named:
        raise DataError(f"Set the environment variable {VARIABLE} to the folder that holds {name!r}. It is not set.")
    if not Path(named).is_dir():
        raise DataError(f"{VARIABLE} must name the folder that holds {name!r}. There is no folder {named!r}.")
    path = Path(named) / name
    if not path.is_file():
        raise DataError(f"The folder that {VARIABLE} names has no file {name!r}. Put it there or name another folder.")
    return path
