"""Vector-register compute: unary, binary, vector-scalar, conversion, compare-select and reduction rows.

`meaning` of the lane-wise families is a scalar expression: x, y, z are the vector sources in operand order
and s the scalar. If a row has a mask, inactive lanes give 0, independent of the expression. `vector_memory`
and `vector_special` share the helpers at the top.
"""

from __future__ import annotations

from typing import Any

from ..row import Attr, Combos, Family
from ..rules import R, Rule
from ._common import same_dtype
from .vector_calls import CALLS

INTS = "(I8, U8, I16, U16, I32, U32, I64, U64)"

#: Elements of 8, 16 and 32 bits in every column.
B8_32 = "f32 f16 bf16 i8 u8 i16 u16 i32 u32"
#: Further elements of A5, as bit patterns.
FP8 = "f8e4m3 f8e5m2 hif8"
#: Further elements that can only be moved: elements of 4 bits, two to a lane.
LOW = f"{FP8} fp4"

#: Common facts of all rows of the vector set.
VECTOR: dict[str, Any] = dict(
    set="vector", scope="vec", core="vector", pipe="V", forms=CALLS,
)  # fmt: skip

ROUNDING = {
    "R": "nearest, ties to even", "A": "nearest, ties away from zero", "F": "floor", "C": "ceil",
    "Z": "toward zero", "O": "to odd",
}  # fmt: skip


def everywhere(dtypes: str, a5: str = "") -> dict[str, str]:
    """The same element types in every column, with what only the A5 adds."""
    return {"cpu": dtypes, "a2a3": dtypes, "a5": f"{dtypes} {a5}"}


def pairs(operands: str, legal: str) -> tuple[Combos, ...]:
    """The same element type combinations in every column."""
    return (Combos.of(operands, cpu=legal, a2a3=legal, a5=legal),)


def full_width(names: str) -> tuple[Rule, ...]:
    """Every named register is exactly 256 bytes."""
    return tuple(
        R(f"{n}.lanes * {n}.bits == 2048", msg=f"expects {n} to fill a 2048-bit vector register")
        for n in names.split()
    )


def mask_of(masks: str, data: str, when: str = "") -> tuple[Rule, ...]:
    """Every named mask has the granularity of the elements of `data`; 64-bit elements take b32."""
    return tuple(
        R(f"{m}.gran == '{gran}'", when=" and ".join(filter(None, (f"({when})" if when else "", width))),
          msg=f"expects {m} to be a mask of granularity {gran}: {data} has {lanes}")
        for m in masks.split()
        for gran, width, lanes in (
            ("b8", f"{data}.bits == 8", "256 lanes of 8 bits"),
            ("b16", f"{data}.bits == 16", "128 lanes of 16 bits"),
            ("b32", f"{data}.bits >= 32", "lanes of 32 bits or pairs of them"),
        )
    )  # fmt: skip


def scalar_of(scalar: str, data: str) -> Rule:
    """The scalar has the element type of `data`; integers agree by width, as scalars are signless."""
    return R(
        f"{scalar}.dtype == {data}.dtype or"
        f" {scalar}.bits == {data}.bits and {scalar}.dtype in {INTS} and {data}.dtype in {INTS}",
        msg=f"expects {scalar} to have the element type of {data}",
    )


def integer(name: str) -> Rule:
    return R(f"{name}.dtype in {INTS}", msg=f"expects {name} to hold integers")


def rounding(name: str, modes: str, default: str | None = "R") -> Attr:
    """A rounding attribute; the toolchain's ROUND_x is accepted for x."""
    words = modes.split()
    doc = "; ".join(f"{w} {ROUNDING[w]}" for w in words) + "; ROUND_x is the same as x"
    choices = (*words, *(f"ROUND_{w}" for w in words))
    short = {f"ROUND_{w}": w for w in words}
    return Attr(name, "str", default, required=default is None, choices=choices, words=short, doc=doc)


ZEROING = "Inactive lanes give 0; manual pages in which they keep an old value do not apply."
WRAPS = "Integers wrap modulo 2**bits."
BITS = "Floating-point elements are taken as raw bits, as code merging EVEN and ODD conversions does."
EXTENSION = "From the A5 toolchain; an extension on cpu and a2a3."
_ACTIVE = "lanes on in mask; the others are 0"

