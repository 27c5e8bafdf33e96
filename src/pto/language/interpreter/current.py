"""The interpreter that executes operators, loops and regions when a body runs as ordinary Python."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

#: The interpreter of the running body (interpret.py); None outside one.
current: ContextVar[Any] = ContextVar("interpreter", default=None)


def interpreter(what: str) -> Any:
    """Return the current interpreter; raise if `what` is used outside a body."""
    found = current.get()
    if found is None:
        raise TypeError(
            f"cannot use {what} outside of a function of the language: decorate the function with @pl.jit"
        )
    return found
