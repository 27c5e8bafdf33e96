"""Adversarial schedules: run the pipes of a program in any order that its synchronization allows.

Every item is queued. A random choice selects the next step: of the scalar unit of a core, or of a pipe whose
first item is ready. Each run has its own preferences: in some runs loads complete as late as their wait
allows, in others the scalar unit runs far ahead. Instructions of a pipe without a fixed order may overtake
each other. A program with correct synchronization has the same result for every seed.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..memory import Tile
from ..reference.core import Core, QueueItem, Work
from .clock import ordered
from .race import CHAINED

if TYPE_CHECKING:
    from ..reference.grid import Grid

#: The number of items that a pipe may have queued before the scalar unit has to wait.
DEPTH = 256
#: An instruction may overtake fewer instructions than this.
WINDOW = 8


Choice = tuple[Core, str, int]


class Schedule:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.together = self.random.choice((1, 1, 2, 3))  # the number of blocks that are active at a time
        self.weights: dict[tuple[Core, str], float] = {}
        self.steps = 0
        self.progress = 0
        self.paces: dict[int, float] = {}  # by rank: some ranks run far ahead of others
        # the value of the progress counter at which a scalar unit could not continue
        self.stalled: dict[Core, int] = {}

    def go(self, grid: Grid) -> bool:
        """Run the launch as far as possible; return whether it has ended."""
        cores = -1
        self.stalled.clear()  # another process may have written a signal
        while True:
            if len(grid.active) != cores:
                if not grid.fill(self.together):
                    return True
                cores = len(grid.active)
            self.steps += 1
            if self.steps % 64 == 1:
                self.weights.clear()  # new preferences every 64 steps
                if self.steps % 1024 == 1:
                    self.paces.clear()
            choices = self._choices(grid)
            if not choices:
                if grid.admit():
                    cores = len(grid.active)
                    continue
                return False
            core, pipe, index = self._pick(choices) if len(choices) > 1 else choices[0]
            if pipe == "S":
                self._scalar(grid, core)
            else:
                self.progress += 1
                core.take(pipe, index)
            if core.done and core.idle:
                grid.finish(core)
            grid.moves = self.progress

    def _scalar(self, grid: Grid, core: Core) -> None:
        """Let the scalar unit do one or several steps."""
        before = core.ticks
        core.run(limit=self.random.choice((1, 4, 16)))
        if core.ticks != before or core.done:
            self.progress += 1
            grid.spend(core, core.ticks - before)
        else:
            self.stalled[core] = self.progress

    def _choices(self, grid: Grid) -> list[Choice]:
        found: list[Choice] = []
        for core in grid.active:
            full = False
            if core.queued:
                for pipe, queue in core.queues.items():
                    if not queue:
                        continue
                    full |= len(queue) >= DEPTH
                    for index in self._ready(core, pipe, queue):
                        found.append((core, pipe, index))
            if not core.done and not full and self.stalled.get(core) != self.progress:
                found.append((core, "S", 0))
        return found

    def _ready(self, core: Core, pipe: str, queue: Sequence[QueueItem]) -> list[int]:
        if not queue[0].ready(core, pipe):
            return []
        found = [0]
        if not ordered(core.profile.isa, pipe) and isinstance(queue[0], Work):
            for index in range(1, min(WINDOW, len(queue))):
                item = queue[index]
                if not item.movable or any(_follows(item, queue[n]) for n in range(index)):
                    break
                found.append(index)
        return found

    def _pace(self, core: Core) -> float:
        if core.grid.ranks == 1:
            return 1
        found = self.paces.get(core.rank)
        if found is None:
            found = self.paces[core.rank] = 10 ** self.random.uniform(-3, 0)
        return found

    def _pick(self, choices: list[Choice]) -> Choice:
        known = self.weights
        total = 0.0
        sums: list[float] = []
        for core, pipe, index in choices:
            weight = known.get((core, pipe))
            if weight is None:
                weight = known[core, pipe] = 10 ** self.random.uniform(-3, 0) * self._pace(core)
            total += weight if index == 0 else weight / 2
            sums.append(total)
        at = self.random.random() * total
        return choices[bisect_right(sums, at, 0, len(sums) - 1)]


def _follows(later: object, earlier: object) -> bool:
    """Return whether an instruction may not overtake an earlier one, because it reads exactly its result of
    `CHAINED` or more bytes.
    """
    if not (isinstance(later, Work) and isinstance(earlier, Work)):
        return True
    written = {
        (t.buffer, t.address, t.valid)
        for o in earlier.op.row.operands  # type: ignore[union-attr]
        if o.writes and isinstance(t := earlier.instr.args.get(o.name), Tile)
    }
    return any(
        (t.buffer, t.address, t.valid) in written and t.v_row * t.v_col * t.bits // 8 >= CHAINED
        for o in later.op.row.operands  # type: ignore[union-attr]
        if o.reads and isinstance(t := later.instr.args.get(o.name), Tile)
    )
