"""Sanitizers of the kernels of a graph, on the trace of each task (`task_traces`).

Every task is a separate launch, in the order of the starts of tasks: after the run, or during the run if
traces need too much memory. Of tasks with equal traces, only one is executed (`equal_tasks`). A problem of
several tasks is reported once.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..diag import Diagnostic
from ..engine.memory import Pointer, View
from ..engine.sanitize import Checks, Sample
from ..engine.sanitize.undefined_bytes import unwritten
from ..engine.watch import Event, Watcher
from ..perf.hazards import Hazard
from ..reading import read
from .equal_tasks import ByteUse, KnownFindings, TaskAccess, spans_of
from .task_traces import Block, Execution, TaskArray, TraceCollector, arrays_of
from .written_bytes import Defined, TaskShadow, Written


class _Accesses(Watcher):
    """Collects the global memory that a block touches. With `strict`, it reports reads of memory that no task
    has written before."""

    def __init__(self, defined: Defined | None, strict: bool, addresses: Mapping[Any, int]) -> None:
        self._defined, self._strict = defined, strict
        self._addresses = addresses
        self._numbers = {buffer: n for n, buffer in enumerate(addresses)}
        self.all: list[TaskAccess] = []
        self.found: list[Diagnostic] = []

    def finished(self, event: Event) -> None:
        for access in event.accesses:
            number = self._numbers.get(access.place.buffer) if access.space == "gm" else None
            if number is None:
                continue
            where = access.region if access.region is not None else access.bytes()
            place = self._place(event, access.place)
            self.all.append(TaskAccess(access.write, number, place, where))
            if self._defined is None:
                continue
            base = self._addresses[access.place.buffer]
            if access.write:
                self._defined.add(where, base)
            elif self._strict and not self.found and (lacking := self._defined.lacks(where, base)):
                core, name = event.core, access.place.buffer.name
                message = f"reads {lacking} bytes of {name} that no task has written before"
                help = "let a task write it first, and order the two"
                self.found.append(core.diagnostic(event.op, "PTO-E2203", message, help=help))

    def _place(self, event: Event, place: Any) -> int | None:
        """Return the offset of the operand of an access; the access may touch a part of it."""
        operands = [v for v in event.args.values() if getattr(v, "buffer", None) is place.buffer]
        of = place if any(v is place for v in operands) else operands[0] if len(operands) == 1 else None
        return of.offset if isinstance(of, View | Pointer) else None


class _Uses:
    """The accesses of tasks to their memory."""

    def __init__(self) -> None:
        self._rows = array("Q")  # task, address of the array, first byte, end, written
        #: By task the addresses of its parameters, by their names in reports.
        self._parameters: dict[int, dict[str, int]] = {}

    def add(
        self, task: int, arrays: Sequence[TaskArray], uses: Iterable[ByteUse], names: Sequence[str] = ()
    ) -> None:
        """Add the accesses of a task. `names` are the parameters of a program, in order."""
        numbers = {f"%{name}": f"parameter {n}" for n, name in enumerate(names)}
        self._parameters.setdefault(task, {}).update((numbers.get(a.name, a.name), a.address) for a in arrays)
        for n, first, last, write in uses:
            self._rows.extend((task, arrays[n].address, first, last, write))

    def apart(self, earlier: int, task: int, parameter: int) -> bool:
        """Return True if the bytes that a task touched are disjoint from those of earlier tasks in shared
        memory: many tasks share a tensor, each with its own rows. Return False if that is unknown, because
        the accesses of a task were not observed, or parts are interleaved.
        """
        address = self._parameters.get(task, {}).get(f"parameter {parameter}")
        rows = np.frombuffer(self._rows, np.uint64).reshape(-1, 5)
        if address is None or not all([(rows[:, 0] == t).any() for t in (earlier, task)]):
            return False
        mine = rows[(rows[:, 0] == task) & (rows[:, 1] == address)]
        rows = rows[rows[:, 0] < task]  # windows of one memory have different addresses
        for _, _, first, last, write in mine.tolist():
            met = (rows[:, 2] < last) & (rows[:, 3] > first)
            if (met if write else met & (rows[:, 4] == 1)).any():
                return False
        return True


#: The value of the bytes of fresh memory, if the runtime marks them.
POISON = 0xFF


class Watch:
    """The problems of the kernels of a run."""

    def __init__(self, hearing: TraceCollector, checks: Checks) -> None:
        self._hearing = hearing
        self._names = checks.names
        self._strict = checks.strict_undef
        self._alike = KnownFindings()
        self._sample = Sample(checks.sample)
        #: Tasks with blocks beyond the sample.
        self._skipped: set[int] = set()
        self._uses = _Uses()
        #: Diagnostics by code and location, with the blocks that have them: task, block, description.
        self._found: dict[Any, tuple[Diagnostic, list[tuple[int, int, str]]]] = {}
        hearing.judge = self._judge
        #: Kernels of tasks with several blocks; the blocks are executed one by one.
        self._split: set[str] = set()
        self._defined = Defined()
        self._copies_seen = True
        #: Memory of the caller, where undefined data is reported; None: all memory.
        self._outside: Written | None = None
        #: Addresses and sizes of memory that the host has written since the last block.
        self._given: deque[tuple[int, int]] = deque()

    def begin(self, given: Iterable[tuple[int, int]] | None) -> None:
        """Look for reads of uninitialized memory. `given` are addresses and sizes of memory that is
        initialized before the graph runs. None means that the host allocates memory and copies to it
        unobserved.
        """
        self._defined.written = Written()
        self._copies_seen = given is not None
        for address, size in given or ():
            self._defined.written.add_all(address, size)

    def outside(self, memory: Iterable[tuple[int, int]]) -> None:
        """Add memory of the caller and of other ranks, by addresses and sizes. All other memory lies between
        tasks, and may hold undefined data that has no effect.
        """
        self._outside = Written() if self._outside is None else self._outside
        for address, size in memory:
            self._outside.add_all(address, size)

    def given(self, address: int, size: int) -> None:
        """Record initialized memory: of the caller, or written by the host. Any thread may call this
        function.
        """
        self._given.append((address, size))

    def _copied(self, address: int, data: Any) -> None:
        """Record bytes that differ from fresh memory (`POISON`), because the host wrote them with plain
        stores. If copies of the host are not observed, an array with any such byte counts as written.
        """
        written = self._defined.written
        if written is None:
            return
        touched = data != POISON
        if self._copies_seen:
            written.add_where(address, touched)
        elif touched.any() and not written.knows(address, data.size):
            written.add_all(address, data.size)

    def problems(
        self, sites: Sequence[str] = (), blank_reads: Iterable[tuple[int, int, str]] = ()
    ) -> list[Diagnostic]:
        """Return each problem once, after the run. `sites` are the source locations of submissions,
        `blank_reads` the elements that the orchestration has read and that have the value of fresh memory
        (address, bytes, site).
        """
        for key, cores in self._hearing.told.items():
            self._judge(key, cores)
        for d, blocks in self._found.values():
            (task, _, first), *rest = sorted(set(blocks))  # independent of the order of execution
            others = [where for _, _, where in rest]
            d.message += f" in {first}"
            if task < len(sites) and sites[task]:
                d.notes.append((f"task {task} was submitted at {sites[task]}", None))
            if others:
                more = f", and {len(others) - 3} more" if len(others) > 3 else ""
                d.notes.append((f"the same in {'; '.join(others[:3])}{more}", None))
        return [*(d for d, _ in self._found.values()), *self._unwritten(blank_reads)]

    def _unwritten(self, blank_reads: Iterable[tuple[int, int, str]]) -> Iterator[Diagnostic]:
        """Yield a problem for each location where the orchestration reads memory that no task has written."""
        written, seen = self._followed, set[str]()
        self._take_given()
        for address, size, site in blank_reads:
            if written is None or site in seen or not written.lacks(np.arange(size), address):
                continue
            seen.add(site)
            file, _, line = site.rpartition(":")
            source, _ = read(file)
            span = source.at(int(line)) if source is not None else None
            where = "" if span is not None else f" at {site}"
            message = f"the orchestration reads an element{where} that no task has written before"
            yield Diagnostic("PTO-E2203", message, span, help="let a task write it first")

    def _take_given(self) -> None:
        while self._given:
            address, size = self._given.popleft()
            self._defined.give(address, size)

    def _judge(self, key: tuple[int, int], cores: Block) -> None:
        task, block = key
        self._take_given()
        for core in cores.values():
            for a in core.copies:
                self._copied(a.address, a.data)
        kernels = self._hearing.kernels
        name = ", ".join(dict.fromkeys(kernels[c.library] for c in cores.values()))
        where = task, block, f"task {task} ({name})" + (f", block {block}" if block else "")
        if block:
            self._split.add(name)
        told = self._alike.told(cores)
        known = self._alike.find(told, self._followed) if told is not None else None
        if known is not None:
            findings, uses = known
            for same in findings.problems:
                self._found[same][1].append(where)
            self._uses.add(task, arrays_of(cores), uses, self._names_of(cores))
            return
        arrays = arrays_of(cores)
        if not self._sample.take(name, tuple(a.size for a in arrays)):
            self._skipped.add(task)
            for a in arrays:  # the accesses are unknown, so all memory of the task counts as written
                self._defined.give(a.address, a.size)
            return
        problems: list[Any] = []
        found, accesses, own = self._execute(cores, block, where[2])
        for d in found:
            place = d.span.place if d.span is not None else (0, 0)
            file = d.span.source.name if d.span is not None else name
            same = (d.code, file, place)
            problems.append(same)
            self._found.setdefault(same, (d, []))[1].append(where)
        self._uses.add(task, arrays, [
            ByteUse(n, arrays[n].address + low, arrays[n].address + high, write)
            for (n, _, write), (low, high) in spans_of(accesses).items()
        ], self._names_of(cores))  # fmt: skip
        if told is not None and not own:
            self._alike.keep(told, problems, accesses)

    def _names_of(self, cores: Block) -> list[str]:
        """Return the names of the parameters of a program; none for a kernel in C++."""
        found = (self._hearing.programs.get(core.library) for core in cores.values())
        return next(([a.name for a in k.args] for k in found if k is not None), [])

    @property
    def unchecked(self) -> dict[str, str]:
        """Return, after `problems`, kernels that were not checked in full, with the reason."""
        found = dict.fromkeys(sorted(self._split), "races between its blocks")
        for name, why in self._sample.left().items():
            found[name] = f"{found[name]}; {why}" if name in found else why
        return found

    def hazards(self, found: Iterable[Hazard]) -> list[Hazard]:
        """Return, after the run, the declared hazards that the observed accesses do not disprove. Leave out
        hazards of tasks beyond the sample.
        """
        return [
            h
            for h in found
            if h.explicit
            or h.earlier < 0
            or not ({h.earlier, h.later} & self._skipped or self._uses.apart(h.earlier, h.later, h.arg))
        ]

    @property
    def _followed(self) -> Defined | None:
        return self._defined if "undef" in self._names else None

    def _execute(
        self, cores: Block, block: int, task: str
    ) -> tuple[list[Diagnostic], list[TaskAccess], bool]:
        """Return the problems of a block, its accesses to arrays, and True if another block with an equal
        trace may have other problems."""
        from ..engine.sanitize import watching
        from ..engine.sanitize.undef import Undef

        execution = Execution(self._hearing, cores, block)
        accesses = _Accesses(self._followed, self._strict, execution.addresses)
        watch = watching(self._names, None, False, first=[accesses])
        assert watch is not None
        if self._followed is not None and not self._strict:
            for buffer, address in execution.addresses.items():
                holds = self._outside is not None and not self._outside.knows(address, buffer.data.size)
                unwritten(buffer, TaskShadow(self._defined, address, task, holds))
        result = execution.run(watch)
        for d in accesses.found:
            execution.spell(d)
            result.diagnostics.append(d)
        problems = [d for d in result.diagnostics if d.severity == "error"]
        followed = any([w.followed for w in watch.watchers if isinstance(w, Undef)])
        return problems, accesses.all, bool(accesses.found) or followed
