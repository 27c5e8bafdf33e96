"""Inputs for a reader, in a process of their own: a crash, a hang or too much memory is a failure like any other.

The process does nothing but read: `tests/security/watch.py` refuses processes, sockets and files elsewhere. Which
input is being read stands in shared memory, so that a process that dies leaves its seed behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ..security.watch import SideEffect, no_side_effects

#: Seconds of CPU time and bytes that one input may take; the slowest ones take a fiftieth of both.
CPU = 20
MEMORY = 1 << 30
#: Seconds without progress after which a process is killed: it hangs inside one call of C.
STUCK = 300
_GROUP = 50  # inputs between two looks at side effects that were caught
_STATE = struct.Struct("<QQ")  # seed, inputs that are done


#: Makes a hostile input of a valid one; others of the same kind are there to take pieces from.
Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes]


class Reader(NamedTuple):
    """A reader of untrusted input: valid inputs, a function that makes hostile ones of them, and one that
    reads them. `read` returns how far an input got; it raises nothing, whatever the input. `examples` are
    those of an ordinary test run."""

    name: str
    corpus: Callable[[], Sequence[bytes]]
    make: Mutation
    read: Callable[[bytes], str]
    examples: int = 100
    is_text: bool = False

    def input(self, seed: int) -> bytes:
        """The input of a seed."""
        r = Random(f"{self.name} {seed}")
        return self.make(r.choice(self.corpus()), r, self.corpus())


class Failure(NamedTuple):
    seed: int
    kind: str
    message: str = ""


class Result(NamedTuple):
    """The result of a batch: inputs, CPU seconds, their progress, failures."""

    done: int
    seconds: float
    outcomes: Counter[str]
    failures: list[Failure]


class Hang(BaseException):
    """An input that takes too long; no handler of the reader catches it."""


def _hang(*_: Any) -> None:
    raise Hang


def failure_of(error: BaseException) -> tuple[str, str]:
    """The kind of a failure, by the place where it surfaces, and its message."""
    if isinstance(error, Hang):
        return "hang", f"more than {CPU} s of CPU time"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/pto/" in f.filename] or frames
    last = ours[-1]
    name = type(error).__name__
    if isinstance(error, RecursionError):
        return name, f"{Path(last.filename).name}"
    if isinstance(error, AssertionError):
        name = str(error).partition(":")[0][:80] or name
    return f"{name} at {Path(last.filename).name}:{last.lineno}", str(error)[:2000]


class Child:
    """A process that reads inputs: those of seeds, or one that is given, cut down while it fails in a way (`kind`)."""

    def __init__(
        self, reader: Reader, seeds: Sequence[int], data: bytes | None = None, kind: str = ""
    ) -> None:
        self.reader, self.seeds = reader, seeds
        self._data, self._kind = data, kind
        self._state = mmap.mmap(-1, _STATE.size)
        self._folder = tempfile.mkdtemp(prefix="pto-fuzz-")
        self.pipe, write = os.pipe()
        self.started = self._moved = time.monotonic()
        self._seen = b""
        self._peak = -1
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            self._run(write)
        os.close(write)

    # -- in the process ------------------------------------------------------------------------------------

    def _run(self, write: int) -> None:
        status = 1
        try:
            # Garbage of the parent, freed while an input is read, would hide the memory use of the input, and
            # so would free memory that the allocator keeps.
            gc.freeze()
            with contextlib.suppress(AttributeError):  # of glibc
                ctypes.CDLL(None).malloc_trim(0)
            faulthandler.disable()  # a crash is a result, and pytest has given its traceback a stream of its own
            silent = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(silent, descriptor)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            most = int(Path("/proc/self/statm").read_text().split()[5]) * mmap.PAGESIZE + 4 * MEMORY
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            signal.signal(signal.SIGPROF, _hang)
            with contextlib.suppress(OSError):
                self._peak = os.open("/proc/self/clear_refs", os.O_WRONLY)
            with open(write, "w") as pipe:
                json.dump(self._read() if not self._kind else self._cut(), pipe)
            status = 0
        finally:
            os._exit(status)

    def _read(self) -> tuple[dict[str, int], list[Failure]]:
        outcomes: Counter[str] = Counter()
        failures: list[Failure] = []
        folder = Path(self._folder)
        for at in range(0, len(self.seeds), _GROUP):
            group = self.seeds[at : at + _GROUP]
            found: list[Failure] = []
            try:
                with no_side_effects(folder):
                    for done, seed in enumerate(group, at + 1):
                        self._one(seed, outcomes, found)
                        _STATE.pack_into(self._state, 0, seed, done)
            except SideEffect:  # find out of which inputs
                found = [f for seed in group for f in self._alone(seed)]
            failures += found
        return dict(outcomes), failures

    def _alone(self, seed: int) -> list[Failure]:
        """Failures of one input, with its side effects."""
        failures: list[Failure] = []
        try:
            with no_side_effects(Path(self._folder)):
                self._one(seed, Counter(), failures)
        except SideEffect as e:
            failures.append(Failure(seed, f"side effect {str(e).split()[0]}", str(e)))
        return failures

    def _cut(self) -> tuple[dict[str, int], list[Failure]]:
        """The smaller input, as the message of a failure."""
        assert self._data is not None

        def fails(data: bytes) -> bool:
            self._data = data
            return any(f.kind == self._kind for f in self._alone(0))

        small = smaller(self.reader, self._data, fails, 1000)
        return {}, [Failure(0, self._kind, small.hex())]

    def _one(self, seed: int, outcomes: Counter[str], failures: list[Failure]) -> None:
        _STATE.pack_into(self._state, 0, seed, _STATE.unpack_from(self._state)[1])
        if self._peak >= 0:  # the system may have taken idle pages: the old peak hides the need of an input
            os.write(self._peak, b"5")  # see proc(5): the peak becomes the present use
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, CPU)
        try:
            data = self.reader.input(seed) if self._data is None else self._data
            outcomes[self.reader.read(data)] += 1
        except SideEffect:
            pass  # which the end of the block raises again
        except (Exception, Hang) as e:
            failures.append(Failure(seed, *failure_of(e)))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown << 10 > MEMORY:
            failures.append(Failure(seed, "memory", f"{grown >> 10} MiB more than before"))

    # -- outside -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """End the process if it makes no progress."""
        now = self._state[:]
        if now != self._seen:
            self._seen, self._moved = now, time.monotonic()
        elif time.monotonic() - self._moved > STUCK:
            os.kill(self.pid, signal.SIGKILL)

    def result(self) -> Result:
        """Wait for the process and return its findings."""
        said = b""
        while part := os.read(self.pipe, 1 << 16):
            said += part
        os.close(self.pipe)
        _, status, usage = os.wait4(self.pid, 0)
        seed, done = _STATE.unpack_from(self._state)
        shutil.rmtree(self._folder, ignore_errors=True)
        outcomes, failures = json.loads(said) if said else ({}, [])
        failures = [Failure(*f) for f in failures]
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            kind = "stuck in C" if number == signal.SIGKILL else f"crash by {signal.Signals(number).name}"
            failures.append(Failure(seed, kind))
        elif status:
            failures.append(Failure(seed, "the process ended", f"status {os.WEXITSTATUS(status)}"))
        return Result(done, usage.ru_utime + usage.ru_stime, Counter(outcomes), failures)


def tried(reader: Reader, seeds: Sequence[int]) -> Result:
    """All inputs of some seeds, also those behind one that crashes."""
    reader.corpus()  # once, for all processes
    done, seconds, outcomes, failures = 0, 0.0, Counter[str](), list[Failure]()
    while seeds:
        found = Child(reader, seeds).result()
        done, seconds = done + found.done, seconds + found.seconds
        outcomes += found.outcomes
        failures += found.failures
        seeds = seeds[found.done + 1 :]
    return Result(done, seconds, outcomes, failures)


def _tokens(data: bytes) -> list[bytes]:
    from .mutations import TOKEN  # which the process of a reader does not need

    return [
        t.encode("utf-8", "surrogateescape") for t in TOKEN.findall(data.decode("utf-8", "surrogateescape"))
    ]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _bytes(data: bytes) -> list[bytes]:
    return [data[n : n + 1] for n in range(len(data))]


def smaller(reader: Reader, data: bytes, fails: Callable[[bytes], bool], attempts: int) -> bytes:
    """A smaller input that still fails: parts are left out as long as that keeps the failure."""
    for split in (_lines, _tokens) if reader.is_text else (_bytes,):
        parts = split(data)
        size = max(1, len(parts) // 2)
        while size:
            at = 0
            while at < len(parts) and attempts > 0:
                rest = parts[:at] + parts[at + size :]
                attempts -= 1
                if fails(b"".join(rest)):
                    parts = rest
                else:
                    at += size
            size //= 2
        data = b"".join(parts)
    return data


def shrunk(reader: Reader, data: bytes, kind: str) -> bytes:
    """A smaller input that fails in the same way."""
    if not kind.startswith(("hang", "stuck", "memory", "crash", "the process")):
        failures = Child(reader, [0], data, kind).result().failures
        return bytes.fromhex(failures[0].message) if len(failures) == 1 else data

    def fails(data: bytes) -> bool:  # which may end the process
        failures = Child(reader, [0], data).result().failures
        return bool(failures) and failures[0].kind == kind

    return smaller(reader, data, fails, 200 if kind.startswith("crash") else 12)