_unary = Family(
    "unary", **VECTOR, effect="pure", gate="mask", operands="input=vreg mask=mask", results="r=vreg", domain=_ACTIVE,
    dtype_of="r", notes=(ZEROING,),
    rules=(*same_dtype("r input"), *full_width("input r"), *mask_of("mask", "r")),
)  # fmt: skip
_binary = Family(
    "binary", **VECTOR, effect="pure", gate="mask", operands="lhs=vreg rhs=vreg mask=mask", results="r=vreg",
    domain=_ACTIVE, dtype_of="r", notes=(ZEROING,),
    rules=(*same_dtype("r lhs rhs"), *full_width("lhs rhs r"), *mask_of("mask", "r")),
)  # fmt: skip
_shift = _binary.but(
    rules=(
        *same_dtype("r lhs"), R("rhs.bits == r.bits"), integer("rhs"), *full_width("lhs rhs r"),
        *mask_of("mask", "r"),
    ),
    notes=(ZEROING, "rhs may be the signed vector of equal width, as the A5 assembler asks for."),
)  # fmt: skip
_scalar = Family(
    "vec-scalar", **VECTOR, effect="pure", gate="mask", operands="input=vreg scalar=scalar mask=mask", results="r=vreg",
    domain=_ACTIVE, dtype_of="r", notes=(ZEROING,),
    rules=(
        *same_dtype("r input"), scalar_of("scalar", "input"), *full_width("input r"), *mask_of("mask", "r"),
    ),
)  # fmt: skip
_scalar_shift = _scalar.but(
    rules=(
        *same_dtype("r input"), *full_width("input r"), *mask_of("mask", "r"),
        R(f"scalar.dtype in {INTS} and scalar.bits in (16, input.bits)",
          msg="expects scalar to be an integer of the element width, or i16"),
        R("0 <= scalar.const < input.bits", msg="expects the shift count to be below the element width"),
    ),
    notes=(ZEROING, "The toolchain takes the count as i16; both widths are accepted."),
)  # fmt: skip
_carry = everywhere("u32 i32")

_UNARY = (
    _unary(
        "vabs", opcode=0x3040, expr="abs(input)", doc="Absolute value.", **everywhere("f32 f16 i8 i16 i32"),
        notes=("The smallest integer does not change (two's complement wrap).",),
    ),
    _unary(
        "vneg", opcode=0x3041, expr="-input", doc="Negation; integers wrap.",
        notes=("Defined as a multiplication by -1.",), **everywhere("f32 f16 i8 i16 i32"),
    ),
    _unary(
        "vexp", opcode=0x3042, expr="exp(input)", doc="Exponential, base e.", **everywhere("f32 f16"),
        notes=("exp(-inf) = 0, exp(+inf) = +inf, NaN stays NaN, overflow gives +inf.",),
    ),
    _unary(
        "vln", opcode=0x3043, expr="log(input)", doc="Natural logarithm.", **everywhere("f32 f16"),
        notes=("x < 0 gives NaN and x = 0 gives -inf; the manual leaves non-positive input to the target.",),
    ),
    _unary(
        "vsqrt", opcode=0x3044, expr="sqrt(input)", doc="Square root.", notes=("x < 0 gives NaN.",),
        **everywhere("f32 f16"),
    ),
    _unary(
        "vrsqrt", opcode=0x3045, expr="1 / sqrt(input)", doc="Reciprocal square root.",
        notes=("x = +0 or -0 gives the infinity of the same sign.",), **everywhere("f32 f16"),
    ),
    _unary(
        "vrec", opcode=0x3046, expr="1 / input", doc="Reciprocal.",
        notes=("x = +0 or -0 gives the infinity of the same sign.",), **everywhere("f32 f16"),
    ),
    _unary(
        "vrelu", opcode=0x3047, expr="where(input > 0, input, 0)", doc="Rectified linear unit.",
        notes=("NaN gives 0.", "i32 comes from the newer assembler."),
        cpu="f32 f16 i32", a2a3="f32 f16", a5="f32 f16 i32",
    ),
    _unary(
        "vnot", opcode=0x3048, expr="~input", doc="Bitwise complement.", rules=(integer("input"),),
        **everywhere("ints"),
    ),
    _unary(
        "vbcnt", opcode=0x3049, expr="popcount(input)", doc="Number of one bits in each element.",
        rules=(integer("input"),), notes=("Counts over all bits of the element.",), **everywhere("ints"),
    ),
    _unary(
        "vcls", opcode=0x304A, expr="cls(input)", doc="Number of leading bits equal to the sign bit.",
        rules=(integer("input"),), **everywhere("i8 i16 i32 i64"),
        notes=("The sign bit itself is not counted: 0 and -1 give bits - 1.",),
    ),
    _unary(
        "vmov", opcode=0x304B, operands="input=vreg mask=mask?", expr="input", **everywhere(B8_32),
        doc="Copy of a vector register.", domain="lanes on in mask, all without one; the others are 0",
        notes=("Called a merging copy in the manual; in SSA form there is nothing to merge with.",),
    ),
)  # fmt: skip

