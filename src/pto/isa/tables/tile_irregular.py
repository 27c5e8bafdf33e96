"""Irregular tile instructions: sorting, gather and scatter, generators, quantization, partial combinations.

Each instruction has its own executor. Counts and offsets are in elements unless a row states bytes.
"""

from __future__ import annotations

from ..profiles import PROFILES
from ..row import Attr, Combos, Family, Form, forms
from ..rules import R
from ._common import form, located, nd, row_major, same_dtype, same_shape, same_valid, vec

_NPU = "a2a3 a5"
_INDEX_TYPES = "i32 u32 i16 u16"
_PATTERN = Attr("maskPattern", "mask_pattern", assumed="P1111", doc="which of every 2 or 4 positions take part")
_PATTERN_TEXT = (
    "P0101 selects idx%2 == 0, P1010 idx%2 == 1, P0001 idx%4 == 0, P0010 idx%4 == 1, P0100 idx%4 == 2, "
    "P1000 idx%4 == 3, P1111 all"
)


#: MX formats and scale algorithms in one name, as in calls for groups along rows.
_MX_ALGORITHMS = {
    f"MxQuantAlg::{alg.title()}{mx}": {"quant_type": kind, "scale_alg": alg}
    for kind, mx in (("MXFP8", "MxFp8E4M3"), ("MXFP4_E2M1", "MxFp4E2M1"))
    for alg in ("OCP", "NV")
}


def _cross(first: str, second: str) -> str:
    """Every combination of the two dtype lists."""
    return " ".join(f"{a},{b}" for a in first.split() for b in second.split())


def _axis(name: str) -> Attr:
    return Attr(name, "str", "row", choices=("row", "col"),
                doc="mask form: select columns (row) or rows (col)")


irregular = Family(
    "irregular-and-complex", "tile", pipe="V", core="vector", writes="valid", domain="dst valid region", in_place="none",
)  # fmt: skip

partial = irregular.but(
    over="parts", writes="part",
    operands="src0 src1 dst:out",
    in_place="any",
    cpu="floats ints", a2a3="f32 f16 i32 u32 i16 u16", a5="floats ints",
    dtype_code="SA-0287",
    rules=(
        *vec("src0 src1 dst"),
        *same_dtype("dst src0 src1", "SA-0287"),
        *row_major("src0 src1 dst", "SA-0287", on="a2a3"),
        R("valid_le(src0, dst) and valid_le(src1, dst)", code="PA-0051"),
        R("valid_eq(src0, dst) or valid_eq(src1, dst)", code="PA-0051"),
    ),
    notes=(
        "in0/in1: the position lies in the valid region of src0/src1. With neither the result is 0, as the header "
        "for the cpu writes it; a5 copies what the storage of the larger source holds there. It counts as undefined "
        "on every profile.",
        "At least one source has the valid region of dst and the other does not exceed it; a zero dst extent "
        "does nothing.",
    ),
)  # fmt: skip


_FIRST_WINS = "A NaN in src0 is returned, a NaN in src1 is ignored; equal zeros keep src0."

partial_arg = irregular.but(
    operands="src0Val src1Val src0Idx src1Idx dstVal:out dstIdx:out",
    in_place="any",
    writes="part", domain="dstVal valid region",
    combos=(
        Combos.of(
            "dstVal dstIdx",
            cpu=_cross("f32 f16 bf16 i32 i16 i8 u8", _INDEX_TYPES),
            a2a3="f32,i32 f32,u32 f16,i16 f16,u16 f16,i32 f16,u32",
            a5=_cross("f32 f16", _INDEX_TYPES),
        ),
    ),
    rules=(
        *vec("src0Val src1Val src0Idx src1Idx dstVal dstIdx"),
        *same_dtype("dstVal src0Val src1Val"),
        *same_dtype("dstIdx src0Idx src1Idx"),
        *row_major("src0Val src1Val src0Idx src1Idx dstVal dstIdx", on="a2a3"),
        *same_valid("dstVal dstIdx"),
        *same_valid("src0Val src0Idx"),
        *same_valid("src1Val src1Idx"),
        R("valid_le(src0Val, dstVal) and valid_le(src1Val, dstVal)", on=_NPU),
        R("valid_eq(src0Val, dstVal) or valid_eq(src1Val, dstVal)", on=_NPU),
    ),
    types={"*": "!pto.tile_buf<vec, 16x64x{dstVal}>",
           **{f"{n}Idx": "!pto.tile_buf<vec, 16x64x{dstIdx}>" for n in ("src0", "src1", "dst")}},
    notes=(
        "Each tile is addressed by its own layout; the C++ headers use the value tile's offsets for the "
        "indices too, so give both the same shape.",
    ),
)  # fmt: skip


def _lists(form: str, sources: str) -> dict[str, str]:
    """Witness of the form of tmrgsort that merges separate lists."""
    tiles = {f"{form}/{name}": "!pto.tile_buf<vec, 1x1024x{T}>" for name in f"{sources} tmp".split()}
    return {**tiles, f"{form}/blockLen": "", f"{form}/excuted": "vector<4xi16>"}


