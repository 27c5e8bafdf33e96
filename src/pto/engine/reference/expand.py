"""Arithmetic with repeated columns, or with one row for all rows."""

from __future__ import annotations

import numpy as np

from ...isa.row import Row
from ..elements import Array
from .instr import Instr
from .meaning import Numbers, compiled, spread
from .registry import Execute, expressed


@expressed("tile", "columns")
def with_columns(row: Row) -> Execute:
    """Make the executor of a row whose operands repeat their columns until the row of dst is full."""
    operation = compiled(row.expr)

    def execute(i: Instr) -> None:
        rows, cols = i.valid("dst")
        if not rows or not cols:
            return
        n = Numbers(i, i.dtype("dst"))
        values = {name: _repeated(n, name, rows, cols) for name in operation.names}
        i.store("dst", spread(operation.compute(n, values), (rows, cols)))

    return execute


@expressed("tile", "row")
def with_row(row: Row) -> Execute:
    """Make the executor of a row that combines a tile with row 0 of the other operands."""
    operation = compiled(row.expr)
    whole = next(o.name for o in row.operands if o.reads)

    def execute(i: Instr) -> None:
        rows, cols = i.valid("dst")
        if rows and cols:
            n = Numbers(i, i.dtype("dst"))
            values = {name: n.read(name, (rows if name == whole else 1, cols)) for name in operation.names}
            i.store("dst", spread(operation.compute(n, values), (rows, cols)))

    return execute


def _repeated(n: Numbers, name: str, rows: int, cols: int) -> Array:
    """Return a column of an operand for every column of dst; NumPy broadcasts a single column."""
    have = n.instr.valid(name)[1]
    n.instr.require(have > 0, f"expects {name} to have a valid column")
    found = n.read(name, (rows, min(have, cols)))
    return found if have == 1 or have >= cols else found[:, np.arange(cols) % have]
