"""Calls without a function in a pack: executors of the reference engine perform them, one instruction at a
time.

The machine calls one function of this process for all of them (native/vm/generic.hpp). The function finds the
call by the address of its words, reads the operands from the frame (`frames`), runs the executor and writes
the results back. Control flow, scalars, synchronization and all other calls stay native.

An executor that fails ends the launch like a compiled function, with a message and the line of the call. Any
other exception, also Ctrl-C, ends the launch, and is raised again after the launch has returned.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import memmove, string_at
from functools import cache
from itertools import count
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from ...image.calls import by_region
from ...image.generic import CallOrigin, always_compiled
from ...isa.profiles import Profile
from ..memory import MemoryFault
from ..reference import registry, scalars
from ..reference.instr import IllegalInstruction, Instr
from ..registers import Register, is_register, maker
from . import entries
from .frames import Read, Unreadable, Write, known, reader, writer
from .generic_core import CALL, SPACES, GenericCore
from .packs import library

#: The offsets of the fields that the host writes, which follow `CALL`.
_OUTCOME = CALL.size
TOUCHED = _OUTCOME + 8
_ENTRY = TOUCHED + 16
_TEXT = _ENTRY + entries.SIZE
_TEXT_SIZE = 1000
#: Outcomes of a call for the machine; the outcome stays 0 if an exception left `_perform`.
PERFORMED, FAILED, UNBOUND, PUSH, POP = (struct.pack("<Q", n) for n in range(1, 6))


# -- one call ------------------------------------------------------------------------------------------------


class Answer(Protocol):
    """Answers a call of the machine."""

    def perform(self, call: int, words: tuple[int, ...]) -> bytes:
        """Perform a call, and return its outcome."""
        ...


class GenericCall:
    """A call of a program, performed by the executor of its instruction."""

    def __init__(self, origin: CallOrigin, calls: GenericCalls) -> None:
        op, row = origin.op, origin.op.row
        if row is None or always_compiled(row):
            raise Unreadable(f"{op.name}")
        self.op, self.calls = op, calls
        self._entry = entries.FifoEntry(origin, calls.profile) if row.fifo else None
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
                elif declared.role != "tmp":  # the call does not use this scratch operand
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

    def perform(self, call: int, words: tuple[int, ...]) -> bytes:
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
            return failed(call, f"[{problem.code}] {problem}{fix}")
        except LookupError as missing:
            if isinstance(missing, KeyError | IndexError):
                raise
            return UNBOUND
        finally:
            self.calls.took(perf_counter() - started)

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

    def _outside(self, call: int, fault: MemoryFault) -> bytes:
        """Report an access outside its memory, with the messages of the machine (core/bounds.hpp)."""
        buffer, row = fault.buffer, self.op.row
        assert row is not None
        low, high = buffer.base + fault.low, buffer.base + fault.high
        if buffer.space == "gm":
            memmove(call + TOUCHED, struct.pack("<2Q", low % (1 << 64), high % (1 << 64)), 16)
        text = f"touches bytes {fault.low}..{fault.high} of {buffer.name}, which has {buffer.limit} bytes"
        if not buffer.name:
            text = f"touches {high - low} bytes at {low:#x}, which no array of the launch holds"
        return failed(call, f"[PTO-E2101] {row.name}: {text}")


def _placed(place: int | None) -> int:
    if place is None:
        raise Unreadable("a value without a place")
    return place


def failed(call: int, text: str) -> bytes:
    """Let a call fail with a message."""
    data = text.encode()[: _TEXT_SIZE - 1] + b"\0"
    memmove(call + _TEXT, data, len(data))
    return FAILED


# -- the calls of a program ----------------------------------------------------------------------------------

_calls: dict[int, Answer] = {}
_numbers = count(1)
#: Exceptions of calls, kept until their launch returns, by number.
_raised: dict[int, BaseException] = {}
_MOST_RAISED = 64  # several cores may fail, but the launch reports one
_RAISED = "raised in call "
#: The message of the machine if an exception left the function before it wrote a message.
_LEFT = "interrupted"


class GenericCalls:
    """The calls of a program without a function in a pack."""

    def __init__(
        self,
        owner: object,
        profile: Profile,
        origins: Mapping[int, CallOrigin | Answer],
        slow: Callable[[], None] | None = None,
        enough: float = 0.0,
    ) -> None:
        """`origins` are the operations of the calls, or the objects that answer them, by the addresses of
        their words, which are valid as long as their owner lives. `slow`, a method of the owner, is called
        once, after the calls have taken `enough` seconds. Raise `Unreadable` if only a compiled function can
        perform one of the operations."""
        self.profile = profile
        self.spent = 0.0  # seconds
        self._slow = weakref.WeakMethod(slow) if slow is not None else None
        self._enough = enough
        self.function = _function()
        self._cores: dict[tuple[int, ...], GenericCore] = {}
        made: dict[int, Answer] = {
            place: GenericCall(origin, self) if isinstance(origin, CallOrigin) else origin
            for place, origin in origins.items()
        }
        _calls.update(made)
        weakref.finalize(owner, _forget, tuple(made)).atexit = False

    def took(self, seconds: float) -> None:
        self.spent += seconds
        if self.spent > self._enough and self._slow is not None:
            slow, self._slow = self._slow(), None
            if slow is not None:
                slow()

    def core(self, words: tuple[int, ...]) -> GenericCore:
        spaces = words[2 : 2 + SPACES]
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


def _perform(call: int) -> None:
    # The result of a callback is undefined after an exception, so the outcome is written to memory.
    try:
        words = CALL.unpack(string_at(call, CALL.size))
        outcome = _calls[words[1]].perform(call, words)
    except BaseException as e:
        number = next(_numbers)
        _raised[number] = e
        _raised.pop(number - _MOST_RAISED, None)
        outcome = failed(call, f"{_RAISED}{number}: {type(e).__name__}: {e}")
    memmove(call + _OUTCOME, outcome, 8)


_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_perform)


@cache
def _function() -> int:
    """Return the address of the function that performs these calls."""
    entry = library().raw("pto_vm_generic")
    entry.restype = ctypes.c_void_p
    return entry(_callback)


@contextmanager
def launching() -> Iterator[None]:
    """Keep exceptions that signal handlers raise during calls. Handlers may run before the first line of
    `_perform` or after its last, outside of its `except`; Python then calls the hook for unraisable
    exceptions."""
    before = sys.unraisablehook

    def hook(problem: Any) -> None:
        traceback = problem.exc_traceback
        if traceback is not None and traceback.tb_frame.f_code is _perform.__code__:
            _raised[0] = problem.exc_value
            memmove(traceback.tb_frame.f_locals["call"] + _OUTCOME, bytes(8), 8)
        else:
            before(problem)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:  # else a later launch of another thread has replaced it
            sys.unraisablehook = before


def raised(text: str) -> BaseException | None:
    """Return the exception that ended a launch of this thread, by the message of the launch.

    Signal handlers run in the main thread. An exception of a handler counts also if another core failed
    first."""
    number = int(text.removeprefix(_RAISED).partition(":")[0]) if text.startswith(_RAISED) else 0
    found = _raised.pop(number, None) if number or text.startswith(_LEFT) else None
    if found is None and threading.current_thread() is threading.main_thread():
        interrupts = [n for n, e in list(_raised.items()) if isinstance(e, KeyboardInterrupt)]
        found = _raised.pop(interrupts[-1]) if interrupts else None
    return found
