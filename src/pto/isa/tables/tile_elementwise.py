"""Element-wise tile-tile instructions: one result element per element of the destination's valid region.

Float expressions on f16 and bf16 are evaluated in f32 and rounded (nearest, ties to even) once at the store;
f32 rounds after every step; integers wrap modulo 2^n. `round(e)` rounds e to the element type at that point,
`relu(e)` is `where(e > 0, e, 0)` and so turns NaN into 0. Elements outside the valid region of dst are
unspecified.
"""

from __future__ import annotations

from typing import Any

from ..row import Attr, Combos, Family, Row, forms
from ..rules import R, Rule
from ._common import form, row_major, same_dtype, same_shape, same_valid, two_steps, vec

#: C++ template parameter of instructions with two algorithms.
PRECISION = Attr(
    "precision_mode", "precision_mode", "DEFAULT", alias="precisionType",
    doc="algorithm; HIGH_PRECISION counts on a5 only, elsewhere it is ignored",
)  # fmt: skip

HIGH = "precision_mode == 'HIGH_PRECISION'"
I16_32 = "i32 u32 i16 u16"
NEEDS_TMP = R("has(tmp)", on="a2a3", msg="expects a tmp operand on A2/A3")
NON_EMPTY = R("dst.v_row > 0 and dst.v_col > 0", on="a2a3 a5", written=True)

_FAMILY = "elementwise-tile-tile"
_COMMON: dict[str, Any] = {"pipe": "V", "core": "vector", "writes": "valid", "domain": "dst valid region", "in_place": "any"}
_TILE = "!pto.tile_buf<vec, 16x64x{T}>"


def spelled(name: str, args: str, algorithm: str = "") -> str:
    """C++ spelling; with `algorithm` also the overload that names it."""
    call = f"{name.upper()}({args})"
    high = f" | {name.upper()}<{algorithm}Algorithm::$precision_mode>({args})"
    return call + high if algorithm else call


# ---- two sources ----

binary = Family(
    _FAMILY, "tile", **_COMMON, operands="src0 src1 dst:out",
    rules=(*same_dtype("dst src0 src1"), *vec("src0 src1 dst"), *same_valid("dst src0 src1")),
)  # fmt: skip
scratch = binary.but(
    operands="src0 src1 tmp:tmp? dst:out", in_place="none", in_place_on="a2a3", tmp_on="a2a3"
)


def _row_major(a5: str = "", a2a3: str = "") -> tuple[Rule, ...]:
    """The row-major rule of the binary instructions, with the assertion id of each target."""
    expr = "src0.blayout == ROW and src1.blayout == ROW and dst.blayout == ROW"
    msg = "expects src0, src1, and dst to use row-major layout"
    return tuple(R(expr, on=isa, code=code, msg=msg) for isa, code in (("a2a3", a2a3), ("a5", a5)))


def _binary(
    name: str, codes: str = "", algorithm: str = "", rules: tuple[Rule, ...] = (), family: Family = binary,
    **own: Any,
) -> Row:  # fmt: skip
    """A binary row; `codes` are its documented ids: dtype, layout on a5, layout on a2a3."""
    dtype_code, a5, a2a3 = (*codes.split(), "", "", "")[:3]
    args = "$dst, $src0, $src1, $tmp" if family is scratch else "$dst, $src0, $src1"
    if algorithm:
        own["attrs"] = (PRECISION,)
    own.setdefault("cpp", spelled(name, args, algorithm))
    return family(name, dtype_code=dtype_code, rules=(*_row_major(a5, a2a3), *rules), **own)


_ZERO_DIVISOR = "A zero divisor (PA-0010): floats give NaN, integers are undefined."
_COUNT = "The count is read as unsigned and must be below the element width; larger counts are undefined."
_HDR64 = "The A5 header also takes i64 and u64."
_NAN_FIRST = "A NaN in src0 propagates, a NaN in src1 is dropped; equal zeros give src0."
_TMP_A2A3 = "tmp is scratch of a2a3; a5 and cpu ignore it and the text may leave it out."

