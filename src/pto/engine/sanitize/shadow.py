"""A float64 shadow of a run: every element of a float type has a twin, computed in float64 without rounding.

Each instruction runs twice: in its own types, and on the twins with a port that never rounds. The shadow
reports the first result that differs from its twin by more than the type explains. It also reports the first
NaN or infinity: an infinity with a finite twin, or a NaN from operands without one. The tolerance follows the
coarsest rounding on the way: a float32 product of weights that were rounded to half precision is compared
with the tolerance of half precision. Integers, and results of instructions on bits, have no twin. There the
shadow starts again from the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...isa.dtypes import DTYPES
from ...shown import Shown
from ..access import Access, Place, start_of
from ..elements import Array, NumpyType, code_dtype, decode
from ..memory import Buffer, array_of
from ..reference.instr import Instr, Port
from ..reference.watched import again, repeatable
from ..region import Region, load_at
from ..watch import INSTRUCTION, Event, Watcher
from .reports import Reports

if TYPE_CHECKING:
    from ..result import LaunchResult

_EXACT = 52  # mantissa bits of values without rounding
_IDS = {name: n + 1 for n, name in enumerate(d.name for d in DTYPES.values() if d.is_float)}


def tolerance(mantissa: int) -> float:
    """Return the relative difference that a rounding to so many mantissa bits explains: half of the bits."""
    return 2.0 ** (-mantissa / 2)


def mantissa_bits(dtype: str) -> int:
    return DTYPES[dtype].man or 2


class Shadow(Shown, Watcher):
    """The twins of a launch, the histogram of errors in units of the last place, and the first departure."""

    registers = True
    wants = (INSTRUCTION,)

    def __init__(self) -> None:
        self.reports = Reports()
        self.port = _Twins(self)
        self.captured: list[tuple[Place, Region | Array, Array]] | None = None
        self.written: list[Access] = []  # all stores of the instruction
        #: Errors by type: counts of elements whose error in units of the last place is at most 2**(n - 2).
        self.histogram: dict[str, Array] = {}
        #: Mantissa bits of the coarsest rounding that the operands of an instruction went through.
        self.coarsest = _EXACT
        self.had_nan = False  # has an operand of the instruction a NaN
        self.diverged = False
        self.poisoned = False

    # -- an instruction --------------------------------------------------------------------------------

    def started(self, event: Event) -> None:
        """Run the instruction on the twins, and keep its stores."""
        self.written, self.captured = [], None
        if not repeatable(event.op):
            return
        self.port.stores = []
        self.coarsest, self.had_nan = _EXACT, False
        try:
            again(event, self.port)
            self.captured = self.port.stores
        except Exception:  # an instruction that works on bits: no twin for its results
            self.captured = None

    def storing(self, event: Event, access: Access, data: Array) -> None:
        self.written.append(access)

    def finished(self, event: Event) -> None:
        """Compare the stores with their twins, and keep the twins."""
        if not repeatable(event.op):
            return
        for access in self.written:
            self._clear(access.place, access.where)
        for place, where, twin in self.captured or ():
            dtype = place.dtype
            if twin.dtype == np.float64 and DTYPES[dtype].is_float and dtype != "f64":
                actual = self._actual(place, where)
                twin = np.broadcast_to(twin, actual.shape)
                self._compare(event, place, where, actual, twin)
                self._put(place, where, twin, min(self.coarsest, mantissa_bits(dtype)))

    def launch_ended(self, result: LaunchResult) -> None:
        result.shadow = self
        result.diagnostics.extend(self.reports.all())

    def _actual(self, place: Place, where: Region | Array) -> Array:
        codes = code_dtype(place.dtype)
        if isinstance(where, Region):
            found = where.load(place.buffer.data, codes)
        else:
            base, bits, nibble = start_of(place)
            found = load_at(place.buffer.data, base, where, bits, codes, nibble)
        return decode(place.dtype, np.ascontiguousarray(found), np.float64)

    # -- comparing -------------------------------------------------------------------------------------

    def _compare(self, event: Event, place: Place, where: Region | Array, actual: Array, twin: Array) -> None:
        if not actual.size:
            return
        dtype = place.dtype
        finite = np.isfinite(twin)
        lost = finite & ~np.isfinite(actual)
        error = np.where(finite & ~lost, np.abs(actual - twin), 0.0)
        size = np.abs(np.where(finite, twin, 0.0))
        self._count(dtype, error, size, lost)
        bad = lost if self.had_nan else lost | np.isnan(actual)
        if bad.any() and not self.poisoned:
            self.poisoned = True
            what = "NaN" if np.isnan(actual[bad][0]) else "an infinity"
            self._report(event, place, where, actual, twin, bad, f"{what} appears", "PTO-E2302")
        scale = np.maximum(size, np.sqrt(np.mean(size**2)))
        bad = error > tolerance(min(self.coarsest, mantissa_bits(dtype))) * scale
        if bad.any() and not self.diverged:
            self.diverged = True
            self._report(
                event, place, where, actual, twin, bad, "first departure from the float64 shadow", "PTO-E2301"
            )

    def _count(self, dtype: str, error: Array, size: Array, lost: Array) -> None:
        """Count errors in the histogram, relative to the sizes of the exact values."""
        man = mantissa_bits(dtype)
        _, exponent = np.frexp(np.where(size > 0, size, 1.0))
        ulps = error / np.ldexp(1.0, exponent - 1 - man)
        ulps = np.where(size > 0, ulps, np.where(error > 0, np.inf, 0.0))
        bucket = np.where(ulps == 0, 0, np.clip(np.ceil(np.log2(np.maximum(ulps, 2.0**-2))) + 2, 1, 20))
        bucket = np.where(lost | ~np.isfinite(bucket), 21, bucket).astype(np.intp)
        counts = self.histogram.setdefault(dtype, np.zeros(22, np.int64))
        counts += np.bincount(bucket.ravel(), minlength=22)

    def _report(
        self,
        event: Event,
        place: Place,
        where: Region | Array,
        actual: Array,
        twin: Array,
        bad: Array,
        what: str,
        code: str,
    ) -> None:
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        element = [int(n) for n in at]
        if isinstance(where, Region):
            element = [element[0] + where.first[0], element[1] + where.first[1]]
        shown = ", ".join(str(n) for n in element)
        name = f"%{place.name}" if place.name else "the destination"
        does = "depart" if code == "PTO-E2301" else "are not finite"
        d = event.core.diagnostic(
            event.op,
            code,
            f"{what}: element ({shown}) of {name}",
            expected=f"{twin[at]:.9g} (float64)",
            got=f"{actual[at]:.9g} ({place.dtype})",
            help=f"{int(bad.sum())} of {bad.size} elements of this result {does}; look at the operands here",
        )
        self.reports.add(code, d)

    # -- twins -----------------------------------------------------------------------------------------

    def store_of(self, buffer: Buffer) -> tuple[Array, Array, Array]:
        """Return three arrays by first byte of an element: its twin, the number of its type, and the mantissa
        bits of the coarsest rounding on the way to it."""
        found = buffer.shadows.get("f64")
        size = buffer.data.size
        if found is None or found[0].size < size:
            made = np.zeros(size, np.float64), np.zeros(size, np.uint8), np.zeros(size, np.uint8)
            for new, old in zip(made, found or (), strict=False):
                new[: old.size] = old
            found = buffer.shadows["f64"] = made
        return found

    def get(self, place: Place, where: object, actual: Array) -> Array:
        """Return the twins of loaded elements; an element without a twin is its own."""
        values, tags, bits = self.store_of(place.buffer)
        at = _bytes(place, where)
        have = tags[at] == _IDS[place.dtype]
        if not have.any():
            return actual
        self.coarsest = min(self.coarsest, int(bits[at][have].min()))
        return np.where(have, values[at], actual)

    def _put(self, place: Place, where: Region | Array, twin: Array, mantissa: int) -> None:
        values, tags, bits = self.store_of(place.buffer)
        at = _bytes(place, where)
        values[at] = twin
        if DTYPES[place.dtype].bits >= 8:
            tags[at] = _IDS[place.dtype]
            bits[at] = mantissa

    def _clear(self, place: Place, where: Region | Array) -> None:
        _, tags, _ = self.store_of(place.buffer)
        at = _bytes(place, where)
        for n in range(max(8, DTYPES[place.dtype].bits) // 8):
            tags[at + n] = 0

    def __repr__(self) -> str:
        return f"<Shadow of {', '.join(self.histogram) or 'no results'}>"

    def text(self) -> str:
        """Return the histogram as a table."""
        if not self.histogram:
            return "no floating-point results"
        bounds = ["0", *[f"<= {2.0 ** (n - 2):g}" for n in range(1, 20)], "more", "NaN/inf"]
        lines = ["error in units of the last place, elements by type"]
        used = [n for n in range(22) if any(c[n] for c in self.histogram.values())]
        lines.append("  " + "ulp".ljust(12) + "".join(name.rjust(12) for name in self.histogram))
        for n in used:
            lines.append(
                "  " + bounds[n].ljust(12) + "".join(str(c[n]).rjust(12) for c in self.histogram.values())
            )
        return "\n".join(lines)


def _bytes(place: Place, where: Any) -> Array:
    """Return the first byte of every element."""
    if isinstance(where, Region):
        at = where.rows.offsets[:, None] + where.cols.offsets[None, :]
        return where.base + (at + where.nibble) * where.bits // 8
    base, bits, nibble = start_of(place)
    return base + (where + nibble) * bits // 8


class _Twins(Port):
    """A port that loads twins, and keeps the stores."""

    exact = False

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self.stores: list[tuple[Place, Region | Array, Array]] = []

    def load(self, i: Instr, place: Place, region: Region, dtype: NumpyType) -> Array:
        return self._twin(place, region, super().load(i, place, region, dtype), dtype)

    def load_at(self, i: Instr, place: Place, at: Array, dtype: NumpyType) -> Array:
        return self._twin(place, at, super().load_at(i, place, at, dtype), dtype)

    def _twin(self, place: Place, where: Region | Array, found: Array, dtype: NumpyType) -> Array:
        name = place.dtype
        if not DTYPES[name].is_float or DTYPES[name].bits < 8 or np.dtype(dtype) != array_of(name):
            return found
        actual = decode(name, np.ascontiguousarray(found).view(code_dtype(name)), np.float64)
        self.shadow.had_nan |= bool(np.isnan(actual).any())
        return self.shadow.get(place, where, actual)

    def store(self, i: Instr, place: Place, region: Region, codes: Array) -> None:
        self.stores.append((place, region, np.array(codes)))

    def store_at(self, i: Instr, place: Place, at: Array, codes: Array) -> None:
        self.stores.append((place, at, np.array(codes)))
