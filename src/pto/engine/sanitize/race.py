"""Races: two accesses to the same bytes that nothing orders.

Every access is compared with the earlier ones of its block to the same bytes. If one of the two is a write
and the new one does not know the old one (see `clock`), they race. This does not depend on the order in which
the engine happens to run things. Races between blocks are found in `blocks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ..elements import Array
from ..reference.instr import Instr, Place, start_of
from ..region import Region
from .access import Access, hazard, overlap
from .advice import Side, free_event, how_to_order, wait_for
from .blocks import BlockMap
from .clock import Clock, Signals, join, knows, learn_of
from .reports import Reports, bytes_of

#: A vector instruction that reads exactly what the one before wrote follows it closely enough when it runs at
#: least 16 repeats of 256 bytes.
CHAINED = 16 * 256

PAGE = 1 << 16
#: The latest accesses that a new one may be joined to, and the scattered bytes that one may have for that.
_NEAR = 8
_MANY = PAGE


class RaceChecker:
    """Races of one launch: between pipes of a block, and between blocks."""

    def __init__(self, isa: str, reports: Reports, blocks: int) -> None:
        self.isa = isa
        self.reports = reports
        self.blocks = blocks
        self.signals = Signals()
        self.across = BlockMap(blocks, reports) if blocks > 1 else None
        #: The earlier access that the advice of a report is about.
        self.advised: dict[Any, Operation] = {}
        #: The flag (pipes and event id) that the advice of a report proposes.
        self.events: dict[Any, tuple[tuple[str, str], int]] = {}

    def access(self, i: Instr, place: Place, write: bool, region: Region | None, at: Array | None) -> None:
        """Record an access and report what it races with."""
        if region is not None:
            low, high = region.bounds
        else:
            assert at is not None
            if not at.size:
                return
            base, bits, nibble = start_of(place)
            item = max(8, bits) // 8
            flat = base + (at.ravel() + nibble) * bits // 8
            at = (flat[:, None] + np.arange(item)).ravel() if item > 1 else flat
            low, high = int(at.min()), int(at.max()) + 1
        if low == high:
            return
        new = Access(i, place, low, high, write, region, at)
        buffer = place.buffer
        if self.across is not None and buffer.space == "gm":
            self.across.access(i, new, buffer)
        pages = range(low // PAGE, (high - 1) // PAGE + 1) if buffer.space == "gm" else (0,)
        seen: dict[int, list[Access]] = buffer.shadows.setdefault(f"race {i.core.block}", {})
        for page in pages:
            entries = seen.setdefault(page, [])
            self._compare(i, new, entries)
            if not _joined(new, entries):
                entries.append(new)

    def _compare(self, i: Instr, new: Access, entries: list[Access]) -> None:
        covered = False
        know = new.know
        # the latest first: who is ordered after it is often ordered after what came before
        for n in range(len(entries) - 1, -1, -1):
            old = entries[n]
            if old.high <= new.low or old.low >= new.high:
                continue
            same = old.agent == new.agent and old.sequence == new.sequence
            if same and old.write != new.write:
                continue
            known = same or knows(know, old.agent, old.sequence)
            if (new.write or old.write) and not known:
                if (old.atomic and new.atomic) or self._chained(new, old):
                    continue
                shared = overlap(new, old)
                if shared is None:
                    continue
                self._report(new, old, entries, *shared)
                known = True
            # what the new access covers and follows needs no memory of its own: whoever knows the new one
            # knows it too
            replaces = new.write or (not old.write and old.agent == new.agent)
            if known and replaces and new.covers(old):
                entries[n] = None  # type: ignore[call-overload]
                covered = True
                if old.write and old.agent == new.agent:
                    new.replaced = max(new.replaced, old.sequence)
        if covered:
            entries[:] = [e for e in entries if e is not None]

    def _chained(self, new: Access, old: Access) -> bool:
        """A vector instruction that reads exactly the many bytes the one before it wrote."""
        return (
            new.pipe == old.pipe == "V" and new.agent == old.agent and old.write and not new.write
            and new.dense and old.dense and (new.low, new.high) == (old.low, old.high)
            and new.high - new.low >= CHAINED
        )  # fmt: skip

    def _report(self, new: Access, old: Access, entries: list[Access], low: int, high: int) -> None:
        clock: Clock = new.core.clock
        # One missing flag is one report: from here on both pipes are taken as ordered.
        for know in (new.know, clock.know[new.agent]):
            join(know, old.know)
            learn_of(know, old.agent, old.sequence)
        if old.core is not new.core and old.write != new.write:
            old, new = _sides(old, new, entries)
        kind = hazard(new.write, old.write)
        key = ("race", new.op, old.core.kind, old.pipe)
        grid = new.core.grid
        note = (_other_side(new, old), grid.span(old.op))
        again = self.reports.again(key, note)
        known = self.reports.found.get(key)
        if again and (known is None or not self.advised[key].order < old.op.order < new.op.order):
            return
        self.advised[key] = old.op
        help = self._help(key, new, old)
        if known is not None:
            known.help = help  # the flag has to be set after the last of several
            return
        apart = old.core is not new.core
        mine = f"PIPE_{new.pipe}" + (f" of {new.core.name}" if apart else "")
        theirs = f"PIPE_{old.pipe}" + (f" of {old.core.name}" if apart else "")
        if old.agent == new.agent:
            theirs = f"an earlier instruction of {theirs}"
        what = bytes_of(new.place, low, high)
        d = new.core.diagnostic(
            new.op, "PTO-E2201",
            {
                "RAW": f"RAW race: {mine} reads {what}, which {theirs} may not have written yet",
                "WAR": f"WAR race: {mine} overwrites {what}, which {theirs} may still have to read",
                "WAW": f"WAW race: {mine} and {theirs} write {what} in either order",
            }[kind],
            help=help,
        )  # fmt: skip
        d.notes.append(note)
        self.reports.add(key, d)

    def _help(self, key: Any, new: Access, old: Access) -> str:
        """What to insert: only the wait where the flag is there, else a flag no other advice uses."""
        module = new.core.grid.program.module
        pair = (old.pipe, new.pipe)
        core: Any = new.core
        for flag, raised in core.flags.items() if old.core is core else ():
            if flag[:2] == pair:
                for token, op in raised:
                    if token is not None and knows(token, old.agent, old.sequence):
                        return wait_for(module, flag, op, new.op)
        taken = {n for k, (p, n) in self.events.items() if p == pair and k != key}
        event = free_event(module, *pair, taken)
        if event is not None:
            self.events[key] = (pair, event)
        first, second = (Side(a.op, a.pipe, a.core.name) for a in (old, new))
        return how_to_order(module, self.isa, first, second, event)


def _joined(new: Access, entries: list[Access]) -> bool:
    """Add what an instruction touches to the last accesses like it of the same event: the many instructions
    of a vecscope are one event, and would take a place in memory for every iteration."""
    for old in entries[: -_NEAR - 1 : -1]:
        if (
            old.sequence != new.sequence or old.agent != new.agent or old.write != new.write
            or old.op is not new.op
        ):  # fmt: skip
            continue
        if old.dense and new.dense and old.low <= new.low <= old.high:
            old.region = old.at = None
        elif old.at is not None and new.at is not None and old.at.size < _MANY:
            old.at = np.union1d(old.at, new.at)
            old.low, old.dense = min(old.low, new.low), False
        else:
            continue
        old.high = max(old.high, new.high)
        old.replaced = max(old.replaced, new.replaced)
        return True
    return False


def _sides(a: Access, b: Access, entries: list[Access]) -> tuple[Access, Access]:
    """A write and a read on different cores, in the order that is meant: the read waits for the write, unless
    it has waited for an earlier one, which the write then overwrites too soon."""
    writer, reader = (a, b) if a.write else (b, a)
    before = max(
        (
            e.sequence
            for e in entries
            if e is not None and e.write and e.agent == writer.agent and e.sequence < writer.sequence
            and overlap(e, reader) is not None
        ),
        default=writer.replaced,
    )  # fmt: skip
    return (reader, writer) if before and knows(reader.know, writer.agent, before) else (writer, reader)


def _other_side(new: Access, old: Access) -> str:
    """What the access that came first did."""
    first = old.op.row.name if old.op.row else old.op.name
    what = f"%{old.place.name}" if old.place.name else "them"
    earlier = old.core is new.core and (old.op is new.op or old.op.order > new.op.order)
    when = " in an earlier iteration" if earlier else ""
    return f"{first} {'writes' if old.write else 'reads'} {what}{when}"
