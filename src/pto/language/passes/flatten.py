"""Reduce tiles to two dimensions: leading dimensions are merged into rows, a single dimension is a row.

    x = pl.load(t, [0, 0, 0], [2, 8, 32])        x = pl.reshape(pl.load(t, [0, 0, 0], [2, 8, 32]), [16, 32])
    y = pl.col_sum(x)                            y = pl.create_tile([2, 32], ..), a row of it per page

Operations within rows stay one operation. Operations within a page, the last two dimensions, are done page by
page. Windows and parts that are not a run of rows are assembled from runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ..enums import AtomicType, MemorySpace
from ..ir import Function, Number, Op, Program, ShapedType, TileType, Type, Value, index, is_tile
from ..operators.memory import count, merged_part
from ..problems import UNSUPPORTED, fail
from .rewrite import Rewriter, each_function

#: Operators along the columns of a page, and the parameter with the pages.
_ALONG_ROWS = {f"col_{n}": "x" for n in ("sum", "max", "min", "prod", "argmax", "argmin")}
#: Operators with one row for all rows of a page: the pages, and the row.
_WITH_ROW = {
    **{f"col_expand_{n}": ("lhs", "rhs") for n in ("add", "sub", "mul", "div", "max", "min", "expdif")},
    "col_expand": ("target", "col_vec"),
}


def flatten(program: Program) -> Program:
    return each_function(program, _flattened)


def _flattened(function: Function) -> Function:
    wanted = any(
        isinstance(r.type, TileType) and r.type.rank != 2 for op in function.walk() for r in op.results
    )
    return _Flatten().function(function) if wanted and function.kind != "orchestration" else function


class _Flatten(Rewriter):
    def type_of(self, type: Type) -> Any:
        found = super().type_of(type)
        return self.flat(found) if isinstance(found, TileType) and found.rank != 2 else found

    def flat(self, t: TileType) -> TileType:
        """Return the type of a tile with merged leading dimensions."""
        rows = count(self.build, t.shape[:-1])
        valid = None
        if t.valid is not None:
            lead = list(zip(t.shape[:-1], t.extent[:-1], strict=True))
            part = merged_part(self.build, lead, [rows]) if lead else [1]
            if part is None:
                part = self._no_run(t)
            valid = (part[0], t.extent[-1])
        return t.replace(shape=(rows, t.shape[-1]), valid=valid)

    def _no_run(self, t: ShapedType) -> NoReturn:
        fail(UNSUPPORTED, "unsupported valid region of a tile: not a run of rows", self.build.place, got=t,
             help="work on one page at a time, or pl.fillpad first")  # fmt: skip

    # ---- memory ----

    def op_load(self, op: Op) -> None:
        t = op.result.type
        if t.rank == 2:
            self.copy(op)
            return
        made = self.build.op("load", [Rewriter.type_of(self, t)], **self.of(op.args))
        made.name = op.result.name
        self.map(op.result, self._reshape(made, self.type_of(t)))

    def op_store(self, op: Op) -> None:
        tile = op.args["tile"]
        args = self.of(op.args)
        if is_tile(tile) and tile.type.rank != 2:
            args["tile"] = self._reshape(args["tile"], Rewriter.type_of(self, tile.type))
        self.build.append("store", [], args)

    def _reshape(self, value: Value, type: TileType) -> Value:
        if index.same_dims(value.type.shape, type.shape):
            return value
        made = self.build.op(
            "reshape", [type.replace(space=value.type.space)], x=value, shape=list(type.shape)
        )
        made.name = value.name
        return made

    # ---- shapes ----

    def copy(self, op: Op) -> Op:
        made = super().copy(op)
        for old, new in zip(op.results, made.results, strict=True):
            if (
                isinstance(old.type, TileType)
                and old.type.rank != 2
                and isinstance(op.args.get("shape"), list)
            ):
                made.args["shape"] = list(new.type.shape)
                if made.args.get("valid_shape") is not None:
                    made.args["valid_shape"] = list(new.type.extent)
        return made

    def op_reshape(self, op: Op) -> None:
        if not is_tile(op.args["x"]):
            self.copy(op)
            return
        t = self.type_of(op.result.type)
        self.map(op.result, self._reshape(self.of(op.args["x"]), t.replace(space="")))

    def op_slice(self, op: Op) -> None:
        x = op.args["x"]
        if not is_tile(x) or (x.type.rank == 2 and op.result.type.rank == 2):
            self.copy(op)
            return
        shape, offset = list(op.args["shape"]), self.of(op.args["offset"])
        source, t = self.of(x), self.type_of(op.result.type)
        runs = list(_runs(x.type, shape))
        if len(runs) == 1:
            at = [self._row(x.type, offset), offset[-1]]
            made = self._window(source, at, t)
        else:
            made = self._create(t)
            for n, (start, rows) in enumerate(runs):
                at = [
                    self._row(
                        x.type, [self.build.scalar("add", o, s) for o, s in zip(offset, start, strict=False)]
                    ),
                    offset[-1],
                ]
                part = t.replace(
                    shape=(rows, t.shape[-1]), valid=None if t.valid is None else (rows, t.extent[-1])
                )
                self._insert(made, self._window(source, at, part), [n * rows, 0])
        self.map(op.result, made)

    def _window(self, source: Value, at: Sequence[object], t: TileType) -> Value:
        valid = None if t.valid is None else list(t.valid)
        return self.build.op("slice", [t.replace(space=source.type.space)], x=source, shape=list(t.shape),
                             offset=at, valid_shape=valid, drop_dims=None)  # fmt: skip

    def _row(self, t: ShapedType, offset: Sequence[Number]) -> Number:
        """Return the row of the merged tile for an offset in its leading dimensions."""
        row: Number = 0
        for n, o in zip(t.shape[:-1], offset, strict=False):
            row = self.build.scalar("add", self.build.scalar("mul", row, n), o)
        return row

    def op_assemble(self, op: Op) -> None:
        target, source = op.args["target"], op.args["source"]
        if not is_tile(target) or (target.type.rank == 2 and source.type.rank == 2):
            self.copy(op)
            return
        t, s, offset = self.of(target), self.of(source), self.of(op.args["offset"])
        extent = list(source.type.extent)[-target.type.rank :]
        extent = [1] * (target.type.rank - len(extent)) + extent
        known = [index.known(n) for n in extent]
        runs = list(_runs(target.type, known)) if None not in known[:-1] else []
        if len(runs) > 1 or (not runs and target.type.rank > 2):
            if source.type.valid is not None:
                self._no_run(source.type)
        for n, (start, rows) in enumerate(runs or [([0] * len(offset), s.type.shape[0])]):
            at = [
                self._row(
                    target.type, [self.build.scalar("add", o, d) for o, d in zip(offset, start, strict=False)]
                ),
                offset[-1],
            ]
            part = s
            if len(runs) > 1:
                part = self._window(
                    s, [n * rows, 0], s.type.replace(shape=(rows, s.type.shape[-1]), valid=None)
                )
            self._insert(t, part, at)

    def _insert(self, target: Value, source: Value, at: Sequence[object]) -> None:
        self.build.append("assemble", [], {"target": target, "source": source, "offset": at,
                                           "atomic": AtomicType.None_})  # fmt: skip

    def _create(self, t: TileType) -> Value:
        return self.build.op("create_tile", [t.replace(space="vec")], shape=list(t.shape), dtype=t.dtype,
                             target_memory=MemorySpace.Vec)  # fmt: skip

    def op_set_validshape(self, op: Op) -> None:
        made = self.copy(op)
        if op.result.type.rank != 2 and is_tile(op.args["x"]):
            made.args["valid_rows"], made.args["valid_cols"] = made.result.type.extent

    def op_read(self, op: Op) -> None:
        self._element(op)

    def op_write(self, op: Op) -> None:
        self._element(op)

    def _element(self, op: Op) -> None:
        made = self.copy(op)
        x, offset = op.args["x"], made.args["offset"]
        if is_tile(x) and len(offset) == x.type.rank != 2:
            at = self.build.block.ops.pop()  # numbers are computed before their uses
            made.args["offset"] = [self._row(x.type, offset), offset[-1]]
            self.build.block.append(at)

    # ---- page by page ----

    def op_transpose(self, op: Op) -> None:
        x = op.args["x"]
        axes = sorted((op.args["axis1"], op.args["axis2"]))
        if not is_tile(x) or x.type.rank == 2:
            self.copy(op)
            return
        rank = x.type.rank
        if axes == [rank - 2, rank - 1]:
            self._paged(op, {"x": op.args["x"]}, {"axis1": 0, "axis2": 1})
            return
        if axes[1] == rank - 1:
            fail(
                UNSUPPORTED,
                "unsupported transpose of the last dimension",
                op.loc,
                got=x.type,
                expected=f"use axes {rank - 2} and {rank - 1}, or two axes before the last",
                help="transpose in two steps",
            )
        source, t = self.of(x), self.type_of(op.result.type)
        made = self._create(t)
        line = t.replace(shape=(1, t.shape[-1]), valid=None if t.valid is None else (1, t.extent[-1]))
        for at in itertools.product(*(range(n) for n in op.result.type.shape[:-1])):
            before = list(at)
            before[axes[0]], before[axes[1]] = before[axes[1]], before[axes[0]]
            row = self._row(x.type, before)
            self._insert(made, self._window(source, [row, 0], line), [self._row(op.result.type, list(at)), 0])
        self.map(op.result, made)

    def op(self, op: Op) -> None:
        before, self.build.place = self.build.place, op.loc
        try:
            name = op.name.removeprefix("tile.")
            if name in _ALONG_ROWS and op.args[_ALONG_ROWS[name]].type.rank > 2:
                self._paged(op, {_ALONG_ROWS[name]: op.args[_ALONG_ROWS[name]]}, {})
            elif name in _WITH_ROW and self._row_per_page(op, *_WITH_ROW[name]):
                self._paged(op, {n: op.args[n] for n in _WITH_ROW[name]}, {})
            else:
                super().op(op)
        finally:
            self.build.place = before

    def _row_per_page(self, op: Op, pages: str, row: str) -> bool:
        return op.args[pages].type.rank > 2 and any(index.known(d) != 1 for d in op.args[row].type.shape[:-1])

    def _paged(self, op: Op, arrays: dict[str, Value], changes: Mapping[str, object]) -> None:
        """Apply an operation to every page, into one tile for all."""
        t = self.type_of(op.result.type)
        made = self._create(t)
        given = {k: v for k, v in self.of(op.args).items() if k not in arrays and not is_tile(v)}
        result = op.result.type
        for p, _ in enumerate(itertools.product(*(range(n) for n in result.shape[:-2]))):
            parts = {n: self._page(v, p) for n, v in arrays.items()}
            page = result.replace(
                shape=result.shape[-2:], valid=None if result.valid is None else result.valid[-2:]
            )
            order = {k: {**given, **parts, **changes}[k] for k in op.args if k in {**given, **parts}}
            done = self.build.op(op.name, [page.replace(space="vec")], **order)
            self._insert(made, done, [p * result.shape[-2], 0])
        self.map(op.result, made)

    def _page(self, value: Value, p: int) -> Value:
        t = value.type
        if not all(index.same(m, n) for m, n in zip(t.shape[:-2], t.extent[:-2], strict=True)):
            self._no_run(t)
        page = t.replace(shape=t.shape[-2:], valid=None if t.valid is None else t.valid[-2:])
        return self._window(self.of(value), [p * t.shape[-2], 0], page)


def _runs(t: ShapedType, shape: list[Any]) -> Any:
    """Return the runs of rows that a box of a tile consists of: the offset of each in leading dimensions, and
    its number of rows."""
    lead, sizes = list(t.shape[:-1]), list(shape[:-1])
    whole = len(sizes)
    while whole > 0 and sizes[whole - 1] == lead[whole - 1]:
        whole -= 1
    first = max(0, whole - 1)  # dimensions from here on are one run
    rows = 1
    for n in sizes[first:]:
        rows *= n
    for at in itertools.product(*(range(n) for n in sizes[:first])):
        yield [*at, *([0] * (len(sizes) - first))], rows
