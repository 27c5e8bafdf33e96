"""Element-wise instructions, tile with tile and tile with scalar, computed as their rows say.

An outermost `convert(e)` in a meaning is a store that changes the type: it saturates where the types differ
and is a plain cast where they do not.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...isa.row import Operand, Row
from ...isa.tables import tile_elementwise, tile_scalar
from ..memory import ConvTile
from .instr import Instr, Place
from .meaning import FUNCTIONS, Numbers, compiled
from .registry import Execute, builder, executor


def _expression(row: Row) -> str:
    """The meaning of a row without an outermost `convert`."""
    text = row.meaning
    return text[len("convert(") : -1] if text.startswith("convert(") else text


def _is_regular(row: Row) -> bool:
    try:
        names = compiled(_expression(row)).names
    except (SyntaxError, ValueError):
        return False
    return set(names) <= set(letters(row))


def letters(row: Row) -> dict[str, str]:
    """The operand that each letter of a meaning stands for: tiles are x, y, z in order, the scalar is s, and
    a destination that is also read is z."""
    found: dict[str, str] = {}
    tiles = iter("xyz")
    for operand in row.operands:
        if operand.role == "in":
            found[next(tiles) if _is_tile(operand) else "s"] = operand.name
        elif operand.role == "inout":
            found["z"] = operand.name
    return found


def _is_tile(operand: Operand) -> bool:
    return "tile" in operand.kinds and operand.name != "scalar"


@builder(*(row.name for row in (*tile_elementwise.ROWS, *tile_scalar.ROWS) if _is_regular(row)))
def build(row: Row) -> Execute:
    """The executor of a row whose meaning is a scalar expression."""
    text = _expression(row)
    operands = letters(row)
    converts = text != row.meaning
    once = compiled(text)
    columns = {isa: compiled(meaning) for isa, meaning in row.meaning_on.items()}
    read = tuple((letter, operands[letter]) for letter in once.names)
    skips = row.name in tile_scalar.SKIP_ZERO

    def execute(i: Instr) -> None:
        shape = i.valid("dst")
        source = next((n for n in operands.values() if isinstance(i.arg(n), Place)), "dst")
        numbers = Numbers(i, i.dtype(source))
        values = {letter: _operand(i, numbers, name, shape) for letter, name in read}
        if skips and values["s"] == 0:
            return
        result = columns.get(i.isa, once)(numbers, values)
        if converts and i.dtype("dst") != numbers.dtype:
            i.store(
                "dst",
                numbers.round(result) if result.dtype.kind == "f" else result,
                mode="RINT",
                saturate=True,
            )
        else:
            i.store("dst", result)

    return execute


def _operand(i: Instr, numbers: Numbers, name: str, shape: tuple[int, int]) -> Any:
    value = i.arg(name)
    return numbers.read(name, shape) if isinstance(value, Place) else numbers.scalar(value)


@executor("taxpy")
def axpy(i: Instr) -> None:
    """s * x + dst; only f16 into f16 rounds the product on its own."""
    shape = i.valid("dst")
    numbers = Numbers(i, i.dtype("src"))
    product = numbers.scalar(i.arg("scalar")) * numbers.read("src", shape)
    if i.dtype("dst") == "f16":
        product = numbers.round(product)
    i.store("dst", product + numbers.read("dst", shape))


@executor("tadddeqrelu")
def add_dequantise_relu(i: Instr) -> None:
    """The reference rounds to f16 and overflows to infinity; the hardware scales in two steps around the
    range of f16 and saturates."""
    shape = i.valid("dst")
    numbers = Numbers(i, "f32")
    total = numbers.single(numbers.read("src0", shape) + numbers.read("src1", shape))
    scale = numbers.scalar(i.arg("deqScale"))
    relu = FUNCTIONS["relu"]
    if i.isa == "cpu":
        i.store("dst", relu(numbers, i.round(total * scale, "f16")))
        return
    scaled = total * np.float32(2.0**-17) * scale * np.float32(2.0**17)
    i.store("dst", relu(numbers, scaled), mode="RINT", saturate=True)


@executor("texpands")
def expand_scalar(i: Instr) -> None:
    """A vec tile is filled in its valid region, a mat or convolution tile as a whole."""
    dst = i.arg("dst")
    if isinstance(dst, ConvTile):
        shape = (prod(dst.dims[:-1]), dst.dims[-1])
    else:
        shape = dst.shape if dst.loc == "mat" else dst.valid
    value = i.encoded(np.array([Numbers(i, dst.dtype).scalar(i.arg("scalar"))]), dst.dtype)
    i.store_raw("dst", np.broadcast_to(value, shape))
