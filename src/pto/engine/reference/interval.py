"""A vecscope at work: one item of pipe V, whose instructions run one after another on the vector core.

The scalar unit launches an interval and goes on. The interval keeps the values it captured as they were at
the launch; what it computes stays inside, but for what it writes to memory.
"""

from __future__ import annotations

from typing import Any

from ...ir.core import Operation
from .code import Code, Step
from .core import ENDED, MOVED, Core, Item, RunError
from .instr import IllegalInstruction

#: Steps between two looks at the limits of the launch.
QUANTUM = 10_000


class Interval(Item):
    """One launch of a vecscope. To other instructions it is one event: what happens inside is ordered by
    registers and by `mem_bar`."""

    __slots__ = ("code", "event", "poison", "regs", "start")

    def __init__(
        self, op: Operation, code: Code, start: int, regs: list[Any], poison: dict[int, Any]
    ) -> None:
        super().__init__(op)
        self.code = code
        self.start = start
        self.regs = regs
        self.poison = poison
        self.event: Any = None

    def perform(self, core: Core, pipe: str) -> None:
        frame = core.code, core.pc, core.regs, core.poison, core.frames, core.done
        core.code, core.pc, core.regs, core.poison, core.frames = (
            self.code, self.start, self.regs, self.poison, [],
        )  # fmt: skip
        core.interval, core.done = self, False
        core.grid.watch.interval_started(core, self.op)
        try:
            self._run(core)
            core.grid.watch.interval_ended(core, self.op)
        except IllegalInstruction as problem:
            raise core.illegal(core.code.ops[core.pc], problem) from None
        except LookupError as missing:
            raise core.unplaced(core.code.ops[core.pc], missing) from None
        finally:
            core.code, core.pc, core.regs, core.poison, core.frames, core.done = frame
            core.interval = None

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


def launch(op: Operation, start: int, after: int) -> Step:
    """The step that hands the interval from `start` on to pipe V and goes on at `after`."""

    def step(core: Core) -> int:
        # a pipe that is free runs it at once, and nothing can change what it captured
        at_once = core.eager and not core.queues["V"]
        regs = core.regs if at_once else list(core.regs)
        poison = core.poison if at_once else dict(core.poison)
        core.enqueue("V", Interval(op, core.code, start, regs, poison))
        return after

    return step


def end(core: Core) -> int:
    return ENDED
