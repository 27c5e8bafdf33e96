"""Reductions along one axis of a tile and their inverse, the row and column broadcasts.

Row forms work along the columns of each row (result in column 0), column forms along the rows of each
column (result in row 0). The expression of a fold is one step: acc is the value so far, src the next element in
ascending order, and a note gives the start value. In a broadcast x comes from src0 and y from src1.
"""

from __future__ import annotations

from ..dtypes import names
from ..row import Attr, Combos, Family, forms
from ..rules import R, Rule
from ._common import located, nd, row_major, same_dtype, same_shape, vec

NPU = "a2a3 a5"


def _both(expr: str, a2a3: str, a5: str, msg: str = "") -> tuple[Rule, ...]:
    """One rule whose diagnostic id differs between the two hardware columns."""
    return R(expr, on="a2a3", code=a2a3, msg=msg), R(expr, on="a5", code=a5, msg=msg)


def _nonzero(*names_: str, on: str = NPU) -> tuple[Rule, ...]:
    return tuple(R(f"{n}.{dim} != 0", on=on) for n in names_ for dim in ("v_row", "v_col"))


def _pairs(same: str, wider: str = "") -> str:
    """`dst,src` combinations: equal dtypes for every name of `same`, then those of `wider`."""
    return " ".join([*(f"{t},{t}" for t in names(same)), *wider.split()])


def _indexed(index: str, src: str, copies: int = 2) -> str:
    """Combinations of an arg-reduction: every index dtype with every source dtype, `copies` times (src, tmp,
    and dstVal in the value form)."""
    return " ".join(",".join((i, *[s] * copies)) for s in names(src) for i in names(index))


def _valued(index: str, src: str) -> str:
    return _indexed(index, src, copies=3)


_precision = Attr(
    "precision_mode", "precision_mode", "DEFAULT", alias="precisionType",
    doc="division algorithm of the hardware; no effect on the reference result",
)  # fmt: skip

_COLUMN_0 = "!pto.tile_buf<vec, 16x64x{T}, valid=16x1>"
_ROW_0 = "!pto.tile_buf<vec, 1x64x{T}>"

reduce = Family("reduce-and-expand", "tile", pipe="V", core="vector", in_place="none", dtype_code="SA-0187")

# --- along rows -----------------------------------------------------------------------------------------

_row_result = (
    *_both("dst.layout == ND or (dst.layout == DN and dst.cols == 1)", "SA-0208", "SA-0210",
           msg="expects dst to use the ND layout, or DN with one column"),
    R("dst.v_row == src.v_row", code="PA-0032"),
    R("dst.v_col == 1", on=NPU, text=True),
)  # fmt: skip
_row_source = (
    *located("VEC", "src dst", on="a2a3 cpu", code="SA-0211"),
    *located("VEC", "src dst", on="a5", code="SA-0212"),
    *_both("src.layout == ND", "SA-0207", "SA-0209"),
    *_nonzero("src"),
)

row_fold = reduce.but(
    over="fold columns", operands="src tmp:tmp dst:out", tmp_on="a2a3",
    writes="column0", domain="column 0 of dst, rows of the src valid region (src decides, not dst)",
    types={"dst": _COLUMN_0},
    rules=(
        *_row_source, *_row_result,
        *located("VEC", "tmp", on=NPU),
        R("tmp.dtype == src.dtype", on="a2a3"),
        R("tmp.row_bytes >= 32", on="a2a3", when="src.dtype in (I16, U16, I32, U32)"),
    ),
    notes=(
        "only column 0 of dst is written; its other elements keep their value",
        "tmp is scratch of a2a3 only: integers need one row of 32 bytes, floats the shape of src",
        "a zero-extent reduction axis is an error (PA-0030)",
    ),
)  # fmt: skip
_row_same = (
    *same_dtype("dst src", code="SA-0190", on="cpu a2a3"), *same_dtype("dst src", code="SA-0091", on="a5"),
)  # fmt: skip
#: PTOAS expects the scratch of these to match src; integers may use the documented 32 bytes.
_tmp_as_src = (
    R("tmp.dtype == src.dtype", on="a5"),
    R("valid_eq(tmp, src)", on=NPU, when="src.dtype in (F16, F32)", written=True),
)  # fmt: skip

