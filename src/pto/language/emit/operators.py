"""Lower operators to instructions: operands in the form that the instruction needs, scratch, attributes,
results.

A column is contiguous in memory, and most instructions need rows, so they get the column as a row (`as_row`).
Operands whose valid region differs from that of the result are viewed with the result's valid region.
"""

from __future__ import annotations

from typing import Any

from ...ir.attrs import ArrayAttr, BoolAttr, EnumAttr, IntAttr, StrAttr
from ...ir.core import Value as PtoValue
from ...ir.types import PtrType, ScalarType, TileBufType
from ...isa import row as find_row
from ...isa.python import Signature, signatures
from ...isa.row import Row
from ..dtypes import BOOL, FP32, INT32, DataType
from ..enums import COMPARISONS, ROUNDINGS, PadValue
from ..ir import Op, TensorType, TileType, Type, Value, index, is_scalar, is_tile
from ..problems import UNSUPPORTED, fail
from .emission import Emission
from .scratch import ONLY_GIVEN, scratch_type
from .types import element, number, tile_type, two_dimensions


def signature_of(op: Op) -> Signature | None:
    """Return the function of the instruction that an operation stands for."""
    return signatures().get(op.name.removeprefix("tile."))


def is_column(type: Type) -> bool:
    """Return True if a tile has one element per row; it is stored column-major."""
    return isinstance(type, TileType) and type.space in ("vec", "") and two_dimensions(type.shape)[1] == 1


def _elements(op: Op, row: Row) -> list[Value]:
    """Return the tiles that an operation computes with; leave out packed and unpacked masks."""
    masks = row.packed.split()
    return [v for n, v in op.args.items() if is_tile(v) and v.type.dtype != BOOL and n not in masks]


