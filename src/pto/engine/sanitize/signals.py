"""Reports signals of ranks that are out of step: given without a wait, left from an earlier launch, or below
zero. It checks only signals in windows, because the values of ordinary arrays belong to the caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ..elements import Array
from ..memory import Buffer, View
from ..watch import WatchedCore, WatchedLaunch
from .sanitizer import Sanitizer
from .signal_order import word_at, words_of

#: A signal: its window, and the offset of its first byte.
Cell = tuple[Buffer, int]

#: Larger windows hold data, so no copy of their initial contents is kept.
_SIGNALS = 1 << 16


class SignalCheck(Sanitizer):
    memory = False
    wants = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: Signals without a wait so far: the core and the operation that gave them first.
        self.given: dict[Cell, tuple[WatchedCore, Operation]] = {}
        self.touched: set[Cell] = set()
        self.before: dict[Buffer, Array] = {}

    def launch_started(self, launch: WatchedLaunch) -> None:
        super().launch_started(launch)
        for buffer in launch.gm.buffers:
            if buffer.of is not None and buffer.data.size <= _SIGNALS:
                self.before[buffer] = buffer.data.copy()

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        cell = signal.buffer, signal.offset
        if signal.buffer.of is None:
            return
        if cell not in self.touched:
            self.given[cell] = core, op
        self.touched.add(cell)
        held = word_at(*cell)
        if held < 0 and str(op.attr("notifyOp")) == "AtomicAdd":
            d = core.diagnostic(
                op,
                "PTO-E2217",
                f"takes the signal at {_named(cell)} to {held}: it subtracts more than was added",
                help="wait for the signal before it is lowered: 'pto.twait' of at least the subtracted value",
            )
            self.reports.add(("below zero", op), d)

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        buffer = signal.buffer
        if buffer.of is None:
            return
        if buffer.rank != core.rank:
            d = core.diagnostic(
                op,
                "PTO-E2218",
                f"waits for a signal of rank {buffer.rank}: a rank can wait only for signals in its own "
                "window",
                expected=f"a signal of rank {core.rank}",
                got=f"byte {signal.offset} of {buffer.name}",
                help="let the other rank write to a signal in the window of this one",
            )
            self.reports.add(("elsewhere", op), d)
        for cell in ((buffer, offset) for offset in words_of(signal)):
            stale = cell not in self.touched and self._unchanged(cell)
            self.touched.add(cell)
            self.given.pop(cell, None)
            held = word_at(*cell)
            if held and stale:
                d = core.diagnostic(
                    op,
                    "PTO-E2215",
                    f"does not wait: the signal at {_named(cell)} holds {held} from before this launch",
                    help="reset it to 0 after the wait, or wait for a larger number in each launch",
                )
                d.severity = "warning"
                self.reports.add(("stale", op), d)

    def _unchanged(self, cell: Cell) -> bool:
        buffer, offset = cell
        before = self.before.get(buffer)
        return before is not None and np.array_equal(
            before[offset : offset + 4], buffer.data[offset : offset + 4]
        )

    def launch_ended(self, result: object) -> None:
        for cell, (core, op) in self.given.items():
            d = core.diagnostic(
                op,
                "PTO-E2214",
                f"no rank waits for the signal at {_named(cell)}",
                help="wait for it with 'pto.twait' on its rank, or remove it: the next launch finds it set",
            )
            d.severity = "warning"
            self.reports.add(("given", op), d)


def _named(cell: Cell) -> str:
    return f"byte {cell[1]} of {cell[0].name}"
