"""Requests of the Debug Adapter Protocol as methods, and their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]
#: What a request gives: the body of its response, and perhaps what is to be done once that is sent.
Answer = Any
Handler = Callable[[Any, Arguments], Answer]

_NAME = "_pto_request"


class RefusedRequest(Exception):
    """What is wrong with a request, in words."""


def request(name: str) -> Callable[[Handler], Handler]:
    """The method answers requests of that name."""

    def mark(method: Handler) -> Handler:
        setattr(method, _NAME, name)
        return method

    return mark


def handlers(of: object) -> dict[str, Callable[[Arguments], Answer]]:
    """The methods of an object that answer requests, by name."""
    marked = ((getattr(method, _NAME, ""), name) for name, method in vars(type(of)).items())
    return {request: getattr(of, name) for request, name in marked if request}


def arg(arguments: Arguments, name: str, kind: Any, default: Any = None) -> Any:
    """An argument of a request, of a type; absent ones and null are the default."""
    found = arguments.get(name)
    if found is None:
        return default
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
        wanted = {int: "a number", str: "a text", dict: "an object", list: "a list", bool: "true or false"}
        raise RefusedRequest(f"'{name}' is to be {wanted.get(kind, kind)}, got {str(found)[:60]!r}")
    return found
