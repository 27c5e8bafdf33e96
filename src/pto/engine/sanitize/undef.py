"""Undefined elements: storage nobody wrote, lanes outside a valid region, and all that is computed from them.

Beside every on-chip buffer lies a shadow of the same size: 0xFF where a byte is undefined. What an instruction
makes of undefined elements is found by running it again with other values in their place: result elements that
change are undefined too. So no instruction needs a rule of its own, and an undefined lane that does not matter
(multiplied away by a select, dropped by a copy) is not reported. Reports come at the first observable use: a
store to global memory, a branch, an address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.core import Operation
from ...isa.dtypes import DTYPES
from ..elements import Array, code_dtype
from ..memory import Buffer, MemoryFault, Tile
from ..reference.instr import IllegalInstruction, Instr, Place, Port, start_of
from ..region import Region, load_at, store_at
from .reports import Reports

if TYPE_CHECKING:
    from ..reference.core import Core

NEVER = 1  # origin number of bytes nobody wrote


class Origin:
    """Where undefined elements come from: an operand read by an instruction, and the origin before that."""

    __slots__ = ("core", "element", "name", "op", "parent", "why")

    def __init__(
        self, core: Core | None, op: Operation | None, name: str, element: tuple[int, int] | None, why: str,
        parent: Origin | None,
    ) -> None:  # fmt: skip
        self.core = core
        self.op = op
        self.name = name
        self.element = element
        self.why = why
        self.parent = parent

    def text(self) -> str:
        at = f" element ({self.element[0]}, {self.element[1]}) of" if self.element is not None else ""
        name = f"%{self.name}" if self.name else "an operand"
        return f"reads{at} {name}, {self.why}"


class Load:
    """A load with undefined elements in it."""

    __slots__ = ("data", "mask", "place")

    def __init__(self, place: Place, data: Array, mask: Array | None) -> None:
        self.place = place
        self.data = data
        self.mask = mask


class Undefined:
    def __init__(self, reports: Reports) -> None:
        self.reports = reports
        self.origins: list[Origin | None] = [None, None]

    # -- shadows ---------------------------------------------------------------------------------------

    def shadow(self, buffer: Buffer) -> tuple[Array, Array] | None:
        """(undefined bytes, origin numbers) of an on-chip buffer; global memory is taken as defined."""
        if buffer.space == "gm":
            return None
        found = buffer.shadows.get("undef")
        size = buffer.data.size
        if found is None or found[0].size < size:
            undefined, origin = np.full(size, 0xFF, np.uint8), np.full(size, NEVER, np.uint8)
            if found is not None:
                undefined[: found[0].size], origin[: found[1].size] = found
            found = buffer.shadows["undef"] = undefined, origin
        return found

    def mask(self, place: Place, region: Region) -> Array | None:
        """Which elements of a region are undefined; None where none is."""
        found: Array | None = None
        shadow = self.shadow(place.buffer)
        if shadow is not None:
            marks = region.load(shadow[0], _unsigned(region.bits))
            if marks.any():
                found = marks != 0
        if isinstance(place, Tile):
            (r, c), (rows, cols) = region.first, region.shape
            if r + rows > place.v_row or c + cols > place.v_col:
                found = np.zeros((rows, cols), bool) if found is None else found
                found[max(0, place.v_row - r) :, :] = True
                found[:, max(0, place.v_col - c) :] = True
                if not found.any():
                    return None
        return found

    def mask_at(self, place: Place, at: Array) -> Array | None:
        shadow = self.shadow(place.buffer)
        if shadow is None:
            return None
        base, bits, nibble = start_of(place)
        marks = load_at(shadow[0], base, at, bits, _unsigned(bits), nibble)
        return marks != 0 if marks.any() else None

    def define(self, place: Place, region: Region, taint: Array | None = None, origin: int = NEVER) -> None:
        """Mark what was written: defined, but for the elements of `taint`."""
        shadow = self.shadow(place.buffer)
        if shadow is None:
            return
        kind = _unsigned(region.bits)
        if taint is None:
            region.fill(shadow[0], np.zeros((), kind))
            return
        full = np.array(-1, np.int64).astype(kind)
        region.store(shadow[0], np.where(taint, full, np.zeros_like(full)))
        numbers = np.frombuffer(bytes([origin]) * (max(8, region.bits) // 8), kind)[0]
        region.store(shadow[1], np.where(taint, numbers, np.zeros_like(numbers)))

    def define_at(self, place: Place, at: Array, taint: Array | None = None, origin: int = NEVER) -> None:
        shadow = self.shadow(place.buffer)
        if shadow is None:
            return
        base, bits, nibble = start_of(place)
        kind = _unsigned(bits)
        marks = np.zeros(at.shape, kind) if taint is None else np.where(taint, np.array(-1, np.int64).astype(kind), 0).astype(kind)
        store_at(shadow[0], base, at, bits, marks, nibble)

    # -- origins ---------------------------------------------------------------------------------------

    def origin(self, i: Instr, load: Load, region: Region | None) -> Origin:
        """Where the first undefined element of a load comes from."""
        mask, place = load.mask, load.place
        assert mask is not None
        first = np.unravel_index(int(np.argmax(mask)), mask.shape)
        element: tuple[int, int] | None = None
        parent: Origin | None = None
        why = "which nobody wrote"
        if region is not None and mask.ndim == 2:
            r, c = int(first[0]) + region.first[0], int(first[1]) + region.first[1]
            element = (r, c)
            if isinstance(place, Tile) and (r >= place.v_row or c >= place.v_col):
                why = f"outside its valid region of {place.v_row} x {place.v_col}"
            else:
                shadow = self.shadow(place.buffer)
                if shadow is not None:
                    at = int(region.rows.offsets[first[0]] + region.cols.offsets[first[1]]) * region.bits // 8 + region.base
                    number = int(shadow[1][at])
                    parent = self.origins[number] if number < len(self.origins) else None
                    if parent is not None:
                        why = "which is undefined"
        return Origin(i.core, i.op, place.name, element, why, parent)

    def number(self, origin: Origin) -> int:
        """A number for the origin shadow; the last one stands for all that find no room."""
        if len(self.origins) < 255:
            self.origins.append(origin)
        return len(self.origins) - 1

    def report(self, core: Core, op: Operation, origin: Origin, what: str) -> None:
        d = core.diagnostic(
            op, "PTO-E2203", what,
            help="write the tile first, widen the valid region of what writes it, or narrow that of what reads it",
        )  # fmt: skip
        at: Origin | None = origin
        depth = 0
        while at is not None and depth < 6:
            if at.op is not None:
                name = at.op.row.name if at.op.row else at.op.name
                d.notes.append((f"{name} {at.text()}", core.grid.span(at.op)))
            at, depth = at.parent, depth + 1
        first = origin
        while first.parent is not None:
            first = first.parent
        self.reports.add(("undef", op, first.op, first.name), d)


def _unsigned(bits: int) -> np.dtype[Any]:
    return np.dtype(f"u{max(8, bits) // 8}")


#: Values put in place of undefined elements, as codes: for floats a NaN and two large numbers of either sign.
def patterns(dtype: str) -> tuple[int, int, int]:
    d = DTYPES[dtype]
    ones = (1 << d.bits) - 1
    if not d.is_float or d.bits < 8 or d.kind == "e":
        return 0x5A5A5A5A5A5A5A5A & ones, 0xA5A5A5A5A5A5A5A5 & ones, 1
    large = {"f32": 0x7E000000, "f16": 0x7800, "bf16": 0x7E00, "f64": 0x7E00 << 48}.get(dtype, ones >> 2)
    return ones >> 1, large, large | 1 << (d.bits - 1)


class Replay(Port):
    """Gives recorded loads again with other values for undefined elements, and keeps what is stored."""

    def __init__(self, loads: list[Load], which: int) -> None:
        self.loads = iter(loads)
        self.which = which
        self.stores: list[tuple[Place, Any, Array]] = []

    def _next(self, dtype: Any) -> Array:
        load = next(self.loads)
        data = np.array(load.data)
        if load.mask is not None:
            codes = data.view(code_dtype(load.place.dtype)) if data.dtype.kind != "u" else data
            codes[load.mask] = np.array(patterns(load.place.dtype)[self.which], np.uint64).astype(codes.dtype)
        return data

    def load(self, i: Instr, place: Place, region: Region, dtype: Any) -> Array:
        return self._next(dtype)

    def load_at(self, i: Instr, place: Place, at: Array, dtype: Any) -> Array:
        return self._next(dtype)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        self.stores.append((place, region, np.array(codes)))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        self.stores.append((place, at, np.array(codes)))


def replay_taints(
    i: Instr, execute: Callable[[Instr], Any], loads: list[Load], stores: list[tuple[Place, Any, Array]]
) -> tuple[list[Array], bool]:
    """For every store, which of its elements depend on undefined ones; and whether an address does."""
    taints = [np.zeros(np.shape(codes), bool) for _, _, codes in stores]
    port = i.port
    address = False
    for which in range(3):
        again = Replay(loads, which)
        i.port = again
        try:
            execute(i)
        except (IllegalInstruction, MemoryFault, IndexError, StopIteration, ValueError):
            address = True
            continue
        finally:
            i.port = port
        if len(again.stores) != len(stores):
            address = True
            continue
        for n, ((_, where, codes), (_, where2, codes2)) in enumerate(zip(stores, again.stores, strict=True)):
            if isinstance(where, np.ndarray) and not np.array_equal(where, where2):
                address = True
            elif codes.shape == codes2.shape:
                taints[n] |= _bits(codes) != _bits(codes2)
            else:
                taints[n][...] = True
    if address:
        for taint in taints:
            taint[...] = True
    return taints, address


def _bits(codes: Array) -> Array:
    codes = np.ascontiguousarray(codes)
    return codes if codes.dtype.kind == "u" else codes.view(f"u{codes.dtype.itemsize}")