_SORT = (
    irregular(
        "tsort32", py="sort32 src idx tmp -> records(src)", opcode=0x1063, algorithm="sort blocks",
        operands="src idx tmp:tmp? dst:out", writes="part", domain="src valid region",
        doc="Sort every block of 32 elements in descending order, each with its index.",
        meaning=(
            "Per row, for each block of columns j = 0, 32, ..: n = min(32, src.v_col - j) pairs (src[r,j+k], "
            "idx[r,j+k]) sorted by value descending, ties by ascending u32 index, then input order; n "
            "records of 8 bytes are written: 4-byte types [value][u32 index], 2-byte types [value][0][u32 "
            "index]. Record p of block j starts at dst column (j + p) * 8 / bytes."
        ),
        cpp="TSORT32($dst, $src, $idx) | TSORT32($dst, $src, $idx, $tmp)",
        cpu="f32 f16 bf16 i32 i16", a2a3="f32 f16", a5="f32 f16", dtype_code="SA-0022",
        rules=(
            *vec("src idx dst tmp", "SA-0022"), *nd("src idx dst tmp", "SA-0022"),
            *same_dtype("dst src", "SA-0022"),
            R("idx.dtype == U32", code="SA-0022"),
            R("src.v_col % 32 == 0", on=_NPU, when="not has(tmp)"),
            R("valid_eq(idx, src)", on="cpu"),
        ),
        types={"idx": "!pto.tile_buf<vec, 16x64xui32>", "dst": "!pto.tile_buf<vec, 16x256x{T}>"},
        notes=(
            "dst needs 8 bytes per pair: 2*C elements of a 4-byte type, 4*C of a 2-byte type. Not enforced: "
            "published samples use narrower tiles; records beyond dst are dropped.",
            "The C++ simulator places 16-bit blocks at 2*j and overlaps them beyond 32 columns; 4*j is "
            "right.",
            "A tail of n < 32 needs tmp (roundup(C, 32) elements if C*bytes <= 8160, else 32); a2a3 and a5 then "
            "write 32 records: n sorted ones, and behind them some with the value -NaN (0xFFC00000, 0xFE00) and "
            "the index 0 here, on hardware what the storage of idx holds there. cpu writes n. The order of NaN "
            "is unspecified.",
            "Hardware accepts a 1 x C idx for all rows.",
        ),
    ),
    irregular(
        "tmrgsort", opcode=0x103A, algorithm="merge",
        operands="src src1? src2? src3? blockLen=int? dst:out tmp:tmp? excuted=vector:out?",
        attrs=(Attr("exhausted", "bool", False, doc="stop as soon as one list is empty"),),
        format=(
            form("src blockLen", "dst"),
            *(form(f"src {srcs} tmp", "dst excuted", inside)
              for srcs in ("src1 src2 src3", "src1 src2", "src1") for inside in (True, False)),
        ),
        writes="part", domain="one-row lists",
        doc="Merge sorted lists of tsort32 records in descending order.",
        meaning=(
            "Records of 8 bytes as tsort32 writes them, E = 8/bytes elements each; key = first element, "
            "descending. One list: for each group start g = 0, 4*blockLen, .. while g + 4*blockLen <= "
            "dst.v_col: stable 4-way merge of the 4 blocks of blockLen elements (values and indices counted) "
            "into dst[g : g+4*blockLen]; the lower block wins ties; columns after the last full group are "
            "not written. 2-4 lists: n_i = src_i.v_col // E; take the largest head (ties: lowest list) until "
            "dst.v_col // E records are written or all lists are empty; exhausted: stop right after any list "
            "becomes empty. excuted = 4 x u16 records consumed per list, 0 for absent lists."
        ),
        forms=(
            *forms("TMRGSORT($dst, $src, $blockLen)"),
            *forms(
                "TMRGSORT<Dst, Tmp, Src, Src1, exhausted>($dst, $excuted, $tmp, $src, $src1) | "
                "TMRGSORT<Dst, Tmp, Src, Src1, Src2, exhausted>($dst, $excuted, $tmp, $src, $src1, $src2) | "
                "TMRGSORT<Dst, Tmp, Src, Src1, Src2, Src3, exhausted>($dst, $excuted, $tmp, $src, $src1, $src2, "
                "$src3)",
                by_hand="how much of each list is taken is a record of C++",
            ),
        ),
        cpu="f32 f16 bf16 i32 i16", a2a3="f32 f16", a5="f32 f16", dtype_code="SA-0274",
        rules=(
            *vec("src src1 src2 src3 tmp dst", "SA-0274"),
            *row_major("src src1 src2 src3 tmp dst", "SA-0274"),
            *same_dtype("dst src src1 src2 src3 tmp"),
            *(R(f"{n}.rows == 1", code="SA-0274") for n in "src src1 src2 src3 tmp dst".split()),
            R("has(blockLen) != has(src1)"),
            R("has(tmp) and has(excuted)", when="has(src1)",
              msg="tmrgsort format2 expects 2 to 4 src operands plus one tmp operand"),
            R("has(src1)", when="has(src2)",
              msg="tmrgsort format2 expects 2 to 4 src operands plus one tmp operand"),
            R("has(src2)", when="has(src3)",
              msg="tmrgsort format2 expects 2 to 4 src operands plus one tmp operand"),
            R("src.cols == dst.cols", on=_NPU, when="has(blockLen)"),
            R("blockLen.const > 0 and blockLen.const % 64 == 0", on=_NPU, code="PA-0001"),
            R("blockLen.const > 0 and blockLen.const * src.bytes % 8 == 0", on="cpu"),
            R("src.v_col % (4 * blockLen.const) == 0", on=_NPU, code="PA-0003"),
            R("1 <= src.v_col // (4 * blockLen.const) <= 255", on=_NPU, code="PA-0004"),
            R("dst.v_col // (4 * blockLen.const) * 4 * blockLen.const <= src.cols", on="cpu"),
            R("tmp.cols >= dst.cols", on=_NPU),
            *(R(f"src.size + dst.size < {PROFILES[isa].capacity['vec'] >> 10} * 1024", on=isa,
                when="has(blockLen)", code="SA-0043") for isa in ("a2a3", "a5")),
        ),
        types={"src": "!pto.tile_buf<vec, 1x1024x{T}>", "dst": "!pto.tile_buf<vec, 1x1024x{T}>",
               "blockLen": "i32",
               **_lists("two", "src1"), **_lists("four", "src1 src2 src3")},
        notes=(
            "A dst smaller than the lists keeps only the first dst.v_col // E records (top k).",
            "tmp has at least the columns of all lists together; only hardware uses it.",
            "The text names excuted among outs, but it is an SSA value: the C++ list it becomes receives the "
            "counts, meaningful on hardware only with exhausted.",
            "`{exhausted = ..}` is read inside ins or at the end.",
        ),
    ),
)  # fmt: skip

