"""Kernels of engines, made of a program, C++, a library, images or an object by the first capable engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as once
from functools import partial
from typing import TYPE_CHECKING

from ..diag import DiagnosticError, Source
from .registry import Engine, Request, named

if TYPE_CHECKING:
    from .entry import Launchable

#: Codes for a missing instruction or a missing compiler: another engine may run the program.
ELSEWHERE = ("PTO-E2003", "PTO-E2401")


def make(engine: Engine, request: Request) -> Launchable:
    try:
        return named(engine.made_by)(request)
    except DiagnosticError:
        raise
    except Exception:
        if not isinstance(request.program, str):
            from ..driver import refuse_illegal  # a launch from the cache does not need it

            refuse_illegal(request.program, request.target)
        raise


def of_text(
    engine: Engine, source: Source, options: Sequence[str], make: Callable[[], Launchable]
) -> Launchable:
    """Return the kernel of a text; an engine that remembers it with these options skips `make`."""
    return named(engine.remembers)(source, options, make) if engine.remembers else make()


def first(
    engines: Sequence[Engine], make: Callable[[Engine], Launchable], elsewhere: Sequence[str] = ELSEWHERE
) -> Launchable:
    """Return the kernel of the first engine that does not refuse the program; the next ones take launches
    with options that it lacks. All engines compute the same, so no message is needed. `elsewhere` are the
    codes with which an engine refuses a program that another engine may run."""
    for n, engine in enumerate(engines):
        try:
            made = make(engine)
        except DiagnosticError as e:
            if engine is engines[-1] or not _lacks(e, elsewhere):
                raise
            continue
        made.others = {e.name: once(partial(make, e)) for e in engines[n + 1 :]}
        return made
    raise AssertionError("some engine takes every kind of input")


def _lacks(error: DiagnosticError, elsewhere: Sequence[str]) -> bool:
    """Check whether an engine only lacks something, and nothing is wrong with the program."""
    return all(d.code in elsewhere for d in error.diagnostics if d.severity == "error")