_INT_FLOAT = "f32 f16 i32 u32 i16 u16"
_ORDERED_A5 = f"{_INT_FLOAT} i64 u64 i8 u8"

_rows = (
    row_fold(
        "trowsum", opcode=0x1054, expr="acc + src", start="0", steps="f32", cpp="TROWSUM($dst, $src, $tmp)",
        doc="Sum of each row, into column 0.",
        combos=Combos.of(
            "dst src", code="SA-0187", a2a3=_pairs(_INT_FLOAT), a5=_pairs(f"{_INT_FLOAT} i64 u64"),
            cpu=_pairs(f"{_INT_FLOAT} bf16 i64 u64", "f32,f16 f32,bf16 i32,i16"),
        ),
        notes=(
            "starts from 0; the accumulator is f32 when dst is f16 or bf16, else the dst dtype, and is"
            " converted to dst once at the end; integers wrap",
            "a5 accumulates i16 in i32 and converts without saturation",
            "the cpu column also sums into a wider dst; hardware wants equal dtypes",
        ),
    ),
    row_fold(
        "trowprod", opcode=0x1160, expr="acc * src", start="1", cpp="TROWPROD($dst, $src, $tmp)",
        doc="Product of each row, into column 0.",
        cpu="any", a2a3=_INT_FLOAT, a5=_INT_FLOAT, rules=(*_row_same, *_tmp_as_src),
        notes="starts from 1; the running product is rounded to the dst dtype after every step",
    ),
    row_fold(
        "trowmax", opcode=0x1052, expr="where(acc < src, src, acc)", start="first", cpp="TROWMAX($dst, $src, $tmp)",
        doc="Largest element of each row, into column 0.",
        cpu="any", a2a3=_INT_FLOAT, a5=_ORDERED_A5, rules=_row_same,
        notes="starts from src[i, 0]: a NaN there stays, a later NaN is ignored",
    ),
    row_fold(
        "trowmin", opcode=0x1053, expr="where(src < acc, src, acc)", start="first", cpp="TROWMIN($dst, $src, $tmp)",
        doc="Smallest element of each row, into column 0.",
        cpu="any", a2a3=_INT_FLOAT, a5=_ORDERED_A5, rules=(*_row_same, *_tmp_as_src),
        notes="starts from src[i, 0]: a NaN there stays, a later NaN is ignored",
    ),
)  # fmt: skip

arg = reduce.but(operands="src tmp:tmp dst:out dstVal:out?", tmp_on="a2a3")
_arg_rules = (*located("VEC", "tmp", on=NPU), *vec("dstVal"))
_arg_notes = (
    "dst is the index; dstVal, where given, receives the value (the value+index form)",
    "strict comparison: ties give the lowest index, and a NaN wins only as the first element",
)

_CPU_SOURCE = "f32 f16 bf16 ints"
_16_BIT = "f16 i16 u16"
# Columns one repeat covers (256 bytes), elements of a block (32 bytes), and repeats per row.
_R1 = "ceil(src.v_col, 256 // src.bytes)"
_EPB = "(32 // src.bytes)"
_R2 = f"ceil({_R1}, 256 // src.bytes)"

