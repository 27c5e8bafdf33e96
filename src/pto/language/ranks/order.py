"""Happens-before order of tasks of several ranks, and races on the bytes of their windows.

A task is ordered after the tasks that it depends on, and after the earlier work of a task whose signal it has
waited for. Within a task, a signal is ordered after earlier work, and later work is ordered after a wait
(`pld.system`); the sanitizer `race` checks the order within a task. `recorded_order` applies the same rules
to each core of a task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...diag import Diagnostic, Span
from ...engine.access import Access, first_bytes
from ...engine.memory import Buffer, View
from ...engine.sanitize.signal_order import words_of
from ...engine.watch import INSTRUCTION, Event, WatchedCore, Watcher
from ...ir.core import Operation
from ..problems import RANKS

Array = Any
#: Rows of a window's table: two writers and two readers per element, of different tasks.
_WRITERS, _READERS = (0, 1), (2, 3)


class TaskClock:
    """Work that is ordered before a task: the last such part of each task, by task number, and a bit for each
    task that is over. Each notification of a task ends a part of it.
    """

    __slots__ = ("over", "parts")

    def __init__(self) -> None:
        self.over = 0
        self.parts: dict[int, int] = {}

    def join(self, other: TaskClock) -> None:
        self.over |= other.over
        mine = self.parts
        for number, part in other.parts.items():
            if mine.get(number, 0) < part:
                mine[number] = part


class Task:
    """A task, with the parts of other tasks that are ordered before it."""

    def __init__(self, number: int, name: str, place: Span | None) -> None:
        self.number = number
        self.name = name
        self.place = place
        self.rank: int | None = None
        self.of = number  # the number of the whole task, if this is one of its cores
        self.block = 0
        self.knows = TaskClock()

    def __str__(self) -> str:
        return f"'{self.name}'" + (f" of rank {self.rank}" if self.rank is not None else "")


class WindowAccess:
    """An access: its task, and the part of that task."""

    def __init__(self, task: Task, op: Operation, write: bool) -> None:
        self.task = task
        self.op = op
        self.write = write
        self.part = task.knows.parts[task.number]
        self.atomic = op.attr("atomicType") not in (None, "atomic_none")

    def before(self, task: Task) -> bool:
        """Return True if the access happens before the task's current part."""
        clock = task.knows
        return (
            task is self.task
            or clock.parts.get(self.task.number, 0) >= self.part
            or bool(clock.over >> self.task.of & 1)
        )


class WindowMemory:
    """An array with the windows of all ranks, and the numbers of the accesses per element, or per range of
    elements that begins at one of `begins`."""

    def __init__(self, name: str, array: Array, begins: Array | None = None) -> None:
        self.name = name
        self.array = array
        self.address: int = array.__array_interface__["data"][0]
        self.begins = begins
        self.seen = np.zeros((4, array.size if begins is None else len(begins)), np.int32)

    def index(self, at: int) -> list[int]:
        """Return the index of an element in the array."""
        element = at if self.begins is None else int(self.begins[at])
        return [int(i) for i in np.unravel_index(element, self.array.shape)]