_BINARY = (
    _binary(
        "tadd", "SA-0134 SA-0135 SA-0136", opcode=0x1007, expr="src0 + src1",
        doc="Element-wise sum; integers wrap.",
        cpu="any", a2a3="f32 f16 bf16 " + I16_32, a5="f32 f16 bf16 ints",
        notes="The A2A3 header has no bf16 although the documented list does.",
    ),
    _binary(
        "tsub", "SA-0339 SA-0341 SA-0340", opcode=0x1067, expr="src0 - src1",
        doc="Element-wise difference; integers wrap.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
    ),
    _binary(
        "tmul", "SA-0283 SA-0284 SA-0285", opcode=0x103B, expr="src0 * src1",
        doc="Element-wise product; integers wrap.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 i64 u64 " + I16_32,
        notes=("a5 has no 8-bit multiply.",),
    ),
    _binary(
        "tdiv", "SA-0150 SA-0151 SA-0151", "Div", opcode=0x101D, expr="src0 / src1",
        doc="Element-wise quotient; integers truncate toward zero.",
        cpu="any", a2a3="f32 f16", a5="f32 f16 i64 u64 " + I16_32,
        notes=("Floats follow IEEE: x/0 is an infinity, 0/0 NaN; an integer over 0 is undefined.",),
    ),
    _binary(
        "tmax", "SA-0248 SA-0249 SA-0250", opcode=0x1034, expr="where(src0 < src1, src1, src0)",
        doc="Element-wise maximum.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints", notes=(_NAN_FIRST,),
    ),
    _binary(
        "tmin", "SA-0251 SA-0252 SA-0253", opcode=0x1036, expr="where(src1 < src0, src1, src0)",
        doc="Element-wise minimum.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints", notes=(_NAN_FIRST,),
    ),
    _binary(
        "tand", opcode=0x100B, expr="src0 & src1", doc="Element-wise bitwise AND.",
        cpu="ints", a2a3="i8 u8 i16 u16", a5="ints32",
        notes="The A5 header checks only the width; floats are refused here as documented.",
    ),
    _binary(
        "tor", opcode=0x103F, expr="src0 | src1", doc="Element-wise bitwise OR.",
        cpu="ints", a2a3="i8 u8 i16 u16", a5="ints32",
        notes="The A5 header checks only the width; floats are refused here as documented.",
    ),
    _binary(
        "txor", opcode=0x106E, expr="src0 ^ src1", doc="Element-wise bitwise exclusive OR.", family=scratch,
        cpu="ints", a2a3="ints32", a5="ints32",
        rules=(
            NEEDS_TMP, *same_dtype("dst tmp", on="a2a3"), *row_major("tmp", on="a2a3"),
            R("valid_le(dst, tmp)", on="a2a3"),
        ),
        types={"tmp": _TILE},
        notes=(_TMP_A2A3, "a2a3 computes (x | y) & ~(x & y) with x | y in tmp: all four tiles are disjoint."),
    ),
    _binary(
        "tshl", opcode=0x105F, expr="src0 << src1", doc="Element-wise left shift; bits shifted out are lost.",
        cpu="ints", a2a3="ints32", a5="ints", notes=(_COUNT,),
    ),
    _binary(
        "tshr", opcode=0x1061, expr="src0 >> src1",
        doc="Element-wise right shift: arithmetic for signed, logical for unsigned elements.",
        cpu="ints", a2a3="ints32", a5="ints", notes=(_COUNT,),
    ),
    _binary(
        "tprelu", py="prelu x:src0 slope:src1 tmp -> like(x)", opcode=0x1046, expr="where(src0 > 0, src0, src0 * src1)", family=scratch,
        doc="Parametric ReLU with a slope per element.",
        cpu="any", a2a3="f32 f16", a5="f32 f16",
        rules=(NEEDS_TMP, R("tmp.dtype == U8", on="a2a3"), *row_major("tmp", on="a2a3")),
        types={"tmp": "!pto.tile_buf<vec, 32x64xui8>"},
        notes=(
            "A NaN in src0 stays NaN.", _TMP_A2A3,
            "a2a3 multiplies, compares into tmp and selects: tmp wants one valid row more than dst, and "
            "src0, src1, tmp and dst are pairwise distinct. a5 and cpu may work in place.",
        ),
    ),
    _binary(
        "trem", algorithm="Rem", opcode=0x104A, family=scratch,
        expr="where(((src0 >= 0) != (src1 >= 0)) & (fmod(src0, src1) != 0), round(fmod(src0, src1)) + src1, fmod(src0, src1))",
        doc="Element-wise floored remainder: the result takes the sign of the divisor.",
        cpu="any", a2a3="f32 i32 u32", a5="f32 f16 " + I16_32,
        rules=(
            NEEDS_TMP, *same_dtype("dst tmp", on="a2a3"), *row_major("tmp", on="a2a3"),
            R("tmp.v_row >= 1", on="a2a3"), R("tmp.v_col >= dst.v_col", on="a2a3"),
            R("dst.dtype == F32", on="a5", when=HIGH),
        ),
        types={"tmp": _TILE},
        notes=(
            "fmod is taken in double and rounded to the element type before the divisor is added, so f16 and "
            "bf16 round twice; fmod(x, inf) is x, hence an infinity where the signs differ.",
            _ZERO_DIVISOR, _TMP_A2A3,
            "a2a3 uses row 0 of tmp as scratch and row 1 as mask (give it two rows); "
            "its i32 operands must stay within 2^24.",
            "The reference header rereads src0 after writing dst: dst must not alias a source.", _HDR64,
        ),
    ),
    _binary(
        "tfmod", algorithm="Fmod", opcode=0x1026, expr="fmod(src0, src1)",
        doc="Element-wise truncated remainder: the result takes the sign of the dividend.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 " + I16_32,
        notes=(_ZERO_DIVISOR, "The documented a2a3 list has f32 only; the assembler takes the others too."),
    ),
    _binary(
        "tsubrelu", opcode=0x1100, expr="relu(src0 - src1)", doc="Difference followed by ReLU.",
        cpu="any", a2a3="f32 f16", a5="f32 f16",
        notes="8- and 16-bit integers subtract in 32 bits, apply ReLU there and keep the low bits; "
        "32- and 64-bit ones wrap before ReLU.",
    ),
)  # fmt: skip

