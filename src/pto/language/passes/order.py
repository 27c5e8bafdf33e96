"""Order the parameters of tasks: tensors, then numbers.

    scale(x, by, out)  ->  scale(x, out, by)

The functions change in place; the entry function keeps the order of its callers.
"""

from __future__ import annotations

from ..ir import Function, Program, TensorType


def order(program: Program) -> Program:
    """Put tensors before numbers in functions of cores and in their calls."""
    orders: dict[Function, list[int]] = {}
    for function in program.functions.values():
        args = function.body.args
        if function.kind == "orchestration" or function is program.entry:
            continue
        wanted = sorted(range(len(args)), key=lambda i: not isinstance(args[i].type, TensorType))
        if wanted == list(range(len(args))):
            continue
        orders[function] = wanted
        function.body.args = [args[i] for i in wanted]
        function.params.sort(key=lambda p: not isinstance(p.value.type, TensorType))
        for i, value in enumerate(function.body.args):
            value.index = i
    for function in program.functions.values():
        for op in function.walk():
            if op.name == "call" and op.args["callee"] in orders:
                given = op.args["args"]
                op.args["args"] = [given[i] for i in orders[op.args["callee"]]]
    return program
