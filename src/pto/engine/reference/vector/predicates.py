"""Predicate generation and algebra: masks from patterns and counts, and masks from masks.

All instructions work on the 256 bits of a mask. Lanes of a granularity of 1, 2 or 4 bytes are every bit,
every second or every fourth bit. Producers set only the lowest bit of each lane; moves and views keep all
bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....isa.algorithms import kind_of
from ....isa.row import Row
from ...elements import Array
from ...registers import GRANULES, WIDTH
from ..instr import Instr
from ..meaning import Numbers, compiled
from ..registry import Execute, builder, executor, expressed
from .lanes import granule, image, put_image


def _size(row: Row) -> int:
    """Return the number of bytes that a lane covers."""
    return GRANULES[kind_of(row)[1]]


# -- generation --------------------------------------------------------------------------------------------


@lru_cache(maxsize=2048)
def _first(count: int, size: int) -> Array:
    """Return the image with the first `count` lanes on."""
    found = np.zeros(WIDTH, np.uint8)
    found[: count * size : size] = 1
    found.flags.writeable = False  # registers share it
    return found


@lru_cache(maxsize=2048)
def pattern_image(pattern: str, size: int, semantics: str) -> Array:
    """Return the image of a pattern, for lanes of `size` bytes."""
    lanes = WIDTH // size
    if pattern.startswith("PAT_VL"):
        return _first(int(pattern[6:]), size)
    found = np.zeros(WIDTH, np.uint8)
    on = found[::size]
    share = {"PAT_ALL": lanes, "PAT_ALLF": 0, "PAT_H": lanes // 2, "PAT_Q": lanes // 4}.get(pattern)
    if share is None:
        on[:: int(pattern[5:])] = 1  # PAT_M3, PAT_M4
    elif semantics == "doc":
        on[lanes - share :] = 1
    else:
        on[:share] = 1
    found.flags.writeable = False
    return found


@builder("mask by pattern")
def build_pattern(row: Row) -> Execute:
    size = _size(row)

    def execute(i: Instr) -> None:
        if "rem" in i.args:
            found = _first(min(max(i.args["rem"], 0), WIDTH // size), size)
        else:
            found = pattern_image(i.attr("pattern"), size, i.core.semantics.pat_h)
        put_image(i, "mask", found, size)

    return execute


@builder("mask of the rest")
def build_tail(row: Row) -> Execute:
    size = _size(row)
    lanes = WIDTH // size

    def execute(i: Instr) -> int:
        count = i.args["scalar"] & 0xFFFFFFFF
        put_image(i, "mask", _first(min(count, lanes), size), size)
        rest = max(count - lanes, 0)
        return rest - (rest >> 31 << 32)  # as i32

    return execute


# -- algebra -----------------------------------------------------------------------------------------------


def _put_lanes(i: Instr, found: Array) -> None:
    """Write the result with only the lowest bit of each lane."""
    size = granule(i, "dst")
    if size > 1:
        kept = np.zeros(WIDTH, np.uint8)
        kept[::size] = found[::size]
        found = kept
    put_image(i, "dst", found)


@expressed("predicate")
def build_algebra(row: Row) -> Execute:
    """Make the executor of a row with an expression over lanes, which are truth values."""
    algebra = compiled(row.expr)

    def execute(i: Instr) -> None:
        lanes = {name: image(i, name).view(np.bool_) for name in algebra.names}
        found = algebra(Numbers(i, "u8"), lanes)
        if row.gate and i.core.semantics.palgebra_gate == "hw":
            found = found & image(i, row.gate).view(np.bool_)
        _put_lanes(i, found)

    return execute


# -- other views -------------------------------------------------------------------------------------------


@executor("mask image")
def view(i: Instr) -> None:
    put_image(i, "result", image(i, "input"))


def _part(i: Instr) -> slice:
    """Return the slice of the half of an image that the instruction names."""
    half = WIDTH // 2
    return slice(0, half) if i.attr("part") == "LOWER" else slice(half, WIDTH)


@executor("pack mask")
def pack(i: Instr) -> None:
    source, found = image(i, "src"), np.zeros(WIDTH, np.uint8)
    if i.core.semantics.ppack_mode == "hw":
        found[_part(i)] = source[::2]
    else:
        _move(source[:: granule(i, "src")], found[_part(i)][:: granule(i, "dst")])
    put_image(i, "dst", found)


@executor("unpack mask")
def unpack(i: Instr) -> None:
    source, found = image(i, "src"), np.zeros(WIDTH, np.uint8)
    if i.core.semantics.ppack_mode == "hw":
        found[::2] = source[_part(i)]
    else:
        _move(source[_part(i)][:: granule(i, "src")], found[:: granule(i, "dst")])
    put_image(i, "dst", found)


def _move(source: Array, target: Array) -> None:
    """Copy the first lanes of one mask into the first lanes of another, as many as both have."""
    count = min(source.size, target.size)
    target[:count] = source[:count]


@builder("masks in turn")
def build_interleave(row: Row) -> Execute:
    size = _size(row)

    def execute(i: Instr) -> None:
        pair = np.stack((image(i, "src0").reshape(-1, size), image(i, "src1").reshape(-1, size)), 1).reshape(
            2, WIDTH
        )
        put_image(i, "low", pair[0])
        put_image(i, "high", pair[1])

    return execute


@builder("even and odd masks")
def build_deinterleave(row: Row) -> Execute:
    size = _size(row)

    def execute(i: Instr) -> None:
        pair = np.concatenate((image(i, "src0"), image(i, "src1"))).reshape(-1, 2, size)
        put_image(i, "low", pair[:, 0].reshape(WIDTH))
        put_image(i, "high", pair[:, 1].reshape(WIDTH))

    return execute
