"""Mechanisms, one file a question: sensitivity, law, release and proof. All of them are found here, and by type."""

import importlib
import pkgutil

for _found in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_found.name)
