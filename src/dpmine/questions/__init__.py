"""What can be asked, one file a question: its value in names, its words, and what its reply is. All are found here."""

import importlib
import pkgutil

for _found in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_found.name)