row_arg = arg.but(
    over="fold columns",
    writes="column0", domain="column 0 of dst (and dstVal), rows of the src valid region",
    types={"dst": _COLUMN_0, "dstVal": _COLUMN_0, "index/dstVal": ""},
    combos=(
        Combos.of(
            "dst src tmp", code="SA-0187", when="not has(dstVal)",
            a2a3=_indexed("i32 u32", _INT_FLOAT), a5=_indexed("i32 u32", _INT_FLOAT),
            cpu=_indexed("i32 u32", _CPU_SOURCE),
        ),
        Combos.of(
            "dst src tmp dstVal", code="SA-0187", when="has(dstVal)", a2a3=_valued("i32 u32", _INT_FLOAT),
            a5=f"{_valued('i32 u32', _INT_FLOAT)} {_valued('i16 u16', _16_BIT)}",
            cpu=f"{_valued('i32 u32', _CPU_SOURCE)} {_valued('i16 u16', _16_BIT + ' bf16')}",
        ),
    ),
    rules=(
        *_arg_rules, *_row_source, *_row_result,
        *_both("dstVal.layout == ND or (dstVal.layout == DN and dstVal.cols == 1)", "SA-0208", "SA-0210"),
        R("dstVal.v_row == src.v_row"),
        R("dstVal.v_col == 1", on=NPU, text=True),
        R("tmp.rows >= src.v_row", on="a2a3", when="src.v_col > 256 // src.bytes"),
        R(f"tmp.cols >= (ceil(2 * {_R1}, {_EPB}) + ceil({_R1}, {_EPB})) * {_EPB}", on="a2a3",
          when="256 // src.bytes < src.v_col <= (256 // src.bytes) ** 2"),
        R(f"tmp.cols >= max(ceil(2 * {_R1}, {_EPB}) * {_EPB}, (ceil({_R1}, {_EPB})"
          f" + ceil(2 * {_R2}, {_EPB})) * {_EPB}) + 2", on="a2a3",
          when="src.v_col > (256 // src.bytes) ** 2"),
    ),
    notes=(
        *_arg_notes,
        "tmp is scratch of a2a3 only: up to one repeat (256 bytes) of columns nothing, or 2 elements per row"
        " in the value+index form; beyond it the row stride that the rules compute",
    ),
)  # fmt: skip


def _arg_meaning(axis: str, op: str) -> str:
    i, j, extent, out = ("i", "j", "v_col", "[i, 0]") if axis == "row" else ("j", "i", "v_row", "[0, j]")
    first, at = ("src[i, 0]", "src[i, j]") if axis == "row" else ("src[0, j]", "src[i, j]")
    return (
        f"for each {i}: best, idx = {first}, 0; for {j} in 1..src.{extent}-1: if {at} {op} best:"
        f" best, idx = {at}, {j}; dst{out} = idx; dstVal{out} = best"
    )


_row_args = (
    row_arg(
        "trowargmax", py="row_argmax x:src tmp_tile:tmp -> column(x):i32", opcode=0x1079, algorithm="index of extreme: largest", meaning=_arg_meaning("row", ">"),
        cpp="TROWARGMAX($dst, $src, $tmp) | TROWARGMAX($dstVal, $dst, $src, $tmp)",
        doc="Column index of the largest element of each row, and optionally that element.",
    ),
    row_arg(
        "trowargmin", py="row_argmin x:src tmp_tile:tmp -> column(x):i32", opcode=0x107A, algorithm="index of extreme: smallest", meaning=_arg_meaning("row", "<"),
        cpp="TROWARGMIN($dst, $src, $tmp) | TROWARGMIN($dstVal, $dst, $src, $tmp)",
        doc="Column index of the smallest element of each row, and optionally that element.",
    ),
)  # fmt: skip

# --- along columns --------------------------------------------------------------------------------------

col_fold = reduce.but(
    over="fold rows",
    operands="src dst:out",
    writes="row0", domain="row 0 of dst, columns of the src valid region",
    types={"dst": _ROW_0},
    rules=(
        *vec("src dst", code="SA-0211"), *nd("src dst", code="SA-0207"),
        R("src.v_col == dst.v_col", code="PA-0031"),
    ),
    notes=(
        "only row 0 of dst is written",
        "hardware writes nothing when the src valid region is empty",
    ),
)  # fmt: skip
_col_same = same_dtype("dst src", code="SA-0190")
_COL_A2A3 = "f32 f16 i16 u16 i32 u32"
_WIDER = "f32,f16 f32,bf16"

