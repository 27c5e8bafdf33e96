"""Handlers of signals, and deferred signals."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


def interrupts(handler: Any) -> bool:
    """Return True if a handler is known to raise KeyboardInterrupt."""
    return handler is signal.default_int_handler or getattr(handler, "interrupts", False)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block. Otherwise an interrupt between the start of a process
    and the record of its id would leave the process running."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run only in the main thread
        return
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    handlers = {n: handler for n, handler in before.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in seen:
            handlers[signal.Signals(number)](number, None)
