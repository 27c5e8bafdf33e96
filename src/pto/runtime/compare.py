"""Comparison of results with golden: number of mismatches, largest error, first mismatch.

An element matches when |actual - expected| <= atol + rtol * |expected|. Equal infinities match, NaN never
does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..diag import Diagnostic
from ..isa.record import Record

Array = np.ndarray[Any, Any]


class Comparison(Record):
    """One output. The errors are the largest among finite elements; `first` is the index of the first
    element that does not match, with both values."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    total: int
    mismatched: int
    max_abs: float
    max_rel: float
    rtol: float
    atol: float
    first: tuple[tuple[int, ...], Any, Any] | None = None
    misshapen: tuple[int, ...] | None = None  # the shape of golden, if the shapes differ
    used: float = math.nan  # the largest error, as a share of the tolerance for its element

    @property
    def ok(self) -> bool:
        return self.mismatched == 0 and self.misshapen is None

    def problem(self, case: str) -> Diagnostic:
        """Return the diagnostic of a comparison that is not ok."""
        what = f"case {case}: output '{self.name}' does not match golden"
        if self.first is None:
            d = Diagnostic("PTO-E2606", f"{what}: the shapes differ")
            d.expected, d.got = _dims(self.misshapen or ()), _dims(self.shape)
            return d
        at, actual, expected = self.first
        d = Diagnostic("PTO-E2606", f"{what}: {self.mismatched} of {self.total} elements differ")
        place = f"[{', '.join(map(str, at))}]"
        d.expected, d.got = f"{_shown(expected)} at {place} (first)", _shown(actual)
        d.notes.append((f"largest error {_shown(self.max_abs)}, relative {_shown(self.max_rel)}", None))
        d.notes.append((f"rtol={self.rtol:g}, atol={self.atol:g}", None))
        return d


def compare(name: str, actual: Array, expected: Array, rtol: float, atol: float) -> Comparison:
    """Compare an output with its golden result."""
    dtype = actual.dtype.name
    if actual.shape != expected.shape:
        if actual.size != expected.size:
            return Comparison(
                name, actual.shape, dtype, actual.size, actual.size, math.nan, math.nan, rtol, atol,
                misshapen=expected.shape,
            )  # fmt: skip
        expected = expected.reshape(actual.shape)
    a, e = _wide(actual), _wide(expected)
    with np.errstate(all="ignore"):
        off = np.abs(a - e)
        match = (off <= atol + rtol * np.abs(e)) & np.isfinite(e) | (a == e)
        finite = np.isfinite(off)
        relative = off[finite] / np.abs(e[finite])
        shares = np.where(off[finite] == 0, 0.0, off[finite] / (atol + rtol * np.abs(e[finite])))
    largest = float(off[finite].max(initial=0.0))
    worst = float(relative[np.isfinite(relative)].max(initial=0.0))
    wrong = np.flatnonzero(~match)
    first = None
    if wrong.size:
        at = tuple(int(i) for i in np.unravel_index(int(wrong[0]), actual.shape))
        first = at, actual[at].item(), expected[at].item()
    return Comparison(
        name, actual.shape, dtype, actual.size, int(wrong.size), largest, worst, rtol, atol, first,
        used=float(shares.max(initial=0.0)),
    )  # fmt: skip


def _wide(array: Array) -> Array:
    """Convert to a type with exact differences: double, except for complex numbers and 64-bit integers."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
