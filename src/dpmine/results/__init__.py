"""What miners get back, one file a question: its words, how its reply is read, and how it is shown. All are found here."""

import importlib
import pkgutil

for _found in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_found.name)
