"""Convert numbers to and from entries of the constant pool.

A floating-point constant is stored as its bit pattern. Reading gives the shortest decimal number with this
pattern, so `0.1 : f32` is `0.1` again and not the double nearest to the 32-bit value.
"""

from __future__ import annotations

import math

from ..ir.attrs import Attribute, FloatAttr, IntAttr
from ..ir.types import ScalarType
from ..isa import encoding
from .format import FLOAT, INT, MAX_INT_BITS, WIDE_INT


class BadConstant(Exception):
    """An entry of the constant pool with an invalid value for its type; the message has the reason."""


def int_bits(type: ScalarType) -> int | None:
    """Return the width of an integer or index type; None for other types, and for widths that are not stored
    as numbers."""
    if type.text == "index":
        return 64
    bits = type.bits
    return bits if type.is_int and bits is not None and 0 < bits <= MAX_INT_BITS else None


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def constant_bits(value: Attribute | None) -> tuple[int, int, int] | None:
    """Return (tag, number or bit pattern, width in bits); None if the pool has no such entries."""
    if isinstance(value, IntAttr):
        bits = int_bits(value.type)
        if bits is None:
            return None
        if bits > 64:
            return WIDE_INT, value.value & ((1 << bits) - 1), bits
        return INT, signed(value.value, bits), bits
    if isinstance(value, FloatAttr):
        width = value.type.bits
        if value.type.info is None or width is None:
            return None
        return FLOAT, float_pattern(value), width
    return None


def float_pattern(value: FloatAttr) -> int:
    info = value.type.info
    assert info is not None
    if value.bits is not None:
        return value.bits & ((1 << info.bits) - 1)
    return encoding.encode(info, value.value)


def int_attr(number: int, type: ScalarType) -> IntAttr:
    """Return the attribute of a stored integer. Unsigned types and i1 have unsigned values, as they are
    printed; all others have signed values."""
    bits = int_bits(type)
    if bits is None:
        raise BadConstant(f"an integer cannot have type {type}")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise BadConstant(f"{number} does not fit in {type}")
    if type.text[0] == "u" or type.text == "i1":
        number &= (1 << bits) - 1
    return IntAttr(number, type)


def wide_attr(data: bytes, type: ScalarType) -> IntAttr:
    bits = int_bits(type)
    if bits is None or bits <= 64:
        raise BadConstant(f"a wide integer cannot have type {type}")
    if len(data) != (bits + 7) // 8:
        raise BadConstant(f"expected {(bits + 7) // 8} bytes for {type}, got {len(data)}")
    number = int.from_bytes(data, "little")
    if number >> bits:
        raise BadConstant(f"the number does not fit in {type}")
    return int_attr(signed(number, bits), type)


def float_attr(data: bytes, type: ScalarType) -> FloatAttr:
    info = type.info
    if info is None or not info.is_float:
        raise BadConstant(f"a floating-point number cannot have type {type}")
    if len(data) != (info.bits + 7) // 8:
        raise BadConstant(f"expected {(info.bits + 7) // 8} bytes for {type}, got {len(data)}")
    pattern = int.from_bytes(data, "little")
    if pattern >> info.bits:
        raise BadConstant(f"the bit pattern does not fit in {type}")
    value = float(encoding.decode(info, pattern))
    if not math.isfinite(value):
        return FloatAttr(value, type, pattern)
    for digits in range(1, 18):
        short = float(f"{value:.{digits}g}")
        if encoding.encode(info, short) == pattern:
            return FloatAttr(short, type)
    return FloatAttr(value, type)


def constant_name(value: Attribute | None) -> str:
    """Return the name of a constant in canonical text: `c4`, `c-1_i32`, `c0x3F800000_f32`; empty for other
    values."""
    found = constant_bits(value)
    if found is None:
        return ""
    tag, number, bits = found
    assert isinstance(value, IntAttr | FloatAttr)
    if tag == FLOAT:
        return f"c0x{number:X}_{value.type}"
    return f"c{signed(number, bits)}" + ("" if value.type.text == "index" else f"_{value.type}")