_BINARY = (
    _binary(
        "vadd", opcode=0x3050, expr="lhs + rhs", doc="Lane-wise sum; integers wrap.", **everywhere("any"),
        notes=(WRAPS,),
    ),
    _binary(
        "vsub", opcode=0x3051, expr="lhs - rhs", doc="Lane-wise difference; integers wrap.",
        notes=(WRAPS,), **everywhere("any"),
    ),
    _binary(
        "vmul", opcode=0x3052, expr="lhs * rhs", doc="Lane-wise product; integers wrap.", notes=(WRAPS,),
        **everywhere("f32 f16 bf16 i16 u16 i32 u32"),
    ),
    _binary(
        "vdiv", opcode=0x3053, expr="lhs / rhs", doc="Lane-wise quotient.",
        attrs=(Attr("precisionType", "div_precision", doc="high precision f32 division; f32 only"),),
        rules=(R("r.dtype == F32", when="has(precisionType)"),),
        cpu="f32 f16 i16 i32", a2a3="f32 f16", a5="f32 f16 i16 i32",
        notes=("Signed 16- and 32-bit integers, truncating toward zero, come from the newer assembler; "
               "x / 0 is undefined for them.",),
    ),
    _binary(
        "vmax", opcode=0x3054, expr="max(lhs, rhs)", doc="Lane-wise maximum.", **everywhere(B8_32),
        notes=("The signedness of the element type decides; NaN in either source gives NaN.",),
    ),
    _binary(
        "vmin", opcode=0x3055, expr="min(lhs, rhs)", doc="Lane-wise minimum.", **everywhere(B8_32),
        notes=("The signedness of the element type decides; NaN in either source gives NaN.",),
    ),
    _binary(
        "vand", opcode=0x3056, expr="lhs & rhs", doc="Bitwise and.", notes=(BITS,),
        **everywhere("ints f32 f16 bf16", FP8),
    ),
    _binary(
        "vor", opcode=0x3057, expr="lhs | rhs", doc="Bitwise or.", notes=(BITS,),
        **everywhere("ints f32 f16 bf16", FP8),
    ),
    _binary(
        "vxor", opcode=0x3058, expr="lhs ^ rhs", doc="Bitwise exclusive or.", **everywhere("ints", FP8),
        notes=("8-bit floating-point elements are taken as raw bits.",),
    ),
    _shift(
        "vshl", opcode=0x3059, expr="lhs << rhs", doc="Shift left by a count per lane.", **everywhere("ints"),
        notes=("Counts are read as unsigned; a count of at least the element width gives 0.",),
    ),
    _shift(
        "vshr", opcode=0x305A, expr="lhs >> rhs", doc="Shift right by a count per lane.", **everywhere("ints"),
        notes=("Arithmetic for signed elements (a signless iN is signed), logical for unsigned ones.",
               "Counts are read as unsigned and must be below the element width."),
    ),
    _binary(
        "vaddc", opcode=0x305B, results="r=vreg carry=mask", **_carry,
        expr="r = lhs + rhs; carry = carries(lhs, rhs)",
        doc="Lane-wise 32-bit sum with carry out.", rules=mask_of("carry", "r"),
        notes=("Carries are chained with vaddcs; a carry used as the mask of the next vaddc is a mistake.",),
    ),
    _binary(
        "vsubc", opcode=0x305C, algorithm="difference with borrow", results="r=vreg borrow=mask", **_carry,
        meaning="r[i] = mask[i] ? (lhs[i] - rhs[i]) mod 2**32 : 0; "
                "borrow[i] = mask[i] & (u(lhs[i]) >= u(rhs[i])) under semantics=hw (1 = no borrow), "
                "mask[i] & (u(lhs[i]) < u(rhs[i])) under semantics=doc (1 = borrow).",
        doc="Lane-wise 32-bit difference with borrow out.", rules=mask_of("borrow", "r"),
        notes=("A vsubc and vsubcs chain gives the same data under either polarity (switch vsubc_flag).",),
    ),
    _binary(
        "vmadd", opcode=0x305D, operands="acc=vreg lhs=vreg rhs=vreg mask=mask", expr="fma(lhs, acc, rhs)",
        doc="Fused multiply-add that scales the accumulator: lhs * acc + rhs.", notes=(EXTENSION,),
        rules=(*same_dtype("r acc"), *full_width("acc")), **everywhere("f32 f16 bf16"),
    ),
)  # fmt: skip

