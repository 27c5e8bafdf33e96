"""Pushes to and pops from FIFOs without a function in a pack.

The machine owns FIFOs: it waits for an entry and gives its address (native/vm/generic.hpp). The host moves
the elements. So such a call comes to the host twice: to describe the wanted entry, and to move the elements.
"""

from __future__ import annotations

import struct
from ctypes import memmove, string_at
from typing import Any

import numpy as np

from ... import _native
from ...image.generic import CallOrigin
from ...ir.types import ScalarType, TileBufType
from ...isa.dtypes import DTYPES
from ...isa.machine import MEMORIES
from ..elements import Array
from ..memory import Buffer, Tile, View, array_of
from ..reference import fixpipe
from ..reference.instr import IllegalInstruction, Instr
from .frames import Unreadable, bytes_at, reader
from .generic_core import GenericCore

#: The two parts of `pto_generic_entry`: the request of the host, and the answer of the machine.
_ASKED = struct.Struct("<2I8i")
_GIVEN = struct.Struct("<2iQ5q")
SIZE = _ASKED.size + _GIVEN.size
_ZEROS, _AS_IT_IS, _CONVERTED = range(3)
#: Element types in the order of their numbers in C++.
_TYPES = [name for name, _ in _native.dtypes()]


class FifoEntry:
    """The tile side of a push or a pop."""

    def __init__(self, origin: CallOrigin, profile: Any) -> None:
        self.op = origin.op
        places: dict[str, int] = {}
        for (declared, value), at in zip(self.op.named(), origin.places, strict=True):
            if at is None:
                raise Unreadable("a value without a place")
            places[declared.name] = at
            if declared.name == "tile":
                if not isinstance(value.type, TileBufType):
                    raise Unreadable("an entry as a view")
                self._read = reader(value, profile, False)
                self._space = list(MEMORIES).index(value.type.loc)
            elif declared.name == "aiv_subblockid":
                self._read_lane = reader(value, profile, False)
        self._tile, self._pipe, self._lane = (
            places["tile"],
            places["pipe_handle"],
            places.get("aiv_subblockid"),
        )
        self._split = int(self.op.attr("split") or 0)
        self.pushes = self.op.row is not None and self.op.row.fifo == "push"
        #: Pushed elements that wait for their entry, by the address of the call.
        self._pending: dict[int, tuple[Array, str]] = {}

    def _instr(self, core: GenericCore, frame: int) -> tuple[Instr, Tile]:
        tile: Tile = self._read(core, frame + self._tile)
        return Instr(self.op, {"tile": tile}, core, "S"), tile

    def ask(self, core: GenericCore, frame: int, entry: int, call: int) -> None:
        """Write the request: the shape and type of the pushed elements, or of the tile to pop into."""
        i, tile = self._instr(core, frame)
        shape, dtype = tile.valid, tile.dtype
        if self.pushes:
            self._registers(core, i, tile)
            found, dtype = self._pending[call] = fixpipe.pushed(i, tile)
            shape = found.shape[0], found.shape[1]
        lane = -1 if self._lane is None else self._read_lane(core, frame + self._lane)
        info = DTYPES[dtype]
        asked = _ASKED.pack(
            self._pipe, self._tile, self._split, lane, self._space, *shape, _TYPES.index(dtype), info.bits,
            not info.is_float,
        )  # fmt: skip
        memmove(entry, asked, _ASKED.size)

    def _registers(self, core: GenericCore, i: Instr, tile: Tile) -> None:
        """Set the quantisation of pushes; a core of the machine has one for all FIFOs."""
        number = i.attr("id") or 0
        scalar, vector = core.quantisation
        words: Tile | None = None
        if vector:
            type = TileBufType(ScalarType("ui64"), "scaling", 1, tile.v_col, 1, tile.v_col)
            buffer, address = core.on_chip("scaling", vector, 8 * tile.v_col)
            words = Tile(type, buffer, address, (1, tile.v_col))
        elif str(i.attr("quant_mode") or "").startswith("V"):
            raise IllegalInstruction("TPUSH: no SET_QUANT_VECTOR before a push that quantizes by column")
        i.registers = {
            **i.registers, f"QUANT_SCALAR_{number}": scalar, f"QUANT_VECTOR_{number}": words,
        }  # fmt: skip

    def move(self, core: GenericCore, frame: int, entry: int, call: int) -> None:
        """Move elements to or from the entry."""
        given = _GIVEN.unpack(string_at(entry + _ASKED.size, _GIVEN.size))
        holds, held, data, pitch, row, col, rows, cols = given
        i, tile = self._instr(core, frame)
        if self.pushes:
            matrix, dtype = self._pending.pop(call)
            i.store_raw(_matrix(data, pitch, row + rows, dtype), matrix, (row, col))
            return
        if holds == _ZEROS:
            found = np.zeros((rows, cols), array_of(tile.dtype))
        else:
            dtype = _TYPES[held] if holds == _CONVERTED else tile.dtype
            found = i.raw(_matrix(data, pitch, row + rows, dtype), (rows, cols), (row, col))
            if holds == _CONVERTED:
                found = i.encoded(i.decoded(dtype, found), tile.dtype)
        i.store_raw(tile, found)


def _matrix(data: int, pitch: int, rows: int, dtype: str) -> View:
    """Return the elements of an entry, dense and row by row."""
    size = -(-rows * pitch * DTYPES[dtype].bits // 8)
    return View(Buffer("", "fifo", bytes_at(data, size)), 0, (rows, pitch), (pitch, 1), dtype, "ND")
