"""Operators that are tile instructions: one for every row that is a function of tiles (isa/python.py), and
forms with a number or a column in place of a tile."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from ...diag import did_you_mean
from ...isa.python import Parameter, Result, Signature, signatures
from ..dtypes import BOOL, BY_ISA, INDEX, DataType, promoted
from ..enums import COMPARISONS
from ..ir import (
    Args,
    Dim,
    Dims,
    Number,
    Op,
    ShapedType,
    TensorType,
    TileType,
    Value,
    index,
    is_scalar,
    is_shaped,
    scalar_type,
)
from ..ir.build import Build
from ..problems import ARGUMENTS, SHAPE, TYPE
from .core import OPERATORS, Applied, Operator
from .extents import has_known_extents, unknown_extents

#: Element-wise operators with a numeric form whose operands may be in either order.
EITHER_WAY = ("add", "mul", "maximum", "minimum", "and_", "or_", "xor")
_BROADCAST = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min"}
#: Their operations on two numbers.
_ON_NUMBERS = {**_BROADCAST, "div": "truediv"}
#: Operators with a column beside a tile, and their operations on a column.
_ON_COLUMNS = {f"row_expand_{short}": name for name, short in _BROADCAST.items()}
#: Operators that other modules define, using the instruction of that name.
BY_HAND = ("cmp", "cmps", "sels")


# ---- types of results ----


def types_of(b: Build, signature: Signature, args: Args) -> list[ShapedType]:
    """Return the result types of an instruction."""
    return [_type_of(b, signature, result, args) for result in signature.results]


def _type_of(b: Build, signature: Signature, result: Result, args: Args) -> ShapedType:
    if result.shape == "new":
        shape = b.static(args[result.of[0]], result.of[0])
        valid = args.get("valid_shape")
        valid = (
            None if valid is None else tuple(b.as_index(d) for d in b.dims(valid, "valid_shape", len(shape)))
        )
        return TileType(args[result.of[1]], tuple(shape), valid, "vec")
    types = [args[name].type for name in result.of if is_shaped(args[name])]
    types = types or [next(v.type for v in args.values() if is_shaped(v))]
    dtype = (
        BOOL if result.shape == "bits" else _dtype(types[-1 if result.shape == "blocks" else 0], result, args)
    )
    shape, valid = _SHAPES[result.shape](b, types, dtype)
    made = (args[p.name] for p in signature.params if is_shaped(args.get(p.name)))
    tile = any(isinstance(v.type, TileType) for v in made)
    return array_type(dtype, shape, None if index.same_dims(shape, valid) else tuple(valid), tile)


def array_type(
    dtype: DataType, shape: Sequence[Dim], valid: Sequence[Dim] | None, tile: bool, space: str = "vec"
) -> ShapedType:
    """Return the type of a computed array, which has its own storage."""
    extent = None if valid is None else tuple(valid)
    if not tile:
        return TensorType(dtype, tuple(shape), extent)
    return TileType(dtype, cast("tuple[int, ...]", tuple(shape)), extent, space)


def result_type(like: ShapedType, dtype: DataType | None = None) -> ShapedType:
    return array_type(dtype or like.dtype, like.shape, like.valid, isinstance(like, TileType))


def _dtype(first: ShapedType, result: Result, args: Args) -> DataType:
    given = args.get(result.dtype)
    if isinstance(given, DataType):
        return given
    if is_shaped(given):
        return given.type.dtype
    return BY_ISA.get(result.dtype, first.dtype)


def _both(change: Callable[..., Dims]) -> Callable[..., tuple[Dims, Dims]]:
    """Apply a change of shape to the valid region too."""

    def of(b: Build, types: list[ShapedType], dtype: DataType) -> tuple[Dims, Dims]:
        shapes, extents = zip(*((t.shape, t.extent) for t in types), strict=True)
        return change(b, list(shapes), dtype), change(b, list(extents), dtype)

    return of


def _union(b: Build, types: list[ShapedType], dtype: DataType) -> tuple[Dims, Dims]:
    first, second = types
    valid = [b.scalar("max", m, n) for m, n in zip(first.extent, second.extent, strict=True)]
    return first.shape, tuple(valid)


def _times(b: Build, dims: Sequence[Dim], n: int) -> Dims:
    return (*dims[:-1], b.scalar("mul", dims[-1], n))


_SHAPES: dict[str, Callable[..., tuple[Dims, Dims]]] = {
    "like": _both(lambda b, d, t: d[0]),
    "bits": _both(lambda b, d, t: d[0]),
    "column": _both(lambda b, d, t: (*d[0][:-1], 1)),
    "row": _both(lambda b, d, t: (*d[0][:-2], 1, d[0][-1])),
    "union": _union,
    "beside": _both(lambda b, d, t: (*d[0][:-1], b.scalar("add", d[0][-1], d[1][-1]))),
    "records": _both(lambda b, d, t: _times(b, d[0], 64 // t.bits)),
    "blocks": _both(lambda b, d, t: _times(b, d[0], 256 // t.bits)),
    "bins": _both(lambda b, d, t: (*d[0][:-1], 256)),
}


# ---- arguments ----


def apply(b: Build, signature: Signature, given: Args, level: str = "") -> Value:
    """Append the operation of an instruction with one result, and return the result."""
    return _appended(b, signature, given, level).result


def _appended(b: Build, signature: Signature, given: Args, level: str = "") -> Op:
    """Check arguments against the row and append the operation."""
    args: Args = {}
    for p in signature.params:
        value = given.get(p.name)
        if value is None:
            value = p.default
        if value is None:
            if not p.optional:
                b.fail(TYPE, f"missing argument '{p.name}'", p.name)
            continue
        args[p.name] = _argument(b, signature, p, value)
    if not args.get("high_precision"):
        args.pop("high_precision", None)
    _same_elements(b, signature, args)
    _same_shapes(b, signature, args)
    types = types_of(b, signature, args)
    _legal(b, signature, args, types)
    return b.append(f"{level}.{signature.name}" if level else signature.name, types, args)


def _argument(b: Build, signature: Signature, p: Parameter, value: object) -> object:
    """Check that an argument has the kind of its parameter, and return it."""
    row = signature.row
    what = f"'{p.name}' of {signature.name}"
    if p.name.endswith("dtype") and isinstance(value, str):
        return BY_ISA[value]
    if p.name.endswith("dtype") and not isinstance(value, DataType):
        b.fail(
            TYPE, f"expected an element type for {what}", p.name, got=_got(value), help="pl.FP32 and its like"
        )
    if p.operand in row.attr_index:
        return _attribute(b, signature, p, value)
    if p.operand not in row.operand_index:
        if any(p.name in r.of for r in signature.results if r.shape != "new") and not is_shaped(value):
            b.fail(TYPE, f"expected a tile or a tensor for {what}", p.name, got=_got(value))
        return value
    kind = row.operands[row.operand_index[p.operand]].kind
    if kind == "tile" and not is_shaped(value):
        listed = "pass an array, as a parameter of the function" if isinstance(value, list | tuple) else ""
        b.fail(TYPE, f"expected an array for {what}", p.name, got=_got(value), help=listed)
    if b.in_core and not b.exact and is_shaped(value) and not has_known_extents(value):
        unknown_extents(value, b.place_of(p.name) or b.place)
    if not kind.startswith("tile") and "tile" not in kind and not is_scalar(value):
        b.fail(TYPE, f"expected a number for {what}", p.name, got=_got(value))
    return value


def _attribute(b: Build, signature: Signature, p: Parameter, value: object) -> object:
    """Return a word or number that an attribute of the row allows."""
    attr = signature.row.attr_index[p.operand]
    if isinstance(value, Value):
        b.fail(ARGUMENTS, f"expected a constant for '{p.name}' of {signature.name}", p.name)
    if attr.kind == "cmp":
        return comparison(b, value, p.name)
    if attr.kind == "bool":
        return bool(value)
    if attr.choices and not attr.admits(value):
        b.fail(ARGUMENTS, f"unknown value {value!r} of '{p.name}' of {signature.name}", p.name,
               expected=", ".join(map(str, attr.domain)))  # fmt: skip
    return value


def comparison(b: Build, value: object, at: str) -> int:
    """Return the number of a comparison, given as a number or a word."""
    words = {**{n: i for i, n in enumerate(COMPARISONS)}, **{i: i for i in range(6)}}
    key = value.lower() if isinstance(value, str) else value
    if isinstance(key, bool) or key not in words:
        b.fail(ARGUMENTS, f"unknown comparison {value!r}", at, expected="0 to 5: eq ne lt le gt ge",
               help=did_you_mean(str(key), COMPARISONS))  # fmt: skip
    return words[key]


def _got(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def _tiles(signature: Signature, args: Args) -> list[str]:
    """Return the parameters with elements to compute on, without masks."""
    masks = signature.row.packed.split()
    return [
        p.name for p in signature.params if p.operand in signature.row.operand_index
        and not p.scratch and p.operand not in masks and is_shaped(args.get(p.name))
    ]  # fmt: skip


def _same_elements(b: Build, signature: Signature, args: Args) -> None:
    """Check that element-wise operands have one element type; convert tensors to it."""
    names = _tiles(signature, args)
    if not signature.row.expr or len(names) < 2 or signature.acc:
        return
    types = [args[n].type for n in names]
    dtype = types[0].dtype
    for name, t in zip(names[1:], types[1:], strict=True):
        if t.dtype == dtype or b.exact:
            continue
        if all(isinstance(u, TileType) for u in types):
            b.fail(
                TYPE,
                f"element types do not match in {signature.name}: {dtype.name} and {t.dtype.name}",
                name,
                expected=dtype.name,
                got=t.dtype.name,
                help=f"pl.cast(x, pl.{dtype.name})",
            )
        dtype = promoted(dtype, t.dtype)
    for name in names:
        if args[name].type.dtype != dtype:
            args[name] = OPERATORS["cast"].function(b, args[name], dtype, "round")


def _same_shapes(b: Build, signature: Signature, args: Args) -> None:
    """Check that element-wise operands have one shape; an operand may be a column or a row."""
    over, names = signature.row.over, _tiles(signature, args)
    target = [r.of[0] for r in signature.results if r.of[0] not in names and is_shaped(args.get(r.of[0]))]
    packed = [n for n in signature.row.packed.split() if is_shaped(args.get(n))]
    masks = [n for n in packed if args[n].type.dtype == BOOL]  # others are masks packed by the user
    if not signature.row.expr or over.startswith("fold") or b.exact:
        return
    names = [*target, *names]
    for name in names[1:] if over else ():
        args[name] = _of_rank(b, args[name], args[names[0]].type.rank)
    for name in [*names[1:], *masks]:
        shape, have = args[names[0]].type.shape, args[name].type.shape
        wanted = [shape]
        if over in ("columns", "column 0") and name != names[0]:
            block = 256 // args[name].type.dtype.bits
            wanted = [(*shape[:-1], 1), *([(*shape[:-1], block)] if over == "columns" else [])]
        elif over in ("row", "row 0"):
            wanted = [(*(1 for _ in shape[:-1]), shape[-1]), (*shape[:-2], 1, shape[-1])]
        if not any(index.same_dims(have, w) for w in wanted):
            b.fail(SHAPE, f"shapes do not match in {signature.name}: {_dims(shape)} and {_dims(have)}", name,
                   expected=" or ".join(dict.fromkeys(map(_dims, wanted))), got=_dims(have))  # fmt: skip


def _of_rank(b: Build, x: Value, rank: int) -> Value:
    """Return a column or a row with additional leading dimensions of extent 1."""
    if x.type.rank >= rank or not has_known_extents(x):
        return x
    return OPERATORS["reshape"].function(b, x, [*(1 for _ in range(rank - x.type.rank)), *x.type.shape])


def _legal(b: Build, signature: Signature, args: Args, types: list[ShapedType]) -> None:
    """Reject element types that the instruction does not support on the target."""
    if b.target is None or b.exact:
        return
    row, isa = signature.row, b.target.isa
    if isa not in row.isas:
        b.fail(
            ARGUMENTS,
            f"unsupported on {b.target.name}: {signature.name}",
            expected=f"a target of {', '.join(row.isas)}",
        )
    held = {p.operand: p.name for p in signature.params if is_shaped(args.get(p.name))}
    dtypes = {o: args[n].type.dtype for o, n in held.items()}
    dtypes.update({o: t.dtype for o, t in zip(signature.outs, types, strict=True)})
    for operand in row.dtype_of if isa in row.dtypes else ():
        dtype = dtypes.get(operand)
        if dtype is not None and dtype != BOOL and dtype.isa not in row.dtypes[isa]:
            legal = [BY_ISA[d].name for d in row.dtypes[isa] if d in BY_ISA]
            wide = next(
                (n for n in (("FP32", "INT32"), ("INT32", "FP32"))[dtype.is_int] if n in legal), legal[0]
            )
            at = held.get(operand) or next(iter(held.values()), "dtype")
            b.fail(
                TYPE,
                f"unsupported element type {dtype.name} for {signature.name} on {b.target.name}",
                at,
                expected=", ".join(legal),
                got=dtype.name,
                help=f"apply pl.cast(x, pl.{wide}) first, or use another target",
            )


def scalar_for(b: Build, x: Value, value: Number, at: str) -> Number:
    """Return a number beside an array in the array's element type: literals take it, integers of a fixed
    width are converted beside floats, other types must match."""
    if not isinstance(value, Value):
        if isinstance(value, float) and x.type.dtype.is_int and not value.is_integer():
            b.fail(
                TYPE, f"cannot combine {value!r} with an array of {x.type.dtype.name}", at,
                    expected="a whole number",
                got=repr(value), help="pl.cast(x, pl.FP32) first"
            )  # fmt: skip
        return value
    dtype = scalar_type(value)
    widens = dtype is not None and dtype.is_int and dtype != BOOL and x.type.dtype.is_float
    if widens or dtype == INDEX != x.type.dtype:
        return OPERATORS["cast"].function(b, value, x.type.dtype)
    if dtype is not None and dtype != x.type.dtype and not b.exact:
        b.fail(
            TYPE,
            f"cannot combine a number of {dtype.name} with an array of {x.type.dtype.name}",
            at,
            expected=x.type.dtype.name,
            got=dtype.name,
            help=f"pl.cast(scalar, pl.{x.type.dtype.name})",
        )
    return value


# ---- sugar ----


def elementwise(
    b: Build, signature: Signature, scalar: Signature | None, given: Args, level: str = ""
) -> Any:
    """Apply an operator to two arrays; the second may be a number, a column or a row."""
    names = [p.name for p in signature.params[:2]]
    lhs, rhs = (given[n] for n in names)
    more = {k: v for k, v in given.items() if k not in names}
    if is_scalar(lhs) and is_scalar(rhs) and signature.name in _ON_NUMBERS and not level:
        return b.scalar(_ON_NUMBERS[signature.name], lhs, rhs)
    if is_scalar(lhs) and is_shaped(rhs) and signature.name in EITHER_WAY:
        lhs, rhs = rhs, lhs
    if is_shaped(lhs) and is_scalar(rhs) and scalar is not None:
        x, s = (p.name for p in scalar.params[:2])
        known = {p.name for p in scalar.params}
        kept = {k: v for k, v in more.items() if k in known}
        return apply(b, scalar, {x: lhs, s: scalar_for(b, lhs, rhs, names[1]), **kept}, level)
    if is_scalar(lhs) and is_shaped(rhs) and signature.name == "div" and scalar is not None:
        x, s = (p.name for p in scalar.params[:2])
        return apply(b, scalar, {x: scalar_for(b, rhs, lhs, names[0]), s: rhs, **more}, level)
    alike = is_shaped(lhs) and is_shaped(rhs) and index.same_dims(lhs.type.shape, rhs.type.shape)
    if is_shaped(lhs) and is_shaped(rhs) and not alike and (signature.name in _BROADCAST or not b.exact):
        return _broadcast(b, signature, scalar, given, level)
    return apply(b, signature, {names[0]: lhs, names[1]: rhs, **more}, level)


def _broadcast(b: Build, signature: Signature, scalar: Signature | None, given: Args, level: str) -> Value:
    """Apply an operator to arrays of different shapes: a column or a row beside a matrix uses the instruction
    for it if there is one, else both are broadcast to a common shape."""
    at, names = signature.params[1].name, [p.name for p in signature.params[:2]]
    lhs, rhs = (given[n] for n in names)
    for value in (lhs, rhs):
        if b.in_core and not b.exact and not has_known_extents(value):
            unknown_extents(value, b.place)
    word = _BROADCAST.get(signature.name)
    over = _beside(lhs, rhs) if word else ""
    if over:
        return apply(b, signatures()[f"{over}_expand_{word}"], {"lhs": lhs, "rhs": rhs})
    if signature.name in EITHER_WAY and word and _beside(rhs, lhs):
        return _broadcast(b, signature, scalar, {**given, names[0]: rhs, names[1]: lhs}, level)
    shape, valid = joint(b, (lhs, rhs), at, signature.name)
    whole = index.same_dims(lhs.type.shape, shape)
    given = {**given, names[0]: spread(b, lhs, shape, valid)}
    if whole or not word:
        given[names[1]] = spread(b, rhs, shape, valid)
    return elementwise(b, signature, scalar, given, level)


def joint(b: Build, arrays: Sequence[Value], at: str, what: str = "where") -> tuple[list[Dim], Dims | None]:
    """Return the common shape of arrays, and its valid region: extents are equal, or 1 in some."""
    rank = max(v.type.rank for v in arrays)
    shape: list[Dim] = [1] * rank
    valid: list[Dim] = [1] * rank
    for v in arrays:
        t = v.type
        for axis, (n, m) in enumerate(zip(t.shape, t.extent, strict=True), rank - t.rank):
            if index.known(shape[axis]) == 1:
                shape[axis], valid[axis] = n, m
            elif index.known(n) != 1 and not index.same(n, shape[axis]):
                shapes = [_dims(v.type.shape) for v in arrays]
                column, row = (*shape[:-1], 1), (*(1 for _ in shape[:-1]), shape[-1])
                b.fail(
                    SHAPE,
                    f"shapes do not match in {what}: {' and '.join(shapes)}",
                    at,
                    got=_dims(t.shape),
                    expected=f"{_dims(shape)}, a column {_dims(column)} or a row {_dims(row)}",
                )
    return shape, None if index.same_dims(shape, valid) else tuple(valid)


def spread(b: Build, x: Value, shape: Sequence[Dim], valid: Sequence[Dim] | None) -> Value:
    """Broadcast a column, a row or one element to a shape."""
    x = _of_rank(b, x, len(shape))
    if index.same_dims(x.type.shape, shape):
        return x
    column = index.same_dims(x.type.shape[:-1], shape[:-1])
    if not column and index.known(x.type.shape[-1]) == 1:  # one element: repeat it to a row first
        ones, of = [1] * (len(shape) - 1), -1 if index.known(shape[-1]) != 1 else -2
        x = spread(b, x, (*ones, shape[of]), None if valid is None else (*ones, valid[of]))
        if of == -2:
            return OPERATORS["reshape"].function(b, x, list(shape))
    if not column and index.known(x.type.shape[-2]) != 1:
        help, dims = "use a loop over the first dimension: x[i]", _dims(x.type.shape)
        b.fail(SHAPE, f"cannot repeat {dims} along the dimensions before the last two", expected=_dims(shape),
               got=dims, help=help)  # fmt: skip
    t = array_type(x.type.dtype, shape, valid, isinstance(x.type, TileType))
    target = b.op("full", [t], shape=list(shape), dtype=t.dtype, value=0,
                  valid_shape=None if valid is None else list(valid))  # fmt: skip
    over, name = ("row_expand", "row_vec") if column else ("col_expand", "col_vec")
    return apply(b, signatures()[over], {"target": target, name: x})


def _beside(lhs: Value, rhs: Value) -> str:
    """Return how the second array is broadcast over the first: "row" for a column, "col" for a row, else
    ""."""
    a, c = lhs.type.shape, rhs.type.shape
    if len(a) == len(c) and index.same_dims(a[:-1], c[:-1]) and index.known(c[-1]) == 1:
        return "row"
    if len(a) == len(c) and index.same(a[-1], c[-1]) and all(index.known(d) == 1 for d in c[:-1]):
        return "col" if index.known(a[-1]) != 1 else ""
    return ""


def _dims(dims: Sequence[Dim]) -> str:
    return (
        "[" + ", ".join(str(d) if isinstance(d, int) else getattr(d, "name", "?") or "?" for d in dims) + "]"
    )


# ---- making operators ----


def _parameters(signature: Signature, numbers: bool) -> inspect.Signature:
    """Return required parameters first, then optional ones. `numbers`: an operand may be a number."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    ordered = sorted(signature.params, key=lambda p: p.optional)
    return inspect.Signature(
        [
            inspect.Parameter(p.name, kind, default=_shown(p) if p.optional else inspect.Parameter.empty,
                              annotation=_type_word(signature, p, numbers))
            for p in ordered
        ],
        return_annotation="Array" if len(signature.results) == 1 else "tuple[Array, ...]",
    )  # fmt: skip