# ---- one source ----

unary = Family(_FAMILY, "tile", **_COMMON, operands="src dst:out")


def _unary(
    name: str, dtype_code: str = "", vec_code: str = "", layout_code: str = "", algorithm: str = "",
    rules: tuple[Rule, ...] = (), **own: Any,
) -> Row:  # fmt: skip
    if algorithm:
        own["attrs"] = (PRECISION,)
    own.setdefault("cpp", spelled(name, "$dst, $src", algorithm))
    shared = (
        *vec("src dst", vec_code), *row_major("src dst", layout_code), *same_dtype("dst src"),
        *same_valid("dst src"),
    )  # fmt: skip
    return unary(name, dtype_code=dtype_code, rules=(*shared, *rules), **own)


_FLOAT: dict[str, Any] = {"cpu": "floats", "a2a3": "f32 f16", "a5": "f32 f16"}

_UNARY = (
    _unary(
        "tabs", "SA-0130", "SA-0133", opcode=0x1006, expr="where(src < 0, -src, src)",
        doc="Element-wise absolute value.",
        cpu="f32 f16 bf16 i32 i16 i8", a2a3="f32 f16", a5="f32 f16 i32 i16 i8",
        notes="The least integer is its own result; -0.0 and NaN pass unchanged.",
    ),
    _unary(
        "texp", "SA-0153", "SA-0157", "SA-0154", "Exp", opcode=0x101F, expr="exp(src)",
        doc="Element-wise exponential.", **_FLOAT,
        notes="f16 is evaluated in f32, others in double, then rounded; overflow gives inf, exp(-inf) 0.",
    ),
    _unary(
        "tlog", "SA-0238", "SA-0241", algorithm="Log", opcode=0x1030, expr="log(src)",
        doc="Element-wise natural logarithm.", **_FLOAT,
        notes="Evaluated in double, then rounded; log(0) is -inf, a negative argument gives NaN.",
    ),
    _unary(
        "tsqrt", "SA-0332", "SA-0336", "SA-0333", "Sqrt", opcode=0x1064, expr="sqrt(src)",
        doc="Element-wise square root.", **_FLOAT,
        notes="Evaluated in double, then rounded; a negative argument gives NaN, -0.0 gives -0.0.",
    ),
    _unary(
        "trsqrt", "SA-0318", "SA-0322", "SA-0319", "Rsqrt", opcode=0x1055, tmp_on="a2a3", expr="1 / sqrt(src)",
        doc="Element-wise reciprocal square root.", operands="src dst:out tmp:tmp?",
        cpu="f32 f16", a2a3="f32 f16", a5="f32 f16",
        rules=(*vec("tmp"), *row_major("tmp"), R("tmp.size >= 32", on="a2a3 a5")),
        cpp=f"{spelled('trsqrt', '$dst, $src', 'Rsqrt')} | {spelled('trsqrt', '$dst, $src, $tmp', 'Rsqrt')}",
        types={"tmp": "!pto.tile_buf<vec, 1x64x{T}>"},
        notes=(
            "Evaluated in double, then rounded; +0 gives +inf, -0 gives -inf, a negative argument NaN.",
            "tmp is ignored on a5 and cpu.",
        ),
    ),
    _unary(
        "trecip", "SA-0297", "SA-0300", algorithm="Recip", opcode=0x1048, expr="1 / src",
        doc="Element-wise reciprocal.", in_place="none", in_place_on="a2a3", **_FLOAT,
        notes=(
            "A zero (PA-0010) gives an infinity.",
            "Only a2a3 needs src and dst apart; a5 and cpu may work in place.",
        ),
    ),
    _unary(
        "tnot", opcode=0x103E, expr="~src", doc="Element-wise bitwise complement.",
        cpu="ints", a2a3="i16 u16", a5="ints32",
    ),
    _unary(
        "trelu", opcode=0x1049, expr="where(src < 0, 0, src)", doc="Element-wise rectified linear unit.",
        cpu="any", a2a3="f32 f16 i32 u32", a5="f32 f16 i32 u32", notes="NaN and -0.0 pass unchanged.",
    ),
    unary(
        "tneg", opcode=0x103D, expr="-src", doc="Element-wise negation; integers wrap.",
        cpp="TNEG($dst, $src)", cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 " + I16_32,
        rules=(
            *vec("src dst"), *same_dtype("dst src"), *same_valid("dst src", on="cpu a2a3"),
            R("src.v_col == dst.v_col", on="a5"),
        ),
        notes=(
            "Lowers to a multiplication by -1, so a5 has no 8-bit form, although the assembler lets i8 pass.",
            "The documented row-major rule is not checked: neither the assembler nor the headers do.",
        ),
    ),
)  # fmt: skip

