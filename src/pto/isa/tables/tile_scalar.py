"""Tile-scalar instructions: an element-wise operation whose second source is one scalar.

The scalar is converted to the element type of the tile. Evaluation and rounding are as in `tile_elementwise`.
"""

from __future__ import annotations

from typing import Any

from ..row import Attr, Combos, Family, Row, forms
from ..rules import R, Rule
from ._common import form, row_major, same_dtype, same_shape, same_valid, two_steps, vec
from .tile_elementwise import HIGH, I16_32, NEEDS_TMP, NON_EMPTY, PRECISION, spelled

_TILE = "!pto.tile_buf<vec, 16x64x{T}>"

tile_scalar = Family(
    "tile-scalar-and-immediate", "tile", pipe="V", core="vector", writes="valid", domain="dst valid region", in_place="any",
)  # fmt: skip


def _same_type(tile: str) -> tuple[Rule, ...]:
    """The scalar has the element type of `tile`; for an unsigned one the signless integer of its width."""
    msg = f"expects scalar and {tile} to have the same element type"
    unsigned = f"{tile}.dtype in (U8, U16, U32, U64)"
    return (
        R(f"scalar.dtype == {tile}.dtype", when=f"not {unsigned}", msg=msg),
        R(f"scalar.bits == {tile}.bits and scalar.dtype not in (F16, BF16, F32)", when=unsigned, msg=msg),
    )


def _valid(src: str = "src", all_on_a5: bool = True) -> tuple[Rule, ...]:
    """Equal valid regions; some instructions compare only the columns on a5."""
    if all_on_a5:
        return same_valid(f"dst {src}")
    return (*same_valid(f"dst {src}", on="cpu a2a3"), R(f"{src}.v_col == dst.v_col", on="a5"))


_ANY_LAYOUT = "The documented row-major rule is not checked: the assembler takes any layout."
_ANY_SCALAR = "The ISA wants a scalar of the element type; the assembler takes any numeric type."
_HDR64 = "The A5 header also takes i64 and u64."
_TMP_A2A3 = "tmp is scratch of a2a3; a5 and cpu ignore it and the text may leave it out."

# ---- arithmetic ----


def _arith(
    name: str, vec_code: str = "", src: str = "src", all_on_a5: bool = True, rules: tuple[Rule, ...] = (),
    notes: tuple[str, ...] = (), **own: Any,
) -> Row:  # fmt: skip
    """dst = src op scalar on vec tiles of one element type, any layout."""
    own.setdefault("operands", f"{src} scalar=scalar dst:out")
    own.setdefault("cpp", spelled(name, f"$dst, ${src}, $scalar"))
    shared = (*vec(f"{src} dst", vec_code), *same_dtype(f"dst {src}"), *_valid(src, all_on_a5))
    return tile_scalar(name, rules=(*shared, *rules), notes=(*notes, _ANY_LAYOUT, _ANY_SCALAR), **own)


