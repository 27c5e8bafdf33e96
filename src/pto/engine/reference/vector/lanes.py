"""Accesses to vector registers and masks, for all families of vector instructions.

A register is a row of lanes. A mask has one bit per byte of a register; lane n of elements of w bytes is on
where bit n * w is set. Producers set the lowest bit of each lane and clear the others.
"""

from __future__ import annotations

import numpy as np

from ....ir.types import MaskType
from ....isa.dtypes import DTYPES
from ...elements import Array, code_dtype
from ...registers import GRANULES, WIDTH
from ..instr import Instr
from ..meaning import computed

#: By element size: a mask with all lanes on; `active` returns these arrays themselves if no lane is off.
ALL = {size: np.ones(WIDTH // size, bool) for size in (1, 2, 4, 8)}
_ALL_BYTES = {size: on.tobytes() for size, on in ALL.items()}
for _on in ALL.values():
    _on.flags.writeable = False
_SIZES = {name: d.bits // 8 for name, d in DTYPES.items()}
#: The types of the arithmetic of narrow elements.
_WIDER = {
    **dict.fromkeys(("f16", "bf16"), np.dtype(np.float32)),
    **dict.fromkeys(("i8", "u8", "i16", "u16"), np.dtype(np.int32)),
}


def width(i: Instr, name: str) -> int:
    """Return the size of an element of a vector operand in bytes."""
    return _SIZES[i.args[name].dtype]


def raw(i: Instr, name: str) -> Array:
    """Return the lanes of a register to be moved, in one dimension, as bit patterns; read-only."""
    if i.port.plain:
        return i.args[name].array
    return i.raw(name, (1, i.args[name].lanes))[0]


def values(i: Instr, name: str) -> Array:
    """Return the lanes of a register as numbers: float32 (float64 in a shadow run), or the integer type."""
    if i.port.plain:
        register = i.args[name]
        return i.decoded(register.dtype, register.array)
    return i.values(name, (1, i.args[name].lanes))[0]


def numbers(i: Instr, name: str, fused: bool = False) -> Array:
    """Return the lanes of a register in the type of their arithmetic. A NaN may have other bits than in
    `values`, which is allowed for results with a single NaN. `fused` multiply-adds compute in f64."""
    if i.port.plain:
        register = i.args[name]
        if fused and register.dtype in ("f32", "bf16"):
            return register.array.astype(np.float64)
        wider = _WIDER.get(register.dtype)
        if wider is not None:
            return register.array.astype(wider)
        if register.dtype == "f32":
            return register.array
    return computed(values(i, name))


def bits(i: Instr, name: str) -> Array:
    """Return the lanes of a register as unsigned bit patterns, without a shadow."""
    if i.port.plain:
        register = i.args[name]
        return register.array.view(code_dtype(register.dtype))
    return i.bits(name, (1, i.args[name].lanes))[0]


def image(i: Instr, mask: str) -> Array:
    """Return the 256 bits of a mask, as 0 and 1; the sanitizer of undefined data may store other bytes."""
    return i.args[mask].array if i.port.plain else i.raw(mask, (1, WIDTH))[0] & 1


def active(i: Instr, mask: str, size: int) -> Array:
    """Return the lanes of elements of `size` bytes that a mask turns on; all if the operand is absent."""
    register = i.args.get(mask)
    if register is None:
        return ALL[size]
    made_for = register.granule
    if made_for and made_for != min(size, 4):  # 64-bit elements are pairs of 32-bit ones
        i.port.other_granularity(i, register, min(size, 4))
    plain, known = i.port.plain, register.active
    if known is not None and known[0] == size and plain:
        return known[1]
    on = image(i, mask).view(np.bool_)[::size]
    if on.tobytes() == _ALL_BYTES[size]:
        on = ALL[size]
    if plain:
        register.active = size, on
    return on


def granule(i: Instr, mask: str) -> int:
    """Return the number of bytes that a lane of a mask covers, from its type; 1 without a granularity."""
    row = i.op.row
    assert row is not None
    if mask in row.operand_index:
        value = i.op.get(mask)
        assert value is not None
    else:
        value = next(r for d, r in zip(row.results, i.op.results, strict=False) if d.name == mask)
    assert isinstance(value.type, MaskType)
    return GRANULES[value.type.gran or "b8"]


def full(on: Array) -> bool:
    """Return whether all lanes of a result of `active` are on."""
    return on is ALL.get(WIDTH // on.size)


def put(i: Instr, name: str, found: Array, on: Array | None = None) -> None:
    """Round numbers to the element type of a result register and write them; lanes not `on` are 0."""
    register = i.args[name]
    codes = i.encoded(found, register.dtype)
    whole = codes.size == register.lanes and (on is None or full(on))
    if whole and i.port.plain and codes.flags.c_contiguous:
        register.keep(codes)
    else:
        put_raw(i, name, codes, on)


def put_raw(i: Instr, name: str, codes: Array, on: Array | None = None) -> None:
    """Write elements from `raw` or `bits` to a result register; lanes that are not `on` are 0."""
    if on is not None and (codes.size != on.size or not full(on)):
        codes = np.where(on, codes, np.zeros(1, codes.dtype))
    if i.port.plain:
        i.args[name].array = codes
    else:
        i.store_raw(name, codes.reshape(1, -1))


def put_image(i: Instr, mask: str, found: Array, size: int = 0) -> None:
    """Write the 256 bits of a result mask for elements of `size` bytes."""
    i.args[mask].granule = size
    found = found.astype(np.uint8, copy=False)
    if i.port.plain:
        i.args[mask].array = found
    else:
        i.store_raw(mask, found.reshape(1, WIDTH))


def put_mask(i: Instr, mask: str, on: Array, size: int) -> None:
    """Write a result mask whose lanes cover `size` bytes each."""
    found = np.zeros(WIDTH, np.uint8)
    found[::size] = on
    put_image(i, mask, found, size)
