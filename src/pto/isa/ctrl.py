"""CTRL, the control register of a core: a word whose bits instructions set and obey.

    8..6    element type of updates of global memory, 0 for plain stores
    10..9   what these do: 0 add, 1 max, 2 min
    46, 47  f32 operands of products as TF32; rounded away from zero at ties
    48      with bit 60: what leaves L0C as f16 or bf16 is finite, conversions do not saturate;
            without: products, conversions and the way out of L0C do not saturate
    50      without bit 60: the way out of L0C saturates, but keeps NaN
    60      conversions obey the register and not what they say themselves; set by the reset

An instruction that says itself how it rounds, saturates or updates clears and sets bits while it runs, and
puts the word back; those of a vecscope do for all of it.
"""

from __future__ import annotations

RESET = 1 << 60

TF32, TF32_AWAY, SATURATION, KEEPS_NAN, OBEYED = 46, 47, 48, 50, 60

#: First bit and number of bits of what tells of updates.
TYPE_FIELD, OPERATION_FIELD = (6, 3), (9, 2)
#: Their numbers, by the words of instructions.
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
    """Type and operation of updates of global memory; None for plain stores. Numbers without a meaning are
    f32 and add."""
    kind = field(word, TYPE_FIELD)
    if kind == 0:
        return None
    types, operations = ({n: name for name, n in words.items()} for words in (TYPES, OPERATIONS))
    return types.get(kind, "f32"), operations.get(field(word, OPERATION_FIELD), "add")
