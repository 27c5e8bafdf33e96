"""Lower `assemble` in orchestrations: to a window that tasks write directly, or to a task that copies.

    chunk = pl.create_tensor([4, 16], ..)          chunk = pl.slice(out, [1, 4, 16], [b, 0, 0], drop_dims=[0])
    chunk = self.compute(x, chunk)                 self.compute(x, chunk)
    out = pl.assemble(out, chunk, [b, 0, 0])

A tensor that is made, written and assembled once, and is contiguous in its target, becomes the window itself,
if the target is not used in between. Other tensors are copied on a core, in blocks that fit into Vec.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..enums import AtomicType, Level
from ..ir import Block, Op, Program, TensorType, Value, index, root, values_in
from ..operators.blocks import block_of, copied
from .rewrite import Rewriter, each_function


def copies(program: Program) -> Program:
    def change(function: Any) -> Any:
        wanted = function.kind == "orchestration" and any(o.name == "assemble" for o in function.walk())
        return _Copies().function(function) if wanted else function

    return each_function(program, change)


class _Copies(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.windows: dict[Op, Op] = {}  # tensors that become windows of their target

    def ops(self, ops: Iterable[Op]) -> None:
        ops = list(ops)
        for op in ops:
            made = op.args["source"].op if op.name == "assemble" else None
            if made is not None and made.name == "create_tensor" and made.parent is op.parent:
                if _is_window(made, op):
                    self.windows[made] = op
        super().ops(ops)

    def op_region(self, op: Op) -> None:
        if op.args["kind"] in ("at", "spmd"):
            plain = Rewriter()
            plain.values, plain.build = self.values, self.build
            plain.copy(op)
        else:
            self.copy(op)

    def op_create_tensor(self, op: Op) -> None:
        into = self.windows.get(op)
        if into is None:
            self.copy(op)
            return
        for number in _numbers_between(op, into):
            self.copy(number)
        target, offset = self.of(into.args["target"]), self.of(into.args["offset"])
        lead = target.type.rank - op.result.type.rank
        shape = [1] * lead + list(self.of(op.args["shape"]))
        window = self.build.op("slice", [self.type_of(op.result.type)], x=target, shape=shape, offset=offset,
                               valid_shape=None, drop_dims=list(range(lead)) or None)  # fmt: skip
        self.map(op.result, window)

    def op_assemble(self, op: Op) -> None:
        if op.args["source"].op in self.windows:
            return
        b = self.build
        args = self.of(op.args)
        region = Op("region", {"kind": "at", "level": Level.CORE_GROUP, "name_hint": "copy"}, [], op.loc)
        block = region.add_block()
        with b.into(block):
            b.in_core = True
            source = args["source"]
            extent = source.type.extent
            size = block_of(source.type.dtype, extent)
            copied(b, args["target"], args["offset"], source, [0] * len(extent), extent, size, args["atomic"])
            b.append("yield", [], {"values": []})
            b.in_core = False
        b.block.append(region)


# ---- windows ----


def _is_window(made: Op, into: Op) -> bool:
    """Return True if a tensor may be a window of the tensor that it is assembled into."""
    block, target = made.parent, into.args["target"]
    t = made.result.type
    atomic = into.args["atomic"] is not AtomicType.None_
    if block is None or atomic or made.args.get("init_value") is not None or made.args.get("manual_dep"):
        return False
    if (
        target.type.layout != "ND"
        or t.dtype != target.type.dtype
        or target.type.strides is not None
        or t.rank > target.type.rank
    ):
        return False
    first, last = block.ops.index(made), block.ops.index(into)
    between, after = block.ops[first + 1 : last], block.ops[last + 1 :]
    return (
        lies_without_gaps(t, target.type)
        and not _made_in(target, between)
        and not any(_hands_on(op, made.result) for op in between)
        and not any(_uses(op, root(target)) for op in between)
        and not any(_uses(op, made.result) for op in after)
        and _numbers_between(made, into) is not None
    )


def lies_without_gaps(t: TensorType, target: TensorType) -> bool:
    """Return True if a window of a shape has the strides of a contiguous tensor of that shape."""
    lead = target.rank - t.rank
    run = True  # dimensions after this one are whole
    for n, whole in zip(reversed(t.shape), reversed(target.shape[lead:]), strict=True):
        if not run and index.known(n) != 1:
            return False
        run = run and index.same(n, whole)
    return True


def _made_in(value: Value, ops: list[Op]) -> bool:
    return any(value in o.results for o in ops)


def _uses(op: Op, storage: Value) -> bool:
    tensors = (v for o in op.walk() for v in values_in(o.args) if isinstance(v.type, TensorType))
    return any(root(v) is storage for v in tensors)


def _hands_on(op: Op, value: Value) -> bool:
    """Return True if a loop or a branch renames a tensor."""
    return any(value in values_in(o.args) for o in op.walk() if o.name in ("for", "while", "yield", "return"))


def _numbers_between(made: Op, into: Op) -> Any:
    """Return the operations on numbers that the offsets need and that follow the creation of a tensor, in
    order; None if an offset needs other operations."""
    block: Block = made.parent  # type: ignore[assignment]
    between = block.ops[block.ops.index(made) + 1 : block.ops.index(into)]
    found: set[Op] = set()
    stack = list(values_in(into.args["offset"]))
    while stack:
        op = stack.pop().op
        if op is None or op in found or op not in between:
            continue
        if not op.name.startswith("scalar.") and op.name != "const":
            return None
        found.add(op)
        stack += values_in(op.args)
    return [op for op in between if op in found]
