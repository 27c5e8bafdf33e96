"""A core that runs: its scalar unit with the frames of the program, its pipes, flags and tokens.

The scalar unit runs the program (`Core.run`) and issues work to pipes. By default a pipe performs an item as
soon as it is issued. If an item has to wait, later items of its pipe are queued. Under a schedule (see
`pto.engine.sanitize.schedule`) every item is queued, and the schedule selects the next pipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ...diag import Diagnostic
from ...ir.core import Operation
from ...ir.facts import enclosing, provenance
from ...isa.machine import QUEUES
from ...isa.profiles import Profile
from ..memory import Buffer, GlobalMemory, MemoryFault
from ..watch import SESSION, TAKE, Event, Given, Watchers
from .code import Code
from .dry import stays_within
from .instr import IllegalInstruction, Instr, Plain, Port
from .state import CoreState
from .watched import perform, watched

#: Operands and attributes of an operation, by name.
Args: TypeAlias = dict[str, Any]

#: Results of a step that are not program counters.
BLOCKED = -1
MOVED = -2  # the frame changed: go on at core.code, core.pc
ENDED = -3


class RunError(Exception):
    """An error that ends the program; it has the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.message)


class QueueItem:
    """An entry in the queue of a pipe. `movable` items of an unordered pipe may overtake each other."""

    __slots__ = ("event", "indices", "key", "op")
    movable = False
    #: Whether the item overrides `take` and `perform`.
    takes = acts = False
    #: The end of the message if no core or pipe provides the awaited event.
    unprovided = ""
    #: The kind of its event, see `watch.Event`.
    what = TAKE
    kind = ""

    def __init__(self, op: Operation, key: Any = None) -> None:
        self.op = op
        self.key = key  # the flag, token or semaphore that it gives or waits for
        self.event: Any = None  # only with observers
        #: The loop counters at its issue, if it had to wait; see `Core.indices`.
        self.indices: str | None = None

    def ready(self, core: Core, pipe: str) -> bool:
        return True

    def take(self, core: Core, pipe: str) -> Sequence[Any]:
        """Take the awaited flags, tokens or semaphores; return them as `watch.Given`, for observers."""
        return ()

    def perform(self, core: Core, pipe: str) -> None:
        """Perform the item, once all its waits are over."""

    def to_watch(self, core: Core, pipe: str) -> Event:
        """Return the event of the item for observers."""
        return Event(core, pipe, self.op, self.what, self.kind, self.key)

    def __init_subclass__(cls) -> None:
        cls.takes, cls.acts = cls.take is not QueueItem.take, cls.perform is not QueueItem.perform

    def waits_for(self, core: Core, pipe: str) -> str:
        """Describe the event that a stuck item waits for."""
        return "its turn"

    def provider(self, core: Core) -> tuple[Core, str] | None:
        """Return the core and pipe that would provide the awaited event, but are stuck themselves."""
        return None

    def missing(self, core: Core, pipe: str) -> str:
        """Describe the event that a stuck item waits for, and why it is missing."""
        provider = self.provider(core)
        if provider is None:
            return self.waits_for(core, pipe) + self.unprovided
        whose = f"PIPE_{provider[1]}" + (f" of {provider[0].name}" if provider[0] is not core else "")
        return f"{self.waits_for(core, pipe)}, which {whose} would give after its own wait"


def queued(cores: Iterable[Any], wanted: Callable[[QueueItem], bool]) -> tuple[Core, str] | None:
    """Return the first core and pipe with a wanted item in the queue."""
    for core in cores:
        for pipe, items in core.queues.items():
            if any(wanted(item) for item in items):
                return core, pipe
    return None


class Work(QueueItem):
    """An instruction of a pipe."""

    __slots__ = ("execute", "instr")
    movable = True

    def __init__(self, instr: Instr, execute: Callable[[Instr], object]) -> None:
        super().__init__(instr.op)
        self.instr = instr
        self.execute = execute

    def to_watch(self, core: Core, pipe: str) -> Event:
        return watched(self.instr, self.execute)

    def perform(self, core: Core, pipe: str) -> None:
        core.execute(self.instr, self.execute)


