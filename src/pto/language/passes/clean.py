"""Remove unused results, and values that loops and branches hand on although no operation reads them."""

from __future__ import annotations

from ..ir import Block, Function, Op, Program, Value, values_in
from ..operators.fifo import EFFECTS as FIFO_EFFECTS
from .rewrite import uses

#: Operations with effects besides their result.
EFFECTS = {
    "store",
    "assemble",
    "write",
    "array.write",
    "task_dummy",
    "call",
    "region",
    "yield",
    "for",
    "while",
    "if",
    "print",
    *FIFO_EFFECTS,
    "mscatter",
    "gather_row",
}
_HANDS_ON = ("for", "while", "if", "region")


def clean(program: Program) -> Program:
    for function in program.functions.values():
        clean_function(function)
    return program


def clean_function(function: Function) -> None:
    """Clean a function in place, until nothing changes."""
    while True:
        count = uses(function.body)
        for op in function.walk():
            if is_window(op):
                count[op.result] = count.get(op.result, 0) + 1
        for value in values_in(function.returns):
            count[value] = count.get(value, 0) + 1
        for arg in function.body.args:
            from ..ir import dims_of

            for value in values_in(dims_of(arg.type)):
                count[value] = count.get(value, 0) + 1
        if not _sweep(function.body, count):
            return


def _sweep(block: Block, count: dict[Value, int]) -> bool:
    changed = False
    for op in list(block.ops):
        for inner in op.blocks:
            changed |= _sweep(inner, count)
        if op.name in _HANDS_ON:
            changed |= _unused_results(op, count)
        hollow = all(len(b.ops) <= 1 for b in op.blocks) and not op.results and _plain(op)
        effect = op.name in EFFECTS or op.name.startswith("system.") or op.name == "micro.vsts"
        if not (effect or any(count.get(r) for r in op.results)) or hollow:
            block.ops.remove(op)
            changed = True
    return changed


def is_window(op: Op) -> bool:
    """Return True if an operation accumulates into a window of a tile, which changes the tile."""
    acc = op.args.get("acc") if op.name in ("matmul_acc", "gemv_acc") else None
    return isinstance(acc, Value) and acc.op is not None and acc.op.name == "slice"


def _plain(op: Op) -> bool:
    """Return True for a loop or `if`; other operations with blocks are tasks."""
    return op.name in ("for", "if")


def _unused_results(op: Op, count: dict[Value, int]) -> bool:
    """Remove carried values that are read neither afterwards nor in the next iteration."""
    dead = [r.index for r in op.results if not count.get(r) and r.type.dtype.isa != "task"]
    first = {"for": 1, "while": 0}.get(op.name)
    if first is not None:
        dead = [i for i in dead if _only_carried(op, first + i, i, count)]
    if not dead:
        return False
    for block in op.blocks:
        if first is not None and block.args:
            block.args = [a for i, a in enumerate(block.args) if i - first not in dead]
            for i, arg in enumerate(block.args):
                arg.index = i
        end = block.ops[-1]
        if end.name == "yield" and not (op.name == "while" and block is op.blocks[0]):
            end.args["values"] = [v for i, v in enumerate(end.args["values"]) if i not in dead]
    if "init_values" in op.args:
        op.args["init_values"] = [v for i, v in enumerate(op.args["init_values"]) if i not in dead]
    op.results = [r for i, r in enumerate(op.results) if i not in dead]
    for i, r in enumerate(op.results):
        r.index = i
    return True


def _only_carried(op: Op, at: int, result: int, count: dict[Value, int]) -> bool:
    """Return True if a loop does not read a carried value, except to hand it on unchanged."""
    for block in op.blocks:
        if at < len(block.args) and count.get(block.args[at]):
            body = op.blocks[-1]
            kept = body.yielded[result] is block.args[at] and count[block.args[at]] == 1
            if not kept:
                return False
    return True
