"""Rearrangement of lanes: interleaving, windows, compaction, and changes of lane width."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...elements import Array
from ...memory import array_of
from ..instr import Instr
from ..registry import executor
from .lanes import active, bits, put_raw, raw, width


@lru_cache(maxsize=32)
def _interleaved(lanes: int) -> Array:
    """Return for each lane of the interleaved stream the index of its source in lhs ++ rhs."""
    return np.arange(2 * lanes, dtype=np.intp).reshape(2, lanes).T.ravel()


@lru_cache(maxsize=32)
def _separated(lanes: int) -> Array:
    """Return for each lane of even lanes ++ odd lanes the index of its source in lhs ++ rhs."""
    return np.arange(2 * lanes, dtype=np.intp).reshape(lanes, 2).T.ravel()


def _rearranged(i: Instr) -> Array:
    """Return both results of vintlv or vdintlv, one after another."""
    order = (_separated if i.kind == "even and odd" else _interleaved)(i.args["lhs"].lanes)
    return np.concatenate((raw(i, "lhs"), raw(i, "rhs")))[order]


@executor("two registers")
def interleave(i: Instr) -> None:
    found, lanes = _rearranged(i), i.args["lhs"].lanes
    put_raw(i, "low", found[:lanes])
    put_raw(i, "high", found[lanes:])


@executor("half of two registers")
def interleave_half(i: Instr) -> None:
    put_raw(i, "r", _rearranged(i)[_part(i, i.args["lhs"].lanes)])


def _part(i: Instr, lanes: int) -> slice:
    """Return the slice of the lower or upper `lanes` of twice as many, selected by `part`."""
    return slice(lanes, None) if i.attr("part") == "HIGHER" else slice(lanes)


# -- windows -----------------------------------------------------------------------------------------------


@executor("slide")
def slide(i: Instr) -> None:
    """Store a window over an older vector followed by a newer one; the older one of vshift is all zeros."""
    newer = raw(i, "src0" if i.has("src0") else "src")
    older = raw(i, "src1") if i.has("src1") else np.zeros_like(newer)
    amount, lanes = i.args["amt"], newer.size
    i.require(0 <= amount <= lanes, f"expects amt to be between 0 and the lane count {lanes}, got {amount}")
    put_raw(i, "r", np.concatenate((older[lanes - amount :], newer[: lanes - amount])))


# -- by mask and index -------------------------------------------------------------------------------------


@executor("squeeze")
def squeeze(i: Instr) -> None:
    """Move the active lanes to the front; SQZN gets their number of bytes, for streams."""
    size = width(i, "src")
    kept = raw(i, "src")[active(i, "mask", size)]
    found = np.zeros(i.args["r"].lanes, kept.dtype)
    found[: kept.size] = kept
    put_raw(i, "r", found)
    i.store_raw(i.core.special_register("SQZN", "i64"), np.array([[kept.size * size]]))


@executor("count below")
def count_below(i: Instr) -> None:
    on = active(i, "mask", width(i, "r"))
    put_raw(i, "r", (np.cumsum(on) - on).astype(array_of(i.args["r"].dtype)))  # 256 lanes of i8 wrap


# -- lane width --------------------------------------------------------------------------------------------


@executor("pack lanes")
def pack(i: Instr) -> None:
    """Pack the lanes of two sources, or of one source into half of a register of zeros."""
    low = bits(i, "src0")
    lanes = low.size
    found = np.zeros(2 * lanes, f"u{low.itemsize // 2}")
    if i.has("src1"):
        found[lanes:] = bits(i, "src1")
        found[:lanes] = low
    else:
        found[_part(i, lanes)] = low
    put_raw(i, "r", found)


@executor("unpack lanes")
def unpack(i: Instr) -> None:
    """Extend half of the lanes; the type of the source decides about signs."""
    lanes = i.args["src"].lanes // 2
    chosen = _part(i, lanes)
    if i.has("half"):
        half = i.args["half"]
        i.require(half in (0, 1), f"expects half to be 0 or 1, got {half}")
        chosen = slice(half * lanes, (half + 1) * lanes)
    put_raw(i, "r", raw(i, "src")[chosen].astype(array_of(i.args["r"].dtype)))
