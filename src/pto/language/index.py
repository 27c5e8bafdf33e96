"""Arithmetic on extents and offsets as far as it can be done before the program runs.

`affine` writes an INDEX scalar as a sum of multiples of things that are not known; two scalars with the same
sum are equal. So `x[r : r + 16]` has 16 rows whatever r is.
"""

from __future__ import annotations

from typing import Any

from .ir import Value

#: Sum: what is added at the end, and how often each unknown is in it.
Sum = tuple[int, dict[Any, int]]


def affine(arg: Any) -> Sum:
    """An integer scalar as a sum."""
    if not isinstance(arg, Value):
        return int(arg), {}
    op = arg.op
    if op is not None and op.name == "const" and isinstance(op.args["value"], int):
        return op.args["value"], {}
    if op is None or not op.name.startswith("scalar."):
        return 0, {arg: 1}
    return _of_operation(arg, op.name.removeprefix("scalar."), list(op.args.values()))


def _of_operation(value: Value, name: str, args: list[Any]) -> Sum:
    if not value.type.dtype.is_int:
        return 0, {value: 1}
    if name in ("add", "sub"):
        return _plus(affine(args[0]), affine(args[1]), 1 if name == "add" else -1)
    if name == "neg":
        return _plus((0, {}), affine(args[0]), -1)
    if name == "cast" and isinstance(args[0], Value) and args[0].type.dtype.is_int:
        return affine(args[0])
    if name == "mul":
        a, b = affine(args[0]), affine(args[1])
        for one, other in ((a, b), (b, a)):
            if not one[1]:
                return one[0] * other[0], {k: v * one[0] for k, v in other[1].items() if v * one[0]}
    if name in ("mul", "floordiv", "mod", "min", "max"):
        return 0, {(name, _key(affine(args[0])), _key(affine(args[1]))): 1}
    return 0, {value: 1}


def _plus(a: Sum, b: Sum, times: int) -> Sum:
    terms = dict(a[1])
    for key, count in b[1].items():
        terms[key] = terms.get(key, 0) + times * count
    return a[0] + times * b[0], {k: v for k, v in terms.items() if v}


def _key(s: Sum) -> Any:
    return s[0], frozenset(s[1].items())


def known(arg: Any) -> int | None:
    """The number that a scalar is, where that can be told."""
    constant, terms = affine(arg)
    return None if terms else constant


def same(a: Any, b: Any) -> bool:
    """Whether two scalars are equal for certain."""
    return a is b or known_difference(a, b) == 0


def known_difference(a: Any, b: Any) -> int | None:
    """a - b, where that can be told."""
    constant, terms = _plus(affine(a), affine(b), -1)
    return None if terms else constant


def same_dims(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
