"""Kernels of a graph under watch: what each task tells of its calls, executed by the reference engine.

A kernel that is compiled with -DPTO_TRACED tells of its calls while the graph runs (pto2/kernel_entry.hpp),
with the memory of its task as it was when the task began. Every task is a launch of its own on the reference
engine, with the sanitizers, in the order that tasks began: afterwards, or while the graph runs where too much
would have to be kept. What is wrong in several tasks is told once.
"""

from __future__ import annotations

import ctypes
import io
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..diag import Diagnostic, Source
from ..engine.compiled.library import ArrayArgument
from ..engine.cpp.places import Places
from ..engine.memory import GlobalMemory
from ..engine.reference.core import RunError
from ..engine.traced.kernel import TaskGrid, module_of, roles_of
from ..engine.traced.sites import Copied, Memory, Sites
from ..engine.traced.spelling import in_cpp
from ..engine.traced.stream import Recorded
from ..engine.watch import Event, Watcher
from ..isa.profiles import Profile

_KINDS = ("mix", "cube", "vector")

_TOLD = ctypes.CFUNCTYPE(
    None, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int32,
    ctypes.POINTER(ArrayArgument), ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64,
)  # fmt: skip


class _Core:
    """What one core told of a task."""

    def __init__(self, library: str, arrays: list[tuple[int, Any, str]]) -> None:
        self.library = library
        self.arrays = arrays
        self.words: list[int] = []
        self.over = False

    @property
    def held(self) -> int:
        """Bytes that it takes to keep it."""
        return 32 * len(self.words) + sum(d.nbytes for _, d, _ in self.arrays if d.nbytes < LARGE)


class Written:
    """Bytes of global memory that somebody wrote, by page."""

    _BITS = 12
    _FULL = np.ones(1 << _BITS, bool)

    def __init__(self) -> None:
        self._pages: dict[int, Any] = {}

    def add(self, addresses: Any) -> None:
        for page, at in self._by_page(addresses):
            found = self._pages.get(page)
            if found is self._FULL:
                continue
            if found is None:
                found = self._pages[page] = np.zeros(1 << self._BITS, bool)
            found[at] = True

    def add_all(self, address: int, size: int) -> None:
        """All of a piece of memory."""
        self.add_where(address, np.ones(1, bool), size)

    def add_where(self, address: int, mask: Any, size: int | None = None) -> None:
        """Those bytes of a piece of memory where a mask holds; a mask of one holds or does not for all."""
        bytes, end = 1 << self._BITS, address + (mask.size if size is None else size)
        for page in range(address >> self._BITS, (end + bytes - 1) >> self._BITS):
            low, high = max(address, page * bytes), min(end, (page + 1) * bytes)
            part = mask if size is not None else mask[low - address : high - address]
            if not part.any():
                continue
            if high - low == bytes and part.all():
                self._pages[page] = self._FULL  # which nobody writes to
                continue
            found = self._pages.get(page)
            if found is self._FULL:
                continue
            if found is None:
                found = self._pages[page] = np.zeros(bytes, bool)
            found[low - page * bytes : high - page * bytes] |= part

    def knows(self, address: int, size: int) -> bool:
        """Whether anybody wrote some of a piece of memory."""
        bytes, end = 1 << self._BITS, address + size
        for page in range(address >> self._BITS, (end + bytes - 1) >> self._BITS):
            found = self._pages.get(page)
            low, high = max(address, page * bytes), min(end, (page + 1) * bytes)
            if found is not None and found[low - page * bytes : high - page * bytes].any():
                return True
        return False

    def lacks(self, addresses: Any) -> int:
        """How many of some bytes nobody wrote."""
        none = np.zeros(1 << self._BITS, bool)
        return sum(int((~self._pages.get(page, none)[at]).sum()) for page, at in self._by_page(addresses))

    def _by_page(self, addresses: Any) -> Iterator[tuple[int, Any]]:
        pages, within = addresses >> self._BITS, addresses & (1 << self._BITS) - 1
        order = np.argsort(pages, kind="stable")
        pages, within = pages[order], within[order]
        starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]]) if pages.size else np.empty(0, int)
        for n, start in enumerate(starts):
            end = starts[n + 1] if n + 1 < len(starts) else pages.size
            yield int(pages[start]), within[start:end]


