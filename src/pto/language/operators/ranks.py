"""Operators of several ranks (`pto.language.distributed`): windows, signals, collectives.

All ranks are in one graph of tasks. A buffer is one tensor with the rows of rank 0, then those of rank 1 and
so on. The window of a rank is its part; windows of other ranks are accessed through the whole tensor. So a
remote load is a load. Windows order the tasks of their rank; only signals order tasks of different ranks.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterator, Sequence

from .. import control
from ..dtypes import INT32, DataType
from ..enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from ..ir import Args, Dim, Number, Op, Value, index, is_int, is_tile
from ..ir.build import BufferUse, Build, RankBuffer, TensorWindow, WindowRanks
from ..problems import ARGUMENTS, SHAPE, TYPE, UNSUPPORTED
from .blocks import block_of, copied
from .core import FUNCTIONS, Array, Extents, Function, Operator, Tensor, Tile, operator
from .memory import fits, in_core, shaped_value
from .symbolic import (
    loaded,
    memory,
    no_handle,
    no_window,
    number,
    on_the_host,
    ranked,
    shared,
    sized,
    who,
)

#: The operator that combines two values of a reduction.
_COMBINED = {ReduceOp.Sum: "add", ReduceOp.Max: "maximum", ReduceOp.Min: "minimum", ReduceOp.Prod: "mul"}


def window_of(b: Build, window: TensorWindow, rank: int) -> Value:
    """Return the window of a device at its rank in the group of the buffer."""
    whole, rows, group = window.buffer.whole, window.shape[0], window.buffer.group
    assert whole is not None
    own = group.index(rank)
    local = FUNCTIONS["slice"](b, whole, list(window.shape), [own * rows, *[0] * (len(window.shape) - 1)])
    b.ranks[local] = WindowRanks(whole, own, len(group), rows)
    return local


# ---- the host ----


@ranked("pld", number)
def world_size(b: Build) -> int:
    """Return the number of ranks, one per device of `DistributedConfig`."""
    return b.world


@ranked("pld", memory)
def alloc_window_buffer(
    b: Build, size: Dim | Extents, *, dtype: DataType | None = None, name: str = ""
) -> RankBuffer:
    """Allocate zeroed memory in every rank: a number of bytes, or a shape of some type."""
    sized(b, size, dtype)
    if dtype is None:
        count = b.static([size], "size")[0]
    else:
        count = math.prod(b.static(size, "size")) * dtype.bits // 8
    number = len(b.buffers)
    use = b.uses[number] if number < len(b.uses) else BufferUse(tuple(range(b.world)))
    b.buffers.append(RankBuffer(count, use))
    return b.buffers[-1]


@ranked("pld", shared)
def window(b: Build, buf: object, shape: Extents, *, dtype: DataType) -> TensorWindow:
    """View a buffer as a tensor. `device=r` of the call that takes the tensor selects the rank."""
    on_the_host(b)
    if not isinstance(buf, RankBuffer):
        b.fail(TYPE, "expected a buffer of pld.alloc_window_buffer(..)", "buf", got=repr(buf))
    sizes = tuple(b.static(shape, "shape"))
    wanted = math.prod(sizes) * dtype.bits // 8
    if wanted > buf.size:
        b.fail(SHAPE, "window exceeds its buffer", "shape", got=f"{wanted} bytes",
               expected=f"at most {buf.size} bytes")  # fmt: skip
    if buf.shape is not None and math.prod(buf.shape) == math.prod(sizes):
        sizes = buf.shape
    whole_shape = (b.world * sizes[0], *sizes[1:])
    if buf.whole is None:
        buf.whole = FUNCTIONS["create_tensor"](b, list(whole_shape), dtype, init_value=0)
    t = buf.whole.type  # pyright: ignore[reportOptionalMemberAccess]
    if t.dtype != dtype or tuple(t.shape) != whole_shape:
        b.fail(UNSUPPORTED, "unsupported second shape for windows of one buffer", "shape", got=list(sizes),
               help="give each window its own pld.alloc_window_buffer(..)")  # fmt: skip
    made = TensorWindow(buf, sizes, dtype)
    if not any(w.buffer is buf for w in b.windows):
        b.windows.append(made)
    return made


# ---- communication contexts ----


def _ranks(b: Build, value: object, at: str) -> WindowRanks:
    if not isinstance(value, Value) or value not in b.ranks:
        no_window(b, value, at)
    b.touched.append(value)
    return b.ranks[value]


@ranked("pld", who, "dist_tensor")
def get_comm_ctx(b: Build, dist_tensor: Array) -> WindowRanks:
    """Return the communication context of the ranks that have a window."""
    return _ranks(b, dist_tensor, "dist_tensor")


def _known(b: Build, ctx: object) -> WindowRanks:
    return ctx if isinstance(ctx, WindowRanks) else no_handle(b, ctx, "ctx")


@ranked("pld", number)
def rank(b: Build, ctx: object) -> int:
    """Return the number of this rank."""
    return _known(b, ctx).rank


@ranked("pld", number)
def nranks(b: Build, ctx: object) -> int:
    """Return the number of ranks."""
    return _known(b, ctx).count


# ---- windows of other ranks ----


def _at(
    b: Build, r: WindowRanks, peer: Dim, offsets: Sequence[Dim], shape: Sequence[Dim] | None = None
) -> list[Dim]:
    """Return the offset in the whole tensor of a part, or an element, of a rank's window. Reject offsets
    outside of the window, since they would belong to another rank."""
    t = r.whole.type
    given = [b.as_index(d) for d in b.dims(offsets, "offsets", t.rank)]
    extent = [1] * t.rank if shape is None else list(shape)[-t.rank :]
    extent = [1] * (t.rank - len(extent)) + extent
    fits(b, t.replace(shape=(r.rows, *t.shape[1:])), given, extent, "offsets", name=r.whole.name)
    known = index.known(peer) if is_int(peer) else None
    if not is_int(peer) or (known is not None and not 0 <= known < r.count):
        b.fail(ARGUMENTS, "rank out of range", "peer", expected=f"0 to {r.count - 1}", got=repr(peer))
    first, *rest = given
    return [b.scalar("add", b.scalar("mul", b.as_index(peer), r.rows), first), *rest]


def _zeros(r: WindowRanks) -> list[int]:
    return [0] * r.whole.type.rank


@ranked("pld.tile", loaded, "target")
def remote_load(
    b: Build, target: Array, peer: Dim, offsets: Extents, shape: Extents, valid_shape: Extents | None = None
) -> Tile:
    """Load a part of the window of another rank as a tile."""
    r = _ranks(b, target, "target")
    return FUNCTIONS["load"](b, r.whole, _at(b, r, peer, offsets, valid_shape or shape), shape, valid_shape)


def _remote_store(
    b: Build, src: Array, target: Array, peer: Dim, offsets: Sequence[Dim], atomic: AtomicType, at: str
) -> Value:
    in_core(b)
    r = _ranks(b, target, "target")
    extent = shaped_value(b, src, at).type.extent
    FUNCTIONS["assemble"](b, r.whole, src, _at(b, r, peer, offsets, extent), atomic=atomic)
    return target


@ranked("pld.tile", "target", "target")
def remote_store(
    b: Build,
    src_tile: Array,
    target: Array,
    peer: Dim,
    offsets: Extents,
    atomic: AtomicType = AtomicType.None_,
) -> Tensor:
    """Store a tile in the window of another rank."""
    return _remote_store(b, src_tile, target, peer, offsets, atomic, "src_tile")


@ranked("pld.tensor", "target", "target", name="remote_store")
def remote_store_tensor(
    b: Build, src: Array, target: Array, peer: Dim, offsets: Extents, atomic: AtomicType = AtomicType.None_
) -> Tensor:
    """Store a tensor in the window of another rank."""
    return _remote_store(b, src, target, peer, offsets, atomic, "src")


@operator(level="pld", name="remote_store")
def remote_store_of(
    b: Build, src: Array, target: Array, peer: Dim, offsets: Extents, atomic: AtomicType = AtomicType.None_
) -> Tensor:
    """Store a tile or a tensor in the window of another rank."""
    stored = remote_store if is_tile(src) else remote_store_tensor
    return stored.function(b, src, target, peer, offsets, atomic)


def _sizes(b: Build, shape: Sequence[Dim] | None, whole: Value) -> list[Dim]:
    """Return the extents of a copy; the default is the whole tensor."""
    given = b.dims(shape, "shape") if shape is not None else list(whole.type.shape)
    return [b.as_index(n) for n in given]


def _start(b: Build, offsets: Sequence[Dim] | None, sizes: list[Dim]) -> list[Dim]:
    return [b.as_index(o) for o in offsets] if offsets else [0] * len(sizes)


def _chunk(b: Build, rows: Dim | None, cols: Dim | None) -> list[int | None]:
    """Return the largest block that goes through a core at once."""
    given = {"chunk_rows": rows, "chunk_cols": cols}
    for name, n in given.items():
        known = None if n is None else index.known(n)
        if n is not None and (known is None or known < 1):
            b.fail(ARGUMENTS, f"expected a constant number of rows or columns for '{name}'", name)
    return [None if n is None else index.known(n) for n in given.values()]


@ranked("pld.tensor", "dst", "dst")
def put(
    b: Build, dst: Array, peer: Dim, src: Array, dst_offsets: Extents | None = None,
    src_offsets: Extents | None = None, shape: Extents | None = None, atomic: AtomicType = AtomicType.None_,
    chunk_rows: Dim | None = None, chunk_cols: Dim | None = None, pipeline: object = None,
) -> Tensor:  # fmt: skip
    """Copy a tensor, or a part of it, into the window of another rank."""
    in_core(b)
    r = _ranks(b, dst, "dst")
    sizes = _sizes(b, shape, src)
    at = _at(b, r, peer, dst_offsets or _zeros(r), sizes)
    block = block_of(src.type.dtype, sizes, _chunk(b, chunk_rows, chunk_cols))
    copied(b, r.whole, at, src, _start(b, src_offsets, sizes), sizes, block, atomic)
    return dst


@ranked("pld.tensor", "dst", "src")
def get(
    b: Build, dst: Array, peer: Dim, src: Array, dst_offsets: Extents | None = None,
    src_offsets: Extents | None = None, shape: Extents | None = None, chunk_rows: Dim | None = None,
    chunk_cols: Dim | None = None, pipeline: object = None,
) -> Tensor:  # fmt: skip
    """Copy the window of another rank, or a part of it, into a tensor."""
    in_core(b)
    r = _ranks(b, src, "src")
    sizes = _sizes(b, shape, dst)
    at = _at(b, r, peer, src_offsets or _zeros(r), sizes)
    block = block_of(r.whole.type.dtype, sizes, _chunk(b, chunk_rows, chunk_cols))
    copied(b, dst, _start(b, dst_offsets, sizes), r.whole, at, sizes, block)
    return dst


@ranked("pld.tile", "dst", "dst", name="put")
def put_by_tiles(
    b: Build, dst: Array, peer: Dim, src: Array, stage: Array, stage2: Array | None = None,
    dst_offsets: Extents | None = None, src_offsets: Extents | None = None, shape: Extents | None = None,
    atomic: AtomicType = AtomicType.None_,
) -> Tensor:  # fmt: skip
    """Copy as `pld.tensor.put` does; the staging tiles are accepted and not used."""
    return put.function(b, dst, peer, src, dst_offsets, src_offsets, shape, atomic)


@ranked("pld.tile", "dst", "src", name="get")
def get_by_tiles(
    b: Build, dst: Array, peer: Dim, src: Array, stage: Array, stage2: Array | None = None,
    dst_offsets: Extents | None = None, src_offsets: Extents | None = None, shape: Extents | None = None,
) -> Tensor:  # fmt: skip
    """Copy as `pld.tensor.get` does; the staging tiles are accepted and not used."""
    return get.function(b, dst, peer, src, dst_offsets, src_offsets, shape)


# ---- signals ----


def _signal(b: Build, target: Array, at: str) -> WindowRanks:
    r = _ranks(b, target, at)
    if r.whole.type.dtype != INT32:
        b.fail(TYPE, "expected INT32 for a signal", at, got=r.whole.type)
    return r


@ranked("pld.system", "target", "target")
def notify(
    b: Build,
    target: Array,
    peer: Dim,
    offsets: Extents,
    value: Number = 1,
    *,
    op: NotifyOp = NotifyOp.AtomicAdd,
) -> Tensor:
    """Set a signal of another rank, or add to it. A core that waits for the signal sees all earlier writes of
    this core."""
    in_core(b)
    r = _signal(b, target, "target")
    at = _at(b, r, peer, offsets)
    FUNCTIONS["system.bar_all"](b)
    b.append("system.notify", [], {"signal": r.whole, "offset": at, "value": value, "op": op})
    return target


@ranked("pld.system", "signal", "signal")
def wait(b: Build, signal: Array, offsets: Extents, expected: Number, *, cmp: WaitCmp = WaitCmp.Ge) -> Tensor:
    """Wait for a signal of this rank."""
    in_core(b)
    r = _signal(b, signal, "signal")
    b.append("system.wait", [], {"signal": r.whole, "offset": _at(b, r, r.rank, offsets), "value": expected,
                                 "cmp": cmp})  # fmt: skip
    FUNCTIONS["system.bar_all"](b)
    return signal


@ranked("pld.system", "signal", "signal")
def defer_wait(
    b: Build, signal: Array, offsets: Extents, expected: Number, *, cmp: WaitCmp = WaitCmp.Ge
) -> Tensor:
    """Let tasks that depend on this one wait for a signal of this rank. Here the core itself waits."""
    return wait.function(b, signal, offsets, expected, cmp=cmp)


# ---- collectives: all ranks take part ----


def _collective(function: Function) -> Operator:
    """Make an operator of a core. Called by a host it is a task of every rank, by an orchestration a task of
    its rank."""
    windows = [name for name in inspect.signature(function).parameters if name in ("target", "signal")]

    @functools.wraps(function)
    def everywhere(b: Build, *args: object, **kwargs: object) -> object:
        bound = inspect.signature(function).bind(b, *args, **kwargs)
        if bound.arguments.get("signal") is None:
            b.fail(UNSUPPORTED, "missing signal of a collective", help="an INT32 window of [ranks, 1]")
        if b.in_core:
            return function(b, *args, **kwargs)
        given = list(bound.arguments.values())[1:]
        if any(isinstance(a, TensorWindow) for a in given):
            called = _builtin(function.__name__, bound.arguments)
            for rank in range(b.world):
                for a in args:
                    if isinstance(a, TensorWindow):
                        a.buffer.members.add(rank)
                local = [window_of(b, a, rank) if isinstance(a, TensorWindow) else a for a in args]
                # all ranks synchronize, which orders earlier accesses of this rank to any window before later
                # ones
                rest = [
                    w
                    for w in b.windows
                    if rank in w.buffer.group
                    and not any(isinstance(a, TensorWindow) and a.buffer is w.buffer for a in args)
                ]
                with b.on_rank(rank):
                    _task(b, function, local, kwargs, called, [window_of(b, w, rank) for w in rest])
        else:
            _task(b, function, list(args), kwargs)
        return bound.arguments.get("target", args[0])

    return ranked("pld.tensor", windows[0], " ".join(windows))(everywhere)


def _builtin(name: str, given: Args) -> str:
    """Return the name of a collective of the host that has its own folder."""
    ring = "_ring" if given.get("mode") == "ring" else ""
    op, root, target = given.get("op", ReduceOp.Sum), given.get("root", 0), given.get("target")
    more = {"allreduce": f"__{op.name.lower()}", "reduce_scatter": f"__{op.name.lower()}",
            "broadcast": f"__root{root}"}.get(name, "")  # fmt: skip
    dtype = target.dtype.name.lower() if isinstance(target, TensorWindow) else "fp32"
    return f"builtin.tensor.{name}{ring}{more}__{dtype}"


def _task(
    b: Build, function: Function, args: Sequence[object], kwargs: Args, called: str = "",
    others: Sequence[Value] = (),
) -> None:  # fmt: skip
    own = [*(a for a in args if isinstance(a, Value) and a in b.ranks), *others]
    wholes = [b.ranks[a].whole for a in own]
    said = control.at(name_hint=function.__name__, no_dep_args=wholes, windows=[*wholes, *own])
    more = {"builtin": called, "dispatch": b.dispatch}
    op = Op("region", {"kind": said.kind, **said.options, **more}, [], b.place)
    block = op.add_block()
    with b.into(block):
        b.in_core = True
        try:
            function(b, *args, **kwargs)
        finally:
            b.in_core = False
        b.append("yield", [], {"values": []})
    b.block.append(op)


def _parts(r: WindowRanks, first: int, rows: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield offsets and shapes of parts; a part fits a core together with its operand."""
    *middle, last = r.whole.type.shape[1:] or (1,)
    column = math.prod(middle) * r.whole.type.dtype.bits // 8
    step, width = max(1, _ROOM // (column * last)), min(last, max(1, _ROOM // column))
    rank = r.whole.type.rank
    for at in range(first, first + rows, step):
        for c in range(0, last, width):
            shape = [min(step, first + rows - at), *middle, min(width, last - c)]
            yield [at, *[0] * len(middle), c][:rank], shape[:rank]


#: Bytes of a part.
_ROOM = 16 << 10


@_collective
def barrier(b: Build, signal: Array) -> Tensor:
    """Wait until every rank arrives. The signal has a cell per rank, which is reset when all have left."""
    r = _signal(b, signal, "signal")
    others = [p for p in range(r.count) if p != r.rank]
    rest = [0] * (r.whole.type.rank - 1)
    for p in others:
        notify.function(b, signal, p, [r.rank, *rest], 1)
    for p in others:
        wait.function(b, signal, [p, *rest], 1)
    for p in others:
        notify.function(b, signal, r.rank, [p, *rest], -1)
    return signal


def _combined(b: Build, r: WindowRanks, op: ReduceOp, offsets: list[int], shape: list[int]) -> Value:
    """Combine a part of all windows, rank by rank."""
    found = None
    for p in range(r.count):
        part = FUNCTIONS["load"](b, r.whole, _at(b, r, p, offsets), shape)
        found = part if found is None else FUNCTIONS[_COMBINED[op]](b, found, part)
    assert found is not None
    return found


@_collective
def allreduce(
    b: Build, target: Array, signal: Array | None = None, *, op: ReduceOp = ReduceOp.Sum, mode: str = "mesh",
    core_num: Dim | None = None,
) -> Tensor:  # fmt: skip
    """Combine the windows of all ranks and store the result in each."""
    r = _ranks(b, target, "target")
    barrier.function(b, signal)
    for at, shape in _parts(r, 0, r.rows):
        whole = _combined(b, r, op, at, shape)
        barrier.function(b, signal)  # wait until all ranks have read
        FUNCTIONS["store"](b, whole, at, target)
    barrier.function(b, signal)
    return target


@_collective
def reduce_scatter(
    b: Build, target: Array, signal: Array | None = None, *, op: ReduceOp = ReduceOp.Sum
) -> Tensor:
    """Combine row r of all ranks and store it in row r of rank r."""
    r = _ranks(b, target, "target")
    share = r.rows // r.count
    if share * r.count != r.rows:
        b.fail(
            SHAPE,
            "cannot divide the rows equally among ranks",
            "target",
            expected=f"a multiple of {r.count}",
            got=r.rows,
        )
    barrier.function(b, signal)
    for at, shape in _parts(r, r.rank * share, share):
        FUNCTIONS["store"](b, _combined(b, r, op, at, shape), at, target)
    barrier.function(b, signal)
    return target


@_collective
def broadcast(b: Build, target: Array, signal: Array | None = None, *, root: Dim = 0) -> Tensor:
    """Copy the window of the root to each rank."""
    r = _ranks(b, target, "target")
    barrier.function(b, signal)
    for at, shape in _parts(r, 0, r.rows) if index.known(root) != r.rank else ():
        FUNCTIONS["store"](b, FUNCTIONS["load"](b, r.whole, _at(b, r, root, at), shape), at, target)
    barrier.function(b, signal)
    return target


def _a_row_each(b: Build, target: Array) -> WindowRanks:
    r = _ranks(b, target, "target")
    if r.rows != r.count:
        b.fail(SHAPE, "expected one row per rank", "target", expected=f"{r.count} rows", got=r.rows)
    return r


@_collective
def allgather(b: Build, local_data: Array, target: Array, signal: Array | None = None) -> Tensor:
    """Gather a row of each rank in the window of every rank."""
    r = _a_row_each(b, target)
    for p in range(r.count):
        FUNCTIONS["assemble"](b, r.whole, local_data, _at(b, r, p, [r.rank, *_zeros(r)[1:]]))
    barrier.function(b, signal)
    return target


@_collective
def all_to_all(b: Build, input: Array, target: Array, signal: Array | None = None) -> Tensor:
    """Send row p of every rank to rank p, where it becomes the row of the sending rank."""
    r = _a_row_each(b, target)
    rest = _zeros(r)[1:]
    for p in range(r.count):
        part = FUNCTIONS["slice"](b, input, [1, *r.whole.type.shape[1:]], [p, *rest])
        FUNCTIONS["assemble"](b, r.whole, part, _at(b, r, p, [r.rank, *rest]))
    barrier.function(b, signal)
    return target


@_collective
def all_to_all_v(
    b: Build, input: Array, target: Array, signal: Array, send_counts: Array, recv_counts: Array
) -> Tensor:
    """Send block p of the input to rank p, where it becomes the block of the sending rank.

    `send_counts[p, 0]` is the number of valid rows of block p, at most all of them. Rank p receives this
    number in `recv_counts`, at the rank of the sender.
    """
    r, counts = _ranks(b, target, "target"), _ranks(b, recv_counts, "recv_counts")
    block = r.rows // r.count
    if block * r.count != r.rows or list(input.type.shape) != [r.rows, *r.whole.type.shape[1:]]:
        b.fail(SHAPE, "expected a block of rows per rank, in the input and in the window", "input",
               expected=f"[{r.rows // r.count * r.count}, ..] twice", got=input.type)  # fmt: skip
    for p in range(r.count):
        for at, shape in _parts(r, p * block, block):
            part = FUNCTIONS["slice"](b, input, shape, at)
            there = [at[0] - p * block + r.rank * block, *at[1:]]
            FUNCTIONS["assemble"](b, r.whole, part, _at(b, r, p, there, shape))
        count = FUNCTIONS["read"](b, send_counts, [p, 0])
        notify.function(b, recv_counts, p, [counts.rank, 0], b.scalar("min", count, block), op=NotifyOp.Set)
    barrier.function(b, signal)
    return target