_INDEXED = (
    irregular(
        "tgather", opcode=0x1028, algorithm="gather", tmp_on="a2a3",
        operands="src dst:out cdst:out? indices? tmp:tmp? kValue=scalar? kTile?",
        attrs=(_PATTERN,
               Attr("cmpMode", "cmp", "eq", choices=("eq", "gt"), doc="compare form: which elements match"),
               Attr("offset", "int", 0, doc="compare form: added to every index"), _axis("gather_axis")),
        format=(
            "ins($src, attr-dict : type($src) [, $gather_axis]) outs($dst : type($dst))",
            "ins($src, $indices [, $tmp] : type($src), type($indices) [, type($tmp)]) outs($dst : "
            "type($dst)) attr-dict",
            "ins($src, $kValue [, $tmp] : type($src), type($kValue) [, type($tmp)]) "
            "outs($dst, $cdst : type($dst), type($cdst)) attr-dict",
            "ins($src, $kTile [, $tmp] : type($src), type($kTile) [, type($tmp)]) "
            "outs($dst, $cdst : type($dst), type($cdst)) attr-dict",
        ),
        writes="part", domain="dst valid region (index), src valid region (mask, compare)",
        doc="Collect elements of a tile by index, by mask pattern, or the indices of matching elements.",
        meaning=(
            "Index form: for (r, c) of the dst valid region k = indices[r,c]; dst[r,c] = src[k // src.cols, "
            "k % src.cols] over the static tile; k < 0 or k >= rows*cols gives 0. "
            "Mask form, gather_axis row: scan the src valid region row by row; elements whose column is "
            "selected are appended to dst as one flat run from its first element; col: rows whose index is "
            "selected go to consecutive dst rows; equal-size elements are bit-copied. "
            f"{_PATTERN_TEXT}. "
            "Compare form: per row i, for j < src.v_col with src[i,j] == (eq) or > (gt) k append offset + "
            "i*src.cols + j to dst row i; cdst[i] = number of matches; the rest of the row is unspecified. k "
            "= kValue, or kTile[i]."
        ),
        forms=(
            *forms("TGATHER($dst, $src, $indices, $tmp)"),
            *forms("TGATHER<Dst, Src, MaskPattern>($dst, $src) | "
                   "TGATHER<Dst, Src, MaskPattern, GatherAxis::GATHER_$gather_axis.U>($dst, $src)"),
            *forms("TGATHER<Dst, Src, Cdst, Tmp, CmpMode, offset>($dst, $src, $kValue, $cdst, $tmp) | "
                   "TGATHER<Dst, Src, KTile, Cdst, Tmp, CmpMode>($dst, $src, $kTile, $cdst, $tmp, $offset)",
                   by_hand="the limit is a number of any type, or a tile; the offset stands in two places"),
        ),
        cpu="any fp8 hif8 f8e8m0", a2a3="b32 b16", a5="b32 b16 b8 fp8 hif8", dtype_of="src",
        dtype_code="SA-0127",
        combos=(
            Combos.of("src indices", when="has(indices)", code="SA-0044",
                      cpu=_cross("f32 f16 bf16 i32 u32 i16 u16 i8 u8", _INDEX_TYPES),
                      a2a3=_cross("f32 f16 bf16 i32 u32 i16 u16", "i32 u32"),
                      a5=_cross("f32 f16 i32 u32 i16 u16 i8 u8", _INDEX_TYPES)),
            Combos.of("src dst", when="has(cdst)", cpu=_cross("f32 f16 i32 u32 i16 u16", "i32 u32")),
        ),
        rules=(
            *vec("src dst cdst indices tmp kTile", "SA-0127"),
            *row_major("src dst cdst indices tmp kTile", "SA-0127"),
            R("not has(indices)", when="has(cdst)", msg="compare-form tgather does not take indices"),
            R("has(tmp)", on=_NPU, when="has(indices)",
              msg="index-form tgather expects both indices and tmp"),
            R("has(indices) or has(cdst)", when="has(tmp)",
              msg="mask-pattern tgather only allows src and dst operands"),
            R("has(kValue) != has(kTile)", when="has(cdst)"),
            R("has(cdst)", when="has(kValue) or has(kTile)"),
            R("has(tmp)", when="has(cdst)"),
            # index
            R("dst.dtype == src.dtype", when="has(indices)"),
            R("valid_le(dst, indices)", when="has(indices)"),
            R("dst.v_col == dst.cols and indices.v_col == indices.cols", on=_NPU, when="has(indices)"),
            R("tmp.dtype == indices.dtype and valid_eq(tmp, indices)", on="a2a3", when="has(indices)"),
            # mask
            R("src.bytes == dst.bytes", when="not has(indices) and not has(cdst)"),
            R("src.bytes in (2, 4)", on="a2a3", when="not has(indices) and not has(cdst)",
              msg="expects A2/A3 mask-pattern gather element size to be 2 or 4 bytes"),
            R("dst.v_col == dst.cols", when="not has(indices) and not has(cdst) and gather_axis == 'row'",
              code="CA-0003"),
            R("dst.v_row == dst.rows", when="not has(indices) and not has(cdst) and gather_axis == 'col'"),
            R("src.v_row * selected(maskPattern, src.v_col) <= dst.rows * dst.cols",
              when="not has(indices) and not has(cdst) and gather_axis == 'row'"),
            R("selected(maskPattern, src.v_row) <= dst.rows and src.v_col <= dst.cols",
              when="not has(indices) and not has(cdst) and gather_axis == 'col'"),
            # compare
            R("dst.dtype in (I32, U32) and cdst.dtype == dst.dtype", when="has(cdst)"),
            R("src.v_row <= dst.rows", when="has(cdst)"),
            R("kValue.dtype == src.dtype", when="has(kValue)"),
            R("kTile.dtype in (I32, U32)", on="a2a3", when="has(kTile)"),
            R("kTile.dtype in (U16, U32)", on="a5", when="has(kTile)"),
            R("src.dtype in (F16, F32) or (src.dtype in (I32, U32) and cmpMode == 'eq')", on="a2a3",
              when="has(cdst)",
              msg="expects A2/A3 compare-form tgather src element type to be f16/f32, or i32 when "
                  "cmpMode=eq"),
            R("src.dtype in (I16, U16, I32, U32, F16, F32)", on="a5", when="has(cdst)",
              msg="expects A5 compare-form tgather src element type to be i16/i32/f16/f32"),
        ),
        types={
            "attr:maskPattern": "P1111",
            "index/attr:maskPattern": "", "index/indices": "!pto.tile_buf<vec, 16x64xi32>",
            "index/tmp": "!pto.tile_buf<vec, 16x64xi32>",
            **{f"{form}/{key}": text for form in ("value", "row") for key, text in (
                ("attr:maskPattern", ""), ("dst", "!pto.tile_buf<vec, 16x64xi32>"),
                ("cdst", "!pto.tile_buf<vec, 16x8xi32>"), ("tmp", "!pto.tile_buf<vec, 16x256xi32>"))},
            "value/cdst@cpu": "!pto.tile_buf<vec, 16x8x{dst}>", "value/kValue": "{T}",
            "row/kTile": "!pto.tile_buf<vec, 16x8xui32>",
        },
        notes=(
            "The form follows from the operands: indices = index, cdst with kValue or kTile = compare, else "
            "mask.",
            "An index out of range gives 0 here; it is undefined on hardware.",
            "The field's text has a scalar kValue; the C++ call takes an integer tile (kTile), one value per "
            "row, converted to the src type.",
            "A5 ignores tmp. Compare on A2/A3: tmp bytes >= tmp.rows*tmp.cols + src.rows*src.cols*dst.bytes "
            "+ src.rows*src.bytes.",
            "gather_axis col: dst.rows is the number of selected rows.",
        ),
    ),
    irregular(
        "tgatherb", py="gatherb src offset:offsets output_dtype? -> blocks(offset, src):output_dtype", opcode=0x1029, writes="part", algorithm="gather blocks", operands="src offsets dst:out",
        doc="Collect blocks of 32 bytes by byte offset.",
        meaning=(
            "B = 32/bytes. For r < dst.v_row, b < dst.v_col // B: off = u32(offsets[r,b]), a byte offset "
            "from the start of src; the 32 bytes at off go to dst row r, columns b*B .. b*B+B-1. off + 32 > "
            "src bytes leaves that block unchanged."
        ),
        cpp="TGATHERB($dst, $src, $offsets)",
        cpu="floats ints32 fp8 hif8", a2a3="floats ints32", a5="floats ints32 fp8 hif8", dtype_of="src dst",
        rules=(
            *vec("src offsets dst", "SA-0127"), *row_major("dst", "SA-0127", on="a2a3"),
            R("offsets.bits == 32"),
            R("dst.v_col * dst.bytes % 32 == 0", code="CA-0007"),
        ),
        types={"offsets": "!pto.tile_buf<vec, 16x8xui32>"},
        notes=(
            "Blocks are bytes: src and dst may have elements of different width, on every profile.",
            "One offset per block, not per element. Hardware wants offsets that are multiples of 32.",
            "The C++ alignment assertion tests the wrong size; the 32-byte rule is the documented one.",
        ),
    ),
    irregular(
        "tscatter", opcode=0x1056, algorithm="scatter",
        operands="src indexes? dst:inout", pipe=(("isa == 'a5'", "V"), ("", "S")),
        attrs=(_PATTERN, _axis("scatter_axis")),
        format=(
            form("src indexes", "dst"),
            "ins($src, attr-dict : type($src) [, $scatter_axis]) outs($dst : type($dst))",
        ),
        writes="part", domain="indexes valid region (index), dst valid region (mask)",
        doc="Spread the elements of a tile over dst by index or by mask pattern.",
        meaning=(
            "Index form: for (i, j) of the indexes valid region in row-major order: the dst element at "
            "storage offset indexes[i,j] = src[i,j]; the last writer wins; other elements are unchanged on cpu, and "
            "become 0 on a2a3 and a5, all of the storage of dst. "
            "Mask form, scatter_axis row: walk the dst valid region; a selected column takes the next "
            "element of the src valid region (row-major), others become 0; col: selected rows take the next "
            "src row, other rows become 0. "
            f"{_PATTERN_TEXT} (the default, a plain copy)."
        ),
        forms=(
            *forms("TSCATTER($dst, $src, $indexes)"),
            *forms("TSCATTER<MaskPattern>($dst, $src) | "
                   "TSCATTER<MaskPattern, ScatterAxis::SCATTER_$scatter_axis.U>($dst, $src)"),
        ),
        cpu="any", a2a3="floats ints32", a5="floats ints", dtype_code="SA-0324",
        rules=(
            *vec("src indexes dst"), *same_dtype("dst src"),
            R("indexes.dtype in (I32, U32, I16, U16)", code="SA-0325"),
            R("indexes.bytes == min(max(dst.bytes, 2), 4)", on=_NPU, code="SA-0325"),
            R("valid_le(indexes, src)"),
            R("src.blayout == ROW and dst.blayout == ROW and dst.bits in (16, 32)", on="a5",
              when="not has(indexes)"),
            R("src.v_row == dst.v_row", when="not has(indexes) and scatter_axis == 'row'"),
            R("src.v_col == dst.v_col", when="not has(indexes) and scatter_axis == 'col'"),
            R("src.v_col == selected(maskPattern, dst.v_col)",
              when="not has(indexes) and scatter_axis == 'row'"),
            R("src.v_row == selected(maskPattern, dst.v_row)",
              when="not has(indexes) and scatter_axis == 'col'"),
        ),
        types={
            "indexes": "!pto.tile_buf<vec, 16x64x{I}>", "half/indexes": "!pto.tile_buf<vec, 16x64xi16>",
            "word/indexes": "!pto.tile_buf<vec, 16x64xi32>",
            "mask/indexes": "", "mask/attr:maskPattern": "P1111",
            "rows/indexes": "", "rows/attr:maskPattern": "P1111", "rows/attr:scatter_axis": "col",
        },
        notes=(
            "Indexes are not bounds-checked by hardware; they are element offsets in storage order, not row "
            "numbers.",
            "Mask form: a2a3 and a5 clear the storage outside the valid region of dst, too, unless the pattern is "
            "P1111.",
            "The C++ simulator reads through the padding of a src whose valid columns are fewer than its "
            "columns; the valid region is walked here.",
        ),
    ),
)  # fmt: skip