_cols = (
    col_fold(
        "tcolsum", opcode=0x101B, expr="acc + src", start="0", operands="src tmp:tmp? dst:out",
        pairs="isBinary", odd_one={"a2a3": "first", "a5": "last"},
        attrs=Attr("isBinary", "bool", False, doc="pairwise tree through tmp instead of a sequential sum"),
        format=(
            "ins($src, $tmp attr-dict : type($src), type($tmp)) outs($dst : type($dst))",
            "ins($src : type($src)) outs($dst : type($dst)) attr-dict",
        ),
        forms=(
            *forms("TCOLSUM($dst, $src)"),
            *forms("TCOLSUM($dst, $src, $tmp, $isBinary)", by_hand="its flag is known at run time only"),
        ),
        doc="Sum of each column, into row 0.",
        combos=Combos.of(
            "dst src", code="SA-0187", a2a3=_pairs(_COL_A2A3), a5=_pairs("any"), cpu=_pairs("any", _WIDER),
        ),
        rules=(
            *_nonzero("src", on="a5"),
            R("has(tmp)", when="isBinary", msg="isBinary attribute requires tmp operand"),
            *located("VEC", "tmp", on=NPU), *nd("tmp", code="SA-0207"),
            R("tmp.dtype == src.dtype", on=NPU, code="SA-0189"),
            R("tmp.cols >= src.v_col", on=NPU, when="isBinary"),
            R("tmp.rows >= ceil(src.v_row, 2)", on=NPU, when="isBinary"),
        ),
        types={"dst": _ROW_0, "binary/tmp": "!pto.tile_buf<vec, 16x64x{src}>", "binary/attr:isBinary": "true"},
        notes=(
            "starts from 0 with an accumulator of the dst dtype (f16 and bf16 are not widened, unlike"
            " trowsum); integers wrap",
            "isBinary: rows 2k and 2k + 1 are added, then the sums in the same way, until one is left; every step is"
            " rounded. With an odd number, the last one is added to the first sum on a2a3, to the last sum on a5. The"
            " header for the cpu ignores isBinary and tmp",
            "PTOAS refuses tmp without isBinary; here, a missing isBinary is false",
        ),
    ),
    col_fold(
        "tcolprod", opcode=0x101A, expr="acc * src", start="1", cpp="TCOLPROD($dst, $src)",
        doc="Product of each column, into row 0.",
        cpu="any", a2a3=_COL_A2A3, a5="f32 f16 bf16 i16 u16 i32 u32", rules=_col_same,
        notes="starts from 1; the running product is rounded to the dst dtype after every step",
    ),
    col_fold(
        "tcolmax", opcode=0x1018, expr="where(src > acc, src, acc)", start="first", cpp="TCOLMAX($dst, $src)",
        doc="Largest element of each column, into row 0.",
        combos=Combos.of(
            "dst src", code="SA-0187", a2a3=_pairs(_COL_A2A3), a5=_pairs("any"), cpu=_pairs("any", _WIDER),
        ),
        rules=_nonzero("src", on="a5"),
        notes="starts from src[0, j]: a NaN there stays, a later NaN is ignored",
    ),
    col_fold(
        "tcolmin", opcode=0x1019, expr="where(src < acc, src, acc)", start="first", cpp="TCOLMIN($dst, $src)",
        doc="Smallest element of each column, into row 0.",
        cpu="any", a2a3=_COL_A2A3, a5="any", rules=(*_col_same, *_nonzero("src", on="a5")),
        notes="starts from src[0, j]: a NaN there stays, a later NaN is ignored",
    ),
)  # fmt: skip

_COL_ARG_A5 = "f32 f16 ints32"
_GAP = f"min(256 // src.bytes, ceil(src.v_col, {_EPB}) * {_EPB})"

