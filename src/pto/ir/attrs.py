"""Attributes of operations: immutable values that print as MLIR attribute text."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Literal

from ..isa.enums import ENUMS
from ..isa.record import Record
from .types import I64, ScalarType, Type


class Attribute(Record):
    """Base of all attributes. `value` is for rules and tools."""

    if TYPE_CHECKING:

        def __getattr__(self, name: Literal["value"]) -> Any: ...


class IntAttr(Attribute):
    value: int
    type: ScalarType = I64

    def __str__(self) -> str:
        if self.type.text == "i1":
            return "true" if self.value else "false"
        return str(self.value) if self.type == I64 else f"{self.value} : {self.type}"


_PACK = {"f32": ("<f", "<I"), "f64": ("<d", "<Q"), "f16": ("<e", "<H")}


class FloatAttr(Attribute):
    """A float; `bits` is set if the text gave a bit pattern, or the value has no decimal spelling."""

    value: float
    type: ScalarType
    bits: int | None = None

    def __str__(self) -> str:
        return f"{self.number} : {self.type}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatAttr) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def number(self) -> str:
        if math.isfinite(self.value):
            return float_text(self.value)
        bits = self.bits if self.bits is not None else float_bits(self.value, self.type.text)
        return f"0x{bits:0{(self.type.bits or 32) // 4}X}"


def float_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same double, always with a point, and with the sign
    of zero.
    """
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{int(exponent):+03d}" if e else mantissa


def float_bits(value: float, dtype: str) -> int:
    """Return the bit pattern of an infinity or NaN of a float type."""
    if dtype in _PACK:
        pack, unpack = _PACK[dtype]
        return struct.unpack(unpack, struct.pack(pack, value))[0]
    if dtype == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    raise ValueError(f"{dtype} has no {value}")


class BoolAttr(Attribute):
    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


class StrAttr(Attribute):
    value: str

    def __str__(self) -> str:
        return quote(self.value)


def quote(text: str) -> str:
    """Return an MLIR string literal: printable ASCII as is, other bytes as UTF-8 hex escapes."""
    out: list[str] = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            out.extend(f"\\{b:02X}" for b in char.encode("utf-8", "surrogateescape"))
    return '"' + "".join(out) + '"'


class UnitAttr(Attribute):
    value: bool = True

    def __str__(self) -> str:
        return "unit"


class EnumAttr(Attribute):
    """A value of one of the enums of `pto.isa.enums`."""

    enum: str
    value: str

    def __str__(self) -> str:
        return ENUMS[self.enum].text(self.value)


class TypeAttr(Attribute):
    value: Type

    def __str__(self) -> str:
        return str(self.value)


class SymbolAttr(Attribute):
    value: str

    def __str__(self) -> str:
        return symbol_text(self.value)


def symbol_text(name: str) -> str:
    plain = name and (name[0].isalpha() or name[0] == "_") and all(c.isalnum() or c in "_$.:@" for c in name)
    return f"@{name}" if plain and name.isascii() else f"@{quote(name)}"


class ArrayAttr(Attribute):
    items: tuple[Attribute, ...]

    @property
    def value(self) -> tuple[Any, ...]:
        return tuple(i.value for i in self.items)

    def __str__(self) -> str:
        return "[" + ", ".join(str(i) for i in self.items) + "]"


class DenseArrayAttr(Attribute):
    """`array<i32: 1, 2>`."""

    elem: str
    value: tuple[int | float, ...]

    def __str__(self) -> str:
        def show(v: int | float) -> str:
            if self.elem == "i1":
                return "true" if v else "false"
            return float_text(v) if isinstance(v, float) else str(v)

        return f"array<{self.elem}{': ' if self.value else ''}{', '.join(show(v) for v in self.value)}>"


class DictAttr(Attribute):
    items: dict[str, Attribute]

    @property
    def value(self) -> dict[str, Any]:
        return {k: v.value for k, v in self.items.items()}

    def __str__(self) -> str:
        return dict_text(self.items)

    def __hash__(self) -> int:
        return hash(tuple(self.items))


class OpaqueAttr(Attribute):
    """An attribute kept as text: foreign dialects, dense elements, affine sets, tile_buf_config."""

    text: str

    @property
    def value(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text


def key_text(key: str) -> str:
    """Return a dictionary key: a bare identifier if possible, else a string."""
    bare = key and (key[0].isalpha() or key[0] == "_") and all(c.isalnum() or c in "_$." for c in key)
    return key if bare and key.isascii() else quote(key)


def dict_text(items: dict[str, Attribute]) -> str:
    parts = [key_text(k) if isinstance(v, UnitAttr) else f"{key_text(k)} = {v}" for k, v in items.items()]
    return "{" + ", ".join(parts) + "}"
