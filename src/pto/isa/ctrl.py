"""CTRL, the control register of a core: bits that instructions set, and that change other instructions.

    8..6    element type of updates of global memory, 0 for plain stores
    10..9   operation of these updates: 0 add, 1 max, 2 min
    46, 47  f32 operands of products as TF32; ties rounded away from zero
    48      if bit 60 is set: f16 and bf16 results that leave L0C are finite, conversions do not saturate;
            else: products, conversions and results that leave L0C do not saturate
    50      if bit 60 is clear: results that leave L0C saturate, but NaN stays
    60      conversions follow the register instead of their own attributes; set at reset

An instruction with its own rounding, saturation or update sets and clears bits while it runs, and then
restores the register. Instructions of a vecscope do this for the whole vecscope.
"""

from __future__ import annotations

RESET = 1 << 60

TF32, TF32_AWAY, SATURATION, KEEPS_NAN, OBEYED = 46, 47, 48, 50, 60

#: First bit and number of bits of the fields for updates.
TYPE_FIELD, OPERATION_FIELD = (6, 3), (9, 2)
#: Values of these fields, by the words of instructions.
TYPES = {"none": 0, "f32": 1, "f16": 2, "s16": 3, "s32": 4, "s8": 5, "bf16": 6}
OPERATIONS = {"add": 0, "max": 1, "min": 2}


def bit(word: int, number: int) -> bool:
    return bool(word >> number & 1)


def with_field(word: int, field: tuple[int, int], value: int) -> int:
    first, count = field
    return word & ~(((1 << count) - 1) << first) | value << first


def field(word: int, field: tuple[int, int]) -> int:
    first, count = field
    return word >> first & ((1 << count) - 1)


def update(word: int) -> tuple[str, str] | None:
    """Return type and operation of updates of global memory, or None for plain stores. Undefined values count
    as f32 and add."""
    kind = field(word, TYPE_FIELD)
    if kind == 0:
        return None
    types, operations = ({n: name for name, n in words.items()} for words in (TYPES, OPERATIONS))
    return types.get(kind, "f32"), operations.get(field(word, OPERATION_FIELD), "add")
