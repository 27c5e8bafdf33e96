"""Traces of the tasks of a graph, and their execution by the reference engine.

A kernel that is compiled with -DPTO_TRACED traces its calls while the graph runs (pto2/kernel_entry.hpp),
with the memory of its task as it was when the task started. The trace of a block is a separate launch on the
reference engine, with observers: sanitizers (`task_sanitizers`), or the model of time (`task_times`).
"""

from __future__ import annotations

import ctypes
import io
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..diag import Diagnostic, Source, Span
from ..engine.compiled.library import ArrayArgument, load
from ..engine.cpp.places import LibraryPlaces
from ..engine.entry import Launchable
from ..engine.memory import GlobalMemory
from ..engine.reference.core import RunError
from ..engine.result import LaunchResult
from ..engine.traced.calls import last_call, place_of
from ..engine.traced.contents import makes_such_calls
from ..engine.traced.kernel import TaskGrid, module_of, roles_of
from ..engine.traced.memory import Copied, TracedMemory
from ..engine.traced.sites import Sites
from ..engine.traced.spelling import in_cpp
from ..engine.traced.stream import CoreRecords
from ..engine.watch import Watchers
from ..isa.profiles import Profile

_KINDS = ("mix", "cube", "vector")
#: The state of a core whose last call has failed, in place of "more to come" and "over".
_FAILED = 2

_TOLD = ctypes.CFUNCTYPE(
    None, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int32,
    ctypes.POINTER(ArrayArgument), ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64,
)  # fmt: skip


class TaskArray(NamedTuple):
    """Memory of a task; without `data` if contents are not needed."""

    address: int
    size: int
    name: str
    data: Any


def _bytes_at(address: int, size: int) -> Any:
    """Return a view of memory."""
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


class CoreTrace:
    """The trace of one core of a task."""

    def __init__(self, library: str, arrays: list[TaskArray], copies: list[TaskArray]) -> None:
        self.library = library
        self.arrays = arrays
        #: The arrays whose contents were copied for this core.
        self.copies = copies
        #: Records, in order.
        self.parts: list[bytes] = []
        self.over = False

    @property
    def words(self) -> list[int]:
        """The records, as integers."""
        return memoryview(b"".join(self.parts)).cast("Q").tolist()

    def numbers(self) -> Any:
        """Return the records, as a new array."""
        return np.frombuffer(bytearray().join(self.parts), np.uint64)

    @property
    def held(self) -> int:
        """The bytes of memory that the trace needs."""
        return sum(map(len, self.parts)) + sum(a.size for a in self.copies)


def arrays_of(cores: Block) -> list[TaskArray]:
    """Return the memory of a block: one array for each address, the largest."""
    found: dict[int, TaskArray] = {}
    for key in sorted(cores):
        for a in cores[key].arrays:
            if a.address not in found or a.size > found[a.address].size:
                found[a.address] = a
    return list(found.values())


#: Arrays of at least this size are copied once, and then have the results of executed tasks; smaller ones are
#: copied for every task. Contents that addresses depend on are copied again whenever they have changed
#: (`makes_such_calls`).
LARGE = 1 << 20
#: Bytes that traces may take. Beyond this limit, the first tasks are checked while the graph runs.
MOST_HELD = 256 << 20
#: The number of cores that have to start after the end of a task before the task counts as complete, because
#: its cores may start one after another.
_LATER = 64

#: A block of a task: cores by kind and sub-block.
Block = Mapping[tuple[int, int], CoreTrace]