class _Writes(Watcher):
    """Reads of memory that no task has written before."""

    def __init__(self, written: Written, addresses: Mapping[Any, int]) -> None:
        self._written = written
        self._addresses = addresses
        self.found: list[Diagnostic] = []

    def finished(self, event: Event) -> None:
        for access in event.accesses:
            base = self._addresses.get(access.place.buffer) if access.space == "gm" else None
            if base is None:
                continue
            bytes = access.bytes() + base
            if access.write:
                self._written.add(bytes)
            elif (lacking := self._written.lacks(bytes)) and not self.found:
                core, name = event.core, access.place.buffer.name
                message = f"reads {lacking} bytes of {name} that no task has written before"
                help = "let a task write it first, and order the two"
                self.found.append(core.diagnostic(event.op, "PTO-E2203", message, help=help))


#: Every byte of memory that nobody wrote, where the runtime is told to mark it.
POISON = 0xFF
#: Arrays of so many bytes are copied once, and then hold what watched tasks wrote; others for every task.
LARGE = 1 << 20
#: Bytes that tasks may take before the first of them are executed while the graph runs.
MOST_HELD = 256 << 20
#: Tasks that begin after a task has ended before it is: cores of one task may begin one after the other.
_LATER = 64


class Watch:
    """What the tasks of a run tell."""

    def __init__(self, profile: Profile, names: frozenset[str]) -> None:
        self._profile = profile
        self._names = names
        self._lock = threading.Lock()
        #: By task and block: cores by kind and sub-block.
        self._told: dict[tuple[int, int], dict[tuple[int, int], _Core]] = {}
        self._keep: list[Any] = []
        self._held = 0
        #: Large arrays by address and size.
        self._large: dict[tuple[int, int], Any] = {}
        #: Tasks that have begun, by then: when the last core of a task ended.
        self._begun = 0
        self._ended: dict[tuple[int, int], int] = {}
        #: What was found, by code and place, with the tasks that it is the same in.
        self._found: dict[Any, tuple[Diagnostic, list[str]]] = {}
        self._kernels: dict[str, str] = {}  # names by library
        self._places: dict[str, Places] = {}
        self._programs: dict[Any, Any] = {}
        #: What was written, where it is known what was before.
        self._written: Written | None = None
        self._copies_seen = True

    def begin(self, given: Iterable[tuple[int, int]] | None) -> None:
        """Look for reads of what nobody wrote. `given` are addresses and sizes of memory that holds something
        before the graph runs; None: the host copies to memory that it makes itself, unseen."""
        self._written = Written()
        self._copies_seen = given is not None
        for address, size in given or ():
            self._written.add_all(address, size)

    def hear(self, path: str, name: str) -> None:
        """Listen to the kernel of a library."""

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
                cores = self._told.setdefault((task, block), {})
                key = (core & 0xFF, core >> 8)
                mine = cores.get(key)
                if mine is None:
                    mine = cores[key] = _Core(path, [self._copied(arrays[i], i) for i in range(count)])
                    self._begun += 1
                if n:
                    mine.words += memoryview(ctypes.string_at(words, 8 * n)).cast("Q").tolist()
                if over:
                    mine.over = True
                    self._ended[task, block] = self._begun
                    self._held += mine.held
                if self._held > MOST_HELD:
                    self._go_ahead()

        callback = _TOLD(told)
        self._keep.append(callback)
        ctypes.CDLL(path).pto2_tell(callback)
        self._kernels[path] = name

    def _copied(self, array: Any, number: int) -> tuple[int, Any, str]:
        """An array of a task as it is now: address, contents, name."""
        address, size = int(array.data or 0), array.bytes
        name = array.name.decode("utf-8", "replace") if array.name else f"argument {number}"
        data = self._large.get((address, size))
        if data is None:
            data = np.frombuffer(ctypes.string_at(address, size), np.uint8).copy()
            if self._written is not None:
                self._note_unseen(address, data)
        if size >= LARGE:
            self._large[address, size] = data
        return address, data, name

    def _note_unseen(self, address: int, data: Any) -> None:
        """What holds something else than fresh memory does (`POISON`) was written: by the host, by a plain
        store. Where copies of the host are not seen, all of an array is that holds anything."""
        assert self._written is not None
        touched = data != POISON
        if self._copies_seen:
            self._written.add_where(address, touched)
        elif touched.any() and not self._written.knows(address, data.size):
            self._written.add_all(address, data.size)

    # -- in the order that tasks began -----------------------------------------------------------------

    def _go_ahead(self) -> None:
        """Execute tasks that are over, from the first on."""
        for key, cores in list(self._told.items()):
            ended = self._ended.get(key, self._begun)
            if not all(c.over for c in cores.values()) or self._begun - ended < _LATER:
                break
            self._judge(key, cores)
            self._held -= sum(c.held for c in cores.values())
            del self._told[key], self._ended[key]

    def problems(self) -> list[Diagnostic]:
        """What is wrong with the kernels, each problem once."""
        for key, cores in self._told.items():
            self._judge(key, cores)
        self._told.clear()
        for d, others in self._found.values():
            if others:
                more = f", and {len(others) - 3} more" if len(others) > 3 else ""
                d.notes.append((f"the same in {'; '.join(others[:3])}{more}", None))
        return [d for d, _ in self._found.values()]

    def _judge(self, key: tuple[int, int], cores: Mapping[tuple[int, int], _Core]) -> None:
        task, block = key
        name = ", ".join(dict.fromkeys(self._kernels[c.library] for c in cores.values()))
        where = f"task {task} ({name})" + (f", block {block}" if block else "")
        for d in self._execute(cores, block):
            place = d.span.place if d.span is not None else (0, 0)
            file = d.span.source.name if d.span is not None else name
            same = (d.code, file, place)
            if same in self._found:
                self._found[same][1].append(where)
            else:
                d.message += f" in {where}"
                self._found[same] = (d, [])

    def _execute(self, cores: Mapping[tuple[int, int], _Core], block: int) -> list[Diagnostic]:
        from ..engine.entry import LaunchResult
        from ..engine.sanitize import watching

        gm = GlobalMemory()
        held: dict[int, Copied] = {}
        for core in cores.values():
            for address, data, name in core.arrays:
                if address not in held:
                    held[address] = Copied(address, gm.add(name, data), data)
        known = self._written if "undef" in self._names else None
        more = [] if known is None else [_Writes(known, {c.buffer: c.address for c in held.values()})]
        watch = watching(self._names, None, False, more)
        memory, program, roles, sites = self._lowered(cores, watch is not None and watch.tracks)
        memory.hold(list(held.values()))
        grid = TaskGrid(
            program, self._profile, gm, roles, [{kind: [] for kind in sites}], 1, io.StringIO(), watch
        )
        grid.sites = sites
        grid.number = block
        grid.feeds = {(_KINDS[kind], sub): Recorded(c.words) for (kind, sub), c in cores.items()}
        result = LaunchResult("traced")
        try:
            if not grid.go():
                result.diagnostics.append(grid.stuck().diagnostic)
        except RunError as e:
            result.diagnostics.append(e.diagnostic)
        if watch is not None:
            watch.tell("launch_ended", result)
        result.diagnostics += [d for written in more for d in written.found]
        for d in result.diagnostics:
            in_cpp(d)
        return [d for d in result.diagnostics if d.severity == "error"]

    def _lowered(self, cores: Mapping[tuple[int, int], _Core], track: bool) -> Any:
        """What is executed of some kernels: memory, program, code of cores and sites, once for all tasks."""
        key = tuple(sorted((kind, core.library) for kind, core in cores.items()))
        found = self._programs.get(key)
        if found is None:
            memory = Memory(open=True)
            kinds = [(_KINDS[kind], sub) for kind, sub in sorted(cores)]
            first = next(iter(cores.values()))
            made = roles_of(
                module_of(Source(first.library, ""), kinds), self._profile, track, kinds,
                lambda p, code, at: Sites(p, code, at, self._of(_library(cores, code.name)), memory),
            )  # fmt: skip
            found = self._programs[key] = (memory, *made)
        return found

    def _of(self, path: str) -> Places:
        if path not in self._places:
            self._places[path] = Places(path)
        return self._places[path]


def _library(cores: Mapping[tuple[int, int], _Core], kind: str) -> str:
    return next(c.library for (k, _), c in cores.items() if _KINDS[k] == kind)


def as_errors(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Hazards of the graph as errors."""
    for d in problems:
        if d.code == "PTO-E2611" and "used no instructions" not in d.message:
            d.severity = "error"
    return list(problems)
