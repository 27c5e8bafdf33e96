"""Packed predicates: a bit per element.

Row r, column c is bit c % B (least significant first) of word c // B of row r, with B the bits of a word.
Rows with `stream_on` use a stream of bytes instead: one byte per element of the tile, row after row.
"""

from __future__ import annotations

import numpy as np

from ..elements import Array, code_dtype
from .instr import Instr, Shape


def store_bits(i: Instr, name: str, truth: Array) -> None:
    """Pack truth values into the same number of tile rows; zero the rest of their valid columns."""
    dst = i.tile(name)
    code = code_dtype(dst.dtype)
    packed = np.packbits(truth, axis=1, bitorder="little")
    size = packed.shape[1]
    words = max(-(-size // code.itemsize), dst.v_col)
    if i.core.profile.isa == "cpu":  # hardware ignores the valid columns of dst
        words, size = dst.v_col, min(size, dst.v_col * code.itemsize)
    found = np.zeros((min(len(packed), dst.rows), words), code.newbyteorder("<"))
    found.view(np.uint8)[:, :size] = packed[: len(found), :size]
    i.store_raw(name, found.astype(code, copy=False))


def load_bits(i: Instr, name: str, shape: Shape) -> Array:
    """Return the truth values of a packed tile."""
    rows, cols = shape
    words = i.bits(name, (rows, -(-cols // i.tile(name).bits)))
    data = np.ascontiguousarray(words, words.dtype.newbyteorder("<")).view(np.uint8)
    return np.unpackbits(data, axis=1, count=cols, bitorder="little").view(bool)


def store_stream(i: Instr, name: str, truth: Array, storage: Shape) -> None:
    """Pack truth values into the valid region of a tile; each row starts at a byte and has the width of
    the storage."""
    dst = i.tile(name)
    bits = np.zeros((storage[0], storage[1] // 8 * 8), bool)
    rows, cols = len(truth), min(truth.shape[1], bits.shape[1])
    bits[:rows, :cols] = truth[:, :cols]
    packed = np.packbits(bits, axis=1, bitorder="little").ravel()
    found = np.zeros(dst.v_row * dst.v_col, code_dtype(dst.dtype))
    size = min(found.size, packed.size)
    found[:size] = packed[:size]
    i.store_raw(name, found.reshape(dst.valid))


def load_stream(i: Instr, name: str, shape: Shape) -> Array:
    """Return the truth values of a stream; every element of `shape` takes the next bit."""
    count, width = shape[0] * shape[1], i.tile(name).v_col
    rows, rest = divmod(-(-count // 8), width) if width else (0, 0)
    parts = [i.bits(name, (rows, width)).ravel(), i.bits(name, (min(1, rest), rest), (rows, 0)).ravel()]
    data = np.concatenate(parts).astype(np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").view(bool).reshape(shape)
