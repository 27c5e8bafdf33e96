"""Element-wise instructions, tile with tile and tile with scalar, computed as their rows say."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...isa.row import Row
from ..memory import ConvTile
from .instr import Instr, Place
from .meaning import OPERATIONS, Numbers, compiled
from .registry import Execute, executor, expressed


@expressed("tile")
def build(row: Row) -> Execute:
    """The executor of a row with an expression over the elements of its operands."""
    sources = [o.name for o in row.operands if o.reads]
    once = compiled(row.expr)
    columns = {isa: compiled(text) for isa, text in row.expr_on.items()}
    skips = compiled(row.skip) if row.skip else None
    wanted = dict.fromkeys(n for e in (once, *columns.values(), *([skips] if skips else ())) for n in e.names)

    def execute(i: Instr) -> None:
        shape = i.valid("dst")
        numbers = Numbers(i, i.dtype(next((n for n in sources if isinstance(i.arg(n), Place)), "dst")))
        values = {name: _operand(i, numbers, name, shape) for name in wanted}
        if skips is not None and skips(numbers, values):
            return
        result = columns.get(i.isa, once)(numbers, values)
        if row.store == "saturate" and i.dtype("dst") != numbers.dtype:
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
    relu = OPERATIONS["relu"]
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
