"""Directives: what is said to whoever reads a program, and leaves nothing in it."""

from __future__ import annotations

from typing import Any

from ..build import Build
from ..ir import Function, Value
from ..problems import ARGUMENTS, TYPE
from ..types import written_type
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


#: What only a decorator says: it is known before a body is read.
_OF_DECORATORS = ("auto_scope", "external_source")


@operator
def func_attr(b: Build, attrs: Any) -> None:
    """What is to be known of a function, by name: its first statement."""
    if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
        b.fail(ARGUMENTS, "attributes are a dictionary of words", "attrs", got=repr(attrs))
    outer = b.block.outer
    if not isinstance(outer, Function):
        b.fail(ARGUMENTS, "attributes are those of a function: its first statement")
    for name in attrs:
        if name in _OF_DECORATORS:
            b.fail(ARGUMENTS, f"'{name}' is no attribute that a body sets", "attrs",
                   help=f"@pl.function({name}=..) says it")  # fmt: skip
        if name in b.attributes:
            b.fail(ARGUMENTS, f"'{name}' is set twice", "attrs", help="leave one of them out")
        b.attributes.add(name)
    if b.exact:
        outer.kind = attrs.pop("kind", outer.kind)
        outer.attrs.update(attrs)
    else:
        outer.attrs.setdefault("func_attr", {}).update(attrs)


@operator
def operation(b: Build, name: str, types: Any, **args: Any) -> Any:
    """An operation that only stages make, as they print it."""
    if not b.exact:
        b.fail(ARGUMENTS, f"'{name}' is no operator: only stages make it")
    results = b.append(name, [written_type(t) for t in types], args).results
    return None if not results else results[0] if len(results) == 1 else tuple(results)
