"""The state of a paused launch, in words: cores, pipes and their queues, flags, FIFOs, waits. Each function
gives lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...ir.core import Operation
from ..reference.core import Core, QueueItem
from ..reference.sync import flag_text
from .points import line_of
from .stop import Stop, at_of, label, number

if TYPE_CHECKING:
    from ..reference.grid import Grid
    from ..watch import Given

#: Limits for the items of a queue, cores and entries.
MOST = 16


def _written(op: Operation, grid: Grid) -> str:
    line, call = line_of(op), grid.words.call(op)
    return f"{call} (line {line})" if line else call


def all_cores(grid: Grid) -> list[Core]:
    """Return the active cores, in order."""
    return sorted(grid.active, key=number)


def doing(core: Core) -> str:
    """Return the current action of the scalar unit of a core."""
    if core.done:
        return "the scalar unit has ended" + (", pipes have not" if core.queued else "")
    at = at_of(core)
    if at is None:
        return "has done nothing yet"
    found = core.waiting
    if found:
        what = found.missing(core, "S") if isinstance(found, QueueItem) else found
        return f"at {_written(at, core.grid)}, waits for {what}"
    return f"at {_written(at, core.grid)}"


def cores(stop: Stop, mine: Core) -> Iterator[str]:
    """Yield lines for all active cores; a star marks the shown one."""
    grid = stop.grid
    active = all_cores(grid)
    for core in active[: 4 * MOST]:
        mark = "*" if core is mine else " "
        what = f"at {_written(stop.op, grid)}" if core is stop.at and stop.op is not None else doing(core)
        yield f"{mark} {number(core)}  {label(core)}  {what}"
    if len(active) > 4 * MOST:
        yield f"  .. and {len(active) - 4 * MOST} more"
    begun = sum(grid._started)  # type: ignore[reportPrivateUsage]
    ended = begun * len(grid.roles) - len(active)
    rest = (grid.all_blocks - begun) * len(grid.roles)
    if ended or rest:
        yield f"  ended: {ended}, not begun: {rest}"


def pipes(core: Core) -> Iterator[str]:
    """Yield the queued instructions of each pipe of a core."""
    any_queued = False
    for pipe, queue in core.queues.items():
        if not queue:
            continue
        any_queued = True
        head = queue[0]
        why = "ready" if head.ready(core, pipe) else f"waits for {head.missing(core, pipe)}"
        yield f"PIPE_{pipe}: {len(queue)} queued, the first {why}"
        for item in list(queue)[:MOST]:
            more = f" ({item.indices})" if item.indices else ""
            yield f"    {_written(item.op, core.grid)}{more}"
        if len(queue) > MOST:
            yield f"    .. and {len(queue) - MOST} more"
    if not any_queued:
        yield "no pipe has anything queued"


def flags(core: Core) -> Iterator[str]:
    """Yield the set flags, tokens and semaphores."""
    found = False
    for key, given in sorted(core.flags.items()):
        if given:
            found = True
            times = f", {len(given)} times" if len(given) > 1 else ""
            yield f"{flag_text(key)}: set{times}{_by(given[0])}"
    for id, token in sorted(core.tokens.items()):
        for pipe in token.held:
            found = True
            yield f"buffer token {id}: held by PIPE_{pipe}"
    for (who, id), given in sorted(core.cluster.semaphores.items()):
        if given:
            found = True
            yield f"semaphore {id} of {who or 'the core'}: {len(given)}{_by(given[0])}"
    if not found:
        yield "no flag, token or semaphore is set"


def _by(given: Given | None) -> str:
    return "" if given is None else f", by PIPE_{given.pipe} at line {line_of(given.op)}"


def fifos(core: Core) -> Iterator[str]:
    """Yield the FIFOs of a block with their entries."""
    found = core.cluster.fifos
    for fifo in found.values():
        pushed = max(fifo.heads.values(), default=0)
        popped = max(fifo.tails.values(), default=0)
        where = "global memory" if fifo.memory is not None else "on-chip memory"
        yield (
            f"{fifo.name}: {fifo.count} slots of {fifo.size} bytes in {where}; {pushed} pushes and "
            f"{popped} pops issued, {fifo.freed} entries freed"
        )
        for index, slot in sorted(fifo.entries.items())[:MOST]:
            if index < fifo.freed:
                continue
            data = slot.data
            what = f"{'x'.join(map(str, data.dims))}x{data.dtype}" if data is not None else "no data"
            done = "published" if slot.pushed else "being written"
            yield f"    entry {index} (slot {index % fifo.count}): {what}, {done}"
    if not found:
        yield "this block has no FIFO"


def waits(stop: Stop) -> Iterator[str]:
    """Yield the waits and their causes, over all active cores."""
    found = False
    for core in all_cores(stop.grid):
        for pipe, queue in core.queues.items():
            if queue and not queue[0].ready(core, pipe):
                found = True
                more = f"; {len(queue) - 1} more behind it" if len(queue) > 1 else ""
                at = _written(queue[0].op, core.grid)
                yield f"{label(core)}, PIPE_{pipe}: {at} waits for {queue[0].missing(core, pipe)}{more}"
        if not core.done and core.waiting and core is not stop.at:
            found = True
            yield f"{label(core)}: {doing(core).removeprefix('at ')}"
    if not found:
        yield "nobody waits"


def loops(stop: Stop) -> Iterator[str]:
    for name, value, bound, loop in stop.loops:
        yield f"%{name} = {value}, below {bound} (line {line_of(loop)})"
    if not stop.loops:
        yield "no loop around it"
