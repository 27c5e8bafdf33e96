"""Base of passes: copy a program with changes.

A `Rewriter` copies operation by operation. A pass is a subclass with a method per operation that it changes,
named after the operation: `op_load(self, op)` builds the replacement, and calls `self.map` with the new
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..ir import Args, Block, Function, Op, Param, Program, Type, Value, replaced, retyped, values_in
from ..ir.build import Build


class Rewriter:
    """Copies functions. `build` appends to the copy."""

    def __init__(self) -> None:
        self.values: dict[Value, Any] = {}
        self.build = Build(Block())

    # ---- mapping of values ----

    def of(self, arg: object) -> Any:
        """Return an argument in the copy."""
        return replaced(arg, lambda v: self.values.get(v, v))

    def type_of(self, type: Type) -> Any:
        return retyped(type, lambda v: self.values.get(v, v))

    def map(self, old: Value, new: object) -> None:
        self.values[old] = new
        if isinstance(new, Value) and not new.name:
            new.name = old.name

    # ---- copying ----

    def function(self, function: Function) -> Function:
        """Return a copy of a function."""
        made = Function(function.name, function.kind, function.loc)
        made.attrs = dict(function.attrs)
        known = {p.value: p for p in function.params}
        for value in function.body.args:
            copy = made.body.add_arg(value.type, value.name)
            self.map(value, copy)
            if value in known:
                made.params.append(Param(copy, known[value].direction))
        for value in made.body.args:
            value.type = self.type_of(value.type)
        with self.build.into(made.body):
            self.build.in_core = function.kind != "orchestration"
            self.ops(function.body.ops)
        made.returns = self.of(function.returns)
        return made

    def ops(self, ops: Iterable[Op]) -> None:
        for op in ops:
            self.op(op)

    def op(self, op: Op) -> None:
        before, self.build.place = self.build.place, op.loc
        try:
            change = getattr(self, f"op_{op.name.replace('.', '_')}", None)
            if change is not None:
                change(op)
            else:
                self.copy(op)
        finally:
            self.build.place = before

    def copy(self, op: Op) -> Op:
        """Copy an operation with its arguments mapped."""
        return self.rebuilt(op, self.of(op.args))

    def rebuilt(self, op: Op, args: Args) -> Op:
        """Copy an operation and its blocks, with the given arguments."""
        made = Op(op.name, args, [self.type_of(r.type) for r in op.results], op.loc)
        for block in op.blocks:
            copy = made.add_block()
            for arg in block.args:
                self.map(arg, copy.add_arg(self.type_of(arg.type), arg.name))
            with self.build.into(copy):
                self.ops(block.ops)
        self.build.block.append(made)
        for old, new in zip(op.results, made.results, strict=True):
            self.map(old, new)
        return made


def each_function(program: Program, change: Callable[[Function], Function]) -> Program:
    """Return a program with every function replaced by `change`; calls refer to the new functions."""
    made = Program(program.name, program.target)
    new: dict[Function, Function] = {}
    for function in program.functions.values():
        found = change(function)
        new[function] = made.functions[found.name] = found
    made.entry = new.get(program.entry) if program.entry is not None else None
    for function in made.functions.values():
        for op in function.walk():
            if op.name == "call" and op.args["callee"] in new:
                op.args["callee"] = new[op.args["callee"]]
    return made


def uses(block: Block) -> dict[Value, int]:
    """Return the number of uses of each value in a block, including extents of types."""
    found: dict[Value, int] = {}
    for op in block.walk():
        for value in op.operands():
            found[value] = found.get(value, 0) + 1
        for inner in op.blocks:
            for arg in inner.args:
                for value in values_in(_dims(arg.type)):
                    found[value] = found.get(value, 0) + 1
    return found


def _dims(type: Type) -> list[tuple[int | Value, ...] | None]:
    from ..ir import dims_of

    return dims_of(type)


def handed_on(op: Op) -> list[list[object]]:
    """Return groups of values that stand for each other around a loop or an if."""
    if op.name in ("for", "while"):
        first = 1 if op.name == "for" else 0
        return [
            [r, op.args["init_values"][i], op.blocks[-1].yielded[i], *(b.args[first + i] for b in op.blocks)]
            for i, r in enumerate(op.results)
        ]
    if op.name == "if":
        return [[r, *(b.yielded[i] for b in op.blocks)] for i, r in enumerate(op.results)]
    return []