# ---- packed predicates ----

_compare = Family(_FAMILY, "tile", **_COMMON).but(in_place="none", writes="valid", domain="src0 valid region, packed")

_PREDICATE = (
    _compare(
        "tcmp", py="cmp lhs:src0 rhs:src1 cmp_type:cmpMode=0 -> bits(lhs)", opcode=0x100E, operands="src0 src1 dst:out",
        attrs=Attr("cmpMode", "cmp", doc="comparison; absent means eq"),
        format=form("src0 src1", "dst", attrs_inside=True),
        forms=forms("TCMP($dst, $src0, $src1, $cmpMode)", written=True), doc="Element-wise comparison into a packed predicate tile.",
        expr="compare(cmpMode, src0, src1)", expr_on={"a2a3 i32": "src0 == src1"}, packed="dst",
        dtype_of="src0", cpu="f32 f16 bf16 ints32", a2a3="f32 f16 i32 u32", a5="f32 f16 bf16 ints",
        rules=(
            *same_dtype("src0 src1"), *vec("dst", "SA-0230"), *vec("src0 src1", "SA-0232"),
            R("dst.dtype in (U8, I8)", on="a2a3"), R("dst.dtype in (U8, I8, U32, I32)", on="cpu a5"),
            R("valid_eq(src0, src1)", on="cpu a2a3"), R("src0.v_row == dst.v_row", on="cpu a2a3"),
            R("ceil(src0.v_col, dst.bits) <= dst.cols"),
        ),
        types={"dst": "!pto.tile_buf<vec, 16x64xui8, valid=16x8>"},
        notes=(
            "B = bits of a dst element. For every valid row r of src0 and w < ceil(src0.v_col / B), bit k (least "
            "significant first) of dst[r, w] is the comparison of the elements [r, B*w + k] where B*w + k < "
            "src0.v_col, else 0; the other valid elements of dst become 0. On cpu, w < dst.v_col as well; hardware "
            "does not look at the valid columns of dst.",
            "Beyond that dst keeps its contents. Hardware writes whole words of 64 to 256 bits instead: a5 with "
            "zeros behind the last column, a2a3 with what comparing the elements there gives. The reference header "
            "for the cpu zeroes all of the storage first.",
            "Comparisons with NaN are false except ne.",
            "a2a3 writes u8 words, a5 u32 words (8-bit ones pass too); the columns of dst count words.",
            "a2a3 hardware ignores cmpMode for i32 and computes eq.",
            "The documented row-major rule is not checked: the assembler takes any layout.",
        ),
    ),
    _compare.but(in_place="src0 src1", writes="valid", domain="dst valid region")(
        "tsel", py="sel mask lhs:src0 rhs:src1 tmp -> like(lhs)", opcode=0x1057, operands="mask src0 src1 tmp:tmp? dst:out", tmp_on="a2a3", expr="where(mask, src0, src1)", packed="mask",
        stream_on="cpu",
        doc="Selects from two tiles by a packed predicate.", forms=forms("TSEL($dst, $mask, $src0, $src1, $tmp)", written=True),
        dtype_code="SA-0326", cpu="any", a2a3="f32 f16 bf16 " + I16_32, a5="any",
        rules=(
            R("dst.bits in (16, 32)", on="a2a3", code="SA-0326",
              msg="expects A2/A3 tsel src0, src1, and dst element type to be i16/i32/f16/f32"),
            *same_dtype("dst src0 src1"), *vec("mask src0 src1 dst"), *row_major("src0 src1 dst"),
            R("mask.dtype in (I8, U8, I16, U16, I32, U32)"), NEEDS_TMP,
        ),
        types={"mask": "!pto.tile_buf<vec, 16x32xui8, valid=16x8>", "tmp": "!pto.tile_buf<vec, 1x16xui32>"},
        notes=(
            "a2a3, a5: bit(mask) is (mask[r, c // B] >> c % B) & 1 with B the bits of a mask element: every row "
            "starts a new word, as tcmp writes it. The A5 header steps from row to row by as many bytes as the mask has "
            "columns: there, take masks of 8-bit elements.",
            "cpu: the n-th element of the valid region of dst takes bit n of one stream, the low 8 bits of each valid "
            "element of mask, row by row: what tcmp wrote is read where mask.v_col * 8 == dst.v_col, what tcmps wrote "
            "where its src was valid in all columns.",
            "tmp holds at least 16 bytes for 16-bit and 8 bytes for 32-bit data on a2a3.", _TMP_A2A3,
        ),
    ),
)  # fmt: skip

