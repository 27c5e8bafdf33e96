"""Addresses of the elements of matrices of the cube unit, one element at a time, for the cube tests.

Offsets are in elements from the start of a matrix, written down from the manual's index orders (K1 M1 M0 K0 and so
on), with C0 = 32 bytes. `Bench` runs one cube micro-instruction on given codes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.engine.memory import Pointer
from pto.ir.types import PtrType
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from .cases import VectorCase

Array = np.ndarray[Any, Any]
#: Bytes of every buffer that hold noise at first and are watched.
NOISE = 1 << 14
#: Offsets of elements by row and column, numbers or arrays of them.
Place = Callable[[Any, Any], Any]


def element(plan: Plan, name: str) -> str:
    """Element type of a pointer operand."""
    type = plan.operands[name][0]
    assert isinstance(type, PtrType)
    return str(type.dtype)


def c0(dtype: str) -> int:
    return 256 // DTYPES[dtype].bits


def blocks(size: int, unit: int) -> int:
    return (size + unit - 1) // unit


def nz(rows: int, dtype: str, width: int = 0) -> Place:
    """Columns in blocks of 32 bytes, each with all its rows: N1 M N0."""
    w, high = width or c0(dtype), blocks(rows, 16) * 16
    return lambda r, c: (c // w * high + r) * w + c % w


def l0a(isa: str, m: int, k: int, dtype: str) -> Place:
    """K1 M1 M0 K0; on A2 and A3 M1 K1 M0 K0."""
    w = c0(dtype)
    if isa == "a2a3":
        return lambda r, c: ((r // 16 * blocks(k, w) + c // w) * 16 + r % 16) * w + c % w
    return nz(m, dtype)


def l0b(k: int, n: int, dtype: str) -> Place:
    """K1 N1 N0 K0."""
    w = c0(dtype)
    return lambda r, c: ((r // w * blocks(n, 16) + c // 16) * 16 + c % 16) * w + r % w


def l0c(m: int) -> Place:
    """N1 M1 M0 N0 with N0 = 16."""
    return lambda r, c: ((c // 16 * blocks(m, 16) + r // 16) * 16 + r % 16) * 16 + c % 16


def scales_of_rows(groups: int) -> Place:
    """Scales [m, g] in boxes of 16 rows and 2 groups, box after box along a row of boxes."""
    return lambda r, g: (r // 16 * blocks(groups, 2) + g // 2) * 32 + r % 16 * 2 + g % 2


def scales_of_columns(groups: int) -> Place:
    """Scales [g, n]: the same of the transposed matrix."""
    return lambda g, c: scales_of_rows(groups)(c, g)


def _bits_at(pointer: Pointer, place: Place, shape: tuple[int, ...]) -> Array:
    """The first bit of every element; offsets are computed for all of them at once."""
    r, c = np.indices(shape)
    return pointer.offset * 8 + place(r, c) * DTYPES[pointer.dtype].bits


def write(pointer: Pointer, place: Place, codes: Array) -> None:
    """Store a matrix of codes."""
    data, at, size = (
        pointer.buffer.data,
        _bits_at(pointer, place, codes.shape),
        DTYPES[pointer.dtype].bits // 8,
    )
    if size:
        raw = np.ascontiguousarray(codes.astype(f"<u{size}")).view(np.uint8)
        data[at[..., None] // 8 + np.arange(size)] = raw.reshape(*codes.shape, size)
        return
    for half in (0, 4):
        mine = at % 8 == half
        keep = data[at[mine] // 8] & (0xF0 if half == 0 else 0x0F)
        data[at[mine] // 8] = keep | codes[mine].astype(np.uint8) << half


def read(pointer: Pointer, place: Place, rows: int, cols: int) -> Array:
    """The codes of a matrix."""
    data, at, size = (
        pointer.buffer.data,
        _bits_at(pointer, place, (rows, cols)),
        DTYPES[pointer.dtype].bits // 8,
    )
    if not size:
        return data[at // 8] >> (at % 8).astype(np.uint8) & 0xF
    found = np.ascontiguousarray(data[at[..., None] // 8 + np.arange(size)])
    return found.view(f"<u{size}").reshape(rows, cols)


class Bench(VectorCase):
    """A case whose buffers are full of noise, with scalars by name."""

    small = 256

    def __init__(self, plan: Plan, seed: Any = 0, semantics: Any = "hw", **scalars: Any) -> None:
        super().__init__(plan, seed, semantics)
        for buffer in [*self.core.buffers.values(), *self.core.gm.buffers]:
            buffer.data[:NOISE] = self.rng.integers(0, 256, min(NOISE, buffer.data.size), np.uint8)
        for found in self.args.values():
            if isinstance(found, Pointer) and found.buffer.space in ("bias", "scaling"):
                found.offset = self.small  # these buffers are small
        self.args.update(scalars)

    def pointer(self, name: str) -> Pointer:
        found = self.args[name]
        assert isinstance(found, Pointer)
        return found

    def scale_pointer(self, name: str, loc: str) -> Pointer:
        """Return the address of the scales of an operand: in the buffer beside its own, at a sixteenth of its
        address."""
        return Pointer(self.core.buffers[loc], self.pointer(name).offset // 16, "u8", name)

    def snapshot(self) -> dict[str, Array]:
        """The noisy part of every buffer as it is."""
        found = [*self.core.buffers.values(), *self.core.gm.buffers]
        return {b.name: b.data[:NOISE].copy() for b in found}
