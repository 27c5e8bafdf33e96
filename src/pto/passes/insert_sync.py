"""Flags and barriers for every hazard.

    pto.tload ins(%x : ..) outs(%t : ..)
    pto.tadd ins(%t, %t : ..) outs(%u : ..)
becomes
    pto.tload ins(%x : ..) outs(%t : ..)
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.tadd ins(%t, %t : ..) outs(%u : ..)

Two instructions on different pipes that access the same bytes, at least one as a write, must not overlap. The
same holds for two instructions of a pipe that overlaps its own instructions (PIPE_V on A2/A3, PIPE_MTE3). The
parts are in `sync/`: steps of the program, places in memory, hazards, known orders of pipes, placement, event
ids, a check of the result, emission. A function that already has flags stays unchanged, with a warning.
`docs/sync-insertion.md` has the details.
"""

from __future__ import annotations

from ..ir.core import Operation
from ..ir.facts import pipe_of
from ..isa.machine import ONLY_ON, SECTIONS
from ..isa.profiles import Profile
from .pipeline import PassContext
from .sync.check import HazardCheck, Unbalanced
from .sync.emit import FlagEmitter, add_tails
from .sync.events import IDS, Events
from .sync.flags import Barrier, Flag
from .sync.hazards import Hazards
from .sync.linear import CoreProgram, Seq, Step, Used, works
from .sync.place import Placement
from .sync.regions import Places

#: Operations of flags and tokens that the author has written.
_FLAGS = ("set", "wait", "get", "release")


class SyncReport:
    """Statistics of the pass, for tests and benchmarks."""

    def __init__(self) -> None:
        self.flags = 0
        self.barriers = 0
        self.repaired = 0  # hazards that only the check has found
        self.merged = self.narrowed = self.spilled = 0  # changes for lack of event ids
        self.given_up = 0  # programs synchronised by barriers only


def run(ctx: PassContext, ids: int = IDS) -> SyncReport:
    """Synchronise every function; `ids` is the number of event ids per pair of pipes."""
    report = SyncReport()
    functions = {str(f.attr("sym_name")): f for f in ctx.module.functions}
    kinds = {name: _FunctionFacts(f) for name, f in functions.items()}
    for name, kind in kinds.items():
        if kind.flag is not None:
            _warn(ctx, name, kind.flag)
    working: dict[str, Used] = dict.fromkeys(_working(kinds))
    called = {callee for kind in kinds.values() for callee in kind.calls if callee in working}
    programs = {
        name: [CoreProgram(f, core, ctx.profile, working) for core in _cores(f, ctx.profile)]
        for name, f in functions.items()
        if name in working and not kinds[name].empty and kinds[name].flag is None
    }
    drained = {name for name, found in programs.items() if max(p.elements for p in found) > 1}
    for name in _inner_first(kinds):
        function = functions[name]
        if name in programs:
            places = Places(function, ctx.profile)
            for program in programs[name]:
                if program.root.steps:
                    _synchronise(program, places, drained, report, ids)
            if name in drained:
                add_tails(function)
        if name in called:
            working[name] = _used(function, working)
    return report


def _warn(ctx: PassContext, name: str, flag: Operation) -> None:
    ctx.report(
        flag,
        "PTO-E0809",
        f"cannot insert flags into '@{name}': it already has flags",
        severity="warning",
        help="remove its flags, or leave out --enable-insert-sync",
    )


def _synchronise(
    program: CoreProgram, places: Places, drained: set[str], report: SyncReport, ids: int
) -> None:
    hazards = Hazards(program, places)
    placement = Placement(program, hazards, drained)
    placement.run()
    events = Events(program, placement.flags, ids)
    events.run()
    report.merged += events.merged
    report.narrowed += events.narrowed
    report.spilled += events.spilled
    flags = placement.flags.all
    check = HazardCheck(program, hazards, flags)
    try:
        found = check.run()
        keep_needed(program, check)
        for step in found:
            step.before.append(Barrier(-1, step))
            report.repaired += 1
    except Unbalanced:
        report.given_up += 1
        flags = _barriers_only(program)
    report.flags += len(flags)
    report.barriers += sum(
        isinstance(i, Barrier) for s in all_steps(program.root) for i in (*s.before, *s.after)
    )
    FlagEmitter(program, flags).run()