# ---- three sources, fused forms ----

ternary = binary.but(
    operands="src0 src1 src2 dst:out", in_place="src0 src1",
    rules=(
        *same_dtype("dst src0 src1 src2"), *vec("src0 src1 src2 dst"), *row_major("src0 src1 src2 dst"),
        *same_valid("dst src0 src1 src2"),
    ),
    notes=(
        "Neither saturating nor a carry, despite the name.",
        "a2a3 and a5 have no such instruction: it becomes two, so dst must not be src2 and f16 rounds twice.",
    ),
)  # fmt: skip
accumulate = binary.but(operands="src0 src1 dst:inout")
_narrow = Family(
    _FAMILY, "tile", **_COMMON, operands="src0 src1 dst:out",
    rules=(
        *same_dtype("src0 src1"), *vec("src0 src1 dst"), *_row_major(), NON_EMPTY,
        *same_valid("dst src0 src1"),
    ),
).but(in_place="none")  # fmt: skip


def _everywhere(triples: str) -> Combos:
    """Destination and source types that are the same on every target."""
    return Combos.of("dst src0 src1", cpu=triples, a2a3=triples, a5=triples)


_NARROW = _everywhere("f16,f32,f32 i8,f16,f16 i8,i16,i16")
_NARROW_NOTES = (
    "convert rounds to nearest even and saturates: f16 at 65504, i8 at 127.",
    "The f32 and f16 sums round in the source type; i16 sums are exact and clamp to 0..127.",
)