_ARITH = (
    _arith(
        "tadds", "SA-0231", all_on_a5=False, opcode=0x1009, expr="src + scalar", dtype_code="SA-0137",
        doc="Adds a scalar to every element; integers wrap.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
        notes=("On a5 the dtype assertion is SA-0138.",),
    ),
    _arith(
        "tsubs", all_on_a5=False, opcode=0x1069, expr="src - scalar",
        doc="Subtracts a scalar from every element; integers wrap.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
    ),
    _arith(
        "tmuls", src="src0", all_on_a5=False, opcode=0x103C, expr="src0 * scalar", dtype_code="SA-0286",
        doc="Multiplies every element by a scalar; integers wrap.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 i64 u64 " + I16_32,
        notes=("a5 has no 8-bit multiply, although the assembler accepts i8.",),
    ),
    tile_scalar(
        "tdivs", opcode=0x101E, operands="src=tile|scalar scalar=tile|scalar dst:out", attrs=PRECISION,
        expr="src / scalar", doc="Divides a tile by a scalar, or a scalar by a tile; integers truncate.",
        forms=(*forms(spelled("tdivs", "$dst, $src, $scalar", "Div"), scalars=("scalar",)),
               *forms(spelled("tdivs", "$dst, $src, $scalar", "Div"), scalars=("src",), check="reversed")),
        dtype_code="SA-0152",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 ints32",
        rules=(
            R("(src.kind == 'scalar') != (scalar.kind == 'scalar')",
              msg="expected exactly one tile_buf operand and one scalar operand"),
            *vec("src scalar dst"),
            *(
                R(expr, when=f"{name}.kind != 'scalar'")
                for name in ("src", "scalar")
                for expr in (f"{name}.dtype == dst.dtype", f"valid_eq({name}, dst)")
            ),
        ),
        types={"src": _TILE, "scalar": "{T}", "dst": _TILE, "reversed/src": "{T}", "reversed/scalar": _TILE},
        notes=(
            "The order of the operands is kept: the first is divided by the second, whichever is the tile.",
            "Floats follow IEEE; a zero divisor (PA-0010) of an integer is undefined. "
            "a5 multiplies a tile by the reciprocal of the scalar, with 1/0 = +inf.",
            "The A5 header has no 8-bit form although the page lists it, and takes i64 and u64.",
            _ANY_LAYOUT, _ANY_SCALAR,
        ),
    ),
    _arith(
        "tmaxs", opcode=0x1035, expr="where(src < scalar, scalar, src)", doc="Maximum of every element and a scalar.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
        rules=(R(NON_EMPTY.expr, on="a2a3"),),
        notes=("A NaN element is kept, a NaN scalar is ignored.",),
    ),
    _arith(
        "tmins", all_on_a5=False, opcode=0x1037, expr="where(scalar < src, scalar, src)",
        doc="Minimum of every element and a scalar.",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
        notes=("A NaN element is kept, a NaN scalar is ignored.",),
    ),
    _arith(
        "tlrelu", opcode=0x1031, operands="src slope=float dst:out", expr="where(src > 0, src, src * slope)",
        doc="Leaky ReLU with one slope.", cpp="TLRELU($dst, $src, $slope)",
        cpu="any", a2a3="f32 f16", a5="f32 f16", rules=(R(NON_EMPTY.expr, on="a2a3"),),
        types={"slope": "f32"}, notes=("NaN stays NaN.", "The assembler reads the slope as f32."),
    ),
)  # fmt: skip

# ---- bits ----


def _bits(
    name: str, operands: str = "src scalar=int dst:out", cpp: str = "$dst, $src, $scalar",
    rules: tuple[Rule, ...] = (), **own: Any,
) -> Row:  # fmt: skip
    """Bitwise rows: integer tiles, an integer scalar of any width."""
    shared = (*vec("src dst"), *row_major("src dst"), *same_dtype("dst src"), *same_valid("dst src"))
    return tile_scalar(name, operands=operands, cpp=spelled(name, cpp), rules=(*shared, *rules), **own)


def _shift(name: str, non_negative: str = "", **own: Any) -> Row:
    """Shift rows: as the bitwise ones, in any layout and in place."""
    rules = (
        *vec("src dst"), *same_dtype("dst src"), *same_valid("dst src"),
        R("scalar.const >= 0", msg=non_negative), R("scalar.const < dst.bits"),
    )  # fmt: skip
    return tile_scalar(
        name, operands="src scalar=int dst:out", cpp=spelled(name, "$dst, $src, $scalar"), rules=rules,
        notes=("Counts outside 0..bits-1 are undefined.", _HDR64), **own,
    )  # fmt: skip


_LOGIC: dict[str, Any] = {"in_place": "none", "cpu": "ints", "a2a3": "ints32", "a5": "ints32"}
_NARROW_ASM = "a2a3: the header takes 16- and 32-bit integers, the assembler 8- and 16-bit ones; all pass."

