"""Directives: what is said to whoever reads a program, and leaves nothing in it."""

from __future__ import annotations

from typing import Any

from ..build import Build
from ..ir import Value
from ..problems import ARGUMENTS, TYPE
from .core import operator


@operator
def static_print(b: Build, *args: Any) -> None:
    """Print what is known when the program is read: objects of Python, and the types of values."""
    where = f"{b.place.source.name}:{b.place.line}: " if b.place is not None else ""
    print(where + " ".join(f"{a.name}: {a.type}" if isinstance(a, Value) else str(a) for a in args))


@operator
def static_assert(b: Build, condition: Any, message: str = "") -> None:
    """Refuse the program unless something holds that is known when it is read."""
    if isinstance(condition, Value):
        b.fail(TYPE, "only a run can tell whether this holds", "condition", got=condition.type,
               help="assert what shapes and constants say")  # fmt: skip
    if not condition:
        b.fail(ARGUMENTS, message or "static_assert does not hold", "condition")


@operator
def func_attr(b: Build, attrs: Any) -> None:
    """What is to be known of a function, by name: its first statement."""
    if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
        b.fail(ARGUMENTS, "attributes are a dictionary of words", "attrs", got=repr(attrs))
    outer = b.block.outer
    if hasattr(outer, "attrs"):
        outer.attrs.setdefault("func_attr", {}).update(attrs)  # type: ignore[union-attr]
