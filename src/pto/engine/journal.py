"""Events of programs for listeners: parsed, lowered, run, findings.

`pto python` listens and prints a summary at the end; tests listen, too. Without a listener only findings are
reported, on stderr, each once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..diag import Diagnostic, render
from ..isa.record import Record


class JournalEvent(Record):
    """One event. For the events reading, parsed, lowered, running, run, checked and finding (`what`),
    `program` is the called program; for the event device, it is the requested platform. `text` lists the
    checks that were made.
    """

    what: str
    program: str
    diagnostics: tuple[Diagnostic, ...] = ()
    text: str = ""


_listeners: list[Callable[[JournalEvent], None]] = []
_said: set[str] = set()


def note(what: str, program: str, diagnostics: tuple[Diagnostic, ...] = (), text: str = "") -> None:
    for listener in _listeners:
        listener(JournalEvent(what, program, diagnostics, text))
    if not _listeners:
        for text in (render([d]) for d in diagnostics):
            if text not in _said:
                _said.add(text)
                print(text, file=sys.stderr, flush=True)


def listen(listener: Callable[[JournalEvent], None]) -> None:
    """Send all events to a listener from now on."""
    _listeners.append(listener)


@contextmanager
def listening(listener: Callable[[JournalEvent], None]) -> Iterator[None]:
    listen(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
