"""Operators that are tile instructions: one for every row that is a function of tiles (isa/python.py), and the
sugar that takes a number or a column where the instruction of that name takes a tile."""

from __future__ import annotations

import inspect
from typing import Any

from ...isa.python import Parameter, Signature, signatures
from .. import index
from ..build import Build
from ..dtypes import promoted
from ..ir import ShapedType, TensorType, TileType, Value, is_scalar, is_shaped, scalar_type
from ..problems import SHAPE, TYPE
from .core import OPERATORS, Operator

#: Element-wise operators that have a form with a number, and where the number may come first.
_EITHER_WAY = ("add", "mul", "maximum", "minimum", "and_", "or_", "xor")
_BROADCAST = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}


def shape_of(signature: Signature, given: dict[str, Any]) -> ShapedType:
    """The type of what an instruction gives."""
    first = given[signature.of[0]].type
    if signature.shape == "column":
        valid = None if first.valid is None else (*first.valid[:-1], 1)
        return first.replace(shape=(*first.shape[:-1], 1), valid=valid)
    if signature.shape == "row":
        valid = None if first.valid is None else (*first.valid[:-2], 1, first.valid[-1])
        return first.replace(shape=(*first.shape[:-2], 1, first.shape[-1]), valid=valid)
    return first


def result_type(like: ShapedType) -> ShapedType:
    """Of an operator on tiles or tensors: what it computes lies in no one else's memory."""
    if isinstance(like, TileType):
        return TileType(like.dtype, like.shape, like.valid, "vec")
    return TensorType(like.dtype, like.shape, like.valid)


def _apply(b: Build, signature: Signature, given: dict[str, Any]) -> Value:
    """Check arguments against the row and append the operation."""
    operands = {o.name: o for o in signature.row.operands}
    args: dict[str, Any] = {}
    for p in signature.params:
        value = given.get(p.name)
        if value is None:
            if not p.optional:
                b.fail(TYPE, f"'{p.name}' is missing", p.name)
            continue
        kind = operands[p.operand].kind if p.operand in operands else "attr"
        if kind == "tile" and not is_shaped(value):
            b.fail(TYPE, f"'{p.name}' of {signature.name} is a tile or a tensor", p.name, got=_got(value))
        if kind in ("scalar", "int", "float") and not is_scalar(value):
            b.fail(TYPE, f"'{p.name}' of {signature.name} is a number", p.name, got=_got(value))
        args[p.name] = value
    _same_elements(b, signature, args)
    return b.op(signature.name, [result_type(shape_of(signature, args))], **args)


def _got(value: Any) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def _same_elements(b: Build, signature: Signature, args: dict[str, Any]) -> None:
    """Operands of element-wise instructions hold the same elements; tensors are made to."""
    names = [p.name for p in signature.params if not p.scratch and is_shaped(args.get(p.name))]
    if not signature.row.expr or len(names) < 2 or signature.row.packed:
        return
    types = [args[n].type for n in names]
    dtype = types[0].dtype
    for name, t in zip(names[1:], types[1:], strict=True):
        if t.dtype == dtype:
            continue
        if any(isinstance(u, TileType) for u in types):
            b.fail(TYPE, f"{signature.name} of {dtype.name} and {t.dtype.name}", name,
                   expected=dtype.name, got=t.dtype.name, help=f"pl.cast({name}, pl.{dtype.name})")  # fmt: skip
        dtype = promoted(dtype, t.dtype)
    for name in names:
        if args[name].type.dtype != dtype:
            args[name] = OPERATORS["cast"].function(b, args[name], dtype, "round")


def _scalar_for(b: Build, x: Value, value: Any, at: str) -> Any:
    """A number beside an array: literals take its type, others have to have it."""
    if not isinstance(value, Value):
        if isinstance(value, float) and x.type.dtype.is_int and not value.is_integer():
            b.fail(
                TYPE, f"{value!r} is no {x.type.dtype.name}", at, help="cast the array to a float type first"
            )
        return value
    dtype = scalar_type(value)
    if dtype is not None and dtype != x.type.dtype:
        b.fail(TYPE, f"a number of {dtype.name} with an array of {x.type.dtype.name}", at,
               help=f"pl.cast(scalar, pl.{x.type.dtype.name})")  # fmt: skip
    return value


