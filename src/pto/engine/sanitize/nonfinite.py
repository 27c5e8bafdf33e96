"""Sanitizer nan: reports the instruction that makes a NaN or an infinity that is stored to global memory.

A NaN is an error. An infinity is a warning, because it may be intended. The sanitizer does not report NaNs
and infinities of the arguments, of scalar operands and of the padding of tiles, nor their results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.core import Operation
from ...isa.dtypes import DTYPES
from ..access import Access, Place, first_bytes
from ..elements import Array, code_dtype, decode
from ..memory import Buffer, Tile
from ..region import Region
from ..watch import INSTRUCTION, Event
from .sanitizer import Sanitizer
from .undefined_bytes import name_of

_INFINITE, _NAN = 1, 2
_WORDS = {_INFINITE: "an infinity", _NAN: "a NaN"}
_HELP = {
    _INFINITE: "look for overflow, division by zero, logarithm of zero; subtract the maximum before exp",
    _NAN: "look for 0 / 0, infinity - infinity, 0 * infinity, and the root or logarithm of a negative number",
}
#: Element types that NumPy has, too.
_OF_NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
#: The code of infinity. Its bits are set in all codes of infinities and NaNs, and in no other code.
_INFINITE_CODES = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}
#: Origin numbers are bytes; all further origins share the last one.
_LAST = 255


class _Origin:
    """An instruction that made NaNs or infinities from operands that had none."""

    def __init__(self, event: Event, kind: int, place: Place, first: tuple[int, ...], cause: int) -> None:
        self.event = event
        self.kind = kind
        at = f"element ({', '.join(map(str, first))}) of " if len(first) > 1 else ""
        self.where = at + name_of(place)
        self.cause = cause  # origin number of the infinity that it was computed from; else 0


class _Operand:
    """A loaded operand: the kind (finite, infinite, NaN) and the origin number of each element."""

    def __init__(self, kinds: Array, origins: Array | None) -> None:
        self.kinds = kinds
        self.origins = origins


class NonFinite(Sanitizer):
    registers = True
    wants = (INSTRUCTION,)

    def __init__(self, reports: Any) -> None:
        super().__init__(reports)
        self.origins: list[_Origin | None] = [None]
        self.numbers: dict[tuple[Operation, int], int] = {}

    def started(self, event: Event) -> None:
        kinds = filter(None, map(_scalar_kind, event.args.values()))
        self.operands = [_Operand(np.array(kind, np.uint8), None) for kind in kinds]

    def loaded(self, event: Event, access: Access, data: Array) -> None:
        kinds = _kinds(access.place.dtype, data)
        if kinds is not None:
            self.operands.append(_Operand(kinds, self._origins(access)))

    def stored(self, event: Event, access: Access) -> None:
        place, where = access.place, access.where
        dtype = place.dtype
        if isinstance(where, Region):
            codes = where.load(place.buffer.data, code_dtype(dtype))
        elif DTYPES[dtype].bits < 8:
            return
        else:
            item = DTYPES[dtype].bits // 8
            codes = place.buffer.data[first_bytes(place, where)[..., None] + np.arange(item)]
            codes = np.ascontiguousarray(codes).view(code_dtype(dtype))[..., 0]
        kinds = _kinds(dtype, codes)
        if kinds is None:
            if "nan" in place.buffer.shadows:
                self._shadow(place.buffer)[first_bytes(place, where)] = 0
            return
        numbers = self._numbers(event, access, kinds)
        self._shadow(place.buffer)[first_bytes(place, where)] = numbers
        if place.buffer.space == "gm":
            for number in np.unique(numbers[numbers > 0]):
                self._report(event, int(number), int((numbers == number).sum()), place)

    def _numbers(self, event: Event, access: Access, kinds: Array) -> Array:
        """Return the origin number of each stored element: a new one, that of an operand, or 0."""
        numbers = np.zeros(kinds.shape, np.uint8)
        for kind in (_NAN, _INFINITE):
            here = kinds == kind
            for operand in self.operands:  # a NaN comes from a NaN, an infinity from either
                same = operand.kinds.shape == kinds.shape
                held = operand.kinds >= kind
                if same:
                    if operand.origins is not None:
                        numbers = np.where(here & held & (numbers == 0), operand.origins, numbers)
                    here = here & ~held
                elif held.any():
                    if operand.origins is not None:
                        number = int(operand.origins[held].max())
                        numbers = np.where(here & (numbers == 0), np.uint8(number), numbers)
                    here = np.zeros_like(here)
            if kind == _INFINITE:
                here &= ~_padding(access, kinds.shape)
            if here.any():
                first = np.unravel_index(int(np.argmax(here)), here.shape)
                numbers[here] = self._new(event, kind, access, tuple(int(n) for n in first), here)
        return numbers

    def _new(self, event: Event, kind: int, access: Access, first: tuple[int, ...], here: Array) -> int:
        number = self.numbers.get((event.op, kind))
        if number is None:
            cause = 0
            for operand in self.operands:
                if operand.origins is not None and kind == _NAN:
                    same = operand.origins.shape == here.shape
                    cause = cause or int((operand.origins[here] if same else operand.origins).max(initial=0))
            number = min(len(self.origins), _LAST)
            if number == len(self.origins):
                if isinstance(access.region, Region):
                    first = (first[0] + access.region.first[0], first[1] + access.region.first[1])
                self.origins.append(_Origin(event, kind, access.place, first, cause))
            self.numbers[event.op, kind] = number
        return number

    def _report(self, event: Event, number: int, count: int, place: Place) -> None:
        origin = self.origins[number]
        assert origin is not None
        key = ("nan", number)
        elements = f"{count} elements" if count > 1 else "1 element"
        note = f"{event.name} stores {elements} of it to {place.buffer.name}", self.launch.span(event.op)
        if self.reports.again(key, note):
            return
        made, word = origin.event, _WORDS[origin.kind]
        cause = self.origins[origin.cause]
        of = "no operand is NaN" if origin.kind == _NAN else "all operands are finite"
        d = made.core.diagnostic(
            made.op, "PTO-E2302", f"{origin.where} becomes {word}, although {of}", help=_HELP[origin.kind]
        )
        if origin.kind == _INFINITE:
            d.severity = "warning"
        if cause is not None:
            d.notes.append(
                (
                    f"from {_WORDS[cause.kind]} that {cause.event.name} makes here",
                    self.launch.span(cause.event.op),
                )
            )
        d.notes.append(note)
        self.reports.add(key, d)

    # -- shadows ---------------------------------------------------------------------------------------

    def _shadow(self, buffer: Buffer) -> Array:
        """Return the origin numbers of a buffer, each at the first byte of its element."""
        found = buffer.shadows.get("nan")
        if found is None or found.size < buffer.data.size:
            grown = np.zeros(buffer.data.size, np.uint8)
            if found is not None:
                grown[: found.size] = found
            found = buffer.shadows["nan"] = grown
        return found

    def _origins(self, access: Access) -> Array | None:
        buffer = access.place.buffer
        if "nan" not in buffer.shadows:
            return None
        return self._shadow(buffer)[first_bytes(access.place, access.where)]


def _kinds(dtype: str, data: Array) -> Array | None:
    """Return 0, _INFINITE or _NAN for each element; None if all are finite, or the elements are integers."""
    if not DTYPES[dtype].is_float:
        return None
    values = data
    if data.dtype.kind != "f":
        values = np.ascontiguousarray(data).view(code_dtype(dtype))
        infinite = _INFINITE_CODES.get(dtype)
        if infinite is not None and (values & infinite).max(initial=0) < infinite:
            return None  # takes a tenth of the time
        values = values.view(_OF_NUMPY[dtype]) if dtype in _OF_NUMPY else decode(dtype, values, np.float64)
    if np.isfinite(values).all():
        return None
    return (np.isinf(values) * _INFINITE + np.isnan(values) * _NAN).astype(np.uint8)


def _scalar_kind(value: object) -> int:
    if not isinstance(value, float | np.floating):
        return 0
    return _NAN if np.isnan(value) else _INFINITE if np.isinf(value) else 0


def _padding(access: Access, shape: tuple[int, ...]) -> Array:
    """Return a mask of the stored elements that may be padding: all of a tile with a pad value."""
    tile, region = access.place, access.region
    found = np.zeros(shape, bool)
    if isinstance(tile, Tile) and region is not None:
        r, c = region.first
        found[max(0, tile.v_row - r) :, :] = True
        found[:, max(0, tile.v_col - c) :] = True
        if tile.pad:
            found[...] = True
    return found
