"""Requests of the Debug Adapter Protocol as methods, and their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]
#: The result of a request: the body of its response, and perhaps a function to call after sending it.
Answer = Any
Handler = Callable[[Any, Arguments], Answer]

_NAME = "_pto_request"


class RefusedRequest(Exception):
    """The reason for refusing a request, in words."""


def request(name: str) -> Callable[[Handler], Handler]:
    """Mark a method that answers requests of a name."""

    def mark(method: Handler) -> Handler:
        setattr(method, _NAME, name)
        return method

    return mark


def handlers(of: object) -> dict[str, Callable[[Arguments], Answer]]:
    """Return the methods of an object that answer requests, by name."""
    marked = ((getattr(method, _NAME, ""), name) for name, method in vars(type(of)).items())
    return {request: getattr(of, name) for request, name in marked if request}


def arg(arguments: Arguments, name: str, kind: Any, default: Any = None) -> Any:
    """Return an argument of a request, of a type; absent ones and null give the default."""
    found = arguments.get(name)
    if found is None:
        return default
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
        wanted = {int: "a number", str: "a text", dict: "an object", list: "a list", bool: "true or false"}
        raise RefusedRequest(f"expected {wanted.get(kind, kind)} for '{name}', got {str(found)[:60]!r}")
    return found
