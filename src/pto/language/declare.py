"""Declarations of functions: the Python function, its kind, and its annotations."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ..diag import Span
from .dtypes import DataType
from .enums import FunctionType
from .ir import INOUT
from .problems import TYPE, fail
from .reader.source import file_of, surroundings
from .types import Annotation, DynVar, annotation

#: Kinds of functions, and the processors that run them.
KINDS = {
    "orchestration": "the orchestrator",
    "incore": "a core",
    "aic": "a cube core",
    "aiv": "a vector core",
    "inline": "its callers: the body replaces the call",
    "opaque": "the orchestrator, or a core where it has no regions",
    "host": "the host",
    "group": "a cluster",
    "extern": "a core, from C++",
    "python": "the host, in ordinary Python",
}


_TYPES = {"incore": "InCore", "aic": "AIC", "aiv": "AIV", "extern": "InCore", "host": "Orchestration",
          "python": "Opaque"}  # fmt: skip
#: Calls that make tasks: the orchestrator runs an opaque function with such a call.
_TASKS = ("submit", "spmd_submit", "spmd", "cluster")


class Declared:
    """A decorated function. `enclosing` has the names of the enclosing function."""

    def __init__(
        self, function: Callable[..., Any], kind: str, enclosing: Mapping[str, object] | None = None,
        method: bool = False, **options: object,
    ) -> None:  # fmt: skip
        self.function = function
        self.said = kind
        self.enclosing = enclosing or {}
        self.method = method
        self.options = options
        self.attrs: Any = None  # attributes from the decorator, as from `pl.func_attr`
        self.strict = False  # each name is assigned once
        self.owner: Any = None  # the program whose method this is
        self.executable: tuple[ast.FunctionDef | None] | None = (
            None  # the function that `interpret` executes; see executable.py
        )

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def kind(self) -> str:
        """Return the kind, one of KINDS; an opaque function is resolved to one of its two possible kinds."""
        if self.said != "opaque":
            return self.said
        return "orchestration" if self._makes_tasks(set()) else "incore"

    def _makes_tasks(self, seen: set[Declared]) -> bool:
        seen.add(self)
        _, tree = file_of(self.function)
        find = surroundings(self.function, self.enclosing)
        for node in ast.walk(tree):
            if isinstance(node, ast.With):
                return True
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr in _TASKS:
                return True
            called = self._called(node.func, find)
            if called is None or called in seen:
                continue
            if called.kind != "inline" or called._makes_tasks(seen):
                return True
        return False

    def _called(self, name: ast.expr, find: Callable[[str], object]) -> Declared | None:
        """Return the function of the language that a name refers to."""
        if isinstance(name, ast.Name):
            try:
                return getattr(find(name.id), "declared", None)
            except KeyError:
                return None
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "self":
            return getattr(getattr(self.owner, "methods", {}).get(name.attr), "declared", None)
        return None

    @property
    def requires_runtime_binding(self) -> bool:
        """Return True for a task in Python with the body `...`."""
        *docs, last = file_of(self.function)[1].body
        return self.kind == "python" and ast.unparse(last) == "..." and all(_is_text(d) for d in docs)

    @property
    def func_type(self) -> FunctionType:
        """Return the kind as a `pl.FunctionType`."""
        return FunctionType[_TYPES.get(self.said, self.said.capitalize())]

    @cached_property
    def signature(self) -> inspect.Signature:
        whole = inspect.signature(self.function)
        params = list(whole.parameters.values())
        if self.method and params and params[0].name == "self":
            params = params[1:]
        return whole.replace(parameters=params)

    @cached_property
    def annotations(self) -> dict[str, Annotation]:
        """Return the annotations of parameters; unannotated parameters take the type of the argument."""
        out: dict[str, Annotation] = {}
        for name, p in self.signature.parameters.items():
            given = p.annotation
            if isinstance(given, str):
                given = self._evaluated(name, given)
            found = annotation(given)
            odd = found is not None and not isinstance(found.dtype, DataType | None)
            if given is not inspect.Parameter.empty and (found is None or odd):
                help = "pl.Tensor[[rows, columns], pl.FP32]" if found is not None else "pl.Tensor, or nothing"
                fail(TYPE, f"unsupported type of parameter '{name}' of {self.name}",
                     self._place(name), got="" if found is not None else repr(given), help=help)  # fmt: skip
            extents = [d for d in (found.shape if found is not None else None) or () if not _is_extent(d)]
            if extents:
                fail(TYPE, f"expected whole numbers as extents of parameter '{name}' of {self.name}",
                     self._place(name), got=repr(extents[0]),
                     help='pl.Tensor[[64, n], pl.FP32], with n = pl.dynamic("n")')  # fmt: skip
            if found is not None and found.kind == "scalar" and found.direction == INOUT:
                fail(TYPE, f"parameter '{name}' of {self.name} is a number, which cannot be an output",
                     self._place(name), help="return it; or make it a tensor of one element")  # fmt: skip
            if found is not None:
                out[name] = found
        return out

    @cached_property
    def results(self) -> list[Annotation] | None:
        """Return the types of the annotated results; None if the annotation is incomplete."""
        given = self.function.__annotations__.get("return")
        given = self._evaluated("return", given) if isinstance(given, str) else given
        found = annotation(given)
        parts = (
            found.extras
            if found is not None and found.kind == "tuple"
            else getattr(given, "__args__", [given])
        )
        said = [annotation(part) for part in parts if part is not None]
        known = [
            s
            for s in said
            if s is not None and s.dtype is not None and DynVar not in map(type, s.shape or ())
        ]
        return known if len(known) == len(said) else None

    def _evaluated(self, name: str, text: str) -> object:
        find = surroundings(self.function, self.enclosing)

        class Names(dict[str, Any]):
            def __missing__(self, key: str) -> object:
                return find(key)

        try:
            # The annotation of a function of the user's Python file, which is code already.
            return eval(text, {"__builtins__": __builtins__}, Names())
        except Exception as e:
            fail(
                TYPE,
                f"cannot evaluate the type of parameter '{name}' of {self.name}: {e}",
                self._place(name),
                got=text,
            )

    def _place(self, name: str) -> Span | None:
        """Return the location of a parameter."""
        file, node = file_of(self.function)
        found = [a for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.arg == name]
        return file.span(found[0]) if found else file.span(node).head


def _is_extent(given: object) -> bool:
    return isinstance(given, DynVar) or (hasattr(given, "__index__") and not isinstance(given, bool))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
