"""Lane-wise arithmetic: rows whose meaning is a scalar expression, and 32-bit sums with carry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.row import Row
from ....isa.tables import vector_compute
from ...elements import Array
from ..instr import Instr
from ..meaning import Numbers, compiled
from ..registry import Execute, builder, executor
from .lanes import active, bits, numbers, put, put_mask, put_raw, width

_FAMILIES = ("unary", "binary", "vec-scalar")


def letters(row: Row) -> dict[str, str]:
    """The operand each letter of a meaning stands for: x, y, z are the vectors in order, s the scalar."""
    vectors = iter("xyz")
    return {
        (next(vectors) if "vreg" in operand.kinds else "s"): operand.name
        for operand in row.operands
        if "mask" not in operand.kinds
    }


def _is_regular(row: Row) -> bool:
    if row.family not in _FAMILIES:
        return False
    try:
        return set(compiled(row.meaning).names) <= set(letters(row))
    except (SyntaxError, ValueError):
        return False


@builder(*(row.name for row in vector_compute.ROWS if _is_regular(row)))
def build(row: Row) -> Execute:
    """The executor of a row whose meaning is a scalar expression. Bits of floats are taken as they are."""
    meaning = compiled(row.meaning)
    read = tuple((letter, letters(row)[letter]) for letter in meaning.names)
    fused = "fma(" in row.meaning
    bitwise = row.name in ("vand", "vor", "vxor")

    def execute(i: Instr) -> None:
        r = i.args["r"]
        on = active(i, "mask", width(i, "r"))
        if bitwise:
            found = {letter: bits(i, name) for letter, name in read}
            put_raw(i, "r", meaning(Numbers(i, r.dtype), found), on)
            return
        rules = Numbers(i, r.dtype)
        operands: dict[str, Any] = {}
        for letter, name in read:
            operands[letter] = rules.scalar(i.args[name]) if letter == "s" else numbers(i, name, fused)
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
