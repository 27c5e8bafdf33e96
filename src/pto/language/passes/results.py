"""Return arrays of core functions through output tensors, which the caller makes.

y = self.twice(x)                    y = pl.create_tensor([16, 64], pl.FP32)
                             ->      self.twice(x, y)
"""

from __future__ import annotations

from ..enums import AtomicType
from ..ir import OUT, Function, Op, Param, Program, ShapedType, TensorType, Value, replaced, retyped
from .rewrite import Rewriter, each_function


def results(program: Program) -> Program:
    if not any(_computed(f) for f in program.functions.values()):
        return program
    return each_function(program, lambda f: _Results(f is program.entry).function(f))


def _computed(function: Function) -> list[Value]:
    """Return the results of a function that are not its parameters."""
    if function.kind not in ("incore", "aic", "aiv"):
        return []
    given = [p.value for p in function.params]
    found = [v for v in function.returns if isinstance(v, Value) and isinstance(v.type, ShapedType)]
    return [v for v in found if v not in given]


class _Results(Rewriter):
    def __init__(self, is_entry: bool) -> None:
        super().__init__()
        self.is_entry = is_entry

    def function(self, function: Function) -> Function:
        made = super().function(function)
        for old in [] if self.is_entry else _computed(function):
            value = self.of(old)
            out = made.body.add_arg(_whole(value.type), f"{old.name or 'result'}_out")
            made.params.append(Param(out, OUT))
            with self.build.into(made.body):
                self.build.append("assemble", [], {
                    "target": out, "source": value, "offset": [0] * out.type.rank, "atomic": AtomicType.None_,
                })  # fmt: skip
            made.returns = replaced(made.returns, lambda v, value=value, out=out: out if v is value else v)
        return made

    def op_call(self, op: Op) -> None:
        callee = op.args["callee"]
        computed = _computed(callee)
        if not computed:
            self.copy(op)
            return
        given = dict(zip(callee.body.args, self.of(op.args["args"]), strict=False))
        made = []
        for old, value in zip(op.results, computed, strict=False):
            type = retyped(_whole(value.type), lambda v: given.get(v, v))
            made.append(self.build.op(
                "create_tensor", [type], shape=list(type.shape), dtype=type.dtype, manual_dep=False,
                init_value=None,
            ))  # fmt: skip
            self.map(old, made[-1])
        args = {**self.of(op.args), "args": [*self.of(op.args["args"]), *made]}
        rest = op.results[len(computed) :]  # the result of the task
        call = Op("call", args, [r.type for r in rest], op.loc)
        self.build.block.append(call)
        for old, new in zip(rest, call.results, strict=True):
            self.map(old, new)


def _whole(type: ShapedType) -> TensorType:
    return TensorType(type.dtype, type.shape)
