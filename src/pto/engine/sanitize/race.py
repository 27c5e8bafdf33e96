"""Races: two accesses to the same bytes that nothing orders.

Every pipe of every core of a block is an *agent* with a vector clock. An instruction is an event of its agent;
it *knows* the events that happened before it: those its pipe learned through flags, barriers, tokens,
semaphores and FIFOs, and the earlier instructions of its own pipe where the pipe keeps its order (see
`ordered`). An access that meets an earlier one on the same bytes, one of them a write, without knowing it, is
a race. This does not depend on the order in which the engine happens to run things.

Blocks share global memory only, and only grid barriers and signals order them: what a core learns there of
other blocks is kept by `Clock.learn`, and `BlockMap` remembers which access touched which byte last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ..elements import Array
from ..memory import Buffer
from ..reference.instr import Instr, Place, start_of
from ..region import Region
from .advice import Side, how_to_order
from .reports import Reports, bytes_of

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

#: The agent of a core that counts what the core learned of other blocks.
GRID = "GRID"

Token = list[int]


def ordered(isa: str, pipe: str) -> bool:
    return pipe not in UNORDERED[isa]


class Clock:
    """The clocks of the agents of one block."""

    def __init__(self, isa: str, block: int = 0) -> None:
        self.isa = isa
        self.block = block
        self.agents: dict[tuple[Core, str], int] = {}
        self.names: list[str] = []  # core of each agent
        self.know: list[Token] = []
        self.count: list[int] = []
        #: What the scalar unit of a core waited for: known to all that is issued from then on, by any pipe.
        self.stalls: dict[Core, Token] = {}
        #: Tokens of other blocks, by core and then by how often the core learned something.
        self.learned: dict[Core, list[dict[int, Token]]] = {}

    def agent(self, core: Core, pipe: str) -> int:
        found = self.agents.get((core, pipe))
        if found is None:
            found = self.agents[core, pipe] = len(self.know)
            self.names.append(core.name)
            self.count.append(0)
            self.know.append(list(self.stalls.get(core, ())))
        return found

    def instruction(self, core: Core, i: Instr) -> None:
        agent = self.agent(core, agent_pipe(i))
        know = self.know[agent]
        if ordered(self.isa, agent_pipe(i)):
            _raise(know, agent, self.count[agent])
        self.count[agent] += 1
        i.event = (agent, self.count[agent], list(know))

    def release(self, core: Core, pipe: str) -> Token:
        """What is known to have happened once the pipe gets here."""
        agent = self.agent(core, pipe)
        token = list(self.know[agent])
        _raise(token, agent, self.count[agent])
        return token

    def release_all(self, core: Core) -> Token:
        """What is known to have happened once every pipe of the core gets here."""
        token = list(self.stalls.get(core, ()))
        for (owner, pipe), _ in list(self.agents.items()):
            if owner is core:
                _join(token, self.release(core, pipe))
        return token

    def acquire(self, core: Core, pipe: str, token: Token | None) -> None:
        """What the pipe does from here on comes after `token`; a stalled scalar unit stalls all issue."""
        if token is None:
            return
        if pipe == "S":
            self.acquire_all(core, token)
        else:
            _join(self.know[self.agent(core, pipe)], token)

    def acquire_all(self, core: Core, token: Token | None) -> None:
        if token is None:
            return
        stalls = list(self.stalls.get(core, ()))  # a new list: queued items keep the one of their issue
        _join(stalls, token)
        self.stalls[core] = stalls
        for (owner, pipe), agent in self.agents.items():
            if owner is core and not core.queues.get(pipe):
                _join(self.know[agent], token)

    def resume(self, core: Core, pipe: str, stalls: Token | None) -> None:
        """A queued item goes on: it knows what the scalar unit had waited for when it issued the item."""
        if stalls is not None:
            _join(self.know[self.agent(core, pipe)], stalls)

    def barrier(self, core: Core, pipe: str) -> None:
        agent = self.agent(core, pipe)
        _raise(self.know[agent], agent, self.count[agent])

    def barrier_all(self, core: Core) -> None:
        self.acquire_all(core, self.release_all(core))

    def merged(self, tokens: list[Token | None]) -> Token:
        out: Token = []
        for token in tokens:
            _join(out, token or [])
        return out

    # -- other blocks ----------------------------------------------------------------------------------

    def learn(self, core: Core, tokens: dict[int, Token]) -> None:
        """The core waited for what `tokens` say of each block; flags pass that on like all other knowledge."""
        known = self.learned.setdefault(core, [])
        now = {block: list(token) for block, token in known[-1].items()} if known else {}
        for block, token in tokens.items():
            if block == self.block:
                self.acquire_all(core, token)
            else:
                _join(now.setdefault(block, []), token)
        known.append(now)
        agent = self.agent(core, GRID)
        self.count[agent] += 1
        self.acquire_all(core, [0] * agent + [self.count[agent]])

    def others(self, know: Token) -> dict[int, Token]:
        """What is known of other blocks by whoever knows `know`."""
        out: dict[int, Token] = {}
        for core, known in self.learned.items():
            agent = self.agents[core, GRID]
            times = know[agent] if agent < len(know) else 0
            for block, token in known[times - 1].items() if times else ():
                _join(out.setdefault(block, []), token)
        return out


def agent_pipe(i: Instr) -> str:
    return i.pipe if i.pipe and i.pipe != "ALL" else "S"


def knows(know: Token, agent: int, sequence: int) -> bool:
    return agent < len(know) and know[agent] >= sequence


def _raise(know: Token, agent: int, count: int) -> None:
    if len(know) <= agent:
        know.extend([0] * (agent + 1 - len(know)))
    if know[agent] < count:
        know[agent] = count


def _join(know: Token, token: Token) -> None:
    if len(know) < len(token):
        know.extend([0] * (len(token) - len(know)))
    for n, t in enumerate(token):
        if t > know[n]:
            know[n] = t


def meet(cores: list[Core]) -> None:
    """Cores that met at a grid barrier know all that each of them did and knew."""
    tokens: dict[int, Token] = {}
    for core in cores:
        own = core.clock.release_all(core)
        _join(tokens.setdefault(core.block, []), own)
        for block, token in core.clock.others(own).items():
            _join(tokens.setdefault(block, []), token)
    for core in cores:
        core.clock.learn(core, tokens)


class Signals:
    """What whoever wrote a signal in global memory had done before, by word."""

    def __init__(self) -> None:
        self.words: dict[tuple[Buffer, int], dict[int, Token]] = {}

    def notify(self, core: Core, buffer: Buffer, offset: int) -> None:
        token = core.clock.release(core, "S")
        tokens = self.words.setdefault((buffer, offset), {})
        _join(tokens.setdefault(core.block, []), token)
        for block, other in core.clock.others(token).items():
            _join(tokens.setdefault(block, []), other)

    def awaited(self, core: Core, buffer: Buffer, offsets: list[int]) -> None:
        for offset in offsets:
            tokens = self.words.get((buffer, offset))
            if tokens:
                core.clock.learn(core, tokens)


class Access:
    """One access: bytes `low` to `high` of a buffer by an event; `region` or `at` give them exactly."""

    __slots__ = (
        "agent", "at", "atomic", "core", "dense", "high", "know", "low", "op", "pipe", "place", "region",
        "replaced", "sequence", "write",
    )  # fmt: skip

    def __init__(
        self, i: Instr, place: Place, low: int, high: int, write: bool, region: Region | None, at: Array | None
    ) -> None:
        self.agent, self.sequence, self.know = i.event
        self.low, self.high = low, high
        self.core = i.core
        self.write = write
        self.region = region
        self.at = at
        self.replaced = 0  # what this one stands for: an earlier write of its agent, by sequence
        self.dense = region is not None and region.dense
        self.op = i.op
        self.pipe = agent_pipe(i)
        self.place = place
        self.atomic = is_atomic(i.op)

    def bytes(self) -> Array:
        if self.region is not None:
            return self.region.byte_offsets()
        assert self.at is not None
        return self.at


def is_atomic(op: Operation) -> bool:
    """Whether an instruction may meet others like it on the same bytes: atomic stores, signals."""
    if op.row is None:
        return False
    if op.row.family == "signal":
        return True
    kinds = (str(op.attr(n) or "none") for n in ("atomicType", "scatterAtomicOp") if n in op.row.attr_index)
    return any(not k.endswith("none") for k in kinds)


class RaceChecker:
    """Races of one launch; of a program whose pipes are not synchronised yet, those between blocks only."""

    def __init__(self, isa: str, reports: Reports, blocks: int, automatic: bool = False) -> None:
        self.isa = isa
        self.reports = reports
        self.blocks = blocks
        self.automatic = automatic
        self.signals = Signals()
        self.across = BlockMap(self) if blocks > 1 else None
        #: The earlier access that the advice of a report is about.
        self.advised: dict[Any, Operation] = {}

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
        if self.automatic:
            return
        pages = range(low // PAGE, (high - 1) // PAGE + 1) if buffer.space == "gm" else (0,)
        seen: dict[int, list[Access]] = buffer.shadows.setdefault(("race", i.core.block), {})
        for page in pages:
            entries = seen.setdefault(page, [])
            self._compare(i, new, entries)
            entries.append(new)

    def _compare(self, i: Instr, new: Access, entries: list[Access]) -> None:
        covered = False
        know = new.know
        # the latest first: who is ordered after it is often ordered after what came before
        for n in range(len(entries) - 1, -1, -1):
            old = entries[n]
            if old.high <= new.low or old.low >= new.high:
                continue
            known = knows(know, old.agent, old.sequence)
            if (new.write or old.write) and not known:
                if old.agent == new.agent and old.sequence == new.sequence:
                    continue
                if (old.atomic and new.atomic) or self._chained(new, old):
                    continue
                shared = _overlap(new, old)
                if shared is None:
                    continue
                self._report(new, old, entries, *shared)
                known = True
            # what the new access covers and follows needs no memory of its own: whoever knows the new one
            # knows it too
            if (
                known and new.dense and new.low <= old.low and old.high <= new.high
                and (new.write or (not old.write and old.agent == new.agent))
            ):  # fmt: skip
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
            _join(know, old.know)
            _raise(know, old.agent, old.sequence)
        if old.core is not new.core and old.write != new.write:
            old, new = _sides(old, new, entries)
        kind = _kind(new.write, old.write)
        key = ("race", new.op, old.core.kind, old.pipe)
        grid = new.core.grid
        note = (_other_side(new, old), grid.span(old.op))
        again = self.reports.again(key, note)
        known = self.reports.found.get(key)
        if again and (known is None or not self.advised[key].start < old.op.start < new.op.start):
            return
        self.advised[key] = old.op
        help = how_to_order(
            grid.program.module, self.isa, Side(old.op, old.pipe, old.core.name),
            Side(new.op, new.pipe, new.core.name),
        )  # fmt: skip
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


def _sides(a: Access, b: Access, entries: list[Access]) -> tuple[Access, Access]:
    """A write and a read on different cores, in the order that is meant: the read waits for the write, unless
    it has waited for an earlier one, which the write then overwrites too soon."""
    writer, reader = (a, b) if a.write else (b, a)
    before = max(
        (
            e.sequence
            for e in entries
            if e is not None and e.write and e.agent == writer.agent and e.sequence < writer.sequence
            and _overlap(e, reader) is not None
        ),
        default=writer.replaced,
    )  # fmt: skip
    return (reader, writer) if before and knows(reader.know, writer.agent, before) else (writer, reader)


def _kind(new_writes: bool, old_writes: bool) -> str:
    return "RAW" if not new_writes else "WAW" if old_writes else "WAR"


def _other_side(new: Access, old: Access) -> str:
    """What the access that came first did."""
    first = old.op.row.name if old.op.row else old.op.name
    name = old.place.name
    what = "them" if name == new.place.name or not name else f"them as %{name}"
    earlier = old.core is new.core and (old.op is new.op or old.op.start > new.op.start)
    when = " in an earlier iteration" if earlier else ""
    return f"{first} {'writes' if old.write else 'reads'} {what}{when}"


# -- blocks ------------------------------------------------------------------------------------------------


class BlockMap:
    """Which accesses touched the bytes of global memory last: two writers and two readers of different blocks
    per byte, so that whoever comes next meets at least one that is not of its own block."""

    def __init__(self, checker: RaceChecker) -> None:
        self.checker = checker
        self.places: list[tuple[Operation, bool]] = [(None, False)]  # type: ignore[list-item]
        #: Block, agent, sequence and atomicity of every access, by number; 0 stands for none.
        self.facts = np.zeros((1024, 4), np.int64)
        self.used = 1
        self._limits: dict[Any, Array] = {}

    def access(self, i: Instr, new: Access, buffer: Buffer) -> None:
        tables = buffer.shadows.get("blocks")
        if tables is None:
            tables = buffer.shadows["blocks"] = np.zeros((4, buffer.data.size), np.int32)
        number = self._number(i, new)
        where: Any = slice(new.low, new.high) if new.dense else new.bytes()
        for row in range(4):
            if row >= 2 and not new.write:
                break
            found = tables[row, where]
            old, bad = self._unordered(i, new, found)
            if old:
                at = np.arange(new.low, new.high) if new.dense else where
                shared = at if bad is None else at[bad]
                self._report(i, new, old, row < 2, int(shared.min()), int(shared.max()) + 1)
                break
        first, second = (0, 1) if new.write else (2, 3)
        free = self._replaceable(i, new, tables[first, where])
        if free is True:
            tables[first, where] = number
            return
        tables[first, where] = np.where(free, number, tables[first, where])
        there = tables[second, where]
        also = self._replaceable(i, new, there)
        tables[second, where] = np.where(~free & (True if also is True else also), number, there)

    def _number(self, i: Instr, new: Access) -> int:
        number = self.used
        if number == len(self.facts):
            self.facts = np.concatenate([self.facts, np.zeros_like(self.facts)])
        self.facts[number] = i.core.block, new.agent, new.sequence, new.atomic
        self.places.append((new.op, new.write))
        self.used += 1
        return number

    def _unordered(self, i: Instr, new: Access, found: Array) -> tuple[int, Array | None]:
        """An access of another block among `found` that the new one does not follow, 0 where there is none;
        and which of `found` are such, None for all."""
        if not found.any():
            return 0, None
        same = bool((found == found[0]).all())
        numbers = found[:1] if same else found
        facts = self.facts[numbers]
        bad = (numbers != 0) & (facts[:, 0] != i.core.block)
        if new.atomic:
            bad &= facts[:, 3] == 0
        if bad.any():
            bad &= ~self._known(i, new, facts)
        return (int(numbers[np.argmax(bad)]), None if same else bad) if bad.any() else (0, None)

    def _replaceable(self, i: Instr, new: Access, found: Array) -> Any:
        """Which remembered accesses the new one stands for: none, its own block's, those it follows."""
        if not found.any():
            return True
        facts = self.facts[found]
        mine = (found == 0) | (facts[:, 0] == i.core.block)
        return True if mine.all() else mine | self._known(i, new, facts)

    def _known(self, i: Instr, new: Access, facts: Array) -> Array:
        clock: Clock = i.core.clock
        times = tuple(new.know[a] if a < len(new.know) else 0 for (_, p), a in clock.agents.items() if p == GRID)
        if not any(times):
            return np.zeros(len(facts), bool)
        key = (i.core.block, times)
        limits = self._limits.get(key)
        if limits is None:
            tokens = clock.others(new.know)
            limits = np.zeros((self.checker.blocks, 1 + max((len(t) for t in tokens.values()), default=0)), np.int64)
            for block, token in tokens.items():
                limits[block, : len(token)] = token
            self._limits[key] = limits
        agents = np.minimum(facts[:, 1], limits.shape[1] - 1)
        return facts[:, 2] <= limits[facts[:, 0], agents]

    def _report(self, i: Instr, new: Access, number: int, wrote: bool, low: int, high: int) -> None:
        op, _ = self.places[number]
        block = int(self.facts[number, 0])
        kind = _kind(new.write, wrote)
        said = {"RAW": "reads", "WAR": "overwrites", "WAW": "writes"}[kind]
        done = {"RAW": "writes", "WAR": "reads", "WAW": "writes too"}[kind]
        d = i.core.diagnostic(
            i.op, "PTO-E2202",
            f"{kind} race between blocks: {said} {bytes_of(new.place, low, high)}, which block {block} {done}, "
            "in either order",
            help="blocks run in any order: give each its own part, use an atomic store, or let all of them meet "
            "in 'pto.syncall' between the two",
        )  # fmt: skip
        d.notes.append((f"block {block} {'writes' if wrote else 'reads'} them here", i.core.grid.span(op)))
        self.checker.reports.add(("blocks", frozenset((i.op, op))), d)


def _overlap(a: Access, b: Access) -> tuple[int, int] | None:
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


def forget_blocks(buffers: list[Buffer]) -> None:
    """All cores of all blocks have met: nothing before matters any more."""
    for buffer in buffers:
        buffer.shadows.pop("blocks", None)
        for key in [k for k in buffer.shadows if isinstance(k, tuple) and k[0] == "race"]:
            del buffer.shadows[key]

