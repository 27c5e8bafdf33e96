"""Element types: every dtype of tiles, vector registers and pointers, with its exact encoding.

This module has data and exact functions over Python integers and `fractions`, without NumPy. The array
versions (`pto.engine.elements` and the native module) are tested against these definitions for every value.
"""

from __future__ import annotations

from .record import Record


class DType(Record):
    """One element type.

    `kind` is "f" (floating), "i" (signed), "u" (unsigned) or "e" (exponent only, e8m0). Floats have the
    layout sign | exp | man and the bias `bias`; hifloat8 has a variable split and sets `exp` to 0.
    """

    name: str
    bits: int
    kind: str
    mlir: str  # spelling in .pto text
    cpp: str
    exp: int = 0
    man: int = 0
    bias: int = 0
    inf: bool = False  # has infinities
    nan: bool = False  # has NaN codes
    max_finite: float = 0.0
    spellings: tuple[str, ...] = ()  # further accepted spellings
    doc: str = ""
    array: str = ""  # its name in NumPy, ml_dtypes and torch; empty if arrays hold its codes

    @property
    def bytes(self) -> float:
        return self.bits / 8

    @property
    def is_float(self) -> bool:
        return self.kind in "fe"

    @property
    def is_int(self) -> bool:
        return self.kind in "iu"

    @property
    def int_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.kind == "i":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


def _int(bits: int, signed: bool) -> DType:
    s = "i" if signed else "u"
    return DType(
        f"{s}{bits}", bits, s, mlir=f"i{bits}" if signed else f"ui{bits}",
        cpp=f"{'' if signed else 'u'}int{bits}_t",
        spellings=(f"s{bits}", f"si{bits}", f"int{bits}") if signed else (f"u{bits}", f"uint{bits}"),
        doc=f"{bits}-bit {'two’s complement' if signed else 'unsigned'} integer",
        array=f"{'' if signed else 'u'}int{bits}",
    )  # fmt: skip


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("f32", 32, "f", "f32", "float", 8, 23, 127, True, True, 3.4028234663852886e38,
              ("fp32", "float", "float32"), "IEEE binary32", "float32"),
        DType("f16", 16, "f", "f16", "half", 5, 10, 15, True, True, 65504.0,
              ("fp16", "half", "float16"), "IEEE binary16", "float16"),
        DType("bf16", 16, "f", "bf16", "bfloat16_t", 8, 7, 127, True, True, 3.3895313892515355e38,
              ("bfloat16",), "bfloat16: the upper half of binary32", "bfloat16"),
        DType("f8e4m3", 8, "f", "f8E4M3FN", "float8_e4m3_t", 4, 3, 7, False, True, 448.0,
              ("f8E4M3", "float8_e4m3", "fp8_e4m3"), "OCP FP8 E4M3: no infinity, NaN is S.1111.111",
              "float8_e4m3fn"),
        DType("f8e5m2", 8, "f", "f8E5M2", "float8_e5m2_t", 5, 2, 15, True, True, 57344.0,
              ("float8_e5m2", "fp8_e5m2"), "OCP FP8 E5M2: IEEE-like infinities and NaNs", "float8_e5m2"),
        DType("f8e8m0", 8, "e", "f8E8M0FNU", "float8_e8m0_t", 8, 0, 127, False, True, 2.0**127,
              ("f8E8M0", "float8_e8m0"), "OCP MX scale: unsigned power of two, 0xFF is NaN",
              "float8_e8m0fnu"),
        DType("hif8", 8, "f", "hif8", "hifloat8_t", 0, 0, 0, True, True, 32768.0,
              ("hifloat8",), "HiFloat8: 1 sign bit, variable dot prefix, tapered exponent and mantissa"),
        DType("f4e2m1", 4, "f", "f4E2M1FN", "float4_e2m1x2_t", 2, 1, 1, False, False, 6.0,
              ("float4_e2m1x2", "f4e2m1x2", "float4_e2m1", "float4_e2m1_t"),
              "OCP MX FP4 E2M1, two per byte, low nibble first"),
        DType("f4e1m2", 4, "f", "f4E1M2FN", "float4_e1m2x2_t", 1, 2, 1, False, False, 1.75,
              ("float4_e1m2x2", "f4e1m2x2", "float4_e1m2", "float4_e1m2_t"),
              "FP4 E1M2, two per byte, low nibble first"),
        DType("f64", 64, "f", "f64", "double", 11, 52, 1023, True, True, 1.7976931348623157e308,
              ("fp64", "double"), "IEEE binary64; scalars only", "float64"),
        DType("s4", 4, "i", "i4", "pto::int4b_t", spellings=("int4b_t", "si4"),
              doc="4-bit two’s complement integer, two per byte, low nibble first"),
        DType("i1", 1, "u", "i1", "bool", spellings=("bool",), doc="truth value; scalars only"),
        *(_int(b, s) for b in (8, 16, 32, 64) for s in (True, False)),
    )
}  # fmt: skip

#: Accepted spelling of an element type in lower case -> its dtype. C++ names are included.
SPELLINGS: dict[str, DType] = {
    s.lower(): d for d in DTYPES.values() for s in (d.name, d.mlir, d.cpp.removeprefix("pto::"), *d.spellings)
}


def dtype(name: str) -> DType:
    """Return the dtype of an accepted spelling; raise `KeyError` for an unknown one."""
    return SPELLINGS[name.lower()]


def names(spec: str) -> tuple[str, ...]:
    """Expand a space-separated dtype list; `ints8_64`, `b8`, `b16`, `b32`, `b64` stand for groups."""
    out: list[str] = []
    for word in spec.split():
        out.extend(GROUPS.get(word, (word,)))
    for name in out:
        DTYPES[name]
    return tuple(dict.fromkeys(out))


GROUPS: dict[str, tuple[str, ...]] = {
    "ints": ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
    "ints32": ("i8", "u8", "i16", "u16", "i32", "u32"),
    "floats": ("f32", "f16", "bf16"),
    "b8": ("i8", "u8"),
    "b16": ("i16", "u16", "f16", "bf16"),
    "b32": ("i32", "u32", "f32"),
    "b64": ("i64", "u64"),
    "fp8": ("f8e4m3", "f8e5m2"),
    "fp4": ("f4e2m1", "f4e1m2"),
    "any": ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
    "all": ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
            "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2"),
}  # fmt: skip

#: Numbers of the element types in C++ (`DType`, detail/element_types.hpp). f64, which only scalars have,
#: comes first.
NUMBERS: dict[str, int] = {n: k for k, n in enumerate(("f64", *(name for name in DTYPES if name != "f64")))}

#: C++ `RoundMode` in its numeric order.
ROUND_MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