col_arg = arg.but(
    over="fold rows",
    writes="row0", domain="row 0 of dst (and dstVal), columns of the src valid region",
    types={"dst": _ROW_0, "dstVal": _ROW_0, "index/dstVal": ""},
    combos=(
        Combos.of(
            "dst src tmp", code="SA-0187", when="not has(dstVal)",
            a2a3=_indexed("i32 u32", "f32 f16 u16 u32"), a5=_indexed("i32 u32", _COL_ARG_A5),
            cpu=_indexed("i32 u32", _CPU_SOURCE),
        ),
        Combos.of(
            "dst src tmp dstVal", code="SA-0187", when="has(dstVal)",
            a2a3=f"{_valued('i16 u16', 'f16 u16')} {_valued('i32 u32', 'f32 u32')}",
            a5=f"{_valued('i16 u16', _16_BIT)} {_valued('i32 u32', 'f32 i32 u32')}",
            cpu=f"{_valued('i32 u32', _CPU_SOURCE)} {_valued('i16 u16', _16_BIT + ' bf16')}",
        ),
    ),
    rules=(
        *_arg_rules,
        *vec("src dst", code="SA-0211"),
        R("src.slayout == NONE_BOX", on=NPU, code="SA-0207"),
        *nd("dst dstVal", code="SA-0207"),
        R("dst.v_row == 1"),
        R("dst.v_col == src.v_col"),
        R("valid_eq(dstVal, dst)"),
        *_nonzero("src"),
        R(f"tmp.rows * tmp.cols >= 3 * {_GAP}", on="a2a3", when="src.dtype == F16 and not has(dstVal)"),
        R(f"tmp.rows * tmp.cols >= {_GAP}", on="a2a3", when="src.dtype != F16 or has(dstVal)"),
    ),
    notes=(
        *_arg_notes,
        "tmp is scratch of a2a3 only: regions of one repeat each (row counter, current best, best index);"
        " the f16 index form needs three, the others the first only",
        "16-bit indices belong to 16-bit sources of the value+index form; 8-bit sources have no such form",
    ),
)  # fmt: skip

_col_args = (
    col_arg(
        "tcolargmax", py="col_argmax x:src tmp_tile:tmp -> row(x):i32", opcode=0x107B, algorithm="index of extreme: largest", meaning=_arg_meaning("col", ">"),
        cpp="TCOLARGMAX($dst, $src, $tmp) | TCOLARGMAX($dstVal, $dst, $src, $tmp)",
        doc="Row index of the largest element of each column, and optionally that element.",
    ),
    col_arg(
        "tcolargmin", py="col_argmin x:src tmp_tile:tmp -> row(x):i32", opcode=0x107C, algorithm="index of extreme: smallest", meaning=_arg_meaning("col", "<"),
        cpp="TCOLARGMIN($dst, $src, $tmp) | TCOLARGMIN($dstVal, $dst, $src, $tmp)",
        doc="Row index of the smallest element of each column, and optionally that element.",
    ),
)  # fmt: skip

# --- broadcasts -----------------------------------------------------------------------------------------

expand = Family(
    "reduce-and-expand", "tile", operands="src dst:out", pipe="V", core="vector", in_place="none",
    writes="valid", domain="dst valid region",
)  # fmt: skip

_expands = (
    expand(
        "trowexpand", py="row_expand target row_vec:src -> like(target):row_vec", opcode=0x104D, expr="src", over="column 0", forms=forms("TROWEXPAND($dst, $src)", written=True),
        doc="Copy column 0 of src into every column of dst.", types={"src": _COLUMN_0},
        cpu="all", a2a3="ints32 floats", a5="ints32 floats", dtype_code="SA-0008",
        rules=(
            *located("VEC", "src dst", code="SA-0112", on="cpu a2a3"),
            *located("VEC", "src", code="SA-0111", on="a5"), *located("VEC", "dst", code="SA-0033", on="a5"),
            *nd("dst", code="SA-0103"), R("src.slayout == NONE_BOX", on=NPU),
            *same_dtype("dst src", code="SA-0188"),
            R("src.v_row == dst.v_row", on=NPU), R("src.v_row >= dst.v_row", on="cpu"),
            *_nonzero("src", "dst"),
        ),
        notes="src may be ND or DN; the manual asks for ND, the hardware takes both",
    ),
    expand(
        "tcolexpand", py="col_expand target col_vec:src -> like(target):col_vec", opcode=0x1010, expr="src", over="row 0", forms=forms("TCOLEXPAND($dst, $src)", written=True),
        doc="Copy row 0 of src into every row of dst.", types={"src": _ROW_0},
        cpu="all", a2a3="ints32 floats", a5="any fp8 f8e8m0 hif8",
        rules=(
            *vec("src dst"), *nd("src dst"), *same_dtype("dst src"), R("src.v_col >= dst.v_col", written=True),
        ),
        notes="an empty dst valid region is a no-op",
    ),
)  # fmt: skip

