"""Watching a launch: hooks that an engine calls, and what it tells there.

A launch has a list of watchers: sanitizers, pictures, or one of your own.

    class Count(Watcher):
        def __init__(self):
            self.done = Counter()

        def finished(self, event):
            self.done[event.pipe] += 1

    kernel.run(a, b, watchers=[count := Count()])

Whatever a pipe performs is an *event*: an instruction, a vecscope, a wait, a barrier. The scalar unit issues
it (`issued`), the pipe gets what it waits for (`took`), begins it (`started`), touches memory (`loaded`,
`storing`, `stored`), gives what others wait for (`gave`), and is through (`finished`). Instructions of a
vecscope are events between `vecscope_started` and `vecscope_ended`, and know it as their `scope`. What faults
does not finish. Scalar arithmetic, descriptors and control flow are no events: who wants to know of them has
`reached`.

An engine knows no watcher by name: it tells `Watchers`, which has for every hook those who want it. Where
nobody watches there is no `Watchers`, and nothing is made or called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ..diag import Diagnostic, Span
from ..ir.core import Module, Operation
from ..ir.nesting import BlockStatement
from ..isa.profiles import Profile

if TYPE_CHECKING:
    from .access import Access
    from .elements import Array
    from .memory import GlobalMemory, Tile, View
    from .registers import Register
    from .result import LaunchResult


class WatchedCore(Protocol):
    """A core, as far as watchers know it: `kind` is cube, vector or mix, `name` AIC, AIV0, AIV1 or empty;
    `block` counts in its rank, `index` over all of the launch."""

    profile: Profile
    rank: int
    block: int
    index: int
    sub: int
    kind: str
    name: str

    def diagnostic(self, op: Operation, code: str, message: str, **facts: Any) -> Diagnostic:
        """A report about an operation that runs on this core."""
        ...


class WatchedLaunch(Protocol):
    """A launch, as far as watchers know it."""

    profile: Profile
    gm: GlobalMemory
    blocks: int  # of each rank
    ranks: int

    @property
    def all_blocks(self) -> int: ...

    @property
    def module(self) -> Module: ...

    @property
    def cores(self) -> int:
        """Cores of all blocks."""
        ...

    def span(self, op: Operation) -> Span | None:
        """Where an operation is written."""
        ...

    def nesting(self, op: Operation) -> list[BlockStatement]:
        """The statements around an operation up to its function, innermost first, itself included."""
        ...

    def stands_inside(self, inner: Operation, outer: Operation) -> bool:
        """Whether one is in a block that the other is not in, which the module does not show."""
        ...


#: Asynchronous transfers of a session are what a pipe does, too: this is its name, before a number.
SESSION = "SDMA"

#: What a pipe performs: an instruction, a vecscope, something that only gives or only waits, a barrier.
INSTRUCTION, VECSCOPE, GIVE, TAKE, BARRIER = "instruction", "vecscope", "give", "take", "barrier"


#: What no event has of its own until it is told.
_NONE: dict[Any, Any] = {}


class Event:
    """Something that a pipe performs."""

    #: In the order of issue, over the whole launch.
    number = 0
    #: Operands of an instruction by name, and those of its scalar operands that are undefined.
    args: Mapping[str, Any] = _NONE
    poison: Mapping[tuple[str, int | None], Any] = _NONE
    #: What it waited for, from `took` on.
    waits: Sequence[Given] = ()
    #: Those of `accesses` that are scratch.
    scratch: Sequence[Access] = ()
    #: Whether its stores are atomic updates because a mode register says so, and not the operation.
    atomic = False
    result: Any = None
    #: Where a scalar result comes from that a watcher found undefined; the engine carries this with it.
    undefined: Any = None
    began = False
    #: What the engine keeps with it until it is finished.
    inner: Any = None

    def __init__(
        self,
        core: Any,
        pipe: str,
        op: Operation,
        what: str = INSTRUCTION,
        kind: str = "",
        key: Any = None,
        scope: Event | None = None,
    ) -> None:
        self.core: WatchedCore = core
        #: The pipe without PIPE_; S is the scalar unit, ALL stands for an instruction that has all of them.
        self.pipe = pipe
        self.op = op
        self.what = what
        #: What it gives or waits for where that is all it does, as `Given` names it.
        self.kind = kind
        self.key = key
        self.scope = scope  # the vecscope that it belongs to
        #: Memory it touched so far, registers left out; whole once finished.
        self.accesses: list[Access] = []
        #: What watchers keep with it, each by its own key.
        self.keeps: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        return self.op.row.name if self.op.row is not None else self.op.name


class Given:
    """One thing given that others wait for.

    | kind | key | given by | waited for by |
    | --- | --- | --- | --- |
    | flag | (source pipe, target pipe, id) | set_flag, record_event | wait_flag, wait_event |
    | token | id | rls_buf | get_buf |
    | semaphore | (block, core, id) | sync.set, set_cross_core, set_intra_block | sync.wait, .. |
    | arrival | id | those of like cores, each | the last of them, which then raises semaphores |
    | entry | (FIFO, number) | tpush, of every lane | tpop |
    | slot | (FIFO, number) | tfree, or a tpop that copies | the tpush or talloc that takes it next |
    | unit flag | address in L0C | mad, or a write-back | the other of the two |
    | transfer | the session | every transfer of it | wait_async_event, test_async_event |
    """

    __slots__ = ("core", "keeps", "key", "kind", "number", "of", "op", "pipe")

    def __init__(self, event: Event, kind: str, key: Any, of: tuple[Given, ...]) -> None:
        self.kind = kind
        self.key = key
        self.core, self.pipe, self.op = event.core, event.pipe, event.op
        self.number = event.number  # of the event that gave it
        #: Where cores meet over semaphores: what each of them gave, this stands for all.
        self.of = of
        #: What watchers keep with it, each by its own key.
        self.keeps: dict[Any, Any] = {}


class Watcher:
    """Wants to know nothing; those who do replace hooks."""

    #: Whether it wants loads and stores. Where nobody does, vector instructions run as fast as unwatched.
    memory = True
    #: Whether it wants those of vector registers, too.
    registers = False
    #: Which events it wants to be told of, by what they are.
    wants: Sequence[str] = (INSTRUCTION, VECSCOPE, GIVE, TAKE, BARRIER)
    #: Whether it finds scalars undefined: the engine then says where they are used.
    tracks = False

    # -- the launch ------------------------------------------------------------------------------------

    def launch_started(self, launch: WatchedLaunch) -> None: ...

    def launch_ended(self, result: LaunchResult) -> None:
        """Also where the program stopped with an error; findings may be added to the result."""

    def core_started(self, core: WatchedCore) -> None:
        """All cores of a block start before any of them does something."""

    def core_ended(self, core: WatchedCore) -> None: ...

    # -- events ----------------------------------------------------------------------------------------

    def issued(self, event: Event) -> None:
        """The scalar unit hands it to its pipe, or (pipe S) begins to wait for it itself."""

    def took(self, event: Event) -> None:
        """The pipe has all that it waits for: `event.waits`."""

    def started(self, event: Event) -> None: ...

    def finished(self, event: Event) -> None: ...

    def reached(self, core: WatchedCore, op: Operation) -> None:
        """The scalar unit, or a vecscope, comes to what is no event: arithmetic, a descriptor, control flow.
        A program is lowered anew for those who want to know."""

    def vecscope_started(self, event: Event) -> None: ...

    def vecscope_ended(self, event: Event) -> None: ...

    # -- memory ----------------------------------------------------------------------------------------

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        """`data` may be memory itself: copy what is to be kept."""

    def storing(self, event: Event, access: Access, data: Array) -> None:
        """Before a store."""

    def stored(self, event: Event, access: Access) -> None: ...

    def left_undefined(self, event: Event, access: Access) -> None:
        """What the instruction leaves unspecified, although it may have written there."""

    # -- who waits for whom ----------------------------------------------------------------------------

    def gave(self, event: Event, given: Given) -> None: ...

    def barrier(self, core: WatchedCore, op: Operation, pipe: str) -> None:
        """What the pipe did is over before what comes next: on that pipe, or on all (S, ALL)."""

    def memory_barrier(self, core: WatchedCore, op: Operation, kind: str) -> None:
        """A `mem_bar` of a vecscope."""

    def met(self, cores: list[Any]) -> None:
        """Cores that wait for each other at a grid barrier are all there."""

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        """A signal in global memory was set to a value, or that was added to it."""

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        """All words of a signal in global memory compare with a number as an instruction wants it."""

    # -- what descriptors say --------------------------------------------------------------------------

    def allocated(self, core: WatchedCore, op: Operation, place: Any) -> None:
        """A tile gets its address."""

    def freed(self, core: WatchedCore, op: Operation, tile: Tile) -> None:
        """A popped tile is given back to its producer."""

    def outside_tile(
        self, core: WatchedCore, op: Operation, source: Tile, at: tuple[int, int], size: tuple[int, int]
    ) -> None:
        """A window leaves its tile."""

    def outside_view(
        self, core: WatchedCore, op: Operation, source: View, dim: int, offset: int, size: int
    ) -> None:
        """A partition leaves its view."""

    def undefined_use(self, core: WatchedCore, op: Operation, origin: Any, what: str) -> None:
        """A scalar that a watcher found undefined (`Event.undefined`) decides on something."""

    def indexed(self, event: Event, operand: str, index: Array, inside: Array, of: Any, extent: str) -> None:
        """Some of the indices that an operand holds lie outside of what is valid of the place `of`: those
        that are not `inside`. `extent` says in words how large that is."""

    def other_granularity(self, event: Event, mask: Register, size: int) -> None:
        """A mask is used for elements of `size` bytes, and was made for others."""


#: Names of the hooks.
HOOKS = tuple(n for n, f in vars(Watcher).items() if callable(f) and not n.startswith("_"))

Hooks = tuple[Callable[..., None], ...]


@cache
def _replaced(kind: type[Watcher]) -> tuple[str, ...]:
    """The hooks that a class of watchers has of its own."""
    return tuple(name for name in HOOKS if getattr(kind, name) is not getattr(Watcher, name))


class Watchers:
    """The watchers of a launch, as an engine sees them: by hook those who have it, in their order."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers:
            if not isinstance(watcher, Watcher):
                raise ValueError(f"watchers takes objects of pto.Watcher, got {watcher!r}")
        self.watchers = tuple(watchers)
        self.memory = any([w.memory for w in watchers])
        self.tracks = any([w.tracks for w in watchers])
        #: By hook those who have it.
        self._with: dict[str, list[Watcher]] = {name: [] for name in HOOKS}
        for watcher in watchers:
            for name in _replaced(type(watcher)):
                self._with[name].append(watcher)
        self.reached = self.of("reached")
        self._gave = self.of("gave")
        self._issued = self._by_event("issued")
        self._took = self._by_event("took")
        self._started = self._by_event("started")
        self._finished = self._by_event("finished")
        self.events = 0  # so many were issued

    def of(self, hook: str, registers: bool = False) -> Hooks:
        """Who has a hook: with `registers` of those who want registers."""
        return tuple([getattr(w, hook) for w in self._with[hook] if w.registers or not registers])

    def _by_event(self, hook: str) -> dict[str, list[Callable[[Event], None]]]:
        """Who has a hook, by what the events are that they want."""
        found: dict[str, list[Callable[[Event], None]]] = {what: [] for what in Watcher.wants}
        for watcher in self._with[hook]:
            hear = getattr(watcher, hook)
            for what, those in found.items():
                if what in watcher.wants:
                    those.append(hear)
        return found

    def tell(self, hook: str, *facts: Any) -> None:
        for watcher in self._with[hook]:
            getattr(watcher, hook)(*facts)

    # -- the way of an event ---------------------------------------------------------------------------

    def issue(self, event: Event) -> Event:
        self.events += 1
        event.number = self.events
        for hear in self._issued[event.what]:
            hear(event)
        return event

    def start(self, event: Event, taken: Sequence[Any] = ()) -> None:
        event.began = True
        if taken:
            event.waits = taken
            for hear in self._took[event.what]:
                hear(event)
        for hear in self._started[event.what]:
            hear(event)

    def give(self, event: Event, kind: str, key: Any, of: Sequence[Any] = ()) -> Given:
        given = Given(event, kind, key, tuple(of))
        for hear in self._gave:
            hear(event, given)
        return given

    def finish(self, event: Event) -> None:
        for hear in self._finished[event.what]:
            hear(event)
        event.inner = None
