"""Watching a launch: hooks that an engine calls, and their arguments.

A launch has a list of watchers: sanitizers, pictures, or one of your own.

    class Count(Watcher):
        def __init__(self):
            self.done = Counter()

        def finished(self, event):
            self.done[event.pipe] += 1

    kernel.run(a, b, watchers=[count := Count()])

An *event* is the work of a pipe: an instruction, a vecscope, a wait, a barrier. The scalar unit issues it
(`issued`), the pipe ends its waits (`took`), begins it (`started`), touches memory (`loaded`, `storing`,
`stored`), ends waits of others (`gave`), and finishes it (`finished`). Instructions of a vecscope are events
between `vecscope_started` and `vecscope_ended`, which is their `scope`. An event that faults does not finish.
Scalar arithmetic, descriptors and control flow are not events; they have the hook `reached`.

An engine calls `Watchers`, which has the watchers of every hook. A launch without watchers makes no
`Watchers`, no events and no calls.
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
    from .access import Access, Place
    from .elements import Array
    from .memory import GlobalMemory, Tile, View
    from .registers import Register
    from .result import LaunchResult


class WatchedCore(Protocol):
    """A core, for watchers: `kind` is cube, vector or mix; `name` is AIC, AIV0, AIV1 or empty; `block` is its
    number in its rank, `index` its number in the whole launch.
    """

    profile: Profile
    rank: int
    block: int
    index: int
    sub: int
    kind: str
    name: str

    def diagnostic(self, op: Operation, code: str, message: str, **facts: object) -> Diagnostic:
        """Return a diagnostic about an operation on this core."""
        ...


class WatchedLaunch(Protocol):
    """A launch, for watchers."""

    profile: Profile
    gm: GlobalMemory
    blocks: int  # per rank
    ranks: int

    @property
    def all_blocks(self) -> int: ...

    @property
    def module(self) -> Module: ...

    @property
    def cores(self) -> int:
        """Return the cores of all blocks."""
        ...

    def span(self, op: Operation) -> Span | None:
        """Return the source location of an operation."""
        ...

    def nesting(self, op: Operation) -> list[BlockStatement]:
        """Return the statements around an operation up to its function, itself included, innermost first."""
        ...

    def stands_inside(self, inner: Operation, outer: Operation) -> bool:
        """Return True if `inner` is in a block without `outer`, which the module does not show."""
        ...


#: The pipe of asynchronous transfers of a session, before a number.
SESSION = "SDMA"

#: Kinds of events: an instruction, a vecscope, a mere signal, a mere wait, a barrier.
INSTRUCTION, VECSCOPE, GIVE, TAKE, BARRIER = "instruction", "vecscope", "give", "take", "barrier"


#: The initial value of dictionaries of an event.
_NONE: dict[Any, Any] = {}


class Event:
    """One unit of work of a pipe."""

    #: In the order of issue, over the whole launch.
    number = 0
    #: Operands of an instruction by name, and those of its scalar operands that are undefined.
    args: Mapping[str, Any] = _NONE
    poison: Mapping[tuple[str, int | None], Any] = _NONE
    #: The ended waits, from `took` on.
    waits: Sequence[Given] = ()
    #: The scratch part of `accesses`.
    scratch: Sequence[Access] = ()
    #: True if its stores are atomic updates because of a mode register, and not of the operation.
    atomic = False
    result: object = None
    #: The origin of a scalar result that a watcher found undefined; the engine carries it along.
    undefined: Any = None
    began = False
    #: Data of the engine until the event is finished.
    inner: Any = None

    def __init__(
        self,
        core: WatchedCore,
        pipe: str,
        op: Operation,
        what: str = INSTRUCTION,
        kind: str = "",
        key: Any = None,
        scope: Event | None = None,
    ) -> None:
        self.core: WatchedCore = core
        #: The pipe without PIPE_; S is the scalar unit, ALL an instruction that occupies all pipes.
        self.pipe = pipe
        self.op = op
        self.what = what
        #: For a mere signal or wait: its kind, as in `Given`.
        self.kind = kind
        self.key = key
        self.scope = scope  # its vecscope
        #: Memory touched so far, without registers; complete once finished.
        self.accesses: list[Access] = []
        #: Data of watchers, each with its own key.
        self.keeps: dict[object, Any] = {}

    @property
    def name(self) -> str:
        return self.op.row.name if self.op.row is not None else self.op.name


class Given:
    """One signal that others wait for.

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
        #: If cores meet over semaphores: the signals of all of them, which this one represents.
        self.of = of
        #: Data of watchers, each with its own key.
        self.keeps: dict[object, Any] = {}


