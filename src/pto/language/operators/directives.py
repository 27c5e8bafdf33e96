"""Directives for the reader of a program, which leave no operation in it."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import ASSUMED, Function, Value
from ..ir.build import Build
from ..ir.writer import BETWEEN
from ..problems import ARGUMENTS, TYPE
from ..types import Annotation, written_type
from .core import operator


@operator
def static_print(b: Build, *args: object) -> None:
    """Print values while the program is read: Python objects, and the types of values."""
    where = f"{b.place.source.name}:{b.place.line}: " if b.place is not None else ""
    print(where + " ".join(f"{a.name}: {a.type}" if isinstance(a, Value) else str(a) for a in args))


@operator
def static_assert(b: Build, condition: object, message: str = "") -> None:
    """Reject the program unless a condition holds that is constant when the program is read."""
    if isinstance(condition, Value):
        b.fail(TYPE, "expected a constant condition", "condition", got=condition.type,
               help="assert conditions on shapes and constants")  # fmt: skip
    if not condition:
        b.fail(ARGUMENTS, message or "static_assert failed", "condition")


@operator
def assume(b: Build, condition: object) -> None:
    """State a condition on extents and numbers of the call, such as `ROWS % 32 == 0`: proofs rely on the
    condition, and a call that breaks it is refused.
    """
    if isinstance(condition, bool):
        if not condition:
            b.fail(ARGUMENTS, "the assumption does not hold", "condition")
        return
    outer = b.block.outer
    if not isinstance(outer, Function):
        b.fail(ARGUMENTS, "cannot assume inside a block: pl.assume stands in the body of a function")
    text = _condition(condition) if isinstance(condition, Value) else ""
    if not text:
        b.fail(ARGUMENTS, "expected a condition on extents and whole numbers", "condition",
               help="for example pl.assume(ROWS % 32 == 0)")  # fmt: skip
    attributes = outer.attrs.setdefault("func_attr", {})
    attributes[ASSUMED] = [*attributes.get(ASSUMED, ()), text]


def _condition(x: object) -> str:
    """Return the text of a number that the caller decides; empty for other numbers."""
    if not isinstance(x, Value):
        return str(x) if isinstance(x, int) else ""
    op = x.op
    if op is None:
        return x.name
    if op.name == "const":
        return _condition(op.args["value"])
    name = op.name.removeprefix("scalar.")
    args = [_condition(a) for k, a in op.args.items() if k != "dtype"]
    if name == op.name or not all(args):
        return ""
    if name == "cast":
        return args[0]
    if name in ("min", "max"):
        return f"{name}({', '.join(args)})"
    return f"({args[0]} {BETWEEN[name]} {args[1]})" if name in BETWEEN else ""


#: Attributes that only a decorator can set, since they are needed before the body is read.
_OF_DECORATORS = ("auto_scope", "external_source")


@operator
def func_attr(b: Build, attrs: object) -> None:
    """Set attributes of the function, by name; it must be the first statement."""
    if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
        b.fail(
            ARGUMENTS, "expected a dictionary with string keys for the attributes", "attrs", got=repr(attrs)
        )
    outer = b.block.outer
    if not isinstance(outer, Function):
        b.fail(
            ARGUMENTS,
            "cannot set attributes inside a block: pl.func_attr is the first statement of a function",
        )
    for name in attrs:
        if name in _OF_DECORATORS:
            b.fail(ARGUMENTS, f"cannot set attribute '{name}' in a body", "attrs",
                   help=f"set it in the decorator: @pl.function({name}=..)")  # fmt: skip
        if name in b.attributes:
            b.fail(ARGUMENTS, f"attribute '{name}' is set twice", "attrs", help="leave one of them out")
        b.attributes.add(name)
    if b.exact:
        outer.kind = attrs.pop("kind", outer.kind)
        outer.attrs.update(attrs)
    else:
        outer.attrs.setdefault("func_attr", {}).update(attrs)


@operator
def operation(b: Build, name: str, types: Sequence[Annotation], **args: object) -> object:
    """Append an operation that only stages make, as they print it."""
    if not b.exact:
        b.fail(ARGUMENTS, f"cannot call '{name}': only stages make this operation")
    results = b.append(name, [written_type(t) for t in types], args).results
    return None if not results else results[0] if len(results) == 1 else tuple(results)
