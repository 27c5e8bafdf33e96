"""Vector registers, masks and alignment state as small buffers of their own.

A register is a place like a tile: instructions read and write it through the same port, so observers of
memory (undefined data, the float64 shadow) follow values through registers without extra rules. Every
execution of an instruction makes fresh registers, because every SSA value is new.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from ..ir.types import MaskType, TokenType, Type, VRegType
from ..isa.dtypes import DTYPES
from .elements import Array
from .memory import Buffer, Pointer, array_of
from .region import Region, blocked

#: Bytes of a vector register, and bits of a mask: one bit per byte.
WIDTH = 256
#: The space of registers, and that of hidden registers, which the pipes of a core share.
SPACE = "register"
SPECIAL = "special"

#: Bytes per lane of a mask, by granularity.
GRANULES = {"b8": 1, "b16": 2, "b32": 4}


@lru_cache(maxsize=256)
def _whole(dtype: str, lanes: int) -> Region:
    return Region(0, blocked(0, 1, 1, 0, 0), blocked(0, lanes, 1, 1, 0), DTYPES[dtype].bits)


class Register:
    """`lanes` elements in one row. A vector register has 256 bytes; a mask keeps one byte, 0 or 1, for each
    of its 256 bits.

    Without observers an instruction uses the whole `array`; else it uses `buffer`, the same bytes.
    """

    __slots__ = ("_array", "_buffer", "active", "dtype", "granule", "lanes", "name", "past", "space")

    offset = 0
    v_row = 1

    def __init__(self, dtype: str, lanes: int, name: str = "", space: str = SPACE) -> None:
        self.dtype = dtype
        self.lanes = lanes
        self.name = name
        self.space = space
        self._array: Array | None = None
        self._buffer: Buffer | None = None
        #: For a mask: the element size of its last use, and the elements that are on.
        self.active: tuple[int, Array] | None = None
        #: Bytes per lane of a mask, if its maker defines it; else 0.
        self.granule = 0
        #: The loads of the interval with these contents, as bits of a number; for the hazard checker.
        self.past = 0

    @property
    def array(self) -> Array:
        """Return the elements; not to be written into."""
        found = self._array
        if found is None:
            found = self._array = np.zeros(self.lanes, array_of(self.dtype))
        return found

    @array.setter
    def array(self, codes: Array) -> None:
        # loaded arrays share bytes with memory, which may change
        codes = codes if codes.flags.owndata else codes.copy()
        want = array_of(self.dtype)
        self._array = codes if codes.dtype == want else codes.view(want)
        self._buffer = self.active = None

    def keep(self, codes: Array) -> None:
        """Take over an array with the type of the register that shares no bytes with memory."""
        self._array = codes
        self._buffer = self.active = None

    @property
    def buffer(self) -> Buffer:
        found = self._buffer
        if found is None:
            if self._array is not None and not self._array.flags.writeable:
                self._array = self._array.copy()
            data = np.ascontiguousarray(self.array)
            self._array = data
            found = self._buffer = Buffer(self.name, self.space, data.view(np.uint8))
        return found

    @property
    def v_col(self) -> int:
        return self.lanes

    def region(self, rows: int, cols: int, row: int = 0, col: int = 0) -> Region:
        if (rows, cols, row, col) == (1, self.lanes, 0, 0):
            return _whole(self.dtype, self.lanes)
        bits = DTYPES[self.dtype].bits
        return Region(0, blocked(row, rows, 1, 0, 0), blocked(col, cols, 1, 1, 0), bits, 0, (row, col))

    def __repr__(self) -> str:
        return f"<Register %{self.name}: {self.lanes} x {self.dtype}>"


class Align(Register):
    """State of an unaligned stream: for a store stream, the bytes of an incomplete block; and the next
    address."""

    __slots__ = ("kind", "pending", "position")

    def __init__(self, name: str = "") -> None:
        super().__init__("u8", 32, name)
        self.kind = ""  # load, store, or flushed; empty before the first store
        self.position: Pointer | None = None
        self.pending = 0  # bytes of the register that are not yet in memory


def maker(type: Type, name: str) -> Callable[[], Register]:
    """Return a maker of registers for values of a register type."""
    if isinstance(type, VRegType):
        return partial(Register, type.elem.counted, type.lanes, name)
    if isinstance(type, MaskType):
        return partial(Register, "u8", WIDTH, name)
    return partial(Align, name)


def is_register(type: Type) -> bool:
    return isinstance(type, VRegType | MaskType) or (isinstance(type, TokenType) and type.name == "align")
