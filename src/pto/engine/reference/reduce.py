"""Reductions along one axis of a tile.

Row forms fold the columns of each row into column 0, column forms the rows of each column into row 0. A fold
takes the elements in ascending order, one at a time, because the order and the rounding of every step affect
the result. The largest and the smallest element are found by index: the first of equal ones stays, also of
zeros of different sign, and a NaN counts only as the first element.
"""

from __future__ import annotations

import numpy as np

from ...isa.algorithms import kind_of
from ...isa.dtypes import DTYPES
from ...isa.row import Row
from .. import elements
from ..elements import Array
from ..memory import array_of
from .instr import Instr
from .meaning import Meaning, Numbers, compiled, computed
from .registry import Execute, builder, executor, expressed

#: Steps that are functions of NumPy, and steps that keep the largest (True) or smallest element.
_UFUNCS: dict[str, np.ufunc] = {"acc + src": np.add, "acc * src": np.multiply}
_LARGEST = {
    "where(acc < src, src, acc)": True,
    "where(src > acc, src, acc)": True,
    "where(src < acc, src, acc)": False,
}


def _axis(row: Row) -> int:
    return 1 if row.over == "fold columns" else 0


@expressed("tile", "fold columns")
@expressed("tile", "fold rows")
def fold(row: Row) -> Execute:
    """Make an executor that folds the elements of one axis, from the start value or the first element on."""
    if row.expr in _LARGEST and row.start == "first":
        return _extreme(row)
    axis = _axis(row)
    step, ufunc = compiled(row.expr), _UFUNCS.get(row.expr)

    def execute(i: Instr) -> None:
        x = i.values("src")
        rows, cols = x.shape
        dtype = i.dtype("dst")
        steps = array_of("f32" if row.steps == "f32" and dtype in ("f16", "bf16") else dtype)
        if not i.exact and DTYPES[dtype].is_float:
            steps = np.dtype(np.float64)
        if not rows or not cols:
            # On hardware an error of the program; here a row without columns gives the start value.
            if axis == 1 and rows and row.start != "first":
                i.store("dst", np.full((rows, 1), int(row.start), steps))
            return
        if row.pairs and i.attr(row.pairs) and i.isa in row.odd_one:
            assert ufunc is not None
            last = fold_pairs(x if axis == 0 else x.T, ufunc, steps, row.odd_one[i.isa])
        elif ufunc is None or str(ufunc.identity) != row.start:
            last = _stepped(Numbers(i, dtype), x if axis == 0 else x.T, step, row)
        elif steps.kind in "iu":
            i.store("dst", ufunc.reduce(x.astype(steps, copy=False), axis=axis, dtype=steps, keepdims=True))
            return
        else:
            last = fold_columns(x if axis == 0 else x.T, ufunc, steps)
            # The step from the start value. Adding 0 changes only a sum of negative zeros.
            last = ufunc(last, last.dtype.type(ufunc.identity))
        i.store("dst", last[None, :] if axis == 0 else last[:, None])

    return execute


def _stepped(n: Numbers, x: Array, step: Meaning, row: Row) -> Array:
    """Fold the rows of a matrix one by one; every step is rounded to an element, except with f32 steps."""
    x = computed(x)
    total = x[0] if row.start == "first" else np.full_like(x[0], int(row.start))
    for line in x[1:] if row.start == "first" else x:
        found = step(n, {"acc": total, "src": line})
        total = (found if row.steps == "f32" and found.dtype.kind == "f" else n.round(found)).astype(x.dtype)
    return total


def fold_columns(x: Array, step: np.ufunc, steps: np.dtype[np.generic]) -> Array:
    """Fold the columns of a matrix from the first row to the last, with every step rounded to `steps`."""
    if steps.itemsize == 2:
        name = "f16" if steps == np.float16 else "bf16"
        return elements.loops().fold(name, np.ascontiguousarray(x, np.float32), step is np.multiply)
    x = x.astype(steps, copy=False)
    if x.flags.f_contiguous:  # NumPy steps faster along the axis that is not contiguous
        return step.accumulate(x.T, axis=1, dtype=steps)[:, -1]
    return step.accumulate(x, axis=0, dtype=steps)[-1]  # reduce would add pairwise


def fold_pairs(x: Array, step: np.ufunc, steps: np.dtype[np.generic], odd_one: str) -> Array:
    """Fold the columns of a matrix as trees of neighbours, with every step rounded to `steps`."""
    x = x.astype(steps)
    while len(x) > 1:
        left = x[-1:] if len(x) % 2 else None
        x = step(x[: len(x) // 2 * 2 : 2], x[1 : len(x) // 2 * 2 : 2], dtype=steps)
        if left is not None:
            at = 0 if odd_one == "first" else -1
            x[at] = step(x[at], left[0], dtype=steps)
    return x[0]


def _extreme(row: Row) -> Execute:
    """Make an executor that finds the largest or smallest element."""
    largest, axis = _LARGEST[row.expr], _axis(row)

    def execute(i: Instr) -> None:
        x = i.values("src")
        if not x.size:
            return
        at = _find(x, axis, largest)
        if i.dtype("dst") == i.dtype("src"):
            i.store_raw("dst", np.take_along_axis(i.raw("src"), at, axis))
        else:
            i.store("dst", np.take_along_axis(x, at, axis))

    return execute


@builder("index of extreme")
def arg_extreme(row: Row) -> Execute:
    """Make an executor that stores the index of the largest or smallest element, and, with `dstVal`, the
    element."""
    largest, axis = kind_of(row)[1] == "largest", _axis(row)

    def execute(i: Instr) -> None:
        x = i.values("src")
        if not x.size:
            return
        at = _find(x, axis, largest)
        found = np.take_along_axis(i.raw("src"), at, axis) if i.has("dstVal") else None
        i.store("dst", at)
        if found is not None:
            i.store_raw("dstVal", found)

    return execute


def _find(x: Array, axis: int, largest: bool) -> Array:
    """Return the indices of the first largest (or smallest) elements along an axis, which stays with length
    1."""
    find = np.argmax if largest else np.argmin
    if x.dtype.kind != "f":
        return find(x, axis=axis, keepdims=True)
    nan = np.isnan(x)
    if not nan.any():
        return find(x, axis=axis, keepdims=True)
    at = find(np.where(nan, -np.inf if largest else np.inf, x), axis=axis, keepdims=True)
    return np.where(nan[:, :1] if axis == 1 else nan[:1, :], 0, at)


@executor("pair sums")
def pair_sums(i: Instr) -> None:
    """Store the sums of neighbouring columns; the rest of dst becomes zero, also outside its valid region."""
    rows, cols = i.valid("dst")
    x = i.values("src0", (rows, cols))
    left = x[:, 0::2]
    right = np.zeros_like(left)
    right[:, : cols // 2] = x[:, 1::2]
    out = np.zeros(i.tile("dst").shape, x.dtype)
    out[:rows, : left.shape[1]] = left + right
    i.store("dst", out)
