"""Asynchronous transfers, which run beside the pipes of the core. Transfers of a session run one after
another. Under a schedule, a transfer may run as late as the wait for it.

For observers a session is a pipe (SDMA0, ..). A transfer is ordered after the earlier events of the scalar
unit that started it, and before the events after its wait. It has no other order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ...ir.core import Operation
from ..watch import INSTRUCTION, SESSION, Event, Given
from . import registry
from .core import Args, Core, QueueItem
from .handles import Handler
from .instr import Instr
from .watched import watched

HANDLERS: dict[str, Handler] = {}


class TransferSession:
    """Transfers in order: the number started, the number done, and the `watch.Given` of the last one."""

    def __init__(self, number: int) -> None:
        self.pipe = f"{SESSION}{number}"
        self.started = self.done = 0
        self.last: Any = None


class Transfer(QueueItem):
    """A transfer that was started."""

    __slots__ = ("instr", "session")
    what = INSTRUCTION

    def __init__(self, instr: Instr, session: TransferSession) -> None:
        super().__init__(instr.op)
        self.instr = instr
        self.session = session

    def to_watch(self, core: Core, pipe: str) -> Event:
        return watched(self.instr, _copy(self.op))

    def perform(self, core: Core, pipe: str) -> None:
        core.execute(self.instr, _copy(self.op))
        self.session.done += 1
        self.session.last = core.give(self.event, "transfer", pipe)


class Transferred(QueueItem):
    """Waits until a transfer, and with it all earlier ones of its session, is done."""

    __slots__ = ("number", "session")
    kind = "transfer"

    def __init__(self, op: Operation, session: TransferSession, number: int) -> None:
        super().__init__(op, session.pipe)
        self.session = session
        self.number = number

    def ready(self, core: Core, pipe: str) -> bool:
        return self.session.done >= self.number

    def take(self, core: Core, pipe: str) -> list[Given | None]:
        return [] if self.session.last is None else [self.session.last]

    def waits_for(self, core: Core, pipe: str) -> str:
        return f"transfer {self.number} of its session"


def _copy(op: Operation) -> registry.Execute:
    assert op.row is not None
    found = registry.find(op.row)
    assert found is not None
    return found


def handler(*names: str) -> Callable[[Handler], Handler]:
    def add(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return add


@handler("build_async_session")
def build(core: Core, op: Operation, args: Mapping[str, object]) -> TransferSession:
    made = TransferSession(sum(pipe.startswith(SESSION) for pipe in core.queues))
    core.queues[made.pipe] = deque()
    return made


@handler("tput_async", "tget_async")
def start(core: Core, op: Operation, args: Args) -> object:
    session: TransferSession = args["session"]
    if not isinstance(session, TransferSession):  # for a prefetch: nothing is pending
        core.execute(Instr(op, args, core, "S"), _copy(op))
        return 0
    session.started += 1
    instr = Instr(op, args, core, session.pipe).frozen()
    core.enqueue(session.pipe, Transfer(instr, session))
    return session, session.started


@handler("wait_async_event", "test_async_event")
def ask(core: Core, op: Operation, args: Mapping[str, object]) -> object:
    event = args["event"]
    if not isinstance(event, tuple):  # handle 0: nothing is pending
        return 1
    item = Transferred(op, *event)
    assert op.row is not None
    if op.row.name == "test_async_event" and not item.ready(core, "S"):
        return 0
    blocked = core.stall(item)
    return 1 if blocked is None else blocked
