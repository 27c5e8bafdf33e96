"""What runs a function that does not say it: the orchestrator where it makes tasks, else a core."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from .frame import surroundings
from .source import file_of

if TYPE_CHECKING:
    from ..declare import Declared

_TASKS = ("submit", "spmd_submit", "spmd", "cluster")


def runs_on(declared: Declared) -> str:
    return "orchestration" if _makes_tasks(declared, set()) else "incore"


def _makes_tasks(declared: Declared, seen: set[Declared]) -> bool:
    seen.add(declared)
    _, tree = file_of(declared.function)
    find = surroundings(declared.function, declared.enclosing)
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            return True
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TASKS:
            return True
        called = _called(declared, node.func, find)
        if (
            called is not None
            and called not in seen
            and (called.kind != "inline" or _makes_tasks(called, seen))
        ):
            return True
    return False


def _called(declared: Declared, name: ast.expr, find: Any) -> Declared | None:
    """The function of the language that is called."""
    if isinstance(name, ast.Name):
        try:
            return getattr(find(name.id), "declared", None)
        except KeyError:
            return None
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "self":
        return getattr(getattr(declared.owner, "methods", {}).get(name.attr), "declared", None)
    return None