def keep_needed(program: CoreProgram, check: HazardCheck) -> None:
    """Remove barriers of a pipe that no hazard needs."""
    for step in all_steps(program.root):
        for items in (step.before, step.after):
            items[:] = [i for i in items if not isinstance(i, Barrier) or i.pipe < 0 or i in check.needed]


def _barriers_only(program: CoreProgram) -> list[Flag]:
    """Insert a barrier of all pipes before every instruction."""
    for step in all_steps(program.root):
        step.before[:] = [Barrier(-1, step)] if not step.seqs else []
        step.after.clear()
    return []


def all_steps(seq: Seq) -> list[Step]:
    return [s for step in seq.steps for s in (step, *(t for inner in step.seqs for t in all_steps(inner)))]


class _FunctionFacts:
    """The properties of a function: True if it has no body, its first flag, True if it uses pipes, its
    callees."""

    def __init__(self, function: Operation) -> None:
        self.empty = not function.regions or not function.regions[0].blocks
        self.flag: Operation | None = None
        self.works = False
        self.calls: list[str] = []
        for op in function.walk():
            if op.row is not None and op.row.order in _FLAGS:
                self.flag = self.flag or op
            elif op.name == "func.call":
                self.calls.append(str(op.attr("callee")))
            elif not self.works and works(op):
                self.works = True


def _inner_first(kinds: dict[str, _FunctionFacts]) -> list[str]:
    """Return the functions, callees before callers."""
    found: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in kinds and name not in seen:
            seen.add(name)
            for callee in kinds[name].calls:
                visit(callee)
            found.append(name)

    for name in kinds:
        visit(name)
    return found


def _used(function: Operation, working: dict[str, Used]) -> Used:
    """Return the flags of a function and its callees."""
    found: set[tuple[str, str, int]] = set()
    for op in function.walk():
        if op.name in ("pto.set_flag", "pto.wait_flag"):
            src, dst = (str(op.attr(n)).removeprefix("PIPE_") for n in ("src_pipe", "dst_pipe"))
            found.add((src, dst, int(str(op.attr("event_id")).removeprefix("EVENT_ID"))))
        elif op.row is not None and op.row.order in _FLAGS:
            return None
        elif op.name == "func.call" and (callee := str(op.attr("callee"))) in working:
            inner = working[callee]
            if inner is None:
                return None
            found |= inner
    return frozenset(found) if function.regions and function.regions[0].blocks else None


def _working(kinds: dict[str, _FunctionFacts]) -> set[str]:
    """Return the functions that use pipes, directly or through calls; functions without a body may."""
    found = {name for name, kind in kinds.items() if kind.empty or kind.works or kind.flag is not None}
    while more := {n for n, kind in kinds.items() if n not in found and not found.isdisjoint(kind.calls)}:
        found |= more
    return found


def _cores(function: Operation, profile: Profile) -> list[str]:
    """Return the kinds of core to analyse a function on; "" if the kind is not declared."""
    own = function.attr("pto.kernel_kind")
    if own in ("cube", "vector"):
        return [str(own)]
    found = {SECTIONS[op.name] for op in function.walk() if op.name in SECTIONS}
    if len(found) == 1:  # operations outside of its sections may be for the other kind
        found |= {ONLY_ON[pipe] for op in _outside(function) if (pipe := pipe_of(op, profile)) in ONLY_ON}
    return sorted(found) or [""]


def _outside(function: Operation) -> list[Operation]:
    """Return the operations outside of all sections."""
    todo = [op for block in function.regions[0].blocks for op in block.ops]
    found: list[Operation] = []
    while todo:
        op = todo.pop()
        if op.name not in SECTIONS:
            found.append(op)
            todo += [inner for region in op.regions for block in region.blocks for inner in block.ops]
    return found
