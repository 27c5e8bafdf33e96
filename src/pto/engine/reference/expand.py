"""Broadcasts of one column or one row over a tile, alone or as an operand of arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...isa.row import Row
from ..elements import Array
from .instr import Instr
from .meaning import Numbers, compiled
from .registry import Execute, builder, executor

_ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "expdif")


@executor("trowexpand")
def copy_column(i: Instr) -> None:
    """Column 0 of src in every column of dst."""
    rows, cols = i.valid("dst")
    i.store_raw("dst", np.broadcast_to(i.raw("src", (rows, 1)), (rows, cols)))


@executor("tcolexpand")
def copy_row(i: Instr) -> None:
    """Row 0 of src in every row of dst."""
    rows, cols = i.valid("dst")
    i.store_raw("dst", np.broadcast_to(i.raw("src", (1, cols)), (rows, cols)))


@builder(*(f"trowexpand{name}" for name in _ARITHMETIC))
def with_column(row: Row) -> Execute:
    """Arithmetic of operands whose columns repeat until the row of dst is full."""
    operation = _operation(row)

    def execute(i: Instr) -> None:
        rows, cols = i.valid("dst")
        if not rows or not cols:
            return
        n = Numbers(i, i.dtype("dst"))
        x, y = _repeated(n, "src0", rows, cols), _repeated(n, "src1", rows, cols)
        i.store("dst", np.broadcast_to(operation(n, {"x": x, "y": y}), (rows, cols)))

    return execute


@builder(*(f"tcolexpand{name}" for name in _ARITHMETIC))
def with_row(row: Row) -> Execute:
    """Arithmetic of a tile and one row."""
    operation = _operation(row)

    def execute(i: Instr) -> None:
        rows, cols = i.valid("dst")
        if rows and cols:
            n = Numbers(i, i.dtype("dst"))
            i.store("dst", operation(n, {"x": n.read("src0", (rows, cols)), "y": n.read("src1", (1, cols))}))

    return execute


def _operation(row: Row) -> Callable[[Numbers, dict[str, Array]], Array]:
    return _exp_of_difference if row.meaning == "exp(x - y)" else compiled(row.meaning)


def _exp_of_difference(n: Numbers, values: dict[str, Array]) -> Array:
    """The difference is an element of the type; its exponential rounds once, also for f16."""
    return np.exp(n.round(values["x"] - values["y"]), dtype=np.float64)


def _repeated(n: Numbers, name: str, rows: int, cols: int) -> Array:
    """Columns of an operand for every column of dst; one column is left to broadcasting."""
    have = n.instr.valid(name)[1]
    n.instr.require(have > 0, f"expects {name} to have a valid column")
    found = n.read(name, (rows, min(have, cols)))
    return found if have == 1 or have >= cols else found[:, np.arange(cols) % have]
