"""tcvt: every element as the nearest one of another type."""

from __future__ import annotations

import numpy as np

from ...isa import encoding
from ...isa.dtypes import DTYPES
from .. import elements
from .instr import Instr
from .registry import executor

#: Conversions that the hardware leaves unsaturated by default, and the only ones where A2/A3 can.
_WRAPPING = {("f16", "u8"), ("f16", "i8"), ("f32", "i16"), ("f16", "i16"), ("i64", "i32"), ("i32", "i16")}


@executor("convert")
def convert(i: Instr) -> None:
    src, dst = i.dtype("src"), i.dtype("dst")
    s, d = DTYPES[src], DTYPES[dst]
    shape = i.valid("dst")
    mode = str(i.attr("rmode")).removeprefix("CAST_")
    saturate = _saturates(i, src, dst)
    if src == dst:
        if src == "f32" and mode != "NONE":
            i.store("dst", elements.round_integral(i.values("src", shape), mode))
        else:
            i.store_raw("dst", i.raw("src", shape))
        return
    values = i.values("src", shape)
    if d.is_int:
        if s.is_float and not saturate and d.bits < 32 and i.isa != "cpu":
            values = np.clip(
                values.astype(np.float64), -(2.0**31), 2.0**31 - 1
            )  # the hardware's way to low bits
        i.store("dst", values, mode=mode, saturate=saturate)
        return
    if s.is_int:
        values = values.astype(np.float64)  # 64-bit integers round twice
    elif saturate and encoding.keeps_infinity(src, dst):
        saturate = False
    elif saturate and d.inf and i.isa != "cpu":  # the hardware clamps only finite values
        limit = d.max_finite
        values = np.where(np.isfinite(values), np.clip(values, -limit, limit), values)
        saturate = False
    elif saturate and dst in ("f16", "bf16"):  # the clamp of the simulator makes NaN the upper limit
        values = np.where(np.isnan(values), np.float32(d.max_finite), values)
    i.store("dst", values, mode=encoding.rounding(dst, "NONE"), saturate=saturate)


def _saturates(i: Instr, src: str, dst: str) -> bool:
    asked = i.attr("sat_mode")
    if asked == "ON":
        return True
    if i.isa == "cpu":
        return False
    wraps = (src, dst) in _WRAPPING
    return not wraps if asked is None or i.isa == "a2a3" else False
