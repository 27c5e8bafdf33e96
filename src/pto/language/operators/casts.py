"""Conversions of arrays: pairs without an instruction go through other types.

    fp32 -> int8 on a2a3: fp32 -> fp16 -> int8

The chain is the shortest that the row of `tcvt` allows on the target; the rounding mode applies to every
step.
"""

from __future__ import annotations

from functools import cache

from ...isa import row
from ...isa.python import signatures
from ...isa.row import Row
from ..dtypes import BOOL, BY_ISA, FP32, DataType
from ..enums import ROUNDINGS
from ..ir import Number, ScalarType, Value, is_scalar, is_shaped
from ..ir.build import Build
from ..problems import ARGUMENTS, TYPE
from .core import FUNCTIONS, Array, operator
from .rows import result_type


@cache
def chain(source: str, target: str, isa: str) -> tuple[str, ...] | None:
    """Return the chain of element types that leads from one to another, including the last; None if there is
    none.
    """
    found: dict[str, tuple[str, ...]] = {source: ()}
    front = [source]
    pairs = [c for combo in _tcvt().combos for c in combo.legal[isa]]
    while front and target not in found:
        ahead: list[str] = []
        for at in front:
            for before, after in pairs:
                if before == at and after not in found and after in BY_ISA:
                    found[after] = (*found[at], after)
                    ahead.append(after)
        front = ahead
    return found.get(target)


def _tcvt() -> Row:
    found = row("pto.tcvt")
    assert found is not None
    return found


@operator
def cast(b: Build, x: Array | Number, target_type: DataType, mode: str | int = "round") -> Array | Number:
    """Convert to another type; `mode` is the rounding of floats: none rint round floor ceil trunc odd."""
    words = list(ROUNDINGS)
    if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode < len(words):
        mode = words[mode]
    if mode not in ROUNDINGS:
        b.fail(ARGUMENTS, f"unknown rounding {mode!r}", "mode", expected=", ".join(ROUNDINGS))
    if not isinstance(target_type, DataType):
        b.fail(TYPE, "expected an element type for 'target_type'", "target_type", got=repr(target_type))
    if is_scalar(x):
        return _number(b, x, target_type)
    if not is_shaped(x):
        b.fail(
            TYPE,
            "expected a tile, a tensor or a number for 'x'",
            "x",
            got=x.type if isinstance(x, Value) else repr(x),
        )
    if x.type.dtype == target_type:
        return x
    isa = b.target.isa if b.target is not None else "cpu"
    if x.type.dtype == BOOL:
        from .compute import ones

        selected = target_type.isa in signatures()["sel"].row.dtypes.get(isa, ())
        made = ones(b, x, result_type(x.type, target_type if selected or b.exact else FP32))
        return FUNCTIONS["cast"](b, made, target_type, "rint")
    steps = [target_type.isa] if b.exact else chain(x.type.dtype.isa, target_type.isa, isa)
    if steps is None:
        b.fail(TYPE, f"cannot convert {x.type.dtype.name} to {target_type.name}", "target_type",
               expected="use types that tcvt converts on the target", got=target_type.name)  # fmt: skip
    for step in steps:
        dtype = BY_ISA[step]
        x = b.op("cast", [result_type(x.type, dtype)], x=x, target_type=dtype, mode=mode)
    return x


def _number(b: Build, x: Array | Number, target: DataType) -> Number:
    if not isinstance(x, Value):
        return FUNCTIONS["const"](b, float(x) if target.is_float else int(x), target)
    if x.type.dtype == target:
        return x
    return b.op("scalar.cast", [ScalarType(target)], x=x, dtype=target)
