"""Calls that no pack has: performed by the executors of the reference engine, one instruction at a time.

The machine calls one function of this process for all of them (native/vm/generic.hpp). It finds the call by
the address of its words, reads the operands from the frame (`frames`), runs the executor and writes the
results back. Control flow, scalars, synchronization and all other calls stay native.

An executor that fails ends the launch as a compiled function does: with a message and the line of the call.
Any other exception, Ctrl-C among them, ends the launch and is raised again when the launch has returned.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import weakref
from collections.abc import Callable, Mapping
from ctypes import memmove, string_at
from functools import cache
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from ...image.calls import by_region
from ...image.generic import CallOrigin, always_compiled
from ...isa.enums import ENUMS
from ...isa.machine import MEMORIES
from ...isa.profiles import LOCATIONS, Profile
from ..memory import Buffer, GlobalMemory, MemoryFault
from ..reference import registry, scalars
from ..reference.instr import IllegalInstruction, Instr, Plain
from ..reference.semantics import SEMANTICS
from ..reference.state import Cluster, CoreState
from ..registers import SPECIAL, Register, is_register, maker
from . import entries
from .frames import Read, Unreadable, Write, bytes_at, known, reader, writer
from .packs import library

_SPACES = len(MEMORIES)
#: `pto_generic` up to the words that the host writes, and where those are.
_CALL = struct.Struct(f"<2Q{_SPACES}Q3Q4Q3QQqQ2QQ")
_TOUCHED = _CALL.size
_ENTRY = _TOUCHED + 16
_TEXT = _ENTRY + entries.SIZE
_TEXT_SIZE = 1000
#: What the host came to; 0 where the function ended by an exception that it did not see.
PERFORMED, FAILED, UNBOUND, PUSH, POP = 1, 2, 3, 4, 5

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
        at = 2 + _SPACES
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


_seen_arrays: dict[bytes, tuple[Buffer, ...]] = {}


def _arrays(table: bytes) -> tuple[Buffer, ...]:
    """The arrays of a launch, as the machine lists them."""
    found = _seen_arrays.get(table)
    if found is None:
        made: list[Buffer] = []
        for data, size, name, owner in _ARRAY.iter_unpack(table):
            buffer = Buffer(string_at(name).decode(), "gm", bytes_at(data, size), data)
            buffer.rank = abs(owner) - 1 if owner else None
            made.append(buffer)
        if len(_seen_arrays) > 256:
            _seen_arrays.clear()
        found = _seen_arrays[table] = tuple(made)
    return found


@cache
def _everywhere() -> Buffer:
    return Buffer("memory", "gm", bytes_at(_ANYWHERE, (1 << 47) - _ANYWHERE), _ANYWHERE)


# -- one call ------------------------------------------------------------------------------------------------


class GenericCall:
    """A call of a program that the executor of its instruction performs."""

    def __init__(self, origin: CallOrigin, calls: GenericCalls) -> None:
        op, row = origin.op, origin.op.row
        if row is None or always_compiled(row):
            raise Unreadable(f"{op.name}")
        self.op, self.calls = op, calls
        self._entry = entries.Entry(origin, calls.profile) if row.fifo else None
        if self._entry is not None:
            return
        self._single: list[tuple[str, int, Read]] = []
        self._constants: dict[str, Any] = {}
        self._several: list[tuple[str, list[tuple[int, Read]]]] = []
        self._registers: list[tuple[str, int, Callable[[], Register], Write]] = []
        self._results: list[tuple[int, Write]] = []
        self._run = self._instruction
        if row.set == "scalar" and (row.expr or row.dialect in ("arith", "math")):
            self._evaluate = scalars.evaluator(op)
            self._run = self._scalar
        else:
            found = registry.find(row)
            if found is None:
                raise Unreadable(f"{op.name}")
            self._execute = found
        self._operands(origin)
        self._made(origin)

    def _operands(self, origin: CallOrigin) -> None:
        row = self.op.row
        assert row is not None
        profile, by_rows = self.calls.profile, by_region(row)
        counts = self.op.segments or (1,) * len(row.operands)
        at = 0
        for declared, number in zip(row.operands, counts, strict=True):
            given = list(zip(origin.operands, origin.places, strict=True))[at : at + number]
            at += number
            if declared.variadic:
                reads = [(_placed(place), reader(v, profile, by_rows)) for v, place in given]
                self._several.append((declared.name, reads))
                continue
            for value, place in given:
                if place is not None:
                    self._single.append((declared.name, place, reader(value, profile, by_rows)))
                elif declared.role != "tmp":  # scratch that the call does not take is of no use to it
                    self._constants[declared.name] = known(value)

    def _made(self, origin: CallOrigin) -> None:
        row = self.op.row
        assert row is not None
        for declared, value, place in zip(row.results, self.op.results, origin.results, strict=False):
            write = writer(value)
            if is_register(value.type):
                new = maker(value.type, value.name or declared.name)
                self._registers.append((declared.name, _placed(place), new, write))
            else:
                self._results.append((_placed(place), write))

    def perform(self, call: int, words: tuple[int, ...]) -> int:
        started = perf_counter()
        try:
            core = self.calls.core(words)
            with np.errstate(all="ignore"):
                if self._entry is None:
                    self._run(core, words[0])
                    return PERFORMED
                if words[-1]:
                    self._entry.move(core, words[0], call + _ENTRY, call)
                    return PERFORMED
                self._entry.ask(core, words[0], call + _ENTRY, call)
                return PUSH if self._entry.pushes else POP
        except MemoryFault as fault:
            return self._outside(call, fault)
        except IllegalInstruction as problem:
            fix = f"; fix: {problem.help}" if problem.help else ""
            return _failed(call, f"[{problem.code}] {problem}{fix}")
        except LookupError as missing:
            if isinstance(missing, KeyError | IndexError):
                raise
            return UNBOUND
        finally:
            self.calls.spent += perf_counter() - started

    def _instruction(self, core: GenericCore, frame: int) -> None:
        args = {name: read(core, frame + at) for name, at, read in self._single}
        if self._constants:
            args.update(self._constants)
        for name, reads in self._several:
            args[name] = [read(core, frame + at) for at, read in reads]
        for name, _, new, _ in self._registers:
            args[name] = new()
        found = self._execute(Instr(self.op, args, core, "S"))
        for name, at, _, write in self._registers:
            write(core, frame + at, args[name])
        self._give(core, frame, found)
        if core.special:
            core.keep_special()

    def _scalar(self, core: GenericCore, frame: int) -> None:
        args = {name: read(core, frame + at) for name, at, read in self._single}
        row = self.op.row
        assert row is not None
        values = [args[o.name] if o.name in args else self._constants[o.name] for o in row.operands]
        self._give(core, frame, self._evaluate(*values))

    def _give(self, core: GenericCore, frame: int, found: Any) -> None:
        results = self._results
        for (at, write), value in zip(results, found if len(results) > 1 else (found,), strict=False):
            write(core, frame + at, value)

    def _outside(self, call: int, fault: MemoryFault) -> int:
        """An access outside its memory, told as the machine tells it (core/bounds.hpp)."""
        buffer, row = fault.buffer, self.op.row
        assert row is not None
        low, high = buffer.base + fault.low, buffer.base + fault.high
        if buffer.space == "gm":
            memmove(call + _TOUCHED, struct.pack("<2Q", low % (1 << 64), high % (1 << 64)), 16)
        text = f"touches bytes {fault.low}..{fault.high} of {buffer.name}, which has {buffer.limit} bytes"
        if not buffer.name:
            text = f"touches {high - low} bytes at {low:#x}, which no array of the launch holds"
        return _failed(call, f"[PTO-E2101] {row.name.upper()}: {text}")


def _placed(place: int | None) -> int:
    if place is None:
        raise Unreadable("a value without a place")
    return place


def _failed(call: int, text: str) -> int:
    data = text.encode()[: _TEXT_SIZE - 1] + b"\0"
    memmove(call + _TEXT, data, len(data))
    return FAILED


# -- the calls of a program ----------------------------------------------------------------------------------

_calls: dict[int, GenericCall] = {}
_numbers = count(1)
#: What was raised in a call and waits for its launch to return, by number.
_raised: dict[int, BaseException] = {}
_RAISED = "raised in call "
#: What the machine says where the function was left before it could say anything.
_LEFT = "interrupted"


class GenericCalls:
    """The calls of a program that no pack has."""

    def __init__(self, owner: object, profile: Profile, origins: Mapping[int, CallOrigin]) -> None:
        """`origins` are the operations of the calls by the addresses of their words, which are there as long
        as their owner; raises `Unreadable` where only a compiled function does what one of them does."""
        self.profile = profile
        self.spent = 0.0  # seconds
        self.function = _function()
        self._cores: dict[tuple[int, ...], GenericCore] = {}
        made = {place: GenericCall(origin, self) for place, origin in origins.items()}
        _calls.update(made)
        weakref.finalize(owner, _forget, tuple(made)).atexit = False

    def core(self, words: tuple[int, ...]) -> GenericCore:
        spaces = words[2 : 2 + _SPACES]
        found = self._cores.get(spaces)
        if found is None:
            if len(self._cores) > 256:
                self._cores.clear()
            found = self._cores[spaces] = GenericCore(self.profile, spaces)
        found.now(words)
        return found


def _forget(places: tuple[int, ...]) -> None:
    for place in places:
        _calls.pop(place, None)


def _perform(call: int) -> int:
    try:
        words = _CALL.unpack(string_at(call, _CALL.size))
        return _calls[words[1]].perform(call, words)
    except BaseException as e:
        number = next(_numbers)
        _raised[number] = e
        return _failed(call, f"{_RAISED}{number}: {type(e).__name__}: {e}")


_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_perform)


@cache
def _function() -> int:
    """The address of the function that performs these calls."""
    before = sys.unraisablehook

    def hook(problem: Any) -> None:
        # Handlers of signals run before the first line of `_perform`, where its `except` does not see what
        # they raise.
        traceback = problem.exc_traceback
        if traceback is not None and traceback.tb_frame.f_code is _perform.__code__:
            _raised[0] = problem.exc_value
        else:
            before(problem)

    sys.unraisablehook = hook
    entry = library().raw("pto_vm_generic")
    entry.restype = ctypes.c_void_p
    return entry(_callback)


def raised(text: str) -> BaseException | None:
    """The exception of a call that ended a launch, by what the launch said."""
    if text.startswith(_RAISED):
        return _raised.pop(int(text.removeprefix(_RAISED).partition(":")[0]), None)
    return _raised.pop(0, None) if text.startswith(_LEFT) else None