_VEC_SCALAR = (
    _scalar(
        "vadds", opcode=0x3068, expr="input + scalar", doc="Sum with a scalar; integers wrap.", notes=(WRAPS,),
        **everywhere(B8_32),
    ),
    _scalar(
        "vsubs", opcode=0x3069, expr="input - scalar", doc="Difference with a scalar; integers wrap.",
        notes=(WRAPS, "Not in the newest assembler, which adds the negated scalar."), **everywhere(B8_32),
    ),
    _scalar(
        "vmuls", opcode=0x306A, expr="input * scalar", doc="Product with a scalar; integers wrap.", notes=(WRAPS,),
        **everywhere("f32 f16 bf16 i16 u16 i32 u32"),
    ),
    _scalar(
        "vmaxs", opcode=0x306B, expr="max(input, scalar)", doc="Maximum with a scalar.", **everywhere(B8_32),
    ),
    _scalar(
        "vmins", opcode=0x306C, expr="min(input, scalar)", doc="Minimum with a scalar.", **everywhere(B8_32),
    ),
    _scalar(
        "vands", opcode=0x306D, expr="input & scalar", doc="Bitwise and with a scalar.", **everywhere("ints32"),
    ),
    _scalar(
        "vors", opcode=0x306E, expr="input | scalar", doc="Bitwise or with a scalar.", **everywhere("ints32"),
    ),
    _scalar(
        "vxors", opcode=0x306F, expr="input ^ scalar", doc="Bitwise exclusive or with a scalar.",
        **everywhere("ints32"),
    ),
    _scalar_shift(
        "vshls", opcode=0x3070, expr="input << scalar", doc="Shift left by one count for all lanes.",
        **everywhere("ints32"),
    ),
    _scalar_shift(
        "vshrs", opcode=0x3071, expr="input >> scalar", doc="Shift right by one count for all lanes.",
        notes=("Arithmetic for signed elements (a signless iN is signed), logical for unsigned ones.",),
        **everywhere("ints32"),
    ),
    _scalar(
        "vlrelu", opcode=0x3072, expr="where(input >= 0, input, scalar * input)", **everywhere("f32 f16"),
        doc="Leaky ReLU with one slope for all lanes.",
    ),
    _binary(
        "vaddcs", opcode=0x3073, family="vec-scalar", results="r=vreg carry=mask",
        operands="lhs=vreg rhs=vreg carry_in=mask mask=mask",
        doc="Lane-wise 32-bit sum with carry in and out.",
        expr="r = lhs + rhs + carry_in; carry = carries(lhs, rhs) or carries(lhs + rhs, carry_in)",
        rules=mask_of("carry_in carry", "r"), **_carry,
        notes=("Listed with the scalar forms although it takes no scalar; the carry stays in its lane.",),
    ),
    _binary(
        "vsubcs", opcode=0x3074, algorithm="difference with borrow",
        family="vec-scalar", results="r=vreg borrow=mask",
        operands="lhs=vreg rhs=vreg borrow_in=mask mask=mask",
        doc="Lane-wise 32-bit difference with borrow in and out.",
        meaning="Flags have the polarity of vsubc; let b = !borrow_in[i] under semantics=hw, borrow_in[i] "
                "under semantics=doc. t = zext(rhs[i]) + b; r[i] = mask[i] ? (lhs[i] - t) mod 2**32 : 0; "
                "borrow[i] = mask[i] & (zext(lhs[i]) >= t) under hw, mask[i] & (zext(lhs[i]) < t) under doc.",
        rules=mask_of("borrow_in borrow", "r"), **_carry,
    ),
)  # fmt: skip

#: Source and result element types of vcvt.
_VCVT = (
    "f32,f16 f32,bf16 f32,i64 f32,i32 f32,i16 f16,f32 bf16,f32 bf16,f16 f16,bf16 "
    "f16,i32 f16,i16 f16,i8 f16,u8 bf16,i32 u8,f16 i8,f16 i16,f16 i16,f32 i32,f32 u32,f32 "
    "u8,u16 u8,u32 i8,i16 i8,i32 u16,u8 u16,u32 i16,u8 i16,u32 i16,i32 "
    "u32,u8 u32,u16 u32,i16 i32,u8 i32,u16 i32,i16 i32,i64 i64,f32 i64,i32"
)
#: Conversions that only A5 has: narrow floats. A pair of 4-bit floats converts to two neighboring lanes of
#: bf16.
_NARROW = (
    "f8e4m3,f32 f8e5m2,f32 hif8,f32 f32,f8e4m3 f32,f8e5m2 f32,hif8 "
    "f4e2m1,bf16 f4e1m2,bf16 bf16,f4e2m1 bf16,f4e1m2"
)
_PAIRED = "(input.dtype in (F4E2M1, F4E1M2) or r.dtype in (F4E2M1, F4E1M2))"
_TWO = f"(input.bits == 2 * r.bits or r.bits == 2 * input.bits) and not {_PAIRED}"
_FOUR = f"(input.bits == 4 * r.bits or r.bits == 4 * input.bits or {_PAIRED})"

