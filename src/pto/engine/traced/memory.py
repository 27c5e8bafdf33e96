"""Global memory of a traced launch, by the addresses of the kernel."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import Type, ViewType
from ...isa.record import Record
from ..compiled.library import ViewArgument
from ..memory import WINDOWS_BASE, Buffer, Pointer, View

if TYPE_CHECKING:
    from ..ranks import World


class Copied(Record):
    """The copy of an array that the kernel uses, with its address."""

    address: int
    buffer: Buffer
    copy: Any


#: An address at most this far from an array counts as a wrong access to that array.
_NEAR = 1 << 30
#: No process has memory below this address: a null pointer plus a small offset.
_NULL = 1 << 16
#: The size of a piece of memory outside of all arrays, as a number of address bits.
_ELSEWHERE = 26


class TracedMemory:
    """Global memory of a launch, by the addresses of the kernel."""

    def __init__(
        self, buffers: Sequence[Buffer] = (), open: bool = False, world: World | None = None
    ) -> None:
        """`open` means that there is unknown memory besides the arrays. The copy of the windows of a world
        has the same distances between windows as the world."""
        self._open = open
        self._views: list[ViewArgument] = []
        self._room = np.frombuffer(mmap.mmap(-1, world.ranks * world.stride), np.uint8) if world else None
        #: The address of the windows of rank 0.
        self.base = 0 if self._room is None else self._room.ctypes.data
        made = [(buffer, self._copy(buffer)) for buffer in buffers]
        self.hold([Copied(c.ctypes.data, b, c) for b, c in made])

    def _copy(self, buffer: Buffer) -> Any:
        if self._room is None or buffer.base < WINDOWS_BASE:
            return np.array(buffer.data)
        at = buffer.base - WINDOWS_BASE
        place = self._room[at : at + buffer.data.size]
        place[:] = buffer.data
        return place

    def tell(self, buffer: Buffer, contents: Any) -> None:
        """Give the kernel other contents of an array than the reference engine."""
        found = next(a for a in self.arrays if a.buffer is buffer)
        found.copy[:] = contents.view(np.uint8)

    def hold(self, arrays: Sequence[Copied]) -> None:
        """Replace the arrays of the memory."""
        self._others: dict[int, Buffer] = {}
        self.arrays = sorted(arrays, key=lambda a: a.address)
        self._starts = [a.address for a in self.arrays]

    def word(self, type: Type, place: Pointer | View) -> int:
        """Return the word of an argument: the address of a byte, or of the description of a tensor."""
        address = place.offset + next(a.address for a in self.arrays if a.buffer is place.buffer)
        if not isinstance(type, ViewType):
            return address
        assert isinstance(place, View)
        self._views.append(ViewArgument(address, *place.dims5))
        return ctypes.addressof(self._views[-1])

    def at(self, address: int, rank: int = 0) -> tuple[Buffer, int]:
        """Return the array that contains an address, or the one before it, and the offset in it. Ranks in one
        process share all addresses."""
        found = self.arrays[max(0, bisect_right(self._starts, address) - 1)] if self.arrays else None
        if (
            found is None
            or 0 <= address < _NULL
            or not -_NEAR <= address - found.address <= found.copy.size + _NEAR
        ):
            if not self._open:  # not an address of memory, for example a null pointer
                return Buffer("global memory", "gm", np.empty(0, np.uint8)), address
            return self._elsewhere(address)
        if self._open and not found.address <= address <= found.address + found.copy.size:
            return self._elsewhere(address)
        return found.buffer, address - found.address

    def _elsewhere(self, address: int) -> tuple[Buffer, int]:
        """Return a buffer and offset for memory outside of all arrays; its pages are allocated when used."""
        base = address >> _ELSEWHERE << _ELSEWHERE
        found = self._others.get(base)
        if found is None:
            data = np.zeros(2 << _ELSEWHERE, np.uint8)
            found = self._others[base] = Buffer("memory outside of all arguments", "gm", data, base)
        return found, address - base
