"""Requests of the Debug Adapter Protocol as methods, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")
#: An object of JSON: the arguments of a request, the body of a response or an event.
Body: TypeAlias = dict[str, object]
#: The result of a request: the body of its response, and perhaps a function to call after sending it.
Answer: TypeAlias = "Body | tuple[Body, Callable[[], None]]"
_Method = TypeVar("_Method", bound=Callable[..., Answer])

_NAME = "_pto_request"


class RefusedRequest(Exception):
    """The reason for refusing a request, in words."""


def request(name: str) -> Callable[[_Method], _Method]:
    """Mark a method that answers requests of a name."""

    def mark(method: _Method) -> _Method:
        setattr(method, _NAME, name)
        return method

    return mark


def handlers(of: object) -> dict[str, Callable[[Body], Answer]]:
    """Return the methods of an object that answer requests, by name."""
    marked = ((getattr(method, _NAME, ""), name) for name, method in vars(type(of)).items())
    return {request: getattr(of, name) for request, name in marked if request}


def arg(arguments: Mapping[str, object], name: str, kind: type[_T], default: _T) -> _T:
    """Return an argument of a request, of a type; absent ones and null give the default."""
    found = arguments.get(name)
    if found is None:
        return default
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
        wanted = {int: "a number", str: "a text", dict: "an object", list: "a list", bool: "true or false"}
        raise RefusedRequest(f"expected {wanted.get(kind, kind)} for '{name}', got {str(found)[:60]!r}")
    return found
