"""Gather, scatter and sort as instructions.

Instructions number the elements of a whole tile; the language numbers them within a row. So each index is
increased by the number of the first element of its row, which `arange` makes. On hardware, scatter clears the
other elements of the tile: a second scatter, of ones, gives the mask by which the earlier values are
selected.
"""

from __future__ import annotations

from typing import Any

from ...ir.attrs import BoolAttr, EnumAttr, IntAttr, OpaqueAttr, StrAttr
from ...ir.core import Value as PtoValue
from ..dtypes import DATA_TYPES, FP32, INT32, DataType
from ..enums import COMPARISONS, MaskPattern
from ..ir import Op, TensorType, TileType, Value, index
from ..operators.quant import MX
from ..problems import UNSUPPORTED, fail
from .operators import OperatorEmitter, is_column
from .types import two_dimensions

_FP16, _INT16 = DATA_TYPES["FP16"], DATA_TYPES["INT16"]


class Gathers(OperatorEmitter):
    # ---- helpers ----

    def do(self, name: str, type: TileType, **args: object) -> Value:
        """Emit another operation within the current one."""
        op = Op(name, args, [type], self.loc)
        self.op(op)
        return op.result

    def named(self, tile: PtoValue, type: TileType) -> Value:
        """Return an existing tile as a value."""
        made = Value(type)
        self.values[made] = tile
        return made

    def numbered(self, places: Value, cols: int) -> Value:
        """Turn column indices of each row into element numbers, for tiles of `cols` columns."""
        t = places.type
        rows = two_dimensions(t.shape)[0]
        if rows == 1:
            return places
        line = TileType(t.dtype, (1, rows), None, "vec")
        first = self.do("arange", line, start=0, shape=[1, rows], dtype=t.dtype, descending=0)
        first = self.do("muls", line, lhs=first, rhs=cols)
        column = line.replace(shape=(rows, 1))
        first = self.do("reshape", column, x=first, shape=[rows, 1])
        return self.do("row_expand_add", t.replace(space="vec"), lhs=places, rhs=first)

    def padded(self, places: Value, dtype: DataType) -> tuple[PtoValue, int]:
        """Return indices for every element of a tile whose rows are whole blocks; padding gets index 0."""
        t = places.type
        rows, cols = t.shape
        line = 256 // min(t.dtype.bits, dtype.bits)
        wide = -(-cols // line) * line
        tile = self.values[places]
        have: Any = tile.type
        if (have.rows, have.cols, have.v_row, have.v_col) == (rows, wide, rows, wide):
            return tile, wide
        made = self.alloc(TileType(t.dtype, (rows, wide), None, "vec"), "places", 1)
        self.build.op("pto.tfillpad_expand", src=tile, dst=made)
        return made, wide

    # ---- gather ----

    def op_gather(self, op: Op) -> None:
        x, places = op.args["x"], op.args["index"]
        self._rows_of(x, op)
        source = self.settled(x)
        if places.type.dtype.bits == 16:
            places = self._words(places)
        self._gather(op, source, self.numbered(places, source.type.cols))  # type: ignore[attr-defined]

    def op_tile_gather(self, op: Op) -> None:
        x, places = op.args["src"], op.args["indices"]
        source = self.as_row(self.values[x], x.type) if is_column(x.type) else self.settled(x)
        if source.type.cols != x.type.shape[-1] and source.type.rows > 1:  # type: ignore[attr-defined]
            fail(
                UNSUPPORTED,
                "cannot gather by element numbers from a tile with padded rows",
                op.loc,
                got=x.type,
                help="use widths that are multiples of 32 bytes, or pl.gather(x, dim=-1, index=..)",
            )
        if places.type.dtype.bits == 16:
            places = self._words(places)
        self._gather(op, source, places)

    def _words(self, places: Value) -> Value:
        """Widen 16-bit indices to 32 bits."""
        from ..operators.casts import chain

        for step in chain(places.type.dtype.isa, "i32", self.profile.isa) or ():
            dtype = next(d for d in DATA_TYPES.values() if d.isa == step)
            made = places.type.replace(dtype=dtype, space="vec")
            places = self.do("cast", made, x=places, target_type=dtype, mode="rint")
        return places

    def _gather(self, op: Op, source: PtoValue, places: Value) -> None:
        t = op.result.type
        if is_column(places.type):
            fail(
                UNSUPPORTED,
                "unsupported column of indices for a gather",
                op.loc,
                got=places.type,
                help="reshape it to a row",
            )
        numbers, wide = self.padded(places, t.dtype)
        rows = t.shape[0]
        dst = self.alloc(TileType(t.dtype, (rows, wide), None, "vec"), op.result.name)
        more = {}
        if self.profile.isa != "cpu":
            more["tmp"] = self.alloc(TileType(places.type.dtype, (rows, wide), None, "vec"), "scratch")
        self.build.op("pto.tgather", src=source, dst=dst, indices=numbers, **more)
        self._found(op, dst)

    def _found(self, op: Op, dst: PtoValue) -> None:
        """Return a result that is part of a tile; copy the part if the result has its own tile."""
        t: Any = dst.type
        seen = self.seen(dst, t.rows, t.cols, self.valid(op.result.type))
        target = self.targets.pop(op.result, None)
        self.values[op.result] = seen
        if target is not None:
            self.copy(seen, target, op.loc)
            self.values[op.result] = target

    def _rows_of(self, x: Value, op: Op) -> None:
        if is_column(x.type):
            fail(UNSUPPORTED, "elements of rows that have one", op.loc, got=x.type)

    def op_tile_gather_mask(self, op: Op) -> None:
        """Keep selected columns of all rows, packed: row by row if the packed rows leave no gaps."""
        x, t = op.args["src"], op.result.type
        mask: MaskPattern = op.args["mask_pattern"]
        attrs = {"maskPattern": EnumAttr("mask_pattern", mask.name)}
        dst = self.result(op.result)
        source = self.values[x]
        rows, cols = t.shape
        made: Any = dst.type
        whole = made.cols == cols and index.same(x.type.extent[-1], x.type.shape[-1])
        if whole or rows == 1:
            out = self.seen(dst, rows, made.cols, (rows, made.cols))
            self.build.op("pto.tgather", None, attrs, src=source, dst=out)
            return
        for r in range(rows):
            line = self.line(source, r, x.type.shape[-1], x.type.extent[-1])
            self.build.op("pto.tgather", None, attrs, src=line, dst=self.line(dst, r, made.cols, made.cols))

    def line(self, tile: PtoValue, row: int, cols: int, valid: Any) -> PtoValue:
        """Return one row of a tile."""
        from ...ir.attrs import ArrayAttr

        t = tile.type
        v_col = index.known(valid)
        made = t.replace(rows=1, cols=cols, v_row=1, v_col=v_col)
        more = {} if v_col is not None else {"valid_row": self.index(1), "valid_col": self.index(valid)}
        sizes = ArrayAttr((IntAttr(1), IntAttr(cols)))
        at = [self.index(row), self.index(0)]
        return self.build.op("pto.subview", [made], {"sizes": sizes}, source=tile, offsets=at, **more).result

    def op_tile_gather_compare(self, op: Op) -> None:
        x = op.args["src"]
        found, counts = op.results
        rows, cols = x.type.shape
        bits = found.type.dtype.bits
        room = rows * cols + rows * cols * bits // 8 + rows * x.type.dtype.bits // 8
        scratch = self.alloc(
            TileType(found.type.dtype, (1, -(-room * 8 // bits // 8) * 8 + 64), None, "vec"), "scratch"
        )
        attrs = {
            "cmpMode": EnumAttr("cmp", COMPARISONS[op.args["cmp_mode"]]),
            "offset": IntAttr(op.args["offset"]),
        }
        value = self.number(op.args["kvalue"], x.type.dtype)
        self.build.op(
            "pto.tgather",
            None,
            attrs,
            src=self.settled(x),
            dst=self.result(found),
            cdst=self.result(counts),
            kValue=value,
            tmp=scratch,
        )

    def rearranged(self, op: Op) -> None:
        """Reshape a tile with padded rows, before or after: element n of the source is element n of the
        result."""
        x, t = op.args["x"], op.result.type
        if is_column(t):  # a column is stored as a row
            line = TileType(t.dtype, (1, t.shape[0]), None if t.valid is None else (1, t.extent[0]), "vec")
            row = self.do("reshape", line, x=x, shape=list(line.shape))
            self.values[op.result] = self.values[self.do("reshape", t, x=row, shape=list(t.shape))]
            return
        source: Any = self.as_row(self.values[x], x.type) if is_column(x.type) else self.settled(x)
        rows, cols = t.shape
        line = TileType(INT32, (1, cols), None, "vec")
        count = self.do("arange", line, start=0, shape=[1, cols], dtype=INT32, descending=0)
        whole = TileType(INT32, (rows, cols), None, "vec")
        if rows > 1:
            count = self.do("col_expand", whole, target=count, col_vec=count)
        count = self.numbered(count, cols)
        if source.type.rows > 1:
            width = x.type.shape[1]
            row_of = self.do("divs", whole, lhs=count, rhs=width)
            gap = self.do("muls", whole, lhs=row_of, rhs=source.type.cols - width)
            count = self.do("add", whole, lhs=count, rhs=gap)
        self._gather(op, source, count)

    # ---- scatter ----

    def op_scatter(self, op: Op) -> None:
        x, places, source = (op.args[n] for n in ("x", "index", "src"))
        self._rows_of(x, op)
        cols = self._columns(x.type)
        self._scatter(op, x, source, self.numbered(self._width(places, x.type.dtype), cols))

    def op_tile_scatter(self, op: Op) -> None:
        x, source, places = (op.args[n] for n in ("dst", "src", "indexes"))
        if self._columns(x.type) != x.type.shape[-1] and x.type.shape[0] > 1:
            fail(UNSUPPORTED, "cannot scatter by element numbers into a tile with padded rows", op.loc,
                 got=x.type,
                 help="use widths that are multiples of 32 bytes, or pl.scatter(x, dim=-1, ..)")  # fmt: skip
        self._scatter(op, x, source, self._width(places, x.type.dtype))

    def _columns(self, t: TileType) -> int:
        line = 256 // t.dtype.bits
        return -(-t.shape[-1] // line) * line

    def _width(self, places: Value, dtype: DataType) -> Value:
        """Convert indices to the width of the elements."""
        wanted = INT32 if dtype.bits == 32 else _INT16
        if places.type.dtype.bits == wanted.bits or self.profile.isa == "cpu":
            return places
        if wanted == INT32:
            return self._words(places)
        made = places.type.replace(dtype=wanted, space="vec")
        return self.do("cast", made, x=places, target_type=wanted, mode="rint")

    def _scatter(self, op: Op, x: Value, source: Value, places: Value) -> None:
        def into_zeros(what: Value, dtype: DataType) -> Value:
            t = TileType(dtype, x.type.shape, None, "vec")
            made = self.do("full", t, shape=list(t.shape), dtype=dtype, value=0)
            self.build.op(
                "pto.tscatter", src=self.values[what], indexes=self.values[places], dst=self.values[made]
            )
            return made

        self._select(op, x, source, into_zeros)

    def op_tile_scatter_mask(self, op: Op) -> None:
        x, source = op.args["dst"], op.args["src"]
        attrs = {"maskPattern": EnumAttr("mask_pattern", op.args["mask_pattern"].name)}

        def into_zeros(what: Value, dtype: DataType) -> Value:
            t = TileType(dtype, x.type.shape, x.type.valid, "vec")
            made = self.do("full", t, shape=list(t.shape), dtype=dtype, value=0)
            self.build.op("pto.tscatter", None, attrs, src=self.values[what], dst=self.values[made])
            return made

        self._select(op, x, source, into_zeros)

    def _select(self, op: Op, x: Value, source: Value, into_zeros: Any) -> None:
        """Select scattered values where the scattered ones are, else the earlier values."""
        t = source.type
        hits_type = FP32 if t.dtype.bits == 32 else _FP16
        ones_type = t.replace(dtype=hits_type, space="vec")
        ones = self.do("full", ones_type, shape=list(t.shape), dtype=hits_type, value=1)
        moved, hits = into_zeros(source, t.dtype), into_zeros(ones, hits_type)
        mask_type = TileType(DATA_TYPES["BOOL"], x.type.shape, None, "vec")
        mask = self.do("tile.cmps", mask_type, lhs=hits, rhs=0.0, cmp_type=1)
        again = Op("sel", {"mask": mask, "lhs": moved, "rhs": x}, [op.result.type], op.loc)
        if op.result in self.targets:
            self.targets[again.result] = self.targets.pop(op.result)
        self.op(again)
        self.values[op.result] = self.values[again.result]

    # ---- memory ----

    def op_tile_mgather(self, op: Op) -> None:
        a = op.args
        attrs = {"coalesce": StrAttr(a["coalesce"]), "gatherOob": EnumAttr("gather_oob", a["gather_oob"])}
        idx = self._whole(a["idx"]) if isinstance(a["idx"].type, TensorType) else self._places(a["idx"])
        more = {"scratch": self._whole(a["scratch"])} if a.get("scratch") is not None else {}
        mem, dst = self._whole(a["mem"]), self.result(op.result)
        self.build.op("pto.mgather", None, attrs, mem=mem, idx=idx, dst=dst, **more)

    def _whole(self, tensor: Value) -> PtoValue:
        shape = list(tensor.type.shape)
        return self.window(tensor, [0] * len(shape), shape)

    def _places(self, idx: Value) -> PtoValue:
        if is_column(idx.type):
            return self.as_row(self.values[idx], idx.type)
        return self.values[self._words(idx)] if idx.type.dtype.bits == 16 else self.values[idx]

    def op_mscatter(self, op: Op) -> None:
        a = op.args
        shape = list(a["output_tensor"].type.shape)
        view = self.window(a["output_tensor"], [0] * len(shape), shape)
        self.build.op("pto.mscatter", None, {"coalesce": StrAttr("elem")}, src=self.values[a["src"]],
                      idx=self._places(a["idx"]), mem=view)  # fmt: skip

    def op_gather_row(self, op: Op) -> None:
        """Load a row into a part of a tile. A column is loaded from the transposed tensor, which needs a
        column-major tile."""
        a, dst = op.args, op.args["dst"]
        turned = a["transpose"]
        if turned and not dst.type.transposed:
            fail(UNSUPPORTED, "cannot gather a row into a column of a row-major tile", op.loc, got=dst.type,
                 expected="pl.create_l1(shape, dtype, transpose=True), for a product",
                 help="gather rows and transpose the tile")  # fmt: skip
        valid = two_dimensions(a["valid_shape"] or a["shapes"])
        window = self.window(a["src"], a["src_offset"], a["valid_shape"] or a["shapes"], turned)
        shape = two_dimensions(a["shapes"])
        part = TileType(dst.type.dtype, shape[::-1] if turned else shape, valid[::-1] if turned else valid,
                        dst.type.space, dst.type.transposed)  # fmt: skip
        into = self.window_of(dst, part, list(self.flat(dst, a["dst_offset"])))
        self.build.op("pto.tload", src=window, dst=into)

    # ---- sorting ----

    def op_mrgsort(self, op: Op) -> None:
        a = op.args
        if a.get("block_len") is not None:
            length = self.number(a["block_len"], INT32)
            self.build.op(
                "pto.tmrgsort", src=self.values[a["src0"]], blockLen=length, dst=self.result(op.result)
            )
            return
        lists = [a[f"src{n}"] for n in range(4) if a.get(f"src{n}") is not None]
        names = ("src", "src1", "src2", "src3")
        given = {n: self.values[v] for n, v in zip(names, lists, strict=False)}
        scratch = self.alloc(op.result.type.replace(space="vec", valid=None), "scratch")
        self.build.op("pto.tmrgsort", None, {"exhausted": BoolAttr(bool(a.get("exhausted")))}, **given,
                      dst=self.result(op.result), tmp=scratch, excuted=self.taken())  # fmt: skip

    def taken(self) -> PtoValue:
        """Return the vector that receives the number of elements taken from each list."""
        from ...asm.type_text import parse_type

        type = parse_type("vector<4xi16>")
        return self.build.op(
            "arith.constant", [type], {"value": OpaqueAttr("dense<0> : vector<4xi16>")}
        ).result

    # ---- quantisation ----

    def op_quant(self, op: Op) -> None:
        x, scale, offset = (op.args[n] for n in ("x", "scale", "offset"))
        scheme = "INT8_SYM" if offset is None else "INT8_ASYM"
        more = {} if offset is None else {"offset": self.values[offset]}
        self.build.op(
            "pto.tquant", None, {"quant_type": EnumAttr("quant_type", scheme)}, src=self.values[x],
            fp=self.values[scale], dst=self.result(op.result), **more,
        )  # fmt: skip

    def op_quant_mx(self, op: Op) -> None:
        x, (made, exponents) = op.args["x"], op.results
        groups = exponents.type.shape[0] * exponents.type.shape[1]
        flat = TileType(FP32 if x.type.dtype == FP32 else x.type.dtype, (1, groups), None, "vec")
        attrs = {
            "quant_type": EnumAttr("quant_type", MX[op.args["dtype"].name]),
            "scale_alg": StrAttr(op.args["scale_alg"]),
        }
        self.build.op(
            "pto.tquant", None, attrs, src=self.values[x], dst=self.result(made), exp=self.result(exponents),
            max=self.alloc(flat, "largest"), scaling=self.alloc(flat, "scaling"),
        )  # fmt: skip
