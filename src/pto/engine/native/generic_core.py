"""A core of the machine for executors: its memory, its registers and the arrays of the launch.

Memory is not copied: buffers are arrays over the memory of the machine. Special registers are read from the
core when an instruction uses them.
"""

from __future__ import annotations

import struct
from ctypes import memmove, string_at
from functools import cache
from typing import Any

import numpy as np

from ...isa.enums import ENUMS
from ...isa.machine import MEMORIES
from ...isa.profiles import LOCATIONS, Profile
from ..memory import Buffer, GlobalMemory
from ..reference.instr import Plain
from ..reference.semantics import SEMANTICS
from ..reference.state import Cluster, CoreState
from ..registers import SPECIAL, Register
from .frames import bytes_at
from .packs import library

SPACES = len(MEMORIES)
#: The part of `pto_generic` (native/vm/generic.hpp) that the machine writes: the frame, the words of the
#: call, the memories, then the fields for `GenericCore.now`; last, whether the entry of a FIFO has been
#: found.
CALL = struct.Struct(f"<2Q{SPACES}Q3Q4Q3QQqQ2QQ")

_ARRAY = struct.Struct("<3Qi4x")  # `pto_array`
_KINDS = ("mix", "cube", "vector")
_ROUNDINGS = {n: word.removeprefix("CAST_") for word, n in ENUMS["round_mode"].values.items()}
#: The offsets of the special registers of a core in `SqueezeRegisters`.
HIDDEN = {"AR": 0, "SQZN": 8, "VMS4_SR": 16}

#: The start of a buffer for memory outside of all arrays, if the launch does not list all arrays.
_ANYWHERE = 4096


class _Out:
    """The output of executors."""

    def write(self, text: str) -> None:
        library().raw("pto_vm_print")(text.encode("utf-8", "surrogateescape"))


class _Peer:
    """Another core of the block, whose memory some moves access."""

    def __init__(self, kind: str, loc: str, address: int, capacity: int) -> None:
        self.kind = kind
        self.buffers = {loc: Buffer(LOCATIONS[loc], loc, bytes_at(address, capacity))}


class GenericCore(CoreState):
    """A core for executors, with the memory and registers of the machine."""

    def __init__(self, profile: Profile, spaces: tuple[int, ...]) -> None:
        self.profile = profile
        self.gm = GlobalMemory()
        self.buffers = {
            loc: Buffer(title, loc, bytes_at(start, profile.capacity[loc]))
            for (loc, title), start in zip(LOCATIONS.items(), spaces, strict=True)
        }
        self._starts = dict(zip(LOCATIONS, spaces, strict=True))
        self.semantics = SEMANTICS["hw"]
        self.special = {}
        self.homes = {}
        self.out: Any = _Out()
        self.port = Plain()
        self.watch = None
        self.interval = self.grid = None
        self.name = ""

    def now(self, words: tuple[int, ...]) -> None:
        """Take over the state of the core at a call from the machine."""
        at = 2 + SPACES
        self._listed = words[at : at + 2]
        self._only_arrays = bool(words[at + 2])
        kind, self.block, self.sub, self.rank = words[at + 3 : at + 7]
        self.kind, self.index = _KINDS[kind], self.block
        self._peers = words[at + 7 : at + 10]
        ctrl, hf32, self._hidden = words[at + 10 : at + 13]
        self.quantisation = words[at + 13 : at + 15]
        self.registers = {"CTRL": ctrl, "hf32": _ROUNDINGS[hf32] if hf32 >= 0 else None}

    # -- memory ---------------------------------------------------------------------------------------------

    def on_chip(self, loc: str, address: int, size: int) -> tuple[Buffer, int | None]:
        """Return the buffer and offset of a tile: in its memory, or, for aliased elements, in an array or a
        FIFO."""
        if not address:
            return self.buffers[loc], None
        buffer, at = self.pointed(loc, address)
        if 0 <= at < buffer.data.size:
            return buffer, at
        found = self._array(address)
        if found is not None:
            return found
        return Buffer(LOCATIONS[loc], loc, bytes_at(address, size)), 0

    def pointed(self, loc: str, address: int) -> tuple[Buffer, int]:
        """Return the buffer and offset of a byte of a memory on chip."""
        return self.buffers[loc], address - self._starts[loc]

    def in_global(self, address: int) -> tuple[Buffer, int]:
        """Return the buffer and offset of a byte of global memory; an empty buffer if it is in no array."""
        found = self._array(address)
        if found is not None:
            return found
        if self._only_arrays:
            return Buffer("", "gm", np.empty(0, np.uint8), address), 0
        return _everywhere(), address - _ANYWHERE

    def _array(self, address: int) -> tuple[Buffer, int] | None:
        """Return the array that contains a byte, or ends before it."""
        behind = None
        table, number = self._listed
        for buffer in _arrays(string_at(table, number * _ARRAY.size)) if number else ():
            at = address - buffer.base
            if 0 <= at < buffer.data.size:
                return buffer, at
            if at == buffer.data.size:
                behind = buffer, at
        return behind

    # -- other cores, special registers ---------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:  # type: ignore[override]
        made = Cluster(self.block)
        peers = zip(("vector", "vector", "cube"), ("vec", "vec", "mat"), self._peers, strict=True)
        made.cores = [_Peer(*peer, self.profile.capacity[peer[1]]) for peer in peers if peer[2]]  # type: ignore[assignment]
        return made

    def special_register(self, name: str, dtype: str, lanes: int = 1) -> Register:
        found = self.special.get(name)
        if found is None:
            found = self.special[name] = Register(dtype, lanes, name, SPECIAL)
            found.keep(np.frombuffer(string_at(self._hidden + HIDDEN[name], 8), found.array.dtype))
        return found

    def keep_special(self) -> None:
        """Copy the special registers that an instruction used back to the machine."""
        for name, register in self.special.items():
            memmove(self._hidden + HIDDEN[name], register.array.tobytes(), 8)
        self.special.clear()


_seen_arrays: dict[tuple[bytes, ...], tuple[Buffer, ...]] = {}


def _arrays(table: bytes) -> tuple[Buffer, ...]:
    """Return the arrays of a launch, from the table of the machine."""
    listed = list(_ARRAY.iter_unpack(table))
    key = (table, *(string_at(name) for _, _, name, _ in listed))
    found = _seen_arrays.get(key)
    if found is None:
        made: list[Buffer] = []
        for (data, size, _, owner), name in zip(listed, key[1:], strict=True):
            buffer = Buffer(name.decode(), "gm", bytes_at(data, size), data)
            buffer.rank = abs(owner) - 1 if owner else None
            made.append(buffer)
        if len(_seen_arrays) > 256:
            _seen_arrays.clear()
        found = _seen_arrays[key] = tuple(made)
    return found


@cache
def _everywhere() -> Buffer:
    return Buffer("memory", "gm", bytes_at(_ANYWHERE, (1 << 47) - _ANYWHERE), _ANYWHERE)
