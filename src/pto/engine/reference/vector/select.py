"""Permutation of lanes, and registers made from scalars."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....isa.dtypes import DTYPES
from ...elements import Array, code_dtype
from ...registers import Register
from ..instr import Instr
from ..registry import executor
from .lanes import active, bits, put, put_raw, raw, width


@executor("permutation")
def permute(i: Instr) -> None:
    """Permute lanes; indices count from the start of the register, and wrap."""
    assert i.op.row is not None
    index = i.op.row.operands[1].name
    source = raw(i, "src")
    put_raw(i, "r", source[bits(i, index) & (source.size - 1)])


# -- registers from scalars --------------------------------------------------------------------------------


def _element(i: Instr, value: float | int) -> Array:
    """Return a scalar as one element of the result; an integer that is too wide loses its upper bits."""
    dtype = i.args["r"].dtype
    return i.encoded(np.array([value], np.float64 if DTYPES[dtype].is_float else np.int64), dtype)


@executor("broadcast scalar")
def broadcast(i: Instr) -> None:
    put_raw(i, "r", np.repeat(_element(i, i.args["value"]), i.args["r"].lanes))


@executor("duplicate")
def duplicate(i: Instr) -> None:
    """Repeat a scalar, or the first or last lane of a register."""
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


@executor("consecutive lanes")
def count(i: Instr) -> None:
    """Store consecutive numbers: exact sums, rounded to the element type, or wrapped."""
    r = i.args["r"]
    sign = -1 if i.attr("order") in ("DESC", "DEC_ORDER") else 1
    put(i, "r", i.args["index"] + _steps(r.lanes, sign, DTYPES[r.dtype].is_float))


@executor("lane bits")
def reinterpret(i: Instr) -> None:
    source, r = i.args["input"], i.args["r"]
    if source.dtype == r.dtype:
        put_raw(i, "r", raw(i, "input"))
    else:
        put_raw(i, "r", np.ascontiguousarray(bits(i, "input")).view(code_dtype(r.dtype)))
