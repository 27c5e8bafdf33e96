"""Element-wise instructions of tiles and scalars, computed from the expressions of their rows.

An expression that only chooses between operands moves their bits; all others compute with numbers. A packed
operand has a bit per element: a source gives truth values, a destination takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...isa.row import Row
from ..memory import ConvTile
from .instr import Instr, Place, Shape
from .meaning import Numbers, RowExpression, compiled, spread
from .packed import load_bits, load_stream, store_bits, store_stream
from .registry import Execute, expressed

#: The shape that an expression reads from each operand, by the shape that the expression computes.
_READ: dict[str, Callable[[int, int], Shape]] = {
    "column 0": lambda rows, cols: (rows, min(1, cols)),
    "row 0": lambda rows, cols: (min(1, rows), cols),
}


@expressed("tile")
@expressed("tile", "storage")
@expressed("tile", "column 0")
@expressed("tile", "row 0")
def build(row: Row) -> Execute:
    """Make the executor of a row with an expression over the elements of its operands."""
    once = RowExpression(row.expr)
    others = {text: RowExpression(text) for text in row.expr_on.values()}
    skips = compiled(row.skip) if row.skip else None
    packed, single = row.packed.split(), row.single.split()
    bits = "dst" in packed
    sources = [o for o in row.operands if o.reads and o.name not in packed]
    tile = next((o.name for o in sources if o.kinds == ("tile",)), "")  # an operand that is never a scalar
    wanted = dict.fromkeys(n for f in (once, *others.values(), *((skips,) if skips else ())) for n in f.names)
    floats = row.floats.split()
    read = _READ.get(row.over)
    forms: dict[tuple[str, str], RowExpression] = {}

    def operand(i: Instr, numbers: Numbers, name: str, shape: Shape) -> Any:
        value = i.args[name]
        if isinstance(value, (int, float)):
            return (Numbers(i, "f32") if name in floats else numbers).scalar(value)
        if name in packed:
            return (load_stream if i.core.profile.isa in row.stream_on else load_bits)(i, name, shape)
        return numbers.read(name, (1, 1) if name in single else shape)

    def execute(i: Instr) -> None:
        shape = i.valid(tile) if bits else _elements(i) if row.over == "storage" else i.valid("dst")
        form = once
        if others:
            key = i.core.profile.isa, i.args[row.typed].dtype
            form = forms.get(key) or forms.setdefault(key, others.get(row.expr_at(*key), once))
        first = tile or next((o.name for o in sources if isinstance(i.args[o.name], Place)), "dst")
        dtype = i.args[first].dtype
        numbers = Numbers(i, dtype)
        extent = read(*shape) if read else shape
        moved = form.moved if not skips and dtype == i.dtype("dst") else ()
        values: dict[str, Any] = {}
        for name in wanted:
            get = _raw if name in moved else operand
            values[name] = get(i, numbers, name, extent)
        if moved:
            i.store_raw("dst", spread(form(i)(numbers, values), shape))
            return
        if skips is not None and skips(numbers, values):
            return
        result = form(i)(numbers, values)
        if bits and i.core.profile.isa in row.stream_on:
            store_stream(i, "dst", result, i.tile(tile).shape)
        elif bits:
            store_bits(i, "dst", result)
        elif row.store == "saturate" and i.dtype("dst") != dtype:
            exact = numbers.round(result) if result.dtype.kind == "f" else result
            i.store("dst", exact, mode="RINT", saturate=True)
        else:
            i.store("dst", spread(result, shape))

    if others or skips or len(wanted) > 1 or not once.moved:
        return execute
    return _copy(row, once.moved[0], execute)


def _copy(row: Row, name: str, otherwise: Execute) -> Execute:
    """Make an executor that copies one operand unchanged, if it needs no conversion."""
    read = _READ.get(row.over)

    def execute(i: Instr) -> None:
        value, dtype = i.args[name], i.args["dst"].dtype
        if not isinstance(value, (int, float)) and value.dtype != dtype:
            otherwise(i)
            return
        shape = _elements(i) if row.over == "storage" else i.valid("dst")
        found = _raw(i, Numbers(i, dtype), name, read(*shape) if read else shape)
        i.store_raw("dst", spread(found, shape))

    return execute


def _raw(i: Instr, numbers: Numbers, name: str, shape: Shape) -> Any:
    """Return the bit patterns of an operand, which are moved and not computed with."""
    value = i.args[name]
    if isinstance(value, (int, float)):
        return i.encoded(np.array([numbers.scalar(value)]), numbers.dtype)
    return i.raw(name, shape)


def _elements(i: Instr) -> Shape:
    """Return the shape to compute: the valid region of a vec tile, all of a mat or convolution tile."""
    dst = i.arg("dst")
    if isinstance(dst, ConvTile):
        return prod(dst.dims[:-1]), dst.dims[-1]
    return dst.shape if dst.loc == "mat" else dst.valid
