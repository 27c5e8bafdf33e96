"""Hazards inside a vecscope: unordered loads and stores of the same bytes.

For other pipes, an interval (one execution of a vecscope) is one event. Inside an interval, vector loads and
stores of the unified buffer may overtake each other. A load after a store needs a barrier between them. A
store after a load needs a barrier, too, unless the stored value was computed from the loaded value: in
registers, or through memory with a barrier between the store and the load. Two stores stay in order. Scalar
accesses (load_scalar, store_scalar) stay in order among themselves, and need a barrier against those of the
vector unit.

A table has the last store and the last load of each byte of the buffer, by their number in the launch. An
access is ordered if it is older than the last barrier of the right kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation, constant_of
from ...ir.nesting import meeting
from ...ir.types import PtrType
from ..access import Access, Place
from ..elements import Array
from ..memory import Buffer
from ..registers import Align, Register
from ..watch import Event, WatchedCore, WatchedLaunch
from .reports import Reports, bytes_of

#: The kinds of accesses in the names of barriers, by (on the scalar unit, store).
WORDS = {(False, False): "VLD", (False, True): "VST", (True, False): "LD", (True, True): "ST"}

#: The number of loads that registers track; older loads count as ordered.
REMEMBERED = 4096


def orders(kind: str) -> list[tuple[str, str]]:
    """Return the pairs of access kinds that a barrier orders."""
    first, second = kind.split("_")
    if second != "ALL":
        return [(first, second)]
    before, after = (("VLD", "VST") if unit == "V" else ("LD", "ST") for unit in first)
    return [(a, b) for a in before for b in after]


class VecscopeHazards:
    """The accesses of one core inside its current vecscope."""

    def __init__(self, launch: WatchedLaunch, reports: Reports) -> None:
        self.launch = launch
        self.reports = reports
        self.count = 0  # accesses so far, over all intervals of the launch
        self.begin = 0
        self.ops: dict[Operation, int] = {}  # the instructions with accesses, numbered
        #: For each byte, the number of its last access and the number of the accessing instruction, by kind
        #: of access.
        self.last: dict[str, Array] = {}
        self.by: dict[str, Array] = {}
        self.fences: dict[tuple[str, str], int] = {}
        self.loads = 0  # of this interval
        self.bits: dict[int, int] = {}  # by access number of a load: its bit in `Register.past`
        self.stored = 0  # the loads that the values stored so far were computed from
        self.carried = 0  # those that a barrier between stores and loads orders before all later loads
        self.running: Event | None = None  # the current instruction, and the number of accesses before it
        self.before = 0
        self.streams: dict[int, tuple[Align, Operation]] = {}  # store streams with bytes not yet in memory

    def started(self) -> None:
        self.begin = self.count
        self.fences = {}
        self.bits = {}
        self.loads = 0
        self.stored = self.carried = 0
        self.streams = {}

    def ended(self, core: WatchedCore) -> None:
        for align, op in self.streams.values():
            d = core.diagnostic(
                op,
                "PTO-E2207",
                f"the store stream %{align.name} ends with {align.pending} bytes that are not in memory",
                help="flush it before the vecscope ends: pto.vstas, pto.vstar or pto.vsta at the end of the "
                "stream",
            )
            self.reports.add(("stream", op), d)

    def barrier(self, kind: str) -> None:
        for pair in orders(kind):
            self.fences[pair] = self.count
            if pair == ("VST", "VLD"):
                self.carried = self.stored

    def access(self, event: Event, access: Access) -> None:
        """Check and record one access of an instruction of the interval to the unified buffer."""
        place, where = access.place, _bytes(access)
        if where is None:
            return
        if event is not self.running:
            self.running, self.before = event, self.count
        word = WORDS[event.op.row is not None and event.op.row.pipe == "S", access.write]
        for other in ("VLD", "VST", "LD", "ST"):
            if not (word.endswith("ST") or other.endswith("ST")) or len(word) == len(other) == 2:
                continue  # two loads, or two accesses of the scalar unit
            if word == other == "VST":
                continue
            last = self.last.get(other)
            if last is not None:
                self._compare(event, place, word, other, where, last)
        self.count += 1
        self._table(self.last, word, place.buffer)[where] = self.count
        self._table(self.by, word, place.buffer)[where] = self.ops.setdefault(event.op, len(self.ops))
        if word == "VST":
            self.stored |= _past(event)
        elif word == "VLD":
            if len(self.bits) == REMEMBERED:
                del self.bits[next(iter(self.bits))]
            self.bits[self.count] = 1 << (self.loads % REMEMBERED)
            self.loads += 1

    def _table(self, tables: dict[str, Array], word: str, buffer: Buffer) -> Array:
        found = tables.get(word)
        if found is None or found.size < buffer.data.size:
            made = np.zeros(buffer.data.size, np.int64)
            if found is not None:
                made[: found.size] = found
            found = tables[word] = made
        return found

    def _compare(self, event: Event, place: Place, word: str, other: str, where: Any, last: Array) -> None:
        fence = max(self.begin, self.fences.get((other, word), 0))
        seen = last[where]
        latest = int(seen.max())
        if latest > self.before:  # an instruction reads before it writes
            seen = np.where(seen > self.before, 0, seen)
            latest = int(seen.max())
        if latest <= fence:
            return
        if (other, word) == ("VLD", "VST"):  # ordered if the stored value comes from the loaded value
            past = _past(event)
            if not isinstance(where, slice) or (seen != latest).any():
                late = (int(n) for n in np.unique(seen) if n > fence)
            else:
                late = iter((latest,))
            unordered = [n for n in late if n in self.bits and not past & self.bits[n]]
            if not unordered:
                return
            latest = unordered[-1]
        self._report(event, place, word, other, where, seen, latest)

    def _report(
        self, event: Event, place: Place, word: str, other: str, where: Any, seen: Array, number: int
    ) -> None:
        op = event.op
        inside = np.flatnonzero(seen == number)
        at = inside + where.start if isinstance(where, slice) else where[inside]
        first = list(self.ops)[int(self.by[other][at[0]])]
        named = first.row.name if first.row else first.name
        what = bytes_of(place, int(at.min()), int(at.max()) + 1)
        kind = f"{other}_{word}"
        d = event.core.diagnostic(
            op,
            "PTO-E2206",
            f"reads {what}, which {named} of this vecscope may not have written yet"
            if word.endswith("LD")
            else f"overwrites {what}, which {named} of this vecscope may still have to read"
            if other.endswith("LD")
            else f"writes {what}, as {named} of this vecscope does, in either order",
            help=f"{_sharing(first, op)}put 'pto.mem_bar \"{kind}\"' before line {self._before(first, op)}",
        )
        again = " in an earlier iteration" if first is op or first.order > op.order else ""
        d.notes.append((f"{named} {'writes' if other.endswith('ST') else 'reads'} them{again}",
                        self.launch.span(first)))  # fmt: skip
        self.reports.add(("interval", op, first), d)

    def _before(self, first: Operation, second: Operation) -> str:
        """Return the line before which a barrier orders two instructions of one iteration or of two."""
        met = meeting(self.launch.nesting(first), self.launch.nesting(second))
        return met.second.first if met is not None else self.launch.module.line(second)

    def done(self, event: Event) -> None:
        """Record the loads that result registers were computed from, and the streams with pending bytes."""
        results = {declared.name for declared in event.op.row.results} if event.op.row else set[str]()
        made: list[Register] = []
        past = 0
        for name, value in event.args.items():
            if isinstance(value, Register):
                if name in results:
                    made.append(value)
                else:
                    past |= value.past
                    if isinstance(value, Align):
                        self.streams.pop(id(value), None)
        if made:
            n = self.count if self.running is event else self.before
            while n > self.before and n in self.bits:
                past |= self.bits[n] | self.carried  # the loads of this instruction
                n -= 1
            for register in made:
                register.past = past
                if isinstance(register, Align) and register.kind == "store" and register.pending:
                    self.streams[id(register)] = (register, event.op)


def _sharing(first: Operation, second: Operation) -> str:
    """Return the beginning of the help if two pointers with different addresses meet: they share bytes."""
    a, b = _placed(first), _placed(second)
    if a is None or b is None or a[1] == b[1]:
        return ""
    return (
        f"%{a[0]} begins at {a[1]:#x} and %{b[0]} at {b[1]:#x}, and the bytes used from them overlap: "
        "give one of them another address; if the overlap is intended, "
    )


def _placed(op: Operation) -> tuple[str, int] | None:
    """Return the name and address of the pointer behind an instruction's only buffer pointer; None if it is
    not constant."""
    pointers = [v for v in op.operands if isinstance(v.type, PtrType) and v.type.space == "ub"]
    value = pointers[0] if len(pointers) == 1 else None
    while value is not None and value.op is not None and value.op.name in ("pto.addptr", "pto.castptr"):
        source = value.op.operands[0]
        if not isinstance(source.type, PtrType):
            address = constant_of(source)
            return (value.name, int(address)) if address is not None else None
        value = source
    return None


def _past(event: Event) -> int:
    past = 0
    for value in event.args.values():
        if isinstance(value, Register):
            past |= value.past
    return past


def _bytes(access: Access) -> Any:
    """Return the bytes of an access: a slice if it has no gaps, else offsets; None for an empty access."""
    region = access.region
    if region is None:
        return access.bytes() if access.at is not None and access.at.size else None
    low, high = region.bounds
    if low == high:
        return None
    return slice(low, high) if region.dense else region.byte_offsets()
