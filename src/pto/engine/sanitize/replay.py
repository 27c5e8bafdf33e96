"""Runs an instruction again with other values for undefined data, to see which results change.

So instructions need no rules of their own. Undefined lanes without effect, such as lanes that a select does
not choose, are not reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import ScalarType
from ...isa.dtypes import DTYPES
from ..access import Place, start_of
from ..elements import Array, NumpyType, code_dtype
from ..memory import MemoryFault, Pointer
from ..reference.instr import IllegalInstruction, Instr, Port
from ..reference.watched import again
from ..region import Region
from ..watch import Event


class Load:
    """A load: its data, and a mask of its undefined elements (None if all are defined)."""

    __slots__ = ("data", "mask", "place", "where")

    def __init__(self, place: Place, where: object, data: Array, mask: Array | None) -> None:
        self.place = place
        self.where = where  # a region, or element offsets
        self.data = data
        self.mask = mask


def patterns(dtype: str) -> tuple[int, int, int]:
    """Return codes to try for undefined elements: for floats a NaN, a large number, and its negative."""
    d = DTYPES[dtype]
    ones = (1 << d.bits) - 1
    if not d.is_float or d.bits < 8 or d.kind == "e":
        return 0x5A5A5A5A5A5A5A5A & ones, 0xA5A5A5A5A5A5A5A5 & ones, 1
    large = {"f32": 0x7E000000, "f16": 0x7800, "bf16": 0x7E00, "f64": 0x7E00 << 48}.get(dtype, ones >> 2)
    return ones >> 1, large, large | 1 << (d.bits - 1)


def scalars(type: object, value: float) -> tuple[float, float, float]:
    """Return values to try for an undefined scalar. They stay small if they may be sizes or offsets."""
    if not isinstance(type, ScalarType) or type.is_float:
        large = 3e4 if str(type) == "f16" else 1e30
        return math.nan, large, -large
    bits = type.bits or 64
    if bits >= 64:
        return value + 1, value + 17, 0 if value else 5
    half = 1 << (bits - 1)
    return tuple((v + half) % (2 * half) - half for v in (value + 1, 0x5A5A5A5A, 0xA5A5A5A5))  # type: ignore[return-value]


class Moved(Exception):
    """A repeated instruction touches other memory than at first."""


class Replay(Port):
    """Repeats recorded loads with other values for undefined elements, and keeps the stores."""

    def __init__(self, loads: list[Load], groups: list[int], which: int) -> None:
        self.loads = iter(zip(loads, groups, strict=True))
        self.which = which
        self.stores: list[tuple[Place, Region | Array, Array]] = []

    def _next(self, place: Place, where: Region | Array) -> Array:
        load, group = next(self.loads, (None, 0))
        if load is None or not same_bytes(load.place, load.where, place, where):
            raise Moved
        data = np.array(load.data)
        if load.mask is not None:
            codes = data.view(code_dtype(load.place.dtype)) if data.dtype.kind != "u" else data
            pattern = patterns(load.place.dtype)[(self.which + group) % 3]
            codes[load.mask] = np.array(pattern, np.uint64).astype(codes.dtype)
        return data

    def load(self, i: Instr, place: Place, region: Region, dtype: NumpyType) -> Array:
        return self._next(place, region)

    def load_at(self, i: Instr, place: Place, at: Array, dtype: object) -> Array:
        return self._next(place, at)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        self.stores.append((place, region, np.array(codes)))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        self.stores.append((place, at, np.array(codes)))


def same_bytes(place: Place, where: Any, other: Place, there: Any) -> bool:
    if place.buffer is not other.buffer:
        return False
    if isinstance(where, Region) and isinstance(there, Region):
        return (
            (where.base, where.nibble, where.shape) == (there.base, there.nibble, there.shape)
            and np.array_equal(where.rows.offsets, there.rows.offsets)
            and np.array_equal(where.cols.offsets, there.cols.offsets)
        )
    if isinstance(where, Region) or isinstance(there, Region):
        return False
    return start_of(place) == start_of(other) and np.array_equal(where, there)


class Dependence:
    """The effects of an instruction that depend on undefined data: stored elements, result, addresses."""

    def __init__(self, stores: Sequence[tuple[Place, Region | Array, Array]]) -> None:
        self.taints = [np.zeros(np.shape(codes), bool) for _, _, codes in stores]
        self.address = False
        self.result = False


def dependence(
    event: Event, loads: list[Load], stores: Sequence[tuple[Place, Region | Array, Array]]
) -> Dependence:
    """Run an instruction again with other values for undefined data, and return which effects change."""
    found = Dependence(stores)
    groups = _groups(loads)
    for which in range(3):
        port = Replay(loads, groups, which)
        try:
            other = again(event, port, _other_scalars(event, which))
        except (IllegalInstruction, MemoryFault, Moved, IndexError, ValueError, OverflowError, MemoryError):
            found.address = True
            continue
        found.result |= not _same(event.result, other)
        if len(port.stores) != len(stores):
            found.address = True
            continue
        for n, (one, two) in enumerate(zip(stores, port.stores, strict=True)):
            if not same_bytes(*one[:2], *two[:2]):
                found.address = True
            elif one[2].shape == two[2].shape:
                found.taints[n] |= _bits(one[2]) != _bits(two[2])
            else:
                found.taints[n][...] = True
    return found


def _groups(loads: list[Load]) -> list[int]:
    """Return a group number for each load, equal for loads of the same bytes, which get the same values: the
    difference of two undefined tiles is undefined, but a tile minus itself is defined."""
    out: list[int] = []
    for n, load in enumerate(loads):
        same = (m for m in range(n) if same_bytes(load.place, load.where, loads[m].place, loads[m].where))
        out.append(next((out[m] for m in same), max(out, default=-1) + 1))
    return out


def _other_scalars(event: Event, which: int) -> dict[str, object]:
    args = event.args
    changed = dict(args)
    for (name, n), _ in event.poison.items():
        if n is None:
            value = event.op.get(name)
            changed[name] = scalars(value.type if value is not None else None, args[name])[which]
        else:
            changed[name] = list(changed[name])
            changed[name][n] = scalars(event.op.group(name)[n].type, args[name][n])[which]
    return changed


def _same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))  # type: ignore[reportUnknownArgumentType]
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return (a.buffer, a.offset) == (b.buffer, b.offset)
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _bits(codes: Array) -> Array:
    codes = np.ascontiguousarray(codes)
    return codes if codes.dtype.kind == "u" else codes.view(f"u{codes.dtype.itemsize}")
