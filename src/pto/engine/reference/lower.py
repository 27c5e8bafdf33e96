"""A function as a flat list of steps: what the scalar unit of a core runs.

Structured control flow becomes jumps, every SSA value a register. A step is a function of the core; it gives
the next program counter, None for the following step, or one of the answers of `core.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...diag import Diagnostic
from ...ir.core import Block, Module, Operation, Region, Value
from ...ir.types import MemRefType, ScalarType
from ...isa.profiles import Profile
from ...isa.row import DIALECTS
from ...verify.context import pipe_of
from . import dma, fifo, handles, registry, scalars, sync
from .core import BLOCKED, ENDED, MOVED, Core
from .instr import IllegalInstruction, Instr

Step = Callable[[Core], int | None]

_SECTIONS = {"pto.section.cube": "cube", "pto.section.vector": "vector"}
_REGION_EXITS = ("scf.yield", "scf.condition", "builtin.module", "func.func")
_OTHER = {"cube": "vector", "vector": "cube"}


def is_structured(name: str) -> bool:
    """Whether a row is control flow, which lowering turns into jumps."""
    full = name if name.partition(".")[0] in DIALECTS else f"pto.{name}"
    method = "op_" + full.replace(".", "_")
    return full in _SECTIONS or full in _REGION_EXITS or full.startswith("cf.") or hasattr(_Lower, method)


class Code:
    """The steps of one function, and the operation each came from."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.name = str(function.attr("sym_name"))
        self.steps: list[Step] = []
        self.ops: list[Operation] = []
        self.registers = 0

    def frame(self, args: list[Any]) -> list[Any]:
        """Registers of a call: the arguments are the first ones."""
        return [*args, *[None] * (self.registers - len(args))]


class Program:
    """The functions of a module, lowered on first use."""

    def __init__(self, module: Module, profile: Profile, track: bool = False) -> None:
        self.module = module
        self.profile = profile
        self.track = track  # whether undefined scalars are followed
        self._codes: dict[str, Code] = {}

    def code(self, name: str) -> Code:
        found = self._codes.get(name)
        if found is None:
            function = self.module.function(name)
            assert function is not None
            found = self._codes[name] = Code(function)
            _Lower(self, found).function(function)
        return found


