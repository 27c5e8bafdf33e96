"""Arithmetic on extents and offsets, as far as possible before the program runs.

`affine` writes an integer scalar as a sum of multiples of unknowns. Two scalars with the same sum are equal,
so `x[r : r + 16]` has 16 rows for every r.

Typed numbers wrap as in a run. Constants wrap exactly. A conversion keeps the sum only if the new type
contains all numbers of the old type. Sums and products with unknowns are assumed not to wrap, except for
differences of unsigned numbers, which wrap below 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...isa.scalars import bounds
from ..dtypes import DataType
from . import Dim, Number, Value, is_scalar

#: A sum: its constant term, and the coefficient of each unknown.
Sum = tuple[int, dict[Hashable, int]]


def affine(arg: Number) -> Sum:
    """Return an integer scalar as a sum."""
    if not isinstance(arg, Value):
        return int(arg), {}
    op = arg.op
    if op is not None and op.name == "const" and isinstance(op.args["value"], int):
        found: Sum = op.args["value"], {}
    elif op is None or not op.name.startswith("scalar.") or not arg.type.dtype.is_int:
        return 0, {arg: 1}
    else:
        found = _of_operation(arg, op.name.removeprefix("scalar."), list(op.args.values()))
    dtype = arg.type.dtype
    return (dtype.wrapped(found[0]), {}) if not found[1] and dtype.is_int else found


def _of_operation(value: Value, name: str, args: list[Number]) -> Sum:
    """Return the sum that an operation computes, before a constant wraps."""
    dtype = value.type.dtype
    sums = [affine(a) if isinstance(a, Value) else (dtype.wrapped(int(a)), {}) for a in args if is_scalar(a)]
    if name in ("add", "sub", "neg"):
        found = _plus(sums[0] if name != "neg" else (0, {}), sums[-1], 1 if name == "add" else -1)
        return (0, {value: 1}) if found[1] and name != "add" and dtype.is_unsigned else found
    if name == "cast" and isinstance(args[0], Value) and args[0].type.dtype.is_int:
        (found,) = sums
        return (0, {value: 1}) if found[1] and not _holds(dtype, args[0].type.dtype) else found
    if name == "mul":
        for one, other in (sums, sums[::-1]):
            if not one[1]:
                return one[0] * other[0], {k: v * one[0] for k, v in other[1].items() if v * one[0]}
    if name in ("mul", "floordiv", "mod", "min", "max"):
        return 0, {(name, *map(_key, sums)): 1}
    return 0, {value: 1}


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Check whether every number of one type is a number of another."""
    (least, most), (low, high) = bounds(wide.integer), bounds(narrow.integer)
    return least <= low and high <= most


def _plus(a: Sum, b: Sum, times: int) -> Sum:
    terms = dict(a[1])
    for key, count in b[1].items():
        terms[key] = terms.get(key, 0) + times * count
    return a[0] + times * b[0], {k: v for k, v in terms.items() if v}


def _key(s: Sum) -> tuple[int, frozenset[tuple[Hashable, int]]]:
    return s[0], frozenset(s[1].items())


def known(arg: Number) -> int | None:
    """Return the constant value of a scalar; None if it has none."""
    constant, terms = affine(arg)
    return None if terms else constant


def folded(n: Dim) -> Dim:
    """Return an extent as a number if it is constant."""
    constant = known(n)
    return n if constant is None else constant


def same(a: Number, b: Number) -> bool:
    """Return True if two scalars are equal in every run."""
    return a is b or known_difference(a, b) == 0


def known_difference(a: Number, b: Number) -> int | None:
    """Return a - b if it is a constant, else None."""
    constant, terms = _plus(affine(a), affine(b), -1)
    return None if terms else constant


def same_dims(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
