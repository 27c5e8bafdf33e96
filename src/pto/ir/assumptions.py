"""Assumptions about the parameters of a kernel: conditions that proofs rely on and launches check.

    pto.assume = ["rows % 16 == 0", "1 <= rows <= 65536", "x.shape[0] == rows", "p.size >= 64 * rows"]

The text is an expression of `isa/meaning.py` over the names of integer arguments, `blocks`, the extents of
views, and the numbers of elements behind pointers. It is parsed, never evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..diag import Diagnostic, DiagnosticError, Span, did_you_mean
from ..isa import meaning, scalars
from .core import Operation
from .types import PtrType, ScalarType, ViewType

ASSUME = "pto.assume"
_EXTENT = re.compile(r"(\w+)\.(size|shape\[(\d+)\])")
_MOST_TEXT = 500


class Assumption:
    """One condition; `names` are the parameters in it."""

    def __init__(self, text: str, span: Span | None = None) -> None:
        self.text, self.span = text, span
        plain = _EXTENT.sub(lambda m: f"{m[1]}__extent__{m[3] or ''}", text[:_MOST_TEXT])
        try:
            self._expression = meaning.read(plain.strip())
        except (meaning.BadMeaning, RecursionError, ValueError, MemoryError) as e:
            raise self.wrong(str(e)) from None
        operands = meaning.names(self._expression)
        self._operands = tuple(operands)
        self.names = tuple(
            f"{of}.shape[{n}]" if n else f"{of}.size" if is_extent else of
            for of, is_extent, n in (name.partition("__extent__") for name in operands)
        )
        unknown = meaning.unknown(scalars.WHOLE, self._expression)
        if unknown:
            raise self.wrong(f"unknown operation {unknown[0]!r}")

    def wrong(self, why: str, help: str = "") -> DiagnosticError:
        help = help or "write a condition such as 'rows % 16 == 0' or '1 <= rows <= 4096'"
        return DiagnosticError(
            [Diagnostic("PTO-E2441", f"cannot use assumption '{self.text}': {why}", self.span, help=help)]
        )

    def check_names(self, known: Iterable[str]) -> None:
        """Raise an error for a name that is not a parameter."""
        known = list(known)
        for name in self.names:
            if name not in known:
                hint = did_you_mean(name, known)
                raise self.wrong(
                    f"unknown parameter '{name}'",
                    hint or f"known parameters: {', '.join(known) or 'none'}",
                )

    def evaluate(self, values: Mapping[str, Any], operations: Mapping[str, Callable[..., Any]]) -> Any:
        """Compute the condition for values of the parameters, with the given functions for operations."""
        found = meaning.function(self._expression, self._operands, operations)
        return found(*[values[n] for n in self.names])

    def holds(self, values: Mapping[str, int]) -> bool:
        known = {name: make(64) for name, make in scalars.WHOLE.items()}
        try:
            return bool(self.evaluate(values, known))
        except (ArithmeticError, ValueError):
            return False

    def limits(self) -> dict[str, tuple[int | None, int | None]]:
        """Return the constant limits of parameters that the condition states."""
        found: dict[str, tuple[int | None, int | None]] = {}
        by_operand = dict(zip(self._operands, self.names, strict=True))

        def visit(e: Any) -> None:
            if not isinstance(e, meaning.Apply):
                return
            if e.operation == "both":
                for part in e.args:
                    visit(part)
                return
            if len(e.args) == 2 and e.operation == "equal":
                visit(meaning.Apply("less_equal", e.args))
                visit(meaning.Apply("greater_equal", e.args))
            if len(e.args) != 2 or e.operation not in _LIMITS:
                return
            a, b = (_constant(x) for x in e.args)
            low, high = _LIMITS[e.operation]
            for name, number, (d, upper) in ((e.args[0], b, high), (e.args[1], a, low)):
                if isinstance(name, meaning.Name) and number is not None:
                    old = found.get(by_operand[name.name], (None, None))
                    limit = number + d
                    found[by_operand[name.name]] = (old[0], limit) if upper else (limit, old[1])

        visit(self._expression)
        return found

    def multiples(self) -> dict[str, int]:
        """Return the parameters that the condition makes multiples of a constant."""
        whole = self._expression
        if (
            not isinstance(whole, meaning.Apply)
            or whole.operation != "equal"
            or _constant(whole.args[1]) != 0
        ):
            return {}
        rest = whole.args[0]
        if not isinstance(rest, meaning.Apply) or rest.operation not in ("mod", "rem"):
            return {}
        of, by = rest.args[0], _constant(rest.args[1])
        if not isinstance(of, meaning.Name) or by is None or by <= 0:
            return {}
        return {self.names[self._operands.index(of.name)]: by}


#: By comparison, first for a constant on the left and then for one on the right: the number that is added to
#: the constant to get a limit of the other side, and True for an upper limit.
_LIMITS: dict[str, tuple[tuple[int, bool], tuple[int, bool]]] = {
    "less": ((1, False), (-1, True)),
    "less_equal": ((0, False), (0, True)),
    "greater": ((-1, True), (1, False)),
    "greater_equal": ((0, True), (0, False)),
}


def _constant(e: Any) -> int | None:
    if isinstance(e, meaning.Constant):
        return int(e.value)
    known = {name: make(64) for name, make in scalars.WHOLE.items()}
    if meaning.names(e):
        return None
    try:
        return int(meaning.function(e, (), known)())
    except (ArithmeticError, ValueError):
        return None


def names_of(function: Operation) -> list[str]:
    """Return the parameters of a function that assumptions may name."""
    found = ["blocks"]
    for a in function.regions[0].blocks[0].args:
        if isinstance(a.type, ViewType):
            found += [f"{a.name}.shape[{n}]" for n in range(len(a.type.dims))]
        elif isinstance(a.type, PtrType):
            found.append(f"{a.name}.size")
        elif isinstance(a.type, ScalarType) and not a.type.is_float:
            found.append(a.name)
    return found


def assumptions_of(functions: Iterable[Operation]) -> list[Assumption]:
    """Return the assumptions that functions declare."""
    found: dict[str, Assumption] = {}
    for function in functions:
        written: Any = function.attr(ASSUME)
        span = function.loc.head if function.loc is not None else None
        for one in written if isinstance(written, list | tuple) else () if written is None else (written,):  # type: ignore[reportUnknownVariableType]
            text = str(getattr(one, "value", one))  # type: ignore[reportUnknownArgumentType]
            found.setdefault(text, Assumption(text, span))
    return list(found.values())