_FULL0 = "(src0.v_row, src0.v_col, src0.blayout) == (dst.v_row, dst.v_col, ROW)"
_FULL1 = _FULL0.replace("src0", "src1")
_PER_ROW1 = "src1.v_row == dst.v_row and src1.v_col == (32 // src1.bytes if src1.blayout == ROW else 1)"
_PER_ROW0 = _PER_ROW1.replace("src1", "src0")

#: Hardware uses block i of a row-major broadcast operand for its row i, independent of the width of the tile.
_BLOCKS = tuple(
    R(f"{each}.cols == 32 // {each}.bytes", on=NPU,
      when=f"{full} and {each}.blayout == ROW and {each}.v_col == 32 // {each}.bytes and {each}.v_col < dst.v_col",
      msg=f"expects the blocks of a row-major {each} to lie one behind the other: 32 bytes to a row")
    for full, each in ((_FULL0, "src1"), (_FULL1, "src0"))
)  # fmt: skip

row_expand = expand.but(
    over="columns",
    operands="src0 src1 tmp:tmp? dst:out", tmp_on="a2a3", own_tmp_on="a2a3",
    in_place="src0 src1",
    types={
        "src1": "!pto.tile_buf<vec, 32x1x{T}, blayout=col_major>", "*": "!pto.tile_buf<vec, 32x64x{T}>",
        "block/src1": "!pto.tile_buf<vec, 32x32x{T}, valid=32x8>",
        **{
            f"{form}/{name}@{isa}": f"!pto.tile_buf<vec, 32x{cols}x{{T}}>"
            for isa in NPU.split()
            for form, columns in {"half": (64, 16), "word": (64, 8), "half0": (16, 64), "word0": (8, 64)}.items()
            for name, cols in zip(("src0", "src1"), columns, strict=True)
        },
    },
    rules=(*vec("src0 src1 dst tmp"), *row_major("dst"), *_BLOCKS),
    notes=(
        "x is src0[i, j % src0.v_col], y is src1[i, j % src1.v_col]: one operand has the valid shape of dst"
        " and is row-major, the other is broadcast along the row; either position is legal and the order"
        " of the operation stays src0, src1",
        "broadcast operand: col-major with one valid column (a scalar per row), or row-major with 32 bytes"
        " of valid columns (a repeated block per row); the headers of a2a3 and a5 read such blocks one behind the"
        " other, so its rows have no other columns there",
        "tmp is scratch of a2a3 for the scalar-per-row mode: ceil(R / 8) * 256 bytes below 256 rows, else"
        " 7680; without it an internal 8 KB of UB is used",
        "dst may share storage with the full operand only; an empty dst valid region is a no-op",
    ),
)  # fmt: skip


def _row_rules(dtype: str = "", shape: str = "", strict: bool = False) -> tuple[Rule, ...]:
    """Dtype and shape rules. Without `strict` only the row counts are checked: real programs pass two
    full operands to trowexpanddiv/mul/sub, which then work element by element."""
    rules = (
        *same_dtype("dst src0 src1", code=dtype),
        R("src0.v_row == dst.v_row", code=shape), R("src1.v_row == dst.v_row", code=shape),
    )  # fmt: skip
    if not strict:
        return rules
    return (
        *rules,
        R("src1.v_col == 32 // src1.bytes", on=NPU, code=shape, when=f"{_FULL0} and src1.blayout == ROW",
          msg="expects row-major src1 valid_shape[1] to be 32/sizeof(dtype)"),
        R(f"{_FULL0} and {_PER_ROW1} or {_FULL1} and {_PER_ROW0}", on=NPU, code=shape,
          when=f"not ({_FULL0} and src1.blayout == ROW)",
          msg="expects one of src0/src1 to match dst valid_shape and the other to be a per-row scalar"
          " vector"),
    )  # fmt: skip


