"""One access of an instruction to memory, as the race checkers see it: what it touches, and what it knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ..access import Access
from ..elements import Array
from ..watch import Event
from .clock import Clock, Token, agent_pipe


class Touch:
    """Bytes `low` to `high` of a buffer, touched by an event of an agent; `region` or `at` give them exactly,
    where it has gaps."""

    __slots__ = (
        "agent", "at", "atomic", "clock", "core", "dense", "high", "know", "low", "op", "pipe", "place",
        "region", "replaced", "sequence", "write",
    )  # fmt: skip

    def __init__(
        self, event: Event, happened: tuple[int, int, Token], clock: Clock, access: Access, atomic: bool
    ) -> None:
        self.agent, self.sequence, self.know = happened
        self.clock = clock
        self.core: Any = event.core
        self.write = access.write
        self.region = region = access.region
        self.at: Array | None = None
        if region is not None:
            self.low, self.high = low, high = region.bounds
            self.dense = region.fills(low, high)
        elif access.at is None or not access.at.size:
            self.low = self.high = 0
            self.dense = False
        else:
            self.at = access.bytes()
            self.low, self.high = int(self.at.min()), int(self.at.max()) + 1
            # at most one element is its bytes without a gap
            self.dense = self.at.size == self.high - self.low <= 8
        self.replaced = 0  # what this one stands for: an earlier write of its agent, by sequence
        self.op = event.op
        self.pipe = agent_pipe(event.pipe)
        self.place = access.place
        self.atomic = atomic

    def covers(self, old: Touch) -> bool:
        """Whether every byte of an older access is one of this: it has no gaps, or the same ones."""
        if self.dense:
            return self.low <= old.low and old.high <= self.high
        a, b = self.region, old.region
        return (
            a is not None and b is not None and a.rows is b.rows and a.cols is b.cols
            and (a.base, a.bits, a.nibble) == (b.base, b.bits, b.nibble)
        )  # fmt: skip

    def bytes(self) -> Array:
        if self.region is not None:
            return self.region.byte_offsets()
        return self.at if self.at is not None else np.arange(self.low, self.high)


def is_atomic(op: Operation) -> bool:
    """Whether an instruction may meet others like it on the same bytes: atomic stores, signals."""
    if op.row is None:
        return False
    if op.row.family == "signal":
        return True
    kinds = (
        str(op.attr(n) or "none")
        for n in ("atomicType", "scatterAtomicOp", "atomic_op")
        if n in op.row.attr_index
    )
    return any(not k.endswith("none") for k in kinds)


def hazard(new_writes: bool, old_writes: bool) -> str:
    """The kind of a race: read after write, write after read, write after write."""
    return "RAW" if not new_writes else "WAW" if old_writes else "WAR"


def overlap(a: Touch, b: Touch) -> tuple[int, int] | None:
    """The first byte that two accesses share and the one behind the last; None where they share none."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    if low >= high:
        return None
    if a.dense and b.dense:
        return low, high
    marks = np.zeros(high - low, bool)
    first = a.bytes()
    marks[first[(first >= low) & (first < high)] - low] = True
    second = b.bytes()
    second = second[(second >= low) & (second < high)]
    shared = second[marks[second - low]]
    return (int(shared.min()), int(shared.max()) + 1) if shared.size else None
