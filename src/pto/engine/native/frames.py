"""Converts values in the frame of a core to values of the reference engine, and back.

Memory is not copied: buffers are arrays at the addresses of the memories of the core and of the arrays of the
launch. So an executor works on the same bytes as compiled functions (native/vm/generic.hpp).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import memmove, string_at
from typing import Any

import numpy as np

from ...ir.core import Value, constant_of
from ...ir.facts import left_layout, view_layout
from ...ir.types import (
    MaskType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    TokenType,
    Type,
    ViewType,
    VRegType,
)
from ...isa.machine import LOCATION_OF
from ...isa.profiles import Profile
from ...isa.view import is_packed
from ..elements import ARRAY_DTYPES, Array, decode, encode
from ..memory import Buffer, Pointer, Tile, View, array_of
from ..reference.handles import Group
from ..registers import WIDTH, Align, Register, maker

#: Functions that read a value at an address of the frame, or write one there. The core has the memories.
Read = Callable[[Any, int], Any]
Write = Callable[[Any, int, Any], None]


class Unreadable(Exception):
    """A type with values that only compiled functions can read."""


def bytes_at(address: int, size: int) -> Array:
    """Return the memory from an address on as an array of bytes, without a copy."""
    return np.asarray(_Memory(address, size))


class _Memory:
    """Bytes at an address, with the array interface of NumPy."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def address_of(buffer: Buffer) -> int:
    return buffer.data.__array_interface__["data"][0]


# -- places --------------------------------------------------------------------------------------------------

_TILE = struct.Struct("<4i2IQ")  # rows, columns, elements, length of a line, valid rows and columns, address
_VIEW = struct.Struct("<Q10q")  # address, five sizes, five strides
_WORD = struct.Struct("<Q")
_GROUP = struct.Struct("<Q2i")  # address of the views, their number, the root
_ALIGN = struct.Struct("<32sQiB")  # bytes, position of the stream, number of pending bytes, kind
_ALIGN_KINDS = ("", "load", "store")