_BITS = (
    _bits(
        "tands", opcode=0x100C, expr="src & scalar", doc="Bitwise AND of every element and a scalar.",
        rules=(R(NON_EMPTY.expr, on="a2a3"),), notes=_NARROW_ASM, **_LOGIC,
    ),
    _bits(
        "tors", opcode=0x1040, expr="src | scalar", doc="Bitwise OR of every element and a scalar.",
        rules=(R(NON_EMPTY.expr, on="a2a3"),), notes=_NARROW_ASM, **_LOGIC,
    ),
    _bits(
        "txors", "src scalar=int tmp:tmp? dst:out", "$dst, $src, $scalar, $tmp", opcode=0x106F, tmp_on="a2a3",
        expr="src ^ scalar", doc="Bitwise exclusive OR of every element and a scalar.",
        rules=(NEEDS_TMP, R("tmp.dtype == dst.dtype", on="a2a3"), R("valid_le(dst, tmp)", on="a2a3")),
        types={"tmp": _TILE}, notes=(_TMP_A2A3, "On a2a3 src, tmp and dst do not overlap."), **_LOGIC,
    ),
    _shift(
        "tshls", "expects tshls scalar to be non-negative", opcode=0x1060, expr="src << scalar",
        doc="Shifts every element left by a scalar count.", cpu="ints", a2a3="ints", a5="ints",
    ),
    _shift(
        "tshrs", opcode=0x1062, expr="src >> scalar",
        doc="Shifts every element right: arithmetic for signed, logical for unsigned elements.",
        cpu="ints", a2a3=I16_32, a5="ints32",
    ),
)  # fmt: skip

# ---- remainders and powers ----

_remainder = tile_scalar.but(
    attrs=PRECISION, skip="scalar == 0",
    rules=(
        *vec("src dst"), *row_major("src dst"), *same_dtype("dst src"), *same_valid("dst src"),
        *_same_type("dst"), R(NON_EMPTY.expr, on="a2a3"), R("dst.dtype == F32", on="a5", when=HIGH),
    ),
    notes="A zero scalar (PA-0010) leaves dst untouched.",
)  # fmt: skip

_POWERS = (
    _remainder(
        "trems", opcode=0x104B, tmp_on="a2a3", operands="src scalar=scalar tmp:tmp? dst:out",
        expr="where(((src >= 0) != (scalar >= 0)) & (fmod(src, scalar) != 0), round(fmod(src, scalar)) + scalar, fmod(src, scalar))",
        doc="Floored remainder by a scalar: the result takes the sign of the scalar.",
        cpp=spelled("trems", "$dst, $src, $scalar, $tmp", "RemS"),
        cpu="any", a2a3="f32 i32", a5="f32 f16 " + I16_32,
        rules=(
            NEEDS_TMP, *row_major("tmp", on="a2a3"), R("tmp.dtype == dst.dtype", on="a2a3"),
            R("tmp.v_row >= 1", on="a2a3"), R("tmp.v_col >= dst.v_col", on="a2a3"),
        ),
        types={"tmp": _TILE},
        notes=(
            "fmod is taken in double and rounded to the element type before the scalar is added.", _TMP_A2A3,
            "A scalar of 0 leaves dst as it is.",
            "On a2a3 i32 operands must stay within 2^24.", _HDR64,
        ),
    ),
    _remainder(
        "tfmods", opcode=0x1027, operands="src scalar=scalar dst:out", expr="fmod(src, scalar)",
        doc="Truncated remainder by a scalar: the result takes the sign of the element.",
        cpp=spelled("tfmods", "$dst, $src, $scalar", "FmodS"),
        cpu="any", a2a3="f32 f16 i32 i16", a5="f32 f16 " + I16_32,
        notes=(
            "The documented a2a3 list has f32 only; the assembler takes the others too.",
            "A scalar of 0 leaves dst as it is.",
        ),
    ),
    tile_scalar(
        "tpows", opcode=0x1140, tmp_on="a2a3", operands="base exp=scalar tmp:tmp? dst:out", attrs=PRECISION,
        expr="pow(double(base), double(exp))", store="saturate", doc="Raises every element to a scalar power.",
        cpp=spelled("tpows", "$dst, $base, $exp, $tmp", "Pow"),
        cpu="any", a2a3="f32 ints32", a5="f32 f16 bf16 ints32",
        rules=(
            *vec("base dst"), *row_major("base dst"), *same_dtype("dst base"), *same_valid("dst base"),
            R("dst.dtype in (F32, F16, BF16)", on="a5", when=HIGH),
            R("has(tmp)", on="a2a3", when="dst.dtype == F32", msg=NEEDS_TMP.msg),
            R("tmp.dtype == dst.dtype", on="a2a3", when="dst.dtype == F32"),
            R("valid_le(dst, tmp)", on="a2a3", when="dst.dtype == F32"),
        ),
        types={"exp": "{T}", "tmp": _TILE},
        notes=(
            "Integers too are the cast of the double, unlike tpow: out of range gives the minimum of i32 "
            "(i64 for 64 bits) or its low bits, so i32 0^-1 is INT_MIN and 2^-1 is 0.",
            "tmp serves the float form of a2a3 only, as in tpow; HIGH_PRECISION on a5 takes floats only.",
            _ANY_SCALAR,
        ),
    ),
)  # fmt: skip