_convert = Family("conversion", **VECTOR, effect="pure", results="r=vreg")

_CONVERSION = (
    _convert(
        "vcvt", opcode=0x3080, algorithm="convert lanes",
        operands="input=vreg mask=mask", combos=(Combos.of("input r", cpu=_VCVT, a2a3=_VCVT, a5=f"{_VCVT} {_NARROW}"),),
        attrs=(
            rounding("rnd", "R A F C Z O"),
            Attr("sat", "str", "NOSAT", choices=("NOSAT", "SAT"), doc="saturate, or keep the low bits",
                 words={"NOSAT": "DISABLE", "SAT": "ENABLE"}),
            Attr("part", "str", choices=("EVEN", "ODD", "P0", "P1", "P2", "P3"),
                 doc="which sub-lane of the wider lane is read or written"),
        ),
        rules=(
            *full_width("input r"), *mask_of("mask", "input"),
            R("has(part)", when="input.bits != r.bits", msg="expects part where the element width changes"),
            R("not has(part)", when="input.bits == r.bits",
              msg="expects part only where the element width changes"),
            R("part in ('EVEN', 'ODD')", when=f"has(part) and {_TWO}"),
            R("part in ('P0', 'P1', 'P2', 'P3')", when=f"has(part) and {_FOUR}"),
            R("rnd in ('A', 'ROUND_A')", when="r.dtype == HIF8", msg="expects hif8 to be rounded with rnd A"),
            R("rnd in ('R', 'A', 'Z', 'ROUND_R', 'ROUND_A', 'ROUND_Z')", when="r.dtype in (F8E4M3, F8E5M2)",
              msg="expects fp8 to be rounded with rnd R, A or Z"),
            R("rnd not in ('O', 'ROUND_O')", when="r.dtype in (F4E2M1, F4E1M2)",
              msg="expects fp4 to be rounded with rnd R, A, F, C or Z"),
        ),
        doc="Conversion between element types, with rounding and saturation.",
        domain="lanes named by mask and part; the others are 0",
        meaning="c(x) converts with rnd and sat. Same width: r[i] = mask[i] ? c(input[i]) : 0. "
                "Narrowing 2:1, p = 0 for EVEN and 1 for ODD: r[2i+p] = mask[i] ? c(input[i]) : 0, "
                "r[2i+1-p] = 0. Narrowing 4:1, part Pk: r[4i+k] = mask[i] ? c(input[i]) : 0, the other three "
                "of the group 0. Widening 1:2: r[i] = mask[2i+p] ? c(input[2i+p]) : 0. "
                "Widening 1:4: r[i] = mask[4i+k] ? c(input[4i+k]) : 0. "
                "Pairs of 4 bits, part Pk: r[4i+k] = mask[2i] ? (c(input[2i]), c(input[2i+1])) : 0, the other three of "
                "the group 0; of pairs, r[2i] and r[2i+1] = mask[4i+k] ? the two of input[4i+k] : 0. "
                "Float to integer rounds first, then clamps to the range (SAT; NaN gives 0) or keeps the "
                "low bits (NOSAT; +inf gives all ones, -inf and NaN give 0). f16 to i32 clamps in either "
                "case. Float narrowing clamps to the largest finite value, infinities too (SAT; NaN gives 0), "
                "or gives infinity (NOSAT); roundings towards zero, and O, stop at the largest finite value.",
        types={"attr:part": "EVEN", "quarter/attr:part": "P0", "same/attr:part": "",
               "away/attr:part": "P0", "away/attr:rnd": "A"},
        notes=(
            ZEROING,
            "The mask has the granularity of the source.",
            "An EVEN and an ODD conversion joined by vor give one full vector in interleaved order; for "
            "contiguous order load with vldsx2 DINTLV, or store one EVEN result with a PK mode of vsts.",
            "The manual's formula ignores part; ours is that of the assembler and the A5 headers.",
            "bf16 to f16 and back come from the assembler only, u32 to f32 from the manual only, i64 to f32 and "
            "to i32 from real programs only.",
            "The fp8, fp4 and hif8 conversions come from the A5 headers and PTOAS; those to fp4 always "
            "saturate, and NaN gives 0.",
            "O is rounding to odd in the strict sense: what is not exact gets the neighbour whose last bit "
            "is 1, however near the other one is. The tile conversion's ODD is nearest, ties to odd.",
            "rnd matters for float to integer, float narrowing, f16 to bf16 and integer to float; sat for "
            "float to integer except f16 to i32, float narrowing, bf16 to f16 and integer narrowing.",
        ),
    ),
    _convert(
        "vtrc", opcode=0x3081, operands="input=vreg mask=mask?", gate="mask", dtype_of="r",
        attrs=(rounding("round_mode", "R A F C Z", default=None),), **everywhere("f32 f16 bf16"),
        format=(
            "$input, $round_mode attr-dict : type($input) -> type($r)",
            "$input, $mask, $round_mode attr-dict : type($input), type($mask) -> type($r)",
            "$input [, $mask] attr-dict : type($input) [, type($mask)] -> type($r)",
        ),
        rules=(*same_dtype("r input"), *full_width("input r"), *mask_of("mask", "r")),
        doc="Rounding of floating-point elements to integral values.",
        domain="lanes on in mask, all without one; the others are 0",
        expr="rounded(round_mode, input)",
        types={"attr:round_mode": "R", "masked/mask": "!pto.mask<b{W}>"},
        notes=(ZEROING, "Rounding to odd is not a mode of this row."),
    ),
    _convert(
        "vci", opcode=0x3082, algorithm="consecutive lanes",
        operands="index=scalar", dtype_of="r", **everywhere("i32 i16 i8 f32 f16"),
        attrs=(Attr("order", "str", "ASC", choices=("ASC", "DESC", "INC_ORDER", "DEC_ORDER"),
                    words={"ASC": "INC_ORDER", "DESC": "DEC_ORDER"},
                    doc="direction; INC_ORDER and DEC_ORDER are the hardware's words for the two"),),
        rules=(scalar_of("index", "r"), *full_width("r")), domain="all lanes",
        doc="Consecutive values that start at a scalar.",
        meaning="ASC: r[i] = index + i; DESC: r[i] = index - i.", notes=("No mask.",),
    ),
    _convert(
        "vbitcast", opcode=0x3083, algorithm="lane bits",
        operands="input=vreg", dtype_of="input r", **everywhere("any", FP8),
        rules=full_width("input r"), doc="The same 256 bytes with another element type.", domain="all lanes",
        meaning="Byte k of r is byte k of input; lanes are little endian.", notes=("No mask.",),
    ),
)  # fmt: skip

