"""What there is to audit, found in the package itself: whoever adds a mechanism or an algorithm adds its audit pair."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from types import ModuleType

import dpmine.kernel
import dpmine.mining
import dpmine.release
from dpmine.audit.catalogue import all_pairs
from dpmine.audit.pairs import AuditPair
from dpmine.kernel.mechanisms.mechanism import Mechanism
from dpmine.kernel.scores import Score
from dpmine.language.keys import Key
from dpmine.language.queries import Question
from dpmine.language.splits import Splits
from dpmine.language.views import Step
from dpmine.mining.estimators import Estimator

CLAIM = re.compile(r"^\s*Claim\s+\S", re.MULTILINE)


def everything_to_audit() -> list[str]:
    """Names of questions, steps, splits, keys, scores, estimators, spending functions, and what else states a claim.

    A mechanism answers one question and is gone through with it, so the question stands for both.
    """
    mining = [*modules_of(dpmine.mining), *modules_of(dpmine.release)]
    claims = {name for module in modules_of(dpmine.kernel) for name in _claims_in(module)}
    spending = {name for module in mining for name in _spending_functions_in(module)}
    classes = {dotted(found) for base in (Question, Step, Splits, Key, Score, Estimator) for found in last_subclasses(base)}
    return sorted(claims | spending | classes)


def not_covered(pairs: Iterable[AuditPair] | None = None) -> list[str]:
    """What no pair goes through."""
    covered = {name for pair in (all_pairs().values() if pairs is None else pairs) for name in pair.covers}
    return [name for name in everything_to_audit() if name not in covered]


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Every module of a package and of those inside it, imported."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def last_subclasses(base: type) -> set[type]:
    """Subclasses of the package that have none themselves."""
    last: set[type] = set()
    below: list[type] = type.__subclasses__(base)
    for found in below:
        if found.__module__.startswith("dpmine."):
            last |= last_subclasses(found) or {found}
    return last


def dotted(found: type) -> str:
    return f"{found.__module__}.{found.__qualname__}"


def _claims_in(module: ModuleType) -> Iterator[str]:
    for name, found in vars(module).items():
        ours = (inspect.isclass(found) or inspect.isfunction(found)) and found.__module__ == module.__name__
        if inspect.isclass(found) and issubclass(found, Mechanism):
            continue
        if ours and CLAIM.search(found.__doc__ or ""):
            yield f"{module.__name__}.{name}"


def _spending_functions_in(module: ModuleType) -> Iterator[str]:
    """Public functions that take a private table and an epsilon: they spend on their own."""
    for name, found in vars(module).items():
        if name.startswith("_") or not inspect.isfunction(found) or found.__module__ != module.__name__:
            continue
        parameters = inspect.signature(found).parameters
        if "epsilon" in parameters and any("PrivateTable" in str(one.annotation) for one in parameters.values()):
            yield f"{module.__name__}.{name}"
