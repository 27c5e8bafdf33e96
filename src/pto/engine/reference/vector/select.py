"""Comparison into masks, selection and permutation of lanes, and registers made from scalars."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ....isa.dtypes import DTYPES
from ...elements import Array, code_dtype
from ...registers import Register
from ..instr import Instr
from ..meaning import Numbers
from ..registry import executor
from .lanes import active, bits, put, put_mask, put_raw, raw, values, width

_COMPARE: dict[str, Callable[[Any, Any], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _compared(i: Instr, source: str, other: Any) -> None:
    size = width(i, source)
    found = _COMPARE[i.attr("cmp_mode")](values(i, source), other)
    put_mask(i, "m", found & active(i, "seed", size), size)


@executor("vcmp")
def compare(i: Instr) -> None:
    _compared(i, "src0", values(i, "src1"))


@executor("vcmps")
def compare_scalar(i: Instr) -> None:
    _compared(i, "src", Numbers(i, i.args["src"].dtype).scalar(i.args["scalar"]))


@executor("vsel")
def select(i: Instr) -> None:
    put_raw(i, "r", np.where(active(i, "mask", width(i, "r")), raw(i, "src0"), raw(i, "src1")))


@executor("vselr", "vselrv2")
def permute(i: Instr) -> None:
    """Indices count lanes from the start of the register and wrap."""
    source = raw(i, "src")
    put_raw(i, "r", source[bits(i, "idx") & (source.size - 1)])


# -- registers from scalars --------------------------------------------------------------------------------


def _element(i: Instr, value: float | int) -> Array:
    """A scalar as one element of the result; an integer that is too wide loses its upper bits."""
    dtype = i.args["r"].dtype
    return i.encoded(np.array([value], np.float64 if DTYPES[dtype].is_float else np.int64), dtype)


@executor("vbr")
def broadcast(i: Instr) -> None:
    put_raw(i, "r", np.repeat(_element(i, i.args["value"]), i.args["r"].lanes))


@executor("vdup")
def duplicate(i: Instr) -> None:
    """A scalar, or the first or last lane of a register."""
    source = i.args["input"]
    if isinstance(source, Register):
        last = i.attr("position").endswith("HIGHEST")
        element = raw(i, "input")[source.lanes - 1 :] if last else raw(i, "input")[:1]
    else:
        element = _element(i, source)
    put_raw(i, "r", np.repeat(element, i.args["r"].lanes), active(i, "mask", width(i, "r")))


@lru_cache(maxsize=16)
def _steps(lanes: int, sign: int, real: bool) -> Array:
    return sign * np.arange(lanes, dtype=np.float64 if real else np.int64)


@executor("vci")
def count(i: Instr) -> None:
    """Sums are exact before they are rounded to the element type, or wrap."""
    r = i.args["r"]
    sign = -1 if i.attr("order") in ("DESC", "DEC_ORDER") else 1
    put(i, "r", i.args["index"] + _steps(r.lanes, sign, DTYPES[r.dtype].is_float))


@executor("vbitcast")
def reinterpret(i: Instr) -> None:
    source, r = i.args["input"], i.args["r"]
    if source.dtype == r.dtype:
        put_raw(i, "r", raw(i, "input"))
    else:
        put_raw(i, "r", np.ascontiguousarray(bits(i, "input")).view(code_dtype(r.dtype)))
