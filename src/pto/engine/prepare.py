"""The program an engine runs: as written where it has addresses, else planned and synchronised first.

A program without addresses leaves its tiles to the tools, and its pipes too if it has no flags; no option is
needed. What comes out is what `ptoas` would emit, so races and schedules can be checked on it. A program with
addresses is its author's: it gets flags only on request, and without them shows what is missing.
"""

from __future__ import annotations

from ..diag import DiagnosticError, has_errors
from ..ir.core import Module, Operation
from ..isa.profiles import Profile

#: Flags and tokens. Barriers and synchronisation between cores are also in programs that leave their pipes to
#: the tools.
_ORDERS_PIPES = ("set", "wait", "get", "release")


def complete(module: Module) -> tuple[bool, bool]:
    """Whether a program places its tiles, and whether it orders its pipes."""
    places = orders = False
    allocates = works = False
    for op in module.walk():
        if op.name == "pto.alloc_tile":
            allocates = True
            places |= op.get("addr") is not None
        elif op.row is not None:
            orders |= _orders_pipes(op)
            works |= op.row.effect == "memory"
    return places or not allocates, orders or not works


def _orders_pipes(op: Operation) -> bool:
    assert op.row is not None
    return op.row.order in _ORDERS_PIPES


def prepared(module: Module, profile: Profile, insert_sync: bool = False) -> Module:
    """The module itself, or a copy with what it leaves to the tools; raises where that is impossible."""
    places, orders = complete(module)
    if places and (orders or not insert_sync):
        return module
    from ..passes import Options, compile

    ctx, problems = compile(module, profile, Options(insert_sync=not orders))
    if has_errors(problems):
        raise DiagnosticError([p for p in problems if p.severity == "error"])
    return ctx.module
