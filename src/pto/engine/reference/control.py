"""Control flow as jumps: loops, branches, calls and sections of a function become steps of its `Code`.

`Control` handles regions and registers; its subclass in `lower.py` handles all other operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...diag import Diagnostic
from ...ir.core import LOWERED_VECSCOPE, Block, Module, Operation, Region, Value
from ...ir.facts import function_of
from ...isa.machine import SECTIONS
from ...isa.row import DIALECTS
from . import interval as intervals
from .code import Code, Step
from .core import BLOCKED, ENDED, MOVED, Core
from .instr import IllegalInstruction

_REGION_EXITS = ("scf.yield", "scf.condition", "builtin.module", "func.func")
_OTHER = {"cube": "vector", "vector": "cube"}


def is_structured(name: str) -> bool:
    """Return whether a row is control flow, which lowering turns into jumps."""
    full = name if name.partition(".")[0] in DIALECTS else f"pto.{name}"
    method = "op_" + full.replace(".", "_")
    return full in SECTIONS or full in _REGION_EXITS or full.startswith("cf.") or hasattr(Control, method)


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


class Control:
    """Emits the steps of one function."""

    def __init__(self, program: Functions, code: Code) -> None:
        self.program = program
        self.code = code
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
            self.code.events.add(self.here)
        self.code.steps.append(step)
        self.code.ops.append(op)
        return len(self.code.steps) - 1

    @property
    def here(self) -> int:
        return len(self.code.steps)

    def function(self, op: Operation) -> None:
        if not op.regions or not op.regions[0].blocks:
            span = self.program.module.span(op)
            raise Unsupported(
                [Diagnostic("PTO-E2002", f"function '@{self.code.name}' has no body to run", span)]
            )
        entry = op.regions[0].blocks[0]
        for arg in entry.args:
            self.slot(arg)
        self.region(op, op.regions[0], None)
        self.emit(op, _return_nothing)
        if self.missing:
            raise Unsupported(self.missing)
        if self.program.tell:
            self._tell()

    def _tell(self) -> None:
        """Let the first step of every operation report that the core has reached it. The number of steps does
        not change, so schedules and limits are those of a launch without observers."""
        seen: set[Operation] = set()
        for at, op in enumerate(self.code.ops):
            if op not in seen and op is not self.code.function:
                seen.add(op)
                make = _arriving if at in self.code.events else _telling
                self.code.steps[at] = make(self.code.steps[at], at, op)

    def instruction(self, op: Operation) -> None:
        """Emit an operation that is not control flow."""
        raise NotImplementedError

    # -- regions ---------------------------------------------------------------------------------------

    def region(self, owner: Operation, region: Region, leave: Callable[[Operation], None] | None) -> None:
        """Emit the blocks of a region; `leave` emits the terminator."""
        starts: dict[Block, int] = {}
        jumps: list[tuple[int, Block, Callable[[int], Step]]] = []
        for block in region.blocks:
            starts[block] = self.here
            for op in block.ops:
                if op.name.startswith("cf."):
                    self.branch(op, jumps)
                elif op.name in ("scf.yield", "scf.condition"):
                    assert leave is not None
                    leave(op)
                else:
                    self.operation(op)
        for at, target, make in jumps:
            self.code.steps[at] = make(starts[target])

    def branch(self, op: Operation, jumps: list[tuple[int, Block, Callable[[int], Step]]]) -> None:
        """Emit a branch between the blocks of a region."""
        tests: list[Step | None] = []
        if op.name == "cf.br":
            tests = [None]
        elif op.name == "cf.cond_br":
            tests = [_unless(self.slot(op.operands[0])), None]
        else:  # cf.switch: successors are the default and then the cases
            values = list(_ints(op.attr("case_values")))
            flag = self.slot(op.operands[0])
            tests = [*[_unless_equal(flag, v) for v in values], None]
        order = op.successors if op.name != "cf.switch" else (*op.successors[1:], op.successors[0])
        if op.name != "cf.br" and self.program.track:
            self.emit(op, self.decision(op, self.slot(op.operands[0]), lambda core: None))
        for test, successor in zip(tests, order, strict=True):
            skip = self.emit(op, test) if test is not None else -1
            self.copy(op, successor.args, successor.block.args)
            at = self.emit(op, _end)
            jumps.append((at, successor.block, lambda target: lambda core: target))
            if skip >= 0:
                self.code.steps[skip] = _bind_skip(test, self.here)  # type: ignore[arg-type]

    def copy(self, op: Operation, sources: list[Value], targets: list[Value]) -> None:
        """Emit a parallel assignment of values, as branches and loops need it."""
        if not sources:
            return
        pairs = [(self.slot(s), self.slot(t)) for s, t in zip(sources, targets, strict=True)]
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
        structured = getattr(self, "op_" + op.name.replace(".", "_"), None)
        if structured is not None:
            structured(op)
        elif op.name in SECTIONS:
            self.section(op)
        else:
            self.instruction(op)

    def section(self, op: Operation) -> None:
        """Emit a section, which runs on its kind of core; a core of both kinds runs every section."""
        other = _OTHER[SECTIONS[op.name]]
        skip = self.emit(op, _end)
        self.region(op, op.regions[0], None)
        after = self.here
        self.code.steps[skip] = lambda core: after if core.kind == other else None

    def op_func_return(self, op: Operation) -> None:
        slots = [self.slot(v) for v in op.operands]
        self.emit(op, lambda core: _return(core, [core.regs[s] for s in slots], slots))

    def op_func_call(self, op: Operation) -> None:
        name = str(op.attr("callee"))
        slots, results = [self.slot(v) for v in op.operands], [self.slot(r) for r in op.results]
        program = self.program
        code = program.code(name)  # lowered now, so that unsupported operations are reported before the run
        kind = str(code.function.attr("pto.kernel_kind"))
        other = _OTHER.get(kind)
        needed = other is not None and bool(op.results) and _used_outside(op, f"pto.section.{kind}")

        def call(core: Core) -> int | None:
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

        at = self.emit(op, call)

    def op_scf_if(self, op: Operation) -> None:
        results = list(op.results)
        condition = self.slot(op.operands[0])
        test = self.emit(op, _end)
        self.region(op, op.regions[0], lambda y: self.copy(y, y.operands, results))
        rest = [r for r in list(op.regions)[1:] if r.blocks]
        skip = self.emit(op, _end) if rest else -1
        otherwise = self.here
        if rest:
            self.region(op, rest[0], lambda y: self.copy(y, y.operands, results))
            after = self.here
            self.code.steps[skip] = lambda core: after
        self.code.steps[test] = self.decision(
            op, condition, lambda core: None if core.regs[condition] else otherwise
        )

    def op_scf_for(self, op: Operation) -> None:
        if LOWERED_VECSCOPE in op.attrs and not self.inside:
            self.interval(op, lambda: self.loop(op))
        else:
            self.loop(op)

    def loop(self, op: Operation) -> None:
        low, high, step = (self.slot(v) for v in op.operands[:3])
        body = op.regions[0].blocks[0]
        counter, carried = body.args[0], body.args[1:]
        self.copy(op, [op.operands[0], *op.operands[3:]], [counter, *carried])
        if self.program.track:
            self.emit(op, self.decision(op, high, lambda core: None, "a loop bound"))
            self.emit(op, self.decision(op, low, lambda core: None, "a loop bound"))
        index = self.slot(counter)
        if counter.name:
            self.code.counters[op] = counter.name, index, high
        unsigned = "unsignedCmp" in op.attrs

        def begin(core: Core) -> None:
            if core.regs[step] <= 0:
                raise IllegalInstruction(f"a loop step of {core.regs[step]}, which must be positive")

        self.emit(op, begin)
        top = self.emit(op, _end)
        self.region(op, op.regions[0], lambda y: self.copy(y, y.operands, carried))

        def again(core: Core) -> int:
            core.regs[index] += core.regs[step]
            return top

        self.emit(op, again)
        leave = self.here
        if unsigned:
            mask = (1 << 64) - 1
            self.code.steps[top] = lambda core: (
                None if core.regs[index] & mask < core.regs[high] & mask else leave
            )
        else:
            self.code.steps[top] = lambda core: None if core.regs[index] < core.regs[high] else leave
        self.copy(op, carried, list(op.results))

    def op_scf_while(self, op: Operation) -> None:
        before, after = op.regions[0], op.regions[-1]
        first, second = before.blocks[0], after.blocks[0]
        self.copy(op, op.operands, first.args)
        top = self.here
        exits: list[int] = []

        def condition(y: Operation) -> None:
            self.copy(y, y.operands[1:], second.args)
            self.copy(y, y.operands[1:], list(op.results))
            exits.append(self.emit(y, _end))

        self.region(op, before, condition)
        self.region(op, after, lambda y: self.copy(y, y.operands, first.args))
        self.emit(op, lambda core: top)
        leave = self.here
        for at in exits:
            test = self.slot(self.code.ops[at].operands[0])
            self.code.steps[at] = self.decision(self.code.ops[at], test, _go_on_if(test, leave))

    def op_scf_execute_region(self, op: Operation) -> None:
        self.leaving(op, op.regions[0])

    def op_pto_vecscope(self, op: Operation) -> None:
        self.interval(op, lambda: self.region(op, op.regions[0], None))

    def op_pto_strict_vecscope(self, op: Operation) -> None:
        self.copy(op, op.operands, op.regions[0].blocks[0].args)
        self.interval(op, lambda: self.region(op, op.regions[0], None))

    def interval(self, op: Operation, body: Callable[[], None]) -> None:
        """Emit the steps of `body` as one item of pipe V."""
        launch = self.emit(op, _end, event=True)
        self.inside = True
        body()
        self.inside = False
        self.emit(op, intervals.end)
        self.code.steps[launch] = intervals.launch(op, launch + 1, self.here)

    def op_scf_index_switch(self, op: Operation) -> None:
        flag = self.slot(op.operands[0])
        if self.program.track:
            self.emit(op, self.decision(op, flag, lambda core: None))
        ends: list[int] = []
        for value, region in zip(_ints(op.attr("cases")), op.regions[1:], strict=True):
            test = self.emit(op, _end)
            self.leaving(op, region)
            ends.append(self.emit(op, _end))
            self.code.steps[test] = _bind_skip(_unless_equal(flag, value), self.here)
        self.leaving(op, op.regions[0])
        after = self.here
        for at in ends:
            self.code.steps[at] = lambda core: after

    def leaving(self, op: Operation, region: Region) -> None:
        """Emit a region whose yields, in any of its blocks, set the results of `op` and leave it."""
        ends: list[int] = []

        def leave(y: Operation) -> None:
            self.copy(y, y.operands, list(op.results))
            ends.append(self.emit(y, _end))

        self.region(op, region, leave)
        after = self.here
        for at in ends:
            self.code.steps[at] = lambda core: after

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
    """Return a step that first publishes the program counter, and reports afterwards if it made no event."""

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


def _ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):  # dense<[1, 2]> : vector<..>
        return tuple(int(w) for w in value[value.find("<") + 1 : value.find(">")].strip("[]").split(","))
    return tuple(int(v) for v in value or ())


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


def _unless(slot: int) -> Step:
    return lambda core: -9 if core.regs[slot] else None


def _unless_equal(slot: int, value: int) -> Step:
    return lambda core: -9 if core.regs[slot] == value else None


def _bind_skip(test: Step, target: int) -> Step:
    """Return a step that goes on if `test` gave -9, and else jumps to `target`."""
    return lambda core: None if test(core) == -9 else target


def _go_on_if(slot: int, leave: int) -> Step:
    return lambda core: None if core.regs[slot] else leave
