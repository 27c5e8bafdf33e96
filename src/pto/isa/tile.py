"""Tile layouts: names, the inner box, the storage formula, and the legality of tile types.

Offsets are in elements; the byte offset is `offset * bits / 8` (two 4-bit elements share a byte, low nibble
first). Tests compare the engines with `offset`.
"""

from __future__ import annotations

from .dtypes import DTYPES
from .enums import ENUMS

#: (blayout, slayout) -> layout name.
LAYOUTS: dict[tuple[str, str], str] = {
    ("row_major", "none_box"): "ND",
    ("col_major", "none_box"): "DN",
    ("col_major", "row_major"): "NZ",
    ("row_major", "col_major"): "ZN",
    ("row_major", "row_major"): "ZZ",
    ("col_major", "col_major"): "NN",
}
LAYOUT_PARTS: dict[str, tuple[str, str]] = {name: parts for parts, name in LAYOUTS.items()}

FRACTALS = (512, 1024, 32)

#: Compact modes in their numeric order.
COMPACT_MODES = tuple(ENUMS["compact_mode"].values)

#: Default (blayout, slayout, fractal) of each location; `left` depends on the profile.
DEFAULT_CONFIG: dict[str, tuple[str, str, int]] = {
    "vec": ("row_major", "none_box", 512),
    "mat": ("col_major", "row_major", 512),
    "left": ("row_major", "row_major", 512),
    "right": ("row_major", "col_major", 512),
    "acc": ("col_major", "row_major", 1024),
    "bias": ("row_major", "none_box", 512),
    "scaling": ("row_major", "none_box", 512),
    "scale_left": ("row_major", "row_major", 32),
    "scale_right": ("col_major", "col_major", 32),
}


def block_elements(bits: int) -> int:
    """Return the number of elements in a block of 32 bytes, C0."""
    return 32 * 8 // bits


def inner_box(bits: int, slayout: str, fractal: int) -> tuple[int, int]:
    """Return rows and columns of the inner box; (1, 1) for an unboxed tile."""
    if slayout == "none_box":
        return 1, 1
    if fractal == 1024:
        return 16, 16
    if fractal == 32:
        return (16, 2) if slayout == "row_major" else (2, 16)
    c0 = block_elements(bits)
    return (16, c0) if slayout == "row_major" else (c0, 16)


def offset(
    layout: str, rows: int, cols: int, box: tuple[int, int], r: int, c: int, column_pitch: int | None = None
) -> int:
    """Return the storage offset of element (r, c) of a `rows` x `cols` tile.

    `column_pitch` is the number of rows between two column blocks of an NZ tile (compact modes); it defaults
    to `rows`.
    """
    ir, ic = box
    n = ir * ic
    br, pr, bc, pc = r // ir, r % ir, c // ic, c % ic
    pitch = rows if column_pitch is None else column_pitch
    if layout == "ND":
        return r * cols + c
    if layout == "DN":
        return c * pitch + r
    if layout == "NZ":
        return bc * pitch * ic + br * n + pr * ic + pc
    if layout == "ZN":
        return br * cols * ir + bc * n + pc * ir + pr
    if layout == "ZZ":
        return br * cols * ir + bc * n + pr * ic + pc
    if layout == "NN":
        return bc * pitch * ic + br * n + pc * ir + pr
    raise ValueError(f"unknown layout {layout!r}")


def compact_pitch(compact: str, rows: int, valid_rows: int, height: int = 16) -> int:
    """Return the rows between column blocks of a tile in a compact mode: whole fractals of `height` rows."""
    whole = -(-valid_rows // height) * height
    return {"normal": whole, "row_plus_one": whole + 1}.get(compact, rows)


def block_height(layout: str, box: tuple[int, int]) -> int:
    """Return the height of a fractal for compact modes. Fractals of NN are boxes of scales with two rows."""
    return box[0] if layout == "NN" else 16


def size_bytes(rows: int, cols: int, bits: int) -> int:
    """Return the number of bytes of a tile."""
    return -(-rows * cols * bits // 8)


# Pad patterns: element bits of PadValue Min and Max; Null and Zero are all zero bits.
PAD_BITS: dict[str, tuple[int, int]] = {
    "f32": (0xFF800000, 0x7F800000),
    "f16": (0xFC00, 0x7C00),
    "bf16": (0xFF80, 0x7F80),
    "i32": (0x80000000, 0x7FFFFFFF),
    "u32": (0, 0xFFFFFFFF),
    "i16": (0x8000, 0x7FFF),
    "u16": (0, 0xFFFF),
    "i8": (0x80, 0x7F),
    "u8": (0, 0xFF),
}
#: Further pad patterns of the CPU simulator, from the limits of its types: 64-bit integers, and the smallest
#: positive and the largest 4-bit float. Hardware pads these, and 8-bit floats, with zero.
CPU_PAD_BITS: dict[str, tuple[int, int]] = {
    "f4e2m1": (1, 7),
    "f4e1m2": (1, 7),
    "i64": (1 << 63, (1 << 63) - 1),
    "u64": (0, (1 << 64) - 1),
}
#: Pad values from this number on contain a custom bit pattern.
CUSTOM_PAD = 1 << 32


def pad_bits(pad: int, dtype: str, isa: str) -> int:
    """Return the element bit pattern of a PadValue (0 null, 1 zero, 2 max, 3 min, >= 2**32 custom
    payload)."""
    if pad >= CUSTOM_PAD:
        return pad & ((1 << min(32, DTYPES[dtype].bits)) - 1)
    known = PAD_BITS.get(dtype) or (CPU_PAD_BITS.get(dtype) if isa == "cpu" else None)
    if pad in (2, 3) and known:
        low, high = known
        return high if pad == 2 else low
    return 0
