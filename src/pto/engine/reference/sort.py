"""Sorting by value, descending, with an index beside every value.

A record has 8 bytes: the value, two zero bytes if it has 16 bits, and the index as u32. The order is always
that of the program's values, also in a shadow run. The ISA leaves the order of NaN open; here it comes last.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .. import elements
from ..elements import Array
from ..memory import array_of
from .instr import Instr
from .registry import executor

#: The number of values that are sorted together.
BLOCK = 32
#: The size of a record in bytes.
RECORD = 8
#: NumPy takes constants faster as arrays.
_ZERO, _INFINITY = np.array(0, np.float32), np.array(np.inf, np.float32)


#: The negative NaN, which comes after all values.
_LOWEST = {"f32": 0xFFC00000, "f16": 0xFE00}


@executor("sort blocks")
def sort_blocks(i: Instr) -> None:
    """Sort every block of 32 columns; records of equal value are ordered by index."""
    rows, cols = i.valid("src")
    if not rows or not cols:
        return
    one_row = i.valid("idx")[0] == 1  # one row of indices serves all rows
    index = np.broadcast_to(i.bits("idx", (1 if one_row else rows, cols)), (rows, cols))
    keys = elements.decode(i.dtype("src"), i.bits("src"))
    order = block_order(rank(keys), index)
    made = records(np.take(i.raw("src"), order), np.take(index, order), i.dtype("dst"))
    # hardware fills the last block with records that come last in the order
    if i.isa != "cpu" and cols % BLOCK:
        lowest = np.full((rows, BLOCK - cols % BLOCK), _LOWEST[i.dtype("src")], f"u{i.tile('src').bits // 8}")
        rest = records(lowest.view(made.dtype), np.zeros(lowest.shape, np.uint32), i.dtype("dst"))
        made = np.concatenate([made, rest], axis=1)
    room = i.tile("dst").cols  # further columns are dropped
    i.store_raw("dst", made[:, :room])


def records(values: Array, index: Array, dtype: str) -> Array:
    """Combine rows of values and of u32 indices to rows of records, as elements of a type."""
    target = array_of(dtype)
    each = RECORD // target.itemsize
    made = np.zeros((*values.shape, each), values.dtype)
    made[..., 0] = values
    made[..., each // 2 :] = index.view(target).reshape(*values.shape, each // 2)
    return made.reshape(len(values), -1)


def block_order(rank: Array, index: Array) -> Array:
    """Return the positions of the records (rank, index) of a matrix in ascending order within every block;
    the sort is stable."""
    return elements.loops().sort_blocks(rank, np.ascontiguousarray(index))


@executor("merge")
def merge(i: Instr) -> None:
    """Merge the blocks of one list four by four, or two to four lists."""
    if i.has("src1"):
        _merge_lists(i)
    else:
        _merge_blocks(i)


def _merge_blocks(i: Instr) -> None:
    length, each = int(i.arg("blockLen")), RECORD // array_of(i.dtype("src")).itemsize
    if length <= 0 or length % each:
        return  # a no-op, as in the C++ simulator
    groups = i.valid("dst")[1] // (4 * length)
    size = groups * 4 * length
    if not size or not i.valid("dst")[0]:
        return
    i.require(size <= i.tile("src").cols, "expects src to hold the groups that dst has room for")
    keys = elements.decode(i.dtype("src"), i.bits("src", (1, size)))[0, ::each]
    order = merged_groups(rank(keys).reshape(groups, 4, -1))
    found = i.raw("src", (1, size)).reshape(-1, each)
    i.store_raw("dst", found[order].reshape(1, -1))


def merged_groups(ranks: Array) -> Array:
    """Return the positions, in merged order, of the records of groups of four lists of equal length."""
    groups, _, length = ranks.shape
    order = np.argsort(_ready(ranks).reshape(groups, -1), axis=1, kind="stable")
    order += np.arange(groups)[:, None] * (4 * length)
    return order.ravel()


def _merge_lists(i: Instr) -> None:
    names = [n for n in ("src", "src1", "src2", "src3") if i.has(n)]
    each = RECORD // array_of(i.dtype("src")).itemsize
    sizes = [i.valid(n)[1] // each if i.valid(n)[0] else 0 for n in names]
    lists = [i.raw(n, (1, size * each)).reshape(size, each) for n, size in zip(names, sizes, strict=True)]
    ranks = [
        rank(elements.decode(i.dtype(n), i.bits(n, (1, size * each)))[0, ::each])
        for n, size in zip(names, sizes, strict=True)
    ]
    room = i.valid("dst")[1] // each if i.valid("dst")[0] else 0
    order, counts = merged(ranks, i.attr("exhausted"), room)
    if order.size:
        i.store_raw("dst", np.concatenate(lists)[order].reshape(1, -1))
    taken = i.arg("excuted")
    if isinstance(taken, np.ndarray):  # the register that receives the counts
        taken[:4] = counts


def merged(ranks: list[Array], exhausted: bool, room: int | None = None) -> tuple[Array, Array]:
    """Return the positions of the records in merged order, counted over all lists, and the number of records
    from each of four lists."""
    order = np.argsort(np.concatenate([_ready(r) for r in ranks]), kind="stable")
    owner = np.repeat(np.arange(len(ranks)), [len(r) for r in ranks])[order]
    count = len(order) if room is None else min(len(order), room)
    if exhausted:
        # Stop after the last record of the list that ends first; lists that are empty take no part.
        ends = [int(np.flatnonzero(owner == k)[-1]) + 1 for k, r in enumerate(ranks) if len(r)]
        count = min([count, *ends])
    return order[:count], np.bincount(owner[:count], minlength=4)


def merged_lists(values: Array, lengths: list[int]) -> Array:
    """Return the positions, in merged order, of the records of adjacent lists of floats."""
    keys = descending(values)
    if lengths.count(lengths[0]) == len(lengths):
        ready = _ready(keys.reshape(len(lengths), -1)).reshape(-1)
    else:
        ready = np.concatenate([_ready(part) for part in np.split(keys, list(accumulate(lengths))[:-1])])
    return ready.argsort(kind="stable")


def rank(values: Array) -> Array:
    """Return uint32 numbers that ascend as values descend; zeros are equal, NaN counts as -inf."""
    if values.dtype.kind != "f":
        return (values.astype(np.int32) ^ 0x7FFFFFFF).view(np.uint32)
    bits = descending(values).view(np.int32)
    flips = bits >> 31
    flips |= np.int32(-(2**31))
    flips ^= bits
    return flips.view(np.uint32)


def descending(values: Array) -> Array:
    """Return floats that ascend as values descend; zeros are equal, NaN counts as -inf."""
    keys = np.subtract(_ZERO, values)
    return np.fmin(keys, _INFINITY, out=keys)


def _ready(ranks: Array) -> Array:
    """Return the running maximum of ranks: in a merge, no record leaves its list before the records in front
    of it. A sorted list does not change. An unsorted list gives the result of a merge record by record.
    """
    return np.maximum.accumulate(ranks, ranks.ndim - 1)