class TraceCollector:
    """The traces of the tasks of a run, kept until `take`."""

    def __init__(self, profile: Profile, contents: bool = True) -> None:
        """`contents`: keep the contents of memory at the start of tasks."""
        self.profile = profile
        self._contents = contents
        self._lock = threading.Lock()
        #: By task and block, in the order of their starts.
        self.told: dict[tuple[int, int], dict[tuple[int, int], CoreTrace]] = {}
        self.kernels: dict[str, str] = {}  # names by library
        self.programs: dict[str, Launchable] = {}  # kernels that are programs, by library
        self._libraries: list[ctypes.CDLL] = []
        self._keep: list[Any] = []
        self.places: dict[str, LibraryPlaces] = {}
        #: Called with complete blocks, in the order of their starts, when traces need too much memory.
        self.judge: Callable[[tuple[int, int], Block], None] | None = None
        self._held = 0
        #: The number of started cores now, and their number when the last core of a block ended.
        self._begun = 0
        self._ended: dict[tuple[int, int], int] = {}
        #: Large arrays by address and size.
        self._large: dict[tuple[int, int], Any] = {}
        self._programs: dict[Any, tuple[TracedMemory, Any, Any, Any]] = {}
        #: The core whose last call ended the run.
        self._failed: CoreTrace | None = None

    def hear(
        self, path: str, name: str, files: Sequence[str] = (), program: Launchable | None = None
    ) -> None:
        """Trace the kernel of a library, which is made from some files, or from a program."""
        fresh = self._contents and makes_such_calls(path)

        def told(
            task: int,
            block: int,
            blocks: int,
            core: int,
            over: int,
            arrays: Any,
            count: int,
            words: int,
            n: int,
        ) -> None:
            with self._lock:
                cores = self.told.setdefault((task, block), {})
                key = (core & 0xFF, core >> 8)
                mine = cores.get(key)
                if mine is None:
                    others = {(a.address, a.size): a for c in cores.values() for a in c.arrays}
                    made = [self._array(arrays[i], i, fresh, others) for i in range(count)]
                    mine = cores[key] = CoreTrace(path, [a for a, _ in made], [a for a, new in made if new])
                    self._begun += 1
                if n:
                    mine.parts.append(ctypes.string_at(words, 8 * n))
                if over == _FAILED:
                    self._failed = mine
                elif over:
                    mine.over = True
                    self._ended[task, block] = self._begun
                    self._held += mine.held
                if self._held > MOST_HELD and self.judge is not None:
                    self._go_ahead(self.judge)

        callback = _TOLD(told)
        self._keep.append(callback)
        self._libraries.append(load(path))
        self._libraries[-1].pto2_tell(callback)
        self.kernels[path] = name
        self.places[path] = LibraryPlaces(
            path, program.module.sources if program is not None else (), files=files
        )
        if program is not None:
            self.programs[path] = program

    def stop(self) -> None:
        """Stop tracing: a library may outlive the run."""
        for library in self._libraries:
            library.pto2_tell(None)

    def _array(
        self, array: Any, number: int, fresh: bool, others: Mapping[tuple[int, int], TaskArray]
    ) -> tuple[TaskArray, bool]:
        """Return an array with the contents that a block reads, and True if it was copied. `others` are the
        arrays of the block's cores, by address and size; `fresh`: its contents matter.
        """
        name = array.name.decode("utf-8", "replace") if array.name else f"argument {number}"
        address, size = int(array.data or 0), int(array.bytes)
        if not self._contents:
            return TaskArray(address, size, name, None), False
        if (address, size) in others:
            return others[address, size]._replace(name=name), False
        held = _bytes_at(address, size)
        data = self._large_at(address, size) if size >= LARGE else None
        copied = data is None or (fresh and not np.array_equal(data, held))
        if copied:
            data = held.copy()
            if size >= LARGE:
                # older copies within this array are obsolete
                covered = [k for k in self._large if address <= k[0] and k[0] + k[1] <= address + size]
                for key in covered:
                    del self._large[key]
                self._large[address, size] = data
        return TaskArray(address, size, name, data), copied

    def _large_at(self, address: int, size: int) -> Any:
        """Return the copy of a large array, or a part of one; None without a copy."""
        for (start, whole), data in reversed(self._large.items()):  # the last copy is the current one
            if start <= address and address + size <= start + whole:
                return data[address - start : address - start + size]
        return None

    def _go_ahead(self, judge: Callable[[tuple[int, int], Block], None]) -> None:
        """Pass complete blocks on, from the first one."""
        while self.told:
            key, cores = next(iter(self.told.items()))
            ended = self._ended.get(key, self._begun)
            if not all(c.over for c in cores.values()) or self._begun - ended < _LATER:
                break
            judge(key, cores)
            self._held -= sum(c.held for c in cores.values())
            del self.told[key], self._ended[key]

    def failed_at(self) -> Span | None:
        """Return the source location of the call that ended the run."""
        if self._failed is None:
            return None
        words = self._failed.words
        call = last_call(words)
        return None if call is None else place_of(self.places[self._failed.library], words, call)

    def take(self, task: int, block: int) -> Block | None:
        """Return the trace of a block. Drop it, unless contents are kept for later."""
        with self._lock:
            return self.told.get((task, block)) if self._contents else self.told.pop((task, block), None)

    def profile_of(self, cores: Block) -> Profile:
        """Return the profile that some kernels were compiled for: that of a program, or of the run."""
        kernels = (self.programs.get(core.library) for core in cores.values())
        return next((k.profile for k in kernels if k is not None), self.profile)

    def lowered(self, cores: Block, track: bool) -> tuple[TracedMemory, Any, Any, Any]:
        """Return the code of some kernels, shared by all tasks: memory, program, code of cores, and sites."""
        key = (track, *sorted((kind, core.library) for kind, core in cores.items()))
        if key not in self._programs:
            memory = TracedMemory(open=True)
            kinds = [(_KINDS[kind], sub) for kind, sub in sorted(cores)]
            libraries = {_KINDS[kind]: core.library for (kind, _), core in cores.items()}
            kernel = self.programs.get(library := libraries[kinds[0][0]])
            like = kernel.module if kernel is not None else None
            module = module_of(like.source if like is not None else Source(library, ""), kinds)
            made = roles_of(
                module, self.profile_of(cores), track, kinds,
                lambda p, code, at: Sites(p, code, at, self.places[libraries[code.name]], memory, like),
            )  # fmt: skip
            self._programs[key] = (memory, *made)
        return self._programs[key]


