"""Every tile gets its memory, and operands of the cube are moved to where it wants them.

Values that loops and arms hand on share storage, so they share a memory: a tile that was made for the result of a
product is an accumulator. What nothing decides lies in Vec.
"""

from __future__ import annotations

from typing import Any

from ..enums import MemorySpace
from ..ir import Function, Op, Program, TileType, Value
from .rewrite import Rewriter, each_function

#: Operands of products, and where the cube wants them.
_WANTED = {"lhs": MemorySpace.Left, "rhs": MemorySpace.Right, "bias": MemorySpace.Bias}
_PRODUCTS = ("matmul", "matmul_acc", "matmul_bias")


def spaces(program: Program) -> Program:
    return each_function(program, lambda f: _Spaces(f).function(f) if f.kind != "orchestration" else f)


class _Spaces(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.groups = _Groups(function)

    def type_of(self, type: Any) -> Any:
        return super().type_of(type)

    def map(self, old: Value, new: Any) -> None:
        if isinstance(new, Value) and isinstance(new.type, TileType) and not new.type.space:
            new.type = new.type.replace(space=self.groups.space(old))
        super().map(old, new)

    def op_create_tile(self, op: Op) -> None:
        made = self.copy(op)
        if made.args["target_memory"] is None:
            words = {m.isa: m for m in MemorySpace}
            made.args["target_memory"] = words[made.result.type.space]

    def copy(self, op: Op) -> Op:
        if op.name in _PRODUCTS:
            for name, space in _WANTED.items():
                value = self.of(op.args.get(name))
                if isinstance(value, Value) and value.type.space != space.isa:
                    moved = self.build.op(
                        "move", [value.type.replace(space=space.isa)], tile=value, target_memory=space
                    )
                    moved.name = value.name
                    op.args[name] = moved
        return super().copy(op)


class _Groups:
    """Tiles that share storage, and the memory that each group is in."""

    def __init__(self, function: Function) -> None:
        self.parent: dict[Value, Value] = {}
        self.decided: dict[Value, str] = {}
        for op in function.walk():
            self._join(op)
        for op in function.walk():
            for r in op.results:
                if isinstance(r.type, TileType):
                    self._decide(r, "acc" if op.name in _PRODUCTS else r.type.space)

    def _find(self, v: Value) -> Value:
        while v in self.parent:
            v = self.parent[v]
        return v

    def _same(self, a: Any, b: Any) -> None:
        if isinstance(a, Value) and isinstance(b, Value) and isinstance(a.type, TileType):
            a, b = self._find(a), self._find(b)
            if a is not b:
                self.parent[a] = b

    def _join(self, op: Op) -> None:
        if op.name == "for" or op.name == "while":
            first = 1 if op.name == "for" else 0
            body = op.blocks[-1]
            for i, r in enumerate(op.results):
                self._same(r, body.args[first + i])
                self._same(r, body.yielded[i])
                self._same(r, op.args["init_values"][i])
        elif op.name == "if":
            for i, r in enumerate(op.results):
                for block in op.blocks:
                    self._same(r, block.yielded[i])
        elif op.name == "matmul_acc":
            self._same(op.result, op.args["acc"])
        elif op.name in ("slice", "reshape", "set_validshape", "reinterpret_view"):
            self._same(op.result, op.args["x"])

    def _decide(self, v: Value, space: str) -> None:
        if space:
            self.decided.setdefault(self._find(v), space)

    def space(self, v: Value) -> str:
        return self.decided.get(self._find(v), "vec")
