"""The order of the passes, what they share, and the one function that runs them.

A pass is a module with `run(ctx)`, which changes `ctx.module` in place and reports problems through
`ctx.report`; the pipeline stops after the pass that found an error. The result is a program in manual form:
every tile has its address, every hazard its flag. It prints, parses, emits and runs like one written by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from ..diag import Diagnostic, has_errors
from ..ir.clone import clone
from ..ir.context import Context
from ..ir.core import Module, Operation
from ..ir.facts import is_manual
from ..isa.profiles import Profile
from ..isa.record import Record


class Options(Record):
    """What the user asked for, of every step from a program as it was read to one in manual form."""

    level: str = ""  # level1, level2, level3; empty: as the program is written
    insert_sync: bool = False
    infer_layout: bool = True
    check: str = "all"  # all, structure (what makes it a program at all), none
    flags: str = "error"  # severity of unbalanced flags, or off
    overlaps: str = "off"  # and of tiles that overwrite each other
    passes: str = "always"  # always, needed (where the program leaves something to the tools), never


class PassContext(Context):
    """What passes share: the module they change, the profile, the options, and what they found out."""

    def __init__(self, module: Module, profile: Profile, options: Options) -> None:
        super().__init__(module, profile, options.level or None, options.insert_sync)
        self.options = options
        #: What memory planning decided, for `--explain-memory`: a `plan_memory.MemoryPlan` once it has run.
        self.plan: object | None = None
        #: Function name -> "cube", "vector" or "mix" (either, or both).
        self.kinds: dict[str, str] = {}
        #: Pipe initialisations that were frontend ones, with their `id`.
        self.pipe_ids: dict[Operation, int] = {}
        #: Names of the passes that ran.
        self.ran: list[str] = []
        #: Whether the author places tiles (level3). Once placed by us they have addresses as well.
        self.manual = is_manual(module, options.level or None)


class Pass(Record):
    name: str  # as --print-after takes it
    doc: str
    when: str = ""  # "", "auto" (below level3), "sync", "layout"

    def wanted(self, ctx: PassContext) -> bool:
        if self.when == "auto":
            return not ctx.manual
        if self.when == "sync":
            return ctx.options.insert_sync
        return ctx.options.infer_layout if self.when == "layout" else True

    @property
    def module(self) -> ModuleType:
        return import_module(f"{__package__}.{self.name.replace('-', '_')}")

    def run(self, ctx: PassContext) -> None:
        self.module.run(ctx)


PASSES: tuple[Pass, ...] = (
    Pass("kernel-kind", "Say which kind of core runs each function, where its instructions leave no doubt."),
    Pass("lower-pipes", "Frontend FIFO instructions become one pipe handle with push, pop and free."),
    Pass("pipe-init", "Peers of a FIFO agree on whether entries are split."),
    Pass("lower-events", "record_event, wait_event and barrier_sync name pipes instead of instructions."),
    Pass("infer-layout", "Layout of every view of global memory, from its shape and strides.", "layout"),
    Pass("normalize-tmov", "A5 moves between column-major vector tiles go through row-major ones."),
    Pass("plan-memory", "Addresses for all tiles.", "auto"),
    Pass("reserve-buffers", "Addresses for reserved buffers and flags for FIFOs."),
    Pass("insert-sync", "Flags and barriers for every hazard.", "sync"),
    Pass("canonicalize", "Equal constants and pure values once; unused ones not at all."),
)


def load_passes() -> None:
    """Import every pass, which is done on first use otherwise."""
    for p in PASSES:
        assert p.module


def compile(
    module: Module,
    profile: Profile,
    options: Options | None = None,
    *,
    after: Callable[[Pass, Module], None] | None = None,
    times: dict[str, float] | None = None,
    keep: bool = True,
) -> tuple[PassContext, list[Diagnostic]]:
    """Run the passes on a copy of a verified module; the context holds the new one.

    `after` is called with each pass that ran; `times` receives the seconds of each. Without `keep` they run
    on the module itself: for callers that have no further use for it as it was.
    """
    ctx = PassContext(clone(module) if keep else module, profile, options or Options())
    if times is not None:  # imports are no pass's time
        load_passes()
    for p in PASSES:
        if not p.wanted(ctx):
            continue
        start = time.perf_counter()
        p.run(ctx)
        ctx.ran.append(p.name)
        if times is not None:
            times[p.name] = time.perf_counter() - start
        if after is not None:
            after(p, ctx.module)
        if has_errors(ctx.diagnostics):
            break
    return ctx, ctx.diagnostics