_GENERATORS = (
    irregular(
        "tci", py="arange start:S shape dtype=i32 descending=0 -> new(shape, dtype)", opcode=0x100D, algorithm="count",
        by_hand="the type of its scalar is a template argument",
        tmp_on="a2a3", operands="S=scalar tmp:tmp? dst:out", in_place="any", writes="row0", domain="row 0 of dst",
        attrs=(Attr("descending", "bool", False, doc="count down"),),
        format="ins($S [, $tmp] attr-dict : type($S) [, type($tmp)]) outs($dst : type($dst))",
        doc="Fill a row with consecutive integers.",
        meaning="dst[0,j] = S - j if descending else S + j for 0 <= j < dst.v_col, in the element type "
                "(wraps).",
        cpp="TCI<Dst, T, $descending.N>($dst, $S) | TCI<Dst, Tmp, T, $descending.N>($dst, $S, $tmp)",
        cpu="ints f32 f16 bf16", a2a3="i32 u32 i16 u16", a5="i32 u32 i16 u16", dtype_code="SA-0139",
        rules=(
            R("S.dtype == dst.dtype"),
            R("dst.cols != 1", on=_NPU),
            R("dst.rows == 1", on="cpu", code="SA-0140"),
            *vec("dst tmp"),
        ),
        types={"dst": "!pto.tile_buf<vec, 1x64x{T}>"},
        notes=(
            "Only row 0 is written, whatever the valid rows.",
            "tmp serves the A2/A3 vector path: 768 bytes for 32-bit, 1792 for 16-bit elements; 2 KiB is "
            "always enough.",
            "The C++ event map puts TCI on S; PTOAS schedules it on V.",
        ),
    ),
    irregular(
        "ttri", py="tri diagonal shape valid_shape? dtype=i32 upper:upperOrLower=0 -> new(shape, dtype)", opcode=0x106D, algorithm="triangle", operands="diagonal=int dst:out", in_place="any",
        attrs=(Attr("upperOrLower", "int", 0, doc="0 lower, 1 upper"),),
        format="ins($diagonal attr-dict : type($diagonal)) outs($dst : type($dst))",
        doc="Fill a tile with a triangular mask of ones and zeros.",
        meaning="lower (0): dst[i,j] = 1 if j <= i + diagonal else 0; upper (1): dst[i,j] = 1 if j >= i + "
                "diagonal else 0.",
        cpp="TTRI<Dst, upperOrLower>($dst, $diagonal)",
        cpu="floats ints", a2a3="f32 f16 i32 u32 i16 u16", a5="floats ints",
        rules=(
            *vec("dst"), *row_major("dst"),
            R("upperOrLower in (0, 1)", msg="expects upperOrLower to be 0 (lower) or 1 (upper)"),
        ),
    ),
    irregular(
        "trandom", py="random key0 key1 counter0 counter1 counter2 counter3 shape valid_shape? dtype=u32 rounds=10 -> new(shape, dtype)", opcode=0x11C0, algorithm="random numbers", isas="cpu a5", in_place="any",
        by_hand="programs call a helper that packs key and counter",
        operands="key0=i32 key1=i32 counter0=i32 counter1=i32 counter2=i32 counter3=i32 dst:out",
        attrs=(Attr("rounds", "int", 10, choices=(7, 10), doc="Philox rounds"),),
        format=form("key0 key1 counter0 counter1 counter2 counter3", "dst", attrs_inside=True),
        doc="Fill a tile with counter-based pseudo-random 32-bit words.",
        meaning=(
            "Philox-4x32. ctr = 128-bit counter, counter0 lowest; key = (key0, key1). For row < dst.v_row, "
            "for loop < ceil(dst.v_col / 256): for lane < 64: out[4] = philox(ctr + lane); out[rep], rep < 4, goes "
            "to column loop*256 + rep*64 + lane on cpu, loop*256 + lane*4 + rep on a5, where < dst.v_col; after each "
            "loop ctr += dst.cols // 4 on cpu; on a5 64, after the last one of a row (dst.v_col - 1) % 64 + 1. A round: p0 = c0*0xD2511F53, p1 = c2*0xCD9E8D57 (64-bit); (c0, c1, c2, "
            "c3) = (hi(p1)^c1^k0, lo(p1), hi(p0)^c3^k1, lo(p0)); then k0 += 0x9E3779B9, k1 += 0xBB67AE85."
        ),
        cpp="PTOAS__TRANDOM<rounds>($dst, $key0, $key1, $counter0, $counter1, $counter2, $counter3)",
        cpu="i32 u32", a5="i32 u32",
        rules=(
            *vec("dst"), *row_major("dst", on="cpu a5"),
        ),
        notes=(
            "cpu: the counter advances by the stride after every 256 columns, so wide rows skip counter space.",
            "a5 interleaves the words into the order in which they were made. Its counters advance as its header "
            "computes them: rows whose columns are no multiple of 256 share counters, or leave some out.",
        ),
    ),
    irregular(
        "thistogram", py="histogram src idx isMSB=1 -> bins(src):u32", opcode=0x1077, algorithm="histogram",
        by_hand="one template argument is a number or a truth value",
        isas="cpu a5", operands="src idx dst:out", writes="part", domain="src valid region",
        attrs=(Attr("isMSB", "bool", True, doc="16-bit sources: count the high byte, else the low one"),
               Attr("hist_byte", "int", choices=(0, 1, 2, 3),
                    doc="byte to count, 0 = lowest; overrides isMSB")),
        doc="Cumulative histogram of one byte of every element, per row.",
        meaning=(
            "byte = hist_byte, else the highest byte if isMSB, else byte 0. Per src row r: counts[b] = "
            "elements j < src.v_col whose byte equals b and that pass the filter; dst[r,b] = counts[0] + .. "
            "+ counts[b], b = 0..255 (inclusive prefix sum). Filter, 16-bit: byte 1 none; byte 0: high byte "
            "== idx[r,0]. 32-bit: byte 3 none; byte 2: byte3 == idx[0,0]; byte 1: also byte2 == idx[1,0]; "
            "byte 0: also byte1 == idx[2,0] (the same for all rows)."
        ),
        cpp="THISTOGRAM<isMSB>($dst, $src, $idx) | THISTOGRAM<HistByte::BYTE_$hist_byte>($dst, $src, $idx)",
        combos=(Combos.of("dst src idx", cpu="u32,u16,u8 u32,u32,u8", a5="u32,u16,u8 u32,u32,u8"),),
        rules=(
            *vec("src idx dst"), *nd("src dst", on="cpu a5"),
            R("idx.layout == DN and idx.cols == 1", when="src.bits == 16"),
            R("src.rows == dst.rows"),
            R("idx.rows == src.rows", when="src.bits == 16", on="a5", text=True),
            R("idx.blayout == ROW", when="src.bits == 32"),
            R("hist_byte < src.bytes", when="has(hist_byte)"),
            R("dst.cols >= 256 and dst.v_col >= 256"),
        ),
        types={"src": "!pto.tile_buf<vec, 32x64xui16>",
               "idx": "!pto.tile_buf<vec, 32x1xui8, blayout=col_major>",
               "word/idx": "!pto.tile_buf<vec, 3x32xui8>",
               "dst": "!pto.tile_buf<vec, 32x256xui32>"},
        notes=(
            "One document gives plain counts; headers, tests and goldens are cumulative.",
            "32-bit sources: idx has 3 - byte rows that matter (none for byte 3).",
        ),
    ),
)  # fmt: skip

