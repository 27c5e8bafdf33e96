"""Complete a program for emission or execution: verify it, decide which parts the program leaves to the
tools, and run the passes. `ptoas`, `pto check`, `pto run`, `pto build`, the engines, the task runtime and the
functions of Python all use this module.

    done = lowered(module, "a5", Options(insert_sync=True))
    done.ok, done.diagnostics    # the diagnostics of every step that ran
    done.module                  # with addresses and synchronization

A program without addresses leaves the placement of tiles to the tools; if it also has no flags, it leaves the
synchronization of pipes to them, too. A program with addresses gets flags only on request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from .diag import Diagnostic, DiagnosticError, has_errors
from .ir.core import Module
from .ir.facts import module_profile, places_tile
from .ir.multi_tiles import single_tiles
from .ir.packed_tiles import logical_tiles
from .isa.profiles import Profile
from .isa.record import Record
from .passes.pipeline import Options, Pass, compile, load_passes
from .shown import Shown
from .verifier import verify

if TYPE_CHECKING:
    from .passes.plan_memory import MemoryPlan

__all__ = ["Lowered", "Options", "complete", "lowered", "refuse_illegal", "verified"]


class Lowered(Shown, Record):
    """Result of the steps for a program, up to the first step with errors."""

    module: Module  # the given module if no pass ran on a copy
    profile: Profile
    diagnostics: list[Diagnostic]
    ran: tuple[str, ...] = ()  # names of the passes, in order
    manual: bool = True  # True if the author placed the tiles
    plan: MemoryPlan | None = None  # result of memory planning
    times: Mapping[str, float] = {}  # seconds of each step, if requested

    def __repr__(self) -> str:
        found = f", {len(self.diagnostics)} diagnostics" if self.diagnostics else ""
        return f"<Lowered {self.module!r} for {self.profile.name}{found}>"

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    def sound(self) -> Lowered:
        """Return self, or raise the errors if there are any."""
        if not self.ok:
            raise DiagnosticError([d for d in self.diagnostics if d.severity == "error"])
        return self


def verified(
    module: Module, target: str | Profile | None = None, options: Options | None = None
) -> list[Diagnostic]:
    """Return the diagnostics of a program before any pass, for the checks that the options select."""
    o = options or Options()
    if o.check == "none":
        return []
    return verify(
        module, target, level=o.level or None, insert_sync=o.insert_sync, flags=o.flags, overlaps=o.overlaps,
        structure_only=o.check == "structure",
    )  # fmt: skip


def refuse_illegal(module: Module, target: str | Profile | None = None) -> None:
    """Raise the errors of a program, if it has any. An exception in an unverified program may come from an
    illegal program, and then its errors explain the exception."""
    found = verify(module, target)
    if has_errors(found):
        raise DiagnosticError(found) from None


def lowered(
    module: Module,
    target: str | Profile | None = None,
    options: Options | None = None,
    *,
    after: Callable[[Pass, Module], None] | None = None,
    timed: bool = False,
    keep: bool = True,
) -> Lowered:
    """Return the program in manual form: every tile has its address, and every hazard its flag if the tools
    insert flags.

    `after` is called after each pass, and `timed` requests the seconds of every step. Without `keep`, the
    passes run on the module itself, for callers that no longer need the original.
    """
    o = options or Options()
    times: dict[str, float] = {}
    profile = module_profile(module, target)
    if timed and o.passes != "never":  # imports do not belong to the time of a step
        load_passes()
    start = time.perf_counter()
    found = verified(module, target, o)
    if o.check != "none":
        times["verify"] = time.perf_counter() - start
    if has_errors(found):
        return Lowered(module, profile, found, times=times if timed else {})
    try:
        plain = logical_tiles(single_tiles(module))
        keep, module = keep and plain is module, plain
        wanted = _left(module, o)
        if wanted is None:
            return Lowered(module, profile, found, times=times if timed else {})
        spent = times if timed else None
        context, more = compile(module, profile, wanted, after=after, times=spent, keep=keep)
    except DiagnosticError:
        raise
    except Exception:
        if o.check == "none":
            refuse_illegal(module, target)
        raise
    return Lowered(
        context.module, profile, [*found, *more], tuple(context.ran), context.manual,
        cast("MemoryPlan | None", context.plan), times if timed else {},
    )  # fmt: skip


def _left(module: Module, options: Options) -> Options | None:
    """Return the options of the passes that a program needs, or None if it needs no pass."""
    if options.passes != "needed":
        return options if options.passes == "always" else None
    places, orders = complete(module)
    if places and (orders or not options.insert_sync):
        return None
    return options.replace(insert_sync=not orders)


#: Flags and tokens. Programs that leave their pipes to the tools may still have barriers and synchronization
#: between cores.
_ORDERS_PIPES = ("set", "wait", "get", "release")


def complete(module: Module) -> tuple[bool, bool]:
    """Return whether a program places its tiles, and whether it orders its pipes."""
    places = orders = False
    allocates = works = False
    for op in module.walk():
        if op.name == "pto.alloc_tile":
            allocates = True
            places |= op.get("addr") is not None
        elif places_tile(op):
            places = True
        elif op.row is not None:
            orders |= op.row.order in _ORDERS_PIPES
            works |= op.row.effect == "memory"
    return places or not allocates, orders or not works
