"""Combinations of two partially valid tiles: elements valid in both are combined, others are copied."""

from __future__ import annotations

import numpy as np

from ...isa.algorithms import kind_of
from ...isa.row import Row
from ..elements import Array
from .instr import Instr, Shape
from .meaning import Numbers, compiled, select
from .registry import Execute, builder, expressed


@expressed("tile", "parts")
def build(row: Row) -> Execute:
    """Make the executor of a row with an expression for elements that are valid in both sources."""
    meaning = compiled(row.expr)

    def execute(i: Instr) -> None:
        shapes = _parts(i, "dst", "src0", "src1")
        both = _common(*shapes)
        numbers = Numbers(i, i.dtype("dst"))
        values = {name: numbers.read(name, both) for name in meaning.names}
        combined = i.encoded(meaning(numbers, values), i.dtype("dst"))
        out = _copied(i, i.valid("dst"), ("src0", "src1"), shapes)
        out[: both[0], : both[1]] = combined
        i.store_raw("dst", out)
        _undefine(i, "dst", i.valid("dst"), shapes)

    return execute


@builder("part extreme")
def part_extreme(row: Row) -> Execute:
    """Make an executor that selects the pair of src0 if its value is greater or less than that of src1, else
    the pair of src1."""
    greater = kind_of(row)[1] == "largest"

    def execute(i: Instr) -> None:
        valid = i.valid("dstVal")
        shapes = _parts(i, "dstVal", "src0Val", "src1Val")
        both = _common(*shapes)
        x, y = i.values("src0Val", both), i.values("src1Val", both)
        first = x > y if greater else x < y
        outs: dict[str, Array] = {}
        for kind in ("Val", "Idx"):
            sources = (f"src0{kind}", f"src1{kind}")
            out = _copied(i, valid, sources, shapes)
            out[: both[0], : both[1]] = select(first, *(i.raw(s, both) for s in sources))
            outs[f"dst{kind}"] = out
        for name, out in outs.items():
            i.store_raw(name, out)
            _undefine(i, name, valid, shapes)

    return execute


def _parts(i: Instr, dst: str, *sources: str) -> tuple[Shape, Shape]:
    """Return the parts of dst that each source covers."""
    a, b = (_common(i.valid(dst), i.valid(s)) for s in sources)
    return a, b


def _common(a: Shape, b: Shape) -> Shape:
    return min(a[0], b[0]), min(a[1], b[1])


def _copied(i: Instr, valid: Shape, sources: tuple[str, str], shapes: tuple[Shape, Shape]) -> Array:
    """Return the elements that are copied from the sources, with zero for the others."""
    found = [i.raw(name, shape) for name, shape in zip(sources, shapes, strict=True)]
    out = np.zeros(valid, found[0].dtype)
    for part in found:
        out[: part.shape[0], : part.shape[1]] = part
    return out


def _undefine(i: Instr, dst: str, valid: Shape, shapes: tuple[Shape, Shape]) -> None:
    """Mark the elements that neither source has as undefined, although zeros are written here."""
    (short_rows, short_cols), (tall_rows, tall_cols) = sorted(shapes)
    wide = max(short_cols, tall_cols)
    for top, bottom, left in (
        (0, short_rows, wide),
        (short_rows, tall_rows, tall_cols),
        (tall_rows, valid[0], 0),
    ):
        if bottom > top and left < valid[1]:
            i.undefine(dst, (bottom - top, valid[1] - left), (top, left))