_MX_GROUP = (
    "m = max|x| of the group, from 0 (MXFP8: NaN skipped, inf counts; MXFP4 OCP: max of the magnitudes "
    "truncated to bf16, NaN wins; MXFP4 NV: any NaN -> m = NaN). OCP: E = biased f32 exponent of m; NaN -> e "
    "= 0xFF; e = 0 if E <= emax else E - emax, emax 8 (MXFP8) or 2 (MXFP4), so inf gives 247 / 253. NV: t = "
    "m*(1/448) or m*(1/6); m == 0 -> 0; inf -> 0xFE; NaN -> 0xFF; e = exp(t) + (mant > 0 and exp != 0xFE and "
    "not (exp == 0 and mant <= 0x400000)). scaling = f32 with exponent field 254 - e; e == 254 -> 2**-127; e "
    "== 0xFF -> scaling = m (NaN). MXFP8: y = x*scaling; NaN -> 0x7F; NV and |y| < 2**-10 -> signed zero; "
    "else clamp to +-448, nearest e4m3 ties to even, any value rounding to zero is 0x00. MXFP4: y = "
    "x*scaling (bf16 source: product rounded to bf16), nearest-even e2m1 saturating at 6; NaN scaling -> "
    "0x7; inf -> +-7; low nibble = even column; dst is zeroed first."
)
_MX_ALG = Attr(
    "scale_alg", "str", "OCP", choices=("OCP", "NV"), doc="how the group exponent follows from the maximum"
)


