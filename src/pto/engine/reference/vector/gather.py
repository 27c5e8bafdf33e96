"""Loads and stores with an address for each lane or block: gather, scatter, strided blocks.

Requests that are off access no memory: their address is not checked, and a load gives 0 for them.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_

import numpy as np

from ....isa.dtypes import DTYPES
from ...elements import Array
from ...memory import Pointer
from ...registers import Register
from ..instr import Instr
from ..registry import executor
from .lanes import active, bits, full, image, put_raw, raw, width
from .memory import BLOCK, PointerGrid, aligned, inside, post_update

#: The number of blocks in a register.
BLOCKS = 8
_EVERY = bytes([1] * BLOCKS)


def requests(i: Instr, count: int, size: int) -> Array:
    """Return which of `count` requests are on: from a mask with lanes of `size` bytes, or a number of first
    requests."""
    mask = i.args["mask"]
    if isinstance(mask, Register):
        on = active(i, "mask", size)
        return on if on.size == count else on[:count]
    first = int(mask)
    i.require(0 <= first <= count, f"expects a number of active requests in 0..{count}, got {first}")
    return np.arange(count) < first


def _based(i: Instr, base: Pointer, align: int, on: Array) -> None:
    """Stop if a base is not aligned, or if a request is on and the base lies before its buffer. Accesses
    after the end of the buffer are checked when they are made.
    """
    aligned(i, base, align)
    if base.offset < 0 and np.count_nonzero(on):
        inside(i, base)


def _offsets(i: Instr) -> Array:
    """Return the offsets, as unsigned numbers."""
    return bits(i, "offsets").astype(np.intp)


def _in_tile(i: Instr, base: Pointer, at: Array, on: Array, size: int, count: int = 0) -> None:
    """Report offsets, in units of `size` bytes, that leave the tile of the pointer."""
    home = base.home
    if home is None or i.port.plain:
        return
    first = base.offset + at * size
    inside = ~on | ((first >= home.low) & (first + (count or size) <= home.high))
    i.indexed("offsets", at, inside, home.tile, f"which has {(home.high - home.low) // size} from its start")


def _chosen(found: Array, on: Array) -> Array:
    """Return the items that are on."""
    return found if full(on) else found[on]


def _filled(lanes: int, on: Array, found: Array) -> Array:
    """Return the lanes of a register with the found values in those that are `on`, else 0."""
    if found.size == lanes:
        return found
    out = np.zeros(lanes, found.dtype)
    out[: on.size][on] = found
    return out


# -- elements ----------------------------------------------------------------------------------------------


def _gather(i: Instr, on: Array) -> None:
    source, r = i.args["source"], i.args["r"]
    _based(i, source, DTYPES[source.dtype].bits // 8, on)
    at = _offsets(i)[: on.size]
    _in_tile(i, source, at, on, DTYPES[source.dtype].bits // 8)
    found = i.raw_at(source, _chosen(at, on))
    if source.dtype != r.dtype:  # bytes, widened without a sign
        found = found.view(np.uint8).astype(np.uint16)
    put_raw(i, "r", _filled(r.lanes, on, found))


@executor("gather lanes")
def vgather2(i: Instr) -> None:
    _gather(i, requests(i, i.args["r"].lanes, width(i, "r")))


@executor("gather some lanes")
def vgather2_bc(i: Instr) -> None:
    """Gather with 64 offsets; further lanes of narrower elements become 0."""
    _gather(i, requests(i, min(i.args["offsets"].lanes, i.args["r"].lanes), width(i, "r")))


@executor("scatter lanes")
def vscatter(i: Instr) -> None:
    dest, size = i.args["dest"], width(i, "value")
    on = requests(i, i.args["offsets"].lanes, max(size, 2))
    _based(i, dest, size, on)
    _in_tile(i, dest, _offsets(i), on, size)
    at, found = _chosen(_offsets(i), on), raw(i, "value")
    if size == 1:  # requests take every other lane
        found = found[::2]
    found = _chosen(found, on)
    order = np.sort(at)
    if np.count_nonzero(order[1:] == order[:-1]):
        at, first = np.unique(at, return_index=True)
        i.require(i.isa == "a5", _repeated(_offsets(i), on))
        found = found[first]
    i.store_raw_at(dest, at, found)


def _repeated(offsets: Array, on: Array) -> str:
    """Return the message about two lanes with the same offset."""
    seen: dict[int, int] = {}
    for lane in np.flatnonzero(on):
        at = int(offsets[lane])
        if at in seen:
            return f"expects offsets that differ, got {at} in lanes {seen[at]} and {lane}"
        seen[at] = int(lane)
    raise AssertionError(offsets)


# -- blocks ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _block(size: int) -> Array:
    """Return the element offsets of a block."""
    return np.arange(BLOCK // size, dtype=np.intp)


@executor("gather lane blocks")
def vgatherb(i: Instr) -> None:
    source, r, size = i.args["source"], i.args["r"], width(i, "r")
    on = requests(i, BLOCKS, 4)
    _based(i, source, BLOCK, on)
    starts = bits(i, "offsets")[:BLOCKS].astype(np.intp)
    _in_tile(i, source, starts, on, 1, BLOCK)
    every = on.tobytes() == _EVERY
    if not every:
        starts = starts[on]
    if reduce(or_, starts.tolist(), 0) % BLOCK:
        odd = int(starts[starts % BLOCK != 0][0])
        i.require(False, f"expects offsets that are multiples of {BLOCK} bytes, got {odd}")
    found = i.blocks_at(source, starts, BLOCK)
    put_raw(i, "r", found if every else _filled(r.lanes, np.repeat(on, BLOCK // size), found))


def _control(i: Instr) -> tuple[int, int]:
    """Return the distance of blocks and of repeats, in bytes."""
    ctl = int(i.args["ctl"])
    if i.has("repeat_stride"):
        return (ctl & 0xFFFF) * BLOCK, (int(i.args["repeat_stride"]) & 0xFFFF) * BLOCK
    return (ctl >> 16 & 0xFFFF) * BLOCK, (ctl & 0xFFFF) * BLOCK


@lru_cache(maxsize=256)
def _strided(step: int, size: int) -> Array:
    """Return the element offsets of blocks that are `step` bytes apart."""
    return np.arange(BLOCKS, dtype=np.intp)[:, None] * (step // size) + _block(size)


@executor("load blocks")
def vsldb(i: Instr) -> Pointer | None:
    source, size = i.args["source"], width(i, "r")
    step, repeat = _control(i)
    returns = post_update(i, 1)
    start = source if returns else source.at(source.offset + repeat)
    on = image(i, "mask")[::BLOCK] != 0
    _based(i, source, BLOCK, on)
    if np.count_nonzero(on) == BLOCKS:
        found = i.raw(PointerGrid(start, start.offset, start.dtype, step // size, 1), (BLOCKS, BLOCK // size))
        put_raw(i, "r", found.reshape(-1))
    else:
        found = i.raw_at(start, _strided(step, size)[on]).reshape(-1)
        put_raw(i, "r", _filled(i.args["r"].lanes, np.repeat(on, BLOCK // size), found))
    return source.at(source.offset + repeat) if returns else None


@executor("store blocks")
def vsstb(i: Instr) -> Pointer | None:
    dest, size = i.args["dest"], width(i, "value")
    step, repeat = _control(i)
    on = image(i, "mask")[::BLOCK] != 0
    _based(i, dest, BLOCK, on)
    found = raw(i, "value").reshape(BLOCKS, -1)
    further = dest.at(dest.offset + repeat)
    returns = post_update(i, 0)
    i.store_raw_at(dest if returns else further, _strided(step, size)[on], found[on])
    return further if returns else None
