"""What happens to programs, told to whoever listens: parsed, lowered, run, findings.

`pto python` listens, to say at the end what was found; tests of ours do, too. Nobody listens otherwise, and
then nothing is made for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..isa.record import Record


class Event(Record):
    """`what` is reading, parsed, lowered, run or finding, and `program` is what was called; or it is device,
    and `program` the platform that somebody asked for."""

    what: str
    program: str
    diagnostics: tuple[Any, ...] = ()


_listeners: list[Callable[[Event], None]] = []


def note(what: str, program: str, diagnostics: tuple[Any, ...] = ()) -> None:
    for listener in _listeners:
        listener(Event(what, program, diagnostics))


def listen(listener: Callable[[Event], None]) -> None:
    """Tell it everything from now on."""
    _listeners.append(listener)


@contextmanager
def listening(listener: Callable[[Event], None]) -> Iterator[None]:
    listen(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