def _mx(form: str, scheme: str) -> dict[str, str]:
    """Witness of an MX form of tquant: group results as flat one-row tiles."""
    return {
        f"{form}/attr:quant_type": scheme, f"{form}/fp": "", f"{form}/exp": "!pto.tile_buf<vec, 1x64xui8>",
        f"{form}/max": "!pto.tile_buf<vec, 1x64xf32>", f"{form}/scaling": "!pto.tile_buf<vec, 1x64xf32>",
    }  # fmt: skip


_MX_CPU = _cross("i8 f8e4m3 f4e2m1", "f32 f16 bf16")
_MX_A5 = f"{_cross('i8 f8e4m3', 'f32 f16 bf16')} f4e2m1,f16 f4e2m1,bf16"

_QUANT = (
    irregular(
        "tquant", opcode=0x1047, algorithm="quantisation",
        by_hand="takes pointers, and which check it is depends on the scheme",
        operands="src fp? offset? dst:out tmp:tmp? exp:out? max:out? scaling:out? exp_zz:out?",
        attrs=(Attr("quant_type", "quant_type", required=True, doc="scheme"), _MX_ALG,
               Attr("grp_axis", "int", 1, choices=(0, 1), doc="MX: group along columns (1) or rows (0)")),
        format=(
            "ins($src, $fp [, $offset] : type($src), type($fp) [, type($offset)]) [tmp($tmp : type($tmp))] "
            "outs($dst : type($dst)) attr-dict",
            "ins($src : type($src)) outs($dst, $exp, $max, $scaling [, $exp_zz] : type($dst), type($exp), "
            "type($max), type($scaling) [, type($exp_zz)]) attr-dict",
        ),
        writes="part", domain="INT8: dst valid region; MX: src valid rows (grp_axis 1) or columns (0), whole grouped "
               "dimension",
        doc="Quantise a tile to 8-bit integers, or to an MX format with one scale per group of 32.",
        meaning=(
            "INT8, p = min(r, fp.rows-1): INT8_SYM i8 = clamp(rint_even(x*fp[p,0]), -128, 127); INT8_ASYM u8 "
            "= clamp(rint_even(x*fp[p,0] + offset[p,0]), 0, 255); fp is the inverse scale. MXFP8 / "
            "MXFP4_E2M1 by groups of 32 along columns (grp_axis 1, G = cols/32, exp R x G) or rows (0, exp "
            "R/32 x C): "
            f"{_MX_GROUP} "
            "max and scaling are written flat in group order (axis 1: r*G+g; axis 0: g*v_col+c), cast to "
            "their types; exp (e8m0) at [r,g] (axis 1) or [g,c] (axis 0), a 1-row exp tile meaning flat "
            "order. exp_zz: exp in boxes of 16 rows x 2 groups, order row block, group block, row, group."
        ),
        forms=(*forms(
            "TQUANT<QuantType, Dst, Src, Fp>($dst, $src, $fp) | "
            "TQUANT<QuantType, Dst, Src, Fp>($dst, $src, $fp, &$offset) | "
            "TQUANT<QuantType, Dst, Src, Fp, Tmp>($dst, $src, $fp, $tmp) | "
            "TQUANT<QuantType, Dst, Src, Fp, Tmp>($dst, $src, $fp, $tmp, &$offset) | "
            "TQUANT<QuantType, Dst, Src, Exp, Max, Scaling>($dst, $src, &$exp, &$max, &$scaling) | "
            "TQUANT<QuantType, Dst, Src, Exp, Max, Scaling, QuantScaleAlg::$scale_alg>($dst, $src, &$exp, "
            "&$max, &$scaling) | "
            "TQUANT<QuantType, VecStoreMode::NZ, Dst, Src, Exp, Max, Scaling>($dst, $src, &$exp, &$max, "
            "&$scaling, &$exp_zz)"),
            *(Form(f"TQUANT<0, {alg}>($dst, $src, &$exp, &$max, &$scaling)", fixes={"grp_axis": 0, **fixes})
              for alg, fixes in _MX_ALGORITHMS.items())),
        combos=(
            Combos.of("dst src", cpu=f"i8,f32 u8,f32 {_MX_CPU}", a2a3="i8,f32 u8,f32",
                      a5=f"i8,f32 u8,f32 {_MX_A5}"),
        ),
        rules=(
            *vec("src fp offset dst tmp"), *located("VEC", "exp max scaling exp_zz", on="cpu a5"),
            *row_major("src dst", on="a2a3"),
            R("src.shape == dst.shape", on="cpu", when="quant_type in ('MXFP8', 'MXFP4_E2M1')"),
            R("quant_type in ('INT8_SYM', 'INT8_ASYM')", on="a2a3"),
            R("has(fp)", when="quant_type in ('INT8_SYM', 'INT8_ASYM')"),
            R("has(offset)", when="quant_type == 'INT8_ASYM'",
              msg="INT8_ASYM quantization requires an offset operand"),
            R("not has(offset)", when="quant_type == 'INT8_SYM'",
              msg="INT8_SYM quantization must not have an offset operand"),
            R("dst.dtype == I8", when="quant_type == 'INT8_SYM'",
              msg="expects dst element type i8 for INT8_SYM quantization"),
            # signless i8 counts as i8 here, so the text of the type decides
            R("dst.dtype == U8 and 'xi8' not in dst.type", when="quant_type == 'INT8_ASYM'",
              msg="expects dst element type ui8 for INT8_ASYM quantization"),
            R("src.dtype == F32", when="quant_type in ('INT8_SYM', 'INT8_ASYM')"),
            R("valid_eq(src, dst)", on="cpu", when="quant_type in ('INT8_SYM', 'INT8_ASYM')"),
            R("offset.dtype == F32"),
            R("tmp.dtype == F32 and tmp.shape == src.shape", on="a2a3"),
            R("has(exp) and has(max) and has(scaling) and not has(fp)", on="cpu a5",
              when="quant_type in ('MXFP8', 'MXFP4_E2M1')"),
            R("src.blayout == ROW and dst.blayout == ROW", on="a5", when="has(exp)"),
            R("not (has(exp) or has(max) or has(scaling) or has(exp_zz))",
              when="quant_type in ('INT8_SYM', 'INT8_ASYM')", msg="expects group results only of an MX scheme"),
            R("exp.dtype == U8", on="cpu a5"), R("exp_zz.dtype == U8", on="cpu a5"),
            R("src.cols % 32 == 0", on="cpu a5", when="has(exp) and grp_axis == 1"),
            R("src.rows % 32 == 0", on="cpu a5", when="has(exp) and grp_axis == 0"),
            R("dst.dtype in (I8, F8E4M3)", on="cpu a5", when="quant_type == 'MXFP8'"),
            R("dst.dtype == F4E2M1", on="cpu a5", when="quant_type == 'MXFP4_E2M1'"),
            R("src.rows % 16 == 0 and src.cols % 64 == 0", on="cpu a5", when="has(exp_zz) and grp_axis == 1"),
            R("src.rows % 64 == 0", on="cpu a5", when="has(exp_zz) and grp_axis == 0"),
            R("src.rows * src.cols <= 59461", on="a5", when="has(exp)"),
        ),
        types={"attr:quant_type": "INT8_SYM", "src": "!pto.tile_buf<vec, 32x64xf32>",
               "fp": "!pto.tile_buf<vec, 32x8xf32>", "dst": "!pto.tile_buf<vec, 32x64xi8>",
               "scratch/tmp": "!pto.tile_buf<vec, 32x64xf32>", "asym/attr:quant_type": "INT8_ASYM", "asym/offset": "!pto.tile_buf<vec, 32x8xf32>",
               **_mx("mxfp8", "MXFP8"), **_mx("mxfp4", "MXFP4_E2M1"), **_mx("rows", "MXFP8"),
               "rows/attr:grp_axis": "0",
               **_mx("boxes", "MXFP8"), "boxes/exp_zz": "!pto.tile_buf<vec, 1x64xui8>",
               **_mx("row_boxes", "MXFP8"), "row_boxes/exp_zz": "!pto.tile_buf<vec, 1x64xui8>",
               "row_boxes/attr:grp_axis": "0", "row_boxes/src": "!pto.tile_buf<vec, 64x64xf32>",
               "row_boxes/dst": "!pto.tile_buf<vec, 64x64xi8>"},
        notes=(
            "Documents give round(x/scale) + offset; every header multiplies and adds the offset before "
            "rounding.",
            "Documents give emax 1 for e2m1 and stochastic rounding; headers use 2 and round to nearest "
            "even.",
            "The `tmp(..)` clause is an extension: PTOAS has no text form with tmp.",
        ),
    ),
    irregular(
        "tquant_dn", opcode=0x11C1, algorithm="quantisation along rows",
        by_hand="an overload of TQUANT with the scheme of a template argument",
        isas="cpu a5", operands="src dst:out exp:out max:out scaling:out",
        attrs=(Attr("quant_type", "quant_type", "MXFP8", choices=("MXFP8", "MXFP4_E2M1"), doc="scheme"),
               _MX_ALG,
               Attr("interleave", "bool", False, doc="store the exponents of two row groups side by side")),
        writes="part", domain="src valid columns, whole rows",
        doc="Quantise a tile to an MX format with groups of 32 rows per column.",
        meaning=(
            "tquant with grp_axis 0: groups of 32 consecutive rows per column; exp, max and scaling are M/32 "
            "x N. "
            f"{_MX_GROUP} "
            "interleave: exp is ceil(M/64) x 2N with [p,2c] = E[2p,c] and [p,2c+1] = E[2p+1,c] (0 if absent)."
        ),
        forms=tuple(Form(f"TQUANT<0, {alg}, interleave>($dst, $src, &$exp, &$max, &$scaling)", fixes=fixes)
                    for alg, fixes in _MX_ALGORITHMS.items()),
        combos=(Combos.of("dst src", cpu=_MX_CPU, a5=_MX_A5),),
        rules=(
            *vec("src dst exp max scaling"), *row_major("src dst", on="a5"), *same_shape("src dst"),
            R("src.rows % 32 == 0"),
            R("src.rows % 64 == 0 and src.v_row % 64 == 0", when="interleave"),
            R("exp.dtype == U8"),
            R("dst.dtype in (I8, F8E4M3)", when="quant_type == 'MXFP8'"),
            R("dst.dtype == F4E2M1", when="quant_type == 'MXFP4_E2M1'"),
        ),
        types={"src": "!pto.tile_buf<vec, 64x64xf32>", "dst": "!pto.tile_buf<vec, 64x64xi8>",
               "exp": "!pto.tile_buf<vec, 2x64xui8>", "max": "!pto.tile_buf<vec, 2x64xf32>",
               "scaling": "!pto.tile_buf<vec, 2x64xf32>", "mxfp4/attr:quant_type": "MXFP4_E2M1"},
        notes=("In C++ an overload of TQUANT. tmov with grp_axis 0 expects the exponents not interleaved.",),
    ),
    irregular(
        "tquant_hif4", opcode=0x11C2, algorithm="quantisation to hif4",
        by_hand="an overload of TQUANT with the scheme of a template argument",
        isas="cpu", operands="src dst:out exp:out max:out scaling:out",
        writes="part", domain="64-element column groups",
        doc="Quantise a tile to HiFloat4: 4-bit codes in groups of 64 with three levels of scale.",
        meaning=(
            "Groups of 64 bf16 values per row; Ma, Mb, Mc = max|x| per 64, 8, 4. Ea = e6m2 code nearest to "
            "Ma * bf16(1/7), at most 0xFE; e6m2 is (1 + m/4) * 2**(e - 48) with 6 exponent bits, 0xFF NaN. RA "
            "= 1/Ea. Eb = 1 if Mb*RA >= 4, RB = 0.5 if Eb else 1. Ec = 1 if Mc*RA*RB >= 2, RC = 0.5 if Ec "
            "else 1. code = nearest e1m2 of x*RA*RB*RC (0, .25, .. 1.75 with sign); RA and every product are "
            "rounded to bf16. 32 bits of exp per group: Ea, 8 Eb, 16 Ec. max = Mc and scaling = RA*RB*RC, per "
            "4 elements in flat order."
        ),
        cpp="TQUANT<1, MxQuantAlg::Hif4>($dst, $src, &$exp, &$max, &$scaling)",
        combos=(Combos.of("dst src", cpu="f4e1m2,bf16"),),
        rules=(*vec("src dst exp max scaling"), *same_shape("src dst"), R("src.cols % 64 == 0")),
        types={"src": "!pto.tile_buf<vec, 16x64xbf16>", "dst": "!pto.tile_buf<vec, 16x64x{T}>",
               "exp": "!pto.tile_buf<vec, 16x32xui8>", "max": "!pto.tile_buf<vec, 16x16xbf16>",
               "scaling": "!pto.tile_buf<vec, 16x16xbf16>"},
        notes=(
            "Hardware later than A5 only; A2/A3 and A5 programs are rejected. e6m2 as in the public test data: "
            "ties to even, no zero.",
        ),
    ),
    irregular(
        "tdequant", py="dequant src scale offset -> like(src):scale", opcode=0x11C3, algorithm="dequantisation", operands="src scale offset dst:out",
        doc="Turn quantised integers back into floating point with per-row scale and offset.",
        meaning=(
            "p = min(c, max(1, scale.v_col) - 1); dst[r,c] = (src[r,c] - offset[r,p]) * scale[r,p], with src "
            "in the dst type, evaluated in f32 and rounded once to the dst type."
        ),
        cpp="TDEQUANT<Dst, Src, Scale>($dst, $src, $scale, $offset)",
        combos=(
            Combos.of(
                "dst src",
                cpu=_cross("f32 f16 bf16", "i8 i16 u8 u16 i32 u32"),
                a2a3="f32,i8 f32,i16", a5="f32,i8 f32,i16",
            ),
        ),
        rules=(
            *vec("src scale offset dst"), *same_dtype("dst scale offset"),
            *row_major("src dst", on="a2a3"),
            R("valid_eq(src, dst)", on="cpu"),
            R("scale.v_row >= dst.v_row and offset.v_row >= dst.v_row", on="cpu"),
        ),
        types={"src": "!pto.tile_buf<vec, 16x64xi8>", "dst": "!pto.tile_buf<vec, 16x64xf32>",
               "scale": "!pto.tile_buf<vec, 16x16x{dst}>", "offset": "!pto.tile_buf<vec, 16x16x{dst}>"},
        notes=("scale is the true scale; that of tquant is its reciprocal.",),
    ),
)  # fmt: skip