# ---- scalar and second tile ----

_three = tile_scalar.but(
    operands="src0 scalar=scalar src1 dst:out", in_place="src0",
    rules=(
        *vec("src0 src1 dst"), *row_major("src0 src1 dst"), *same_dtype("dst src0 src1"),
        *same_valid("dst src0 src1"),
    ),
    notes=(
        "Neither saturating nor a carry, despite the name.",
        "a2a3 and a5 have no such instruction: it becomes two, so dst must not be src1 and f16 rounds twice.",
        _ANY_SCALAR,
    ),
)  # fmt: skip
_SAME = "f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64"


def _axpy(types: str) -> str:
    """dst, src and scalar of one type, and f16 accumulated into f32."""
    return " ".join((*(f"{t},{t},{t}" for t in types.split()), "f32,f16,f16"))


_TERNARY = (
    _three(
        "taddsc", opcode=0x100A, expr="src0 + scalar + src1", expr_on=two_steps("src0 + scalar", "src1"), doc="Adds a scalar and a second tile.",
        cpp="TADDS($dst, $src0, $scalar); TADD($dst, $dst, $src1) | TADDSC($dst, $src0, $scalar, $src1)",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints32",
        rules=same_shape("dst src0 src1", on="a2a3 a5"),
    ),
    _three(
        "tsubsc", opcode=0x106A, expr="src0 - scalar + src1", expr_on=two_steps("src0 - scalar", "src1"), doc="Subtracts a scalar and adds a second tile.",
        cpp="TSUBS($dst, $src0, $scalar); TADD($dst, $dst, $src1) | TSUBSC($dst, $src0, $scalar, $src1)",
        cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints32",
    ),
    tile_scalar(
        "taxpy", opcode=0x1076, operands="src scalar=scalar dst:inout", expr="scalar * src + dst",
        expr_on={"f16": "round(scalar * src) + dst"},
        doc="Adds a scaled tile to dst.", forms=forms("TAXPY($dst, $src, $scalar)", written=True),
        combos=Combos.of("dst src scalar", cpu=_axpy(_SAME), a2a3=_axpy("f32 f16"), a5=_axpy("f32 f16 bf16")),
        rules=(
            *vec("src dst"), *row_major("src dst"), *same_valid("dst src"),
            *same_shape("dst src", on="a2a3 a5"),
        ),
        notes=(
            "f16 rounds the product to f16 before the sum; bf16 evaluates in f32 and rounds once; f32 += f16 "
            "multiplies and adds in f32.",
            "dst must be initialized.",
        ),
    ),
)  # fmt: skip

# ---- predicates and fill ----

