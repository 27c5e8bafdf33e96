"""Choose the tiles of a mixed function that its two vector cores halve, and the dimension.

Tiles from and to the cube are halved along the dimension that the author requested. An
operator that works element by element, row by row or column by column halves all its operands and results; a
single row beside many rows goes to both cores. If an operation needs both halves (a sum across them, a
transpose, an element), nothing is halved.
"""

from __future__ import annotations

from ...isa.python import signatures
from ..enums import SplitMode
from ..ir import Op, TileType, Value, index, values_in
from .rewrite import handed_on

#: Operators without a row that work on each element, row or column separately.
_LOCAL = ("cast", "cmp", "cmps", "row_expand", "col_expand", "sel", "move")
_FREE = ("load", "store", "full", "create_tile", "yield")


class _Crossed(Exception):
    """Raised if an operation needs both halves."""


def halves(ops: list[Op], crossings: set[Op], mode: SplitMode) -> dict[Value, int] | None:
    """Return the halved dimension of each tile, counted from the end; None if halving is impossible."""
    found = _Halves(-2 if mode is SplitMode.UP_DOWN else -1)
    try:
        before = -1
        while before != len(found.axis):
            before = len(found.axis)
            for op in ops:
                found.visit(op, op in crossings)
        found.check()
    except _Crossed:
        return None
    return found.axis


class _Halves:
    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.axis: dict[Value, int] = {}

    def put(self, value: object, axis: int) -> None:
        if not isinstance(value, Value) or not isinstance(value.type, TileType):
            return
        if self.axis.setdefault(value, axis) != axis:
            raise _Crossed

    def check(self) -> None:
        for value, axis in self.axis.items():
            n = index.known(value.type.shape[axis])
            if n is None or n % 2 or value.type.valid is not None:
                raise _Crossed

    def visit(self, op: Op, crosses: bool) -> None:
        if crosses:
            self.put(op.result if op.result.type.space == "vec" else next(values_in(op.args)), self.wanted)
            return
        tiles = [v for v in (*op.results, *values_in(op.args)) if isinstance(v.type, TileType)]
        if op.name in ("for", "while", "if"):
            self._handed_on(op)
        elif not any(v in self.axis for v in tiles) or op.name in _FREE:
            return
        elif op.name in ("slice", "assemble"):
            self._window(op)
        elif op.name == "reshape":
            self._reshaped(op)
        elif op.name in _LOCAL or (op.name in signatures() and signatures()[op.name].row.expr):
            self._local(op, tiles)
        else:
            raise _Crossed

    def _handed_on(self, op: Op) -> None:
        for same in handed_on(op):
            axes = {self.axis[v] for v in same if isinstance(v, Value) and v in self.axis}
            for axis in axes:
                for v in same:
                    self.put(v, axis)

    def _window(self, op: Op) -> None:
        """Check that a window covers the halved dimension completely."""
        part, whole = (
            (op.result, op.args["x"]) if op.name == "slice" else (op.args["source"], op.args["target"])
        )
        axis = self.axis.get(part, self.axis.get(whole, 0))
        if index.known(op.args["offset"][axis]) != 0 or not index.same(
            part.type.shape[axis], whole.type.shape[axis]
        ):
            raise _Crossed
        self.put(part, axis)
        self.put(whole, axis)

    def _reshaped(self, op: Op) -> None:
        """Map the halved dimension through a reshape that adds or removes dimensions of 1."""

        def long(value: Value) -> list[int]:
            rank = value.type.rank
            return [i - rank for i, n in enumerate(value.type.shape) if index.known(n) != 1]

        x, y = op.args["x"], op.result
        pairs = list(zip(long(x), long(y), strict=False))
        same = [x.type.shape[i] for i in long(x)] == [y.type.shape[i] for i in long(y)]
        if not same:
            raise _Crossed
        for a, b in pairs:
            if self.axis.get(x) == a or self.axis.get(y) == b:
                self.put(x, a)
                self.put(y, b)
                return
        raise _Crossed

    def _local(self, op: Op, tiles: list[Value]) -> None:
        for axis in {self.axis[v] for v in tiles if v in self.axis}:
            whole = max(index.known(v.type.shape[axis]) or 0 for v in tiles if v.type.rank >= -axis)
            for v in tiles:
                n = index.known(v.type.shape[axis])
                if n == whole:
                    self.put(v, axis)
                elif n != 1 or v in op.results or (v in self.axis and self.axis[v] == axis):
                    raise _Crossed
