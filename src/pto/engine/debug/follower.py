"""The watcher that stops a launch: it counts moments, and compares them with the points to stop at.

A *moment* is a step of a core: the scalar unit (or a vecscope) reaches an operation, a pipe starts one, a
pipe finishes one. A launch is deterministic, so a moment is a number, and a second launch has the same
moments. Stops are before an operation: when the scalar unit reaches it or, for work of a pipe, when the pipe
starts it, which under a schedule may be much later. A wait starts when its condition holds. Writes and
findings stop after the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...diag import Diagnostic, Source
from ...ir.core import Operation
from ...ir.facts import enclosing
from ..access import Access
from ..elements import Array
from ..reference.core import Core
from ..sanitize.reports import Reports
from ..watch import Event, Watcher
from .expressions import ExpressionError
from .points import Breakpoint, Points, Watchpoint
from .stop import BREAK, ENTRY, FINDING, PAUSE, STEP, WATCH, Stop, Write, number
from .values import MOST, PLACES, ValueMatrix

if TYPE_CHECKING:
    from ..reference.grid import Grid

#: Ways to go on.
CONTINUE, STEP_LINE, STEP_OP, NEXT, FINISH, GOTO, SEARCH = (
    "continue", "step", "stepi", "next", "finish", "goto", "search",
)  # fmt: skip


class Resume(NamedTuple):
    """The way to go on: by a step of a core (any core, if `core` is None), over the regions of `op`, out of
    `op`, or to a moment; or a search for the last stop before a moment.
    """

    kind: str
    core: Core | None = None
    op: Operation | None = None
    depth: int = 0
    moment: int = 0
    #: For a search: the way to go on that would have stopped there, and the number of the core.
    way: str = CONTINUE
    who: int = -1


class Left(BaseException):
    """Ends a launch whose rest is not needed."""


def depth_of(core: Core) -> int:
    """Return the depth of calls of a core; a vecscope is deeper than all of them."""
    return len(core.frames) + (1 << 20 if core.interval is not None else 0)


class Stay:
    """The work of a core on a line. In Python and C++ a line may have many operations, in any order; a
    repeated operation begins the next execution of the line. In a recorded program each execution has its own
    operations; there, the same instruction at the same place counts as repeated."""

    __slots__ = ("calls", "line", "ops", "source")

    def __init__(self, source: Source, line: int) -> None:
        self.source = source
        self.line = line
        self.ops: set[Operation] = set()
        self.calls: set[tuple[int, str, str]] = set()

    def goes_on(self, op: Operation, event: Event | None) -> bool:
        """Record an operation; return True if it belongs to the same execution of the line."""
        if op in self.ops:
            return False
        self.ops.add(op)
        if event is None:
            return True
        call = op.start, op.name, str({n: str(a) for n, a in op.attrs.items()}) if op.attrs else ""
        known = call in self.calls
        self.calls.add(call)
        return not known


class Follower(Watcher):
    """Stops a launch at `points`, and as the last `Resume` orders. `halt` is called with the stop, and
    returns the next `Resume`.
    """

    def __init__(self, points: Points, halt: Callable[[Stop], Resume], order: Resume) -> None:
        self.points = points
        self.memory = any(w.enabled for w in points.watches)
        self._halt = halt
        self.now = 0
        #: By core: the last moment and its operation.
        self.last: dict[Core, tuple[int, Operation]] = {}
        #: The last active core, and its action.
        self.core: Core | None = None
        self.op: Operation | None = None
        self.event: Event | None = None
        self.grid: Grid = None  # type: ignore[assignment]
        #: For a search: the last moment at which the launch would have stopped.
        self.found = 0
        self._paused = False
        self._marks: dict[tuple[Source, int], tuple[Breakpoint, ...]] = {}
        self._lines: dict[tuple[Source, int], int] = {}
        self._counting: dict[tuple[Source, int, str], bool] = {}
        self._stays: dict[Core, Stay] = {}
        self._reports: Reports | None = None
        self._known = 0
        self._broken: object = None
        self._old: dict[tuple[Event, Watchpoint], list[tuple[ValueMatrix, range, range, Array]]] = {}
        self._numbers: dict[tuple[Core, Watchpoint], object] = {}
        #: Last places of watched values: by core, and (None) in global memory.
        self._homes: dict[tuple[Core | None, Watchpoint], tuple[ValueMatrix, range, range]] = {}
        self._ended: Core | None = None
        #: By function and name: the registers of values with that name, and the number of values.
        self._slots: dict[tuple[Any, str], tuple[int, list[tuple[int, Any]]]] = {}
        self.follow(order)

    def follow(self, order: Resume) -> None:
        self.order = order
        self.refresh()

    def refresh(self) -> None:
        """Update after a change of breakpoints or of the current `Resume`."""
        self._marks.clear()
        order = self.order
        self._any = bool(self.points.breaks)
        self._polls = any(w.enabled and not w.index.slices for w in self.points.watches)
        self._always = order.kind in (STEP_LINE, STEP_OP, NEXT, FINISH) or self._polls or self._paused
        self._always |= order.kind == SEARCH and order.way != CONTINUE
        self._alarm = order.moment if order.kind in (GOTO, SEARCH) else 0

    def pause(self) -> None:
        """Stop at the next opportunity; called by another thread."""
        self._paused = self._always = True

    # -- the launch ------------------------------------------------------------------------------------

    def launch_started(self, launch: Any) -> None:
        self.grid = launch
        for watcher in launch.watch.watchers:
            if isinstance(watcher, Reports):
                self._reports = watcher

    def core_ended(self, core: Any) -> None:
        if self.order.core is core:
            self.follow(self.order._replace(core=None, op=None, kind=STEP_LINE))
        if self._ended is not None:  # the user may go back to the last one; a core has a lot of memory
            self.last.pop(self._ended, None)
        self._ended = core
        self._stays.pop(core, None)
        self._numbers = {key: n for key, n in self._numbers.items() if key[0] is not core}
        self._homes = {key: home for key, home in self._homes.items() if key[0] is not core}

    # -- moments ---------------------------------------------------------------------------------------

    def reached(self, core: object, op: Operation) -> None:
        self._come(core, op, None)

    def started(self, event: Event) -> None:
        self._come(event.core, event.op, event)

    def _come(self, core: Any, op: Operation, event: Event | None) -> None:
        self.now = now = self.now + 1
        self.core, self.op, self.event = core, op, event
        fresh = self._fresh(core, op, event)
        found = self._reports is not None and len(self._reports.found) != self._known
        if self._always or found or now == self._alarm or (self._any and fresh and self._on(op)):
            self._decide(core, op, event, fresh)
        self.last[core] = now, op

    def _fresh(self, core: Core, op: Operation, event: Event | None) -> bool:
        """Return True if an operation begins an execution of its line; False without a line."""
        source = op.source
        if source is None:
            return False
        at = source, op.start
        line = self._lines.get(at)
        if line is None:
            line = self._lines[at] = source.place(op.start)[0]
        counts = self._counting.get((source, op.start, op.name))
        if counts is None:
            counts = self._counting[source, op.start, op.name] = self.points.places.counts(op, line)
        if not counts:
            return False
        stay = self._stays.get(core)
        if stay is not None and stay.line == line and stay.source is source and stay.goes_on(op, event):
            return False
        stay = self._stays[core] = Stay(source, line)
        stay.goes_on(op, event)
        return True

    def finished(self, event: Event) -> None:
        self.now = now = self.now + 1
        writes = self._writes(event) if self._old else []
        found = self._findings()
        if now != self._alarm and not writes and found is None:
            return
        reason = FINDING if found is not None else WATCH if writes else STEP
        stop = self._made(reason, event.core, event.op, event, after=True)
        stop.writes, stop.diagnostic = writes, found
        self._settle(stop)

    def _findings(self) -> Diagnostic | None:
        """Return the first new finding of sanitizers, or of the rules of instructions."""
        found: Diagnostic | None = None
        if not self.points.findings:
            return None
        if self._reports is not None and len(self._reports.found) != self._known:
            new = list(self._reports.found.values())[self._known :]
            self._known += len(new)
            found = new[0] if new else None
        if self.grid.broken is not self._broken:
            self._broken = self.grid.broken
            found = found or self.grid.broken.diagnostic  # type: ignore[union-attr]
        return None if found is None else self.grid.words.told(found)

    @property
    def findings(self) -> list[Diagnostic]:
        """Return all findings so far."""
        if self.grid is None:
            return []
        found = list(self._reports.found.values()) if self._reports is not None else []
        if not found and self.grid.broken is not None:
            found = [self.grid.broken.diagnostic]
        return [self.grid.words.told(d) for d in found]

    # -- deciding --------------------------------------------------------------------------------------

    def _on(self, op: Operation) -> tuple[Breakpoint, ...]:
        """Return the breakpoints on the line of an operation."""
        source = op.source
        if source is None:
            return ()
        found = self._marks.get((source, op.start))
        if found is None:
            line = source.place(op.start)[0]
            found = tuple(b for b in self.points.breaks if b.enabled and b.on(source, line))
            self._marks[source, op.start] = found
        return found

    def _decide(self, core: Core, op: Operation, event: Event | None, fresh: bool) -> None:
        order = self.order
        stop: Stop | None = None
        if self._any and fresh:
            stop = self._broken_at(core, op, event)
        if self._polls:
            stop = self._poll(core, op, event) or stop
        way = order.way if order.kind == SEARCH else order.kind
        mine = self._mine(core) and (fresh or way == STEP_OP)
        if stop is None and mine and self._steps(way, core, op):
            stop = self._made(ENTRY if self.now == 1 else STEP, core, op, event)
        found = self._findings()
        if found is not None:
            stop = stop or self._made(FINDING, core, op, event)
            stop.reason, stop.diagnostic = FINDING, found
        if stop is None and (self._paused or self.now == self._alarm):
            stop = self._made(PAUSE if self._paused else STEP, core, op, event)
        if stop is not None:
            self._settle(stop)

    def _mine(self, core: Core) -> bool:
        order = self.order
        if order.kind == SEARCH:
            return order.who < 0 or order.who == number(core)
        return order.core is None or order.core is core

    def _steps(self, way: str, core: Core, op: Operation) -> bool:
        order = self.order
        if way in (STEP_LINE, STEP_OP):
            return True
        if way == NEXT:
            return depth_of(core) <= order.depth and not _inside(op, order.op)
        if way == FINISH:
            deeper = depth_of(core) > order.depth
            return not deeper and (depth_of(core) < order.depth or not _inside(op, order.op, itself=True))
        return False

    def _broken_at(self, core: Core, op: Operation, event: Event | None) -> Stop | None:
        hit: list[Breakpoint] = []
        note = ""
        made = self._made(BREAK, core, op, event)
        for point in self._on(op):
            if self.now <= point.since:
                continue
            if point.condition is not None:
                try:
                    if not made.condition(point.condition):
                        continue
                except ExpressionError as e:
                    note = f"the condition of breakpoint {point.number} cannot be computed: {e}"
            point.hits += 1
            if point.wanted is None or point.wanted(point.hits):
                hit.append(point)
        made.breakpoints, made.note = hit, note
        return made if hit else None

    def _made(self, reason: str, core: Any, op: Operation, event: Event | None, after: bool = False) -> Stop:
        made = Stop(reason, self.now, self.grid, core, op, event, self.points.places.sign)
        made.after = after
        return made

    def _settle(self, stop: Stop) -> None:
        """Stop. A launch on its way to a moment stops only there; a search records the moment."""
        order = self.order
        if order.kind in (GOTO, SEARCH) and stop.moment < order.moment:
            self.found = stop.moment
            return
        if order.kind == SEARCH:
            raise Left
        self._paused = False
        self.follow(self._halt(stop))

    # -- writes ----------------------------------------------------------------------------------------

    def storing(self, event: Event, access: Access, data: Array) -> None:
        core: Any = event.core
        for watch in self.points.watches:
            if not watch.enabled:
                continue
            for matrix, rows, cols in self._places(core, watch):
                if not _touches(access, matrix, rows, cols):
                    continue
                known = self._old.setdefault((event, watch), [])
                if all(m.place.buffer is not matrix.place.buffer for m, *_ in known):
                    known.append((matrix, rows, cols, matrix.numbers(rows, cols).copy()))

    def _places(self, core: Core, watch: Watchpoint) -> list[tuple[ValueMatrix, range, range]]:
        """Return the places of a watched name on a core, and its known places in global memory."""
        found: list[tuple[ValueMatrix, range, range]] = []
        for value in self._named(core, watch.index.name):
            if isinstance(value[0], PLACES):
                try:
                    matrix = ValueMatrix(value[0], value[1])
                    rows, cols = matrix.part(watch.index.slices)
                    if 0 < len(rows) * len(cols) <= MOST:
                        found.append((matrix, rows, cols))
                        self._homes[None if matrix.place.buffer.space == "gm" else core, watch] = found[-1]
                except ExpressionError:
                    continue
        if not found:
            found = [p for (who, w), p in self._homes.items() if w is watch and who in (core, None)]
        return found

    def _named(self, core: Core, name: str) -> list[tuple[object, Any]]:
        """Return values of a name in the active functions of a core, and their types."""
        found: list[tuple[object, Any]] = []
        for code, regs in [(core.code, core.regs), *((f[0], f[2]) for f in reversed(core.frames))]:
            known, slots = self._slots.get((code, name), (-1, []))
            if known != len(code.slots):  # the code of a C++ kernel grows while it runs
                slots = [(slot, v.type) for v, slot in code.slots.items() if v.name == name]
                self._slots[code, name] = len(code.slots), slots
            found += [(regs[s], type) for s, type in slots if s < len(regs) and regs[s] is not None]
        return found

    def _writes(self, event: Event) -> list[Write]:
        """Return the writes of an event to watched places."""
        writes: list[Write] = []
        for key in [k for k in self._old if k[0] is event]:
            watch = key[1]
            for matrix, rows, cols, old in self._old.pop(key):
                new = matrix.numbers(rows, cols)
                changed = np.argwhere(~((old == new) | ((old != old) & (new != new))))
                r, c = (int(n) for n in changed[0]) if len(changed) else (0, 0)
                at = _indices(matrix, rows.start + r, cols.start + c)
                name = f"{watch.name}[{at}]"
                watch.hits += 1
                more = max(0, len(changed) - 1)
                writes.append(Write(watch, name, old[r, c].item(), new[r, c].item(), more))
        return writes

    def _poll(self, core: Core, op: Operation, event: Event | None) -> Stop | None:
        """Return a stop for a changed watched scalar, when the core reaches the next operation."""
        writes: list[Write] = []
        for watch in self.points.watches:
            if not watch.enabled or watch.index.slices:
                continue
            for value, _ in self._named(core, watch.index.name)[:1]:
                if not isinstance(value, int | float):
                    continue
                old = self._numbers.get((core, watch))
                self._numbers[core, watch] = value
                if old is not None and old != value:
                    watch.hits += 1
                    writes.append(Write(watch, watch.text, old, value))
        if not writes:
            return None
        stop = self._made(WATCH, core, op, event)
        stop.writes = writes
        return stop


def _indices(matrix: ValueMatrix, row: int, col: int) -> str:
    """Return the indices of an element in the spelling of users."""
    found: list[int] = [col]
    for size in reversed(matrix.dims[:-1]):
        row, index = divmod(row, size)
        found.insert(0, index)
    return ", ".join(map(str, found))


def _inside(op: Operation, outer: Operation | None, itself: bool = False) -> bool:
    if outer is None or (not itself and op is outer):
        return False
    return any(o is outer for o in enclosing(op))


def _touches(access: Access, matrix: ValueMatrix, rows: range, cols: range) -> bool:
    """Return True if an access shares bytes with a part of a place."""
    if access.place.buffer is not matrix.place.buffer:
        return False
    try:
        mine = matrix.bytes(rows, cols)
    except LookupError:  # it has no address yet
        return False
    first, last = access.bounds
    inside = mine[(mine >= first) & (mine < last)]
    if not inside.size:
        return False
    if access.region is not None and access.region.dense:
        return True
    return bool(np.isin(inside, access.bytes()).any())
