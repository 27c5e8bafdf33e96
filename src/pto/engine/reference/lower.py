"""Lowers functions to flat lists of steps for the scalar unit of a core; every SSA value is a register.

Control flow becomes jumps in `control.py`. Here every other operation becomes a step, which computes a
scalar, makes a descriptor, synchronizes, or issues an instruction to its pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ...diag import Diagnostic
from ...ir.core import Module, Operation
from ...ir.facts import pipe_of
from ...ir.types import MemRefType, ScalarType
from ...isa.machine import EVERY_PIPE, LAST_PIPE
from ...isa.meaning import BadMeaning
from ...isa.profiles import Profile
from ...isa.row import Row
from ..registers import Register, is_register, maker
from . import fifo, handles, registry, scalars, sync, transfers
from .code import Code, Step
from .control import Control, set_mark
from .core import BLOCKED, Args, Core
from .cube import unit_flag
from .instr import IllegalInstruction, Instr
from .open_rules import asked


class LoweredModule:
    """The functions of a module, lowered on first use."""

    def __init__(
        self,
        module: Module,
        profile: Profile,
        track: bool = False,
        legal: bool = True,
        tell: bool = False,
    ) -> None:
        self.module = module
        self.profile = profile
        self.track = track  # follow undefined scalars
        self.tell = tell  # report steps that are not events, too
        self.legal = legal  # check legality rules again with run-time values
        self._functions = {str(f.attr("sym_name")): f for f in module.functions}
        self._codes: dict[str, Code] = {}
        self._waiting: list[Code] = []  # called functions that are not lowered yet
        self._lowering = False

    def code(self, name: str) -> Code:
        found = self._codes.get(name)
        if found is None:
            found = self._codes[name] = Code(self._functions[name])
            self._waiting.append(found)
            if not self._lowering:
                self._lower()
        return found

    def _lower(self) -> None:
        """Lower the waiting functions and their callees in a loop, because chains of calls may be long."""
        self._lowering = True
        try:
            while self._waiting:
                code = self._waiting.pop()
                Lower(self, code).function(code.function)
        finally:
            self._lowering = False


class Lower(Control):
    """Lowers the operations that are not control flow."""

    program: LoweredModule

    def instruction(self, op: Operation) -> None:
        row = op.row
        name = row.name if row is not None else op.name
        if row is None:
            self.unsupported(op, f"unknown instruction '{op.name}'")
        elif row.set == "scalar" and (row.expr or row.dialect in ("arith", "math")):
            self.scalar(op)
        elif name in handles.HANDLERS:
            self.handled(op, handles.HANDLERS[name])
        elif sync.orders(name):
            self.synced(op)
        elif name in fifo.HANDLERS:
            self.handled(op, fifo.HANDLERS[name], may_block=True, event=True)
        elif name in transfers.HANDLERS:
            self.handled(op, transfers.HANDLERS[name], may_block=True, event=True)
        else:
            execute = registry.find(row)
            if execute is None:
                self.unsupported(op, f"'{op.name}' has no executor in the reference engine yet")
            elif self.inside or row.scope == "vec":
                self.vector(op, execute)
            else:
                self.issued(op, execute)

    def unsupported(self, op: Operation, message: str) -> None:
        self.missing.append(Diagnostic("PTO-E2003", message, self.program.module.span(op)))

    def scalar(self, op: Operation) -> None:
        try:
            evaluate = scalars.evaluator(op)
        except BadMeaning as error:  # only in a program that was not verified
            self.unsupported(op, f"cannot compute '{op.name}': {error}")
            return
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
        """Return the step of a select, which propagates only the undefined state of the chosen value."""
        condition, then, otherwise = operands

        def marking(core: Core) -> int | None:
            mark = core.poison.get(condition) or core.poison.get(then if core.regs[condition] else otherwise)
            step(core)
            set_mark(core, target, mark)
            return None

        return marking

    def arguments(self, op: Operation) -> Callable[[Core], Args]:
        """Return a function that makes the operand dictionary of an operation."""
        single: list[tuple[str, int]] = []
        other: list[tuple[str, Callable[[Core], object]]] = []
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

            def plain(core: Core) -> Args:
                regs = core.regs
                return {name: regs[slot] for name, slot in single}

            return plain

        def mixed(core: Core) -> Args:
            regs = core.regs
            made = {name: regs[slot] for name, slot in single}
            for name, get in other:
                made[name] = get(core)
            return made

        return mixed

    def handled(
        self, op: Operation, handler: handles.Handler, may_block: bool = False, event: bool = False
    ) -> None:
        arguments = self.arguments(op)
        results = [self.slot(r) for r in op.results]
        single = results[0] if len(results) == 1 else -1

        def step(core: Core) -> int | None:
            value: Any = handler(core, op, arguments(core))
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

        self.emit(op, step, event)

    def synced(self, op: Operation) -> None:
        assert op.row is not None
        make = sync.MAKERS.get(op.row.name)
        if make is not None:
            step: Step = make(op, self.program.profile)
        else:
            handler, arguments = sync.HANDLERS[op.row.name], self.arguments(op)
            step = lambda core: handler(core, op, arguments(core))  # noqa: E731
        for value in op.operands:
            if isinstance(value.type, ScalarType):
                step = self.decision(op, self.slot(value), step, "an event id")
        self.emit(op, step, event=True)

    def issued(self, op: Operation, execute: registry.Execute) -> None:
        execute = self.asking(op, execute)
        arguments = self.arguments(op)
        poison = self.poisoning(op)
        pipe = self.pipe(op)
        issuing = LAST_PIPE if pipe == EVERY_PIPE.name else pipe
        results = [self.slot(r) for r in op.results]
        issue = unit_flag.issue if unit_flag.used(op) else Core.issue
        if not self.is_text and unit_flag.phased(op):
            issue = unit_flag.issue_phased
        if not results:

            def step(core: Core) -> int | None:
                i = Instr(op, arguments(core), core, issuing)
                poison(core, i)
                if pipe == EVERY_PIPE.name:  # all pipes drain before it; it does not wait for its own stores
                    if not core.drained:
                        core.waiting = "all its pipes to drain"
                        return BLOCKED
                    core.barrier(op, "ALL")
                issue(core, i, execute)
                return None

            self.emit(op, step, event=True)
            return

        def with_result(core: Core) -> None:
            i = Instr(op, arguments(core), core, "S")
            poison(core, i)
            value = core.issue(i, execute)
            for slot, v in zip(results, value if len(results) > 1 else (value,), strict=True):
                core.regs[slot] = v
                if core.grid.tracks:
                    set_mark(core, slot, i.event.undefined)

        self.emit(op, with_result, event=True)

    def pipe(self, op: Operation) -> str:
        """Return the pipe of an instruction."""
        return pipe_of(op, self.program.profile)

    #: The input is a program; programs have more rules than C++.
    is_text = True

    def unasked(self, row: Row) -> Collection[str]:
        """Return the operands that are exempt from run-time rules."""
        return ()

    def asking(self, op: Operation, execute: registry.Execute) -> registry.Execute:
        """Return an executor that first checks the rules of a tile instruction that depend on run-time
        values. With observers, the run continues after a broken rule. That rule is reported only if the
        sanitizers report nothing.
        """
        row = op.row
        assert row is not None
        open_to = self.program.legal and row.set == "tile"
        asks = asked(op, row, self.program.profile, self.unasked(row), self.is_text) if open_to else None
        if asks is None:
            return execute

        def legal(i: Instr) -> object:
            core = i.core
            try:
                asks(i.args)
            except IllegalInstruction as problem:
                if core.watch is None or not isinstance(core, Core):
                    raise
                core.grid.broken = core.grid.broken or core.illegal(op, problem, i)
            return execute(i)

        return legal

    def vector(self, op: Operation, execute: registry.Execute) -> None:
        """Emit an instruction of a vecscope; the step makes its registers, and sets its scalar results."""
        arguments = self.arguments(op)
        poison = self.poisoning(op)
        made: list[tuple[str, int, Callable[[], Register]]] = []
        scalar: list[int] = []
        assert op.row is not None
        for declared, value in zip(op.row.results, op.results, strict=False):
            if is_register(value.type):
                new = maker(value.type, value.name or declared.name)
                made.append((declared.name, self.slot(value), new))
            else:
                scalar.append(self.slot(value))
        pipe = "V" if self.inside else "S"

        def step(core: Core) -> None:
            args = arguments(core)
            regs = core.regs
            for name, slot, new in made:
                regs[slot] = args[name] = new()
            i = Instr(op, args, core, pipe)
            poison(core, i)
            found = core.execute(i, execute)
            if not scalar:
                return
            for slot, v in zip(scalar, found if len(scalar) > 1 else (found,), strict=False):
                regs[slot] = v
                if core.grid.tracks:
                    set_mark(core, slot, i.event.undefined)

        self.emit(op, step, event=True)

    def poisoning(self, op: Operation) -> Callable[[Core, Instr], None]:
        """Return a function that marks the undefined scalar operands of an instruction."""
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


def _nothing(core: Core, i: Instr) -> None: ...


def _scalar_step(evaluate: Callable[..., object], operands: list[int], target: int) -> Step:
    if not operands:
        value = evaluate()
        # a vector: each execution gets a new one, because instructions may write into it
        if not isinstance(value, int | float):

            def fresh(core: Core) -> None:
                core.regs[target] = evaluate()

            return fresh

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


def _local_memref(slot: int, type: MemRefType) -> Callable[[Core], object]:
    return lambda core: handles.as_tile(core, core.regs[slot], type)
