"""Aligned loads and stores of vector registers: every distribution mode and the fixed strides.

A mode is a grid of items in memory that become one register: its rows and columns, in steps of items of the
width of the mode. If the items are the elements of the register, they move as elements, so that a shadow
moves along; else they move as bit patterns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....isa.dtypes import DTYPES
from ....isa.micro_tags import with_width
from ...elements import Array, code_dtype
from ...memory import MemoryFault, Pointer
from ...region import Region, blocked
from ..instr import Instr, misaligned
from ..registry import executor
from .lanes import WIDTH, active, bits, full, put_raw, raw

#: The size of a block in bytes; most addresses are aligned to blocks.
BLOCK = 32


class PointerGrid(Pointer):
    """A pointer to items in rows and columns, each a number of items apart."""

    __slots__ = ("col_step", "row_step")

    def __init__(self, at: Pointer, offset: int, dtype: str, row_step: int, col_step: int) -> None:
        super().__init__(at.buffer, offset, dtype, at.name, at.home)
        self.row_step = row_step
        self.col_step = col_step

    def region(self, rows: int, cols: int) -> Region:
        return Region(
            self.offset, blocked(0, rows, 1, self.row_step, 0), blocked(0, cols, 1, self.col_step, 0),
            DTYPES[self.dtype].bits,
        )  # fmt: skip

    def spacing(self, cols: int) -> tuple[int, int]:
        return self.row_step, self.col_step


class Mode(NamedTuple):
    """Items of `width` bytes on a grid, at a multiple of `align` bytes. A load widens every item to `slot`
    bytes, and the rest of the register becomes 0; a store takes each item from a lane of `slot` bytes."""

    width: int
    rows: int
    cols: int
    row_step: int
    col_step: int
    slot: int
    align: int = BLOCK


def _mode(
    width: int, rows: int, cols: int, row_step: int, col_step: int, slot: int = 0, align: int = BLOCK
) -> Mode:
    return Mode(width, rows, cols, row_step, col_step, slot or width, align)


_LOADS = {
    "US_B8": _mode(1, 128, 2, 1, 0),
    "US_B16": _mode(2, 64, 2, 1, 0),
    "DS_B8": _mode(1, 1, 256, 0, 2),
    "DS_B16": _mode(2, 1, 128, 0, 2),
    "UNPK_B8": _mode(1, 1, 128, 0, 1, 2),
    "UNPK_B16": _mode(2, 1, 64, 0, 1, 4),
    "UNPK_B32": _mode(4, 1, 32, 0, 1, 8),
    "UNPK4": _mode(1, 1, 64, 0, 1, 4),
    "BRC_BLK": _mode(1, 8, BLOCK, 0, 1),
    "E2B_B16": _mode(2, 8, 16, 1, 0, align=16),
    "E2B_B32": _mode(4, 8, 8, 1, 0),
    "SPLT4CHN": _mode(1, 1, 64, 0, 4),
    "SPLT2CHN_B8": _mode(1, 1, 128, 0, 2),
    "SPLT2CHN_B16": _mode(2, 1, 64, 0, 2),
    "DINTLV_B32": _mode(4, 1, 64, 0, 2),
    **{f"BRC_B{8 * w}": _mode(w, 1, WIDTH // w, 0, 0, align=w) for w in (1, 2, 4)},
}
_STORES = {
    **{f"NORM_B{8 * w}": _mode(w, 1, WIDTH // w, 0, 1) for w in (1, 2, 4)},
    **{f"1PT_B{8 * w}": _mode(w, 1, 1, 0, 1, align=w) for w in (1, 2, 4)},
    "PK_B16": _mode(1, 1, 128, 0, 1, 2),
    "PK_B32": _mode(2, 1, 64, 0, 1, 4),
    "PK_B64": _mode(4, 1, 32, 0, 1, 8),
    "PK4_B32": _mode(1, 1, 64, 0, 1, 4),
}
_ALIASES = {"UNPK4_B8": "UNPK4", "BLK": "BRC_BLK", "SPLT4CHN_B8": "SPLT4CHN"}


@lru_cache(maxsize=512)
def load_mode(token: str, size: int) -> Mode:
    """Return the mode of a token of vlds for elements of `size` bytes."""
    if token == "NORM":
        return _mode(size, 1, WIDTH // size, 0, 1)
    token = with_width(token, 8 * size)
    mode = _LOADS[_ALIASES.get(token, token)]
    if token in ("BRC_BLK", "BLK"):  # a block of elements
        mode = mode._replace(width=size, slot=size, cols=BLOCK // size)
    return mode


@lru_cache(maxsize=512)
def _stride_mode(token: str, size: int) -> Mode:
    """Return the mode of STRIDE_S<k>_B<w>: items of w bits, k items apart. Items that are wider than elements
    move as elements."""
    step, width = (int(part[1:]) for part in token.split("_")[-2:])
    width //= 8
    if width <= size:
        return _mode(width, 1, WIDTH // width, 0, step)
    return _mode(size, WIDTH // width, width // size, step * width // size, 1)


# -- addresses ---------------------------------------------------------------------------------------------


def moved(i: Instr, pointer: str, offset: str = "offset") -> Pointer:
    """Return a pointer advanced by an operand that counts elements."""
    return i.args[pointer].moved(int(i.args[offset]))


#: The end of the help for an address that a load or store does not accept.
_STREAMS = {
    "vlds": "; from any element on a stream loads: pto.vldas, pto.vldus",
    "vsts": "; to any element a stream stores: pto.init_align, pto.vstus, pto.vstas",
}


def aligned(i: Instr, at: Pointer, align: int) -> None:
    """Stop if an effective address is not a multiple of `align` bytes."""
    if at.offset % align:
        raise misaligned("an effective address", at, align, _STREAMS.get(i.name, ""))


def inside(i: Instr, at: Pointer) -> None:
    """Stop if an effective address is outside its buffer."""
    if not 0 <= at.offset < at.buffer.data.size:
        raise MemoryFault(at.buffer, at.offset, at.offset + max(1, DTYPES[at.dtype].bits // 8))


def legal(i: Instr, at: Pointer, align: int) -> None:
    """Stop if an effective address is illegal. The address is checked even if all lanes are off."""
    aligned(i, at, align)
    inside(i, at)


def post_update(i: Instr, registers: int) -> bool:
    """Return whether the instruction has a result besides its registers, the advanced pointer."""
    return len(i.op.results) > registers


def addresses(i: Instr, pointer: str, registers: int) -> tuple[Pointer, Pointer | None]:
    """Return the pointer of the access, and the advanced pointer, if the instruction returns it."""
    further = moved(i, pointer)
    return (i.args[pointer], further) if post_update(i, registers) else (further, None)


# -- loads -------------------------------------------------------------------------------------------------


def items(i: Instr, name: str, at: Pointer, mode: Mode, start: int = 0) -> Array:
    """Return the lanes that a mode loads for register `name` from `at` on; `start` counts items."""
    register = i.args[name]
    size = DTYPES[register.dtype].bits // 8
    same = mode.width == size == mode.slot
    dtype = register.dtype if same else f"u{8 * mode.width}"
    place = PointerGrid(at, at.offset + start * mode.width, dtype, mode.row_step, mode.col_step)
    found = i.raw(place, (mode.rows, mode.cols)).reshape(-1)
    if mode.slot != mode.width:
        found = found.astype(f"u{mode.slot}")
    if not same:
        found = np.ascontiguousarray(found).view(code_dtype(register.dtype))
    if found.size < register.lanes:
        found = np.concatenate((found, np.zeros(register.lanes - found.size, found.dtype)))
    return found


@executor("load lanes")
def vlds(i: Instr) -> Pointer | None:
    at, further = addresses(i, "source", 1)
    r = i.args["r"]
    token = i.attr("dist")
    if token == "NORM":
        legal(i, at, BLOCK)
        put_raw(i, "r", i.raw(at, (1, r.lanes))[0])
        return further
    mode = load_mode(token, DTYPES[r.dtype].bits // 8)
    legal(i, at, mode.align)
    put_raw(i, "r", items(i, "r", at, mode))
    return further


@executor("load two registers")
def vldsx2(i: Instr) -> Pointer | None:
    at, further = addresses(i, "source", 2)
    legal(i, at, BLOCK)
    mode, step = pair_mode(i.attr("dist"), DTYPES[at.dtype].bits // 8)
    low, high = (items(i, name, at, mode, start) for name, start in (("low", 0), ("high", step)))
    put_raw(i, "low", low)
    put_raw(i, "high", high)
    return further


def pair_mode(token: str, size: int) -> tuple[Mode, int]:
    """Return the mode of each register of vldsx2, and the number of items between their first items."""
    if token == "BDINTLV":
        return _mode(size, 8, BLOCK // size, 2 * BLOCK // size, 1), BLOCK // size
    return _every_other(token), 1


@lru_cache
def _every_other(token: str) -> Mode:
    """Return the mode for one of the two registers that INTLV_B<w> and DINTLV_B<w> interleave."""
    width = int(token.rpartition("_B")[2]) // 8
    return _mode(width, 1, WIDTH // width, 0, 2)


@executor("load strided")
def vsld(i: Instr) -> None:
    at = moved(i, "source")
    legal(i, at, BLOCK)
    put_raw(i, "r", items(i, "r", at, _stride_mode(i.attr("stride"), DTYPES[at.dtype].bits // 8)))


# -- stores ------------------------------------------------------------------------------------------------


def lanes_as(i: Instr, name: str, mode: Mode) -> tuple[Array, str]:
    """Return the items of a register that a mode stores, in one dimension, and their type."""
    dtype = i.args[name].dtype
    size = DTYPES[dtype].bits // 8
    if mode.width == size == mode.slot:
        return raw(i, name), dtype
    codes = np.ascontiguousarray(bits(i, name)).view(f"u{mode.width}")
    return codes[:: mode.slot // mode.width], f"u{8 * mode.width}"


def put_items(
    i: Instr, at: Pointer, dtype: str, mode: Mode, found: Array, on: Array | None, start: int = 0
) -> None:
    """Store items on the grid of a mode; memory of items that are not `on` is not touched."""
    place = PointerGrid(at, at.offset + start * mode.width, dtype, mode.row_step, mode.col_step)
    count = found.size
    if on is not None:
        count = int(np.count_nonzero(on))
        if not count:
            return
    if count == found.size or (mode.rows == 1 and on is not None and np.count_nonzero(on[:count]) == count):
        rows = mode.rows
        i.store_raw(place, found[:count].reshape(rows, count // rows))
        return
    i.store_raw_at(place, _offsets(mode)[on], found[on])


@lru_cache(maxsize=256)
def _offsets(mode: Mode) -> Array:
    """Return the item offsets of a grid, row by row."""
    rows = np.arange(mode.rows, dtype=np.intp)[:, None] * mode.row_step
    return (rows + np.arange(mode.cols, dtype=np.intp) * mode.col_step).ravel()


def store_mode(token: str, size: int) -> Mode | None:
    """Return the mode of a token of vsts for elements of `size` bytes; None for interleaved planes."""
    token = token.replace("ONEPT", "1PT")
    return _STORES.get(f"{token}_B{8 * min(size, 4)}" if token in ("NORM", "1PT") else token)


@executor("store lanes")
def vsts(i: Instr) -> Pointer | None:
    at, further = addresses(i, "dest", 0)
    size = DTYPES[i.args["value"].dtype].bits // 8
    mode = store_mode(i.attr("dist"), size)
    if mode is None:
        _merge(i, at, i.attr("dist"))
        return further
    legal(i, at, mode.align)
    one = mode.cols == 1
    on = active(i, "mask", mode.slot) if "mask" in i.args and not one else None
    if size == 8 and mode.width == 4 == mode.slot and (on is None or full(on)):  # whole 64-bit elements
        mode, on = _mode(8, 1, WIDTH // 8, 0, 1), None
    found, dtype = lanes_as(i, "value", mode)
    put_items(i, at, dtype, mode, found[:1] if one else found, on)
    return further


def _merge(i: Instr, at: Pointer, token: str) -> None:
    """Perform MRG<n>CHN_B<w>: each block of the register has n planes of w-bit items; a block of memory gets
    the first items of all planes, then the second ones, and so on. The mask selects groups of n items."""
    planes, width = int(token[3]), int(token.rpartition("_B")[2]) // 8
    legal(i, at, BLOCK)
    on = active(i, "mask", planes * width)
    dtype = i.args["value"].dtype
    if DTYPES[dtype].bits == 8 * width:
        found = raw(i, "value")
    else:
        dtype, found = f"u{8 * width}", np.ascontiguousarray(bits(i, "value")).view(f"u{width}")
    merged = found.reshape(8, planes, -1).transpose(0, 2, 1).reshape(-1)
    put_items(i, at, dtype, _mode(width, 1, merged.size, 0, 1), merged, np.repeat(on, planes))


@executor("store two registers")
def vstsx2(i: Instr) -> None:
    at = moved(i, "dest")
    legal(i, at, BLOCK)
    mode = _every_other(i.attr("dist"))
    on = active(i, "mask", mode.width) if i.core.semantics.vstsx2_mask == "doc" else None
    low, dtype = lanes_as(i, "low", mode)
    high, _ = lanes_as(i, "high", mode)
    put_items(i, at, dtype, mode, low, on)
    put_items(i, at, dtype, mode, high, on, 1)


@executor("store strided")
def vsst(i: Instr) -> None:
    at = moved(i, "dest")
    legal(i, at, BLOCK)
    mode = _stride_mode(i.attr("stride"), DTYPES[at.dtype].bits // 8)
    found, dtype = lanes_as(i, "value", mode)
    put_items(i, at, dtype, mode, found, None)
