"""Flags and barriers for every hazard.

    pto.tload ins(%x : ..) outs(%t : ..)
    pto.tadd ins(%t, %t : ..) outs(%u : ..)
becomes
    pto.tload ins(%x : ..) outs(%t : ..)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tadd ins(%t, %t : ..) outs(%u : ..)

Two instructions on different pipes that touch the same bytes, one of them writing, must not overlap; neither
must two of one pipe that overlaps its own (PIPE_V on A2/A3, PIPE_MTE3). See `sync/` for the parts: steps of the
program, places in memory, hazards, what pipes know, placement, event ids, a check of the result, emission.
Functions that carry flags already are left alone. `docs/sync-insertion.md` tells the whole story.
"""

from __future__ import annotations

from ..ir.core import Operation
from ..verify.balance import SECTIONS
from .pipeline import PassContext
from .sync.check import Check, Unbalanced
from .sync.emit import Emitter, add_tails
from .sync.events import IDS, Events
from .sync.hazards import Hazards
from .sync.linear import ALL, Program, Seq, Step
from .sync.place import Barrier, Flag, Placement
from .sync.regions import Places

_FLAGS = frozenset(
    f"pto.{name}"
    for name in (
        "set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn", "record_event", "wait_event", "get_buf", "rls_buf",
    )
)  # fmt: skip


class Report:
    """What the pass did, for those who want to know: tests and benchmarks."""

    def __init__(self) -> None:
        self.flags = 0
        self.barriers = 0
        self.repaired = 0  # hazards that only the check found
        self.merged = self.narrowed = self.spilled = 0  # what lack of event ids cost
        self.given_up = 0  # programs synchronised by barriers alone


def run(ctx: PassContext, ids: int = IDS) -> Report:
    """Synchronise every function; `ids` is the number of event ids per pair of pipes."""
    report = Report()
    functions = {str(f.attr("sym_name")): f for f in ctx.module.functions}
    wanted = {name: f for name, f in functions.items() if f.regions and f.regions[0].blocks and not _has_flags(f)}
    working = _working(functions, ctx)
    drained: set[str] = set()
    programs: list[tuple[Operation, list[Program]]] = []

    def calls(op: Operation) -> str:
        name = str(op.attr("callee"))
        if name in functions and name not in working:
            return ""
        return "drained" if name in drained else "open"

    for name, function in wanted.items():
        if name in working and _elements(function, ctx) > 1:
            drained.add(name)
    for name, function in wanted.items():
        found = [Program(function, core, ctx.profile, calls) for core in _cores(function)]
        if name in drained or any(s.kind == "call" for p in found for s in _steps(p.root)):
            programs.append((function, found))
    for function, found in programs:
        for program in found:
            if program.root.steps:
                _synchronise(program, Places(function, ctx.profile), report, ids)
        if str(function.attr("sym_name")) in drained:
            add_tails(function)
    return report


def _synchronise(program: Program, places: Places, report: Report, ids: int) -> None:
    hazards = Hazards(program, places)
    placement = Placement(program, hazards)
    placement.run()
    events = Events(program, placement.flags, ids)
    events.run()
    report.merged += events.merged
    report.narrowed += events.narrowed
    report.spilled += events.spilled
    flags = placement.flags
    try:
        for step in Check(program, hazards, flags).run():
            step.before.append(Barrier(-1, step))
            report.repaired += 1
    except Unbalanced:
        report.given_up += 1
        flags = _barriers_only(program)
    report.flags += len(flags)
    report.barriers += sum(isinstance(i, Barrier) for s in _steps(program.root) for i in (*s.before, *s.after))
    Emitter(program, flags).run()


def _barriers_only(program: Program) -> list[Flag]:
    """A barrier of all pipes before every instruction."""
    for step in _steps(program.root):
        step.before[:] = [Barrier(-1, step)] if not step.seqs else []
        step.after.clear()
    return []


def _steps(seq: Seq) -> list[Step]:
    return [s for step in seq.steps for s in (step, *(t for inner in step.seqs for t in _steps(inner)))]


def _has_flags(function: Operation) -> bool:
    return any(op.name in _FLAGS for op in function.walk())


def _working(functions: dict[str, Operation], ctx: PassContext) -> set[str]:
    """Functions that work on pipes, themselves or through what they call."""
    calls = {
        name: {str(op.attr("callee")) for op in f.walk() if op.name == "func.call"} for name, f in functions.items()
    }
    found = {name for name, f in functions.items() if _has_flags(f) or _elements(f, ctx)}
    found |= {name for name, f in functions.items() if not f.regions or not f.regions[0].blocks}
    while more := {name for name, callees in calls.items() if name not in found and callees & found}:
        found |= more
    return found


def _elements(function: Operation, ctx: PassContext) -> int:
    return max((Program(function, core, ctx.profile, lambda op: "").elements for core in _cores(function)), default=0)


def _cores(function: Operation) -> list[str]:
    """The kinds of core to follow a function on; one without a name where nothing says."""
    own = function.attr("pto.kernel_kind")
    if own in ("cube", "vector"):
        return [str(own)]
    sections = {SECTIONS[op.name] for op in function.walk() if op.name in SECTIONS}
    return sorted(sections) or [""]
