"""Control flow as steps of a `Code`: jumps, copies, loops, calls, sections and vecscopes.

`Control` emits the steps of `program/flow.py`; its subclass in `lower.py` handles all other operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...diag import Diagnostic
from ...ir.core import LOWERED_VECSCOPE, Module, Operation, Value
from ...ir.facts import function_of
from ...isa.machine import SECTIONS
from ...isa.row import DIALECTS
from ...program.flow import NAMES, Flow
from . import interval as intervals
from .code import Code, Step
from .core import BLOCKED, ENDED, MOVED, Core
from .instr import IllegalInstruction

_OTHER = {"cube": "vector", "vector": "cube"}


def is_structured(name: str) -> bool:
    """Return whether a row is control flow, which lowering turns into jumps."""
    full = name if name.partition(".")[0] in DIALECTS else f"pto.{name}"
    return full in NAMES or full in SECTIONS or full in _HANDLERS or full in ("builtin.module", "func.func")


class Unsupported(Exception):
    """Operations that the engine cannot execute."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__(diagnostics[0].message)


class Functions(Protocol):
    """The program of a function, which has the code of called functions."""

    module: Module
    track: bool  # follow undefined scalars
    tell: bool  # report steps that are not events, too

    def code(self, name: str) -> Code: ...


class Control(Flow):
    """Emits the steps of one function."""

    def __init__(self, program: Functions, code: Code) -> None:
        super().__init__()
        self.program = program
        self.code = code
        self._open: dict[int, Callable[[int], Step]] = {}  # makes the step of a hole, given its target
        self.slots = code.slots
        self.missing: list[Diagnostic] = []
        self.inside = False  # emitting steps of a vecscope

    def slot(self, value: Value) -> int:
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = self.code.registers
            self.code.registers += 1
        return found

    def emit(self, op: Operation, step: Step, event: bool = False) -> int:
        """Append a step and return its index. An `event` is reported by the step itself."""
        if event:
            self.code.events.add(len(self.code.steps))
        self.code.steps.append(step)
        self.code.ops.append(op)
        return len(self.code.steps) - 1

    def here(self, *holes: int) -> int:
        for hole in holes:
            self.fill(hole, len(self.code.steps))
        return len(self.code.steps)

    def fill(self, hole: int, target: int) -> None:
        self.code.steps[hole] = self._open.pop(hole)(target)

    def hole(self, op: Operation, make: Callable[[int], Step], event: bool = False) -> int:
        """Emit a jump; `make` returns its step, given the target."""
        at = self.emit(op, _end, event)
        self._open[at] = make
        return at

    def jump(self, op: Operation) -> int:
        return self.hole(op, lambda target: lambda core: target)

    def unless(self, op: Operation, condition: Value) -> int:
        slot = self.slot(condition)
        return self.hole(
            op, lambda target: self.decision(op, slot, lambda core: None if core.regs[slot] else target)
        )

    def equal(self, op: Operation, value: Value, number: int) -> int:
        slot = self.slot(value)
        return self.hole(
            op,
            lambda target: self.decision(
                op, slot, lambda core: target if core.regs[slot] == number else None
            ),
        )

    def function(self, op: Operation) -> None:
        if not op.regions or not op.regions[0].blocks:
            span = self.program.module.span(op)
            raise Unsupported(
                [Diagnostic("PTO-E2002", f"function '@{self.code.name}' has no body to run", span)]
            )
        entry = op.regions[0].blocks[0]
        for arg in entry.args:
            self.slot(arg)
        self.region(op.regions[0])
        self.emit(op, _return_nothing)
        if self.missing:
            raise Unsupported(self.missing)
        if self.program.tell:
            self._tell()

    def _tell(self) -> None:
        """Let the first step of every operation report that the core has reached the operation. The number of
        steps does not change, so schedules and limits are those of a launch without observers.
        """
        seen: set[Operation] = set()
        for at, op in enumerate(self.code.ops):
            if op not in seen and op is not self.code.function:
                seen.add(op)
                make = _arriving if at in self.code.events else _telling
                self.code.steps[at] = make(self.code.steps[at], at, op)

    def instruction(self, op: Operation) -> None:
        """Emit an operation that is not control flow."""
        raise NotImplementedError

    def copy(self, op: Operation, targets: Sequence[Value], values: Sequence[Value]) -> None:
        if not values:
            return
        pairs = [(self.slot(s), self.slot(t)) for s, t in zip(values, targets, strict=True)]
        if len(pairs) == 1:
            source, target = pairs[0]

            def one(core: Core) -> None:
                core.regs[target] = core.regs[source]

            self.emit(op, self.tracked(one, [source], [target]))
            return

        def several(core: Core) -> None:
            regs = core.regs
            values = [regs[s] for s, _ in pairs]
            for (_, t), v in zip(pairs, values, strict=True):
                regs[t] = v

        if not self.program.track:
            self.emit(op, several)
            return

        def several_tracked(core: Core) -> None:
            several(core)
            marks = [core.poison.get(s) for s, _ in pairs]
            for (_, t), mark in zip(pairs, marks, strict=True):
                set_mark(core, t, mark)

        self.emit(op, several_tracked)

    # -- structured control ----------------------------------------------------------------------------

    def operation(self, op: Operation) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is not None and not (op.name == "scf.for" and LOWERED_VECSCOPE not in op.attrs):
            handler(self, op)
        elif not self.flow(op):
            self.instruction(op)

    def section(self, op: Operation) -> None:
        """Emit a section, which runs on its kind of core; a core of both kinds runs every section."""
        other = _OTHER[SECTIONS[op.name]]
        skip = self.hole(op, lambda after: lambda core: after if core.kind == other else None)
        self.region(op.regions[0])
        self.here(skip)

    def returns(self, op: Operation) -> None:
        slots = [self.slot(v) for v in op.operands]
        self.emit(op, lambda core: _return(core, [core.regs[s] for s in slots], slots))

    def call(self, op: Operation) -> None:
        name = str(op.attr("callee"))
        slots, results = [self.slot(v) for v in op.operands], [self.slot(r) for r in op.results]
        program = self.program
        code = program.code(name)  # lowered now, so that unsupported operations are reported before the run
        kind = str(code.function.attr("pto.kernel_kind"))
        other = _OTHER.get(kind)
        needed = other is not None and bool(op.results) and _used_outside(op, f"pto.section.{kind}")

        def enter(core: Core) -> int | None:
            if core.kind == other:  # a function of the other kind of core is empty here
                if needed:
                    raise IllegalInstruction(
                        f"'@{name}' returns results only on {kind} cores, but they are used on other cores"
                    )
                return None
            args = [core.regs[s] for s in slots]
            marks = {i: core.poison[s] for i, s in enumerate(slots) if s in core.poison}
            core.frames.append((core.code, at + 1, core.regs, (results, core.poison)))
            core.code, core.pc, core.regs, core.poison = code, 0, code.frame(args), marks
            return MOVED

        at = self.emit(op, enter)

    def enter_loop(self, op: Operation) -> int:
        low, high, step = (self.slot(v) for v in op.operands[:3])
        counter = op.regions[0].blocks[0].args[0]
        index = self.slot(counter)
        if self.program.track:
            self.emit(op, self.decision(op, high, lambda core: None, "a loop bound"))
            self.emit(op, self.decision(op, low, lambda core: None, "a loop bound"))
        if counter.name:
            self.code.counters[op] = counter.name, index, high

        def begin(core: Core) -> None:
            if core.regs[step] <= 0:
                raise IllegalInstruction(f"a loop step of {core.regs[step]}, which must be positive")

        self.emit(op, begin)
        if "unsignedCmp" in op.attrs:
            mask = (1 << 64) - 1
            return self.hole(
                op, lambda end: lambda core: None if core.regs[index] & mask < core.regs[high] & mask else end
            )
        return self.hole(op, lambda end: lambda core: None if core.regs[index] < core.regs[high] else end)

    def next_iteration(self, op: Operation, end: int) -> None:
        index, step = self.slot(op.regions[0].blocks[0].args[0]), self.slot(op.operands[2])

        def again(core: Core) -> int:
            core.regs[index] += core.regs[step]
            return end

        self.emit(op, again)

    def vecscope(self, op: Operation) -> None:
        """Emit the steps of a vecscope as one item of pipe V. A loop inside is an ordinary loop."""
        loop = op.name == "scf.for"
        if loop and self.inside:
            self.flow(op)
            return
        if not loop:
            self.copy(op, op.regions[0].blocks[0].args, op.operands)
        launch = self.hole(op, lambda after: intervals.launch(op, launch + 1, after), event=True)
        self.inside = True
        if loop:
            self.flow(op)
        else:
            self.region(op.regions[0])
        self.inside = False
        self.emit(op, intervals.end)
        self.here(launch)

    # -- undefined scalars -----------------------------------------------------------------------------

    def tracked(self, step: Step, sources: list[int], targets: list[int]) -> Step:
        """Return the step, extended to propagate which registers are undefined."""
        if not self.program.track:
            return step

        def marking(core: Core) -> int | None:
            after = step(core)
            if core.poison:
                mark = next((core.poison[s] for s in sources if s in core.poison), None)
                for t in targets:
                    set_mark(core, t, mark)
            return after

        return marking

    def decision(self, op: Operation, slot: int, step: Step, what: str = "a branch") -> Step:
        """Return the step, extended to report an undefined register that it decides on."""
        if not self.program.track:
            return step

        def checked(core: Core) -> int | None:
            if slot in core.poison:
                core.grid.undefined_use(core, op, core.poison.pop(slot), what)
            return step(core)

        return checked