class Unsupported(Exception):
    """Operations that the engine cannot execute."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__(diagnostics[0].message)


class _Lower:
    def __init__(self, program: Program, code: Code) -> None:
        self.program = program
        self.code = code
        self.slots: dict[Value, int] = {}
        self.missing: list[Diagnostic] = []

    def slot(self, value: Value) -> int:
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = self.code.registers
            self.code.registers += 1
        return found

    def emit(self, op: Operation, step: Step) -> int:
        """Append a step; its index."""
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

    # -- regions ---------------------------------------------------------------------------------------

    def region(self, owner: Operation, region: Region, leave: Callable[[Operation], None] | None) -> None:
        """The blocks of a region; `leave` emits what its terminator does."""
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
        """Branches between the blocks of a region."""
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
        """Assign values at once, as a branch or a loop does."""
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
                _mark(core, t, mark)

        self.emit(op, several_tracked)

    # -- structured control ----------------------------------------------------------------------------

    def operation(self, op: Operation) -> None:
        structured = getattr(self, "op_" + op.name.replace(".", "_"), None)
        if structured is not None:
            structured(op)
        elif op.name in _SECTIONS:
            self.section(op)
        else:
            self.instruction(op)

    def section(self, op: Operation) -> None:
        """A section runs on its kind of core; a core that is both runs every section."""
        other = _OTHER[_SECTIONS[op.name]]
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
        program.code(name)  # lowered now, so that what it cannot do is known before the run
        callee = program.module.function(name)
        other = _OTHER.get(str(callee.attr("pto.kernel_kind"))) if callee is not None else None

        def call(core: Core) -> int | None:
            if core.kind == other:
                return None  # a function of the other kind of core is empty here
            code = program.code(name)
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
        has_else = len(op.regions) > 1 and bool(op.regions[1].blocks)
        skip = self.emit(op, _end) if has_else else -1
        otherwise = self.here
        if has_else:
            self.region(op, op.regions[1], lambda y: self.copy(y, y.operands, results))
            after = self.here
            self.code.steps[skip] = lambda core: after
        self.code.steps[test] = self.decision(
            op, condition, lambda core: None if core.regs[condition] else otherwise
        )

    def op_scf_for(self, op: Operation) -> None:
        low, high, step = (self.slot(v) for v in op.operands[:3])
        body = op.regions[0].blocks[0]
        counter, carried = body.args[0], body.args[1:]
        self.copy(op, [op.operands[0], *op.operands[3:]], [counter, *carried])
        if self.program.track:
            self.emit(op, self.decision(op, high, lambda core: None, "a loop bound"))
            self.emit(op, self.decision(op, low, lambda core: None, "a loop bound"))
        index = self.slot(counter)
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
        self.region(op, op.regions[0], None)

    def op_pto_strict_vecscope(self, op: Operation) -> None:
        self.copy(op, op.operands, op.regions[0].blocks[0].args)
        self.region(op, op.regions[0], None)

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
        """A region whose yields, in whatever block, give the results of `op` and go behind it."""
        ends: list[int] = []

        def leave(y: Operation) -> None:
            self.copy(y, y.operands, list(op.results))
            ends.append(self.emit(y, _end))

        self.region(op, region, leave)
        after = self.here
        for at in ends:
            self.code.steps[at] = lambda core: after

    # -- plain operations ------------------------------------------------------------------------------

    def instruction(self, op: Operation) -> None:
        row = op.row
        name = row.name if row is not None else op.name
        if row is None:
            self.unsupported(op, f"'{op.name}' is not an instruction of the ISA")
        elif row.family in ("shared-arith", "shared-math"):
            self.scalar(op)
        elif name in handles.HANDLERS:
            self.handled(op, handles.HANDLERS[name])
        elif name in sync.HANDLERS:
            self.synced(op, sync.HANDLERS[name])
        elif name in fifo.HANDLERS:
            self.handled(op, fifo.HANDLERS[name], may_block=True)
        else:
            execute = registry.find(row)
            if execute is None:
                self.unsupported(op, f"'{op.name}' has no executor in the reference engine yet")
            else:
                self.issued(op, execute)

    def unsupported(self, op: Operation, message: str) -> None:
        self.missing.append(Diagnostic("PTO-E2003", message, self.program.module.span(op)))

    def scalar(self, op: Operation) -> None:
        evaluate = scalars.evaluator(op)
        operands, results = [self.slot(v) for v in op.operands], [self.slot(r) for r in op.results]
        if len(results) != 1:

            def many(core: Core) -> None:
                regs = core.regs
                for t, v in zip(results, evaluate(*[regs[s] for s in operands]), strict=True):
                    regs[t] = v

            step: Step = many
        else:
            step = _scalar_step(evaluate, operands, results[0])
        if op.name == "arith.select" and self.program.track:
            self.emit(op, self.selecting(step, operands, results[0]))
        else:
            self.emit(op, self.tracked(step, operands, results))

    def selecting(self, step: Step, operands: list[int], target: int) -> Step:
        """A select passes on what it chose; the other value does not matter."""
        condition, then, otherwise = operands

        def marking(core: Core) -> int | None:
            mark = core.poison.get(condition) or core.poison.get(then if core.regs[condition] else otherwise)
            step(core)
            _mark(core, target, mark)
            return None

        return marking

    def arguments(self, op: Operation) -> Callable[[Core], dict[str, Any]]:
        """What makes the operand dictionary of an operation."""
        single: list[tuple[str, int]] = []
        other: list[tuple[str, Callable[[Core], Any]]] = []
        assert op.row is not None
        at = 0
        for i, declared in enumerate(op.row.operands):
            count = 1 if op.segments is None else op.segments[i]
            values = op.operands[at : at + count]
            at += count
            if declared.variadic:
                slots = [self.slot(v) for v in values]
                other.append((declared.name, lambda core, slots=slots: [core.regs[s] for s in slots]))
            elif (
                values
                and isinstance(values[0].type, MemRefType)
                and values[0].type.local
                and "tile" in declared.kinds
            ):
                other.append((declared.name, _local_memref(self.slot(values[0]), values[0].type)))
            elif values:
                single.append((declared.name, self.slot(values[0])))
        if not other:

            def plain(core: Core) -> dict[str, Any]:
                regs = core.regs
                return {name: regs[slot] for name, slot in single}

            return plain

        def mixed(core: Core) -> dict[str, Any]:
            regs = core.regs
            made = {name: regs[slot] for name, slot in single}
            for name, get in other:
                made[name] = get(core)
            return made

        return mixed

    def handled(self, op: Operation, handler: handles.Handler, may_block: bool = False) -> None:
        arguments = self.arguments(op)
        results = [self.slot(r) for r in op.results]
        single = results[0] if len(results) == 1 else -1

        def step(core: Core) -> int | None:
            value = handler(core, op, arguments(core))
            if may_block and value is BLOCKED:
                return BLOCKED
            if single >= 0:
                core.regs[single] = value
            elif results:
                for slot, v in zip(results, value, strict=True):
                    core.regs[slot] = v
            return None

        addresses = [self.slot(v) for v in op.operands]
        if self.program.track and addresses:
            inner, span_op = step, op

            def step(core: Core) -> int | None:
                if core.poison:
                    for slot in addresses:
                        if slot in core.poison:
                            core.grid.undefined_use(
                                core, span_op, core.poison.pop(slot), "an address, size or valid shape"
                            )
                return inner(core)

        self.emit(op, step)

    def synced(self, op: Operation, handler: sync.Handler) -> None:
        arguments = self.arguments(op)
        step: Step = lambda core: handler(core, op, arguments(core))  # noqa: E731
        for value in op.operands:
            if isinstance(value.type, ScalarType):
                step = self.decision(op, self.slot(value), step, "an event id")
        self.emit(op, step)

    def issued(self, op: Operation, execute: registry.Execute) -> None:
        arguments = self.arguments(op)
        poison = self.poisoning(op)
        pipe = pipe_of(op, self.program.profile)
        results = [self.slot(r) for r in op.results]
        if not results:
            snapshot = (
                dma.with_registers if op.name in ("pto.copy_gm_to_ubuf", "pto.copy_ubuf_to_gm") else None
            )

            def step(core: Core) -> int | None:
                i = Instr(op, arguments(core), core, pipe)
                poison(core, i)
                if snapshot is not None:
                    snapshot(i)
                if pipe == "ALL":  # the pipes are drained before and after
                    if not core.idle:
                        core.waiting = "all its pipes to drain"
                        return BLOCKED
                    sync.drained(core)
                    core.issue(i, execute)
                    sync.drained(core)
                else:
                    core.issue(i, execute)
                return None

            self.emit(op, step)
            return

        def with_result(core: Core) -> None:
            i = Instr(op, arguments(core), core, "S")
            poison(core, i)
            value = core.issue(i, execute)
            for slot, v in zip(results, value if len(results) > 1 else (value,), strict=True):
                core.regs[slot] = v
                if core.grid.tracks:
                    _mark(core, slot, core.port.scalar_origin(i))

        self.emit(op, with_result)

    # -- undefined scalars -----------------------------------------------------------------------------

    def tracked(self, step: Step, sources: list[int], targets: list[int]) -> Step:
        """The step, passing on which registers are undefined."""
        if not self.program.track:
            return step

        def marking(core: Core) -> int | None:
            after = step(core)
            if core.poison:
                mark = next((core.poison[s] for s in sources if s in core.poison), None)
                for t in targets:
                    _mark(core, t, mark)
            return after

        return marking

    def poisoning(self, op: Operation) -> Callable[[Core, Instr], None]:
        """What tells an instruction which of its scalar operands are undefined."""
        slots: list[tuple[tuple[str, int | None], int]] = []
        counts: dict[str, int] = {}
        for declared, value in op.named():
            n = counts[declared.name] = counts.get(declared.name, -1) + 1
            if isinstance(value.type, ScalarType):
                slots.append(((declared.name, n if declared.variadic else None), self.slot(value)))
        if not self.program.track or not slots:
            return _nothing

        def poison(core: Core, i: Instr) -> None:
            if core.poison:
                i.poison = {key: core.poison[slot] for key, slot in slots if slot in core.poison}

        return poison

    def decision(self, op: Operation, slot: int, step: Step, what: str = "a branch") -> Step:
        """The step, reporting where what it decides on is undefined."""
        if not self.program.track:
            return step

        def checked(core: Core) -> int | None:
            if slot in core.poison:
                core.grid.undefined_use(core, op, core.poison.pop(slot), what)
            return step(core)

        return checked


def _nothing(core: Core, i: Instr) -> None: ...


def _mark(core: Core, slot: int, mark: Any) -> None:
    if mark is not None:
        core.poison[slot] = mark
    else:
        core.poison.pop(slot, None)


def _scalar_step(evaluate: Callable[..., Any], operands: list[int], target: int) -> Step:
    if not operands:
        value = evaluate()

        def constant(core: Core) -> None:
            core.regs[target] = value

        return constant
    if len(operands) == 1:
        (a,) = operands

        def unary(core: Core) -> None:
            regs = core.regs
            regs[target] = evaluate(regs[a])

        return unary
    if len(operands) == 2:
        a, b = operands

        def binary(core: Core) -> None:
            regs = core.regs
            regs[target] = evaluate(regs[a], regs[b])

        return binary

    def any_number(core: Core) -> None:
        regs = core.regs
        regs[target] = evaluate(*[regs[s] for s in operands])

    return any_number


def _local_memref(slot: int, type: MemRefType) -> Callable[[Core], Any]:
    return lambda core: handles.as_tile(core, core.regs[slot], type)


def _ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):  # dense<[1, 2]> : vector<..>
        return tuple(int(w) for w in value[value.find("<") + 1 : value.find(">")].strip("[]").split(","))
    return tuple(int(v) for v in value or ())


def _end(core: Core) -> int:
    return ENDED


def _return_nothing(core: Core) -> int:
    return _return(core, [])


def _return(core: Core, values: list[Any], slots: Sequence[int] = ()) -> int:
    if not core.frames:
        return ENDED
    marks = core.poison
    core.code, core.pc, core.regs, (results, core.poison) = core.frames.pop()
    for slot, value, source in zip(results, values, slots, strict=False):
        core.regs[slot] = value
        if marks or core.poison:
            _mark(core, slot, marks.get(source))
    return MOVED


def _unless(slot: int) -> Step:
    return lambda core: -9 if core.regs[slot] else None


def _unless_equal(slot: int, value: int) -> Step:
    return lambda core: -9 if core.regs[slot] == value else None


def _bind_skip(test: Step, target: int) -> Step:
    """Go on where `test` gave -9, else skip to `target`."""
    return lambda core: None if test(core) == -9 else target


def _go_on_if(slot: int, leave: int) -> Step:
    return lambda core: None if core.regs[slot] else leave