_FUSED = (
    ternary(
        "taddc", opcode=0x1008, expr="src0 + src1 + src2", expr_on=two_steps("src0 + src1", "src2"), doc="Sum of three tiles.",
        cpp="TADD($dst, $src0, $src1); TADD($dst, $dst, $src2) | TADDC($dst, $src0, $src1, $src2)",
        cpu="any", a2a3="f32 f16 bf16 " + I16_32, a5="f32 f16 bf16 ints",
        rules=same_shape("dst src0 src1 src2", on="a2a3 a5"),
    ),
    ternary(
        "tsubc", opcode=0x1068, expr="src0 - src1 + src2", expr_on=two_steps("src0 - src1", "src2"), doc="Difference of two tiles plus a third.",
        cpp="TSUB($dst, $src0, $src1); TADD($dst, $dst, $src2) | TSUBC($dst, $src0, $src1, $src2)",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 ints32",
    ),
    *(
        accumulate(
            name, opcode=opcode, expr=expr, doc=doc, notes=note, rules=_row_major(),
            cpp=spelled(name, "$dst, $src0, $src1"), cpu="any", a2a3="f32 f16", a5="f32 f16",
        )
        for name, opcode, expr, doc, note in (
            ("tfusedmuladd", 0x1101, "src0 * dst + src1", "Multiplies dst by src0 and adds src1.",
             "f16 and bf16 round once at the end; f32 rounds the product and the sum (no fma)."),
            ("tfusedmuladdrelu", 0x1102, "relu(round(round(src0 * dst) + src1))",
             "Multiplies dst by src0, adds src1 and applies ReLU.",
             "The product is rounded to the element type before the sum; NaN gives 0."),
            ("tmuladddst", 0x1103, "round(src0 * src1) + dst", "Adds the product of the sources to dst.",
             "The product is rounded to the element type before the sum."),
        )
    ),
    _narrow(
        "taddreluconv", py="addreluconv lhs:src0 rhs:src1 dtype -> like(lhs):dtype", opcode=0x1104, expr="relu(src0 + src1)", store="saturate",
        doc="Sum, ReLU and saturating conversion to a narrower type.",
        cpp="TADDRELUCONV($dst, $src0, $src1)", combos=_NARROW, notes=_NARROW_NOTES,
    ),
    _narrow(
        "tsubreluconv", py="subreluconv lhs:src0 rhs:src1 dtype -> like(lhs):dtype", opcode=0x1105, expr="relu(src0 - src1)", store="saturate",
        doc="Difference, ReLU and saturating conversion to a narrower type.",
        cpp="TSUBRELUCONV($dst, $src0, $src1)", combos=_NARROW, notes=_NARROW_NOTES,
    ),
    _narrow(
        "tadddeqrelu", py="adddeqrelu lhs:src0 rhs:src1 scale:deqScale tmp -> like(lhs):f16", opcode=0x1106, tmp_on="a2a3", operands="src0 src1 deqScale=float tmp:tmp dst:out", floats="deqScale",
        expr="relu(f16(f32(src0 + src1) * deqScale))",
        expr_on=dict.fromkeys(("a2a3", "a5"), "min(relu(f32(src0 + src1) / 131072 * deqScale * 131072), 65504)"),
        doc="Integer sum, dequantised by a scale, with ReLU.",
        forms=forms("TADDDEQRELU($dst, $src0, $src1, $deqScale, $tmp)", written=True),
        combos=_everywhere("f16,i32,i32"),
        rules=(
            R("deqScale.dtype == F32"), R("tmp.dtype == I32", on="a2a3 a5"),
            R("valid_le(dst, tmp)", on="a2a3"),
        ),
        types={"deqScale": "f32", "tmp": "!pto.tile_buf<vec, 16x64xi32>"},
        notes=(
            "cpu: the i32 sum wraps, converts to f32, is scaled in f32, rounds to f16 (overflow gives inf), "
            "then ReLU.",
            "a2a3 and a5: scaled in two steps, around 2^-17, in f32; ReLU; f16 with saturation.",
            "tmp is used on a2a3 only.",
        ),
    ),
    binary.but(
        operands="base exp tmp:tmp? dst:out", rules=(), attrs=PRECISION,
    )(
        "tpow", opcode=0x1107, tmp_on="a2a3", expr="pow(base, exp)", doc="Element-wise power of one tile to another.",
        cpp=spelled("tpow", "$dst, $base, $exp, $tmp", "Pow"),
        cpu="any", a2a3="f32 ints32", a5="f32 f16 bf16 ints32",
        rules=(
            *same_dtype("dst base exp"), *vec("base exp dst"), *row_major("base exp dst"),
            *same_valid("dst base exp"), R("dst.dtype in (F32, F16, BF16)", on="a5", when=HIGH),
            R("has(tmp)", on="a2a3", when="dst.dtype == F32", msg=NEEDS_TMP.msg),
            R("tmp.dtype == dst.dtype", on="a2a3", when="dst.dtype == F32"),
            R("valid_le(dst, tmp)", on="a2a3", when="dst.dtype == F32"),
        ),
        types={"tmp": _TILE},
        notes=(
            "Floats: pow in double, then rounded (f16 through f32).",
            "Integers: squaring with wrap; exponent 0 or base 1 gives 1; a negative exponent gives 0, "
            "except base -1, which gives 1 or -1 by parity.",
            "tmp serves the float form of a2a3 only; the A5 header takes bf16 with HIGH_PRECISION only.",
        ),
    ),
)  # fmt: skip

