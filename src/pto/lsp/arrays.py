"""Shapes and element types of the arrays that a Python file passes to a function, from the text of its calls.

    Calls(tree, constant).arguments("softmax")    # ([Array((32, 256), "float32"), ...], {})

Known are constants, the usual makers of arrays of NumPy and torch, and names that are assigned such values in
the function of the call. Nothing is executed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

#: Positions of the shape and the element type among the arguments of functions that make arrays (-1: none).
_MAKERS = {
    "zeros": (0, 1), "ones": (0, 1), "empty": (0, 1), "full": (0, 2), "standard_normal": (0, 1),
    "random": (0, 1), "randn": (0, -1), "rand": (0, -1), "normal": (2, -1), "uniform": (2, -1),
    "integers": (2, 3), "randint": (2, 3), "permutation": (0, -1), "arange": (0, -1),
}  # fmt: skip
_INTEGERS = ("integers", "randint", "permutation", "arange")
_SAME = ("copy", "clone", "contiguous", "numpy", "clip", "clamp")
_SHORT = {"half": "float16", "float": "float32", "int": "int32", "double": "float64"}
_DEEPEST = 30
_USES = ("lower", "compile", "run", "prove", "explain", "interpret")


class Unknown(Exception):
    """A value that only an execution of the file would give."""


class Array(NamedTuple):
    """Shape and element type of an array."""

    shape: tuple[int, ...]
    dtype: str


class Calls:
    """The calls of a file. `constant` gives the value of an expression of constants, or raises Unknown."""

    def __init__(self, tree: ast.Module, constant: Callable[[ast.expr], Any]) -> None:
        self._constant = constant
        self._scopes: list[tuple[ast.AST, dict[str, tuple[ast.expr, int | None]]]] = []
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and not n.decorator_list]
        for scope in (*functions, tree):
            self._scopes.append((scope, dict(_assigned(scope))))

    def arguments(self, name: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the first call of a function that can be read; raise Unknown without."""
        for scope, names in self._scopes:
            for node in ast.walk(scope):
                if isinstance(node, ast.Call) and _calls(node.func, name):
                    try:
                        return self._given(node, names)
                    except Unknown:
                        continue
        raise Unknown(name)

    def _given(self, call: ast.Call, names: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for arg in call.args:
            found = self._value(arg.value if isinstance(arg, ast.Starred) else arg, names)
            args += found if isinstance(arg, ast.Starred) and isinstance(found, tuple) else [found]
        wanted = [k for k in call.keywords if k.arg is not None and k.arg != "config"]
        return args, {str(k.arg): self._value(k.value, names) for k in wanted}

    def _value(self, node: ast.expr, names: Mapping[str, Any], depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise Unknown

        def value(of: ast.expr) -> Any:
            return self._value(of, names, depth + 1)

        match node:
            case ast.Name(name) if name in names:
                expr, item = names[name]
                found = value(expr)
                return found if item is None else _item(found, item)
            case ast.List(items) | ast.Tuple(items):
                return tuple(value(i) for i in items)
            case ast.Attribute(of, "shape"):
                return _array(value(of)).shape
            case ast.Attribute(of, "T"):
                found = _array(value(of))
                return Array(found.shape[::-1], found.dtype)
            case ast.Subscript(of, ast.Constant(int(item))):
                return _item(value(of), item)
            case ast.Call(ast.Attribute(of, "astype" | "to" | "type"), [dtype], []):
                return Array(_array(value(of)).shape, _dtype(dtype))
            case ast.Call(ast.Attribute(of, "reshape"), args, []):
                found = _array(value(of))
                shape = _shape([value(a) for a in args])
                if math.prod(shape) != math.prod(found.shape):
                    raise Unknown
                return Array(shape, found.dtype)
            case ast.Call(ast.Attribute(of, name)) if name in _SAME:
                return _array(value(of))
            case ast.Call(ast.Attribute(of, name), args, keywords):
                options = {k.arg: k.value for k in keywords}
                given = options.get("dtype")
                if name.endswith("_like") and args:
                    found = _array(value(args[0]))
                    return Array(found.shape, _dtype(given) if given is not None else found.dtype)
                usual = "float32" if isinstance(of, ast.Name) and of.id == "torch" else "float64"
                if name in ("array", "tensor", "asarray") and args:
                    given = given or (args[1] if len(args) > 1 else None)
                    return Array(_extents(args[0]), _dtype(given) if given is not None else usual)
                return self._made(name, args, options, usual, value)
            case ast.BinOp(left, _, right) if not isinstance(left, ast.Constant):
                try:
                    return self._constant(node)
                except Unknown:
                    return _array(value(left))
            case ast.BinOp(_, _, right):
                try:
                    return self._constant(node)
                except Unknown:
                    return _array(value(right))
            case _:
                return self._constant(node)

    def _made(
        self, name: str, args: list[ast.expr], options: Mapping[str | None, ast.expr], usual: str,
        value: Callable[[ast.expr], Any],
    ) -> Array:  # fmt: skip
        at, dtype_at = _MAKERS.get(name, (len(args), -1))
        size = options.get("size") or options.get("shape")
        sizes = [value(size)] if size is not None else []
        for arg in args[at:] if size is None else ():
            if sizes and (isinstance(sizes[0], tuple) or isinstance(arg, ast.Attribute)):
                break  # an element type
            sizes.append(value(arg))
        given = options.get("dtype")
        if given is None and len(sizes) == 1 and 0 < dtype_at < len(args):
            given = args[dtype_at]
        usual = "int64" if name in _INTEGERS else usual
        return Array(_shape(sizes), _dtype(given) if given is not None else usual)


def _assigned(scope: ast.AST) -> Iterator[tuple[str, tuple[ast.expr, int | None]]]:
    """Yield the names that a function or file assigns, with their values; for a part of it, its number."""
    for node in reversed([n for n in ast.walk(scope) if isinstance(n, ast.Assign)]):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, (node.value, None)
            elif isinstance(target, ast.Tuple):
                for n, each in enumerate(target.elts):
                    if isinstance(each, ast.Name):
                        yield each.id, (node.value, n)


def _calls(called: ast.expr, name: str) -> bool:
    if isinstance(called, ast.Attribute) and called.attr in _USES:
        called = called.value
    return isinstance(called, ast.Name) and called.id == name


def _array(found: Any) -> Array:
    if not isinstance(found, Array):
        raise Unknown
    return found


def _item(found: Any, n: int) -> Any:
    if isinstance(found, Array) and found.shape:
        return Array(found.shape[1:], found.dtype)
    if isinstance(found, tuple) and not isinstance(found, Array) and n < len(found):
        return found[n]
    raise Unknown


def _shape(sizes: list[Any]) -> tuple[int, ...]:
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else tuple(sizes)
    if not given or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given):
        raise Unknown
    return given


def _extents(node: ast.expr) -> tuple[int, ...]:
    """Return the shape of a written list of numbers."""
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
        raise Unknown
    first = node.elts[0]
    return (len(node.elts), *(_extents(first) if isinstance(first, ast.List | ast.Tuple) else ()))


def _dtype(node: ast.expr) -> str:
    match node:
        case ast.Attribute(_, name) | ast.Constant(str(name)):
            return _SHORT.get(name, name)
        case _:
            raise Unknown
