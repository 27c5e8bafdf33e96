"""Who executes operators, loops and regions when a body runs as ordinary Python: nobody, or an
interpreter."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

#: The interpreter of the body that runs (interpret.py).
current: ContextVar[Any] = ContextVar("interpreter", default=None)


def interpreter(what: str) -> Any:
    """The interpreter; where there is none, `what` was used outside a body."""
    found = current.get()
    if found is None:
        raise TypeError(f"{what} belongs in a function of the language: decorate it with @pl.jit")
    return found