# ---- conversion ----


def _pairs(**targets: str) -> str:
    """`src,dst` combinations from the targets of each source."""
    return " ".join(f"{src},{dst}" for src, dsts in targets.items() for dst in dsts.split())


_CONVERTIBLE = "f16 f32 bf16 i8 u8 i16 u16 i32 u32 i64 u64 s4 f4e2m1 f4e1m2 f8e4m3 f8e5m2 hif8"
_C, _REST = "dst.v_col", "dst.v_col % 64"

_CONVERT = (
    Family(_FAMILY, "tile", **_COMMON)(
        "tcvt", opcode=0x101C, algorithm="convert", operands="src dst:out tmp:tmp?", in_place="none",
        by_hand="need_set_ctrl goes with all arguments in C++, with some in programs",
        format="ins($src [, $tmp] attr-dict : type($src) [, type($tmp)]) outs($dst : type($dst))",
        attrs=(
            Attr("rmode", "round_mode", "CAST_RINT", doc="rounding"),
            Attr("sat_mode", "saturation_mode", doc="saturation; the default depends on the pair"),
            Attr("need_set_ctrl", "bool", True, inert=True, doc="C++ only: program the saturation bits of the core"),
        ),
        doc="Converts elements to another type.",
        cpp="TCVT($dst, $src, $rmode) | TCVT($dst, $src, $rmode, $sat_mode) | TCVT($dst, $src, $tmp, $rmode)"
        " | TCVT($dst, $src, $tmp, $rmode, $sat_mode) | TCVT<$need_set_ctrl>($dst, $src, $rmode)",
        meaning="dst[i,j] = convert(src[i,j]) with rmode NONE or TRUNC to zero, RINT nearest ties to even, "
        "ROUND nearest ties away from zero, FLOOR, CEIL, ODD nearest ties to the odd neighbour. "
        "float -> int: round to an integer by rmode, then ON clamps to the range of dst (infinities too, NaN "
        "to its maximum); OFF: i32 and i64 give their minimum where the value does not fit or is NaN, i8 i16 "
        "u16 keep the low bits of that i32, u8 and u32 those of that i64, u64 is as i64 below 2^63, 2^63 for "
        "NaN and 0 from 2^64; on a2a3 and a5 types of 8 and 16 bits keep the low bits of the value clamped to an "
        "i32 (inf gives -1 or 255, -inf and NaN 0). float -> float: RNE whatever rmode; ON clamps overflow, infinities and NaN to "
        "the largest finite value where the range of dst is smaller (fp8, hif8: NaN stays); OFF overflows to "
        "inf, to NaN without infinities, to the largest value without NaN. f32 -> f32: round to an integral "
        "value by rmode, NONE copies. int -> float: through double, RNE, ON clamps. int -> int: ON clamps, "
        "OFF keeps the low bits or extends by the signedness of src. Equal 4-bit float types copy the code.",
        combos=Combos.of(
            "src dst",
            cpu=_pairs(**dict.fromkeys(("f32", *_CONVERTIBLE.split()), _CONVERTIBLE)),
            a2a3=_pairs(
                f32="f16 f32 bf16 i16 i32 i64", f16="f32 i32 i16 i8 u8 s4", bf16="f32 i32", i16="f16 f32",
                i32="f32 i16 i64 f16", i64="f32 i32", u8="f16", i8="f16", s4="f16",
            ),
            a5=_pairs(
                f32="f16 f32 bf16 i16 i32 i64 f8e4m3 f8e5m2 hif8", f16="f32 i32 i16 i8 u8 hif8",
                bf16="f32 i32 f16 f4e1m2 f4e2m1", i16="u8 f16 f32 u32 i32", i32="f32 i16 u16 i64 u8",
                i64="f32 i32", u8="f16 u16", i8="f16 i16 i32", u32="u8 u16 i16", f8e4m3="f32", f8e5m2="f32",
                hif8="f32", f4e1m2="bf16", f4e2m1="bf16",
            ),
        ),
        rules=(
            R("src.shape == dst.shape", on="a2a3 a5", msg="expects src and dst to have compatible shapes"),
            *same_valid("dst src"), *vec("src dst tmp"),
            R(f"tmp.size >= max(256 * min({_C} // 64, 255), 32 * ((min(dst.v_row, 255) - 1) * src.cols // 8"
              f" + ceil({_REST}, 8)) if {_REST} else 0)",
              on="a2a3", when="src.dtype == F32 and dst.dtype == I16 and sat_mode == 'OFF'"),
            R(f"tmp.size >= 32 * ceil(min({_C}, 64), 8)",
              on="a2a3", when="src.dtype == F16 and dst.dtype == I16 and sat_mode == 'OFF'"),
            R(f"tmp.size >= max(32 * ceil(min({_C}, 64), 8), 128 + 32 * ceil(min({_C}, 64), 16))",
              on="a2a3", when="src.dtype == F16 and dst.dtype == I8 and sat_mode == 'OFF' and dst.v_col > 0"),
        ),
        types={"src": _TILE, "dst": _TILE, "tmp": "!pto.tile_buf<vec, 16x256xi32>",
               "wrap/attr:sat_mode": "OFF", "wrap/tmp": "!pto.tile_buf<vec, 1x64xi32>"},
        notes=(
            "Absent sat_mode: a2a3 and a5 take OFF for f16->u8, f16->i8, f32->i16, f16->i16, i64->i32 and "
            "i32->i16 and ON otherwise; cpu takes OFF. a2a3 ignores OFF for other pairs.",
            "OFF out of range is undefined in C++; the rule above is what the reference does on x86 "
            "(f32->i16 70000 -> 4464, NaN -> 0). That of a2a3 and a5 is their way by a saturated i32, and what the "
            "tests of both have for infinities.",
            "Clamping comes after rounding and is exact. The reference clamps in double first and casts back "
            "to src, which overshoots (f32->i32 overflow -> INT_MIN), loses bits of i64, turns f16 inf into "
            "65504 in f32, and gives 0 for every ON conversion with fp8 or hif8.",
            "f32->f16 ON maps NaN, inf and 65520 to 65504; OFF to NaN, inf and inf.",
            "RINT: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2. ODD: 0.5 -> 1, 2.5 -> 3, -1.5 -> -1.",
            "Every NaN becomes one code, whatever its sign and payload: 0x7F of f8e4m3, 0x7E of f8e5m2, 0x80 of hif8, 7 "
            "of 4-bit floats, as the quantising headers and the goldens of a5 have it.",
            "fp8 and hif8 follow their formats (RNE, NaN codes, saturation at the largest finite value); the "
            "reference truncates and wraps, and rounds fp4 to integers first. The limit of f4e1m2 is 1.75.",
            "i32->f16 is the dequantising path of a2a3. The cpu reference copies f32->f32 whatever rmode.",
            "s4 is packed two per byte; the reference stores one per byte.",
            "The field's assembler counts 4-bit floats in vec by pairs: where the other side of a conversion has twice "
            "the columns, all such tiles of the program are read that way.",
            "The reference walks src valid, the targets dst valid; they are equal.",
        ),
    ),
)  # fmt: skip

ROWS = (*_BINARY, *_UNARY, *_PREDICATE, *_FUSED, *_CONVERT)
