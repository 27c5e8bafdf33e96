"""A core of the machine as executors see it: its memory, its registers and the arrays of the launch.

Nothing is copied. Buffers are arrays over the memory of the machine, and hidden registers are read from the
core when an instruction asks for them.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import memmove, string_at
from functools import cache

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
#: `pto_generic` of native/vm/generic.hpp, as far as the machine writes it: the frame, the words of the call,
#: the memories, then what `GenericCore.now` takes over; last, whether the entry of a FIFO has been found.
CALL = struct.Struct(f"<2Q{SPACES}Q3Q4Q3QQqQ2QQ")

_ARRAY = struct.Struct("<3Qi4x")  # `pto_array`
_KINDS = ("mix", "cube", "vector")
_ROUNDINGS = {n: word.removeprefix("CAST_") for word, n in ENUMS["round_mode"].values.items()}
#: Hidden registers of a core: where they are in `SqueezeRegisters`.
_HIDDEN = {"AR": 0, "SQZN": 8, "VMS4_SR": 16}

#: Where memory that no array of the launch holds is found, where the launch does not know all arrays.
_ANYWHERE = 4096


class _Out:
    """Where executors print."""

    def write(self, text: str) -> None:
        library().raw("pto_vm_print")(text.encode())


class _Peer:
    """Another core of the block: its memory is reached by some moves."""

    def __init__(self, kind: str, loc: str, address: int) -> None:
        self.kind = kind
        self.buffers = {loc: Buffer(LOCATIONS[loc], loc, bytes_at(address, _room(loc)))}


@cache
def _room(loc: str) -> int:
    """Bytes of a memory of a core: its largest capacity and what wide accesses reach."""
    room = library().raw("pto_vm_room")
    room.restype = ctypes.c_uint64
    return room(list(MEMORIES).index(loc))


class GenericCore(CoreState):
    """A core of the machine as executors see it. Its memory and registers are those of the machine."""

    def __init__(self, profile: Profile, spaces: tuple[int, ...]) -> None:
        self.profile = profile
        self.gm = GlobalMemory()
        self.buffers = {
            loc: Buffer(title, loc, bytes_at(start, _room(loc)), 0, profile.capacity[loc])
            for (loc, title), start in zip(LOCATIONS.items(), spaces, strict=True)
        }
        self._starts = dict(zip(LOCATIONS, spaces, strict=True))
        self.semantics = SEMANTICS["hw"]
        self.special = {}
        self.homes = {}
        self.out = _Out()
        self.port = Plain()
        self.watch = None
        self.interval = self.grid = None
        self.name = ""

    def now(self, words: tuple[int, ...]) -> None:
        """Take over what the machine says of the core at a call."""
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
        """Where a tile lies: in its memory, or where its elements were left: in an array or a FIFO."""
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
        """A byte of a memory on chip."""
        return self.buffers[loc], address - self._starts[loc]

    def in_global(self, address: int) -> tuple[Buffer, int]:
        """A byte of global memory; one that no array holds is in an empty buffer."""
        found = self._array(address)
        if found is not None:
            return found
        if self._only_arrays:
            return Buffer("", "gm", np.empty(0, np.uint8), address), 0
        return _everywhere(), address - _ANYWHERE

    def _array(self, address: int) -> tuple[Buffer, int] | None:
        """The array that holds a byte, or ends before it."""
        behind = None
        table, number = self._listed
        for buffer in _arrays(string_at(table, number * _ARRAY.size)) if number else ():
            at = address - buffer.base
            if 0 <= at < buffer.data.size:
                return buffer, at
            if at == buffer.data.size:
                behind = buffer, at
        return behind

    # -- other cores, hidden registers ----------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:  # type: ignore[override]
        made = Cluster(self.block)
        peers = zip(("vector", "vector", "cube"), ("vec", "vec", "mat"), self._peers, strict=True)
        made.cores = [_Peer(*peer) for peer in peers if peer[2]]  # type: ignore[assignment]
        return made

    def special_register(self, name: str, dtype: str, lanes: int = 1) -> Register:
        found = self.special.get(name)
        if found is None:
            found = self.special[name] = Register(dtype, lanes, name, SPECIAL)
            found.keep(np.frombuffer(string_at(self._hidden + _HIDDEN[name], 8), found.array.dtype))
        return found

    def keep_special(self) -> None:
        """Give the machine the hidden registers that an instruction used."""
        for name, register in self.special.items():
            memmove(self._hidden + _HIDDEN[name], register.array.tobytes(), 8)
        self.special.clear()


_seen_arrays: dict[tuple[bytes, ...], tuple[Buffer, ...]] = {}


def _arrays(table: bytes) -> tuple[Buffer, ...]:
    """The arrays of a launch, as the machine lists them."""
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
