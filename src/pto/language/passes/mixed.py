"""Split functions with cube and vector work into two functions, connected by FIFOs.

    y = pl.move(product, Vec)        X_aic: pl.tpush_to_aiv(product)
    z = pl.exp(y)                    X_aiv: y = pl.tpop_from_aic(..); z = pl.exp(y); pl.tfree_to_aic(y)

Both functions keep all loops and all numbers, so both push and pop in program order. A tile is popped where
it goes to the other core, and freed after its last use. So a FIFO holds no more tiles than the program has
alive at that point, and every slot that a core waits for becomes free. Tiles that are not alive at the same
time share a FIFO.

Work of the two vector cores:

- Without a split both run the function; the second core gets zeros from FIFOs, and writes nothing to global
  memory.
- `pl.split(..)` halves vector work if every operator works row by row (UP_DOWN) or column by column
  (LEFT_RIGHT), see `halves`; otherwise the work is whole.
- `pl.split_aiv` is written by the author. Without a split, `pl.aiv_shard` gives the whole tile to both: each
  core pops its half, and loads the tile from the slot in global memory before it frees the slot.

A tensor that such a function writes, and that both kinds of core access, is accessed by vector cores only:
data of the cube goes to it through a FIFO. Vector cores also send the signals to other ranks. On A2/A3 the
slots of FIFOs are in global memory, which the caller provides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...isa.profiles import Profile
from ..control import CrossCoreSlot, Split
from ..dtypes import DATA_TYPES, INDEX
from ..emit.types import tile_type
from ..enums import MemorySpace, SplitMode
from ..ir import (
    FIFO_SLOTS,
    IN,
    OUT,
    Block,
    Dim,
    Function,
    Op,
    Param,
    Program,
    ScalarType,
    TensorType,
    TileType,
    Value,
    index,
    root,
    values_in,
)
from ..operators.cube import PRODUCTS
from ..operators.fifo import C2V, V2C
from ..problems import UNSUPPORTED, fail
from .clean import clean_function
from .groups import grouped, joined, slots_at
from .halves import halves
from .rewrite import Rewriter, each_function, handed_on

#: Kinds of cores.
CUBE, VECTOR = "cube", "vector"
_CONTROL = ("for", "while", "if", "region", "yield")
_ALIASES = ("slice", "reshape", "set_validshape", "reinterpret_view", "tile.transpose_view")
#: The most FIFOs of a cluster: each uses two of sixteen flags.
_FIFOS = 8
#: The operation that signals a write to other ranks.
_TELLS = "system.notify"
_SPLIT = {SplitMode.NONE: 0, SplitMode.UP_DOWN: 1, SplitMode.LEFT_RIGHT: 2}


def mixed(program: Program) -> Program:
    parts: list[Function] = []
    members = {o.args["callee"] for f in program.functions.values() if f.kind == "group" for o in f.body.ops
               if o.name == "call"}  # fmt: skip

    def change(function: Function) -> Function:
        if function.kind == "group":
            return grouped(function, program.profile, parts)
        if function.kind != "incore":
            return function
        inlined = _Inlined()
        function = inlined.function(_through_vector(function))
        plan = MixedPlan(function, program.profile, inlined.lanes)
        return _split(plan, parts) if plan.both else function

    program = each_function(program, change)
    for member in members:
        program.functions.pop(member.name, None)
    for part in parts:
        program.functions[part.name] = part
    entry = program.entry
    if entry is not None and entry.attrs.get("slots"):
        program.entry = program.add(_caller(entry))
    return each_function(program, lambda f: _Callers().function(f) if f.kind == "orchestration" else f)


# ---- assignment to cores ----


def side(op: Op) -> str:
    """Return the core of an operation; empty for both cores, with `->` if a tile changes cores."""
    if op.name == "move":
        pair = _core(op.args["tile"].type), _core(op.result.type)
        return pair[0] if pair[0] == pair[1] else f"{pair[0]}->{pair[1]}"
    if op.name in ("aiv_shard", "aic_gather"):
        return f"{CUBE}->{VECTOR}" if op.name == "aiv_shard" else f"{VECTOR}->{CUBE}"
    if op.name in PRODUCTS:
        return CUBE
    if op.name in ("system.sync_set", "system.sync_wait"):
        return {"aic": CUBE, "aiv": VECTOR}.get(op.args["core_type"] or "", "")
    if op.name == "tile.extract":
        return _core(op.result.type)
    if op.name == "write" and isinstance(op.args["x"].type, TensorType):
        return VECTOR
    if op.name == "assemble":
        return _core(op.args["target"].type)
    tiles = [v for v in (*op.results, *values_in(op.args)) if isinstance(v.type, TileType)]
    return _core(tiles[0].type) if tiles else ""


def _core(type: TileType) -> str:
    return VECTOR if type.space == "vec" else CUBE


def other(core: str) -> str:
    return CUBE if core == VECTOR else VECTOR


class Crossing:
    """A tile that goes from one kind of core to the other.

    `last` is the operation after which its slot is free; None if the tile is copied first, since its uses are
    not bounded. `whole`: both vector cores get all of it.
    """

    def __init__(self, op: Op, split: int, last: Op | None, kept: bool, whole: bool = False) -> None:
        self.op = op
        self.split = split
        self.last = last
        self.kept = kept
        self.whole = whole
        self.fifo: MixedFifo

    @property
    def source(self) -> Value:
        return self.op.args["tile" if self.op.name == "move" else "x"]

    @property
    def direction(self) -> int:
        return C2V if side(self.op).startswith(CUBE) else V2C

    @property
    def span(self) -> tuple[Block, int, int]:
        """Return the block with the tile, and the positions between which its slot is in use."""
        block = self.op.parent
        assert block is not None
        start = block.ops.index(self.op)
        return block, start, start if self.last is None else block.ops.index(self.last)


class MixedFifo:
    """A FIFO. `in_memory`: its slots are in global memory. A FIFO of whole tiles has one slot, so that a core
    that popped one half can locate the other."""

    def __init__(self, number: int, first: Crossing, slots: int, in_memory: bool) -> None:
        self.number = number
        self.direction = first.direction
        self.split = first.split
        self.whole = first.whole
        self.slots = 1 if first.whole else slots
        self.in_memory = in_memory or first.whole
        self.size = 0
        self.uses: list[Crossing] = []

    def takes(self, c: Crossing) -> bool:
        """Return True if the FIFO can also carry this tile."""
        same = (self.direction, self.split, self.whole) == (c.direction, c.split, c.whole)
        return same and not any(_meet(c, u) for u in self.uses)

    @property
    def bytes(self) -> int:
        """Return its bytes of global memory."""
        return self.size * self.slots if self.in_memory else 0

    @property
    def name(self) -> str:
        return f"{'c2v' if self.direction == C2V else 'v2c'}_{self.number}"


class MixedPlan:
    """The split of a function into its two parts."""

    def __init__(self, function: Function, profile: Profile, lanes: set[Op]) -> None:
        self.function = function
        self.profile = profile
        self.lanes = lanes  # operations that the author assigned to each vector core
        self.ops = [op for op in function.walk() if op.name not in _CONTROL]
        self.written = {root(op.args["output_tensor"]) for op in self.ops if op.name == "store"}
        self.written |= {root(op.args["x"]) for op in self.ops if op.name == "write"}
        self.sides = {op: self._side(op) for op in self.ops}
        self.both = {CUBE, VECTOR} <= {word for s in self.sides.values() for word in s.split("->")}
        self.users: dict[Value, list[Op]] = {}
        for op in function.walk():
            for v in set(op.operands()):
                self.users.setdefault(v, []).append(op)
        if not self.both:
            return
        told = [op for op in self.ops if op.name == _TELLS]
        self.sides |= dict.fromkeys(told, VECTOR)  # signals are sent once, by the core that wrote the data
        said = function.attrs.get("optimizations") or []
        self.slots = next(
            (s.slot_num for s in said if isinstance(s, CrossCoreSlot | Split) and s.slot_num), 2
        )
        mode = next((s.mode for s in said if isinstance(s, Split)), SplitMode.NONE)
        explicit = any(op.name in ("aiv_shard", "aic_gather", "get_subblock_idx") for op in self.ops)
        self.explicit = explicit
        vector = [op for op in function.walk() if VECTOR in self.sides.get(op, VECTOR)]
        self.axis: dict[Value, int] = {}
        if mode is not SplitMode.NONE and not explicit and not told and not self._reads_back():
            self.axis = halves(vector, {op for op, s in self.sides.items() if "->" in s}, mode) or {}
        self.split = _SPLIT[mode] if self.axis else 0
        self.lost = {core: self._lost(core) for core in (CUBE, VECTOR)}
        self.fifos = self._fifos()

    def _side(self, op: Op) -> str:
        """Return the core of an operation. Vector cores write tensors that both kinds of core access, so they
        also read elements of these tensors.
        """
        return VECTOR if op.name == "read" and root(op.args["x"]) in self.written else side(op)

    def _reads_back(self) -> bool:
        """Return True if a vector core loads a tensor that the other may have written."""
        loads = {root(op.args["tensor"]) for op in self.ops if op.name == "load"}
        return any(root(op.args["output_tensor"]) in loads for op in self.ops if op.name == "store")

    def _lost(self, core: str) -> set[Value]:
        """Return numbers that a kind of core cannot compute: numbers that are read from tiles of the other
        kind, and numbers that depend on them.
        """
        lost: set[Value] = set()
        before = -1
        while before != len(lost):
            before = len(lost)
            for op in self.function.walk():
                read = self.sides.get(op, "") == other(core)
                numbers = [r for r in op.results if isinstance(r.type, ScalarType)]
                if numbers and (read or (op.name not in _CONTROL and any(v in lost for v in op.operands()))):
                    lost.update(numbers)
                for same in handed_on(op):
                    if any(v in lost for v in same if isinstance(v, Value)):
                        lost.update(
                            v for v in same if isinstance(v, Value) and isinstance(v.type, ScalarType)
                        )
        return lost

    # ---- FIFOs ----

    def _fifos(self) -> list[MixedFifo]:
        crossings = [self._crossing(op) for op in self.ops if "->" in self.sides[op]]
        fifos: list[MixedFifo] = []
        for c in crossings:
            fifo = next((f for f in fifos if f.takes(c)), None)
            if fifo is None:
                fifo = MixedFifo(len(fifos), c, self.slots, self.profile.isa == "a2a3")
                fifos.append(fifo)
            c.fifo = fifo
            fifo.uses.append(c)
            fifo.size = max(fifo.size, self._bytes(c))
        if len(fifos) > _FIFOS:
            fail(UNSUPPORTED, f"too many tiles in flight between cube and vector cores: {len(fifos)}",
                 self.function.loc, expected=f"at most {_FIFOS}",
                 help="use each tile before the next one is computed")  # fmt: skip
        self.crossings = {c.op: c for c in crossings}
        return fifos

    def _crossing(self, op: Op) -> Crossing:
        split = self.split if op.name == "move" else _SPLIT[op.args["mode"]]
        if op.name == "aiv_shard" and not split:
            return Crossing(op, self._half_of(op), op, False, True)
        names = {op.result}
        block = op.parent
        assert block is not None
        kept, last = False, op
        for later in block.ops[block.ops.index(op) + 1 :]:
            for inner in later.walk():
                if not any(v in names for v in values_in(inner.args)):
                    continue
                last = later
                if inner.name in _ALIASES:
                    names.update(inner.results)
                kept |= inner.name in _CONTROL and _keeps(inner, names)
        if kept and self.sides[op].endswith(CUBE):
            fail(UNSUPPORTED,
                 "cannot multiply a tile that vector cores computed and handed on to another "
                 "iteration, or out of a branch", op.loc,
                 help="multiply the tile in the iteration or branch that computes it")  # fmt: skip
        return Crossing(op, split, None if kept else last, kept)

    def _half_of(self, op: Op) -> int:
        """Return the split for a tile that both vector cores get whole. FIFOs carry halves, and a slot in
        memory has both halves. On A5, slots are on chip, and each has only one half.
        """
        if self.profile.isa == "a5":
            fail(UNSUPPORTED, "cannot give an unsplit tile to both vector cores on A5", op.loc,
                 expected="mode=pl.SplitMode.UP_DOWN or LEFT_RIGHT", got=op.args["x"].type,
                 help="or store it, call pl.system.syncall(), and load it in every lane")  # fmt: skip
        rows, cols = (index.known(n) for n in op.result.type.shape[-2:])
        for n, mode in ((rows, SplitMode.UP_DOWN), (cols, SplitMode.LEFT_RIGHT)):
            if n is not None and not n % 2:
                return _SPLIT[mode]
        fail(UNSUPPORTED, "cannot give a tile with odd rows and columns to both vector cores", op.loc,
             expected="use an even number of rows or columns", got=op.result.type)  # fmt: skip

    @property
    def memory(self) -> int:
        """Return the bytes of global memory that FIFOs need."""
        return sum(f.bytes for f in self.fifos)

    def _bytes(self, c: Crossing) -> int:
        """Return the size of a slot: the larger of the whole tile at its producer and at its consumer."""
        whole = c.op.result.type if c.op.name != "aiv_shard" else c.source.type.replace(space="vec")
        return max(tile_type(t.replace(valid=None), self.profile).size for t in (whole, _dense(c)))


def _dense(c: Crossing) -> TileType:
    whole = c.op.result if c.op.name == "aic_gather" else c.source
    return whole.type.replace(dtype=c.op.result.type.dtype)


def _keeps(op: Op, names: set[Value]) -> bool:
    """Return True if control flow hands a tile on, and does not only test it."""
    return any(v in names for v in values_in([op.args.get("values"), op.args.get("init_values")]))


def _meet(a: Crossing, b: Crossing) -> bool:
    """Return True if two tiles are in their slots at the same time."""
    return _within(a, b) or _within(b, a)


def _within(inner: Crossing, outer: Crossing) -> bool:
    """Return True if the inner tile is popped while the outer one is in its slot."""
    block, start, end = outer.span
    op: Any = inner.op
    while op is not None and op.parent is not block:
        holder = op.parent.outer
        op = holder if isinstance(holder, Op) else None
    return op is not None and start < block.ops.index(op) <= end


# ---- the two functions ----


def _split(plan: MixedPlan, parts: list[Function]) -> Function:
    whole = plan.function
    made = Function(whole.name, "mixed", whole.loc)
    made.attrs = dict(whole.attrs)
    if plan.memory:
        made.attrs["slots"] = plan.memory
    halved = [_Half(plan, core).function(whole) for core in (CUBE, VECTOR)]
    for part in halved:
        clean_function(part)
    parts += halved
    return joined(made, halved)


class _Half(Rewriter):
    """The function of one kind of core."""

    def __init__(self, plan: MixedPlan, core: str) -> None:
        super().__init__()
        self.plan = plan
        self.core = core
        self.frees: dict[Op, list[tuple[MixedFifo, Value]]] = {}
        self.lane: Value | None = None
        self.first: Dim | None = None
        self.slot: dict[MixedFifo, tuple[Any, Any]] = {}  # slots of FIFOs of whole tiles

    def function(self, function: Function) -> Function:
        made = Function(
            f"{function.name}_{'aic' if self.core == CUBE else 'aiv'}",
            "aic" if self.core == CUBE else "aiv",
            function.loc,
        )
        made.attrs = {k: v for k, v in function.attrs.items() if k == "windows"}
        directions = {p.value: p.direction for p in function.params}
        args: list[tuple[Value | None, Any]] = [(v, v.type) for v in function.body.args]
        bytes = self.plan.memory
        if bytes:
            args.insert(slots_at(function.body.args), (None, TensorType(DATA_TYPES["UINT8"], (bytes,))))
        memory: Value | None = None
        for old, type in args:
            copy = made.body.add_arg(type, old.name if old is not None else FIFO_SLOTS)
            if old is None:
                memory = copy
                made.params.append(Param(copy, OUT))
                continue
            self.map(old, copy)
            if old in directions:
                made.params.append(Param(copy, directions[old]))
        for value in made.body.args:
            value.type = self.type_of(value.type)
        with self.build.into(made.body):
            self.build.place = function.loc
            self.build.in_core = True
            self._begin(function.name, memory, bytes)
            self.ops(function.body.ops)
        return made

    def _begin(self, name: str, memory: Value | None, bytes: int) -> None:
        """Emit the FIFOs, and the number of this vector core."""
        base: Dim = 0
        if memory is not None:
            block = self.build.op("get_block_idx", [ScalarType(INDEX)])
            base = self.build.scalar("mul", block, bytes)
        for fifo in self.plan.fifos:
            self._open(fifo, name, memory if fifo.in_memory else None, base)
            base = self.build.scalar("add", base, fifo.bytes) if memory is not None else 0
        if self.core == VECTOR:
            self.lane = self.build.op("get_subblock_idx", [ScalarType(INDEX)])
            self.lane.name = "lane"
            self.first = self.build.scalar("eq", self.lane, 0)

    def _open(self, fifo: MixedFifo, name: str, memory: Value | None, base: object) -> None:
        mine = (fifo.direction == C2V) == (self.core == VECTOR)
        local = 1 if memory is not None else None
        if mine:
            size = fifo.size * (local or fifo.slots)
            where = self.build.op(
                "reserve_buffer", [ScalarType(DATA_TYPES["INT32"])], name=fifo.name, size=size, base=None
            )
        else:
            peer = f"{name}_{'aiv' if self.core == CUBE else 'aic'}"
            where = self.build.op(
                "import_peer_buffer", [ScalarType(DATA_TYPES["INT32"])], name=fifo.name, peer_func=peer
            )
        to_vector = fifo.direction == C2V
        self.build.append(f"{'aic' if self.core == CUBE else 'aiv'}_initialize_pipe", [], {
            "c2v_consumer_buf": where if to_vector else None,
            "v2c_consumer_buf": None if to_vector else where,
            "dir_mask": fifo.direction, "slot_size": fifo.size, "slot_num": fifo.slots,
            "local_slot_num": local, "id": fifo.number, "gm_slot_buffer": memory,
            "gm_offset": base if memory is not None else 0,
        })  # fmt: skip
        if fifo.whole and mine:
            self.slot[fifo] = memory, base

    # ---- operations ----

    def op(self, op: Op) -> None:
        before, self.build.place = self.build.place, op.loc
        where = self.plan.sides.get(op, "")
        if op.name in _CONTROL:
            self._control(op)
        elif "->" in where:
            self._cross(self.plan.crossings[op])
        elif where == self.core or not where:
            self._mine(op)
        for fifo, value in self.frees.pop(op, ()):
            name = "tfree_to_aic" if fifo.direction == C2V else "tfree_to_aiv"
            self.build.append(name, [], {"tile": value, "split": fifo.split, "id": fifo.number})
        self.build.place = before

    def _has(self, op: Op) -> bool:
        return all(v in self.values for v in op.operands())

    def _mine(self, op: Op) -> None:
        if not self._has(op):
            if self.plan.sides.get(op):
                self._missing(op)
            return
        writes = op.name in ("store", _TELLS) or (
            op.name == "write" and isinstance(op.args["x"].type, TensorType)
        )
        whole = op.name != "store" or op.args["tile"] not in self.plan.axis
        alone = self.first is not None and op not in self.plan.lanes
        if writes and whole and alone:
            self._if_first(lambda: self._copied(op))
        elif (
            op.name == "load"
            and alone
            and root(op.args["tensor"]) in self.plan.written
            and not self.plan.axis
        ):
            self._loaded(op)
        else:
            self._copied(op)

    def _missing(self, op: Op) -> None:
        mine, theirs = ("cube core", "vector core") if self.core == CUBE else ("vector core", "cube core")
        fail(UNSUPPORTED, f"cannot use a number from the {theirs} on the {mine}", op.loc,
             help="read it from global memory, or end the region before it is needed")  # fmt: skip

    def _if_first(self, make: Callable[[], object]) -> Op:
        """Return an if that runs on the first vector core only."""
        made = Op("if", {"cond": self.first}, [], self.build.place)
        with self.build.into(made.add_block()):
            make()
            self.build.append("yield", [], {"values": []})
        with self.build.into(made.add_block()):
            self.build.append("yield", [], {"values": []})
        self.build.block.append(made)
        return made

    def _loaded(self, op: Op) -> None:
        """Emit a load on the first vector core, which may have written the tensor; the second core gets
        zeros."""
        t = self.type_of(op.result.type)
        made = Op("if", {"cond": self.first}, [t], op.loc)
        with self.build.into(made.add_block()):
            loaded = self.build.op("load", [t], **self.of(op.args))
            self.build.append("yield", [], {"values": [loaded]})
        with self.build.into(made.add_block()):
            zero = 0.0 if t.dtype.is_float else 0
            filled = self.build.op("full", [t], shape=list(t.shape), dtype=t.dtype, value=zero)
            self.build.append("yield", [], {"values": [filled]})
        self.build.block.append(made)
        self.map(op.result, made.result)

    # ---- halves of tiles ----

    def _type(self, value: Value) -> Any:
        t = self.type_of(value.type)
        axis = self.plan.axis.get(value) if self.core == VECTOR else None
        if axis is None:
            return t
        shape = list(t.shape)
        shape[axis] //= 2
        return t.replace(shape=tuple(shape))

    def _copied(self, op: Op) -> None:
        args = self.of(op.args)
        if self.core == VECTOR and self.plan.axis:
            args = self._halved(op, args)
        made = Op(op.name, args, [self._type(r) for r in op.results], op.loc)
        self.build.block.append(made)
        for old, new in zip(op.results, made.results, strict=True):
            self.map(old, new)

    def _halved(self, op: Op, args: dict[str, Any]) -> dict[str, Any]:
        """Return the shapes and offsets of this core's half."""
        tile = op.args["tile"] if op.name == "store" else op.results[0] if op.results else None
        axis = self.plan.axis.get(tile) if tile is not None else None
        if axis is None or tile is None:
            return args
        half = index.known(tile.type.shape[axis]) or 0
        for name in ("shape", "shapes"):
            if args.get(name) is not None and op.name != "store":
                args[name] = [*args[name]]
                args[name][axis] = half // 2
        if op.name in ("load", "store"):
            assert self.lane is not None
            at = self.build.scalar("mul", self.lane, half // 2)
            args["offsets"] = [*args["offsets"]]
            args["offsets"][axis] = self.build.scalar("add", args["offsets"][axis], at)
        return args

    # ---- FIFOs ----

    def _cross(self, c: Crossing) -> None:
        fifo = c.fifo
        giving = (fifo.direction == C2V) == (self.core == CUBE)
        more = {"split": c.split, "id": fifo.number}
        if giving:
            name = "tpush_to_aiv" if self.core == CUBE else "tpush_to_aic"
            self.build.append(name, [], {"tile": self._whole(c), **more})
            return
        name = "tpop_from_aic" if self.core == VECTOR else "tpop_from_aiv"
        t = self._type(c.op.result)
        if c.whole:
            self._loaded_whole(c, name, t, more)
            return
        value = self.build.op(name, [t], shape=list(t.shape), dtype=t.dtype, **more)
        self.map(c.op.result, value)
        if c.kept:
            copy = self.build.op("move", [t], tile=value, target_memory=MemorySpace.Vec)
            self.map(c.op.result, copy)
            self.frees.setdefault(c.op, []).append((fifo, value))
        else:
            assert c.last is not None
            self.frees.setdefault(c.last, []).append((fifo, value))

    def _loaded_whole(self, c: Crossing, name: str, t: TileType, more: Mapping[str, object]) -> None:
        """Pop this core's half, which signals that the tile is there, and load the whole tile from the
        slot."""
        axis = t.rank - (2 if c.split == _SPLIT[SplitMode.UP_DOWN] else 1)
        shape = [n // 2 if i == axis else n for i, n in enumerate(t.shape)]
        half = t.replace(shape=tuple(shape), valid=None)
        popped = self.build.op(name, [half], shape=shape, dtype=t.dtype, **more)
        memory, base = self.slot[c.fifo]
        rows, cols = t.shape[-2:]
        bytes = rows * cols * t.dtype.bits // 8
        part = self.build.op("slice", [memory.type.replace(shape=(bytes,), strides=(1,))], x=memory,
                             shape=[bytes], offset=[base], valid_shape=None, drop_dims=None)  # fmt: skip
        flat = TensorType(t.dtype, (rows * cols,))
        seen = self.build.op("reinterpret_view", [flat], x=part, dtype=t.dtype)
        whole = TensorType(t.dtype, (rows, cols))
        tensor = self.build.op("reshape", [whole], x=seen, shape=[rows, cols])
        valid = None if t.valid is None else list(t.valid[-2:])
        loaded = self.build.op("load", [t], tensor=tensor, offsets=[0, 0], shapes=[rows, cols],
                               valid_shape=valid, target_memory=MemorySpace.Vec)  # fmt: skip
        self.map(c.op.result, loaded)
        self.frees.setdefault(c.op, []).append((c.fifo, popped))

    def _whole(self, c: Crossing) -> Value:
        """Return a tile with its invalid region, as FIFOs carry whole tiles."""
        tile: Value = self.of(c.source)
        t = tile.type
        if not c.split or t.valid is None:
            return tile
        rows, cols = t.shape[-2:]
        return self.build.op(
            "set_validshape", [t.replace(valid=None)], x=tile, valid_rows=rows, valid_cols=cols
        )

    # ---- control flow ----

    def _kept(self, op: Op) -> list[int]:
        """Return the indices of the handed-on values that this core has."""
        lost = self.plan.lost[self.core]
        return [
            r.index for r in op.results
            if (_core(r.type) == self.core if isinstance(r.type, TileType) else r not in lost)
        ]  # fmt: skip

    def _control(self, op: Op) -> None:
        if op.name == "yield":
            outer = op.parent.outer if op.parent is not None else None
            test = isinstance(outer, Op) and outer.name == "while" and op.parent is outer.blocks[0]
            kept = range(len(op.args["values"])) if test or not isinstance(outer, Op) else self._kept(outer)
            self.build.append("yield", [], {"values": [self.of(op.args["values"][i]) for i in kept]})
            return
        asked = [v for k, a in op.args.items() if k != "init_values" for v in values_in(a)]
        if any(v not in self.values for v in asked):
            if any(self.core in self.plan.sides.get(o, "") for o in op.walk()):
                self._missing(op)
            return
        kept = self._kept(op)
        first = 1 if op.name == "for" else 0
        args = {k: self.of(v) for k, v in op.args.items() if k != "init_values"}
        if "init_values" in op.args:
            args["init_values"] = [self.of(op.args["init_values"][i]) for i in kept]
        made = Op(op.name, args, [self._type(op.results[i]) for i in kept], op.loc)
        for block in op.blocks:
            copy = made.add_block()
            for i, arg in enumerate(block.args):
                if i < first or i - first in kept:
                    self.map(arg, copy.add_arg(self._type(arg), arg.name))
            with self.build.into(copy):
                self.ops(block.ops)
        self.build.block.append(made)
        for i, new in zip(kept, made.results, strict=True):
            self.map(op.results[i], new)


# ---- before and after ----


class _Inlined(Rewriter):
    """Inline regions of vector cores. `lanes` are the operations that were in one."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: set[Op] = set()
        self.depth = 0

    def copy(self, op: Op) -> Op:
        made = super().copy(op)
        if self.depth:
            self.lanes.add(made)
        return made

    def op_region(self, op: Op) -> None:
        block = op.blocks[0]
        self.depth += 1
        self.ops(block.ops[:-1])
        self.depth -= 1
        for r, v in zip(op.results, block.yielded, strict=True):
            self.values[r] = self.of(v)


def _through_vector(function: Function) -> Function:
    """Route the cube's accesses to tensors that are written and that both kinds of core access through vector
    cores."""
    ops = list(function.walk())
    if any(op.name.startswith("system.sync") for op in ops):
        return function  # the author has placed the accesses
    if not {CUBE, VECTOR} <= {word for op in ops if op.name not in _CONTROL for word in side(op).split("->")}:
        return function
    touched: dict[Value, set[str]] = {}
    for op in ops:
        for name in ("tensor", "output_tensor", "x"):
            v = op.args.get(name)
            if (
                isinstance(v, Value)
                and isinstance(v.type, TensorType)
                and op.name in ("load", "store", "write")
            ):
                touched.setdefault(root(v), set()).add(f"{side(op)} {op.name}")
    inputs = {p.value for p in function.params if p.direction == IN}
    tells = any(op.name == _TELLS for op in ops)  # vector cores send signals, after their writes
    shared = {
        v for v, how in touched.items()
        if (v not in inputs and len({h.partition(" ")[0] for h in how}) > 1)
        or (tells and f"{CUBE} store" in how)
    }  # fmt: skip
    return _ThroughVector(shared).function(function) if shared else function


class _ThroughVector(Rewriter):
    def __init__(self, shared: set[Value]) -> None:
        super().__init__()
        self.shared = shared

    def op_load(self, op: Op) -> None:
        if op.result.type.space == "vec" or root(op.args["tensor"]) not in self.shared:
            self.copy(op)
            return
        t = self.type_of(op.result.type)
        args = {**self.of(op.args), "target_memory": MemorySpace.Vec}
        loaded = self.build.op("load", [t.replace(space="vec", flat=False)], **args)
        self.map(op.result, self.build.op("move", [t], tile=loaded, target_memory=MemorySpace.Mat))

    def op_store(self, op: Op) -> None:
        tile = self.of(op.args["tile"])
        if tile.type.space == "vec" or root(op.args["output_tensor"]) not in self.shared:
            self.copy(op)
            return
        moved = self.build.op(
            "move", [tile.type.replace(space="vec")], tile=tile, target_memory=MemorySpace.Vec
        )
        wanted = op.args["output_tensor"].type.dtype
        if wanted != tile.type.dtype:
            moved = self.build.op(
                "cast", [moved.type.replace(dtype=wanted)], x=moved, target_type=wanted, mode="rint"
            )
        self.build.append("store", [], {**self.of(op.args), "tile": moved})


def _caller(entry: Function) -> Function:
    """Return an orchestration of one task, for a function that Python calls and that needs slots."""
    made = Function(f"{entry.name}_task", "orchestration", entry.loc)
    made.attrs = {k: v for k, v in entry.attrs.items() if k in ("symbols", "hidden")}
    same = Rewriter()
    given = [v for v in entry.body.args if v.name != FIFO_SLOTS]
    for value in given:
        same.map(value, made.body.add_arg(value.type, value.name))
    for value in made.body.args:
        value.type = same.type_of(value.type)
    made.params = [Param(same.values[p.value], p.direction) for p in entry.params if p.name != FIFO_SLOTS]
    made.body.append(Op("call", {"callee": entry, "args": list(made.body.args)}, [], entry.loc))
    return made


class _Callers(Rewriter):
    """Adds the slots of FIFOs to calls."""

    def op_call(self, op: Op) -> None:
        made = self.copy(op)
        callee: Function = op.args["callee"]
        bytes: int | None = callee.attrs.get("slots")
        if bytes is None:
            return
        self.build.block.ops.pop()
        blocks: Dim = made.args.get("core_num") or 1
        count = self.build.scalar("mul", blocks, bytes)
        type = TensorType(DATA_TYPES["UINT8"], (count,))
        slots = self.build.op(
            "create_tensor", [type], shape=[count], dtype=type.dtype, manual_dep=False, init_value=None
        )
        slots.name = FIFO_SLOTS
        args = list(made.args["args"])
        names = [v for v in callee.body.args if v.name != FIFO_SLOTS]
        args.insert(slots_at(names), slots)
        made.args["args"] = args
        self.build.block.append(made)


__all__ = ["mixed"]
