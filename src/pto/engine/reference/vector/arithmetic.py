"""Lane-wise arithmetic: rows whose meaning is a scalar expression, and 32-bit sums with carry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.meaning import Apply, read, uses
from ....isa.row import Row
from ...elements import Array
from ..instr import Instr
from ..meaning import Numbers, compiled
from ..registry import Execute, executor, expressed
from .lanes import active, bits, numbers, put, put_mask, put_raw, width


@expressed("vector")
def build(row: Row) -> Execute:
    """The executor of a row with an expression over lanes. Bits of floats are taken as they are."""
    meaning = compiled(row.expr)
    expression = read(row.expr)
    scalars = frozenset(o.name for o in row.operands if not {"vreg", "mask"} & set(o.kinds))
    fused = uses(expression, "fma")
    bitwise = (
        isinstance(expression, Apply)
        and expression.operation in ("bit_and", "bit_or", "bit_xor")
        and not scalars
    )

    def execute(i: Instr) -> None:
        r = i.args["r"]
        on = active(i, "mask", width(i, "r"))
        if bitwise:
            found = {name: bits(i, name) for name in meaning.names}
            put_raw(i, "r", meaning(Numbers(i, r.dtype), found), on)
            return
        rules = Numbers(i, r.dtype)
        operands: dict[str, Any] = {
            name: rules.scalar(i.args[name]) if name in scalars else numbers(i, name, fused)
            for name in meaning.names
        }
        put(i, "r", meaning(rules, operands), on)

    return execute


# -- 32-bit sums and differences with a flag per lane ------------------------------------------------------


def _wide(i: Instr, name: str) -> Array:
    return bits(i, name).astype(np.int64)


def _finish(i: Instr, total: Array, flag: str, raised: Array) -> None:
    on = active(i, "mask", 4)
    put_raw(i, "r", total.astype(np.uint32), on)
    put_mask(i, flag, on & raised, 4)


@executor("vaddc", "vaddcs")
def add_carry(i: Instr) -> None:
    total = _wide(i, "lhs") + _wide(i, "rhs")
    if i.has("carry_in"):
        total += active(i, "carry_in", 4)
    _finish(i, total & 0xFFFFFFFF, "carry", total >> 32 != 0)


@executor("vsubc", "vsubcs")
def subtract_borrow(i: Instr) -> None:
    """The flag says that nothing was borrowed (hw), or that something was (doc)."""
    hw = i.core.semantics.vsubc_flag == "hw"
    left, right = _wide(i, "lhs"), _wide(i, "rhs")
    if i.has("borrow_in"):
        right = right + (active(i, "borrow_in", 4) != hw)
    _finish(i, (left - right) & 0xFFFFFFFF, "borrow", (left >= right) == hw)
