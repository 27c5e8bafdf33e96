"""Reductions over the lanes of a register or of each of its eight 32-byte groups, and histograms of bytes.

Lanes that are off take no part. A sum of floats adds neighbours, then neighbours of these sums, and so on,
each sum rounded to the element type; lanes that are off stand in the tree as +0. The extremes order -0 below
+0, and a NaN is both the largest and the smallest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.row import Row
from ...elements import Array, code_dtype
from ..instr import Instr
from ..registry import Execute, builder, executor
from .lanes import active, bits, full, put_mask, put_raw, raw, width

#: 32-byte groups of a register.
GROUPS = 8


def _lanes(i: Instr) -> tuple[Array, Array]:
    """The elements of the input, and which lanes of it are on."""
    return raw(i, "input"), active(i, "mask", width(i, "input"))


def _sums(i: Instr, groups: int) -> Array:
    """The sums of equal groups of lanes."""
    x, on = _lanes(i)
    x = np.where(on, x, np.zeros(1, x.dtype)).reshape(groups, -1)
    if x.dtype.kind in "iu":
        return i.encoded(x.sum(axis=1, dtype=np.int64), i.dtype("r"))
    while x.shape[1] > 1:
        x = x[:, 0::2] + x[:, 1::2]
    return x[:, 0]


def _put_first(i: Instr, found: Any) -> None:
    """The results in the first lanes, zeros behind them."""
    out = np.zeros(i.args["r"].lanes, found.dtype)
    out[: found.size] = found
    put_raw(i, "r", out)


def _put_groups(i: Instr, found: Array) -> None:
    if i.core.semantics.vcg_layout == "hw":
        _put_first(i, found)
        return
    out = np.zeros(i.args["r"].lanes, found.dtype)
    out[:: out.size // GROUPS] = found
    put_raw(i, "r", out)


@executor("vcadd")
def total(i: Instr) -> None:
    _put_first(i, _sums(i, 1))


@executor("vcgadd")
def group_totals(i: Instr) -> None:
    _put_groups(i, _sums(i, GROUPS))


@executor("vcpadd")
def pair_totals(i: Instr) -> None:
    """Sums of neighbours (hw), or running sums (doc)."""
    x, on = _lanes(i)
    x = np.where(on, x, np.zeros(1, x.dtype))
    if i.core.semantics.vcpadd_mode == "hw":
        _put_first(i, x[0::2] + x[1::2])
    else:  # the running sum starts at +0, which makes a -0 at its head positive
        put_raw(i, "r", np.add.accumulate(x) + x.dtype.type(0))


# -- extremes ----------------------------------------------------------------------------------------------


def _identity(dtype: np.dtype[Any], largest: bool) -> Any:
    """What stands for no lane at all."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if largest else np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if largest else limits.max)


def _numbers(i: Instr, x: Array) -> Array:
    """Elements in a type that compares fast."""
    return i.decoded(i.args["input"].dtype, x) if x.dtype.kind == "f" else x


def _find(x: Array, on: Array, largest: bool) -> int | None:
    """The first lane that holds the extreme; None where none is on."""
    lanes = None
    if not full(on):
        lanes = on.nonzero()[0]
        if not lanes.size:
            return None
        x = x[lanes]
    at = int(x.argmax() if largest else x.argmin())  # of NaNs the first one
    if x.dtype.kind == "f" and not x[at]:
        zeros = (x == 0) & (np.signbit(x) != largest)
        at = int(zeros.argmax()) if np.count_nonzero(zeros) else at
    return at if lanes is None else int(lanes[at])


@builder("vcmax", "vcmin")
def extreme(row: Row) -> Execute:
    """The largest or smallest element in lane 0, and its lane as an unsigned integer in lane 1."""
    largest = row.name == "vcmax"

    def execute(i: Instr) -> None:
        x, on = _lanes(i)
        at = _find(_numbers(i, x), on, largest)
        found = x[at : at + 1] if at is not None else np.array([_identity(x.dtype, largest)])
        code = code_dtype(i.args["r"].dtype)
        if i.port.plain:
            out = np.zeros(x.size, code)
            out[0] = found.view(code)[0]
            out[1] = at or 0
            i.args["r"].array = out
            return
        rest = np.zeros((1, x.size - 1), code)
        rest[0, 0] = at or 0
        i.store_raw("r", found.reshape(1, 1))
        i.store_raw("r", rest, (0, 1))  # bits, not a number: no shadow follows them

    return execute


@builder("vcgmax", "vcgmin")
def group_extremes(row: Row) -> Execute:
    largest = row.name == "vcgmax"

    def execute(i: Instr) -> None:
        x, on = _lanes(i)
        x = np.where(on, x, _identity(x.dtype, largest)).reshape(GROUPS, -1)
        found = x.max(axis=1) if largest else x.min(axis=1)
        if x.dtype.kind == "f" and np.count_nonzero(found) < found.size:
            wanted = ((x == 0) & (np.signbit(x) != largest)).any(axis=1)
            zero = np.where(wanted == largest, x.dtype.type(0.0), x.dtype.type(-0.0))
            found = np.where(found == 0, zero, found)
        _put_groups(i, found)

    return execute


@builder("vcbmax", "vcbmin")
def extreme_and_mask(row: Row) -> Execute:
    """The extreme in lane 0, and a mask of the lanes that are equal to it."""
    largest = row.name == "vcbmax"

    def execute(i: Instr) -> None:
        x, on = _lanes(i)
        at = _find(_numbers(i, x), on, largest)
        found = x[at : at + 1] if at is not None else np.array([_identity(x.dtype, largest)])
        _put_first(i, found)
        put_mask(i, "p", on & (x == found), width(i, "r"))

    return execute


# -- histograms --------------------------------------------------------------------------------------------


@builder("chistv2", "dhistv2")
def histogram(row: Row) -> Execute:
    """Counts of byte values, or of those up to each value, in one half of the 256 bins."""
    cumulative = row.name == "chistv2"

    def execute(i: Instr) -> None:
        half = i.args["bin"]
        i.require(half in (0, 1), f"bin is 0 or 1, got {half}")
        counts = np.bincount(bits(i, "source")[active(i, "mask", 1)], minlength=256)
        if cumulative:
            counts = counts.cumsum()
        put_raw(i, "r", bits(i, "acc") + counts[128 * half : 128 * half + 128].astype(np.uint16))

    return execute
