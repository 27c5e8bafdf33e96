"""Turn tensor operators on cores into tile operators, with loads and stores.

Tensors in memory are loaded for the operators that compute with them. A parameter that the function only
reads is loaded at its beginning; other tensors are loaded where they are needed, and again after a write.
Results of operators are tiles. Arrays that are assembled into memory are stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..enums import MemorySpace
from ..ir import (
    IN,
    Args,
    Block,
    Function,
    Op,
    Program,
    TensorType,
    TileType,
    Type,
    Value,
    index,
    is_memory,
    is_tile,
    root,
)
from ..operators.cube import PRODUCTS
from ..operators.extents import unknown_extents
from ..operators.memory import SCALES
from ..problems import UNSUPPORTED, fail
from .rewrite import Rewriter, each_function

#: Operators that take memory operands.
_OF_MEMORY = ("slice", "reshape", "read", "write", "load", "store", "tensor.view")
#: Parameters that take memory operands, beside tiles.
_MEMORY = {
    "tile.mgather": ("mem", "scratch"),
    "mscatter": ("output_tensor",),
    "gather_row": ("src",),
    "system.syncall": ("gm_workspace",),
    "system.notify": ("signal",),
    "system.wait": ("signal",),
}


def tiles(program: Program) -> Program:
    return each_function(program, lambda f: _Tiles(f).function(f) if f.kind != "orchestration" else f)


class _Tiles(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.read_only = {p.value for p in function.params if p.direction == IN}
        self.loaded: list[dict[tuple[Value, str], Value]] = [{}]  # per open block
        self.prologue = Block()

    def function(self, function: Function) -> Function:
        made = super().function(function)
        for op in reversed(self.prologue.ops):
            op.parent = made.body
            made.body.ops.insert(0, op)
        return made

    def ops(self, ops: Iterable[Op]) -> None:
        self.loaded.append({})
        super().ops(ops)
        self.loaded.pop()

    # ---- loads ----

    def tile(self, value: Value, space: str = "vec") -> Value:
        """Return a tensor of the source program as a tile."""
        if not is_memory(value) or is_tile(self.values[value]):
            return self.values[value]
        key = (value, space)
        for level in self.loaded:
            if key in level:
                return level[key]
        source = self.values[value]
        if value in self.read_only:
            with self.build.into(self.prologue):
                made = self._load(source, space)
            self.loaded[0][key] = made
        else:
            made = self.loaded[-1][key] = self._load(source, space)
        return made

    def _load(self, source: Value, space: str) -> Value:
        t = source.type
        shape = [n for d in t.shape if (n := index.known(d)) is not None]
        if len(shape) != t.rank:
            unknown_extents(source, self.build.place)
        name = f"{source.name}_tile"
        type = TileType(t.dtype, tuple(shape), t.valid, space)
        if space == "mat" and t.layout in SCALES:
            type = type.replace(scales=SCALES[t.layout][0])
        made = self.build.op(
            "load",
            [type],
            tensor=source,
            offsets=[0] * len(shape),
            shapes=shape,
            valid_shape=None if t.valid is None else list(t.valid),
            target_memory=MemorySpace.Mat if space == "mat" else MemorySpace.Vec,
        )
        made.name = name
        if source.op is not None and source.op.name == "slice" and made.op is not None:
            made.op.loc = source.op.loc  # the location of the window
        return made

    def _written(self, target: Value) -> None:
        """Forget the loaded copies of a tensor that is written."""
        whole = root(target)
        for level in self.loaded:
            for key in [k for k in level if root(k[0]) is whole]:
                del level[key]

    # ---- operations ----

    def copy(self, op: Op) -> Op:
        if op.name in _OF_MEMORY and all(is_memory(v) for v in op.args.values() if _tensor(v)):
            made = super().copy(op)
            if op.name in ("store", "write"):
                self._written(op.args["output_tensor" if op.name == "store" else "x"])
            return made
        cube = PRODUCTS.get(op.name, ())
        memory = _MEMORY.get(op.name, ())
        if op.args.get("target_memory") is MemorySpace.Mat:  # an mgather to Mat: the cube reads memory
            memory += ("idx",)
        args = {
            k: self.tile(v, "mat" if k in cube else "vec") if _tensor(v) and k not in memory else self.of(v)
            for k, v in op.args.items()
        }
        if op.name in ("for", "while", "if", "region"):
            return self._structured(op, args)
        made = Op(op.name, args, [self.type_of(r.type) for r in op.results], op.loc)
        self.build.block.append(made)
        for old, new in zip(op.results, made.results, strict=True):
            self.map(old, new)
        if op.name == "system.wait":
            for level in self.loaded:
                level.clear()
        if op.name == "mscatter":
            self._written(op.args["output_tensor"])
        return made

    def type_of(self, type: Type) -> Any:
        found = super().type_of(type)
        if isinstance(found, TensorType) and self.build.block is not None and self.inside:
            return TileType(found.dtype, _known(self, found), found.valid, "")
        return found

    @property
    def inside(self) -> bool:
        return len(self.loaded) > 1 and self._converting

    _converting = True

    def _structured(self, op: Op, args: Args) -> Op:
        if "init_values" in args:
            args["init_values"] = [self.tile(v) if _tensor(v) else self.of(v) for v in op.args["init_values"]]
        return self.rebuilt(op, args)

    def op_yield(self, op: Op) -> None:
        values = [self.tile(v) if _tensor(v) else self.of(v) for v in op.args["values"]]
        self.build.append("yield", [], {"values": values})

    def op_create_tensor(self, op: Op) -> None:
        t = self.type_of(op.result.type)
        value = op.args.get("init_value")
        if value is not None:
            made = self.build.op(
                "full", [t.replace(space="vec")], shape=list(t.shape), dtype=t.dtype, value=value
            )
        else:
            made = self.build.op("create_tile", [t], shape=list(t.shape), dtype=t.dtype, target_memory=None)
        self.map(op.result, made)

    def op_assemble(self, op: Op) -> None:
        target, source = op.args["target"], op.args["source"]
        tile = self.tile(source) if _tensor(source) else self.of(source)
        if is_memory(target):
            self.build.append(
                "store",
                [],
                {
                    "tile": tile,
                    "offsets": self.of(op.args["offset"]),
                    "output_tensor": self.of(target),
                    "atomic": op.args["atomic"],
                },
            )
            self._written(target)
            return
        self.build.append(
            "assemble",
            [],
            {
                "target": self.of(target),
                "source": tile,
                "offset": self.of(op.args["offset"]),
                "atomic": op.args["atomic"],
            },
        )

    def op_store(self, op: Op) -> None:
        tile, target = op.args["tile"], op.args["output_tensor"]
        args = {**self.of(op.args), "tile": self.tile(tile) if _tensor(tile) else self.of(tile)}
        self.build.append("store", [], args)
        self._written(target)

    def op_slice(self, op: Op) -> None:
        self._view(op)

    def op_reshape(self, op: Op) -> None:
        self._view(op)

    def op_reinterpret_view(self, op: Op) -> None:
        self._view(op)

    def _view(self, op: Op) -> None:
        """Keep a window of memory; turn a window of a tile into a tile."""
        x = op.args["x"]
        if (op.name != "slice" and is_memory(x) and _has_gaps(x.type)) or is_tile(self.values.get(x)):
            made = Op(
                op.name, {**self.of(op.args), "x": self.tile(x)}, [self.type_of(op.result.type)], op.loc
            )
            self.build.block.append(made)
            self.map(op.result, made.result)
            return
        if is_memory(x):
            self._converting = False
            try:
                Rewriter.copy(self, op)
            finally:
                self._converting = True
            return
        made = Op(op.name, self.of(op.args), [self.type_of(op.result.type)], op.loc)
        t = made.result.type
        source = made.args["x"].type
        made.result.type = t.replace(space=source.space if isinstance(source, TileType) else "")
        self.build.block.append(made)
        self.map(op.result, made.result)


def _has_gaps(t: TensorType) -> bool:
    """Return True if the elements of a window are not contiguous."""
    run: Any = 1
    for n, stride in reversed(list(zip(t.shape, t.strides or (), strict=False))):
        if index.known(n) != 1 and not index.same(stride, run):
            return True
        known = index.known(n)
        run = run * known if known is not None and isinstance(run, int) else -1
    return False


def _tensor(v: object) -> bool:
    return isinstance(v, Value) and isinstance(v.type, TensorType)


def _known(rewriter: Rewriter, type: TensorType) -> tuple[int, ...]:
    shape = [index.known(d) for d in type.shape]
    if any(d is None for d in shape):
        fail(UNSUPPORTED, "expected constant extents for an array on a core", rewriter.build.place, got=type,
             help="take a window of constant shape, with valid_shape for the valid region")  # fmt: skip
    return tuple(d for d in shape if d is not None)
