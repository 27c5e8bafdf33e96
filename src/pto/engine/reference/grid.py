"""A launch: its blocks, their cores, and the order in which cores run.

Blocks run one after another. The next core of a block runs when one of them blocks, so a run is
deterministic. A later block starts early only when all earlier ones wait for something (a grid barrier). Each
rank has its own blocks, and one of them is always active, because ranks may wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Any, TextIO

import numpy as np

from ...diag import Diagnostic, Span
from ...ir.core import Module, Operation
from ...ir.nesting import BlockStatement, nesting
from ...ir.types import Type
from ...isa.profiles import Profile
from ...verifier.missing import release_before, set_before, thing_of
from ..memory import DealtPointer, GlobalMemory, Tile, View
from ..vocabulary import Words
from ..watch import Given, Watchers
from .code import Code
from .core import Core, QueueItem, RunError
from .lower import LoweredModule
from .semantics import SEMANTICS, Semantics
from .state import Cluster
from .watched import port_of

#: The number of steps after which other cores run, so that a core can poll a value that another core writes.
QUANTUM = 10_000


class _OfRank:
    """The output of a rank; every line begins with the name of the rank."""

    def __init__(self, out: TextIO, rank: int) -> None:
        self._out = out
        self._name = f"rank {rank}: "
        self._begun = False

    def write(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            self._out.write(line if self._begun else self._name + line)
            self._begun = not line.endswith("\n")


class Grid:
    """One launch of a program: `roles` are the cores of a block as (kind, sub-block, code), `args` has for
    each rank the argument values of each function, `blocks` is the number of blocks of one rank."""

    words = Words()

    def __init__(
        self,
        program: LoweredModule,
        profile: Profile,
        gm: GlobalMemory,
        roles: list[tuple[str, int, Code]],
        args: Sequence[dict[str, list[object]]],
        blocks: int,
        out: TextIO,
        watch: Watchers | None = None,
        schedule: Any = None,
        progress: Callable[[int, int, int], None] | None = None,
        max_steps: int | None = None,
        in_order: bool = False,
        semantics: Semantics = SEMANTICS["hw"],
        timeout: float | None = None,
        dry: bool = False,
        only: Collection[int] | None = None,
    ) -> None:
        self.program = program
        self.dry = dry
        self.profile = profile
        self.gm = gm
        self.roles = roles
        self.args = args
        self.blocks = blocks
        self._only = only  # the blocks to run; None: all
        self.ranks = len(args)
        self.subblocks = max(1, sum(kind == "vector" for kind, _, _ in roles))
        self._outs = [out] if self.ranks == 1 else [_OfRank(out, rank) for rank in range(self.ranks)]
        self.watch = watch
        self.tracks = watch is not None and watch.tracks
        self._port = port_of(watch)
        self.schedule = schedule
        self.progress = progress
        self.max_steps = max_steps
        self.in_order = in_order
        self.semantics = semantics
        self._timeout = timeout
        self._deadline = None if timeout is None else monotonic() + timeout
        self._steps = 0
        self._meetings: dict[tuple[int, str], set[Core]] = {}
        self._left: dict[Core, str] = {}  # cores that met and may go on
        #: Arrivals of cores of one kind that have signalled each other (`sync.Arrival`), by rank, block
        #: (None: all blocks), kind of core and id.
        self.arrived: dict[tuple[int, int | None, str, int], dict[Core, deque[Given | None]]] = {}
        self.active: list[Core] = []
        self.broken: RunError | None = None  # the first broken rule, only with observers
        self._ended: list[str] = []  # names of cores
        self._started = [0] * self.ranks  # blocks of each rank, those left out included
        self._began = False
        self.moves = 0  # counts progress

    @property
    def module(self) -> Module:
        return self.program.module

    def callers(self, op: Operation) -> Sequence[tuple[str, Span]]:
        """Return the functions around an operation that the module does not contain, innermost first: their
        names, and the current source location in each.
        """
        return ()

    def arguments(self, rank: int) -> Sequence[tuple[str, object, Type]]:
        """Return the arguments of the launch that are not in the module: names, values, types."""
        return ()

    @property
    def cores(self) -> int:
        """The number of cores of all blocks."""
        return self.all_blocks * len(self.roles)

    @property
    def all_blocks(self) -> int:
        return self.ranks * self.blocks

    @property
    def signalled(self) -> bool:
        """True if waits for signals in global memory count as satisfied: their writers run elsewhere."""
        return False

    def span(self, op: Operation) -> Span | None:
        return op.loc.head if op.loc is not None else None

    def nesting(self, op: Operation) -> list[BlockStatement]:
        """Return the statements around an operation up to its function, innermost first, itself included."""
        return nesting(self.module, op)

    def stands_inside(self, inner: Operation, outer: Operation) -> bool:
        """Return whether `inner` is in a block that does not contain `outer` and is missing in the module.
        Modules of this engine have all blocks, so return False.
        """
        return False

    def function(self, name: str) -> Operation | None:
        return self.program.module.function(name)

    # -- running ---------------------------------------------------------------------------------------

    def go(self) -> bool:
        """Run as far as possible; return whether the launch has ended. Otherwise it waits for other processes
        or is stuck."""
        if self.watch is not None and not self._began:
            self.watch.tell("launch_started", self)
        self._began = True
        with np.errstate(all="ignore"):
            if self.schedule is not None:
                return self.schedule.go(self)
            while self.fill():
                if not self._turn() and not self.admit():
                    return False
        return True

    def fill(self, together: int = 1) -> bool:
        """Start blocks until each unfinished rank has an active block, and, if possible, `together` blocks
        are active in all. Return whether any block is active.
        """
        busy = {core.rank for core in self.active}
        for rank in range(self.ranks):
            if rank not in busy:
                self._start(rank)
        while len({core.index for core in self.active}) < together and self.admit():
            pass
        return bool(self.active)

    def admit(self) -> bool:
        """Start one more block, of the rank that has started the fewest; return False if none is left."""
        return self._start(self._started.index(min(self._started)))

    def _start(self, rank: int) -> bool:
        block = self._started[rank]
        while self._only is not None and block < self.blocks and block not in self._only:
            block += 1
        if block >= self.blocks:
            return False
        index = rank * self.blocks + block
        cluster = Cluster(index)
        for kind, sub, code in self.roles:
            core = self.make_core(self.profile, self.gm, kind, block, sub, self._outs[rank], rank, index)
            core.grid, core.cluster = self, cluster
            core.eager = self.schedule is None
            core.in_order = self.in_order
            core.dry = self.dry
            core.semantics = self.semantics
            core.watch, core.port = self.watch, self._port
            cluster.cores.append(core)
            self.active.append(core)
            if self.watch is not None:
                self.watch.tell("core_started", core)
            self.begin(core, code)
        self._started[rank] = block + 1
        return True

    def make_core(self, *about: Any) -> Core:
        """Make a core of the launch."""
        return Core(*about)

    def begin(self, core: Core, code: Code) -> None:
        """Start the function of a core."""
        core.start(code, [self._spmd(core, v) for v in self.args[core.rank][code.name]])

    def _spmd(self, core: Core, value: object) -> object:
        """Return the value of an argument; a name stands for a property of the core in the launch."""
        if isinstance(value, DealtPointer):
            return value.part(core.block, self.blocks)
        if not isinstance(value, str):
            return value
        return {"__pypto_spmd_block_idx": core.block, "__pypto_spmd_block_num": self.blocks}.get(
            value, core.sub
        )

    def _turn(self) -> bool:
        """Run every active core as far as possible; return whether any made progress."""
        went = False
        for core in list(self.active):
            before = (core.ticks, core.performed)
            if not core.done:
                left = QUANTUM if self.max_steps is None else self.max_steps - self._steps + 1
                core.run(max(1, min(QUANTUM, left)))
            else:
                core.drain()
            self.spend(core, core.ticks - before[0])
            went |= (core.ticks, core.performed) != before
            if core.done and core.idle:
                self.finish(core)
                went = True
        self.moves += went
        return went

    def spend(self, core: Core, steps: int) -> None:
        """Count steps against the limit of the launch."""
        self._steps += steps
        if self.progress is not None:
            self.progress(sum(self._started), self.all_blocks, self._steps)
        if core.done:
            return
        if self.max_steps is not None and self._steps > self.max_steps:
            raise self._too_long(core, f"{self.max_steps} steps")
        if self._deadline is not None and monotonic() > self._deadline:
            raise self._too_long(core, f"{self._timeout:g} s")

    def _too_long(self, core: Core, what: str) -> RunError:
        help = "check for a loop that never ends, or raise the limit"
        return RunError(
            core.diagnostic(core.code.ops[core.pc], "PTO-E2106", f"still running after {what}", help=help)
        )

    def finish(self, core: Core) -> None:
        self.active.remove(core)
        self._ended.append(core.where())
        if self.watch is not None:
            self.watch.tell("core_ended", core)

    # -- grid barriers ---------------------------------------------------------------------------------

    def meet(self, core: Core, who: str) -> bool:
        """Let a core arrive at a grid barrier; return whether it may go on, because all participants have
        arrived."""
        if self._left.pop(core, None) == who:
            return True
        here = self._meetings.setdefault((core.rank, who), set())
        here.add(core)
        kinds = {"aiv_only": ("vector", "mix"), "aic_only": ("cube", "mix")}.get(
            who, ("vector", "cube", "mix")
        )
        needed = self.blocks * sum(kind in kinds for kind, _, _ in self.roles)
        if len(here) < needed:
            core.waiting = f"a grid barrier ({who}): {len(here)} of {needed} cores are there"
            return False
        if self.watch is not None:
            self.watch.tell("met", sorted(here, key=lambda c: (c.block, c.sub)))
        self._left.update(dict.fromkeys(here - {core}, who))
        del self._meetings[core.rank, who]
        return True

    # -- stuck programs --------------------------------------------------------------------------------

    def stuck(self) -> RunError:
        """Return the report of a deadlock with all waits. Waits that no other core or pipe can end come
        first.
        """
        waits: list[tuple[int, Core, Operation, str, QueueItem | None]] = []
        for core in self.active:
            for pipe, queue in core.queues.items():
                if queue:
                    item = queue[0]
                    more = f"; {len(queue) - 1} more queued behind it" if len(queue) > 1 else ""
                    text = f"PIPE_{pipe} waits for {item.missing(core, pipe)}{more}"
                    waits.append((1 if item.provider(core) is None else 3, core, item.op, text, item))
            if not core.done:
                found = core.waiting or "its turn"
                what = found.missing(core, "S") if isinstance(found, QueueItem) else found
                rank = 4 if what.startswith("all its") else 2
                waits.append((rank, core, core.code.ops[core.pc], f"waits for {what}", None))
        waits.sort(key=lambda w: w[0])
        _, core, op, what, core.at_work = waits[0]
        d = core.diagnostic(
            op,
            "PTO-E2104",
            f"the program is stuck: {what}",
            help=next((line for w in waits if (line := self._missing(w[2]))), "")
            or (
                "no instruction ends this wait: add one on every path, before the wait"
                if waits[0][0] < 3
                else "these cores and pipes wait for each other: let one of them set before it waits (before "
                "a loop: set the flag back once)"
            ),
        )
        for _, other, at, why, _ in waits[1:12]:
            where = other.where()
            d.notes.append((f"{where + ': ' if where else ''}{why}", self.span(at)))
        if len(waits) > 12:
            d.notes.append((f"and {len(waits) - 12} more", None))
        if self._ended:
            names = ", ".join(self._ended[:8]) + (", .." if len(self._ended) > 8 else "")
            d.notes.append((f"{names} {'has' if len(self._ended) == 1 else 'have'} ended", None))
        return RunError(d)

    def _missing(self, wait: Operation) -> str:
        """Return the advice to insert a line that gives the awaited flag or token."""
        thing = thing_of(wait)
        if thing is None or thing.id is None or wait.row is None or wait.row.order not in ("wait", "get"):
            return ""
        return (set_before if thing.is_flag else release_before)(self, thing, wait)

    def unexpected(self, problem: Exception) -> Diagnostic:
        """Return the report of an exception in an unchecked program with an instruction that cannot run."""
        core = next((c for c in self.active if not c.done), self.active[0])
        return core.diagnostic(
            core.code.ops[core.pc],
            "PTO-E2102",
            f"cannot run here: {type(problem).__name__}: {problem}"[:200],
            help="the program was not checked; `pto check` reports its errors",
        )

    # -- reports of cores ------------------------------------------------------------------------------

    def outside_tile(
        self, core: Core, op: Operation, source: Tile, r: int, c: int, rows: int, cols: int
    ) -> None:
        if self.watch is not None:
            self.watch.tell("outside_tile", core, op, source, (r, c), (rows, cols))

    def outside_view(self, core: Core, op: Operation, source: View, dim: int, offset: int, size: int) -> None:
        if self.watch is not None:
            self.watch.tell("outside_view", core, op, source, dim, offset, size)

    def undefined_use(self, core: Core, op: Operation, origin: object, what: str) -> None:
        if self.watch is not None:
            self.watch.tell("undefined_use", core, op, origin, what)