_CMP = Attr(
    "cmp_mode", "str", required=True, choices=("eq", "ne", "lt", "le", "gt", "ge"), doc="comparison",
)  # fmt: skip
_COMPARES = "The signedness of the element type decides; with a NaN only ne is true."

_select = Family("compare-select", **VECTOR, effect="pure", results="r=vreg")
_compare = _select.but(
    attrs=(_CMP,), results="m=mask", gate="seed", domain="lanes on in seed; the others are 0", **everywhere(B8_32),
    types={"attr:cmp_mode": "lt"},
)  # fmt: skip
_permute = _select.but(
    isas="a5", operands="src=vreg idx=vreg", dtype_of="r", a5=B8_32, domain="all lanes",
    rules=(
        *same_dtype("r src"), *full_width("src idx r"), R("idx.bits == src.bits"),
        R(f"idx.dtype in {INTS}", msg="expects idx to hold integer lane indices: a select with an implicit "
                                      "predicate has no defined meaning"),
    ),
    meaning="r[i] = src[u(idx[i]) mod N].", types={"idx": "!pto.vreg<{N}x{I}>"},
    notes=("The manual calls it a reversed select with an implicit predicate; headers and assembler use it "
           "as a lane permutation, and so do we.",),
)  # fmt: skip

_COMPARE_SELECT = (
    _compare(
        "vcmp", opcode=0x3088, operands="src0=vreg src1=vreg seed=mask", dtype_of="src0",
        format=tuple(
            f"$src0, $src1, $seed{mode} attr-dict : type($src0), type($src1), type($seed) -> type($m)"
            for mode in (", $cmp_mode", "")
        ),
        rules=(*same_dtype("src0 src1"), *full_width("src0 src1"), *mask_of("seed m", "src0")),
        doc="Lane-wise comparison of two vectors into a mask.", expr="compare(cmp_mode, src0, src1)",
        notes=(_COMPARES,),
    ),
    _compare(
        "vcmps", opcode=0x3089, operands="src=vreg scalar=scalar seed=mask", dtype_of="src",
        format=tuple(
            f"$src, $scalar, $seed{mode} attr-dict : type($src), type($scalar), type($seed) -> type($m)"
            for mode in (", $cmp_mode", "")
        ),
        rules=(scalar_of("scalar", "src"), *full_width("src"), *mask_of("seed m", "src")),
        doc="Comparison of every lane with a scalar into a mask.", expr="compare(cmp_mode, src, scalar)",
        notes=(_COMPARES,),
    ),
    _select(
        "vsel", opcode=0x308A, operands="src0=vreg src1=vreg mask=mask", dtype_of="r", **everywhere(B8_32),
        rules=(*same_dtype("r src0 src1"), *full_width("src0 src1 r"), *mask_of("mask", "r")),
        doc="Choice between two vectors lane by lane.", expr="where(mask, src0, src1)", domain="all lanes",
        notes=("The one masked row whose lanes are never zeroed: it expresses merging.",),
    ),
    _permute("vselr", opcode=0x308B, algorithm="permutation", doc="Lane permutation by an index vector."),
    _permute(
        "vselrv2", opcode=0x308C, algorithm="permutation",
        doc="Lane permutation by an index vector, second encoding.",
        notes=("Same result as vselr.",),
    ),
)  # fmt: skip

