"""Rows that go from buffer to buffer: a transpose, sorts of 32 elements, and the merge of sorted lists.

Records, the order of values and the merge are those of the tile instructions, see `sort`.
"""

from __future__ import annotations

import numpy as np

from ... import elements
from ...elements import Array
from ...memory import Pointer
from ...registers import Register
from ..instr import Instr
from ..registry import executor
from ..sort import BLOCK, RECORD, block_order, merged, merged_groups, rank, records
from .memory import aligned

_SIDE = 16  # rows and columns of a transposed block


@executor("vtranspose")
def transpose(i: Instr) -> None:
    config = i.args["config"]
    i.require(config == 0, f"expects config to be 0, the only form specified, got {config}")
    for name in ("dest", "src"):
        aligned(i, i.args[name], 32)
    i.store_raw("dest", i.raw("src", (_SIDE, _SIDE)).T)


# -- sorts -------------------------------------------------------------------------------------------------


def _keys(i: Instr, place: str | Pointer, shape: tuple[int, int]) -> Array:
    """Ranks of elements, by the values the program has."""
    dtype = i.args[place].dtype if isinstance(place, str) else place.dtype
    return rank(elements.decode(dtype, i.bits(place, shape)))


def _order(i: Instr, groups: int) -> Array:
    """Positions of groups of elements in descending order; equal ones stay as they were."""
    ranks = _keys(i, "src", (groups, BLOCK))
    return block_order(ranks, np.broadcast_to(np.arange(BLOCK, dtype=np.uint32), ranks.shape))


@executor("vsort32")
def sort_values(i: Instr) -> None:
    groups = max(i.args["config"] % 256, 1)
    i.store_raw("dest", np.take(i.raw("src", (groups, BLOCK)), _order(i, groups)))


@executor("vbitsort")
def sort_records(i: Instr) -> None:
    groups, target = i.args["repeat_times"], i.dtype("dest")
    i.require(groups >= 1, f"expects repeat_times to be at least 1, got {groups}")
    shape = (groups, BLOCK)
    order = _order(i, groups)
    # records of integers hold the bits of their scores
    scores = i.raw("src", shape) if target == i.dtype("src") else i.bits("src", shape).astype(np.uint32)
    index = np.take(i.bits("indices", shape), order)
    i.store_raw("dest", records(np.take(scores, order), index, target))


# -- merge -------------------------------------------------------------------------------------------------

_SOURCES = ("src0", "src1", "src2", "src3")
_LISTS = {0b0011: 2, 0b0111: 3, 0b1111: 4}


def status(i: Instr) -> Register:
    """VMS4_SR: how many records the last merge that stopped early took from each list."""
    return i.core.special_register("VMS4_SR", "u16", 4)


@executor("vmrgsort4")
def merge(i: Instr) -> None:
    config = i.args["config"]
    repeat, valid, exhausted = config & 0xFF, config >> 8 & 0xF, bool(config >> 12 & 1)
    i.require(repeat >= 1, f"expects config to repeat the merge at least once, got {config:#x}")
    i.require(valid in _LISTS, f"expects config to name two, three or four lists, got {config:#x}")
    lengths = [i.args["count"] >> 16 * k & 0xFFFF for k in range(_LISTS[valid])]
    names = _SOURCES[: len(lengths)]
    each = RECORD * 8 // elements.DTYPES[i.dtype("dest")].bits
    if repeat > 1:
        _repeated(i, repeat, lengths, exhausted, each)
        return
    lists = [i.raw(n, (length, each)) for n, length in zip(names, lengths, strict=True)]
    ranks = [_keys(i, n, (length, each))[:, 0] for n, length in zip(names, lengths, strict=True)]
    order, counts = merged(ranks, exhausted)
    if order.size:
        i.store_raw("dest", np.concatenate(lists)[order])
    if exhausted:
        i.store_raw(status(i), counts.astype(np.uint16)[None])


def _repeated(i: Instr, repeat: int, lengths: list[int], exhausted: bool, each: int) -> None:
    """Merge four lists after four lists, which lie one behind the other."""
    i.require(
        len(lengths) == 4 and not exhausted,
        f"expects repeated merges to use four lists and no early stop, got {i.args['config']:#x}",
    )
    i.require(len(set(lengths)) == 1, f"expects repeated merges to use lists of equal length, got {lengths}")
    starts = [i.args[n].offset for n in _SOURCES]
    expected = [starts[0] + k * lengths[0] * RECORD for k in range(4)]
    i.require(
        starts == expected, f"expects repeated merges to use adjacent lists at {expected}, got {starts}"
    )
    if lengths[0]:
        shape = (repeat * 4 * lengths[0], each)
        order = merged_groups(_keys(i, "src0", shape)[:, 0].reshape(repeat, 4, -1))
        i.store_raw("dest", i.raw("src0", shape)[order])


@executor("get_vms4_sr")
def merge_status(i: Instr) -> tuple[int, ...]:
    """Unsigned counts in the signed form of i16."""
    return tuple(i.raw(status(i), (1, 4))[0].view(np.int16).tolist())
