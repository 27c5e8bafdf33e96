"""Instructions from buffer to buffer: a transpose, sorts of 32 elements, and the merge of sorted lists.

Records, the order of values and the merge are those of the tile instructions, see `sort`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np

from ... import elements
from ...elements import Array
from ...memory import array_of
from ...registers import Register
from ..instr import Instr
from ..registry import executor
from ..sort import BLOCK, RECORD, block_order, descending, merged, merged_groups, merged_lists, rank, records
from .memory import aligned

_SIDE = 16  # rows and columns of a transposed block


@executor("block transposition")
def transpose(i: Instr) -> None:
    config = i.args["config"]
    i.require(config == 0, f"expects config to be 0, the only form specified, got {config}")
    for name in ("dest", "src"):
        aligned(i, i.args[name], 32)
    i.store_raw("dest", i.raw("src", (_SIDE, _SIDE)).T)


# -- sorts -------------------------------------------------------------------------------------------------


def _read(i: Instr, *parts: tuple[str, int], cols: int = BLOCK) -> tuple[Array, Array]:
    """Return the rows of operands of one type, one after another: as elements to be moved, and as the bit
    patterns of the program."""
    found = i.raw(parts[0][0], (parts[0][1], cols)) if len(parts) == 1 else i.joined(parts, cols)
    if i.exact:
        return found, found.view(elements.code_dtype(i.dtype(parts[0][0])))
    return found, np.concatenate([i.bits(name, (rows, cols)) for name, rows in parts])


def _scores(i: Instr, name: str, found: Array, codes: Array) -> Array:
    """Return the sort keys of elements from `_read`: the numbers of the program."""
    if found.dtype.char == "f":
        return found
    return found.astype(np.float32) if found.dtype.char == "e" else elements.decode(i.dtype(name), codes)


@lru_cache(maxsize=16)
def _places(groups: int) -> Array:
    """Return the positions of elements in their group."""
    return np.tile(np.arange(BLOCK, dtype=np.uint32), (groups, 1))


def _order(i: Instr, found: Array, codes: Array) -> Array:
    """Return the positions of groups of elements in descending order; the sort is stable."""
    scores = _scores(i, "src", found, codes)
    if len(scores) == 1 and scores.dtype.kind == "f":
        return descending(scores).argsort(kind="stable")
    return block_order(rank(scores), _places(len(scores)))


@executor("sort values")
def sort_values(i: Instr) -> None:
    found, codes = _read(i, ("src", max(i.args["config"] % 256, 1)))
    i.store_raw("dest", found.take(_order(i, found, codes)))


@executor("sort records")
def sort_records(i: Instr) -> None:
    groups, target = i.args["repeat_times"], i.dtype("dest")
    if groups < 1:
        i.require(False, f"expects repeat_times to be at least 1, got {groups}")
    found, codes = _read(i, ("src", groups))
    order = _order(i, found, codes)
    if i.exact:
        made = np.empty((groups, BLOCK, 2), np.uint32)
        made[..., 0] = codes
        made[..., 1] = i.bits("indices", (groups, BLOCK))
        i.store_raw("dest", made.view(np.uint64).take(order).view(array_of(target)))
        return
    # records of integers have the bits of their scores
    scores = found if target == i.dtype("src") else codes.astype(np.uint32)
    index = i.bits("indices", (groups, BLOCK)).take(order)
    i.store_raw("dest", records(scores.take(order), index, target))


# -- merge -------------------------------------------------------------------------------------------------

_SOURCES = ("src0", "src1", "src2", "src3")
_LISTS = {0b0011: 2, 0b0111: 3, 0b1111: 4}


def status(i: Instr) -> Register:
    """Return VMS4_SR, which has the number of records that the last merge with an early stop took from each
    list."""
    return i.core.special_register("VMS4_SR", "u16", 4)


@lru_cache(maxsize=256)
def _lengths(count: int, lists: int) -> list[int]:
    return [count >> 16 * k & 0xFFFF for k in range(lists)]


@executor("merge lists")
def merge(i: Instr) -> None:
    config = i.args["config"]
    repeat, valid, exhausted = config & 0xFF, config >> 8 & 0xF, bool(config >> 12 & 1)
    if repeat < 1:
        i.require(False, f"expects config to repeat the merge at least once, got {config:#x}")
    if valid not in _LISTS:
        i.require(False, f"expects config to name two, three or four lists, got {config:#x}")
    lengths = _lengths(i.args["count"], _LISTS[valid])
    each = RECORD // array_of(i.dtype("dest")).itemsize
    if repeat > 1:
        _repeated(i, repeat, lengths, exhausted, each)
        return
    found, codes = _read(i, *zip(_SOURCES, lengths, strict=False), cols=each)
    scores = _scores(i, "src0", found[:, 0], codes[:, 0])
    if exhausted:
        order, counts = merged(np.split(rank(scores), list(accumulate(lengths))[:-1]), True)
    else:
        order, counts = merged_lists(scores, lengths), None
    if order.size and i.exact:
        i.store_raw("dest", found.view(np.uint64).take(order, 0).view(found.dtype))
    elif order.size:
        i.store_raw("dest", found.take(order, 0))
    if counts is not None:
        i.store_raw(status(i), counts.astype(np.uint16)[None])


def _repeated(i: Instr, repeat: int, lengths: list[int], exhausted: bool, each: int) -> None:
    """Merge groups of four adjacent lists, one group after another."""
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
        found, codes = _read(i, ("src0", repeat * 4 * lengths[0]), cols=each)
        order = merged_groups(rank(_scores(i, "src0", found[:, 0], codes[:, 0])).reshape(repeat, 4, -1))
        i.store_raw("dest", found[order])


@executor("merge status")
def merge_status(i: Instr) -> tuple[int, ...]:
    """Return the unsigned counts as i16 with the same bits."""
    return tuple(i.raw(status(i), (1, 4))[0].view(np.int16).tolist())
