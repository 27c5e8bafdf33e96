"""Loads and stores of masks: the 256 bits of a mask as 32 bytes, least significant bit first.

US reads half as many bits and doubles each, DS reads twice as many and drops every other one, PK writes every
other one. Both presets of `semantics` use these bytes, because the modes cannot be executed as the manual
describes them. Only an unaligned stream of masks has one bit per lane.
"""

from __future__ import annotations

import numpy as np

from ...elements import Array
from ...memory import Pointer
from ...registers import WIDTH
from ..instr import Instr
from ..registry import executor
from .lanes import granule, image, put_image
from .memory import aligned, post_update
from .streams import append

#: The number of bytes that a mode transfers, and the unit of a subscript of pldi and psti in bytes.
_BYTES = {"NORM": WIDTH // 8, "US": WIDTH // 16, "DS": WIDTH // 4, "PK": WIDTH // 16}
_UNIT = {"NORM": 32, "US": 16, "DS": 32, "PK": 16}
#: The alignment of addresses, and the unit of register and immediate offsets, in bytes.
WORD = 8


def _further(pointer: Pointer, count: int) -> Pointer:
    """Return a pointer `count` bytes further."""
    return pointer.at(pointer.offset + int(count))


def _bytes_at(i: Instr, pointer: Pointer) -> Pointer:
    """Return the aligned start of an access, as a pointer to bytes."""
    aligned(i, pointer, WORD)
    return pointer.at(pointer.offset, "u8")


def _load(i: Instr, pointer: Pointer) -> None:
    dist = i.attr("dist")
    found = np.unpackbits(i.raw(_bytes_at(i, pointer), (1, _BYTES[dist]))[0], bitorder="little")
    if dist == "US":
        found = np.repeat(found, 2)
    elif dist == "DS":
        found = found[::2]
    put_image(i, "mask", found)


def _store(i: Instr, pointer: Pointer) -> None:
    place = _bytes_at(i, pointer)
    found: Array = image(i, "mask")
    if i.attr("dist") == "PK":
        found = found[::2]
    i.store_raw(place, np.packbits(found, bitorder="little")[None])


def _places(i: Instr, base: Pointer, unit: int) -> tuple[Pointer, Pointer]:
    """Return the pointer of the access, and the base that the instruction returns: an instruction with a base
    result accesses first, and moves the base afterwards."""
    moved = _further(base, i.args.get("offset", 0) * unit)
    registers = len(i.op.row.results) - 1 if i.op.row else 0
    return (base if post_update(i, registers) else moved), moved


def _reached(i: Instr, pointer: str) -> tuple[Pointer, Pointer]:
    """Return the pointer of the access, and the pointer that the instruction returns. A register or immediate
    offset counts words, a subscript bytes or units."""
    for name in ("areg", "imm"):
        if name in i.args:
            at = _further(i.args[pointer], i.args[name] * WORD)
            return at, at
    return _places(i, i.args[pointer], 1 if i.kind == "bytes" else _UNIT[i.attr("dist")])


@executor("load mask")
def load_mask(i: Instr) -> Pointer:
    at, moved = _reached(i, "source")
    _load(i, at)
    return moved


@executor("store mask")
def store_mask(i: Instr) -> Pointer:
    at, moved = _reached(i, "dest")
    _store(i, at)
    return moved


@executor("append mask")
def append_lanes(i: Instr) -> Pointer:
    """Append the lanes of a mask as dense bits to a store stream."""
    base = i.args["base"]
    found = np.packbits(image(i, "mask")[:: granule(i, "mask")], bitorder="little")
    append(i, "align", "align_out", base.at(base.offset, "u8"), found, found)
    return _further(base, found.size)
