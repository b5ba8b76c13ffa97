"""What the text of a module imports, and what an algorithm's may not."""

from __future__ import annotations

import ast

FORBIDDEN = ("random", "secrets", "os", "uuid", "numpy.random", "dpmine.kernel", "dpmine.engines", "dpmine.owner")


def imports(text: str) -> set[str]:
    """Every module that a file names in an import, also inside functions, and what it takes from numpy by a dot."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
            found.add(f"numpy.{node.attr}")
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("__import__", "eval", "exec")
        ):
            found.add("random")
    return found


def forbidden(text: str) -> set[str]:
    """What an algorithm may not import: other randomness than the public one, and whatever stands behind the door."""
    return {name for name in imports(text) if any(name == one or name.startswith(one + ".") for one in FORBIDDEN)}