class Order:
    """The order of all tasks of a run."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.diagnostics: list[Diagnostic] = []
        self._windows: list[WindowMemory] = []
        self._signals: dict[object, TaskClock] = {}  # by address, or another key
        self._host = TaskClock()
        self._touches: list[WindowAccess | None] = [None]
        #: The notifications of each task, with the parts that they end.
        self._notices: dict[int, tuple[Task, list[tuple[int, Operation]]]] = {}
        self._told: set[frozenset[Operation]] = set()

    def window(self, array: Array, name: str) -> None:
        """Register an array with the windows of all ranks, and its name in a task."""
        found = next((w for w in self._windows if w.array is array), None)
        if found is None:
            self._windows.append(WindowMemory(name, array))
        elif not found.name:
            found.name = name

    def begins(self, task: Task, after: Iterable[Task]) -> None:
        task.knows.join(self._host)
        for t in after:
            task.knows.join(t.knows)
            task.knows.over |= 1 << t.of
        task.knows.parts[task.number] = 1

    def meets_host(self, tasks: Iterable[Task]) -> None:
        """Order later submissions of the orchestrator after tasks that it has waited for."""
        for task in tasks:
            self._host.join(task.knows)

    def watcher(self, task: Task) -> Watcher:
        return _Looks(self, task)

    # ---- what happens in a task ----

    def notified(self, task: Task, at: object, op: Operation | None = None) -> None:
        """Record a notification by an operation, or another order between the cores of a task."""
        if (signal := self._signals.get(at)) is None:
            signal = self._signals[at] = TaskClock()
        signal.join(task.knows)
        if op is not None:
            self._notices.setdefault(task.number, (task, []))[1].append((task.knows.parts[task.number], op))
        task.knows.parts[task.number] += 1

    def awaited(self, task: Task, at: Iterable[object]) -> None:
        for one in at:
            if (signal := self._signals.get(one)) is not None:
                task.knows.join(signal)

    def touched(self, task: Task, access: Access, op: Operation) -> None:
        """Record an access to global memory."""
        low, high = access.bounds
        start = _address(access.place.buffer)
        for window in self._windows:
            if low < high and window.address <= start + low < window.address + window.array.nbytes:
                item = window.array.itemsize
                same = access.region is not None and access.region.bits == 8 * item
                at = first_bytes(access.place, access.where) if same else access.bytes()
                elements = np.unique((at + (start - window.address)) // item)
                self.look(window, elements, WindowAccess(task, op, access.write))

    def look(self, window: WindowMemory, at: Array, new: WindowAccess) -> None:
        """Compare an access to different elements or ranges of a window with the earlier ones."""
        for row in (*_WRITERS, *_READERS) if new.write else _WRITERS:
            found = window.seen[row][at]
            for number in np.unique(found):
                old = self._touches[number]
                if old is not None and not old.before(new.task) and not (old.atomic and new.atomic):
                    first = int(np.argmax(found == number))
                    early = row in _READERS and self._too_early(int(number), window.seen[:2, at[first]])
                    self._report(window, int(at[first]), *((new, old) if early else (old, new)))
        number = len(self._touches)
        self._touches.append(new)
        first, second = _WRITERS if new.write else _READERS
        there = window.seen[first][at]
        free = [n for n in np.unique(there) if (old := self._touches[n]) is None or old.before(new.task)]
        mine = np.isin(there, free)
        window.seen[first][at[mine]] = number
        window.seen[second][at[~mine]] = number

    def _too_early(self, reader: int, writers: Array) -> bool:
        """Return True if a read came before any other task had written: the read lacks a wait."""
        mine = self._touches[reader]
        ahead = (self._touches[n] for n in writers.tolist() if n < reader)
        return not any(t is not None and mine is not None and t.task is not mine.task for t in ahead)

    def _report(self, window: WindowMemory, at: int, old: WindowAccess, new: WindowAccess) -> None:
        pair = frozenset((old.op, new.op))
        if pair in self._told:
            return
        self._told.add(pair)
        row, *rest = window.index(at)
        rows = window.array.shape[0] // self.world
        which = f"{window.name or 'window'}[{', '.join(map(str, (row % rows, *rest)))}] on rank {row // rows}"
        did, does = ("writes" if t.write else "reads" for t in (old, new))
        found = Diagnostic(
            RANKS,
            f"race between ranks: {new.task} {does} {which}, which {old.task} {did}, in either order",
            new.op.loc,
            help="let one task notify after its access, and the other task wait for that: "
            "pld.system.notify and pld.system.wait, or pld.tensor.barrier between the two",
        )
        found.notes += [
            (f"{old.task} {did} it here", old.op.loc),
            (f"{old.task} was submitted here", old.task.place),
            (f"{new.task} was submitted here", new.task.place),
        ]
        if (early := self._notice(old.task, new.task)) is not None:
            notifier, op = early
            found.notes.insert(
                1, (f"{notifier} notifies here; the access of {old.task} is not ordered before that", op.loc)
            )
            found.help = (
                "let each core notify after its own accesses, and the other rank wait for all of them, "
                "or order the cores before the notification"
            )
        self.diagnostics.append(found)

    def _notice(self, old: Task, new: Task) -> tuple[Task, Operation] | None:
        """Return the last notification that one core waited for, by the other core of a block."""
        for number, part in new.knows.parts.items():
            other, notices = self._notices.get(number, (None, []))
            if other is not None and other is not old and (other.of, other.block) == (old.of, old.block):
                known = [op for ended, op in notices if ended <= part]
                if known:
                    return other, known[-1]
        return None


class _Looks(Watcher):
    """Observes the launch of a task."""

    wants = (INSTRUCTION,)

    def __init__(self, order: Order, task: Task) -> None:
        self.order = order
        self.task = task

    def finished(self, event: Event) -> None:
        if event.op.row is not None and event.op.row.family == "signal":
            return  # all tasks may access signals
        for access in event.accesses:
            if access.space == "gm":
                self.order.touched(self.task, access, event.op)

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        self.order.notified(self.task, _address(signal.buffer) + signal.offset)

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        self.order.awaited(self.task, [_address(signal.buffer) + n for n in words_of(signal)])


def _address(buffer: Buffer) -> int:
    return int(buffer.data.__array_interface__["data"][0])