def _tile(value: Value, profile: Profile, by_rows: bool) -> Read:
    """Return the reader of a tile; `by_rows` means that the call takes tiles of all layouts row by row."""
    type = value.type
    assert isinstance(type, TileBufType)
    if by_rows and not type.boxed:
        type = type.replace(blayout="row_major")
    layout = left_layout(type, profile, "layout") or "" if type.loc == "left" else ""
    loc, name, bits = type.loc, value.name, type.bits or 8

    last: tuple[Any, bytes, Tile] | None = None

    def read(core: Any, at: int) -> Tile:
        nonlocal last
        raw, known = string_at(at, _TILE.size), last
        if known is not None and known[0] is core and known[1] == raw:  # reuse it with its cached regions
            return known[2]
        rows, cols, count, _, v_row, v_col, data = _TILE.unpack(raw)
        buffer, address = core.on_chip(loc, data, -(-count * bits // 8))
        made = Tile(type, buffer, address, (v_row, v_col), name, layout)
        made.pitch = rows, cols
        made.rows, made.cols = (
            max(made.rows, v_row),
            max(made.cols, v_col),
        )  # the valid region of a memref may be larger
        if buffer is core.buffers[loc]:
            last = core, raw, made
        return made

    return read


def _view(value: Value) -> Read:
    type = value.type
    assert isinstance(type, ViewType)
    layout = (view_layout(value) or "ND").upper()
    first = 0 if is_packed(layout, type.rank) else 5 - type.rank
    dtype, name = str(type.dtype), value.name

    def read(core: Any, at: int) -> View:
        data, *sizes = _VIEW.unpack(string_at(at, _VIEW.size))
        buffer, offset = core.in_global(data)
        return View(buffer, offset, tuple(sizes[first:5]), tuple(sizes[5 + first :]), dtype, layout, name)

    return read


def _group(value: Value) -> Read:
    made = value.op
    if made is None or made.name != "pto.make_group":
        raise Unreadable(f"a value of type {value.type}")
    views = [_view(tensor) for tensor in made.group("tensors") if isinstance(tensor.type, ViewType)]

    def read(core: Any, at: int) -> Group:
        data, count, root = _GROUP.unpack(string_at(at, _GROUP.size))
        return Group([views[n](core, data + n * _VIEW.size) for n in range(count)], root)

    if len(views) != len(made.group("tensors")):
        raise Unreadable("a group of memrefs")
    return read


def _pointer(type: PtrType, name: str) -> tuple[Read, Write]:
    dtype = type.elem.counted
    if type.space == "gm":

        def read(core: Any, at: int) -> Pointer:
            buffer, offset = core.in_global(_WORD.unpack(string_at(at, 8))[0])
            return Pointer(buffer, offset, dtype, name)
    else:
        loc = LOCATION_OF[type.space]

        def read(core: Any, at: int) -> Pointer:
            buffer, offset = core.pointed(loc, _WORD.unpack(string_at(at, 8))[0])
            return Pointer(buffer, offset, dtype, name)

    def write(core: object, at: int, value: Pointer) -> None:
        memmove(at, _WORD.pack((address_of(value.buffer) + value.offset) & (1 << 64) - 1), 8)

    return read, write


# -- numbers -------------------------------------------------------------------------------------------------


def _scalar(type: ScalarType) -> tuple[Read, Write]:
    """Return the reader and writer of a scalar. Integers are in the range of their type, `i1` is 0 or 1;
    floats are exact in their type."""
    info = type.info
    if type.text == "i1":
        return lambda core, at: int(string_at(at, 1) != b"\0"), lambda core, at, v: _put(at, bytes((v & 1,)))
    if info is None or info.name in ("f32", "f64") or not info.is_float:
        code = "q" if info is None else _CODES[info.name]
        packed = struct.Struct(f"<{code}")
        size, unpack, pack = packed.size, packed.unpack, packed.pack
        return lambda core, at: unpack(string_at(at, size))[0], lambda core, at, v: _put(at, pack(v))
    dtype, size = info.name, max(1, info.bits // 8)
    codes = np.dtype(f"<u{size}")
    return (
        lambda core, at: float(decode(dtype, np.frombuffer(string_at(at, size), codes))[0]),
        lambda core, at, v: _put(at, encode(dtype, np.array([v], np.float64)).astype(codes).tobytes()),
    )


#: The `struct` formats of numbers.
_CODES = {
    "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "s4": "b",
}  # fmt: skip


def _put(at: int, data: bytes) -> None:
    memmove(at, data, len(data))


# -- registers -----------------------------------------------------------------------------------------------


def _vector(type: VRegType, name: str) -> tuple[Read, Write]:
    new, codes = maker(type, name), array_of(type.elem.counted)

    def read(core: Any, at: int) -> Register:
        made = new()
        made.keep(np.frombuffer(string_at(at, WIDTH), codes))
        return made

    def write(core: object, at: int, value: Register) -> None:
        memmove(at, value.array.tobytes(), WIDTH)

    return read, write


def _mask(type: MaskType, name: str) -> tuple[Read, Write]:
    new, size = maker(type, name), WIDTH // 8

    def read(core: Any, at: int) -> Register:
        made = new()
        made.keep(np.unpackbits(np.frombuffer(string_at(at, size), np.uint8), bitorder="little"))
        return made

    def write(core: object, at: int, value: Register) -> None:
        memmove(at, np.packbits(value.array, bitorder="little").tobytes(), size)

    return read, write


def _stream(name: str) -> tuple[Read, Write]:
    def read(core: Any, at: int) -> Align:
        data, position, pending, kind = _ALIGN.unpack(string_at(at, _ALIGN.size))
        made = Align(name)
        made.keep(np.frombuffer(data, np.uint8))
        made.kind, made.pending = _ALIGN_KINDS[kind], pending
        if kind:
            buffer, offset = core.pointed("vec", position)
            made.position = Pointer(buffer, offset, "u8")
        return made

    def write(core: object, at: int, value: Align) -> None:
        position = value.position
        where = 0 if position is None else address_of(position.buffer) + position.offset
        kind = _ALIGN_KINDS.index(value.kind)
        _put(at, _ALIGN.pack(value.array.tobytes(), where, value.pending, kind))

    return read, write


# -- by type -------------------------------------------------------------------------------------------------


def _both(type: Type, name: str) -> tuple[Read, Write]:
    if isinstance(type, ScalarType):
        return _scalar(type)
    if isinstance(type, PtrType):
        return _pointer(type, name)
    if isinstance(type, VRegType):
        return _vector(type, name)
    if isinstance(type, MaskType):
        return _mask(type, name)
    if isinstance(type, TokenType) and type.name == "align":
        return _stream(name)
    raise Unreadable(f"a value of type {type}")


def reader(value: Value, profile: Profile, by_rows: bool) -> Read:
    """Return the reader of an operand; raise `Unreadable` if there is none."""
    type = value.type
    if isinstance(type, TileBufType):
        return _tile(value, profile, by_rows)
    if isinstance(type, ViewType):
        return _view(value)
    if type.kind == "group":
        return _group(value)
    if isinstance(type, ShapedType) and type.name == "vector":  # a vector of numbers that an instruction sets
        codes = ARRAY_DTYPES[str(type.dtype)]
        return lambda core, at: bytes_at(at, 4 * codes.itemsize).view(codes)
    return _both(type, value.name)[0]


def writer(value: Value) -> Write:
    """Return the writer of a result; raise `Unreadable` if there is none."""
    return _both(value.type, value.name)[1]


def known(value: Value) -> int | float:
    """Return the constant of an operand without a place in the frame; raise `Unreadable` if it has none."""
    found = constant_of(value)
    if found is None:
        raise Unreadable("an operand without a place")
    return found
