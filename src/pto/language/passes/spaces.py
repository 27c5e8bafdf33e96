"""Assign a memory to every tile, and insert moves to other memories.

Values that loops and branches hand on share storage, so they share a memory: a tile that was made for the
result of a product is an accumulator. A tile that only products use is loaded to Mat. The default is Vec.

    x = pl.load(a, ..)             # Vec          x = pl.load(a, .., target_memory=Mat)
    y = pl.matmul(x, w)                           y = pl.matmul(pl.move(x, Left), pl.move(w, Right))
    z = pl.exp(y)                                 z = pl.exp(pl.move(y, Vec))

Cube and vector cores share no memory on A2/A3: `mixed` turns moves between Vec and the others into FIFOs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...isa.profiles import Profile
from ..dtypes import FP32
from ..emit.types import two_dimensions
from ..enums import MemorySpace
from ..ir import CHANGES, IN, Args, Block, Function, Op, Program, TensorType, TileType, Value, root, values_in
from ..operators.cube import PRODUCTS
from ..operators.fifo import EFFECTS as FIFO_OPERATIONS
from ..problems import UNSUPPORTED, fail
from .rewrite import Rewriter, each_function

#: Operands of products, and the memory that the cube needs them in.
_WANTED = {
    "lhs": "left",
    "rhs": "right",
    "bias": "bias",
    "lhs_scale": "scale_left",
    "rhs_scale": "scale_right",
}
#: Memories of the cube that are filled only from Mat.
_FROM_MAT = ("left", "right", "bias", "scale_left", "scale_right")
#: Operations whose result is an alias or a part of their operand.
_ALIASES = ("slice", "reshape", "set_validshape", "reinterpret_view")
#: Operations on tiles in Mat.
_OF_MAT = ("tile.extract", "tile.transpose_view")
#: Operations on tiles in any memory.
_ANYWHERE = (
    "store",
    "move",
    *_OF_MAT,
    "yield",
    "for",
    "while",
    "if",
    "assemble",
    "gather_row",
    "region",
    "aiv_shard",
    "aic_gather",
    *FIFO_OPERATIONS,
    *_ALIASES,
)
WORDS = {m.isa: m for m in MemorySpace}
#: Products that accumulate into a tile in place.
_SUMS = ("matmul_acc", "gemv_acc", "matmul_mx_acc")


def spaces(program: Program) -> Program:
    return each_function(
        program, lambda f: _Spaces(f, program.profile).function(f) if f.kind != "orchestration" else f
    )


class _Spaces(Rewriter):
    def __init__(self, function: Function, profile: Profile) -> None:
        super().__init__()
        self.groups = _Groups(function, profile)
        self.never_written = {p.value for p in function.params if p.direction == IN}
        self.moved: list[dict[tuple[Value, str, object], Value]] = [{}]  # per open block

    def ops(self, ops: Iterable[Op]) -> None:
        self.moved.append({})
        super().ops(ops)
        self.moved.pop()

    def map(self, old: Value, new: object) -> None:
        if isinstance(new, Value) and isinstance(new.type, TileType):
            space, turned = self.groups.space(old), new.type.transposed
            new.type = new.type.replace(
                space=space, flat=old in self.groups.rows, transposed=turned and space == "mat"
            )
        super().map(old, new)

    # ---- operations ----

    def op(self, op: Op) -> None:
        super().op(op)
        for r in op.results:
            if self.groups.space(r) == "acc" and self.groups.used_in_a_loop(r):
                self._in(r, "vec")

    def copy(self, op: Op) -> Op:
        args = dict(op.args)
        wanted = _WANTED if op.name in PRODUCTS else {}
        for name, arg in op.args.items():
            if name == "acc" and op.name in PRODUCTS:
                args[name] = self.of(arg)
            elif op.name not in _ANYWHERE and isinstance(arg, Value) and isinstance(arg.type, TileType):
                args[name] = self._in(arg, wanted.get(name, "vec"))
        if op.name in PRODUCTS:
            return self._product(op, args)
        return super().copy(_with(op, args))

    def _product(self, op: Op, args: Mapping[str, object]) -> Op:
        """Emit a product in Acc. If the result shares storage with a tile in another memory, move it there.
        If a sum begins in another memory, the vector core adds it.
        """
        acc = self.of(op.args.get("acc"))
        elsewhere = isinstance(acc, Value) and (acc.type.space != "acc" or survives(op.args["acc"], op))
        if elsewhere:
            plain = op.name.removesuffix("_acc")
            args = {k: v for k, v in args.items() if k not in ("acc", "init_cond")}
            args |= {"out_dtype": None} if plain == "matmul" else {}
            made = Op(plain, self.of(args), [self.type_of(op.result.type).replace(space="acc")], op.loc)
        else:
            made = Op(op.name, self.of(args), [self.type_of(op.result.type).replace(space="acc")], op.loc)
        self.build.block.append(made)
        made.result.name = op.result.name
        value = made.result
        space = self.groups.space(op.result)
        if elsewhere or space != "acc":
            value = self.build.op(
                "move", [value.type.replace(space="vec")], tile=value, target_memory=MemorySpace.Vec
            )
        if elsewhere:
            value = self.build.op("add", [value.type], lhs=self._in(op.args["acc"], "vec"), rhs=value)
        value.name = op.result.name
        self.values[op.result] = value
        return made

    def op_create_tile(self, op: Op) -> None:
        made = self.copy(op)
        made.args["target_memory"] = WORDS[made.result.type.space]
        if not made.result.type.transposed:
            made.args.pop("transpose", None)

    def op_load(self, op: Op) -> None:
        made = self.copy(op)
        made.args["target_memory"] = WORDS[made.result.type.space]

    def op_cast(self, op: Op) -> None:
        """Omit a cast that a move out of Acc performs, if only products use its result."""
        if self.groups.space(op.result) == "mat":
            self.map(op.result, self._in(op.args["x"], "mat", op.result.type.dtype))
        else:
            self.copy(op)

    def op_move(self, op: Op) -> None:
        """Emit an explicit move unless the value is in that memory already."""
        space, tile = self.groups.space(op.result), op.args["tile"]
        if space == self.of(tile).type.space and (
            tile in self.groups.changed or op.result in self.groups.changed
        ):
            self.copy(op).args["target_memory"] = WORDS[space]
        else:
            self.values[op.result] = self._in(tile, space)

    def op_store(self, op: Op) -> None:
        tile = op.args["tile"]
        here = self.of(tile).type.space
        self._made(op, tile=self.of(tile) if here in ("vec", "acc") else self._in(tile, "vec"))

    def op_assemble(self, op: Op) -> None:
        target = self.of(op.args["target"])
        if isinstance(target.type, TensorType):
            super().copy(op)
            return
        source = self.of(op.args["source"]).type.space
        there = target.type.space
        from_acc = there == "mat" and source == "acc"
        self._made(
            op,
            source=self.of(op.args["source"])
            if from_acc
            else self._in(op.args["source"], "vec" if there == "mat" else there),
        )

    def op_slice(self, op: Op) -> None:
        """Emit a window; a window of an accumulator is a copy, because it cannot be an alias."""
        x = op.args["x"]
        if isinstance(x.type, TileType) and self.groups.space(op.result) != self.of(x).type.space:
            self._made(op, x=self._in(x, self.groups.space(op.result)))
        else:
            self.copy(op)

    op_reshape = op_set_validshape = op_slice

    def op_aiv_shard(self, op: Op) -> None:
        """Emit a move to the other kind of core. An accumulator moves whole, including its invalid region,
        and its consumer gets the valid region.
        """
        x = op.args["x"]
        while x.op is not None and x.op.name == "set_validshape":
            x = x.op.args["x"]
        self._made(op, x=self.of(x))

    def op_tile_extract(self, op: Op) -> None:
        x = op.args["x"]
        wanted = "mat" if op.result.type.space in _FROM_MAT else self.of(x).type.space
        self._made(op, x=self._in(x, wanted))

    def op_tile_transpose_view(self, op: Op) -> None:
        self._made(op, x=self._in(op.args["x"], "mat"))

    def _made(self, op: Op, **args: object) -> Op:
        return Rewriter.copy(self, _with(op, {**op.args, **args}))

    def op_yield(self, op: Op) -> None:
        """Move values that are handed on to the memories of their receivers."""
        outer = op.parent.outer if op.parent is not None else None
        values = list(op.args["values"])
        if isinstance(outer, Op):
            for i, (v, r) in enumerate(zip(values, outer.results, strict=False)):
                if isinstance(v, Value) and isinstance(v.type, TileType):
                    values[i] = self._in(v, self.groups.space(r))
        self.build.append("yield", [], {"values": self.of(values)})

    # ---- moves ----

    def _in(self, old: Value, space: str, dtype: object = None) -> Value:
        """Return a value of the source program in a memory."""
        value = self.of(old)
        if value.type.space == space and dtype in (None, value.type.dtype):
            return value
        key = (value, space, dtype)
        for level in self.moved:
            if key in level:
                return level[key]
        made = self._moved(old, value, space, dtype)
        if old not in self.groups.changed:
            self.moved[-1][key] = made
        return made

    def _moved(self, old: Value, value: Value, space: str, dtype: object) -> Value:
        here = value.type.space
        if space == "bias" and not value.type.flat:
            value = self._loaded_again(old, "mat", flat=True) or self._move(
                value, value.type.replace(space="mat", flat=True)
            )
            here = "mat"
        if space in _FROM_MAT and here != "mat":
            value, here = self._in(old, "mat"), "mat"
        again = self._loaded_again(old, space) if here not in _FROM_MAT and space in ("vec", "mat") else None
        if again is not None:
            return again
        if here in _FROM_MAT or (here, space) in (
            ("mat", "vec"),
            ("mat", "acc"),
            ("vec", "acc"),
            ("mat", "mat"),
        ):
            fail(UNSUPPORTED, f"cannot move a tile from {WORDS[here].name} to {WORDS[space].name}",
                 self.build.place, got=value.type, help="store it and load it again")  # fmt: skip
        t = value.type.replace(
            space=space, transposed=value.type.transposed and space == "mat", flat=False, scales=""
        )
        if space == "bias":
            dtype = FP32 if t.dtype.is_float else t.dtype
        return self._move(value, t if dtype is None else t.replace(dtype=dtype))

    def _move(self, value: Value, type: TileType) -> Value:
        made = self.build.op("move", [type], tile=value, target_memory=WORDS[type.space])
        made.name = value.name
        return made

    def _loaded_again(self, old: Value, space: str, flat: bool = False) -> Value | None:
        """Repeat a load, if neither the tensor nor the tile is written."""
        op = old.op
        if op is None or op.name != "load" or old in self.groups.changed:
            return None
        if root(op.args["tensor"]) not in self.never_written:
            return None
        args = {**self.of(op.args), "target_memory": WORDS[space]}
        made = self.build.op("load", [self.type_of(op.result.type).replace(space=space, flat=flat)], **args)
        made.name = old.name
        return made


def _with(op: Op, args: Args) -> Op:
    """Return the same operation with other arguments."""
    made = Op(op.name, args, [], op.loc)
    made.results, made.blocks, made.parent = op.results, op.blocks, op.parent
    return made


class _Groups:
    """Tiles that share storage, and the memory of each group."""

    def __init__(self, function: Function, profile: Profile) -> None:
        self.profile = profile
        self.parent: dict[Value, Value] = {}
        self.decided: dict[Value, str] = {}
        self.members: dict[Value, list[Value]] = {}
        self.users: dict[Value, list[tuple[Op, str]]] = {}
        self.changed: set[Value] = set()  # tiles that are written after they were made
        ops = list(function.walk())
        for op in ops:
            self._join(op)
            for name, arg in op.args.items():
                if isinstance(arg, Value) and isinstance(arg.type, TileType):
                    self.users.setdefault(arg, []).append((op, name))
            if op.name in CHANGES:
                self.changed.add(op.args[CHANGES[op.name]])
        tiles = [r for op in ops for r in op.results if isinstance(r.type, TileType)]
        tiles += [a for op in ops for b in op.blocks for a in b.args if isinstance(a.type, TileType)]
        self._collect(tiles)
        sums = {self._find(v) for v in tiles if self._by_product(v) == "acc"}
        for op in ops:
            if op.name in _ALIASES:
                self._named(op, sums)
        self._collect(tiles)
        self.changed = {v for v in tiles if any(m in self.changed for m in self.members[self._find(v)])}
        self.rows = {v for v in tiles if v.op is not None and v.op.name == "load" and self._is_bias(v)}
        for rule in (self._by_product, self._by_users, self._as_written):
            for v in tiles:
                space = rule(v)
                if space:
                    self.decided.setdefault(self._find(v), space)

    def _find(self, v: Value) -> Value:
        while v in self.parent:
            v = self.parent[v]
        return v

    def _same(self, a: object, b: object) -> None:
        if isinstance(a, Value) and isinstance(b, Value) and isinstance(a.type, TileType):
            a, b = self._find(a), self._find(b)
            if a is not b:
                self.parent[a] = b

    def _join(self, op: Op) -> None:
        if op.name in ("for", "while"):
            first = 1 if op.name == "for" else 0
            for i, r in enumerate(op.results):
                for block in op.blocks:
                    self._same(r, block.args[first + i])
                self._same(r, op.blocks[-1].yielded[i])
                self._same(r, op.args["init_values"][i])
        elif op.name == "if":
            for i, r in enumerate(op.results):
                for block in op.blocks:
                    self._same(r, block.yielded[i])
        elif op.name == "region":
            for i, r in enumerate(op.results):
                self._same(r, op.blocks[0].yielded[i])
        elif op.name in _SUMS and not survives(op.args["acc"], op):
            self._same(op.result, op.args["acc"])

    def _named(self, op: Op, sums: set[Value]) -> None:
        """Group a part of a tile with the tile. Parts of accumulators are copies."""
        x = op.args["x"]
        product = x.op is not None and x.op.name in PRODUCTS
        part = product or (self._find(x) in sums and op.result not in self.changed)
        if not part or _same_matrix(op):
            self._same(op.result, x)

    def _collect(self, tiles: list[Value]) -> None:
        self.members = {}
        for v in tiles:
            self.members.setdefault(self._find(v), []).append(v)

    def _is_bias(self, v: Value) -> bool:
        users = self.users.get(v, ())
        return bool(users) and all(name == "bias" and op.name in PRODUCTS for op, name in users)

    # ---- decisions, the strongest first ----

    def _by_product(self, v: Value) -> str:
        """Choose Acc for a product and everything that shares its storage, unless vector operators write it
        too."""
        group = self.members[self._find(v)]
        made = [m.op for m in group if m.op is not None]
        if v.op is not None and v.op.name in ("aic_gather", "tile.transpose_view"):
            return "mat"
        if v.op is None or v.op.name not in PRODUCTS:
            return ""
        if v.op.name in _SUMS and survives(v.op.args["acc"], v.op):
            return "vec"
        others = [
            o
            for o in made
            if o.name not in (*PRODUCTS, "create_tile", "for", "while", "if", "region", "full")
            and not _same_matrix(o)
        ]
        zero = [o for o in made if o.name == "full"]
        return "" if others or zero or any(m in self.changed for m in group) else "acc"

    def _by_users(self, v: Value) -> str:
        """Choose Mat for tiles that only products use, Vec for tiles that were requested in Mat and are not
        used by products."""
        group = self.members[self._find(v)]
        ends = [(op, name) for m in group for op, name in self.users.get(m, ()) if not _passes_on(op, name)]
        cube = [name in PRODUCTS.get(op.name, ()) or op.name in _OF_MAT or _is_fed(op) for op, name in ends]
        made = {
            m.op.name
            for m in group
            if m.op is not None and m.op.name not in ("for", "while", "if", "region", *_ALIASES)
        }
        if made <= {"load", "create_tile"} and self._written_by_vector(group):
            return "vec"
        if made <= {"load", "create_tile"} and ends and all(cube):
            return "mat"
        if made == {"cast"} and ends and all(cube) and len(group) == 1 and _narrows(v.op):
            return "mat"
        explicit = [m for m in group if m.type.space == "mat"]
        if explicit and made <= {"load", "create_tile", "move"} and not any(cube):
            return "vec"
        return ""

    def _written_by_vector(self, group: list[Value]) -> bool:
        """Return True if vector cores assemble a tile: from tiles that are not products, or in a type to
        which Acc cannot be converted.
        """
        sources = [
            op.args["source"]
            for m in group
            for op, name in self.users.get(m, ())
            if op.name == "assemble" and name == "target"
        ]
        if self.profile.isa == "a2a3" and sources and group[0].type.dtype.isa not in ("f16", "bf16"):
            return True
        return any(s.op is None or s.op.name not in (*PRODUCTS, "if") for s in sources)

    def _as_written(self, v: Value) -> str:
        return v.type.space

    def space(self, v: Value) -> str:
        return self.decided.get(self._find(v), "vec")

    def used_in_a_loop(self, v: Value) -> bool:
        """Return True if a loop after a sum uses it in Vec, so that one move before the loop is enough."""
        home = v.op.parent if v.op is not None else None
        taken = (op for op, _ in self.users.get(v, ()) if op.name in _ALIASES or op.name not in _ANYWHERE)
        return any(op.name not in PRODUCTS and not _same_matrix(op) and _in_a_loop(op, home) for op in taken)


def survives(value: Value, op: Op) -> bool:
    """Return True if a value is read after an operation that replaces it, later or in another iteration."""
    at: Any = op
    while True:
        block: Any = at.parent
        later = block.ops[block.ops.index(at) + 1 :]
        if any(v is value for o in later for inner in o.walk() for v in values_in(inner.args)):
            return True
        if value.owner is block or (value.op is not None and value.op.parent is block):
            return False
        at = block.outer
        if not isinstance(at, Op):
            return False
        if at.name in ("for", "while"):
            return True


def _same_matrix(op: Op) -> bool:
    """Return True if a reshape only adds or removes dimensions of 1."""
    if op.name != "reshape" or not isinstance(op.result.type, TileType):
        return False
    return two_dimensions(op.args["x"].type.shape) == two_dimensions(op.result.type.shape)


def _in_a_loop(op: Op, home: Block | None) -> bool:
    """Return True if an operation is in a loop within a block."""
    block = op.parent
    while block is not None and block is not home:
        outer = block.outer
        if not isinstance(outer, Op) or outer.name in ("for", "while"):
            return isinstance(outer, Op)
        block = outer.parent
    return False


def _passes_on(op: Op, name: str) -> bool:
    """Return True if the result is an alias of an operand."""
    return op.name in ("yield", "for", "while", "if", "region", *_ALIASES) or (
        op.name in ("assemble", "gather_row") and name == CHANGES[op.name]
    )


def _is_fed(op: Op) -> bool:
    """Return True for an explicit move to a memory that is filled from Mat."""
    return op.name == "move" and op.result.type.space in _FROM_MAT


def _narrows(op: Op | None) -> bool:
    """Return True for a cast that a move out of Acc rounds in the same way."""
    if op is None or op.args.get("mode") != "rint":
        return False
    source = op.args["x"].op
    return source is not None and source.name in PRODUCTS and op.result.type.dtype.isa in ("f16", "bf16")