#: trowexpandmax, min and expdif: scratch has the dtype of dst, and is only for the scalar mode of a2a3.
_row_tmp = (
    *_nonzero("dst"),
    R("tmp.dtype == dst.dtype", on="a2a3"),
    R("not has(tmp)", on="a5", msg="expects A5 form to omit tmp"),
    R(f"src1.blayout != ROW if {_FULL0} else src0.blayout != ROW", on="a2a3", when="has(tmp)",
      msg="expects the broadcast operand not to be row_major where tmp is given"),
)  # fmt: skip
guarded_expand = row_expand.but(
    rules=(*vec("src0 src1 dst"), *located("VEC", "tmp", on="cpu a2a3"), *row_major("dst"), *_BLOCKS),
)  # fmt: skip
_A2A3 = "f32 f16 i16 u16 i32 u32"
_A5 = "f32 f16 ints32"
_EXP = "the difference is rounded to the element type; its exponential is taken in f64 and rounded once"
_DIV = "integer division truncates toward zero; a zero divisor is an error of the program (PA-0010)"

_row_expands = (
    row_expand(
        "trowexpandadd", opcode=0x104E, expr="src0 + src1",
        doc="Add a per-row value to every element of a tile.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=_row_rules(strict=True),
        cpp="TROWEXPANDADD($dst, $src0, $src1) | TROWEXPANDADD($dst, $src0, $src1, $tmp)",
    ),
    row_expand(
        "trowexpandsub", opcode=0x106B, expr="src0 - src1",
        doc="Subtract a per-row value from every element of a tile.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, dtype_code="SA-0315", rules=_row_rules("SA-0317", "SA-0316"),
        cpp="TROWEXPANDSUB($dst, $src0, $src1) | TROWEXPANDSUB($dst, $src0, $src1, $tmp)",
    ),
    row_expand(
        "trowexpandmul", opcode=0x1074, expr="src0 * src1",
        doc="Multiply every element of a tile by a per-row value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, dtype_code="SA-0312", rules=_row_rules("SA-0314", "SA-0313"),
        cpp="TROWEXPANDMUL($dst, $src0, $src1) | TROWEXPANDMUL($dst, $src0, $src1, $tmp)",
    ),
    row_expand(
        "trowexpanddiv", opcode=0x1073, expr="src0 / src1", attrs=_precision, notes=_DIV,
        doc="Divide every element of a tile by a per-row value.",
        cpu="f32 f16 i16 u16 i32 u32", a2a3="f32 f16 i16 i32", a5="f32 f16 i16 u16 i32 u32",
        dtype_code="SA-0306", rules=_row_rules("SA-0308", "SA-0307"),
        cpp="TROWEXPANDDIV($dst, $src0, $src1) | TROWEXPANDDIV($dst, $src0, $src1, $tmp) | "
            "TROWEXPANDDIV<DivAlgorithm::$precision_mode>($dst, $src0, $src1) | "
            "TROWEXPANDDIV<DivAlgorithm::$precision_mode>($dst, $src0, $src1, $tmp)",
    ),
    guarded_expand(
        "trowexpandmax", opcode=0x1050, expr="where(src0 < src1, src1, src0)",
        doc="Larger of every element and a per-row value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=(*_row_rules(strict=True), *_row_tmp),
        cpp="TROWEXPANDMAX($dst, $src0, $src1) | TROWEXPANDMAX($dst, $src0, $src1, $tmp)",
    ),
    guarded_expand(
        "trowexpandmin", opcode=0x1051, expr="where(src1 < src0, src1, src0)",
        doc="Smaller of every element and a per-row value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=(*_row_rules(strict=True), *_row_tmp),
        cpp="TROWEXPANDMIN($dst, $src0, $src1) | TROWEXPANDMIN($dst, $src0, $src1, $tmp)",
    ),
    guarded_expand(
        "trowexpandexpdif", opcode=0x104F, expr="exp(double(round(src0 - src1)))", notes=_EXP,
        doc="Exponential of every element minus a per-row value.",
        cpu="f32 f16", a2a3="f32 f16", a5="f32 f16", dtype_code="SA-0309",
        rules=(*_row_rules("SA-0311", "SA-0310", strict=True), *_row_tmp),
        cpp="TROWEXPANDEXPDIF($dst, $src0, $src1) | TROWEXPANDEXPDIF($dst, $src0, $src1, $tmp)",
    ),
)  # fmt: skip

