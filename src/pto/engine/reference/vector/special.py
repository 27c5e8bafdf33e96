"""Fused arithmetic: rows that are a scalar expression, those that also convert, and the 64-bit product."""

from __future__ import annotations

import numpy as np

from ...elements import Array
from ..instr import Instr
from ..meaning import OPERATIONS, Numbers
from ..registry import executor
from .convert import converted
from .lanes import active, full, numbers, put, put_raw, values, width


def _odd(i: Instr) -> int:
    return int(i.attr("part") == "ODD")


@executor("vexpdif")
def exponential_of_difference(i: Instr) -> None:
    """The difference rounds to f32. A wider result takes every other lane."""
    found = values(i, "input") - values(i, "maximum")
    on = active(i, "mask", width(i, "input"))
    if i.args["r"].lanes != found.size:
        found, on = found[_odd(i) :: 2], on[_odd(i) :: 2]
    put(i, "r", OPERATIONS["exp"](Numbers(i, i.args["r"].dtype), found), on)


# -- conversion to a narrower type -------------------------------------------------------------------------


def _front(i: Instr, codes: Array, on: Array) -> None:
    """Elements to the front lanes of the result; zeros behind them."""
    found = np.zeros(i.args["r"].lanes, codes.dtype)
    if full(on):
        found[: codes.size] = codes
    else:
        np.copyto(found[: codes.size], codes, where=on)
    put_raw(i, "r", found)


def _converted(i: Instr, found: Array) -> Array:
    """Numbers as elements of the result: first rounded in the source's type, as a computation without the
    conversion is; integers saturate, and NaN gives 0."""
    return i.encoded(
        i.round(found, i.dtype("lhs")), i.dtype("r"), "RINT", saturate=i.dtype("r") == "i8", nan="zero"
    )


@executor("vaddreluconv")
def add_relu_convert(i: Instr) -> None:
    total = numbers(i, "lhs") + numbers(i, "rhs")
    found = OPERATIONS["max"](None, total, 0)
    _front(i, _converted(i, found), active(i, "mask", width(i, "lhs")))


@executor("vmulconv")
def multiply_convert(i: Instr) -> None:
    product = numbers(i, "lhs") * numbers(i, "rhs")
    _front(i, _converted(i, product), active(i, "mask", width(i, "lhs")))


@executor("vmulscvt")
def scale_convert(i: Instr) -> None:
    """The product is one of f32; it goes to every other lane."""
    product = values(i, "input") * Numbers(i, "f32").scalar(i.args["scalar"])
    codes = converted(i, product, "f32", "f16", i.attr("rnd"), False)
    found = np.zeros(i.args["r"].lanes, codes.dtype)
    np.copyto(found[_odd(i) :: 2], codes, where=active(i, "mask", 4))
    put_raw(i, "r", found)


# -- integers ----------------------------------------------------------------------------------------------


@executor("vmull")
def wide_product(i: Instr) -> None:
    wide = np.int64 if i.dtype("lhs") == "i32" else np.uint64
    product = (values(i, "lhs").astype(wide) * values(i, "rhs")).view(np.uint32)
    on = active(i, "mask", 4)
    put_raw(i, "low", product[::2], on)
    put_raw(i, "high", product[1::2], on)