def _type_word(signature: Signature, p: Parameter, numbers: bool) -> str:
    """Return the type of a parameter in the words of users."""
    row = signature.row
    if p.name.endswith("dtype"):
        return "DataType"
    attr = row.attr_index.get(p.operand)
    if attr is not None:
        found = {"bool": "bool", "cmp": "int | str"}.get(attr.kind, "int | str | None")
    elif p.operand not in row.operand_index:
        found = (
            "Extents" if any(r.shape == "new" and r.of[0] == p.name for r in signature.results) else "object"
        )
    elif row.operands[row.operand_index[p.operand]].kind.startswith("tile"):
        found = "Array | Number" if numbers and p is signature.params[1] else "Array"
    else:
        found = "Number"
    return f"{found} | None" if p.optional and "None" not in found else found


def _shown(p: Parameter) -> object:
    return BY_ISA[p.default] if isinstance(p.default, str) and p.default in BY_ISA else p.default


def precise(signature: Signature) -> Signature:
    """Add the choice between two algorithms, if hardware has both."""
    if not any(a.name == "precision_mode" for a in signature.row.attrs):
        return signature
    more = Parameter("high_precision", "", True, default=False)
    return signature.replace(params=(*signature.params, more))


def _make(signature: Signature) -> Operator:
    signature = precise(signature)
    scalar = signatures().get(f"{signature.name.rstrip('_')}s")
    if scalar is not None:
        scalar = precise(scalar)

    def function(b: Build, *args: object, **kwargs: object) -> Applied:
        given = dict(function.signature.bind(*args, **kwargs).arguments)  # type: ignore[attr-defined]
        if scalar is not None:
            return elementwise(b, signature, scalar, given)
        first = next((v for v in given.values() if is_shaped(v)), None)
        if signature.name in _ON_COLUMNS and index.known(first.type.shape[-1]) == 1 if first else False:
            return OPERATORS[_ON_COLUMNS[signature.name]].function(b, given["lhs"], given["rhs"])
        for p in signature.params:
            value = given.get(p.name)
            if is_scalar(value) and first is not None and p.operand in ("scalar", "src"):
                given[p.name] = scalar_for(b, first, value, p.name)
        op = _appended(b, signature, given)
        return op.result if len(op.results) == 1 else tuple(op.results)

    function.signature = _parameters(signature, scalar is not None)  # type: ignore[attr-defined]
    function.__doc__ = signature.row.doc
    return Operator(signature.name, function)


def add_all() -> None:
    """Add an operator for every row; operators that are written by hand stay."""
    for name in signatures():
        if name not in BY_HAND and name not in OPERATORS:
            OPERATORS.later[name] = partial(_of_name, name)


def _of_name(name: str) -> Operator:
    return _make(signatures()[name])