def _arriving(step: Step, at: int, op: Operation) -> Step:
    """Return a step that first publishes the program counter. If the step made no event, it reports its
    operation afterwards.
    """

    def arrive(core: Core) -> int | None:
        core.pc = at
        watch = core.watch
        assert watch is not None
        before = -1 if core.blocked is not None else watch.events
        after = step(core)
        if watch.events == before and after != BLOCKED:
            for hear in watch.reached:
                hear(core, op)
        return after

    return arrive


def _telling(step: Step, at: int, op: Operation) -> Step:
    """Return a step that first reports its operation."""

    def tell(core: Core) -> int | None:
        core.pc = at
        assert core.watch is not None
        for hear in core.watch.reached:
            hear(core, op)
        return step(core)

    return tell


def set_mark(core: Core, slot: int, mark: object) -> None:
    if mark is not None:
        core.poison[slot] = mark
    else:
        core.poison.pop(slot, None)


def _used_outside(op: Operation, section: str) -> bool:
    """Return whether results of an operation are used outside of sections of a kind."""
    results = set(op.results)
    function = function_of(op)
    assert function is not None
    inside = {id(inner) for outer in function.walk() if outer.name == section for inner in outer.walk()}
    return any(id(user) not in inside and not results.isdisjoint(_operands(user)) for user in function.walk())


def _operands(op: Operation) -> list[Value]:
    return [*op.operands, *(v for successor in op.successors for v in successor.args)]


def _end(core: Core) -> int:
    return ENDED


def _return_nothing(core: Core) -> int:
    return _return(core, [])


def _return(core: Core, values: Sequence[object], slots: Sequence[int] = ()) -> int:
    if not core.frames:
        return ENDED
    marks = core.poison
    core.code, core.pc, core.regs, (results, core.poison) = core.frames.pop()
    for slot, value, source in zip(results, values, slots, strict=False):
        core.regs[slot] = value
        if marks or core.poison:
            set_mark(core, slot, marks.get(source))
    return MOVED


_HANDLERS: dict[str, Callable[[Control, Operation], None]] = {
    "func.return": Control.returns,
    "func.call": Control.call,
    "pto.vecscope": Control.vecscope,
    "pto.strict_vecscope": Control.vecscope,
    "scf.for": Control.vecscope,  # loops with the mark LOWERED_VECSCOPE
    **dict.fromkeys(SECTIONS, Control.section),
}