_SELECT = (
    tile_scalar(
        "tcmps", py="cmps lhs:src rhs:scalar cmp_type:cmpMode=0 -> bits(lhs)", opcode=0x100F, operands="src scalar=scalar|tile dst:out", in_place="none",
        writes="valid", domain="src valid region, packed", attrs=Attr("cmpMode", "cmp", "eq", doc="comparison"),
        format=form("src scalar", "dst", attrs_inside=True),
        doc="Compares every element with a scalar into a packed predicate tile.",
        expr="compare(cmpMode, src, scalar)", expr_on={"a2a3 i32": "src == scalar"}, packed="dst", single="scalar",
        stream_on="cpu",
        forms=(*forms("TCMPS($dst, $src, $scalar, $cmpMode)", scalars=("scalar",), written=True),
               *forms("TCMPS($dst, $src, $scalar, $cmpMode)", check="tile", written=True)),
        dtype_of="src", cpu="any", a2a3="f32 f16 " + I16_32, a5="f32 f16 bf16 ints",
        rules=(
            *vec("src scalar dst"), R("scalar.dtype == src.dtype", when="scalar.kind != 'scalar'"),
            R("src.v_row == dst.v_row"), R("dst.dtype in (U8, I8, U16, I16, U32, I32)"),
            R("ceil(src.v_col, dst.bits) <= dst.cols", on="a2a3 a5"),
        ),
        types={"src": _TILE, "scalar": "{T}", "dst": "!pto.tile_buf<vec, 16x64xui8, valid=16x8>"},
        notes=(
            "a2a3, a5: packing and what dst holds beside it are those of tcmp, a2a3 with u8 words, a5 with u32 words. The "
            "vector backend of the assembler for a5 does not step by the rows of dst but writes a stream, 16 bytes (32 of "
            "8-bit src) for each 128 (256) columns of a row; here the headers decide.",
            "cpu: one stream of bytes, src.cols // 8 for every row of src (0 where it is not valid), through the valid "
            "region of dst row by row, a byte per element of whatever width; what does not fit is left out, the rest of "
            "the valid region becomes 0.",
            "The reference for the cpu takes |x - s| < 1e-9 for eq and > 1e-9 for ne, and inf and inf for neither; "
            "here comparisons are exact, as those of hardware.",
            "a2a3 hardware computes eq for i32 whatever cmpMode.",
            "The tile form is ambiguous in the reference headers.", _ANY_LAYOUT, _ANY_SCALAR,
        ),
    ),
    tile_scalar(
        "tsels", py="sels mask src tmp scalar -> like(src)", opcode=0x1058, tmp_on="a2a3", operands="mask src tmp:tmp? scalar=scalar dst:out", in_place="src",
        expr="where(mask, src, scalar)", packed="mask", doc="Selects tile elements or a scalar by a packed predicate.",
        format=(form("mask src tmp scalar", "dst"), form("mask src scalar", "dst")),
        forms=forms("TSELS($dst, $mask, $src, $tmp, $scalar) | TSELS($dst, $mask, $src, $scalar)", written=True),
        dtype_code="SA-0327",
        cpu="any", a2a3="f32 f16 bf16 " + I16_32, a5="f32 f16 ints",
        rules=(
            *vec("mask src dst"), *row_major("src dst"), *row_major("mask", on="a5"), *same_dtype("dst src"),
            *same_valid("dst src"), R("mask.dtype in (I8, U8, I16, U16, I32, U32)"), NEEDS_TMP,
        ),
        types={"mask": "!pto.tile_buf<vec, 16x32xui8, valid=16x8>", "tmp": _TILE, "scalar": "{T}"},
        notes=(
            "bit(mask) is (mask[r, c // B] >> c % B) & 1 with B the bits of a mask element, on every profile: what tcmp "
            "writes. On cpu, tcmps writes another packing unless dst.v_col * 8 == src.cols.",
            "tmp has the type of src and at least one element on a2a3; a5 and cpu ignore it.",
            "The dtype assertion is SA-0327 or SA-0328.", _ANY_SCALAR,
        ),
    ),
    tile_scalar(
        "texpands", py="full shape dtype value:scalar valid_shape? -> new(shape, dtype) | expands target scalar -> like(target)", opcode=0x1020, operands="scalar=scalar dst=tile|conv_tile:out", expr="scalar", over="storage",
        doc="Fills a tile with a scalar.", forms=forms("TEXPANDS($dst, $scalar)", written=True), dtype_code="SA-0158", core="",
        pipe=(("dst.loc == MAT", "MTE2"), ("", "V")), writes="valid", domain="dst valid region; a mat tile as a whole",
        cpu="any", a2a3="f32 f16 bf16 ints32", a5="f32 f16 bf16 ints",
        rules=(
            R("dst.loc in (VEC, MAT)"), *_same_type("dst"),
            R("dst.blayout == ROW", on="a2a3", when="dst.loc == VEC", text=True),
            R("dst.blayout == ROW", on="a5", when="dst.loc == VEC and dst.bits == 64"),
            R("dst.size // 32 >= 1 and dst.size // 32 <= 32767", on="a2a3 a5", when="dst.loc == MAT"),
        ),
        types={"scalar": "{T}", "dst": _TILE},
        notes=(
            "A convolution tile is filled whole; the product of its first four dimensions (five for NDC1HWC0 "
            "and FRACTAL_Z_3D) lies in 1..32767. The cpu reference fills the valid region only.",
            "The assembler counts a mat fill as a vector instruction; the cube core issues it on MTE2.",
        ),
    ),
)  # fmt: skip

ROWS = (*_ARITH, *_BITS, *_POWERS, *_TERNARY, *_SELECT)
