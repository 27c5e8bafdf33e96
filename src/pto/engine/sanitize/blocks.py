"""Races between blocks, also of different ranks: unordered accesses of two blocks to the same bytes of global
memory, at least one of them a write."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...diag import Diagnostic
from ...ir.core import Operation
from ...ir.multi_tiles import name_in_messages
from ..elements import Array
from ..memory import Buffer
from ..watch import SESSION, WatchedLaunch
from .clock import GRID
from .race_access import ADDS, APART, SETS, Touch, hazard
from .reports import Reports, bytes_of
from .signal_order import Signals

#: Rows of the table of a buffer. Each byte has two writers and two readers, of different blocks, so that a
#: new access is compared with at least one access of another block.
_WRITERS, _READERS = (0, 1), (2, 3)


class BlockMap:
    """The last accesses to each byte of global memory. Accesses have numbers from 1; 0 means no access."""

    def __init__(self, launch: WatchedLaunch, reports: Reports, signals: Signals) -> None:
        self.launch = launch
        self.signals = signals
        self.blocks = launch.all_blocks
        self.reports = reports
        self.ops: list[Operation | None] = [None]
        self.pipes: list[str] = [""]
        self.block = np.full(1024, -1, np.int32)
        self.agent = np.zeros(1024, np.int32)
        self.sequence = np.zeros(1024, np.int64)
        self.atomic = np.zeros(1024, np.int8)
        self._limits: dict[object, Array] = {}

    def access(self, new: Touch, buffer: Buffer) -> None:
        table = buffer.shadows.get("blocks")
        if table is None:
            table = buffer.shadows["blocks"] = np.zeros((4, buffer.data.size), np.int32)
        cells = _Cells(table, new)
        number = self._number(new)
        for row in (*_WRITERS, *_READERS) if new.write else _WRITERS:
            found = cells.get(row)
            if found.any():
                bad = self._unordered(new, found)
                if bad is not None:
                    old = int(found[bad][0])
                    early = row in _READERS and self._too_early(old, cells, bad)
                    self._report(new, old, row in _WRITERS, *cells.bounds(bad), early=early)
                    break
        first, second = _WRITERS if new.write else _READERS
        left = self._remember(new, cells, first, number, None)
        if left is not None:
            self._remember(new, cells, second, number, left)

    def _too_early(self, reader: int, cells: _Cells, where: Array) -> bool:
        """Return True if a read of another rank's data came before any data: no other block had written
        these bytes, so the read lacks a wait. Otherwise the read did wait, and the next write comes too soon.
        """
        writers = np.stack([cells.get(row)[where] for row in _WRITERS])
        others = (self.block[writers] != self.block[reader]) & (writers < reader)
        return not (others & (writers != 0)).any()

    def _number(self, new: Touch) -> int:
        number = len(self.ops)
        if number == len(self.block):
            self.block, self.agent, self.sequence, self.atomic = (
                np.concatenate([a, np.zeros_like(a)])
                for a in (self.block, self.agent, self.sequence, self.atomic)
            )
        self.block[number], self.agent[number] = new.core.index, new.agent
        self.sequence[number], self.atomic[number] = new.sequence, new.atomic
        self.ops.append(new.op)
        self.pipes.append(new.pipe)
        return number

    def _unordered(self, new: Touch, found: Array) -> Array | None:
        """Return a mask of those accesses in `found` that belong to other blocks and are not ordered before
        the new access; None if there are none.
        """
        if _uniform(found):
            one = found[:1, :1]
            return None if self._unordered_each(new, one) is None else np.ones(found.shape, bool)
        return self._unordered_each(new, found)

    def _unordered_each(self, new: Touch, found: Array) -> Array | None:
        bad = (found != 0) & (self.block[found] != new.core.index)
        if new.atomic:
            bad &= ~_may_meet(new.atomic)[self.atomic[found]]
        if bad.any():
            bad &= ~self._known(new, found)
        return bad if bad.any() else None

    def _remember(
        self, new: Touch, cells: _Cells, row: int, number: int, where: Array | None
    ) -> Array | None:
        """Put the new access into the cells where it replaces the old entry: an empty entry, an access of the
        same block, or an access that is ordered before the new one. Return a mask of the other cells; None if
        there are none.
        """
        found = cells.get(row)
        if not found.any():
            free: Any = True
        elif _uniform(found):
            free = bool(self._replaceable(new, found[:1, :1])[0, 0])
        else:
            free = self._replaceable(new, found)
            free = True if free.all() else free
        if free is True:
            cells.put(row, number, where)
            return None
        if free is not False:
            cells.put(row, number, free if where is None else free & where)
        left = np.ones(found.shape, bool) if free is False else ~free
        return left if where is None else left & where

    def _replaceable(self, new: Touch, found: Array) -> Array:
        mine = (found == 0) | (self.block[found] == new.core.index)
        return mine if mine.all() else mine | self._known(new, found)

    def _known(self, new: Touch, found: Array) -> Array:
        """Return a mask of the accesses that a grid barrier or a signal orders before the new one."""
        clock = new.clock
        agents = [agent for (_, pipe), agent in clock.agents.items() if pipe == GRID]
        times = tuple(new.know[a] if a < len(new.know) else 0 for a in agents)
        if not any(times):
            return np.zeros(found.shape, bool)
        limits = self._limits.get((new.core.index, times))
        if limits is None:
            tokens = clock.others(new.know)
            widest = max((len(token) for token in tokens.values()), default=0)
            limits = self._limits[new.core.index, times] = np.zeros((self.blocks, widest + 1), np.int64)
            for block, token in tokens.items():
                limits[block, : len(token)] = token
        agent = np.minimum(self.agent[found], limits.shape[1] - 1)
        return self.sequence[found] <= limits[self.block[found], agent]

    def _report(self, new: Touch, number: int, wrote: bool, low: int, high: int, early: bool = False) -> None:
        """Report an access that races with an earlier one. If the earlier access is a read that came too
        `early`, report that read.
        """
        op, index = self.ops[number], int(self.block[number])
        assert op is not None
        kind = hazard(new.write, wrote)
        said = {"RAW": "reads", "WAR": "overwrites", "WAW": "writes"}[kind]
        done = {"RAW": "writes", "WAR": "reads", "WAW": "writes too"}[kind]
        told = self.signals.too_early(
            new.core.index, index, int(self.agent[number]), int(self.sequence[number])
        )
        other, apart = self._named(index), index // self.launch.blocks != new.core.rank
        among = "ranks" if apart else "blocks"
        what = bytes_of(new.place, low, high)
        if new.atomic and self.atomic[number]:
            self._report_lost(new, op, other, what)
            return
        text = f"{kind} race between {among}: {said} {what}, which {other} {done}, in either order"
        help = (
            "let the rank that comes first drain its pipes ('pto.barrier <PIPE_ALL>') and give a signal "
            "('pto.tnotify'), and the other rank wait for it ('pto.twait')"
            if apart
            else "blocks run in any order: give each its own part, use an atomic store, or let all blocks "
            "meet in 'pto.syncall' between the two accesses"
        )
        code = "PTO-E2212" if apart else "PTO-E2202"
        if told is not None:
            code, pipe = "PTO-E2213", self.pipes[number]
            doing = "write" if wrote else "read"
            text = (
                f"{kind} race between {among}: {said} {what}, which {other} may still have to {doing}: "
                f"its signal does not wait for PIPE_{pipe}"
            )
            help = f"the signal has to wait for the pipe: 'pto.barrier <PIPE_ALL>' before {_line(told)}"
            if pipe.startswith(SESSION):
                help = f"wait for the transfer with pto.wait_async_event before {_line(told)}"
        if apart and early and told is None:
            mine = self._named(new.core.index)
            text = f"RAW race between ranks: reads {what}, which {mine} writes, in either order ({other})"
            d = Diagnostic(code, f"{name_in_messages(op)}: {text}", self.launch.span(op), help=help)
            d.notes.append((f"{mine} writes them here", self.launch.span(new.op)))
        else:
            d = new.core.diagnostic(new.op, code, text, help=help)
            d.notes.append((f"{other} {'writes' if wrote else 'reads'} them here", self.launch.span(op)))
        if told is not None:
            d.notes.append((f"{other} signals here, perhaps before that", self.launch.span(told)))
        self.reports.add((among, frozenset((new.op, op))), d)

    def _report_lost(self, new: Touch, op: Operation, other: str, what: str) -> None:
        mine, theirs = ("sets", "adds to") if new.atomic == SETS else ("adds to", "sets")
        d = new.core.diagnostic(
            new.op,
            "PTO-E2216",
            f"{mine} the signal at {what}, which {other} {theirs}, in either order: an addition may be lost",
            help="let both add, or give each of them a signal of its own",
        )
        d.notes.append((f"{other} {theirs} it here", self.launch.span(op)))
        self.reports.add(("lost", frozenset((new.op, op))), d)

    def _named(self, index: int) -> str:
        rank, block = divmod(index, self.launch.blocks)
        words = [f"rank {rank}"] if self.launch.ranks > 1 else []
        if self.launch.blocks > 1:
            words.append(f"block {block}")
        return ", ".join(words)


def _may_meet(one: int) -> Array:
    """Return, by kind, whether atomic accesses need no order with an access of this kind."""
    fine = np.ones(SETS + 1, bool)
    fine[APART] = False
    fine[{ADDS: SETS, SETS: ADDS}.get(one, APART)] = False
    return fine


def _line(op: Operation) -> str:
    return f"line {op.loc.line}" if op.loc is not None else "it"


class _Cells:
    """The cells of a table for the bytes of an access: a window if its rows are evenly spaced, else a list of
    offsets."""

    def __init__(self, table: Array, new: Touch) -> None:
        self.table = table
        self.start, self.pitch, self.shape = new.low, 0, (1, new.high - new.low)
        self.at: Array | None = None
        region = new.region
        if new.dense:
            return
        if region is not None and region.bits >= 8 and region.rows.stride and region.cols.stride == 1:
            item = region.bits // 8
            self.pitch, self.shape = region.rows.stride * item, (region.rows.size, region.cols.size * item)
            if self.pitch >= self.shape[1]:
                return
        self.at = new.bytes()[None, :]

    def get(self, row: int) -> Array:
        if self.at is not None:
            return self.table[row][self.at]
        steps = (self.pitch * self.table.itemsize, self.table.itemsize)
        return np.ndarray(
            self.shape, self.table.dtype, self.table[row], self.start * self.table.itemsize, steps
        )

    def put(self, row: int, number: int, where: Array | None) -> None:
        if self.at is not None:
            self.table[row][self.at if where is None else self.at[where]] = number
        else:
            np.copyto(self.get(row), number, where=True if where is None else where)

    def bounds(self, where: Array) -> tuple[int, int]:
        """Return the first byte of some cells, and the byte after the last."""
        if self.at is not None:
            bytes = self.at[where]
        else:
            rows, cols = np.nonzero(where)
            bytes = self.start + rows * self.pitch + cols
        return int(bytes.min()), int(bytes.max()) + 1


def _uniform(found: Array) -> bool:
    return bool((found == found[0, 0]).all())


def forget_blocks(buffers: list[Buffer]) -> None:
    """Forget all accesses, after all cores of all blocks have met: later accesses are ordered after them."""
    for buffer in buffers:
        buffer.shadows.pop("blocks", None)
        for key in [k for k in buffer.shadows if k.startswith("race ")]:
            del buffer.shadows[key]
