"""Handlers of instructions that make or change descriptors, and of queries. No data moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.core import Operation, Value
from ..ir.facts import left_layout
from ..ir.types import PtrType, TileBufType, ViewType
from ..isa.machine import LOCATION_OF
from ..symbolic.terms import Int, Truth, both, either, eq, is_int, is_integer, least, mod
from .context import WalkedCore
from .findings import ACCESSES
from .state import State
from .values import Opaque, PointerTerm, StorageTerm, TileTerm, ViewTerm

Handler = Callable[[WalkedCore, Operation, State], None]
HANDLERS: dict[str, Handler] = {}


def handler(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys((f"pto.{n}" if "." not in n else n for n in names), function))
        return function

    return register


def _numbers(s: State, values: list[Value]) -> tuple[Any, ...] | None:
    """Return values as numbers; None if one of them is not followed."""
    found = tuple(s.env[v] for v in values)
    return found if all(map(is_integer, found)) else None


# -- queries -----------------------------------------------------------------------------------------------


_OF_LAUNCH: dict[str, Callable[[WalkedCore], Int]] = {
    "get_block_idx": lambda walk: walk.context.block,
    "get_block_num": lambda walk: walk.context.blocks,
    "get_subblock_idx": lambda walk: walk.context.subblock if walk.kind == "vector" else 0,
    "get_subblock_num": lambda walk: walk.context.subblocks,
}


@handler(*_OF_LAUNCH)
def _of_launch(walk: WalkedCore, op: Operation, s: State) -> None:
    assert op.row is not None
    s.env[op.result] = _OF_LAUNCH[op.row.name](walk)


@handler("get_tensor_view_dim", "memref.dim")
def _dim(walk: WalkedCore, op: Operation, s: State) -> None:
    _fact_of_view(walk, op, s, lambda view, n: view.sizes[n])


@handler("get_tensor_view_stride")
def _stride(walk: WalkedCore, op: Operation, s: State) -> None:
    _fact_of_view(walk, op, s, lambda view, n: view.strides[n])


def _fact_of_view(walk: WalkedCore, op: Operation, s: State, get: Callable[[ViewTerm, int], Int]) -> None:
    view, n = (s.env[v] for v in op.operands)
    if isinstance(view, ViewTerm) and is_int(n) and 0 <= n < len(view.sizes):
        s.env[op.result] = get(view, n)
    else:
        walk.skip(op, "the extent of the view is not followed", ("bounds",), s)


# -- pointers and views ------------------------------------------------------------------------------------


@handler("addptr")
def _addptr(walk: WalkedCore, op: Operation, s: State) -> None:
    pointer, offset = (s.env[v] for v in op.operands)
    if isinstance(pointer, PointerTerm) and is_integer(offset) and pointer.bits % 8 == 0:
        s.env[op.result] = replace(pointer, offset=pointer.offset + offset * (pointer.bits // 8))
    else:
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a pointer that is not followed")


@handler("castptr")
def _castptr(walk: WalkedCore, op: Operation, s: State) -> None:
    pointer, type = s.env[op.operands[0]], op.result.type
    bits = type.elem.bits if isinstance(type, PtrType) else None
    if isinstance(pointer, PointerTerm) and bits:
        s.env[op.result] = replace(pointer, bits=bits)
    elif isinstance(type, PtrType) and type.space != "gm" and is_integer(pointer) and bits:
        s.env[op.result] = PointerTerm(LOCATION_OF[type.space], pointer, bits)  # type: ignore[arg-type]
    else:
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a pointer that is not followed")


@handler("tile_buf_addr")
def _tile_address(walk: WalkedCore, op: Operation, s: State) -> None:
    tile, type = s.env[op.operands[0]], op.result.type
    s.env[op.result] = Opaque(op, f"%{op.result.name} is a pointer that is not followed")
    if isinstance(tile, TileTerm) and tile.storage is not None and tile.storage.low is not None:
        if isinstance(type, PtrType) and type.elem.bits and (tile.at, tile.shape) == ((0, 0), tile.pitch):
            s.env[op.result] = PointerTerm(str(tile.root), tile.storage.low, type.elem.bits, tile.storage)


@handler("make_tensor_view")
def _make_view(walk: WalkedCore, op: Operation, s: State) -> None:
    pointer, type = s.env[op.operands[0]], op.result.type
    dims, strides = _numbers(s, op.group("shape")), _numbers(s, op.group("strides"))
    assert isinstance(type, ViewType)
    root = pointer.root if isinstance(pointer, PointerTerm) else None
    if not isinstance(root, Value) or dims is None or strides is None or not type.bits:
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a view that is not followed")
        return
    walk.claim(op, s)(pointer.offset >= 0, "the view starts before its array")
    holds = walk.holds(s)
    rising = all(holds(n >= 0) for n in strides)
    nested = _is_nested(dims, strides, holds) or _is_nested(dims[::-1], strides[::-1], holds)
    layout = str(op.attr("layout") or "").upper()
    if not rising:
        walk.skip(op, "a stride may be negative", ("bounds",), s)
    s.env[op.result] = walk.context.whole(
        root, dims, strides, type.bits, pointer.offset, layout, nested, rising
    )


def _is_nested(dims: tuple[Int, ...], strides: tuple[Int, ...], holds: Callable[[Truth], bool]) -> bool:
    """Return whether different indices are different elements, because each stride is larger than all inner
    dimensions."""
    inner: Int = 1
    for d, stride in zip(reversed(dims), reversed(strides), strict=True):
        if is_int(d) and d == 1:
            continue
        if not holds(stride >= inner):
            return False
        inner = stride * d
    return True


@handler("partition_view")
def _partition(walk: WalkedCore, op: Operation, s: State) -> None:
    view = s.env[op.operands[0]]
    offsets, sizes = _numbers(s, op.group("offsets")), _numbers(s, op.group("sizes"))
    if not isinstance(view, ViewTerm) or offsets is None or sizes is None:
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a window that is not followed")
        return
    claim = walk.claim(op, s)
    for d, (offset, size, extent) in enumerate(zip(offsets, sizes, view.sizes, strict=True)):
        inside = both(offset >= 0, offset + size <= extent)
        claim(either(eq(size, 0), inside), f"dimension {d} of the window leaves %{op.operands[0].name}")
    if view.bits % 8:
        at = sum((o * n for o, n in zip(offsets, view.strides, strict=True)), 0)
        claim(eq(mod(at * view.bits, 8), 0), "the window starts in the middle of a byte")
    layout = str(op.attr("layout") or "").upper() or view.layout
    moved = tuple(a + b for a, b in zip(view.offsets, offsets, strict=True))
    s.env[op.result] = replace(view, offsets=moved, sizes=sizes, layout=layout)


# -- tiles -------------------------------------------------------------------------------------------------


def _valid(walk: WalkedCore, op: Operation, s: State, type: TileBufType) -> tuple[Int, Int] | None:
    found: list[Int] = []
    for known, name, whole in ((type.v_row, "valid_row", type.rows), (type.v_col, "valid_col", type.cols)):
        given = walk.value(op, s, name) if op.row is not None and name in op.row.operand_index else None
        value = known if known is not None else whole if given is None else given
        if not is_integer(value):
            return None
        found.append(value)
    return found[0], found[1]


def _fits(walk: WalkedCore, op: Operation, s: State, valid: tuple[Int, Int], shape: tuple[int, int]) -> None:
    (rows, cols), (r, c) = valid, shape
    inside = both(rows >= 0, rows <= r, cols >= 0, cols <= c)
    walk.claim(op, s)(inside, f"the valid region does not fit a {r} x {c} tile")


def _tile(
    walk: WalkedCore, op: Operation, s: State, type: TileBufType, root: object, low: Int | None,
    valid: tuple[Int, Int] | None, storage: StorageTerm | None = None,
) -> None:  # fmt: skip
    result = op.result
    if valid is None:
        s.env[result] = Opaque(op, f"the valid region of %{result.name} is not followed")
        return
    _fits(walk, op, s, valid, type.shape)
    layout = left_layout(type, walk.profile, "layout") or "" if type.loc == "left" else type.layout
    ident = f"{result.name} {id(op)}"
    s.env[result] = TileTerm(ident, type, layout, root, low, type.shape, (0, 0), type.shape, valid, storage)


@handler("alloc_tile")
def _alloc(walk: WalkedCore, op: Operation, s: State) -> None:
    type = op.result.type
    if not isinstance(type, TileBufType):
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a tile that is not followed")
        return
    given = op.get("addr")
    if given is None:  # its own storage, which is the same in each execution
        _tile(walk, op, s, type, ("home", id(op)), 0, _valid(walk, op, s, type))
        return
    low = s.env[given]
    if not is_integer(low):
        s.env[op.result] = Opaque(op, f"the address of %{op.result.name} is not followed")
        return
    _placed(walk, op, s, type, low)
    valid = _valid(walk, op, s, type)
    _tile(walk, op, s, type, type.loc, low, valid, _storage(op, type, low, valid or (0, 0)))


def _storage(op: Operation, type: TileBufType, low: Int, valid: tuple[Int, Int]) -> StorageTerm:
    kind = (str(type.dtype), type.shape, type.layout, *valid)
    return StorageTerm(op, type.loc, low, type.size, kind)


def _placed(walk: WalkedCore, op: Operation, s: State, type: TileBufType, low: Int) -> None:
    profile = walk.profile
    room = profile.capacity[type.loc]
    inside = both(low >= 0, low + type.size <= room, low < room)
    walk.claim(op, s)(inside, f"the tile leaves its buffer of {room} bytes")
    walk.claim(op, s)(eq(mod(low, profile.align), 0), f"the address is not a multiple of {profile.align}")


@handler("declare_tile")
def _declare(walk: WalkedCore, op: Operation, s: State) -> None:
    """Declare a tile without an address. It needs one before any access."""
    type = op.result.type
    if isinstance(type, TileBufType):
        _tile(walk, op, s, type, "nowhere", None, (type.v_row or type.rows, type.v_col or type.cols))


@handler("tassign")
def _assign(walk: WalkedCore, op: Operation, s: State) -> None:
    """Move a tile, and all names of its descriptor, to an address."""
    value, low = op.operands[0], s.env[op.operands[1]]
    tile, type = s.env[value], value.type
    if not isinstance(type, TileBufType) or not is_integer(low):
        walk.skip(op, "its tile or its address is not followed", ACCESSES, s)
        s.env[value] = Opaque(op, f"the address of %{value.name} is not followed")
        return
    _placed(walk, op, s, type, low)
    if isinstance(tile, TileTerm):
        storage = _storage(op, type, low, tile.valid)
        for v, x in s.env.items():
            if isinstance(x, TileTerm) and x.ident == tile.ident:
                s.env[v] = replace(x, root=type.loc, low=low, storage=storage)
    else:
        s.env[value] = Opaque(op, f"the valid region of %{value.name} is not followed")
    for r in op.results:
        s.env[r] = s.env[value]


@handler("treshape", "bitcast")
def _reshape(walk: WalkedCore, op: Operation, s: State) -> None:
    source, type = s.env[op.operands[0]], op.result.type
    whole = isinstance(source, TileTerm) and source.at == (0, 0) and source.shape == source.pitch
    if not whole or not isinstance(source, TileTerm) or not isinstance(type, TileBufType):
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a tile that is not followed")
        return
    v_row, v_col = source.valid if source.shape == type.shape else type.shape
    valid = (v_row if type.v_row is None else type.v_row, v_col if type.v_col is None else type.v_col)
    _tile(walk, op, s, type, source.root, source.low, valid, source.storage)


@handler("subview", "subset")
def _subview(walk: WalkedCore, op: Operation, s: State) -> None:
    source, type = s.env[op.operands[0]], op.result.type
    offsets = _numbers(s, op.group("offsets"))
    if not isinstance(source, TileTerm) or offsets is None or not isinstance(type, TileBufType):
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a window that is not followed")
        return
    (r, c), (rows, cols) = offsets, (int(n) for n in op.attr("sizes"))
    valid = _valid(walk, op, s, type.replace(rows=rows, cols=cols))
    assert op.row is not None
    if op.row.name == "subset" and valid is not None:
        given = [op.get(n) if n in op.row.operand_index else None for n in ("valid_row", "valid_col")]
        fixed = (type.v_row, type.v_col)
        found: list[Int] = list(valid)
        for d, (start, size) in enumerate(((r, rows), (c, cols))):
            if given[d] is None and fixed[d] is None:
                of = source.valid[d]
                if not walk.holds(s)(both(of > 0, start >= 0, start < of)):
                    s.env[op.result] = Opaque(op, f"the valid region of %{op.result.name} is not followed")
                    return
                found[d] = least(size, of - start)
        valid = found[0], found[1]
    if valid is None:
        s.env[op.result] = Opaque(op, f"the valid region of %{op.result.name} is not followed")
        return
    _fits(walk, op, s, valid, (rows, cols))
    reach = (rows, cols) if walk.profile.behaviour.whole_windows else valid
    inside = both(r >= 0, c >= 0, r + reach[0] <= source.shape[0], c + reach[1] <= source.shape[1])
    walk.claim(op, s)(inside, f"the window leaves %{op.operands[0].name}")
    if not walk.holds(s)(both(r + rows <= source.shape[0], c + cols <= source.shape[1])):
        s.env[op.result] = Opaque(op, f"%{op.result.name} is a window at an edge")
        return
    at = (source.at[0] + r, source.at[1] + c)
    ident = f"{op.result.name} {id(op)}"
    s.env[op.result] = replace(source, ident=ident, type=type, at=at, shape=(rows, cols), valid=valid)


@handler("set_validshape")
def _set_valid(walk: WalkedCore, op: Operation, s: State) -> None:
    tile = s.env[op.operands[0]]
    valid = _numbers(s, op.operands[1:3])
    if not isinstance(tile, TileTerm) or valid is None:
        walk.skip(op, "its tile is not followed", ACCESSES, s)
        return
    _fits(walk, op, s, (valid[0], valid[1]), tile.shape)
    for v, x in s.env.items():
        if isinstance(x, TileTerm) and x.ident == tile.ident:
            s.env[v] = replace(x, valid=(valid[0], valid[1]))
