"""Races: two accesses to the same bytes that nothing orders.

Every pipe of every core of a block is an *agent* with a vector clock. An instruction is an event of its agent;
it *knows* the events that happened before it: those its pipe learned through flags, barriers, tokens,
semaphores and FIFOs, and the earlier instructions of its own pipe where the pipe keeps its order (see
`ordered`). An access that meets an earlier one on the same bytes, one of them a write, without knowing it, is
a race. This does not depend on the order in which the engine happens to run things.

Blocks share global memory only, and nothing but a grid barrier orders them: `BlockMap` remembers which block
touched which byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ..elements import Array
from ..memory import Buffer
from ..reference.instr import Instr, Place, start_of
from ..region import Region
from .reports import Reports

if TYPE_CHECKING:
    from ..reference.core import Core

#: Pipes whose instructions may overlap when they depend on each other, by legality column: they need a
#: barrier between them. Accumulating in M, moving by MTE1 and FIX and loading by MTE2 is done in order.
UNORDERED: dict[str, frozenset[str]] = {
    "cpu": frozenset(),
    "a2a3": frozenset({"V", "MTE3"}),
    "a5": frozenset({"MTE3"}),
}

#: A vector instruction that reads exactly what the one before wrote follows it closely enough when it runs at
#: least 16 repeats of 256 bytes.
CHAINED = 16 * 256

PAGE = 1 << 16


def ordered(isa: str, pipe: str) -> bool:
    return pipe not in UNORDERED[isa]


class Clock:
    """The clocks of the agents of one block."""

    def __init__(self, isa: str) -> None:
        self.isa = isa
        self.agents: dict[tuple[Core, str], int] = {}
        self.names: list[str] = []  # core of each agent
        self.know: list[list[int]] = []
        self.count: list[int] = []
        #: What the scalar unit of a core waited for, which every pipe of it knows, also one idle so far.
        self.stalls: dict[Core, list[int]] = {}

    def agent(self, core: Core, pipe: str) -> int:
        found = self.agents.get((core, pipe))
        if found is None:
            found = self.agents[core, pipe] = len(self.know)
            self.names.append(core.name)
            self.count.append(0)
            self.know.append(list(self.stalls.get(core, ())))
        return found

    def instruction(self, core: Core, i: Instr) -> None:
        pipe = i.pipe if i.pipe and i.pipe != "ALL" else "S"
        agent = self.agent(core, pipe)
        know = self.know[agent]
        if ordered(self.isa, pipe):
            _raise(know, agent, self.count[agent])
        self.count[agent] += 1
        i.event = (agent, self.count[agent], list(know))

    def release(self, core: Core, pipe: str) -> list[int]:
        """What is known to have happened once the pipe gets here."""
        agent = self.agent(core, pipe)
        token = list(self.know[agent])
        _raise(token, agent, self.count[agent])
        return token

    def acquire(self, core: Core, pipe: str, token: list[int] | None) -> None:
        """What the pipe does from here on comes after `token`; a stalled scalar unit stalls all issue."""
        if token is None:
            return
        if pipe == "S":
            self.acquire_all(core, token)
        else:
            _join(self.know[self.agent(core, pipe)], token)

    def acquire_all(self, core: Core, token: list[int] | None) -> None:
        if token is None:
            return
        _join(self.stalls.setdefault(core, []), token)
        for (owner, _), agent in self.agents.items():
            if owner is core:
                _join(self.know[agent], token)

    def barrier(self, core: Core, pipe: str) -> None:
        agent = self.agent(core, pipe)
        _raise(self.know[agent], agent, self.count[agent])

    def barrier_all(self, core: Core) -> None:
        token: list[int] = []
        for (owner, pipe), _ in list(self.agents.items()):
            if owner is core:
                _join(token, self.release(core, pipe))
        self.acquire_all(core, token)

    def merged(self, tokens: list[list[int] | None]) -> list[int]:
        out: list[int] = []
        for token in tokens:
            _join(out, token or [])
        return out


def _raise(know: list[int], agent: int, count: int) -> None:
    if len(know) <= agent:
        know.extend([0] * (agent + 1 - len(know)))
    if know[agent] < count:
        know[agent] = count


def _join(know: list[int], token: list[int]) -> None:
    if len(know) < len(token):
        know.extend([0] * (len(token) - len(know)))
    for n, t in enumerate(token):
        if t > know[n]:
            know[n] = t


class Access:
    """One access: bytes `low` to `high` of a buffer by an event; `region` or `at` give them exactly."""

    __slots__ = ("agent", "at", "dense", "high", "low", "name", "op", "pipe", "region", "sequence", "write")

    def __init__(
        self, i: Instr, place: Place, low: int, high: int, write: bool, region: Region | None, at: Array | None
    ) -> None:
        self.agent, self.sequence, _ = i.event or (0, 0, None)
        self.low, self.high = low, high
        self.write = write
        self.region = region
        self.at = at
        self.dense = region is not None and region.dense
        self.op = i.op
        self.pipe = i.pipe or "S"
        self.name = place.name

    def bytes(self) -> Array:
        if self.region is not None:
            return self.region.byte_offsets()
        assert self.at is not None
        return self.at


class RaceChecker:
    def __init__(self, isa: str, reports: Reports, blocks: int) -> None:
        self.isa = isa
        self.reports = reports
        self.blocks = blocks
        self.sites: list[tuple[int, Operation, bool, str]] = [(-1, None, False, "")]  # type: ignore[list-item]
        self.site_index: dict[tuple[int, Operation, bool], int] = {}

    def access(self, i: Instr, place: Place, write: bool, region: Region | None, at: Array | None) -> None:
        """Record an access and report what it races with."""
        if region is not None:
            low, high = region.bounds
        else:
            assert at is not None
            if not at.size:
                return
            base, bits, nibble = start_of(place)
            first, last = int(at.min()) + nibble, int(at.max()) + nibble
            low, high = base + first * bits // 8, base + ((last + 1) * bits + 7) // 8
        if low == high:
            return
        if region is None:
            assert at is not None
            base, bits, nibble = start_of(place)
            item = max(8, bits) // 8
            flat = base + (at.ravel() + nibble) * bits // 8
            at = (flat[:, None] + np.arange(item)).ravel() if item > 1 else flat
        new = Access(i, place, low, high, write, region, at)
        buffer = place.buffer
        if buffer.space == "gm" and self.blocks > 1:
            self._across_blocks(i, new, buffer)
        if i.event is None:
            return  # a program for automatic synchronisation: only its blocks can race
        know: list[int] = i.event[2]
        pages = range(low // PAGE, (high - 1) // PAGE + 1) if buffer.space == "gm" else (0,)
        seen: dict[int, list[Access]] = buffer.shadows.setdefault(("race", i.core.block), {})
        for page in pages:
            entries = seen.setdefault(page, [])
            self._compare(i, place, new, entries, know)
            entries.append(new)

    def _compare(self, i: Instr, place: Place, new: Access, entries: list[Access], know: list[int]) -> None:
        covered = False
        for n, old in enumerate(entries):
            if old.high <= new.low or old.low >= new.high:
                continue
            agent = old.agent
            known = agent < len(know) and know[agent] >= old.sequence
            if (new.write or old.write) and not known:
                if old.agent == new.agent and old.sequence == new.sequence:
                    continue
                if self._chained(new, old) or not _overlap(new, old):
                    continue
                self._report(i, place, new, old)
                known = True
            # what the new access covers and follows needs no memory of its own: whoever knows the new one
            # knows it too
            if (
                known and new.dense and new.low <= old.low and old.high <= new.high
                and (new.write or (not old.write and agent == new.agent))
            ):  # fmt: skip
                entries[n] = None  # type: ignore[call-overload]
                covered = True
        if covered:
            entries[:] = [e for e in entries if e is not None]

    def _chained(self, new: Access, old: Access) -> bool:
        """A vector instruction that reads exactly the many bytes the one before it wrote."""
        return (
            new.pipe == old.pipe == "V" and new.agent == old.agent and old.write and not new.write
            and new.dense and old.dense and (new.low, new.high) == (old.low, old.high)
            and new.high - new.low >= CHAINED
        )  # fmt: skip

    def _report(self, i: Instr, place: Place, new: Access, old: Access) -> None:
        kind = "RAW" if old.write and not new.write else "WAR" if new.write and not old.write else "WAW"
        doing = "writes" if new.write else "reads"
        was = "write" if old.write else "read"
        low, high = max(new.low, old.low), min(new.high, old.high)
        same = old.agent == new.agent
        other = i.core.clock.names[old.agent]
        mine = f"PIPE_{new.pipe}"
        theirs = f"PIPE_{old.pipe}"
        if same:
            help = f"the pipe may overlap them: put pto.barrier #pto.pipe<{mine}> between the two"
        elif other != i.core.name:
            help = "the two run on different cores: order them with a cross-core flag or a FIFO"
        else:
            help = (
                f"pto.set_flag[#pto.pipe<{theirs}>, #pto.pipe<{mine}>, ..] after the first, "
                f"pto.wait_flag with the same before the second"
            )
        name = f"%{place.name} " if place.name else ""
        d = i.core.diagnostic(
            i.op, "PTO-E2201",
            f"{kind} race: {doing} bytes {low}..{high} of {place.buffer.name} ({name.strip() or 'memory'}) on {mine}, "
            f"not ordered after the {was} on {theirs}{f' of {other}' if other and other != i.core.name else ''}",
            help=help,
        )  # fmt: skip
        first = old.op.row.name if old.op.row else old.op.name
        d.notes.append((f"{first} {was}s them{' (in an earlier iteration)' if old.op is i.op else ''}", i.core.grid.span(old.op)))
        self.reports.add((kind, i.op, old.op), d)

    # -- blocks ----------------------------------------------------------------------------------------

    def _across_blocks(self, i: Instr, new: Access, buffer: Buffer) -> None:
        me = i.core.block
        atomic = "atomic" in str(i.op.attr("atomicType") or "") and str(i.op.attr("atomicType")) != "atomic_none"
        maps = buffer.shadows.get("blocks")
        if maps is None:
            maps = buffer.shadows["blocks"] = (np.zeros(buffer.data.size, np.int32), np.zeros(buffer.data.size, np.int32))
        writes, reads = maps
        site = self._site(me, i.op, atomic)
        where: Any = slice(new.low, new.high) if new.dense else new.bytes()
        owner = np.array([s[0] for s in self.sites], np.int32)
        atomics = np.array([s[2] for s in self.sites], bool)
        for kind, table in (("write", writes), ("read", reads)):
            if kind == "read" and not new.write:
                continue
            found = table[where]
            if not found.any():
                continue
            sites = np.abs(found)
            bad = (found != 0) & ((owner[sites] != me) | (found < 0))
            if atomic:
                bad &= ~atomics[sites]
            if bad.any():
                n = int(np.argmax(bad))
                other_block, op, _, _ = self.sites[int(sites[n])]
                self._report_blocks(i, new, buffer, other_block, op, kind)
        if new.write:
            writes[where] = site
        else:
            found = reads[where]
            mine = (found == 0) | (owner[np.abs(found)] == me)
            reads[where] = np.where(mine & (found >= 0), site, -np.abs(found))

    def _site(self, block: int, op: Operation, atomic: bool) -> int:
        key = (block, op, atomic)
        found = self.site_index.get(key)
        if found is None:
            found = self.site_index[key] = len(self.sites)
            self.sites.append((block, op, atomic, ""))
        return found

    def _report_blocks(self, i: Instr, new: Access, buffer: Buffer, block: int, op: Operation, was: str) -> None:
        kind = "RAW" if not new.write else "WAW" if was == "write" else "WAR"
        doing = "writes" if new.write else "reads"
        d = i.core.diagnostic(
            i.op, "PTO-E2202",
            f"{kind} race between blocks: {doing} bytes {new.low}..{new.high} of {buffer.name}, parts of which block "
            f"{block} {was}s",
            help="blocks run in any order: give each its own part, use an atomic store, or meet in pto.syncall",
        )  # fmt: skip
        d.notes.append((f"block {block} {was}s here", i.core.grid.span(op)))
        self.reports.add((kind, i.op, op, "blocks"), d)


def _overlap(a: Access, b: Access) -> bool:
    """Whether two accesses whose ranges meet share a byte."""
    if a.dense and b.dense:
        return True
    low, high = max(a.low, b.low), min(a.high, b.high)
    marks = np.zeros(high - low, bool)
    first = a.bytes()
    marks[first[(first >= low) & (first < high)] - low] = True
    second = b.bytes()
    return bool(marks[second[(second >= low) & (second < high)] - low].any())


def forget_blocks(buffers: list[Buffer]) -> None:
    """All blocks have met: what came before is ordered."""
    for buffer in buffers:
        buffer.shadows.pop("blocks", None)
        for key in [k for k in buffer.shadows if isinstance(k, tuple) and k[0] == "race"]:
            del buffer.shadows[key]