col_expand = expand.but(
    over="row",
    operands="src0 src1 dst:out",
    in_place="src0",
    types={"src1": _ROW_0},
    rules=(
        *vec("src0 src1 dst"), *same_dtype("dst src0 src1"), *same_shape("dst src0", on=NPU),
        R("valid_eq(src0, dst)"), R("src1.v_col >= dst.v_col"),
    ),
    notes=("x is src0[i, j], y is src1[0, j]; a swapped form does not exist", "an empty dst is a no-op"),
)  # fmt: skip

_col_expands = (
    col_expand(
        "tcolexpandadd", opcode=0x1011, expr="src0 + src1", cpp="TCOLEXPANDADD($dst, $src0, $src1)",
        doc="Add a per-column value to every element of a tile.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=row_major("src0 src1 dst"),
    ),
    col_expand(
        "tcolexpandsub", opcode=0x1017, expr="src0 - src1", cpp="TCOLEXPANDSUB($dst, $src0, $src1)",
        doc="Subtract a per-column value from every element of a tile.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, dtype_code="SA-0147", rules=row_major("src0 src1 dst", code="SA-0148"),
    ),
    col_expand(
        "tcolexpandmul", opcode=0x1016, expr="src0 * src1", cpp="TCOLEXPANDMUL($dst, $src0, $src1)",
        doc="Multiply every element of a tile by a per-column value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, dtype_code="SA-0145", rules=row_major("src0 src1 dst", code="SA-0146"),
    ),
    col_expand(
        "tcolexpanddiv", opcode=0x1012, expr="src0 / src1",
        cpp="TCOLEXPANDDIV($dst, $src0, $src1) | TCOLEXPANDDIV<DivAlgorithm::$precision_mode>($dst, $src0, $src1)",
        doc="Divide every element of a tile by a per-column value.", attrs=_precision, notes=_DIV,
        cpu="f32 f16 i16 u16 i32 u32", a2a3="f32 f16 i16 i32", a5="f32 f16 i16 u16 i32 u32",
        dtype_code="SA-0141", rules=row_major("src0 src1 dst", code="SA-0142"),
    ),
    col_expand(
        "tcolexpandmax", opcode=0x1014, expr="where(src0 < src1, src1, src0)",
        cpp="TCOLEXPANDMAX($dst, $src0, $src1)", doc="Larger of every element and a per-column value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=row_major("src0 src1 dst"),
    ),
    col_expand(
        "tcolexpandmin", opcode=0x1015, expr="where(src1 < src0, src1, src0)",
        cpp="TCOLEXPANDMIN($dst, $src0, $src1)", doc="Smaller of every element and a per-column value.",
        cpu=_A5, a2a3=_A2A3, a5=_A5, rules=row_major("src0 src1 dst"),
    ),
    col_expand(
        "tcolexpandexpdif", opcode=0x1013, expr="exp(double(round(src0 - src1)))", cpp="TCOLEXPANDEXPDIF($dst, $src0, $src1)",
        doc="Exponential of every element minus a per-column value.", notes=_EXP,
        cpu="f32 f16", a2a3="f32 f16", a5="f32 f16", dtype_code="SA-0143",
        rules=row_major("src0 src1 dst", code="SA-0144"),
    ),
)  # fmt: skip

_pair = reduce(
    "tpairreducesum", py="pair_reduce_sum x:src0 -> like(x)", opcode=0x1161, algorithm="pair sums",
    operands="src0 dst:out", cpp="TPAIRREDUCESUM($dst, $src0)",
    doc="Sum of each pair of neighbouring columns, packed to the left, the rest zero.",
    meaning="vc = dst.v_col; for 0 <= k < ceil(vc / 2): dst[i, k] = src0[i, 2k] + (src0[i, 2k + 1] if"
    " 2k + 1 < vc else 0); dst[i, k] = 0 for ceil(vc / 2) <= k < vc",
    cpu="f32 f16", a2a3="f32 f16", a5="f32 f16", writes="all", domain="dst valid region",
    rules=(
        *vec("src0 dst"), *same_dtype("dst src0"), *row_major("src0 dst"), R("valid_eq(src0, dst)"),
    ),
    notes=(
        "the reference also zeroes dst outside its valid region, and does so before it reads src0",
    ),
)  # fmt: skip

ROWS = (*_rows, *_row_args, *_cols, *_col_args, *_expands, *_row_expands, *_col_expands, _pair)
