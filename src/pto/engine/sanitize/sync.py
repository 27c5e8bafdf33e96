"""Reports flags, buffer tokens and semaphores that are set twice, held twice, or left at the end."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from ...diag import Diagnostic
from ...ir.core import Operation
from ...verifier.missing import get_before, release_after, thing_of, wait_at_end, wait_between
from ..result import LaunchResult
from ..watch import GIVE, TAKE, Event, Given, WatchedCore
from .sanitizer import Sanitizer

#: The largest count of a semaphore.
HIGHEST = 15

Flag = tuple[str, str, int]


class _CoreFlags:
    """The flags that are set and the tokens that are held on one core."""

    def __init__(self) -> None:
        #: For each flag: the number of sets minus the number of waits, in order of issue, and the last set.
        self.balance: dict[Flag, tuple[int, Operation | None]] = {}
        self.flags: dict[Flag, deque[Operation]] = {}
        self.tokens: dict[int, dict[str, Operation]] = {}  # by id: the pipes that hold it, and their gets


class Sync(Sanitizer):
    memory = False
    wants = (GIVE, TAKE)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cores: defaultdict[WatchedCore, _CoreFlags] = defaultdict(_CoreFlags)
        #: The semaphores that are raised, by block, and then by core and id.
        self.raised: defaultdict[int, dict[tuple[str, int], deque[Operation]]] = defaultdict(dict)
        #: Flags that were set twice: the report, and both operations.
        self.twice: list[tuple[Diagnostic, Operation, Operation]] = []
        self.left: dict[int, int] = {}  # cores of a block that have not ended

    # -- flags set twice -------------------------------------------------------------------------------

    def issued(self, event: Event) -> None:
        if event.kind == "token" and event.what == TAKE:
            self.cores[event.core].tokens.setdefault(event.key, {})
        if event.kind != "flag":
            return
        balance = self.cores[event.core].balance
        raised, before = balance.get(event.key, (0, None))
        if event.what == TAKE:
            balance[event.key] = raised - 1, before
            return
        if raised > 0 and before is not None:
            source, target, number = event.key
            d = event.core.diagnostic(
                event.op,
                "PTO-E0804",
                f"flag PIPE_{source} -> PIPE_{target}, id {number} is set although it is set already",
                help=self._between(before, event.op),
            )
            self.twice.append((d, before, event.op))
            d.notes.append(("set here before", self.launch.span(before)))
            self.reports.add(("overrun", event.op), d, (event.core.kind, *event.key))
        balance[event.key] = raised + 1, event.op

    # -- tokens and semaphores -------------------------------------------------------------------------

    def started(self, event: Event) -> None:
        if event.kind != "token":
            return
        held = self.cores[event.core].tokens.setdefault(event.key, {})
        token = f"buffer token {event.key}"
        if event.what == TAKE:
            if event.pipe in held:
                self._misuse(event, f"PIPE_{event.pipe} acquires {token}, which it holds")
            held[event.pipe] = event.op
        elif event.what == GIVE and held.pop(event.pipe, None) is None:
            what = f"PIPE_{event.pipe} releases {token}, which it does not hold"
            self._misuse(event, what, self._put(get_before, event.op))

    def gave(self, event: Event, given: Given) -> None:
        if given.kind == "flag":
            self.cores[event.core].flags.setdefault(given.key, deque()).append(event.op)
        elif given.kind == "semaphore":
            block, *target = given.key
            raised = self.raised[block].setdefault((target[0], target[1]), deque())
            raised.append(event.op)
            if len(raised) > HIGHEST:
                self._misuse(event, f"semaphore {target[1]} of {target[0]} passes {HIGHEST}")

    def took(self, event: Event) -> None:
        for given in event.waits:
            if given.kind == "flag":
                self.cores[event.core].flags[given.key].popleft()
            elif given.kind == "semaphore":
                block, *target = given.key
                self.raised[block][target[0], target[1]].popleft()

    def _between(self, first: Operation, second: Operation) -> str:
        place = self._put(wait_between, first, second) or "wait for it between the two sets"
        return f"{place}, or use another event id"

    def launch_ended(self, result: LaunchResult) -> None:
        for d, first, second in self.twice:  # the operations of C++ are complete only now
            d.help = self._between(first, second)

    def _put(self, place: Callable[..., str], *ops: Operation) -> str:
        """Return the advice of `place` for operations on one flag or token; empty if its id is not known."""
        things = {thing_of(op) for op in ops}
        thing = things.pop()
        return "" if things or thing is None or thing.id is None else place(self.launch, thing, *ops)

    def _misuse(self, event: Event, what: str, help: str = "") -> None:
        help = help or "pair every get with one release"
        d = event.core.diagnostic(event.op, "PTO-E0806", what, help=help)
        self.reports.add(("token", event.op), d)

    # -- the end ---------------------------------------------------------------------------------------

    def core_started(self, core: WatchedCore) -> None:
        self.left[core.index] = self.left.get(core.index, 0) + 1

    def core_ended(self, core: WatchedCore) -> None:
        state = self.cores.pop(core, None) or _CoreFlags()
        for (source, target, number), left in state.flags.items():
            if left:
                wait = f"pto.wait_flag[<PIPE_{source}>, <PIPE_{target}>, <EVENT_ID{number}>]"
                place = self._put(wait_at_end, left[0]) or f"wait for it with '{wait}' before the end"
                d = core.diagnostic(
                    left[0],
                    "PTO-E0805",
                    f"flag PIPE_{source} -> PIPE_{target}, id {number} is still set when the kernel ends",
                    help=f"{place}, or set it one time less: the next kernel would find it set",
                )
                self.reports.add(("left", left[0]), d, (core.kind, source, target, number))
        for number, held in state.tokens.items():
            for pipe, op in held.items():
                d = core.diagnostic(
                    op,
                    "PTO-E0807",
                    f"PIPE_{pipe} still holds buffer token {number} when the kernel ends",
                    help=self._put(release_after, op) or "release it after the last use of the buffer",
                )
                self.reports.add(("held", op), d)
        self.left[core.index] -= 1
        if not self.left[core.index]:
            self._left_raised(core)

    def _left_raised(self, core: WatchedCore) -> None:
        """Report the raised semaphores of a block after the end of its last core."""
        for (owner, number), left in self.raised.pop(core.index, {}).items():
            if left:
                d = core.diagnostic(
                    left[0],
                    "PTO-E0805",
                    f"cross-core semaphore {number} ({owner}) is still raised when the kernel ends",
                    help="let the other core wait for it, or raise it one time less: the next kernel would "
                    "find it raised",
                )
                self.reports.add(("raised", left[0]), d)
