"""Recording operand values: a watcher that keeps the data that each instruction read and wrote.

    kept = Keeper(budget=8 << 20)
    result = kernel.run(a, b, timeline=True, watchers=[kept])
    kept.values  # for the page of the timeline

It records inputs when the instruction begins, and outputs when it ends, within a budget
(`perf.explorer.values`). It keeps no registers of vecscopes; their loads and stores touch memory of other
instructions.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..perf.explorer.values import IN, MOST_ELEMENTS, OUT, Values
from . import elements
from .debug.expressions import ExpressionError
from .debug.values import ValueMatrix
from .elements import Array
from .memory import ConvTile, Tile, View
from .watch import INSTRUCTION, Event, Watcher


class Keeper(Watcher):
    memory = False
    wants = (INSTRUCTION,)

    def __init__(self, budget: int | None = None) -> None:
        self.values = Values() if budget is None else Values(budget)

    def started(self, event: Event) -> None:
        self._take(event, IN)

    def finished(self, event: Event) -> None:
        self._take(event, OUT)
        if isinstance(event.result, int | float) and not self.values.full:
            self.values.scalar(event.number, "result", OUT, str(event.result))

    def _take(self, event: Event, role: int) -> None:
        row = event.op.row
        if row is None or event.scope is not None:
            return
        for operand in row.operands:
            wanted = operand.writes if role == OUT else operand.reads or row.accumulates == operand.name
            given = event.args.get(operand.name) if wanted else None
            for n, value in enumerate(given if isinstance(given, list) else [given]):  # type: ignore[reportUnknownVariableType]
                several = f"[{n}]" if isinstance(given, list) else ""
                self._operand(event.number, operand.name + several, role, value)
        if role == OUT and row.fifo == "pop" and "tile" in event.args:  # the tile is a result
            self._operand(event.number, "tile", role, event.args["tile"])

    def _operand(self, event: int, name: str, role: int, value: object) -> None:
        values = self.values
        if not isinstance(value, Tile | View | ConvTile | int | float):
            return
        if values.full:
            values.dropped += 1
        elif isinstance(value, int | float):
            values.scalar(event, name, role, f"{value:.9g}" if isinstance(value, float) else str(value))
        else:
            try:
                codes, kind = _contents(value)
            except ExpressionError:  # an invalid address: the instruction itself reports it
                return
            label = f"%{value.name}" if value.name else name
            decode = partial(_decoded, value.dtype)
            values.matrix(event, f"{name}\0{label}", role, codes, value.dtype, kind, decode)


def _decoded(dtype: str, codes: Array) -> Array:
    return elements.decode(dtype, np.ascontiguousarray(codes))


def _contents(place: Tile | View | ConvTile) -> tuple[Array, str]:
    """Return the valid bits as a matrix of limited size, and a description in words."""
    matrix = ValueMatrix(place)
    rows, cols = matrix.valid if matrix.valid is not None else matrix.shape
    cols = min(cols, MOST_ELEMENTS)
    shown = min(rows, max(1, MOST_ELEMENTS // max(1, cols)))
    if not rows or not cols:
        return np.zeros((0, 0), elements.code_dtype(place.dtype)), ""
    where = place.loc if isinstance(place, Tile | ConvTile) else f"{place.buffer.space} {place.buffer.name}"
    part = f", its first {shown} of {rows} rows" if shown < rows else ""
    return matrix.codes(range(shown), range(cols)), f"{where}{part}"