_IGNORES = "Lanes off in the mask take no part."
_reduce = Family(
    "reduction", **VECTOR, effect="pure", gate="mask", operands="input=vreg mask=mask", results="r=vreg",
    rules=(*full_width("input r"), *mask_of("mask", "input")), notes=(_IGNORES,),
)  # fmt: skip
_SUMS = "f32,f32 f16,f16 i32,i32 u32,u32 i16,i16 u16,u16 i16,i32 u16,u32"
_WIDENS = "16-bit integers give a 32-bit sum where the result type is 32-bit (the A5 form), else wrap."
_TREE = (
    "Order of a float sum: lanes 2k and 2k+1 are added, then neighbours of these sums, and so on until one "
    "is left; every sum is rounded to the element type (nearest even, overflow to infinity), and lanes that "
    "are off stand in the tree as +0."
)
_ORDER = "-0 is below +0; a NaN among the active lanes is the result."
_EXTREMA = "f32 f16 i16 u16 i32 u32"

_extreme = _reduce.but(
    dtype_of="r", rules=(*same_dtype("r input"), *full_width("input r"), *mask_of("mask", "r")),
    domain="lanes 0 and 1; the others are 0", **everywhere(_EXTREMA),
    notes=(_IGNORES, "Without an active lane the result is the identity of the operation, not zero.",
           f"{_ORDER} The index is that of the first lane with r[0].",
           "The assembler and the headers define value in lane 0 and index in lane 1."),
)  # fmt: skip
_LAYOUT = (
    "Groups g = 0..7 are the 32-byte blocks, K = 32 / sizeof(T) lanes each. Result g lies in lane g under "
    "semantics=hw, in lane g*K under semantics=doc (switch vcg_layout); all other lanes are 0."
)
_group = _reduce.but(
    domain="one lane per group; the others are 0", dtype_of="r", **everywhere(_EXTREMA),
    rules=(*same_dtype("r input"), *full_width("input r"), *mask_of("mask", "r")),
)  # fmt: skip
_bit = _reduce.but(
    operands="input=vreg mask=mask", results="r=vreg p=mask", dtype_of="r",
    domain="lane 0 of r, the others are 0; all lanes of p",
    rules=(*same_dtype("r input"), *full_width("input r"), *mask_of("mask p", "r")),
    notes=(_IGNORES, _ORDER, "No lane of p is on where r[0] is NaN.",
           "Without an active lane r[0] is the identity of the operation.", EXTENSION),
    **everywhere("f32 f16 i8 u8 i16 u16 i32 u32"),
)  # fmt: skip
_histogram = _reduce.but(
    operands="acc=vreg source=vreg mask=mask bin=i32", combos=pairs("acc source r", "u16,u8,u16"),
    rules=(*full_width("acc source r"), R("mask.gran == 'b8'"), R("bin.const in (0, 1)")), domain="all lanes",
    types={"acc": "!pto.vreg<128xui16>", "source": "!pto.vreg<256xui8>", "r": "!pto.vreg<128xui16>",
           "mask": "!pto.mask<b8>", "bin": "i32"},
    notes=(_IGNORES, EXTENSION, "bin 0 covers the values 0..127, 1 covers 128..255.",
           "Counters wrap modulo 2**16."),
)  # fmt: skip

