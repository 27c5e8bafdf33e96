"""Scratch memory of instructions whose program passes none.

A row describes in its rules and notes what its scratch holds; this table has a tile that satisfies them on
every target. Instructions that are not listed use a tile like their first operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import DATA_TYPES, DataType
from ..ir import TileType

_U8, _I32 = DATA_TYPES["UINT8"], DATA_TYPES["INT32"]


def _flat(dtype: DataType, elements: int) -> TileType:
    line = 256 // dtype.bits
    return TileType(dtype, (1, -(-elements // line) * line), None, "vec")


def _transposed(t: TileType) -> TileType:
    """Return the transpose of a tile, rounded up to whole squares."""
    square = 32 if t.dtype.bits == 8 else 16
    rows, cols = t.shape
    return TileType(t.dtype, (cols, -(-rows // square) * square), None, "vec")


#: Scratch by instruction, with the element type of its first operand.
_SCRATCH: dict[str, Callable[[TileType], TileType]] = {
    "tprelu": lambda t: TileType(_U8, (t.shape[0] + 1, t.shape[1]), None, "vec"),
    "trem": lambda t: t.replace(shape=(2, t.shape[1]), valid=None),
    "trems": lambda t: t.replace(shape=(2, t.shape[1]), valid=None),
    "tsel": lambda t: _flat(_U8, 32),
    "tsels": lambda t: _flat(t.dtype, 1),
    "trsqrt": lambda t: _flat(t.dtype, 1),
    "tcolargmax": lambda t: _flat(t.dtype, 3 * 2048 // t.dtype.bits),
    "tcolargmin": lambda t: _flat(t.dtype, 3 * 2048 // t.dtype.bits),
    "ttrans": _transposed,
    "tadddeqrelu": lambda t: t.replace(dtype=_I32, valid=None),
    "tci": lambda t: _flat(t.dtype, 2048 * 8 // t.dtype.bits),
    "tsort32": lambda t: _flat(t.dtype, -(-t.shape[1] // 32) * 32),
}
#: Rows for which scratch selects another algorithm; it is used only if the program passes it.
ONLY_GIVEN = ("tcolsum", "tcvt", "tci", "tmov")


def scratch_type(row: Any, first: TileType, isa: str, precise: bool) -> TileType | None:
    """Return the scratch of an instruction by the type of its first operand; None if it needs none."""
    operand = next((o for o in row.operands if o.role == "tmp"), None)
    if operand is None or row.name in ONLY_GIVEN:
        return None
    if row.name == "trsqrt" and not precise:
        return None
    if row.name == "tsort32" and isinstance(first.extent[-1], int) and first.extent[-1] % 32 == 0:
        return None
    if operand.optional and (isa not in row.tmp_on or row.takes_own_scratch(isa)) and row.name != "tsort32":
        return None
    made = _SCRATCH.get(row.name)
    return made(first) if made is not None else first.replace(space="vec")


__all__ = ["ONLY_GIVEN", "scratch_type"]
