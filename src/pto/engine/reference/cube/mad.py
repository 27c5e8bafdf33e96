"""Products of an L0A and an L0B operand into L0C: plain, accumulating, biased, with MX scales.

The sums are those of tile products (`matmul.py`): a chain of fused multiply-adds with k rising from 0, with
the old contents or the bias added at the end. `sat` replaces infinities and NaN of the inputs by finite
numbers, and keeps sums finite. `nosat`, and the reset value of the control register, keep infinities and NaN,
like tile products. `n_dir` orders results and has no effect here.
"""

from __future__ import annotations

import numpy as np

from ....isa import ctrl
from ....isa.dtypes import DTYPES
from ...elements import Array
from ...memory import Pointer
from ..instr import Instr
from ..matmul import MX_GROUP, dot, mx_factors, reduced, saturated_dot
from ..registry import executor
from . import matrix
from .matrix import aligned, extent

#: The largest m, n and k.
LIMIT = 4095
_F32_MAX = np.finfo(np.float32).max


@executor("micro matrix product")
def mad(i: Instr) -> None:
    m, n, k = (extent(i, name, 1, LIMIT) for name in "mnk")
    lhs, rhs, dst = (aligned(i, name) for name in ("lhs", "rhs", "dst"))
    scaled, control = i.kind == "mx", _control(i)
    saturated = not ctrl.bit(control, ctrl.OBEYED) and not ctrl.bit(control, ctrl.SATURATION)
    saturated = saturated and DTYPES[dst.dtype].is_float
    if scaled:
        i.require(k % (2 * MX_GROUP) == 0, f"expects k to be a multiple of {2 * MX_GROUP}, got {k}")
    elif DTYPES[lhs.dtype].bits == 4:
        i.require(k % 2 == 0, f"expects an even k, got {k}")
    a = i.values(_left(i, lhs, m, k), (m, k))
    b = i.values(matrix.right(rhs, k, n), (k, n))
    if saturated:
        a, b = _ordinary(a, lhs.dtype), _ordinary(b, rhs.dtype)
    if scaled:
        groups = k // MX_GROUP
        a = a * mx_factors(i.values(matrix.left_scales(i, lhs, m, groups), (m, groups)), 1, k)
        b = b * mx_factors(i.values(matrix.right_scales(i, rhs, groups, n), (groups, n)), 0, k)
        if saturated:  # a scale may be NaN, too
            a, b = (np.where(np.isnan(x), x.dtype.type(0), x) for x in (a, b))
    elif lhs.dtype == "f32" and i.exact:
        a, b = reduced(i, a, control), reduced(i, b, control)
    place = matrix.accumulator(dst, m, n)
    out = saturated_dot(a, b) if saturated and i.exact else dot(i, a, b)
    if _onto(i):
        out = i.values(place, (m, n)) + out
    elif i.has("bias"):
        out = i.values(aligned(i, "bias"), (1, n)) + out
    i.store(place, np.clip(out, -_F32_MAX, _F32_MAX) if saturated else out)


def _onto(i: Instr) -> bool:
    """Return whether the product is added to the contents of dst."""
    assert i.op.row is not None
    return i.op.row.operands[i.op.row.operand_index["dst"]].reads


def _left(i: Instr, lhs: Pointer, m: int, k: int) -> matrix.Matrix:
    """Return the left operand; a single row is a vector of consecutive elements, unless `disable_gemv` is
    set.
    """
    if m == 1 and not i.attr("disable_gemv"):
        return matrix.plain(lhs, k, 1)
    return matrix.left(i, lhs, m, k)


def _ordinary(x: Array, dtype: str) -> Array:
    """Replace infinities by the largest numbers of a type, and NaN by 0."""
    top = DTYPES[dtype].max_finite
    return np.where(np.isnan(x), x.dtype.type(0), np.clip(x, -top, top))


def _control(i: Instr) -> int:
    """Return the control word of a product: the register, changed by the clauses of the product."""
    word, sat = i.control, i.attr("sat_mode")
    tf32 = i.attr("tf32_mode") if i.kind != "mx" else None
    if tf32 or sat:
        word = ctrl.with_field(word, (ctrl.OBEYED, 1), 0)
        word = ctrl.with_field(word, (ctrl.SATURATION, 1), sat != "sat")
    if tf32:
        word = ctrl.with_field(word, (ctrl.TF32, 1), 1)
        word = ctrl.with_field(word, (ctrl.TF32_AWAY, 1), tf32 == "round_away")
    elif sat and i.isa == "cpu":  # the simulator keeps full precision without a tf32 clause
        word = ctrl.with_field(word, (ctrl.TF32, 1), 0)
    return word