def _elementwise(b: Build, signature: Signature, scalar: Signature | None, given: dict[str, Any]) -> Value:
    """An operator on two arrays: a number, a column or a row may stand for the second."""
    names = [p.name for p in signature.params[:2]]
    lhs, rhs = (given[n] for n in names)
    more = {k: v for k, v in given.items() if k not in names}
    if is_scalar(lhs) and is_shaped(rhs) and signature.name in _EITHER_WAY:
        lhs, rhs = rhs, lhs
    if is_shaped(lhs) and is_scalar(rhs) and scalar is not None:
        x, s = (p.name for p in scalar.params[:2])
        known = {p.name for p in scalar.params}
        kept = {k: v for k, v in more.items() if k in known}
        return _apply(b, scalar, {x: lhs, s: _scalar_for(b, lhs, rhs, names[1]), **kept})
    if is_shaped(lhs) and is_shaped(rhs) and not index.same_dims(lhs.type.shape, rhs.type.shape):
        return _broadcast(b, signature, lhs, rhs, names[1])
    return _apply(b, signature, {names[0]: lhs, names[1]: rhs, **more})


def _broadcast(b: Build, signature: Signature, lhs: Value, rhs: Value, at: str) -> Value:
    a, c = lhs.type.shape, rhs.type.shape
    word = _BROADCAST.get(signature.name)
    if word and len(a) == len(c) and index.same_dims(a[:-1], c[:-1]) and index.known(c[-1]) == 1:
        return _apply(b, signatures()[f"row_expand_{word}"], {"lhs": lhs, "rhs": rhs})
    if word and len(a) == len(c) and index.same(a[-1], c[-1]) and all(index.known(d) == 1 for d in c[:-1]):
        return _apply(b, signatures()[f"col_expand_{word}"], {"lhs": lhs, "rhs": rhs})
    help = "swap the operands" if word in ("add", "mul", "max", "min") else "make them the same shape first"
    b.fail(SHAPE, f"{signature.name} of shapes {_dims(a)} and {_dims(c)}", at,
           expected=f"{_dims(a)}, a column [.., 1] or a row [1, ..]", got=_dims(c), help=help)  # fmt: skip


def _dims(dims: Any) -> str:
    return (
        "[" + ", ".join(str(d) if isinstance(d, int) else getattr(d, "name", "?") or "?" for d in dims) + "]"
    )


def _parameters(params: tuple[Parameter, ...]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    ordered = sorted(params, key=lambda p: p.optional)
    return inspect.Signature(
        [
            inspect.Parameter(p.name, kind, default=None if p.optional else inspect.Parameter.empty)
            for p in ordered
        ]
    )


def _make(signature: Signature) -> Operator:
    params = signature.params
    if any(a.name == "precision_mode" for a in signature.row.attrs):
        params = (*params, Parameter("high_precision", "precision_mode", True))
        signature = signature.replace(params=params)
    scalar = signatures().get(f"{signature.name.rstrip('_')}s")

    def function(b: Build, *args: Any, **kwargs: Any) -> Value:
        bound = function.signature.bind(*args, **kwargs)  # type: ignore[attr-defined]
        given = dict(bound.arguments)
        if len(signature.params) > 1 and not signature.row.name.endswith("s") and scalar is not None:
            return _elementwise(b, signature, scalar, given)
        for p in signature.params:
            value = given.get(p.name)
            first = given.get(signature.of[0])
            if is_scalar(value) and is_shaped(first) and p.operand not in signature.row.attr_index:
                given[p.name] = _scalar_for(b, first, value, p.name)
        return _apply(b, signature, given)

    function.signature = _parameters(params)  # type: ignore[attr-defined]
    function.__doc__ = signature.row.doc
    return Operator(signature.name, function)


def add_all() -> None:
    """Put an operator for every row among those there are; what was written by hand stays."""
    for name, signature in signatures().items():
        OPERATORS.setdefault(name, _make(signature))
