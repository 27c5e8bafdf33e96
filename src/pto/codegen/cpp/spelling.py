"""C++ spellings of types and literals: pure functions of types, without names of values."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Container

from ...ir.attrs import Attribute, BoolAttr, FloatAttr, IntAttr
from ...ir.types import (
    ConvTileType,
    Dims,
    EventIdArrayType,
    MaskType,
    MemRefType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)
from ...isa.dtypes import DTYPES
from ...isa.enums import ENUMS
from ...isa.machine import LOCATION_OF, MEMORIES
from ...isa.profiles import Profile

#: Address space qualifier of a pointer, by tile location or pointer space.
QUALIFIER = {
    **dict.fromkeys(("", "zero", "gm"), "__gm__"),
    **{space: MEMORIES[loc].qualifier for space, loc in LOCATION_OF.items()},
}
_PADS = tuple(ENUMS["pad_value"].values)

#: Largest values an `int` holds: element types below it need a cast after arithmetic.
NARROW = frozenset(d.cpp for d in DTYPES.values() if d.bits in (8, 16))


def register(dtype: str) -> str:
    """Return the vector register of an element type."""
    name = f"s{dtype[1:]}" if dtype[0] == "i" else dtype
    return f"vector_{name}{'x2' if DTYPES[dtype].bits == 4 else ''}"


class Unspellable(Exception):
    """A type without a C++ spelling."""


class Types:
    """Spelling of types for one target; `index` is the C++ type of index values."""

    def __init__(self, profile: Profile, index: str) -> None:
        self.profile = profile
        self.index = index
        self._cache: dict[Type, str] = {}

    def __call__(self, type: Type) -> str:
        found = self._cache.get(type)
        if found is None:
            found = self._cache[type] = self._spell(type)
        return found

    def _spell(self, type: Type) -> str:
        if isinstance(type, ScalarType):
            return self.scalar(type)
        if isinstance(type, PtrType | MemRefType) and type.space in QUALIFIER:
            return f"{QUALIFIER[type.space]} {self.scalar(type.elem)}*"
        if isinstance(type, TileBufType):
            return self.tile(type, (type.v_row, type.v_col))
        if isinstance(type, ConvTileType):
            return self.conv_tile(type)
        if isinstance(type, ViewType):
            return self.open_view(type)
        if isinstance(type, ShapedType) and type.name == "vector":
            return "pto::MrgSortExecutedNumList"
        if isinstance(type, EventIdArrayType):
            return f"PTOAS_EventIdArray<{type.count}>"
        if isinstance(type, VRegType):
            return register(str(type.dtype))
        if isinstance(type, MaskType):
            return "vector_bool"
        if isinstance(type, TokenType) and type.name in _TOKENS:
            return _TOKENS[type.name]
        raise Unspellable(str(type))

    def scalar(self, type: ScalarType) -> str:
        if type.text == "index":
            return self.index
        if type.info is not None:
            return type.info.cpp
        raise Unspellable(str(type))

    def tile(self, t: TileBufType, valid: Dims, shape: tuple[int, int] | None = None) -> str:
        """Return an eleven-parameter Tile with the given valid region (None: at run time)."""
        rows, cols = shape or t.shape
        blayout = self.profile.left_blayout if t.loc == "left" else t.blayout
        pad = f"PadValue::{_PADS[t.pad].title()}" if t.pad < len(_PADS) else f"(PadValue) 0x{t.pad:X}ULL"
        return (
            f"Tile<TileType::{MEMORIES[t.loc].tile_type}, {self.scalar(t.elem)}, {rows}, {cols}, "
            f"{ENUMS['blayout'].spelling(blayout)}, {_dim(valid[0])}, {_dim(valid[1])}, "
            f"{ENUMS['slayout'].spelling(t.slayout)}, {t.fractal}, {pad}, "
            f"{ENUMS['compact_mode'].spelling(t.compact)}>"
        )

    def conv_tile(self, t: ConvTileType) -> str:
        size = math.prod(d or 1 for d in t.dims) * (t.bits or 8) // 8
        dims = ", ".join(_dim(d) for d in t.dims)
        return (
            f"ConvTile<TileType::{MEMORIES[t.loc].tile_type}, {self.scalar(t.elem)}, {size}, "
            f"pto::Layout::{t.layout.upper()}, ConvTileShape<{dims}>>"
        )

    def open_view(self, t: ViewType) -> str:
        """Return a view with run-time strides: an argument, or a value of control flow."""
        dims = ", ".join(_dim(d) for d in (*(1,) * (5 - t.rank), *t.dims))
        return (
            f"GlobalTensor<{self.scalar(t.elem)}, pto::Shape<{dims}>, pto::Stride<-1, -1, -1, -1, -1>, "
            "pto::Layout::ND>"
        )


_TOKENS = {
    "align": "vector_align",
    "async_session": "pto::comm::AsyncSession",
    "async_event": "pto::comm::AsyncEvent",
    "prefetch_async_context": "pto::PrefetchAsyncContext",
}


def _dim(d: int | None) -> str:
    return "-1" if d is None else str(d)


def unsigned(type: str) -> str:
    """Return the unsigned integer type of the same width."""
    if type in ("bool", "__int128"):
        return "uint8_t" if type == "bool" else "unsigned __int128"
    return type if type.startswith("u") else f"u{type}"


def bits_of(type: str) -> int:
    """Return the width of a C++ scalar type."""
    if type in ("double", "int64_t", "uint64_t"):
        return 64
    return next((d.bits for d in DTYPES.values() if d.cpp == type), 32)


def literal(value: Attribute, type: str) -> str:
    """Return a scalar constant as a C++ initializer of `type`."""
    if isinstance(value, IntAttr | BoolAttr):
        return integer(int(value.value), type)
    assert isinstance(value, FloatAttr)
    return floating(value.value, type, value.bits)


def integer(number: int, type: str) -> str:
    if type == "bool":
        return "true" if number else "false"
    bits = bits_of(type)
    number &= (1 << bits) - 1
    if type.startswith("u"):
        return f"{number}u" if bits < 64 else f"{number}ull"
    if number >> (bits - 1):
        number -= 1 << bits
    return "INT64_MIN" if number == -(1 << 63) else str(number)


def fits(number: int, type: str) -> bool:
    """Return True if a number is a value of an integer type, read as signed or as unsigned."""
    bits = bits_of(type)
    return -(1 << (bits - 1)) <= number < 1 << bits


def floating(number: float, type: str, bits: int | None = None) -> str:
    suffix = "" if type == "double" else "f"
    if math.isnan(number):
        return _nan(type, bits, suffix)
    number = _rounded(number, type)
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    digits = repr(number) if type == "double" else f"{number:.9g}"
    mantissa, e, exponent = digits.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent):+d}{suffix}" if e else mantissa + suffix


def _nan(type: str, bits: int | None, suffix: str) -> str:
    """Return a quiet NaN, or the given pattern if it is another NaN."""
    if type == "float" and bits not in (None, 0x7FC00000):
        return f"ptoas_bitcast<float>((uint32_t) 0x{bits:08X}u)"
    return f'__builtin_nan{suffix}("")'


def _rounded(number: float, type: str) -> float:
    """Return the value of the constant in its type, so that the literal needs no second rounding."""
    if not math.isfinite(number):
        return number
    try:
        if type == "float":
            return struct.unpack("<f", struct.pack("<f", number))[0]
        if type == "half":
            return struct.unpack("<e", struct.pack("<e", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    if type == "bfloat16_t":
        step = max(math.frexp(number)[1], -125) - 8  # bits that are kept; fewer for subnormal values
        return math.copysign(math.ldexp(round(math.ldexp(number, -step)), step), number)
    return number


_KEYWORDS = frozenset(
    "alignas alignof and asm auto bool break case catch char class const constexpr continue default delete "
    "do double else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new not operator or private protected public register return short signed sizeof static "
    "struct switch template this throw true try typedef typeid typename union unsigned using virtual void "
    "volatile while xor half main pto "
    "and_eq bitand bitor char8_t char16_t char32_t compl concept const_cast consteval constinit co_await "
    "co_return co_yield decltype dynamic_cast noexcept not_eq nullptr or_eq reinterpret_cast requires "
    "static_assert static_cast thread_local wchar_t xor_eq "
    # names that emitted C++ uses or our headers define
    "T AICORE INT64_MIN size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t bfloat16_t "
    "event_t std ptoas_auto_sync_tail ptoas_bitcast __global__ __gm__ __aicore__ "
    # functions of the C library that a declaration would bind to, in C++ for a host
    "_Exit _exit abort alarm clearenv close closefrom dup dup2 exit fork kill killpg malloc pause quick_exit "
    "raise sched_yield setgid setns setpgid setsid setuid sleep sync sysconf system tmpfile tzset unshare "
    "usleep vfork".split()
)


def identifier(name: str) -> str:
    """Return a symbol name as a C++ identifier."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not plain or plain[0].isdigit() or plain in _KEYWORDS or re.fullmatch(r"v\d+", plain):
        plain = f"f_{plain}"
    return plain


#: Macros of C and of compilers with names that a program may have.
_MACROS = frozenset(
    "I alloca assert complex errno fpclassify i386 isfinite isgreater isinf isless isnan isnormal "
    "isunordered linux major makedev minor offsetof setjmp signbit stderr stdin stdout unix".split()
)
_LONGEST_NAME = 40


def variable(name: str, taken: Container[str]) -> str:
    """Return the name of a variable for a value. A name that is taken or could be a macro gets `_` at its
    end. Return an empty string for a number, and if both names are taken."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:_LONGEST_NAME]
    if not plain[:1].isalpha() or re.fullmatch(r"v\d+", plain):
        return ""
    macro = plain in _MACROS or (len(plain) > 1 and plain.isupper())
    return next((n for n in (plain, f"{plain}_")[macro:] if n not in taken and n not in _KEYWORDS), "")


def string(text: str) -> str:
    """Return a C++ string literal."""
    out: list[str] = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char in '"\\' or (char == "?" and out[-1:] == ["?"]):  # two could begin a trigraph
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            out.append({"\n": "\\n", "\t": "\\t"}.get(char, f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'
