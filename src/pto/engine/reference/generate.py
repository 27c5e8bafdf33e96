"""Generated tiles: consecutive numbers, triangular masks, random words; and the histogram of bytes."""

from __future__ import annotations

import numpy as np

from ...isa.dtypes import DTYPES
from .. import elements
from ..elements import Array
from ..memory import array_of
from .instr import Instr
from .registry import executor

_MASK64 = 0xFFFFFFFFFFFFFFFF

#: The columns that one step of the random generator fills, and the number of counters for them.
_COLUMNS = 256
_LANES = 64


@executor("count")
def count(i: Instr) -> None:
    """Store consecutive numbers in row 0."""
    cols = i.valid("dst")[1]
    start, dtype = i.arg("S"), i.dtype("dst")
    if DTYPES[dtype].is_float:
        steps = np.arange(cols, dtype=np.float32 if i.exact else np.float64)
        first = steps.dtype.type(start)
    else:
        bits = DTYPES[dtype].bits
        steps = np.arange(cols, dtype=np.uint64).astype(array_of(dtype))
        first = np.array(int(start) & ((1 << bits) - 1), f"u{bits // 8}").view(steps.dtype)
    i.store("dst", (first - steps if i.attr("descending") else first + steps)[None, :])


@executor("triangle")
def triangle(i: Instr) -> None:
    """Store ones on one side of a diagonal, zeros on the other."""
    rows, cols = i.valid("dst")
    r, c = np.arange(rows)[:, None], np.arange(cols)[None, :]
    edge = r + i.arg("diagonal")
    ones = c >= edge if i.attr("upperOrLower") else c <= edge
    dtype = i.dtype("dst")
    i.store("dst", ones.astype(np.float32 if DTYPES[dtype].is_float else array_of(dtype)))


@executor("random numbers")
def random(i: Instr) -> None:
    """Store Philox-4x32 words. A step fills `_COLUMNS` columns of a row from `_LANES` counters."""
    rows, cols = i.valid("dst")
    if not rows or not cols:
        return
    loops = -(-cols // _COLUMNS)
    start = sum((int(i.arg(f"counter{k}")) & 0xFFFFFFFF) << (32 * k) for k in range(4))
    if i.isa == "cpu":
        steps = np.full(rows * loops, i.tile("dst").pitch[1] // 4, np.uint64)
    else:
        steps = np.full((rows, loops), _LANES, np.uint64)
        steps[:, -1] = (cols - 1) % _LANES + 1
    first = np.cumsum(steps, dtype=np.uint64) - steps.ravel()
    ahead = (first[:, None] + np.arange(_LANES, dtype=np.uint64)).ravel()
    words = philox(start, ahead, (int(i.arg("key0")), int(i.arg("key1"))), i.attr("rounds"))
    # (word, row, loop, lane) -> columns of (loop, word, lane) on cpu, else of (loop, lane, word)
    order = (1, 2, 0, 3) if i.isa == "cpu" else (1, 2, 3, 0)
    words = words.reshape(4, rows, loops, _LANES).transpose(order).reshape(rows, loops * _COLUMNS)
    i.store_raw("dst", words[:, :cols].view(array_of(i.dtype("dst"))))


def philox(start: int, ahead: Array, keys: tuple[int, int], rounds: int) -> Array:
    """Return the four output words of the counters start + ahead (128 bits, `ahead` below 2**63), lowest
    first."""
    low, high, (key0, key1) = start & _MASK64, start >> 64 & _MASK64, (k & 0xFFFFFFFF for k in keys)
    return elements.loops().philox(low, high, ahead, key0, key1, rounds)


@executor("histogram")
def histogram(i: Instr) -> None:
    """Store the cumulative counts of the values of one byte, per row."""
    x = i.bits("src")
    rows = x.shape[0]
    top = x.dtype.itemsize - 1
    byte = i.attr("hist_byte")
    if byte is None:
        byte = top if i.attr("isMSB") else 0
    bins = np.arange(0, rows * 256, 256)[:, None] + (x >> (8 * byte) & 0xFF)
    if byte < top:  # all higher bytes must equal those that earlier passes chose
        high = x >> (8 * byte + 8)
        if top == 1:
            chosen = i.bits("idx", (rows, 1)).astype(x.dtype)
        else:
            digits = i.bits("idx", (top - byte, 1))[:, 0]
            chosen = np.array(int.from_bytes(digits.tobytes(), "big"), x.dtype)
        bins = bins[high == chosen]
    counts = np.bincount(bins.ravel(), minlength=rows * 256).reshape(rows, 256)
    i.store("dst", np.cumsum(counts, axis=1).astype(np.uint32))
