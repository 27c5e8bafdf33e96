"""Sanitizers over the traces of all ranks: `pto ranks --sanitize`.

After the ranks have ended, launches with the same number since the last barrier of all hosts are executed
together on the reference engine, like the ranks of `pto run --ranks`: with windows that all of them can
access, and signals that order their operations. The memory of a rank has its contents from the start of the
launch. Windows persist from launch to launch, with the writes of hosts in between.

A launch may wait for an event outside the launches that are executed with it: for a launch of another number,
or for the host. From there on, ranks are executed one by one, and every wait ends if the rank continued.
Checks that need the contents of windows or the order of ranks are skipped (`RankChecks.unchecked`).
"""

from __future__ import annotations

import io
import mmap
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..diag import Diagnostic, DiagnosticError, Source
from ..engine.cpp.places import LibraryPlaces
from ..engine.elements import Array
from ..engine.memory import Buffer, GlobalMemory
from ..engine.reference.code import Code
from ..engine.reference.core import Core, RunError
from ..engine.reference.lower import LoweredModule
from ..engine.result import LaunchResult
from ..engine.sanitize import OF_GRAPHS, watching
from ..engine.traced.kernel import TracedCore, TracedGrid, module_of, roles_of
from ..engine.traced.memory import Copied, TracedMemory
from ..engine.traced.sites import Sites
from ..engine.traced.spelling import CppWords, in_cpp
from ..engine.traced.stream import CoreRecords
from ..isa.profiles import Profile, profile
from .trace import HostBarrier, HostProgram, HostWrite, RankLaunch, Truncated, WindowName, events

#: The sanitizer that needs the contents of windows.
_OF_VALUES = "nan"
_FAILED, _STUCK = 1, 2
#: A signal without a wait, and all problems that only a comparison of ranks can find.
_NOT_AWAITED = "PTO-E2214"
_BETWEEN_RANKS = {f"PTO-E{n}" for n in range(2212, 2218)}
#: Problems that are found at the end of a kernel.
_AT_END = {"PTO-E0805", "PTO-E0807", _NOT_AWAITED}
_CODE = re.compile(r"\[(PTO-E\d+)\] ")

_Lowered = tuple[LoweredModule, list[tuple[str, int, Code]], dict[str, Sites]]
#: Launches with the same number, one per rank; None for a rank without one.
Beside = Sequence[RankLaunch | None]


class _Memories(TracedMemory):
    """Global memory, by the addresses of each rank."""

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.of_rank = [TracedMemory() for _ in range(ranks)]

    def at(self, address: int, rank: int = 0) -> tuple[Buffer, int]:
        return self.of_rank[rank].at(address)


class _RanksGrid(TracedGrid):
    """Launches of ranks that have ended."""

    beside: Beside
    #: True if ranks are executed one by one.
    alone = False

    @property
    def signalled(self) -> bool:
        """Return True if a wait for a signal ends because the rank continued after it."""
        return self.alone

    def begin(self, core: Core, code: Code) -> None:
        assert isinstance(core, TracedCore)
        core.start(code, [])
        launch = self.beside[core.rank]
        words = launch.words(core.block, core.kind, core.sub) if launch is not None else []
        core.begin(CoreRecords(words), self.sites[code.name])