class OperatorEmitter(Emission):
    def rearranged(self, op: Op) -> None:
        raise NotImplementedError  # see Gathers

    # ---- views ----

    def valid(self, type: TileType) -> tuple[Any, Any]:
        """Return the valid rows and columns."""
        return two_dimensions(type.extent)

    def settled(self, value: Value) -> PtoValue:
        """Return the tile itself, or a copy of it in contiguous memory, row after row."""
        tile = self.values[value]
        if not is_window(tile):
            return tile
        made = self.alloc(value.type.replace(space="vec"), "own")
        t: Any = tile.type
        self.build.op("pto.tmov", src=tile, dst=self.seen(made, t.rows, t.cols, self.valid(value.type)))
        return made

    def seen(self, tile: PtoValue, rows: int, cols: int, valid: tuple[Any, Any]) -> PtoValue:
        """View a tile, or its upper left part, with another valid region."""
        t: Any = tile.type
        v_row, v_col = (index.known(v) if not isinstance(v, PtoValue) else None for v in valid)
        if (t.rows, t.cols, t.v_row, t.v_col) == (rows, cols, v_row, v_col) and None not in (v_row, v_col):
            return tile
        made = t.replace(rows=rows, cols=cols, v_row=v_row, v_col=v_col)
        operands: dict[str, Any] = {}
        if v_row is None or v_col is None:
            operands = {"valid_row": self._index(valid[0]), "valid_col": self._index(valid[1])}
        zero = self.index(0)
        sizes = ArrayAttr((IntAttr(rows), IntAttr(cols)))
        part = self.build.op(
            "pto.subview", [made], {"sizes": sizes}, source=tile, offsets=[zero, zero], **operands
        ).result
        part.name = tile.name and f"{tile.name}_part"
        return part

    def as_row(self, tile: PtoValue, type: TileType) -> PtoValue:
        """View a column as the row that it is in memory."""
        t: Any = tile.type
        if t.blayout != "col_major":
            if t.rows == 1:
                return tile
            tile = self.compact(tile, type)
            t = tile.type
        made = t.replace(rows=1, cols=t.rows, v_row=1, v_col=t.rows, blayout="row_major")
        row = self.build.op("pto.treshape", [made], src=tile).result
        return self.seen(row, 1, t.rows, (1, self.valid(type)[0]))

    def compact(self, tile: PtoValue, type: TileType) -> PtoValue:
        """Copy the column of a wider tile to its own tile, by a row maximum over one element per row."""
        dst = self.alloc(type.replace(space="vec"), "column")
        source = self.seen(tile, tile.type.rows, tile.type.cols, self.valid(type))  # type: ignore[attr-defined]
        operands = self.scratch_for(find_row("pto.trowmax"), type)
        self.build.op("pto.trowmax", (), None, src=source, dst=dst, **operands)
        return dst

    def scratch_for(self, row: Any, first: TileType, precise: bool = False) -> dict[str, PtoValue]:
        """Return the scratch tiles that an instruction needs, by operand."""
        type = scratch_type(row, first, self.profile.isa, precise)
        return {} if type is None else {row.scratch[0]: self.alloc(type, "scratch")}

    def give_scratch(self, op: Op, signature: Signature, operands: dict[str, Any], first: TileType) -> None:
        """Add the scratch of an instruction: the tile that the program passes, viewed as the instruction
        needs it, or an own tile if that one is too small or of another type."""
        row = signature.row
        if not row.scratch or row.name in ONLY_GIVEN:
            return
        name = row.scratch[0]
        have = operands.pop(name, None)
        wanted = scratch_type(row, first, self.profile.isa, bool(op.args.get("high_precision")))
        if wanted is None:
            return
        made = tile_type(wanted, self.profile)
        if have is not None:
            t = have.type
            if t.elem == made.elem and t.rows >= made.rows and t.cols >= made.cols:
                operands[name] = self.seen(have, made.rows, made.cols, self.valid(wanted))
                return
        operands[name] = self.alloc(wanted, "scratch")

    def turned(self, row: Row, op: Op) -> bool:
        """Return True if an instruction gets its columns as rows."""
        return bool(row.expr) and row.over in ("", "parts") and is_column(op.results[0].type)

    # ---- instructions ----

    def instruction(self, op: Op) -> None:
        """Emit an operator that is one instruction."""
        signature = signature_of(op)
        assert signature is not None
        row = signature.row
        if row.over.startswith("fold") and self.fold_of_column(op, row):
            return
        turned = self.turned(row, op)
        first = next(iter(_elements(op, row)), op.results[0])
        operands, attrs = self.operands(op, signature, turned)
        self.give_scratch(op, signature, operands, first.type)
        for name, result in zip(signature.outs, op.results, strict=True):
            dst = self.into(op, signature, result)
            operands[name] = self.as_row(dst, result.type) if turned and result.type.dtype != BOOL else dst
        if row.expr and row.over in ("", "columns", "row"):
            self.align(op, signature, operands, turned)
        self.build.op(row.full_name, None, attrs, **operands)

    def operands(self, op: Op, signature: Signature, turned: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the inputs of an instruction by operand, and its attributes."""
        row = signature.row
        operands: dict[str, Any] = {}
        attrs: dict[str, Any] = {}
        if op.args.get("high_precision"):
            attrs["precision_mode"] = EnumAttr("precision_mode", "HIGH_PRECISION")
        for p in signature.params:
            value = op.args.get(p.name)
            if value is None or not p.operand or p.name == signature.acc:
                continue
            if p.operand in row.attr_index:
                attrs[p.operand] = attribute(row, p.operand, value)
            elif is_tile(value):
                tile = self.values[value]
                operands[p.operand] = (
                    self.as_row(tile, value.type)
                    if turned and value.type.dtype != BOOL and not p.scratch
                    else tile
                )
            elif is_scalar(value):
                operands[p.operand] = self.number(value, self.number_type(row, p.operand, op))
        if "isBinary" in row.attr_index and "tmp" in operands:
            attrs["isBinary"] = BoolAttr(True)
        return operands, attrs

    def number_type(self, row: Row, operand: str, op: Op) -> DataType:
        """Return the type in which an instruction takes a number."""
        kind = row.operands[row.operand_index[operand]].kind
        arrays = [v.type.dtype for v in _elements(op, row)]
        dtype = arrays[0] if arrays else op.result.type.dtype
        if kind == "float":
            return FP32
        if kind == "i32" or (kind == "int" and not dtype.is_int) or row.name == "ttri":
            return INT32
        return dtype

    def into(self, op: Op, signature: Signature, result: Value) -> PtoValue:
        """Return the tile of a result; if the instruction accumulates, the tile holds the initial value."""
        if not signature.acc:
            return self.result(result)
        held = op.args[signature.acc]
        if result not in self.targets and self.last_use(held, op) and held.type.dtype == result.type.dtype:
            self.values[result] = self.values[held]
            return self.values[held]
        dst = self.result(result)
        if dst is not self.values[held]:
            self.copy(self.values[held], dst, op.loc)
        return dst

    def align(self, op: Op, signature: Signature, operands: dict[str, Any], turned: bool) -> None:
        """View operands with the shape and the valid region of the result."""
        row = signature.row
        result = op.results[0].type
        if result.dtype == BOOL:
            result = next(v.type for v in op.args.values() if is_tile(v))
        masks = row.packed.split()
        by_operand = {
            p.operand: op.args[p.name].type for p in signature.params if is_tile(op.args.get(p.name))
        }
        alike = [n for n in operands if self._is_elements(row, n, masks, by_operand, signature, result)]
        rows = min((operands[n].type.rows for n in alike), default=0)
        cols = min((operands[n].type.cols for n in alike), default=0)
        v_row, v_col = self.valid(result)
        valid = (1, v_row) if turned else (v_row, v_col)
        for n in alike:
            operands[n] = self.seen_as(operands[n], by_operand.get(n, result), rows, cols, valid, turned)
        for n, type in by_operand.items():
            if n not in (*alike, *masks, *row.scratch) and n in operands and row.over in ("columns", "row"):
                t = operands[n].type
                mine = self.valid(type)
                want = (v_row, mine[1]) if row.over == "columns" else (mine[0], v_col)
                operands[n] = self.seen_as(operands[n], type, t.rows, t.cols, want, False)

    def _is_elements(
        self,
        row: Row,
        n: str,
        masks: list[str],
        types: dict[str, Any],
        signature: Signature,
        result: TileType,
    ) -> bool:
        """Return True if an operand has one element per element of the result."""
        operand = row.operands[row.operand_index[n]]
        if n in masks or operand.role == "tmp" or (n not in types and n not in signature.outs):
            return False
        return n in signature.outs or row.over == "" or index.same_dims(types[n].shape, result.shape)

    def seen_as(
        self, tile: PtoValue, type: TileType, rows: int, cols: int, valid: tuple[Any, Any], turned: bool
    ) -> PtoValue:
        """View a tile with another shape and valid region if they differ."""
        t: Any = tile.type
        mine = self.valid(type)
        mine = (1, mine[0]) if turned else mine
        if (t.rows, t.cols) == (rows, cols) and index.same_dims(mine, valid):
            return tile
        return self.seen(tile, rows, cols, valid)

    # ---- folds of columns ----

    def fold_of_column(self, op: Op, row: Row) -> bool:
        """Emit a fold of a column. Along the column it is the fold of a row; across the column there is
        nothing to do.
        """
        x = next(v for v in op.args.values() if is_tile(v))
        if not is_column(x.type):
            return False
        along = row.name.startswith("tcol")
        if along:
            source = self.as_row(self.values[x], x.type)
            other = find_row("pto." + row.name.replace("tcol", "trow"))
            flat = TileType(x.type.dtype, (1, x.type.shape[0]), None, "vec")
            scratch = self.scratch_for(other, flat)
            self.build.op(other.full_name, src=source, dst=self.result(op.result), **scratch)  # type: ignore[union-attr]
        elif "arg" in row.name:
            dst = self.as_row(self.result(op.result), op.result.type)
            self.build.op("pto.texpands", scalar=self.number(0, INT32), dst=dst)
        else:
            self.copy_column(self.values[x], x.type, self.result(op.result), op.result.type)
        return True

    def copy_column(self, source: PtoValue, s: TileType, target: PtoValue, t: TileType) -> None:
        self.build.op("pto.tmov", src=self.as_row(source, s), dst=self.as_row(target, t))

    # ---- by hand ----

    def op_full(self, op: Op) -> None:
        value = self.number(op.args["value"], op.result.type.dtype)
        self.fill(op.result, value)

    def op_expands(self, op: Op) -> None:
        self.fill(op.result, self.number(op.args["scalar"], op.result.type.dtype))

    def op_arange(self, op: Op) -> None:
        """Emit integers through a tile of signed elements, since constants have no sign."""
        dst = self.result(op.result)
        t: Any = dst.type
        signed = t.elem.text.removeprefix("u")
        if signed != t.elem.text:
            dst = self.build.op("pto.treshape", [t.replace(elem=ScalarType(signed))], src=dst).result
        start = self.number(op.args["start"], op.result.type.dtype)
        down = BoolAttr(bool(op.args.get("descending")))
        self.build.op("pto.tci", None, {"descending": down}, S=start, dst=dst)

    def fill(self, result: Value, value: PtoValue) -> None:
        dst = self.result(result)
        if is_column(result.type):
            dst = self.as_row(dst, result.type)
        self.build.op("pto.texpands", scalar=value, dst=dst)

    def op_cast(self, op: Op) -> None:
        mode = EnumAttr("round_mode", ROUNDINGS[op.args["mode"]])
        x = op.args["x"]
        src, dst = self.values[x], self.result(op.result)
        turned = is_column(x.type)
        if turned:
            src, dst = self.as_row(src, x.type), self.as_row(dst, op.result.type)
        rows, cols = (min(getattr(v.type, n) for v in (src, dst)) for n in ("rows", "cols"))
        v_row, v_col = self.valid(op.result.type)
        valid = (1, v_row) if turned else (v_row, v_col)
        src = self.seen_as(src, x.type, rows, cols, valid, turned)
        dst = self.seen_as(dst, op.result.type, rows, cols, valid, turned)
        self.build.op("pto.tcvt", None, {"rmode": mode}, src=src, dst=dst)

    def op_fillpad(self, op: Op) -> None:
        self.filled(op, "pto.tfillpad")

    def op_fillpad_expand(self, op: Op) -> None:
        self.filled(op, "pto.tfillpad_expand")

    def filled(self, op: Op, name: str) -> None:
        pad: PadValue = op.args["pad_value"]
        x = op.args["x"]
        src: Any = self.values[x]
        target = self.targets.pop(op.result, None)
        dst: Any = self.result(op.result, pad.value)
        if is_column(x.type) and is_column(op.result.type):
            src, dst = self.as_row(src, x.type), self.as_row(dst, op.result.type)
        if name == "pto.tfillpad" and src.type.shape != dst.type.shape:
            name = "pto.tfillpad_expand"
        whole = dst.type.replace(v_row=dst.type.rows, v_col=dst.type.cols)
        if dst.type != whole:
            dst = self.seen(dst, whole.rows, whole.cols, (whole.rows, whole.cols))
        self.build.op(name, src=src, dst=dst)
        if target is not None:  # padding can only be filled if the tile's type declares it
            self.copy(self.values[op.result], target, op.loc)
            self.values[op.result] = target

    def op_row_expand(self, op: Op) -> None:
        vec = op.args["row_vec"]
        if is_column(op.result.type):
            self.copy_column(self.values[vec], vec.type, self.result(op.result), op.result.type)
            return
        v_row, _ = self.valid(op.result.type)
        src = self.values[vec]
        src = self.seen_as(src, vec.type, src.type.rows, src.type.cols, (v_row, 1), False)  # type: ignore[attr-defined]
        self.build.op("pto.trowexpand", src=src, dst=self.result(op.result))

    def op_col_expand(self, op: Op) -> None:
        vec = op.args["col_vec"]
        if is_column(op.result.type):
            value = self.build.op(
                "pto.tgetval", [self.scalar_of(vec)], src=self.values[vec], offset=self.index(0)
            )
            self.build.op(
                "pto.texpands", scalar=value.result, dst=self.as_row(self.result(op.result), op.result.type)
            )
            return
        src, (_, v_col) = self.values[vec], self.valid(op.result.type)
        src = self.seen_as(src, vec.type, src.type.rows, src.type.cols, (1, v_col), False)  # type: ignore[attr-defined]
        self.build.op("pto.tcolexpand", src=src, dst=self.result(op.result))

    def scalar_of(self, value: Value) -> ScalarType:
        return number(value.type.dtype)

    def op_transpose(self, op: Op) -> None:
        x = op.args["x"]
        row = find_row("pto.ttrans")
        src, result = self.values[x], op.result
        dst = self.result(result)
        if is_column(x.type) or is_column(result.type):
            src = self.as_row(src, x.type) if is_column(x.type) else src
            dst = self.as_row(dst, result.type) if is_column(result.type) else dst
            self.build.op("pto.tmov", src=src, dst=dst)
            return
        self.build.op("pto.ttrans", (), None, src=src, dst=dst, **self.scratch_for(row, x.type))

    def op_concat(self, op: Op) -> None:
        a, c = op.args["src0"], op.args["src1"]
        for v in (a, c):
            if is_column(v.type):
                fail(
                    UNSUPPORTED,
                    "unsupported concatenation of columns",
                    op.loc,
                    help="write them to a tensor one by one",
                )
        self.build.op("pto.tconcat", src0=self.values[a], src1=self.values[c], dst=self.result(op.result))

    def op_set_validshape(self, op: Op) -> None:
        x = op.args["x"]
        t: Any = self.values[x].type
        valid = self.valid(op.result.type)
        self.values[op.result] = self.seen(self.values[x], t.rows, t.cols, valid)

    def op_reshape(self, op: Op) -> None:
        x = op.args["x"]
        if isinstance(x.type, TensorType):
            ptr = self.contiguous(x)
            if ptr is None:
                fail(UNSUPPORTED, "cannot reshape a window of a tensor", op.loc, help="load it first")
            self.tensors[op.result] = self._view(ptr, op.result.type)
            self.values[op.result] = ptr
            return
        made = tile_type(op.result.type, self.profile)
        source: Any = self.values[x]
        alike = (source.type.rows, source.type.cols, source.type.blayout) == (
            made.rows,
            made.cols,
            made.blayout,
        )
        gaps = is_window(source) or has_gaps(x.type, source.type) or has_gaps(op.result.type, made)
        if gaps and not alike:
            self.rearranged(op)
            return
        self.values[op.result] = self.reshaped(source, x.type, op.result.type, made, op)

    def reshaped(
        self, source: PtoValue, have: TileType, want: TileType, made: TileBufType, op: Op
    ) -> PtoValue:
        """View the same bytes in another shape."""
        t: Any = source.type
        if (t.rows, t.cols, t.blayout, t.elem) == (made.rows, made.cols, made.blayout, made.elem):
            return self.seen_as(source, have, t.rows, t.cols, self.valid(want), False)
        if t.size != made.size or is_window(source):
            fail(UNSUPPORTED, "cannot reshape a tile with padded rows", op.loc,
                 got=f"{have}, in memory {t}", help="use widths that are multiples of 32 bytes")  # fmt: skip
        whole = made.replace(v_row=made.rows, v_col=made.cols) if made.valid is None else made
        row = self.build.op("pto.treshape", [whole], src=source).result
        return self.seen(row, made.rows, made.cols, self.valid(want)) if made.valid is None else row

    def op_reinterpret_view(self, op: Op) -> None:
        x = op.args["x"]
        if isinstance(x.type, TensorType):
            self.reinterpreted(op, x)
            return
        made = tile_type(op.result.type, self.profile)
        source = self.settled(x)
        self.values[op.result] = self.reshaped(source, x.type, op.result.type, made, op)

    def reinterpreted(self, op: Op, x: Value) -> None:
        """View memory as elements of another type."""
        ptr = self.contiguous(x)
        if ptr is None:
            fail(UNSUPPORTED, "cannot reinterpret a window of a tensor", op.loc,
                 help="load it first: a tile can be reinterpreted")  # fmt: skip
        type = PtrType(element(op.result.type.dtype), "gm")
        cast = self.build.op("pto.castptr", [type], addr=ptr).result
        self.tensors[op.result] = self._view(cast, op.result.type)
        self.values[op.result] = cast

    def op_tile_extract(self, op: Op) -> None:
        a = op.args
        at = {"indexRow": self.index(a["index_row"]), "indexCol": self.index(a["index_col"])}
        self.build.op("pto.textract", (), None, src=self.values[a["src"]], dst=self.result(op.result), **at)

    # ---- comparisons ----

    def op_tile_cmp(self, op: Op) -> None:
        """Emit a comparison. a2a3 compares INT32 for equality only, so other comparisons compare with the
        larger operand."""
        mode = COMPARISONS[op.args["cmp_type"]]
        lhs = op.args["lhs"]
        if lhs.type.dtype.isa == "i32" and self.profile.isa == "a2a3" and mode != "eq":
            self.compare_words(op, mode)
            return
        if self.profile.isa == "cpu":  # bytes of predicates are packed, with that number of bytes per row
            mask, data = self.result(op.result), self.values[lhs].type
            t: Any = mask.type
            bytes_ = (data.rows if is_column(lhs.type) else data.cols) // 8  # type: ignore[attr-defined]
            self.targets[op.result] = self.seen(mask, t.rows, t.cols, (self.mask_rows(lhs.type), bytes_))
        self.instruction(op)

    def mask_rows(self, type: TileType) -> int:
        return 1 if is_column(type) else self.valid(type)[0]

    op_tile_cmps = op_tile_cmp

    def compare_words(self, op: Op, mode: str) -> None:
        lhs, rhs = op.args["lhs"], op.args["rhs"]
        turned = is_column(lhs.type)
        a = self.as_row(self.values[lhs], lhs.type) if turned else self.values[lhs]
        larger = self.alloc(lhs.type.replace(space="vec"), "larger")
        larger = self.as_row(larger, lhs.type) if turned else larger
        if is_scalar(rhs):
            b = self.number(rhs, INT32)
            self.build.op("pto.tmaxs", src=a, scalar=b, dst=larger)
        else:
            b = self.as_row(self.values[rhs], rhs.type) if turned else self.values[rhs]
            b = self.seen_as(b, rhs.type, a.type.rows, a.type.cols, self.valid(lhs.type), turned)  # type: ignore[attr-defined]
            self.build.op("pto.tmax", src0=a, src1=b, dst=larger)
        # a <= b if the larger one is b; a >= b if it is a; other comparisons are negations
        first, second = {"ne": (a, b), "le": (larger, b), "gt": (larger, b)}.get(mode, (larger, a))
        dst = self.result(op.result)
        eq = {"cmpMode": EnumAttr("cmp", "eq")}
        t: Any = dst.type
        dst = self.seen(
            dst, t.rows, t.cols, (self.mask_rows(lhs.type), t.cols)
        )  # sets all bits, for `opposite`
        if is_scalar(rhs) and second is b:
            self.build.op("pto.tcmps", None, eq, src=first, scalar=second, dst=dst)
        else:
            self.build.op("pto.tcmp", None, eq, src0=first, src1=second, dst=dst)
        if mode in ("ne", "lt", "gt"):
            self.opposite(dst)

    def opposite(self, mask: PtoValue) -> None:
        """Negate every bit of a predicate."""
        t: Any = mask.type
        from ..dtypes import DATA_TYPES

        words = t.replace(
            elem=element(DATA_TYPES["INT16"]), cols=t.cols // 2, v_row=t.rows, v_col=t.cols // 2
        )
        wide = self.build.op("pto.treshape", [words], src=mask).result
        self.build.op("pto.tnot", src=wide, dst=wide)

    def op_sel(self, op: Op) -> None:
        """Emit a selection. On cpu, mask bits are counted through the valid region of the result, so it must
        have all columns."""
        if self.profile.isa != "cpu":
            self.instruction(op)
            return
        turned = is_column(op.result.type)
        tiles = {n: op.args[n] for n in ("lhs", "rhs")}
        dst = self.result(op.result)
        dst = self.as_row(dst, op.result.type) if turned else dst
        v_row = 1 if turned else self.valid(op.result.type)[0]
        whole = (dst.type.rows, dst.type.cols)  # type: ignore[attr-defined]
        found = {}
        for n, v in tiles.items():
            tile = self.as_row(self.values[v], v.type) if turned else self.values[v]
            if tile.type.shape != whole:  # type: ignore[attr-defined]
                copy = self.alloc(v.type.replace(space="vec"), "whole")
                small = self.seen(copy, *tile.type.shape, self.valid(v.type))  # type: ignore[attr-defined]
                self.build.op("pto.tmov", src=tile, dst=small)
                tile = copy
            found[n] = self.seen(tile, *whole, (v_row, whole[1]))
        mask = self.values[op.args["mask"]]
        mask = self.seen(mask, *mask.type.shape, (v_row, whole[1] // 8))  # type: ignore[attr-defined]
        self.build.op("pto.tsel", mask=mask, src0=found["lhs"], src1=found["rhs"],
                      dst=self.seen(dst, *whole, (v_row, whole[1])))  # fmt: skip


def has_gaps(type: TileType, tile: TileBufType) -> bool:
    """Return True if the rows of a tile are padded, so that they are not contiguous."""
    rows, cols = two_dimensions(type.shape)
    return tile.blayout == "row_major" and tile.cols != cols and rows > 1


def is_window(tile: PtoValue) -> bool:
    """Return True if a tile is a part of another, with gaps between its rows."""
    made = tile.op
    while made is not None and made.name == "pto.subview":
        source = made.get("source")
        assert source is not None
        if source.type.cols != tile.type.cols:  # type: ignore[attr-defined]
            return True
        tile, made = source, source.op
    return False


def attribute(row: Row, name: str, value: Any) -> object:
    """Return a value as an attribute of a row."""
    kind = row.attr_index[name].kind
    if kind == "cmp":
        return EnumAttr("cmp", COMPARISONS[value])
    if kind == "bool":
        return BoolAttr(bool(value))
    if kind == "int":
        return IntAttr(int(value))
    if kind == "str":
        return StrAttr(str(value))
    return EnumAttr(kind, getattr(value, "name", value))
