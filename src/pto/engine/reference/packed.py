"""Packed predicates: a bit per element.

Row r, column c is bit c % B (least significant first) of word c // B of row r, with B the bits of a word.
"""

from __future__ import annotations

import numpy as np

from ..elements import Array, code_dtype
from .instr import Instr, Shape


def store_bits(i: Instr, name: str, truth: Array) -> None:
    """Pack truth values into a tile; the rest of its storage becomes zero."""
    dst = i.tile(name)
    code = code_dtype(dst.dtype)
    packed = np.packbits(truth, axis=1, bitorder="little")
    words = np.zeros(dst.shape, code.newbyteorder("<"))
    rows, cols = min(len(packed), dst.rows), min(packed.shape[1], dst.v_col * code.itemsize)
    words.view(np.uint8)[:rows, :cols] = packed[:rows, :cols]
    i.store_raw(name, words.astype(code, copy=False))


def load_bits(i: Instr, name: str, shape: Shape) -> Array:
    """The truth values of a packed tile."""
    rows, cols = shape
    words = i.bits(name, (rows, -(-cols // i.tile(name).bits)))
    data = np.ascontiguousarray(words, words.dtype.newbyteorder("<")).view(np.uint8)
    return np.unpackbits(data, axis=1, count=cols, bitorder="little").view(bool)
