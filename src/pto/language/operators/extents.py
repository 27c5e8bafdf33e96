"""Help for arrays with dynamic extents on a core, where extents must be constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from ...diag import Span
from ..ir import Dim, Value, index, root
from ..problems import SHAPE, fail


def unknown_extents(value: Value, place: Span | None) -> NoReturn:
    """Reject an array with dynamic extents, at the window that made it if there is one."""
    op = value.op if value.op is not None and value.op.name == "slice" else None
    fail(SHAPE, "expected constant extents for an array on a core", op.loc if op is not None else place,
         got=value.type,
         help=_window(value) if op is not None else f"in loops over its parts: {_part(value)}")  # fmt: skip


def has_known_extents(value: Value) -> bool:
    return all(index.known(d) is not None for d in value.type.shape)


def _window(value: Value) -> str:
    """Return the load that should replace a window with dynamic extents."""
    assert value.op is not None
    starts: list[Dim] = value.op.args["offset"]
    sizes: list[Dim] = [_plain(n) for n in value.op.args["shape"]]
    offsets: list[Dim | str] = [*starts]
    shape: list[Dim] = []
    valid: list[Dim | str] = [*sizes]
    taken = set(re.findall(r"\w+", " ".join(map(_text, (*starts, *sizes)))))
    names = (name for name in "rcijklmnopq" if name not in taken)
    for axis, n in enumerate(sizes):
        bound = _bound(n)
        shape.append(16 if bound is None else bound)
        if bound is None:  # in a loop over `at`
            at = next(names, "at")
            offsets[axis] = at if index.known(starts[axis]) == 0 else f"{_text(starts[axis])} + {at}"
            valid[axis] = f"pl.min(16, {_text(n)} - {at})"
    return _load(root(value).name, offsets, shape, valid)


def _part(value: Value) -> str:
    """Return the load of a part of an array with dynamic extents."""
    offsets: list[Dim | str] = []
    shape: list[Dim] = []
    valid: list[Dim | str] = []
    names = iter("rcdefgh")
    for n in value.type.shape:
        known, at = index.known(n), next(names, "i")
        offsets.append(0 if known is not None else at)
        shape.append(16 if known is None else known)
        valid.append(f"pl.min(16, {_text(n)} - {at})" if known is None else known)
    return _load(root(value).name, offsets, shape, valid)


def _load(name: str, offsets: Sequence[Dim | str], shape: Sequence[Dim], valid: Sequence[Dim | str]) -> str:
    at, sizes, part = (f"[{', '.join(map(_text, dims))}]" for dims in (offsets, shape, valid))
    return f"pl.load({name or 'x'}, {at}, {sizes}, valid_shape={part})"


def _bound(n: Dim) -> int | None:
    """Return an upper bound of an extent such as `pl.min(16, ..)`; None if it has none."""
    known = index.known(n)
    if known is not None:
        return known
    name, args = _operation(n)
    less = 0
    if name == "sub":
        less, (name, args) = args[1], _operation(args[0])
    found = [index.known_difference(arg, less) for arg in args] if name == "min" else []
    return next((b for b in found if b is not None), None)


def _operation(n: Dim) -> tuple[str, list[Dim]]:
    """Return the name and the operands of the operation that computes a number."""
    if not isinstance(n, Value) or n.op is None or not n.op.name.startswith("scalar."):
        return "", []
    return n.op.name.removeprefix("scalar."), list(n.op.args.values())


def _plain(n: Dim) -> Dim:
    """Return `m` for `r + m - r`."""
    name, args = _operation(n)
    inner, parts = _operation(args[0]) if name == "sub" else ("", [])
    rest = [p for p in parts if not index.same(p, args[1])]
    return rest[0] if inner == "add" and len(rest) == 1 else n


_SIGNS = {"add": "+", "sub": "-", "mul": "*"}


def _text(d: Dim | str) -> str:
    """Return a number as source text."""
    if isinstance(d, str):
        return d
    known = index.known(d)
    if not isinstance(d, Value) or known is not None or d.name:
        return d.name if isinstance(d, Value) and known is None else str(known)
    name, args = _operation(d)
    if name in _SIGNS:
        first, second = map(_text, args)
        first = f"({first})" if name == "mul" and " " in first else first
        return f"{first} {_SIGNS[name]} {f'({second})' if name != 'add' and ' ' in second else second}"
    return f"pl.{name}({', '.join(map(_text, args))})" if name in ("min", "max") else ".."