_REDUCTION = (
    _reduce(
        "vcadd", opcode=0x3090, combos=pairs("input r", f"{_SUMS} i64,i64"), doc="Sum of all active lanes.",
        domain="lane 0; the others are 0",
        expr="acc + input", over="fold lanes", start="0",
        notes=("A float sum need not equal the left-to-right one.", _WIDENS, _TREE, "There is no 8-bit form."),
    ),
    _extreme(
        "vcmax", opcode=0x3091, algorithm="extreme lane: largest",
        doc="Maximum of all active lanes, and where it is.",
        meaning="r[0] = maximum over the active lanes; r[1] = lane of the first maximum as an unsigned "
                "integer bit pattern of the element width; r[2..] = 0. No active lane: r[0] = -inf or the "
                "smallest integer, r[1] = 0.",
    ),
    _extreme(
        "vcmin", opcode=0x3092, algorithm="extreme lane: smallest",
        doc="Minimum of all active lanes, and where it is.",
        meaning="r[0] = minimum over the active lanes; r[1] = lane of the first minimum as an unsigned "
                "integer bit pattern of the element width; r[2..] = 0. No active lane: r[0] = +inf or the "
                "largest integer, r[1] = 0.",
    ),
    _reduce(
        "vcgadd", opcode=0x3093, combos=pairs("input r", _SUMS), doc="Sum of each 32-byte group.",
        domain="one lane per group; the others are 0",
        notes=(_LAYOUT, _WIDENS, _TREE, "Where r is wider than input, K of the result lanes counts lanes of r."),
        expr="acc + input", over="fold groups", start="0",
    ),
    _group(
        "vcgmax", opcode=0x3094, doc="Maximum of each 32-byte group.",
        expr="max(acc, input)", over="fold groups", start="least", notes=(_LAYOUT, _ORDER, "No index is given."),
    ),
    _group(
        "vcgmin", opcode=0x3095, doc="Minimum of each 32-byte group.",
        expr="min(acc, input)", over="fold groups", start="greatest", notes=(_LAYOUT, _ORDER, "No index is given."),
    ),
    _group(
        "vcpadd", opcode=0x3096, algorithm="lane pair sums",
        doc="Sums of neighbouring lane pairs.", domain="all lanes",
        **everywhere("f32 f16"),
        meaning="semantics=hw: r[i] = x[2i] + x[2i+1] for i < N/2 where x is input with inactive lanes 0; "
                "r[N/2..] = 0. semantics=doc: inclusive prefix sum; run = 0, for each i: if mask[i], "
                "run += input[i]; r[i] = run (inactive lanes repeat the running value).",
        notes=("The headers of both generations use the pair form and keep N/2 lanes (switch vcpadd_mode).",),
    ),
    _bit(
        "vcbmax", opcode=0x3097, algorithm="extreme lane and mask: largest",
        doc="Maximum of all active lanes, and a mask of where it occurs.",
        meaning="r[0] = maximum over the active lanes, r[1..] = 0; p[i] = mask[i] & (input[i] == r[0]), "
                "where +0 and -0 are equal.",
    ),
    _bit(
        "vcbmin", opcode=0x3098, algorithm="extreme lane and mask: smallest",
        doc="Minimum of all active lanes, and a mask of where it occurs.",
        meaning="r[0] = minimum over the active lanes, r[1..] = 0; p[i] = mask[i] & (input[i] == r[0]), "
                "where +0 and -0 are equal.",
    ),
    _histogram(
        "chistv2", opcode=0x3099, algorithm="lane histogram: up to each",
        doc="Cumulative histogram of bytes added to 128 counters.",
        meaning="r[b] = acc[b] + number of active lanes i with u(source[i]) <= b + 128 * bin, b < 128.",
    ),
    _histogram(
        "dhistv2", opcode=0x309A, algorithm="lane histogram: of each",
        doc="Histogram of bytes added to 128 counters.",
        meaning="r[b] = acc[b] + number of active lanes i with u(source[i]) == b + 128 * bin, b < 128.",
    ),
)  # fmt: skip

ROWS = (*_UNARY, *_BINARY, *_VEC_SCALAR, *_CONVERSION, *_COMPARE_SELECT, *_REDUCTION)
