"""Races on the windows of ranks, from the records of a run on the task runtime.

The runtime records the accesses of each core to windows, and the flags, barriers and FIFO slots that order
the cores of a task, with numbers: a core that is ordered after another one has higher numbers. These numbers
and the dependencies of the tasks determine which accesses are ordered in every run. A core executes its
instructions one after another here; the sanitizer `race` checks the order of its pipes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...diag import Diagnostic, Span
from ...ir.core import Operation
from ...runtime.recorded import GIVES, TAKES, WindowUse
from .order import Order, Task, TaskClock, WindowAccess, WindowMemory

if TYPE_CHECKING:
    from ...ir.core import Module

Array = Any
_CORES = ("AIC", "AIV0", "AIV1")
#: Kinds of accesses, as the records have them. Larger ones are atomic, too.
_READ, _WRITE, _ADD = 0, 1, 2


class SubmittedTask(NamedTuple):
    """A task of a run: its function, its rank if it has one, and the source location of its submission."""

    name: str
    rank: int | None
    place: Span | None


class _ReportLine(NamedTuple):
    """The operations of one source location: the first one, and True if signals are among them, or are the
    only ones that access global memory."""

    op: Operation
    signals: bool
    only_signals: bool


class _Core(Task):
    """A core of a block of a task, with accesses that are not compared yet."""

    def __init__(self, number: int, of: int, block: int, core: int, task: SubmittedTask) -> None:
        super().__init__(number, task.name, task.place)
        self.rank, self.of, self.block = task.rank, of, block
        self._core = _CORES[core]
        self.pending: dict[tuple[Operation, int], list[WindowUse]] = {}

    def __str__(self) -> str:
        return f"{super().__str__()} ({self._core} of block {self.block})"


class _TaskOrder:
    """The work that is ordered before tasks and after them, from dependencies. Negative numbers are points
    in the run of the orchestrator. `ended` is called for each core of a task before others follow it."""

    def __init__(self, edges: Iterable[tuple[int, int]], ended: Callable[[_Core], None]) -> None:
        self._ended = ended
        self._before: dict[int, list[int]] = {}
        for earlier, later in edges:
            self._before.setdefault(later, []).append(earlier)
        self._begins: dict[int, TaskClock] = {}
        self.cores: dict[int, list[_Core]] = {}

    def begin(self, task: int) -> TaskClock:
        """Return the work before a task; all of it is over."""
        todo = [task]
        while todo:
            now = todo[-1]
            before = self._before.get(now, ())
            if now in self._begins:
                todo.pop()
            elif left := [t for t in before if t not in self._begins]:
                todo += left
            else:
                todo.pop()
                clock = self._begins[now] = TaskClock()
                for t in before:
                    clock.join(self._begins[t])
                    for core in self.cores.get(t, ()):
                        self._ended(core)
                        clock.join(core.knows)
                    if t >= 0:
                        clock.over |= 1 << t
        return self._begins[task]


def races(
    uses: Sequence[WindowUse],
    edges: Iterable[tuple[int, int]],
    windows: Sequence[tuple[str, Array]],
    modules: Sequence[Module | None],
    tasks: Mapping[int, SubmittedTask],
    world: int,
) -> list[Diagnostic]:
    """Return a warning for each pair of operations that access a window in either order. `uses` are the
    records by number, `windows` names and arrays of the windows of all ranks, `modules` the programs of
    kernels by number. If a program is missing, return no warnings."""
    if any(modules[k] is None for k in {use.kernel for use in uses}):
        return []
    replay = _Replay(uses, edges, windows, modules, tasks, world)
    for use in uses:
        replay.go(use)
    for core in replay.cores.values():
        replay.compare(core)
    for d in replay.order.diagnostics:
        d.severity = "warning"
    return replay.order.diagnostics


class _Replay:
    """Goes through the records in their order."""

    def __init__(
        self,
        uses: Sequence[WindowUse],
        edges: Iterable[tuple[int, int]],
        windows: Sequence[tuple[str, Array]],
        modules: Sequence[Module | None],
        tasks: Mapping[int, SubmittedTask],
        world: int,
    ) -> None:
        self.order = Order(world)
        self.cores: dict[tuple[int, int, int], _Core] = {}
        self._tasks = tasks
        self._modules = modules
        self._lines: dict[int, dict[int, _ReportLine]] = {}
        self._signals = self._words(uses)
        self._graph = _TaskOrder(edges, self.compare)
        self._windows = [
            (WindowMemory(name, array, begins), begins) for name, array, begins in _ranges(uses, windows)
        ]

    def go(self, use: WindowUse) -> None:
        core = self.cores.get((use.task, use.block, use.core)) or self._start(use)
        if use.use in (GIVES, TAKES):
            self.compare(core)
            through = use.task, use.first, use.last
            if use.use == GIVES:
                self.order.notified(core, through)
            else:
                self.order.awaited(core, [through])
            return
        line = self._line(use)
        if line is None:
            return
        if not line.signals or use.first not in self._signals:
            core.pending.setdefault((line.op, use.use), []).append(use)
            return
        self.compare(core)
        if use.use == _READ:
            self.order.awaited(core, range(use.first, use.last, 4))
        else:
            for word in range(use.first, use.last, 4):
                self.order.notified(core, word, line.op)

    def compare(self, core: _Core) -> None:
        """Compare the pending accesses of a core with those of others."""
        for (op, kind), uses in core.pending.items():
            touch = WindowAccess(core, op, kind != _READ)
            touch.atomic = kind > _WRITE
            for window, begins in self._windows:
                at = _indices(uses, window, begins)
                if at.size:
                    self.order.look(window, at, touch)
        core.pending.clear()

    def _start(self, use: WindowUse) -> _Core:
        task = self._tasks[use.task]
        core = _Core(len(self.cores), use.task, use.block, use.core, task)
        core.knows.join(self._graph.begin(use.task))
        core.knows.parts[core.number] = 1
        self.cores[use.task, use.block, use.core] = core
        self._graph.cores.setdefault(use.task, []).append(core)
        return core

    def _line(self, use: WindowUse) -> _ReportLine | None:
        known = self._lines.get(use.kernel)
        if known is None:
            module = self._modules[use.kernel]
            assert module is not None
            places: dict[int, list[Operation]] = {}
            for op in module.walk():
                places.setdefault(module.mark(op), []).append(op)
            known = self._lines[use.kernel] = {mark: _line(ops) for mark, ops in places.items()}
        return known.get(use.mark)

    def _words(self, uses: Iterable[WindowUse]) -> set[int]:
        """Return the addresses of signals. A collective, which is one source location, adds to its signals,
        and to nothing else."""
        found: set[int] = set()
        for use in uses:
            line = self._line(use) if use.use not in (GIVES, TAKES) else None
            if line is not None and line.signals and (line.only_signals or use.use == _ADD):
                found.update(range(use.first, use.last, 4))
        return found


def _line(ops: list[Operation]) -> _ReportLine:
    rows = [op.row for op in ops if op.row is not None]
    signals = any(row.family == "signal" for row in rows)
    return _ReportLine(
        ops[0], signals, all(row.family == "signal" or row.pipe in ("", "S", "pipe") for row in rows)
    )


def _ranges(
    uses: Sequence[WindowUse], windows: Sequence[tuple[str, Array]]
) -> Iterable[tuple[str, Array, Array]]:
    """Yield the windows with the elements at which accesses begin or end."""
    found = np.array([(u.first, u.last) for u in uses if u.use not in (GIVES, TAKES)], np.int64).reshape(
        -1, 2
    )
    for name, array in windows:
        address = array.__array_interface__["data"][0]
        mine = found[(found[:, 0] >= address) & (found[:, 0] < address + array.nbytes)]
        yield name, array, np.unique((mine - address) // array.itemsize)


def _indices(uses: Sequence[WindowUse], window: WindowMemory, begins: Array) -> Array:
    """Return the ranges of a window that accesses touch."""
    size = window.array.itemsize
    at = np.array([(u.first, u.last) for u in uses], np.int64) - window.address
    at = at[(at[:, 0] >= 0) & (at[:, 0] < window.array.nbytes)]
    low, high = np.searchsorted(begins, at[:, 0] // size), np.searchsorted(begins, at[:, 1] // size)
    return np.unique(np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)] or [low]))
