"""Records the messages between ranks during a run, which `pto run --messages FILE.svg` draws."""

from __future__ import annotations

from ...ir.core import Operation
from ...perf.messages import DATA, SIGNAL, WAIT, Message, svg
from ..access import Access
from ..memory import Buffer, View
from ..watch import INSTRUCTION, Event, WatchedCore, WatchedLaunch, Watcher

#: Instructions whose stores are signals; `notified` records them.
_SIGNALS = ("tnotify",)


class Messages(Watcher):
    """A watcher for a launch (`watchers=`) that collects `messages`, and draws them with `svg`."""

    wants = (INSTRUCTION,)

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.ranks = 1

    def svg(self, title: str) -> str:
        return svg(self.messages, self.ranks, title)

    def launch_started(self, launch: WatchedLaunch) -> None:
        self.ranks = launch.ranks

    def stored(self, event: Event, access: Access) -> None:
        buffer = access.place.buffer
        if buffer.rank is not None and event.name not in _SIGNALS:
            event.keeps.setdefault(Messages, []).append((buffer, access.bounds))

    def finished(self, event: Event) -> None:
        stores = event.keeps.get(Messages, [])
        for buffer in dict.fromkeys(buffer for buffer, _ in stores):
            low = min(bounds[0] for b, bounds in stores if b is buffer)
            high = max(bounds[1] for b, bounds in stores if b is buffer)
            if high > low:
                text = f"{event.name} {high - low} B to {_name(buffer)}[{low}..{high}]"
                self._add(DATA, event.core, buffer.rank, text, event.op)

    def notified(self, core: WatchedCore, op: Operation, signal: View, value: int) -> None:
        if signal.buffer.rank is not None:
            how = f"+ {value}" if str(op.attr("notifyOp")) == "AtomicAdd" else f"= {value}"
            self._add(SIGNAL, core, signal.buffer.rank, f"{_cell(signal)} {how}", op)

    def awaited(self, core: WatchedCore, op: Operation, signal: View, wanted: int) -> None:
        if signal.buffer.rank is not None:
            text = f"{_cell(signal)} {op.attr('cmp')} {wanted}"
            self._add(WAIT, core, signal.buffer.rank, text, op)

    def _add(self, kind: str, core: WatchedCore, target: int, text: str, op: Operation) -> None:
        line = op.loc.line if op.loc is not None else 0
        self.messages.append(Message(kind, core.rank, target, text, line))


def _name(buffer: Buffer) -> str:
    """Return the name of a window without its rank."""
    return buffer.name.partition(" of rank")[0]


def _cell(signal: View) -> str:
    return f"{_name(signal.buffer)}[{signal.offset // 4}]"
