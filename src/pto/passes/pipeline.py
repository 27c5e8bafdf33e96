"""The order of the passes, their shared context, and the function that runs them.

A pass is a module with `run(ctx)`, which changes `ctx.module` in place and reports problems through
`ctx.report`. The pipeline stops after the pass that found an error. The result is a program in manual form:
every tile has its address, every hazard its flag. It prints, parses, emits and runs like a program written by
hand.
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
    """Options of the user for all steps from the parsed program to manual form."""

    level: str = ""  # level1, level2, level3; "": the level of the program
    insert_sync: bool = False
    infer_layout: bool = True
    check: str = "all"  # all, structure (only basic rules), none
    flags: str = "error"  # severity of unbalanced flags, or off
    overlaps: str = "off"  # likewise for tiles that overwrite each other
    passes: str = "always"  # always, needed (if the program is not in manual form), never


class PassContext(Context):
    """The context of passes: the module that they change, the profile, the options, and their results."""

    def __init__(self, module: Module, profile: Profile, options: Options) -> None:
        super().__init__(module, profile, options.level or None, options.insert_sync)
        self.options = options
        #: The result of memory planning, for `--explain-memory`: a `plan_memory.MemoryPlan` after the pass.
        self.plan: object | None = None
        #: Function name -> "cube", "vector" or "mix" (either, or both).
        self.kinds: dict[str, str] = {}
        #: Pipe initialisations from frontend instructions, with their `id`.
        self.pipe_ids: dict[Operation, int] = {}
        #: Names of the passes that ran.
        self.ran: list[str] = []
        #: True if the author places tiles (level3). After memory planning all tiles have addresses.
        self.manual = is_manual(module, options.level or None)


class Pass(Record):
    name: str  # for --print-after
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
    Pass("kernel-kind", "Determine the kind of core of each function, where its instructions imply one."),
    Pass("lower-pipes", "Lower frontend FIFO instructions to one pipe handle with push, pop and free."),
    Pass("pipe-init", "Make the ends of a FIFO agree on split entries."),
    Pass("lower-events", "Lower record_event, wait_event and barrier_sync to flags and barriers of pipes."),
    Pass(
        "infer-layout",
        "Infer the layout of every view of global memory, from its shape and strides.",
        "layout",
    ),
    Pass("normalize-tmov", "Replace A5 moves between column-major vector tiles by row-major ones."),
    Pass("plan-memory", "Choose addresses for all tiles.", "auto"),
    Pass("reserve-buffers", "Choose addresses for reserved buffers and flags for FIFOs."),
    Pass("insert-sync", "Insert flags and barriers for every hazard.", "sync"),
    Pass("canonicalize", "Merge equal constants and pure values, fold constants, remove unused values."),
)


def load_passes() -> None:
    """Import every pass; otherwise a pass is imported at its first use."""
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

    `after` is called with each pass that ran; `times` receives the seconds of each. Without `keep` the passes
    change the module itself, for callers that do not need the original.
    """
    ctx = PassContext(clone(module) if keep else module, profile, options or Options())
    if times is not None:  # imports do not count as time of a pass
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
