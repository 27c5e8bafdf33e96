"""Turn regions of cores into functions, and into tasks that call them.

The tensors and numbers that a region reads from outside become parameters. The accesses decide directions:
`Out` for a tensor that is only written, `InOut` for one that is also read. Arrays that the region gives
become tensors that the orchestrator makes and the region writes.
"""

from __future__ import annotations

from ..ir import (
    IN,
    INOUT,
    OUT,
    Block,
    Function,
    Op,
    Program,
    ScalarType,
    TensorType,
    Value,
    dims_of,
    reads,
    root,
    values_in,
    writes,
)
from .rewrite import Rewriter, each_function


def outline(program: Program) -> Program:
    """Return the program with a function for each region, and calls in their place."""
    made: list[Function] = []
    taken = set(program.functions)
    names = _Names(taken)
    program = each_function(
        program, lambda f: _Outliner(f, names, made).function(f) if f.kind == "orchestration" else f
    )
    for function in made:
        program.functions[function.name] = function
    return program


class _Names:
    """Unique names of functions."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def new(self, wanted: str) -> str:
        name, n = wanted, 0
        while name in self.taken:
            name = f"{wanted}_{n}"
            n += 1
        self.taken.add(name)
        return name


class _Outliner(Rewriter):
    def __init__(self, function: Function, names: _Names, made: list[Function]) -> None:
        super().__init__()
        self.owner = function
        self.names = names
        self.made = made
        self.count = 0

    def op_region(self, op: Op) -> None:
        if op.args["kind"] not in ("at", "spmd"):
            self.copy(op)
            return
        name = op.args["name_hint"] or f"{self.owner.name}_incore_{self.count}"
        self.count += 1
        inner = _function(self.names.new(name), op)
        self.made.append(inner.function)
        results = [r for r in op.results if isinstance(r.type, TensorType)]
        outs: list[Value] = []
        for r in results:
            whole = self.type_of(r.type)
            outs.append(
                self.build.op(
                    "create_tensor",
                    [TensorType(whole.dtype, whole.shape)],
                    shape=list(whole.shape),
                    dtype=whole.dtype,
                    manual_dep=False,
                    init_value=None,
                )
            )
            self.map(r, outs[-1])
        args = [*map(self.of, inner.tensors), *outs, *map(self.of, inner.numbers)]
        options = {k: self.of(v) for k, v in op.args.items() if k in _OPTIONS and v not in (None, [], False)}
        task = [r for r in op.results if isinstance(r.type, ScalarType)]
        call = Op("call", {"callee": inner.function, "args": args, **options}, [r.type for r in task], op.loc)
        self.build.block.append(call)
        for old, new in zip(task, call.results, strict=True):
            self.map(old, new)


#: Options of a region that belong to its task.
_OPTIONS = ("deps", "no_dep_args", "core_num", "sync_start", "predicate", "dispatch")


class _Inner(Rewriter):
    """The body of a region as a function."""

    def __init__(self, name: str, op: Op) -> None:
        super().__init__()
        self.function_made = Function(name, "incore", op.loc)


class _Made:
    """A function and the arguments of its call: tensors, then results of the region, then numbers."""

    def __init__(self, function: Function, tensors: list[Value], numbers: list[Value]) -> None:
        self.function = function
        self.tensors = tensors
        self.numbers = numbers


def _function(name: str, op: Op) -> _Made:
    block = op.blocks[0]
    needs = _outside(block, op)
    # windows order the tasks of a rank
    needs += [v for v in op.args.get("windows") or () if v not in needs]
    copier = _Inner(name, op)
    function = copier.function_made
    function.attrs["optimizations"] = op.args.get("optimizations") or []
    function.attrs["builtin"] = op.args.get("builtin")
    if op.args["kind"] == "spmd":
        function.attrs["spmd"] = True
    tensors = [v for v in needs if isinstance(v.type, TensorType)]
    numbers = [v for v in needs if not isinstance(v.type, TensorType)]
    directions = directions_of(block, tensors)
    shared = {root(v) for v in op.args.get("windows") or ()}  # others write them, too
    function.attrs["windows"] = {v.name for v in tensors if root(v) in shared}
    directions.update({v: INOUT for v in tensors if root(v) in shared})
    for value in tensors:
        copier.map(value, function.param(value.type, value.name, directions[value]))
    outs: list[tuple[object, Value]] = []
    for result in (r for r in op.results if isinstance(r.type, TensorType)):
        type = TensorType(result.type.dtype, result.type.shape)
        outs.append((block.yielded[result.index], function.param(type, result.name or "out", OUT)))
    for value in numbers:
        copier.map(value, function.param(value.type, value.name))
    for p in function.params:
        p.value.type = copier.type_of(p.value.type)
    _tensors_first(function)
    with copier.build.into(function.body):
        copier.build.in_core = True
        copier.ops(block.ops[:-1])
        for value, out in outs:
            copier.build.append(
                "assemble",
                [],
                {
                    "target": out,
                    "source": copier.of(value),
                    "offset": [0] * out.type.rank,
                    "atomic": _no_atomic(),
                },
            )
    return _Made(function, tensors, numbers)


def _no_atomic() -> object:
    from ..enums import AtomicType

    return AtomicType.None_


def _tensors_first(function: Function) -> None:
    """Order the parameters of tasks: tensors that are read or written, results of the region, then
    numbers."""
    tensors = [p for p in function.params if isinstance(p.value.type, TensorType)]
    numbers = [p for p in function.params if not isinstance(p.value.type, TensorType)]
    function.params = [*tensors, *numbers]
    function.body.args = [p.value for p in function.params]
    for i, value in enumerate(function.body.args):
        value.index = i


def _outside(block: Block, op: Op) -> list[Value]:
    """Return the values that a region uses and does not make, in order of first use."""
    inside: set[Value] = set(block.args)
    found: dict[Value, None] = {}

    def need(value: Value) -> None:
        if value not in inside and value not in found:
            found[value] = None
            for v in values_in(dims_of(value.type)):
                need(v)

    for inner in block.walk():
        for b in inner.blocks:
            inside.update(b.args)
        for value in inner.operands():
            need(value)
        inside.update(inner.results)
    for result in op.results:
        for value in values_in(dims_of(result.type)):
            need(value)
    return list(found)


def directions_of(block: Block, tensors: list[Value]) -> dict[Value, str]:
    """Return the directions of tensors in a block."""
    read: set[Value] = set()
    written: set[Value] = set()
    for op in block.walk():
        for name, arg in op.args.items():
            for value in values_in(arg):
                if isinstance(value.type, TensorType):
                    if reads(op, name):
                        read.add(root(value))
                    if writes(op, name):
                        written.add(root(value))
    out: dict[Value, str] = {}
    for value in tensors:
        whole = root(value)
        reads_it, writes_it = whole in read or value in read, whole in written or value in written
        out[value] = (INOUT if reads_it else OUT) if writes_it else IN
    return out