class Execution:
    """The execution of a block of a task on the reference engine."""

    def __init__(self, hearing: TraceCollector, cores: Block, block: int) -> None:
        self._hearing, self._cores, self._block = hearing, cores, block
        self._gm = GlobalMemory()
        self._held: list[Copied] = []
        for a in arrays_of(cores):
            data = a.data if a.data is not None else np.zeros(a.size, np.uint8)
            self._held.append(Copied(a.address, self._gm.add(a.name, data), data))
        #: Buffers, in the order of `arrays_of`, with their addresses.
        self.addresses = {c.buffer: c.address for c in self._held}

    def run(self, watch: Watchers | None, dry: bool = False) -> LaunchResult:
        """Run to the end; problems are in the result. With `dry`, nothing is computed: the trace decides the
        control flow."""
        tracks = watch is not None and watch.tracks
        memory, program, roles, sites = self._hearing.lowered(self._cores, tracks)
        memory.hold(self._held)
        grid = TaskGrid(
            program,
            self._hearing.profile_of(self._cores),
            self._gm,
            roles,
            [{kind: [] for kind in sites}],
            1,
            io.StringIO(),
            watch,
            dry=dry,
        )
        grid.sites = sites
        grid.number = self._block
        grid.feeds = {(_KINDS[kind], sub): CoreRecords(c.words) for (kind, sub), c in self._cores.items()}
        result = LaunchResult("traced")
        try:
            if not grid.go():
                result.diagnostics.append(grid.stuck().diagnostic)
        except RunError as e:
            result.diagnostics.append(e.diagnostic)
        if watch is not None:
            watch.tell("launch_ended", result)
        for d in result.diagnostics:
            self.spell(d)
        return result

    def spell(self, d: Diagnostic) -> None:
        """Rewrite a diagnostic of the reference engine in terms of C++, unless the kernels are programs."""
        if not all(core.library in self._hearing.programs for core in self._cores.values()):
            in_cpp(d)