class RankChecks:
    """Sanitizers of the launches of all ranks: the problems that they find, and the checks that were
    skipped."""

    def __init__(self, program: HostProgram, names: frozenset[str], files: Sequence[int]) -> None:
        """Prepare the sanitizers `names` for a program; `files` are the traces of the ranks."""
        self._program = program
        self._files = files
        self.names = names - {OF_GRAPHS}
        self._places = LibraryPlaces(program.path, base=0)
        self._memory = _Memories(len(files))
        self._lowered: dict[tuple[tuple[str, int], ...], _Lowered] = {}
        self._windows: dict[WindowName, Array] = {}
        #: The rank that owns a window.
        self._owners: dict[WindowName, int] = {}
        #: Number of checked launches of all ranks, and number of steps that execute launches together.
        self.launches = self._most = 0
        #: Checks that were skipped, with the reason.
        self.unchecked: list[str] = []
        if OF_GRAPHS in names:
            self.unchecked.append("tasks, because a host program has no graph of tasks")
        self._found: dict[tuple[str, str, tuple[int, int]], tuple[Diagnostic, list[int]]] = {}
        self._damaged: list[Diagnostic] = []

    def run(self) -> list[Diagnostic]:
        """Execute all launches. Return each problem once."""
        alone = several = False
        ranks = len(self._files)
        traces = [events(file, ranks) for file in self._files]
        ended: set[int] = set()
        while len(ended) < ranks:
            there = set(range(ranks)) - ended  # not yet at the next barrier
            writes: list[HostWrite] = []
            steps = 0
            while there:
                found = {rank: self._next(rank, traces[rank]) for rank in sorted(there)}
                beside = [
                    e if isinstance(e := found.get(rank), RankLaunch) else None for rank in range(ranks)
                ]
                if any(beside):
                    alone = self._step(beside, alone)
                    steps += 1
                for rank, event in found.items():
                    if not isinstance(event, RankLaunch):
                        there.remove(rank)
                        writes += event.host_writes if event is not None else ()
                        ended |= {rank} if event is None else set()
            self._write(writes)
            several = several or steps > 1
        if ranks > 1 and several and not alone:
            self.unchecked.append(
                "launches of different numbers against each other, because the first launch of a rank after "
                "a barrier of all hosts is executed beside the first of the others, and so on"
            )
        if self.launches:
            self.unchecked.append(
                "loads and stores through C++ pointers, because they are not calls that a trace records"
            )
        return [*self._damaged, *self._problems()]

    def _next(self, rank: int, trace: Iterator[RankLaunch | HostBarrier]) -> RankLaunch | HostBarrier | None:
        """Return the next event of a rank; None after the last event that can be read."""
        try:
            return next(trace, None)
        except Truncated:
            self.unchecked.append(
                f"rank {rank} after launch {self._most}, because its trace ends in the middle of a message"
            )
        except DiagnosticError as e:
            (d,) = e.diagnostics
            d.message += f"; operations of rank {rank} after launch {self._most} are not checked"
            self._damaged.append(d)
        return None

    def _step(self, beside: Beside, alone: bool) -> bool:
        """Execute launches together, or rank by rank if `alone`. Return True if ranks must be executed one by
        one from now on."""
        self._most += 1
        self.launches += sum(launch is not None for launch in beside)
        self._map_windows(beside)
        if not alone and (why := self._execute(beside)):
            kernels = ", ".join(dict.fromkeys(x.kernel for x in beside if x is not None))
            lost = "effects between ranks" + f", and {_OF_VALUES}," * (_OF_VALUES in self.names)
            self.unchecked.append(f"{lost} from launch {self._most} ({kernels}) on, because {why}")
            alone = True
        if alone:
            for rank in range(len(beside)):
                self._execute([x if r == rank else None for r, x in enumerate(beside)], True)
        return alone

    def _problems(self) -> Iterator[Diagnostic]:
        for d, numbers in self._found.values():
            if d.code == _NOT_AWAITED and numbers[-1] != self._most:
                continue  # a later launch may wait for it
            others = list(dict.fromkeys(numbers))[1:]
            if others:
                more = f", and {len(others) - 3} more" if len(others) > 3 else ""
                d.notes.append((f"the same in launch {', '.join(map(str, others[:3]))}{more}", None))
            yield d

    # -- memory ------------------------------------------------------------------------------------------

    def _map_windows(self, beside: Beside) -> None:
        """Make the windows of the launches, and apply the writes of hosts."""
        for rank, launch in enumerate(beside):
            for piece in launch.pieces if launch is not None else ():
                if piece.window is not None:
                    if piece.window not in self._windows:
                        self._windows[piece.window] = np.frombuffer(mmap.mmap(-1, piece.size), np.uint8)
                    if piece.own:
                        self._owners[piece.window] = rank
        for launch in beside:
            self._write(launch.host_writes if launch is not None else ())

    def _write(self, writes: Iterable[HostWrite]) -> None:
        for w in writes:
            if w.window in self._windows:
                self._windows[w.window][w.offset : w.offset + len(w.data)] = np.frombuffer(w.data, np.uint8)

    def _memory_of(self, beside: Beside) -> GlobalMemory:
        """Return the global memory of launches, and record the addresses of each rank."""
        gm = GlobalMemory()
        buffers: dict[WindowName, Buffer] = {}
        offset = 0
        for window in sorted(self._windows):
            array, owner = self._windows[window], self._owners.get(window, window[1])
            buffers[window] = gm.add_window(f"the window of rank {owner}", array, offset, owner)
            offset += array.size
        for rank, launch in enumerate(beside):
            of = f" of rank {rank}" * (len(beside) > 1)
            held = []
            for p in launch.pieces if launch is not None else ():
                if p.window is not None:
                    buffer = buffers[p.window]
                else:
                    data = launch.contents.get(p.key) if launch is not None else None
                    data = data if data is not None else np.zeros(p.size, np.uint8)
                    buffer = gm.add(f"{p.name}{of}", data)
                held.append(Copied(p.address, buffer, buffer.data))
            self._memory.of_rank[rank].hold(held)
        return gm

    # -- launches ----------------------------------------------------------------------------------------

    def _execute(self, beside: Beside, alone: bool = False) -> str:
        """Execute launches together and keep the problems. Return the reason if ranks must be executed one by
        one, or an empty text. With `alone`, there is only one rank."""
        there = [launch for launch in beside if launch is not None]
        if not there:
            return ""
        cores = there[0].cores
        if any(launch.cores != cores for launch in there):
            return "its kernels use different cores on different ranks"
        names = self.names - {_OF_VALUES} if alone else self.names
        watch = watching(names, None, False)
        if watch is None:
            return ""
        target = profile(there[0].target)
        program, roles, sites = self._lower(cores, target)
        nothing: list[dict[str, list[object]]] = [{kind: [] for kind in sites} for _ in beside]
        grid = _RanksGrid(
            program, target, self._memory_of(beside), roles, nothing,
            max(launch.blocks for launch in there), io.StringIO(), watch,
        )  # fmt: skip
        grid.beside, grid.alone, grid.sites = beside, alone, sites
        grid.words, grid.places = CppWords(), self._places
        result = LaunchResult("traced")
        ended = all(launch.status == 0 for launch in there)
        without = (_BETWEEN_RANKS if alone else set()) | (set() if ended else _AT_END)
        why = ""
        try:
            over = grid.go()
            broken = grid.broken
        except RunError as e:
            over, broken = True, e
            why = "its execution ends with an error" if ended else ""
        if not over and ended and not alone:
            return "it waits for an event outside the launches with the same number"
        if not over and any(launch.status == _STUCK for launch in there):
            broken = grid.stuck()
        if broken is not None:
            result.diagnostics.append(broken.diagnostic)
        watch.tell("launch_ended", result)
        if result.ok:
            result.diagnostics += self._failures(beside)
        for d in result.diagnostics:
            if d.code not in without:
                self._keep(d, there)
        if not ended:
            kernels = ", ".join(dict.fromkeys(launch.kernel for launch in there))
            self.unchecked.append(
                f"the state at the end of launch {self._most} ({kernels}), because it did not end"
            )
        return why

    def _lower(self, cores: Sequence[tuple[str, int]], target: Profile) -> _Lowered:
        """Return the lowered module, cores and call sites. They are made once for all launches."""
        key = tuple(cores)
        if key not in self._lowered:
            module = module_of(Source(self._program.path, ""), cores)
            self._lowered[key] = roles_of(
                module, target, True, cores,
                lambda p, code, block: Sites(
                    p, code, block, self._places, self._memory, shift=self._program.shift
                ),
            )  # fmt: skip
        return self._lowered[key]

    def _failures(self, beside: Beside) -> Iterator[Diagnostic]:
        """Yield the errors that kernels ended with, with their source locations."""
        for rank, launch in enumerate(beside):
            if launch is not None and launch.status == _FAILED:
                m = _CODE.match(launch.text)
                text = launch.text[m.end() :] if m is not None else launch.text
                of = f" (rank {rank})" * (len(beside) > 1)
                span = self._places.span(launch.frames)
                yield Diagnostic(m[1] if m is not None else "PTO-E2102", f"{text}{of}", span)

    def _keep(self, d: Diagnostic, there: Sequence[RankLaunch]) -> None:
        in_cpp(d)
        place = d.span.place if d.span is not None else (0, 0)
        key = d.code, d.span.source.name if d.span is not None else d.message, place
        if key not in self._found:
            kernels = ", ".join(dict.fromkeys(launch.kernel for launch in there))
            d.message += f" in launch {self._most} of {kernels}"
        self._found.setdefault(key, (d, []))[1].append(self._most)