#: PTOAS expects tiles of the same size; the headers only check valid regions.
_IN_TEXT = tuple(r.replace(text=True) for r in same_shape("dst src0 src1", on=_NPU))
_PARTIAL = (
    partial("tpartadd", opcode=0x1041, expr="src0 + src1", cpp="TPARTADD($dst, $src0, $src1)",
            doc="Add two tiles where both are valid, copy the valid one elsewhere."),
    partial("tpartmul", opcode=0x1044, expr="src0 * src1", cpp="TPARTMUL($dst, $src0, $src1)",
            a2a3="f32 f16 i32 i16", a5="floats ints32",
            doc="Multiply two tiles where both are valid, copy the valid one elsewhere."),
    partial("tpartmax", opcode=0x1042, expr="where(src1 > src0, src1, src0)",
            cpp="TPARTMAX($dst, $src0, $src1)",
            doc="Maximum of two tiles where both are valid, the valid one elsewhere.",
            rules=_IN_TEXT, notes=(_FIRST_WINS,)),
    partial("tpartmin", opcode=0x1043, expr="where(src1 < src0, src1, src0)",
            cpp="TPARTMIN($dst, $src0, $src1)",
            doc="Minimum of two tiles where both are valid, the valid one elsewhere.",
            rules=_IN_TEXT, notes=(_FIRST_WINS,)),
    partial_arg(
        "tpartargmax", py="part_argmax lhs:src0Val rhs:src1Val lhs_index:src0Idx rhs_index:src1Idx -> union(lhs, rhs) union(lhs_index, rhs_index)", opcode=0x11C4, algorithm="part extreme: largest",
        doc="Maximum of two value tiles with its index where both are valid, the valid pair elsewhere.",
        meaning=(
            "Per (i, j) of the dstVal valid region: both valid: the (value, index) pair of src0 if src0Val > "
            "src1Val, else that of src1 (ties take src1); one valid: its pair; neither: (0, 0), undefined on hardware."
        ),
        cpp="TPARTARGMAX($dstVal, $src0Val, $src1Val, $dstIdx, $src0Idx, $src1Idx)",
    ),
    partial_arg(
        "tpartargmin", py="part_argmin lhs:src0Val rhs:src1Val lhs_index:src0Idx rhs_index:src1Idx -> union(lhs, rhs) union(lhs_index, rhs_index)", opcode=0x11C5, algorithm="part extreme: smallest",
        doc="Minimum of two value tiles with its index where both are valid, the valid pair elsewhere.",
        meaning=(
            "Per (i, j) of the dstVal valid region: both valid: the (value, index) pair of src0 if src0Val < "
            "src1Val, else that of src1 (ties take src1); one valid: its pair; neither: (0, 0), undefined on hardware."
        ),
        cpp="TPARTARGMIN($dstVal, $src0Val, $src1Val, $dstIdx, $src0Idx, $src1Idx)",
    ),
)  # fmt: skip

