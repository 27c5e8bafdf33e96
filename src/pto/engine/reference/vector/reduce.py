"""Reductions over the lanes of a register or of each of its eight 32-byte groups, and histograms of bytes.

Lanes that are off count as the start value. A fold combines neighbours, then neighbours of these results, and
so on, with each step rounded to the element type. The extremes order -0 below +0, and a NaN is both the
largest and the smallest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.algorithms import kind_of
from ....isa.row import Row
from ...elements import Array, code_dtype
from ..instr import Instr
from ..meaning import Meaning, Numbers, compiled, computed
from ..registry import Execute, builder, executor, expressed
from .lanes import active, bits, full, put_mask, put_raw, raw, width

#: The number of 32-byte groups in a register.
GROUPS = 8


def _lanes(i: Instr) -> tuple[Array, Array]:
    """Return the elements of the input, and a mask of its active lanes."""
    return raw(i, "input"), active(i, "mask", width(i, "input"))


@expressed("vector", "fold lanes")
@expressed("vector", "fold groups")
def fold(row: Row) -> Execute:
    """Make an executor that folds the lanes of each group, from the start value on."""
    groups = GROUPS if row.over == "fold groups" else 1
    step = compiled(row.expr)
    source = next(n for n in step.names if n != "acc")
    adds, largest = row.expr == f"acc + {source}", {f"max(acc, {source})": True, f"min(acc, {source})": False}
    put = _put_groups if groups > 1 else _put_first

    def execute(i: Instr) -> None:
        x, on = _lanes(i)
        x = np.where(on, x, _start(row.start, x.dtype)).reshape(groups, -1)
        if row.expr in largest:
            put(i, _extremes(x, largest[row.expr]))
        elif not adds:
            put(i, _stepped(Numbers(i, i.dtype(source)), x, step, source))
        elif x.dtype.kind in "iu":
            put(i, i.encoded(x.sum(axis=1, dtype=np.int64), i.dtype("r")))
        else:
            while x.shape[1] > 1:
                x = x[:, 0::2] + x[:, 1::2]
            put(i, x[:, 0])

    return execute


def _start(start: str, dtype: np.dtype[np.generic]) -> Any:
    """Return the value for a lane that is off."""
    if start in ("least", "greatest"):
        return _identity(dtype, largest=start == "least")
    return dtype.type(int(start))


def _stepped(n: Numbers, x: Array, step: Meaning, source: str) -> Array:
    """Combine neighbours until one is left, with every step rounded to an element."""
    found = computed(n.instr.decoded(n.dtype, x))
    while found.shape[1] > 1:
        made = step(n, {"acc": found[:, 0::2], source: found[:, 1::2]})
        found = n.round(made).astype(found.dtype)
    return n.instr.encoded(found[:, 0], n.instr.dtype("r"))


def _extremes(x: Array, largest: bool) -> Array:
    """Return the largest or smallest element of each row."""
    found = x.max(axis=1) if largest else x.min(axis=1)
    if x.dtype.kind == "f" and np.count_nonzero(found) < found.size:
        wanted = ((x == 0) & (np.signbit(x) != largest)).any(axis=1)
        zero = np.where(wanted == largest, x.dtype.type(0.0), x.dtype.type(-0.0))
        found = np.where(found == 0, zero, found)
    return found


def _put_first(i: Instr, found: Array) -> None:
    """Store the results in the first lanes, followed by zeros."""
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


@executor("lane pair sums")
def pair_totals(i: Instr) -> None:
    """Store sums of neighbours (hw), or running sums (doc)."""
    x, on = _lanes(i)
    x = np.where(on, x, np.zeros(1, x.dtype))
    if i.core.semantics.vcpadd_mode == "hw":
        _put_first(i, x[0::2] + x[1::2])
    else:  # the running sum starts at +0, which makes a -0 at its head positive
        put_raw(i, "r", np.add.accumulate(x) + x.dtype.type(0))


# -- extremes ----------------------------------------------------------------------------------------------


def _identity(dtype: np.dtype[Any], largest: bool) -> object:
    """Return the extreme of no lanes."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if largest else np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if largest else limits.max)


def _numbers(i: Instr, x: Array) -> Array:
    """Return elements in a type with fast comparisons."""
    return i.decoded(i.args["input"].dtype, x) if x.dtype.kind == "f" else x


def _find(x: Array, on: Array, largest: bool) -> int | None:
    """Return the first lane with the extreme; None if all lanes are off."""
    lanes = None
    if not full(on):
        lanes = on.nonzero()[0]
        if not lanes.size:
            return None
        x = x[lanes]
    at = int(x.argmax() if largest else x.argmin())  # the first NaN if there is one
    if x.dtype.kind == "f" and not x[at]:
        zeros = (x == 0) & (np.signbit(x) != largest)
        at = int(zeros.argmax()) if np.count_nonzero(zeros) else at
    return at if lanes is None else int(lanes[at])


@builder("extreme lane")
def extreme(row: Row) -> Execute:
    """Make an executor that stores the extreme in lane 0, and its lane as an unsigned integer in lane 1."""
    largest = kind_of(row)[1] == "largest"

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
        i.store_raw("r", rest, (0, 1))  # bits, not numbers: they have no shadow

    return execute


@builder("extreme lane and mask")
def extreme_and_mask(row: Row) -> Execute:
    """Make an executor that stores the extreme in lane 0, and a mask of the lanes that are equal to it."""
    largest = kind_of(row)[1] == "largest"

    def execute(i: Instr) -> None:
        x, on = _lanes(i)
        at = _find(_numbers(i, x), on, largest)
        found = x[at : at + 1] if at is not None else np.array([_identity(x.dtype, largest)])
        _put_first(i, found)
        put_mask(i, "p", on & (x == found), width(i, "r"))

    return execute


# -- histograms --------------------------------------------------------------------------------------------


@builder("lane histogram")
def histogram(row: Row) -> Execute:
    """Make an executor that counts byte values, or values up to each, in one half of the 256 bins."""
    cumulative = kind_of(row)[1] == "up to each"

    def execute(i: Instr) -> None:
        half = i.args["bin"]
        i.require(half in (0, 1), f"expects bin to be 0 or 1, got {half}")
        counts = np.bincount(bits(i, "source")[active(i, "mask", 1)], minlength=256)
        if cumulative:
            counts = counts.cumsum()
        put_raw(i, "r", bits(i, "acc") + counts[128 * half : 128 * half + 128].astype(np.uint16))

    return execute
