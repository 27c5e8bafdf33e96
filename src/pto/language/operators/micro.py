"""`pl.micro`: vector registers and masks, below tiles.

It has a function for every vector instruction whose result type follows from its operands, and functions that
access tiles; runs of them become vecscopes.

    v = pl.micro.vlds(tile, i * 64)                # 256 bytes of a tile, from an element on
    v = pl.micro.vmax(pl.micro.vexp(v), w)         # all lanes, without a mask
    tile = pl.micro.vsts(v, tile, i * 64, pl.micro.plt(n, pl.FP32))
"""

from __future__ import annotations

import inspect
from functools import partial

from ...isa import row as find_row
from ...isa.python_names import MICRO
from ...isa.row import Row
from ..dtypes import BY_ISA, DataType
from ..ir import Dim, MaskType, Number, Value, VectorType, is_int, is_scalar, is_tile
from ..ir.build import Build
from ..problems import ARGUMENTS, TYPE
from .core import Array, Operator, Operators, Register, Tile, operator
from .memory import in_core
from .rows import comparison


def _shown(value: object) -> str:
    return str(value.type) if isinstance(value, Value) else repr(value)


def _vector(b: Build, value: object, at: str) -> VectorType:
    if not isinstance(value, Value) or not isinstance(value.type, VectorType):
        b.fail(
            TYPE,
            f"expected a vector register for '{at}'",
            at,
            got=_shown(value),
            help="pl.micro.vlds loads one",
        )
    return value.type


def _mask(b: Build, value: object, bits: int, at: str) -> Value | None:
    if value is None:
        return None
    if not isinstance(value, Value) or not isinstance(value.type, MaskType) or value.type.bits != bits:
        b.fail(
            TYPE,
            f"expected a mask of {bits}-bit lanes for '{at}'",
            at,
            got=_shown(value),
            help="pl.micro.plt, pl.micro.vcmp",
        )
    return value


def _function(row: Row) -> Operator:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    compares = "cmp_mode" in row.attr_index
    names = [o.name for o in row.operands if o.kind != "mask"]
    masks = [o.name for o in row.operands if o.kind == "mask"]
    words = {o.name: "Register" if o.kind == "vreg" else "Number" for o in row.operands}
    params = [inspect.Parameter(n, kind, annotation=words[n]) for n in names]
    if compares:
        params.append(inspect.Parameter("cmp_mode", kind, default=0, annotation="int | str"))
    params += [inspect.Parameter(n, kind, default=None, annotation="Register | None") for n in masks]

    def function(b: Build, *args: object, **kwargs: object) -> Value:
        in_core(b)
        given = dict(function.signature.bind(*args, **kwargs).arguments)  # type: ignore[attr-defined]
        if b.target is not None and b.target.isa not in row.isas and not b.exact:
            b.fail(
                ARGUMENTS,
                f"unsupported on {b.target.name}: {row.name}",
                expected=f"a target of {', '.join(row.isas)}",
            )
        first = _vector(b, given[names[0]], names[0])
        for o in row.operands:
            value = given.get(o.name)
            if o.kind == "vreg" and _vector(b, value, o.name).dtype != first.dtype:
                b.fail(
                    TYPE,
                    "element types of the registers do not match",
                    o.name,
                    expected=first.dtype.name,
                    got=_shown(value),
                )
            elif o.kind == "mask":
                given[o.name] = _mask(b, value, first.dtype.bits, o.name)
            elif o.kind in ("scalar", "int") and not is_scalar(value):
                b.fail(TYPE, f"expected a number for '{o.name}'", o.name, got=_shown(value))
        if compares:
            given["cmp_mode"] = comparison(b, given.get("cmp_mode", 0), "cmp_mode")
        made = VectorType(first.dtype) if row.results[0].kind == "vreg" else MaskType(bits=first.dtype.bits)
        return b.op(f"micro.{row.name}", [made], **{k: v for k, v in given.items() if v is not None})

    function.signature = inspect.Signature(params, return_annotation="Register")  # type: ignore[attr-defined]
    function.__doc__ = row.doc
    return Operator(row.name, function, "micro")


