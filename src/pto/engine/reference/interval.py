"""An interval (one execution of a vecscope): one item of pipe V, whose instructions run one after another.

The scalar unit launches an interval and goes on. The interval keeps the values that it captured at the
launch. Its only results are its stores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from ...ir.core import Operation
from ..elements import Array, NumpyType
from ..memory import MemoryFault
from ..region import Region
from ..watch import VECSCOPE
from .code import Code, Step
from .core import ENDED, MOVED, Core, QueueItem, RunError
from .instr import IllegalInstruction, Instr, Place, Port, fault_at, start_of

#: The number of steps between two checks of the limits of the launch.
QUANTUM = 10_000
#: The number of stores that may be late at a time.
MOST_PENDING = 64


class Interval(QueueItem):
    """One launch of a vecscope. For other instructions it is one event; registers and `mem_bar` order the
    accesses inside."""

    __slots__ = ("code", "late", "poison", "regs", "start")
    what = VECSCOPE

    def __init__(
        self, op: Operation, code: Code, start: int, regs: list[Any], poison: dict[int, object]
    ) -> None:
        super().__init__(op)
        self.code = code
        self.start = start
        self.regs = regs
        self.poison = poison
        self.late: Late | None = None

    def barrier(self, core: Core, op: Operation, kind: str) -> None:
        """Perform a `mem_bar` of the interval."""
        if core.watch is not None:
            core.watch.tell("memory_barrier", core, op, kind)
        if self.late is not None and kind in ("VV_ALL", "VS_ALL", "VST_VLD", "VST_LD"):
            self.late.flush()

    def perform(self, core: Core, pipe: str) -> None:
        frame = core.code, core.pc, core.regs, core.poison, core.frames, core.done
        core.code, core.pc, core.regs, core.poison, core.frames = (
            self.code, self.start, self.regs, self.poison, [],
        )  # fmt: skip
        core.interval, core.done = self, False
        port = core.port
        if core.grid.schedule is not None and port.plain and core.profile.behaviour.late_stores:
            core.port = self.late = Late(core.grid.schedule.random)
        if core.watch is not None:
            core.watch.tell("vecscope_started", self.event)
        try:
            self._run(core)
            if self.late is not None:
                self.late.flush()
            if core.watch is not None:
                core.watch.tell("vecscope_ended", self.event)
        except IllegalInstruction as problem:
            raise core.illegal(core.code.ops[core.pc], problem) from None
        except LookupError as missing:
            raise core.unplaced(core.code.ops[core.pc], missing) from None
        finally:
            core.code, core.pc, core.regs, core.poison, core.frames, core.done = frame
            core.interval, core.port = None, port

    def _run(self, core: Core) -> None:
        steps, pc, ticks = core.code.steps, core.pc, 0
        while True:
            core.pc = pc
            after = steps[pc](core)
            if after is None:
                pc += 1
            elif after >= 0:
                pc = after
            elif after == MOVED:
                steps, pc = core.code.steps, core.pc
            elif after == ENDED:
                break
            else:
                op = core.code.ops[pc]
                raise RunError(core.diagnostic(op, "PTO-E2102", "cannot wait inside a vecscope"))
            ticks += 1
            if ticks == QUANTUM:
                core.grid.spend(core, ticks)
                ticks = 0
        core.ticks += ticks


class Late(Port):
    """Memory under an adversarial schedule: vector stores may become visible late, in their order, at the
    latest at a barrier or at the end of the interval."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.haste = random.choice((0.0, 0.1, 0.5))
        self.pending: deque[Callable[[], None]] = deque()

    def flush(self, count: int | None = None) -> None:
        for _ in range(len(self.pending) if count is None else count):
            self.pending.popleft()()

    def _before_load(self, place: Place) -> None:
        if place.buffer.space == "vec" and self.pending and self.random.random() < self.haste:
            self.flush(self.random.randint(1, len(self.pending)))

    def _postpone(self, i: Instr, place: Place, low: int, high: int, store: Callable[[], None]) -> None:
        if place.buffer.space != "vec" or i.name == "store_scalar":
            store()
            return
        if not 0 <= low <= high <= place.buffer.data.size:
            raise MemoryFault(place.buffer, low, high)
        self.pending.append(store)
        if len(self.pending) > MOST_PENDING:
            self.flush(1)

    def load(self, i: Instr, place: Place, region: Region, dtype: NumpyType) -> Array:
        self._before_load(place)
        return super().load(i, place, region, dtype)

    def load_at(self, i: Instr, place: Place, at: Array, dtype: NumpyType) -> Array:
        self._before_load(place)
        return super().load_at(i, place, at, dtype)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        kept, plain = codes.copy(), super().store
        self._postpone(i, place, *region.bounds, lambda: plain(i, place, region, kept))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        kept, plain = codes.copy(), super().store_at
        fault = fault_at(place.buffer, *start_of(place)[:1], at, start_of(place)[1]) if at.size else None
        low, high = (fault.low, fault.high) if fault is not None else (0, 0)
        self._postpone(i, place, low, high, lambda: plain(i, place, at, kept))


def launch(op: Operation, start: int, after: int) -> Step:
    """Return the step that issues the interval from `start` on to pipe V, and goes on at `after`."""

    def step(core: Core) -> int:
        # a free pipe runs the interval at once, before captured values can change
        at_once = core.eager and not core.queues["V"]
        regs = core.regs if at_once else list(core.regs)
        poison = core.poison if at_once else dict(core.poison)
        core.enqueue("V", Interval(op, core.code, start, regs, poison))
        return after

    return step


def end(core: Core) -> int:
    return ENDED
