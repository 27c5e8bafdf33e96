"""One access of an instruction to memory for the race checkers: its bytes, and its vector clock."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ..access import Access
from ..elements import Array
from ..watch import Event
from .clock import Clock, Token, agent_pipe


class Touch:
    """An access of an event to the bytes `low` to `high` of a buffer.

    If there are gaps, `region` or `at` has the exact bytes. If accesses of a vecscope were joined, `marks`
    has them, as a first byte and a mask. `number` and `bucket` are its position in the `access_index`.
    """

    __slots__ = (
        "agent", "at", "atomic", "bucket", "clock", "core", "dense", "high", "issued", "know", "low", "marks",
        "number", "op", "pipe", "place", "region", "replaced", "sequence", "write",
    )  # fmt: skip

    def __init__(
        self, event: Event, happened: tuple[int, int, Token], clock: Clock, access: Access, atomic: int
    ) -> None:
        self.agent, self.sequence, self.know = happened
        self.clock = clock
        self.core: Any = event.core
        self.write = access.write
        self.region = region = access.region
        self.at: Array | None = None
        self.marks: tuple[int, Array] | None = None
        if region is not None:
            self.low, self.high = region.bounds
            self.dense = region.dense
        elif access.at is None or not access.at.size:
            self.low = self.high = 0
            self.dense = False
        else:
            self.at = access.bytes()
            self.low, self.high = int(self.at.min()), int(self.at.max()) + 1
            self.dense = self.at.size == self.high - self.low and _steps(access.at)
        self.number = 0
        self.bucket: tuple[int, int] | None = None
        self.replaced = 0  # sequence number of an earlier write of the same agent that this access replaces
        self.op = event.op
        self.issued = (event.scope or event).number  # the order of the program, on one core
        self.pipe = agent_pipe(event.pipe)
        self.place = access.place
        self.atomic = atomic

    def covers(self, old: Touch) -> bool:
        """Return whether this access is known to touch all bytes of an older one: without gaps, or with the
        same gaps."""
        if self.dense:
            return self.low <= old.low and old.high <= self.high
        if self.at is not None and old.at is not None:
            return np.array_equal(self.at, old.at)
        a, b = self.region, old.region
        return (
            a is not None and b is not None and a.rows is b.rows and a.cols is b.cols
            and (a.base, a.bits, a.nibble) == (b.base, b.bits, b.nibble)
        )  # fmt: skip

    def join(self, new: Touch) -> bool:
        """Add the bytes of another access of the same event, if that is cheap; return whether it was."""
        if self.dense and new.dense and self.low <= new.low <= self.high:
            self.region = self.at = None
        elif new.at is not None and (self.at is not None or self.marks is not None):
            self._mark(new.at, min(self.low, new.low), max(self.high, new.high))
        else:
            return False
        self.low, self.high = min(self.low, new.low), max(self.high, new.high)
        self.replaced = max(self.replaced, new.replaced)
        return True

    def _mark(self, at: Array, low: int, high: int) -> None:
        """Add scattered bytes to the mask, which doubles its size when they leave it."""
        if self.marks is None or low < self.marks[0] or high > self.marks[0] + self.marks[1].size:
            room = high - low if self.marks is None else 2 * (high - low)
            start = max(0, (low + high - room) // 2)
            marks = np.zeros(max(room, high - start), bool)
            marks[self.bytes() - start] = True
            self.marks, self.at, self.dense = (start, marks), None, False
        start, marks = self.marks
        marks[at - start] = True

    def without(self, new: Touch) -> bool:
        """Remove the bytes of an access that replaces this one, if that is cheap; return whether any are
        left."""
        if self.dense and new.dense:
            if new.low <= self.low:
                self.low, self.region, self.at = new.high, None, None
            elif new.high >= self.high:
                self.high, self.region, self.at = new.low, None, None
            return self.low < self.high
        if not self.dense and self.region is not None:
            return True
        if not new.dense and new.region is not None:
            return True
        if self.marks is None:
            self._mark(np.arange(0), self.low, self.high)
            self.region = None
        assert self.marks is not None
        start, marks = self.marks
        if new.dense:
            marks[max(0, new.low - start) : max(0, new.high - start)] = False
        else:
            at = new.bytes() - start
            marks[at[(at >= 0) & (at < marks.size)]] = False
        return bool(marks.any())

    def bytes(self) -> Array:
        if self.marks is not None:
            start, marks = self.marks
            return start + np.flatnonzero(marks)
        if self.region is not None:
            return self.region.byte_offsets()
        return self.at if self.at is not None else np.arange(self.low, self.high)


def _steps(at: Array) -> bool:
    """Return whether offsets increase by one."""
    flat = at.ravel()
    return flat.size == 1 or bool((flat[1:] - flat[:-1] == 1).all())


#: Kinds of accesses. Plain accesses need an order. Atomic accesses need no order with each other, but
#: additions to a signal (ADDS) need an order with its sets (SETS).
APART, ATOMIC, ADDS, SETS = 0, 1, 2, 3


def meets(op: Operation) -> int:
    """Return the kind of an instruction's accesses (APART, ATOMIC, ADDS or SETS)."""
    if op.row is None:
        return APART
    if op.row.name == "tnotify":
        return ADDS if str(op.attr("notifyOp")) == "AtomicAdd" else SETS
    if op.row.family == "signal":
        return ATOMIC
    kinds = (
        str(op.attr(n) or "none")
        for n in ("atomicType", "scatterAtomicOp", "atomic_op")
        if n in op.row.attr_index
    )
    return ATOMIC if any(not k.endswith("none") for k in kinds) else APART


def hazard(new_writes: bool, old_writes: bool) -> str:
    """Return the kind of a race: read after write, write after read, or write after write."""
    return "RAW" if not new_writes else "WAW" if old_writes else "WAR"


def overlap(a: Touch, b: Touch) -> tuple[int, int] | None:
    """Return the first byte that two accesses share, and the byte after the last; None if they share none."""
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
