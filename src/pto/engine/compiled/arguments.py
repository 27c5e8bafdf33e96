"""Bound arguments for machine code: 64-bit words, addresses of arrays, descriptions of views."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from ... import wire
from ...diag import Diagnostic, Span
from ...ir.types import ScalarType
from ..binding import Binding
from ..elements import Array, encode
from ..memory import Buffer, GlobalMemory, Pointer, View
from ..ranks import Member, World
from .library import ViewArgument


class LaunchMemory:
    """The memory of a launch: the arrays themselves, or copies of those that must not change."""

    def __init__(self, gm: GlobalMemory, world: World | None = None) -> None:
        """With `world`, copy the arrays into memory that is shared by the processes of its ranks."""
        self._world = world
        self.names = {id(b): b.name for b in gm.buffers}
        self.copies: list[tuple[str, Any, Any]] = []
        self._moved: dict[int, tuple[Any, Any]] = {}  # by buffer
        self._users: dict[int, set[int]] = {}  # by buffer: the ranks with it as an argument
        self._at: dict[int, int] = {}
        #: Address, size, name and owner of every array.
        self.arrays: list[tuple[int, int, bytes, int]] = []
        self._views: list[ViewArgument] = []
        for buffer in gm.buffers:  # windows of ranks are accessible without being an argument
            if buffer.rank is not None:
                self._map(buffer, -(buffer.rank + 1))

    def _map(self, buffer: Buffer, owner: int) -> int:
        data, world = buffer.data, self._world
        if not data.flags.writeable:
            copy = np.array(data)
            self.copies.append((buffer.name, data, copy))
            data = copy
            if world is not None and world.member is not None:
                world = None  # shared memory has other addresses than the context of this process
        if world is not None and buffer.rank is None:
            data = self._in_common(id(buffer), data, world)
        found = self._at[id(buffer)] = data.ctypes.data
        self.arrays.append((found, data.size, buffer.name.encode(), owner))
        return found

    def _in_common(self, buffer: int, data: Array, world: World) -> Array:
        """Return a copy of an array in shared memory; `bring_back` copies it back."""
        copy = np.frombuffer(world.room(max(1, data.size)), np.uint8)[: data.size]
        if world.member is None or world.member.first:
            copy[:] = data
        self._moved[buffer] = data, copy
        return copy

    def gather(self, member: Member) -> None:
        """Merge the changes of ranks on other machines into the arrays. An array of several ranks gets the
        changes of each. A rank sends its arrays one after another; all processes can compute their sizes."""
        if member.far is None:
            return
        given = [
            [arrays for buffer, arrays in self._moved.items() if rank in self._users.get(buffer, ())]
            for rank in range(member.ranks)
        ]
        before = {id(data): data.copy() for data, _ in self._moved.values()}
        sizes = [sum(data.size for data, _ in arrays) for arrays in given]
        mine = b"".join(copy.tobytes() for _, copy in given[member.rank])
        for rank, sent in enumerate(member.all(mine, max(sizes))):
            if len(sent) != sizes[rank]:
                raise wire.refused(f"rank {rank}", f"expected {sizes[rank]} bytes, got {len(sent)}")
            at = 0
            for data, _ in given[rank]:
                left = np.frombuffer(sent, np.uint8, data.size, at)
                changed = left != before[id(data)]
                data[changed] = left[changed]
                at += data.size
        self._moved = {}

    def bring_back(self) -> None:
        for data, copy in self._moved.values():
            data[:] = copy

    def word(self, value: Pointer | View, owner: int = 0) -> int:
        """Return the address of a bound array with an owner (see launch.h)."""
        self._users.setdefault(id(value.buffer), set()).add(owner - 1)
        found = self._at.get(id(value.buffer))
        return (self._map(value.buffer, owner) if found is None else found) + value.offset

    def view(self, value: View, owner: int = 0) -> int:
        """Return the address of a description of a bound array."""
        shape, stride = value.dims5
        made = ViewArgument(self.word(value, owner), shape, stride)
        self._views.append(made)
        return ctypes.addressof(made)

    def spans(self, binding: Binding) -> dict[str, list[tuple[str, int, int] | None]]:
        """Return the name, address and size of the array of each argument, by function."""
        return {
            function: [
                (v.buffer.name, self._at[id(v.buffer)], v.buffer.data.size)
                if isinstance(v, Pointer | View)
                else None
                for v in values
            ]
            for function, values in binding.values.items()
        }

    def changed(self, place: Span | None) -> Diagnostic | None:
        """Return a diagnostic for a write to an array that was given as read-only, located at the kernel."""
        for name, original, copy in self.copies:
            if not np.array_equal(original, copy):
                return Diagnostic(
                    "PTO-E2102", f"writes to {name}, which was given as a read-only array", place
                )
        return None


def word(type: object, value: int | float | str) -> int:
    """Return a scalar as a 64-bit word: an integer, or the bits of a float."""
    if isinstance(value, str):
        return 0  # the launch fills it in
    assert isinstance(type, ScalarType)
    if not type.is_float:
        return int(value) & (1 << 64) - 1
    name = str(type)
    if name in ("f32", "f64"):
        return int.from_bytes(struct.pack("<d" if name == "f64" else "<f", value), "little")
    return int(encode(name, np.array([value], np.float64))[0])
