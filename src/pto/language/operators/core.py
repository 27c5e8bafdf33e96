"""Operators: functions of the language that become operations.

An operator is written as a function of a `Build` and its parameters, and called when a program is read: it
checks what it was given, and appends an operation whose arguments are the parameters.

    @operator
    def reshape(b, x, shape): ...
        return b.op("reshape", [x.type.replace(shape=shape)], x=x, shape=shape)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..eager import interpreter
from ..ir import Value


class Operator:
    """`pl.NAME`. `level` is empty, tensor, tile, system or array: the namespace that has it alone."""

    def __init__(self, name: str, function: Callable[..., Any], level: str = "") -> None:
        self.name = name
        self.function = function
        self.level = level
        self.__name__ = name
        self.__doc__ = function.__doc__
        self._signature: inspect.Signature | None = getattr(function, "signature", None)

    @property
    def signature(self) -> inspect.Signature:
        """Parameters as users see them."""
        if self._signature is None:
            empty = inspect.Parameter.empty
            named = [
                p.replace(annotation=empty) for p in inspect.signature(self.function).parameters.values()
            ]
            self._signature = inspect.Signature(named[1:])
        return self._signature

    @property
    def full_name(self) -> str:
        return f"pl.{self.level}.{self.name}" if self.level else f"pl.{self.name}"

    def __repr__(self) -> str:
        return f"<operator {self.full_name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return interpreter(self.full_name).apply(self, args, kwargs)


#: Operators by name; those of a namespace alone by `namespace.name`.
OPERATORS: dict[str, Operator] = {}


def operator(function: Callable[..., Any] | None = None, *, name: str = "", level: str = "") -> Any:
    """Make a function an operator."""

    def make(function: Callable[..., Any]) -> Operator:
        found = Operator(name or function.__name__, function, level)
        OPERATORS[f"{level}.{found.name}" if level else found.name] = found
        return found

    return make if function is None else make(function)


def first_value(*args: Any) -> Value | None:
    """The first argument that is no number."""
    return next((a for a in args if isinstance(a, Value)), None)