@operator(level="micro")
def vlds(b: Build, tile: Tile, offset: Dim = 0) -> Register:
    """Load 256 bytes of a tile, from the element at `offset` on, counted in memory."""
    in_core(b)
    if not is_tile(tile):
        b.fail(
            TYPE,
            "expected a tile for 'tile'",
            "tile",
            got=_shown(tile),
            help="pl.load(tensor, offsets, shape) gives a tile",
        )
    return b.op("micro.vlds", [VectorType(tile.type.dtype)], tile=tile, offset=b.as_index(offset))


@operator(level="micro")
def vsts(b: Build, value: Register, tile: Tile, offset: Dim = 0, mask: Register | None = None) -> Tile:
    """Store the active lanes of a register to a tile; return the tile."""
    in_core(b)
    t = _vector(b, value, "value")
    if not is_tile(tile) or tile.type.dtype != t.dtype:
        b.fail(TYPE, f"expected a tile of {t.dtype.name} for 'tile'", "tile", got=_shown(tile))
    b.append("micro.vsts", [], {"value": value, "tile": tile, "offset": b.as_index(offset),
                                "mask": _mask(b, mask, t.dtype.bits, "mask")})  # fmt: skip
    return tile


@operator(level="micro")
def plt(b: Build, n: Dim, dtype: DataType) -> Register:
    """Return a mask with the first `n` lanes active."""
    in_core(b)
    if not is_int(n):
        b.fail(TYPE, "expected an integer for 'n'", "n", got=_shown(n))
    return b.op("micro.plt", [MaskType(bits=dtype.bits)], n=b.as_index(n), dtype=dtype)


@operator(level="micro")
def vdup(b: Build, value: Number, dtype: DataType) -> Register:
    """Return a register with a number in every lane."""
    in_core(b)
    if not is_scalar(value):
        b.fail(TYPE, "expected a number for 'value'", "value", got=_shown(value))
    return b.op("micro.vdup", [VectorType(dtype)], value=value, dtype=dtype)


#: Rounding modes of conversions, by name.
ROUNDINGS = {"rint": "R", "round": "A", "floor": "F", "ceil": "C", "trunc": "Z", "odd": "O"}


@operator(level="micro")
def vcvt(
    b: Build, value: Register, dtype: DataType, mode: str = "rint", part: int = 0, sat: bool = False,
    mask: Array | None = None,
) -> Register:  # fmt: skip
    """Convert every lane to another element type. If two or four narrow lanes share a wide lane, `part`
    selects the narrow lane that is read or written; the others are 0.
    """
    in_core(b)
    t = _vector(b, value, "value")
    if not isinstance(dtype, DataType):
        b.fail(TYPE, "expected an element type for 'dtype'", "dtype", got=_shown(dtype))
    pairs = {c for combo in find_row("pto.vcvt").combos for c in combo.legal[_isa(b)]}  # type: ignore[union-attr]
    if (t.dtype.isa, dtype.isa) not in pairs:
        legal = [BY_ISA[r].name for s, r in sorted(pairs) if s == t.dtype.isa and r in BY_ISA]
        b.fail(TYPE, f"cannot convert {t.dtype.name} to {dtype.name}", "dtype", expected=", ".join(legal),
               got=dtype.name)  # fmt: skip
    if mode not in ROUNDINGS:
        b.fail(ARGUMENTS, f"unknown rounding {mode!r}", "mode", expected=", ".join(ROUNDINGS))
    lanes = max(t.dtype.bits, dtype.bits) // min(t.dtype.bits, dtype.bits)
    if not isinstance(part, int) or not 0 <= part < lanes:
        b.fail(ARGUMENTS, f"unknown part {part!r}", "part", expected=f"0 to {lanes - 1}")
    args = {"value": value, "dtype": dtype, "mode": mode, "part": part, "sat": bool(sat),
            "mask": _mask(b, mask, t.dtype.bits, "mask")}  # fmt: skip
    return b.op("micro.vcvt", [VectorType(dtype)], **args)


def _isa(b: Build) -> str:
    return b.target.isa if b.target is not None else "cpu"


def add_micro(operators: Operators) -> None:
    """Add an operator for every row that is a function of registers."""
    for name in MICRO:
        if f"micro.{name}" not in operators:
            operators.later[f"micro.{name}"] = partial(_of_name, name)


def _of_name(name: str) -> Operator:
    row = find_row(name)
    assert row is not None
    return _function(row)