class Core(CoreState):
    """A core that runs: its scalar unit, its pipes with their queues, its flags and tokens."""

    def __init__(
        self,
        profile: Profile,
        gm: GlobalMemory | None = None,
        kind: str = "mix",
        block: int = 0,
        sub: int = 0,
        out: Any = None,
        rank: int = 0,
        index: int | None = None,
    ) -> None:
        super().__init__(profile, gm, kind, block, sub, out, rank, index)
        self.port: Port = Plain()
        self.eager = True
        #: The scalar unit waits for all work that it issued, because the program does not synchronize its
        #: pipes yet.
        self.in_order = False
        #: Pipes perform nothing: see `dry.py`.
        self.dry = False
        self.at_work: QueueItem | None = None  # the queued item that is performed now
        self.blocked: Event | None = None  # the wait of the scalar unit, only with observers

        self.queues: dict[str, deque[QueueItem]] = {p: deque() for p in QUEUES}
        self.queued = 0
        # Flags, tokens and semaphores that are set: `watch.Given` with observers, else None.
        self.flags: dict[tuple[str, str, int], deque[Given | None]] = {}
        self.tokens: dict[int, Any] = {}
        #: Unit flags, see `cube/unit_flag.py`: matrices of L0C by address.
        self.published: dict[int, tuple[int, Given | None]] = {}
        self.freed: dict[int, Given | None] = {}
        self.handed: dict[tuple[str, int | None], Any] = {}
        self.pipes: dict[int, Any] = {}  # FIFO handles by number and direction

        self.code: Code = None  # type: ignore[assignment]
        self.pc = 0
        self.regs: list[Any] = []
        self.frames: list[tuple[Code, int, list[Any], Any]] = []
        self.done = False
        self.waiting: str | QueueItem = ""  # the wait of the scalar unit
        self.ticks = 0
        self.performed = 0
        #: Slots of the current frame with undefined scalars, if these are tracked.
        self.poison: dict[int, object] = {}

    # -- the scalar unit -------------------------------------------------------------------------------

    def start(self, code: Code, args: list[object]) -> None:
        self.code = code
        self.regs = code.frame(args)
        self.pc = 0

    def run(self, limit: int = 1 << 62) -> None:
        """Run until the program ends, the scalar unit blocks, or `limit` steps are done."""
        if self.queued:
            self.drain()
        if self.queued and self.in_order:
            return
        steps, pc = self.code.steps, self.pc
        in_order = self.in_order
        self.waiting = ""
        ticks = 0
        try:
            while ticks < limit:
                after = steps[pc](self)
                if after is None:
                    pc += 1
                    if in_order and self.queued:
                        ticks += 1
                        break
                elif after >= 0:
                    pc = after
                elif after == MOVED:
                    steps, pc = self.code.steps, self.pc
                elif after == BLOCKED:
                    break
                else:
                    self.done = True
                    break
                ticks += 1
        except IllegalInstruction as problem:
            raise self.illegal(self.code.ops[pc], problem) from None
        except LookupError as missing:
            raise self.unplaced(self.code.ops[pc], missing) from None
        finally:
            self.pc = pc
            self.ticks += ticks

    # -- pipes -----------------------------------------------------------------------------------------

    def issue(self, i: Instr, execute: Callable[[Instr], object]) -> Any:
        """Issue an instruction to its pipe; execute one of the scalar unit at once, and return its result."""
        queue = self.queues.get(i.pipe)
        if queue is None:
            return self.execute(i, execute)
        if self.eager and not queue:
            self.execute(i, execute)
        else:
            work = Work(i.frozen(), execute)
            if self.watch is not None:
                work.event = self.watch.issue(work.to_watch(self, i.pipe))
            work.indices = self.indices(i.op)
            self.queued += 1
            queue.append(work)
        return None

    def enqueue(self, pipe: str, item: QueueItem) -> None:
        """Queue a synchronization item, or perform it at once if its pipe is free."""
        queue = self.queues[pipe]
        if self.watch is not None:
            item.event = self.watch.issue(item.to_watch(self, pipe))
        if self.eager and not queue and item.ready(self, pipe):
            if self.watch is None:  # as in `perform`
                if item.takes:
                    item.take(self, pipe)
                if item.acts:
                    item.perform(self, pipe)
            else:
                self.perform(item, pipe)
            self.performed += 1
            if self.queued:
                self.drain()
        else:
            item.indices = self.indices(item.op)
            self.queued += 1
            queue.append(item)

    def take(self, pipe: str, index: int = 0) -> None:
        """Perform a queued item."""
        queue = self.queues[pipe]
        item = queue[index]
        del queue[index]
        self.queued -= 1
        self.performed += 1
        self.at_work = item
        self.perform(item, pipe)
        self.at_work = None

    def perform(self, item: QueueItem, pipe: str) -> None:
        """Perform an item that is ready."""
        watch = self.watch
        if watch is None:
            if item.takes:
                item.take(self, pipe)
            if item.acts:
                item.perform(self, pipe)
            return
        watch.start(item.event, item.take(self, pipe) if item.takes else ())
        if item.acts:
            item.perform(self, pipe)
        watch.finish(item.event)

    def stall(self, item: QueueItem) -> int | None:
        """Perform an item on the scalar unit, or block it."""
        if not item.ready(self, "S"):
            return self.pause(item, item)
        if self.watch is not None:
            item.event = self._of_scalar_unit(self.watch, item)
        self.perform(item, "S")
        return None

    def pause(self, waiting: str | QueueItem, item: QueueItem) -> int:
        """Let the scalar unit wait for something, in order to perform an item."""
        self.waiting = waiting
        if self.watch is not None:
            self.blocked = self._of_scalar_unit(self.watch, item)
        return BLOCKED

    def _of_scalar_unit(self, watch: Watchers, item: QueueItem) -> Event:
        """Return the event of an item of the scalar unit; after a wait it is the event of that wait."""
        found, self.blocked = self.blocked, None
        event = item.to_watch(self, "S")
        if found is None or found.op is not item.op:
            return watch.issue(event)
        found.args, found.poison, found.inner = event.args, event.poison, event.inner
        if found.inner is not None:
            found.inner[0].event = found
        return found

    def give(self, event: Event, kind: str, key: object, of: Sequence[Given] = ()) -> Given | None:
        """Return the `watch.Given` of a flag, token or semaphore that others wait for; None without
        observers.
        """
        return None if self.watch is None else self.watch.give(event, kind, key, of)

    def barrier(self, op: Operation, pipe: str) -> None:
        """Report that all earlier work of a pipe (ALL: every pipe) is done."""
        if self.watch is not None:
            self.watch.tell("barrier", self, op, pipe)

    def drain(self) -> None:
        """Perform all items that are ready, pipe by pipe."""
        if not self.eager:
            return
        went = True
        while went and self.queued:
            went = False
            for pipe, queue in self.queues.items():
                while queue and queue[0].ready(self, pipe):
                    self.take(pipe)
                    went = True

    @property
    def idle(self) -> bool:
        """True if no pipe and no session of asynchronous transfers has work left."""
        return not self.queued

    @property
    def drained(self) -> bool:
        """True if no pipe has work left."""
        return not self.queued or not any(
            queue for pipe, queue in self.queues.items() if not pipe.startswith(SESSION)
        )

    def execute(self, i: Instr, execute: Callable[[Instr], object]) -> Any:
        if self.dry and i.pipe in self.queues:
            execute = stays_within
        try:
            result = execute(i) if self.watch is None else perform(self.watch, i, execute)
        except MemoryFault as fault:
            raise self.fault(i, fault) from None
        except IllegalInstruction as problem:
            raise self.illegal(i.op, problem, i) from None
        except LookupError as missing:
            raise self.unplaced(i.op, missing) from None
        self.performed += 1
        return result

    # -- problems --------------------------------------------------------------------------------------

    def indices(self, op: Operation) -> str:
        """Return the counters of the loops around an operation and around the calls of its function."""
        here = self.at_work
        if here is not None and here.op is op and here.indices is not None:
            return here.indices
        frames = [(code, code.ops[pc - 1], regs) for code, pc, regs, _ in self.frames]
        found: list[str] = []
        for code, at, regs in [*frames, (self.code, op, self.regs)]:
            if code is None or not code.counters:
                continue
            loops = [code.counters[loop] for loop in enclosing(at) if loop in code.counters]
            for name, slot, bound in reversed(loops):
                if regs[slot] is not None and regs[slot] < regs[bound]:  # else it has ended, or not begun
                    found.append(f"%{name} = {regs[slot]}")
        return ", ".join(found)

    def fault(self, i: Instr, fault: MemoryFault) -> RunError:
        buffer = fault.buffer
        size = buffer.limit
        d = self.diagnostic(
            i.op,
            "PTO-E2101",
            f"touches bytes {fault.low}..{fault.high} of {buffer.name}, which has {size} bytes",
            expected=f"addresses below {size}",
            got=f"up to {fault.high}",
            help="check offsets, strides and sizes"
            + ("; the array given to the launch may be too small" if buffer.space == "gm" else "")
            + ("; no rank has a window there" if buffer.of is not None else ""),
        )
        self._add_provenance(d, i, buffer)
        return RunError(d)

    def _add_provenance(self, d: Diagnostic, i: Instr, buffer: Buffer) -> None:
        """Add notes on how the pointers and windows into a buffer were made."""
        for declared, value in i.op.named():
            if getattr(i.args.get(declared.name), "buffer", None) is buffer:
                made = ((text, self.grid.span(op)) for text, op in provenance(value))
                d.notes.extend((text, span) for text, span in made if span != d.span)

    def illegal(self, op: Operation, problem: IllegalInstruction, i: Instr | None = None) -> RunError:
        d = self.diagnostic(
            op, problem.code, str(problem), expected=problem.expected, got=problem.got, help=problem.help
        )
        if i is not None and problem.buffer is not None:
            self._add_provenance(d, i, problem.buffer)
        return RunError(d)

    def unplaced(self, op: Operation, missing: LookupError) -> RunError:
        if isinstance(missing, KeyError | IndexError):
            raise missing
        d = self.diagnostic(
            op, "PTO-E2103", f"tile %{missing} has no address yet",
            help="bind it first: pto.tassign, or a pto.tpop that declares it",
        )  # fmt: skip
        return RunError(d)