class Watcher:
    """Base class of watchers: observes nothing; subclasses replace hooks."""

    #: True for loads and stores. If no watcher has it, vector instructions run at full speed.
    memory = True
    #: True for those of vector registers, too.
    registers = False
    #: The kinds of events to receive.
    wants: Sequence[str] = (INSTRUCTION, VECSCOPE, GIVE, TAKE, BARRIER)
    #: True if it finds undefined scalars: the engine then reports their uses.
    tracks = False

    # -- the launch ------------------------------------------------------------------------------------

    def launch_started(self, launch: WatchedLaunch) -> None: ...

    def launch_ended(self, result: LaunchResult) -> None:
        """Called also after an error stopped the program; findings may be added to the result."""

    def core_started(self, core: WatchedCore) -> None:
        """Called for all cores of a block before any of them begins to work."""

    def core_ended(self, core: WatchedCore) -> None: ...

    # -- events ----------------------------------------------------------------------------------------

    def issued(self, event: Event) -> None:
        """The scalar unit passes an event to its pipe, or (pipe S) begins to wait itself."""

    def took(self, event: Event) -> None:
        """The pipe has ended all waits: `event.waits`."""

    def started(self, event: Event) -> None: ...

    def finished(self, event: Event) -> None: ...

    def reached(self, core: WatchedCore, op: Operation) -> None:
        """The scalar unit, or a vecscope, comes to an operation without an event: arithmetic, a descriptor,
        control flow. Programs are lowered again for watchers with this hook."""

    def vecscope_started(self, event: Event) -> None: ...

    def vecscope_ended(self, event: Event) -> None: ...

    # -- memory ----------------------------------------------------------------------------------------

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        """`data` may be memory itself: copy data to be kept."""

    def storing(self, event: Event, access: Access, data: Array) -> None:
        """Called before a store."""

    def stored(self, event: Event, access: Access) -> None: ...

    def left_undefined(self, event: Event, access: Access) -> None:
        """The instruction leaves these places unspecified, although it may have written there."""

    # -- order -----------------------------------------------------------------------------------------

    def gave(self, event: Event, given: Given) -> None: ...

    def barrier(self, core: WatchedCore, op: Operation, pipe: str) -> None:
        """Earlier work of the pipe, or of all pipes (S, ALL), is over before the next work there."""

    def memory_barrier(self, core: WatchedCore, op: Operation, kind: str) -> None:
        """A `mem_bar` of a vecscope."""

    def met(self, cores: Sequence[WatchedCore]) -> None:
        """All cores that wait at a grid barrier have arrived."""

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        """A signal in global memory was set to a value, or the value was added to it."""

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        """All words of a signal in global memory satisfy the comparison of an instruction with a number."""

    # -- descriptors -----------------------------------------------------------------------------------

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

    def undefined_use(self, core: WatchedCore, op: Operation, origin: object, what: str) -> None:
        """An undefined scalar (`Event.undefined`) decides something."""

    def indexed(
        self, event: Event, operand: str, index: Array, inside: Array, of: Place, extent: str
    ) -> None:
        """Some indices in an operand are outside the valid region of the place `of`: those that are not
        `inside`. `extent` describes that region in words."""

    def other_granularity(self, event: Event, mask: Register, size: int) -> None:
        """A mask that was made for other elements is used for elements of `size` bytes."""


#: Names of the hooks.
HOOKS = tuple(n for n, f in vars(Watcher).items() if callable(f) and not n.startswith("_"))

Hooks = tuple[Callable[..., None], ...]


@cache
def _replaced(kind: type[Watcher]) -> tuple[str, ...]:
    """Return the hooks that a class of watchers replaces."""
    return tuple(name for name in HOOKS if getattr(kind, name) is not getattr(Watcher, name))


class Watchers:
    """The watchers of a launch, for an engine: by hook, in their order."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers:
            if not isinstance(watcher, Watcher):
                raise ValueError(f"expected objects of pto.Watcher for watchers, got {watcher!r}")
        self.watchers = tuple(watchers)
        self.memory = any([w.memory for w in watchers])
        self.tracks = any([w.tracks for w in watchers])
        #: The watchers by hook.
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
        self.events = 0  # number of issued events

    def of(self, hook: str, registers: bool = False) -> Hooks:
        """Return the functions of a hook; with `registers` only of watchers for registers."""
        return tuple([getattr(w, hook) for w in self._with[hook] if w.registers or not registers])

    def _by_event(self, hook: str) -> dict[str, list[Callable[[Event], None]]]:
        """Return the functions of a hook by the kinds of events that they receive."""
        found: dict[str, list[Callable[[Event], None]]] = {what: [] for what in Watcher.wants}
        for watcher in self._with[hook]:
            hear = getattr(watcher, hook)
            for what, those in found.items():
                if what in watcher.wants:
                    those.append(hear)
        return found

    def tell(self, hook: str, *facts: object) -> None:
        for watcher in self._with[hook]:
            getattr(watcher, hook)(*facts)

    # -- steps of an event -----------------------------------------------------------------------------

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
