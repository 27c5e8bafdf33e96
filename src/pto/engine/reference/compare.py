"""Packed predicates: comparisons write one bit per element, selections read them.

Row r, column c is bit c % B (least significant first) of word c // B of row r, with B the bits of a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..elements import Array, code_dtype
from ..memory import Tile
from .instr import Instr, Shape
from .meaning import Numbers, select
from .registry import executor

_COMPARE: dict[str, Callable[[Any, Any], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@executor("tcmp")
def compare(i: Instr) -> None:
    shape = i.valid("src0")
    _store_bits(i, _compared(i, "src0", i.values("src0", shape), i.values("src1", shape)))


@executor("tcmps")
def compare_scalar(i: Instr) -> None:
    """A tile in place of the scalar gives its first element."""
    other = i.arg("scalar")
    s = i.values("scalar", (1, 1)) if isinstance(other, Tile) else Numbers(i, i.dtype("src")).scalar(other)
    _store_bits(i, _compared(i, "src", i.values("src"), s))


def _compared(i: Instr, source: str, x: Array, y: Any) -> Array:
    mode = i.attr("cmpMode") or "eq"
    if i.isa == "a2a3" and i.dtype(source) == "i32":
        mode = "eq"  # that hardware has no other comparison of i32
    return _COMPARE[mode](x, y)


def _store_bits(i: Instr, truth: Array) -> None:
    """Pack truth values into dst; the rest of its storage becomes zero."""
    dst = i.tile("dst")
    code = code_dtype(dst.dtype)
    packed = np.packbits(truth, axis=1, bitorder="little")
    short = -packed.shape[1] % code.itemsize
    words = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, short)))).view(code.newbyteorder("<"))
    rows, cols = min(len(words), dst.rows), min(words.shape[1], dst.v_col)
    out = np.zeros(dst.shape, code)
    out[:rows, :cols] = words[:rows, :cols]
    i.store_raw("dst", out)


@executor("tsel")
def select_tile(i: Instr) -> None:
    shape = i.valid("dst")
    i.store_raw("dst", select(_mask(i, shape), i.raw("src0", shape), i.raw("src1", shape)))


@executor("tsels")
def select_scalar(i: Instr) -> None:
    shape, dtype = i.valid("dst"), i.dtype("dst")
    s = i.encoded(np.array([Numbers(i, dtype).scalar(i.arg("scalar"))]), dtype)
    i.store_raw("dst", select(_mask(i, shape), i.raw("src", shape), s))


def _mask(i: Instr, shape: Shape) -> Array:
    """The truth values of a packed mask."""
    rows, cols = shape
    words = i.bits("mask", (rows, -(-cols // i.tile("mask").bits)))
    data = np.ascontiguousarray(words, words.dtype.newbyteorder("<")).view(np.uint8)
    return np.unpackbits(data, axis=1, count=cols, bitorder="little").view(bool)