_DEBUG = (
    irregular(
        "tprint", opcode=0x1071, algorithm="print tile",
        by_hand="it returns nothing and takes no events",
        operands="src=tile|view|tensor_view tmp=view|tensor_view:tmp?", core="",
        effect="io", in_place="",
        format="ins($src [, $tmp] : type($src) [, type($tmp)]) attr-dict",
        attrs=(Attr("print_format", "str", "Width8_Precision4",
                    choices=("Width8_Precision4", "Width8_Precision2", "Width10_Precision6"),
                    doc="field width and digits of floating-point values"),),
        writes="part", domain="src valid region",
        doc="Print the valid region of a tile, or a view, for debugging.",
        meaning=(
            "A line `TPRINT RxC` with the valid shape, then one line per row, elements separated by one "
            "space: floats fixed notation in the width and precision of print_format (f16 and bf16 like f32, "
            "NaN as nan right-aligned), integers right-aligned in the width."
        ),
        cpp="TPRINT($src) | TPRINT($src, $tmp) | TPRINT<PrintFormat::$print_format>($src) | "
            "TPRINT<PrintFormat::$print_format>($src, $tmp)",
        cpu="all", a2a3="f32 f16 i32 u32 i16 u16 i8 u8", a5="f32 f16 i32 u32 i16 u16 i8 u8", dtype_of="src",
        rules=(
            R("src.loc in (VEC, ACC, MAT)", when="src.kind == 'tile'"),
            R("src.loc == VEC or has(tmp)", on=_NPU, when="src.kind == 'tile'"),
        ),
        notes=(
            "acc and mat tiles are staged through a GM tmp of at least their size. Hardware prints the whole "
            "tile, marking the valid edge, and needs a debug build; its print buffer holds 16 KB.",
            "A full barrier precedes it on hardware.",
        ),
    ),
)  # fmt: skip

ROWS = (*_SORT, *_INDEXED, *_GENERATORS, *_QUANT, *_PARTIAL, *_DEBUG)
