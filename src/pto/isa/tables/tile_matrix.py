"""Matrix and matrix-vector products of the cube unit: Left x Right into Acc, plain, accumulating, biased, MX.

M is the valid rows of the left operand, K its valid columns, N the valid columns of the right operand.
The plain, `.acc` and `.bias` forms of one product share a bytecode opcode and differ in its variant byte.
"""

from __future__ import annotations

from itertools import product

from ..row import Attr, Combos, Family
from ..rules import R, Rule

NPU = "a2a3 a5"
_MX = "cpu a5"

_phase = Attr(
    "phase", "acc_phase", "unspecified", inert=True, alias="accPhase",
    doc="unit-flag phase (C++ AccPhase); no effect on the result",
)  # fmt: skip

# --- operand types ----------------------------------------------------------------------------------------

_FLOATS = "f32,f16,f16 f32,bf16,bf16 f32,f32,f32"
_INTS = "i32,i8,i8 i32,u8,u8"
_FP8_PAIRS = " ".join(f"f32,{a},{b}" for a, b in product(("f8e4m3", "f8e5m2"), repeat=2))
_FP4_PAIRS = " ".join(f"f32,{a},{b}" for a, b in product(("f4e2m1", "f4e1m2"), repeat=2))
_A2A3 = f"{_FLOATS} {_INTS}"
_A5 = f"{_A2A3} {_FP8_PAIRS} f32,hif8,hif8"
_MX_TYPES = f"{_FP8_PAIRS} {_FP4_PAIRS}"


def _types(operands: str, code: str, **by_isa: str) -> Combos:
    """Legal dtypes of `dst left right`; a fourth operand (bias or accumulator input) has the dtype of dst."""
    if len(operands.split()) == 4:
        by_isa = {
            isa: " ".join(f"{three},{three.partition(',')[0]}" for three in text.split())
            for isa, text in by_isa.items()
        }
    return Combos.of(operands, code=code, **by_isa)


def _plain_types(operands: str) -> Combos:
    return _types(operands, "SA-0185", cpu=_A5, a2a3=_A2A3, a5=_A5)


def _mx_types(operands: str) -> Combos:
    return _types(operands, "SA-0245", cpu=_MX_TYPES, a5=_MX_TYPES)


# --- rules ------------------------------------------------------------------------------------------------


def _roles(a: str, b: str) -> tuple[Rule, ...]:
    return (
        R(f"{a}.loc == LEFT", code="SA-0225"),
        R(f"{b}.loc == RIGHT", code="SA-0227"),
        R("dst.loc == ACC", code="SA-0226"),
    )


def _physical(a: str, b: str, code: str, on: str) -> tuple[Rule, ...]:
    """Return rules on physical sizes, which older headers had; current headers only check valid regions."""
    return (
        R(f"{a}.rows == dst.rows", code=code, on=on, text=True),
        R(f"{a}.cols == {b}.rows", code=code, on=on, text=True),
        R(f"{b}.cols == dst.cols", code=code, on=on, text=True),
    )


def _valid(a: str, b: str) -> tuple[Rule, ...]:
    """Return rules on valid regions. The types must agree. At run time only the operands determine the size
    of a product, and the left operand its depth: a larger dst keeps the rest, because compilers pass one
    accumulator on."""
    return (
        R(f"{a}.v_row == dst.v_row", written=True, text=True),
        R(f"{a}.v_col == {b}.v_row", written=True, text=True),
        R(f"{b}.v_col == dst.v_col", written=True, text=True),
        R(f"1 <= {a}.v_row <= 4095", code="PA-0006", on=NPU),
        R(f"1 <= {a}.v_col <= 4095", code="PA-0005", on=NPU),
        R(f"1 <= {b}.v_col <= 4095", code="PA-0007", on=NPU),
    )  # fmt: skip


def _layouts(a: str, b: str, code: str = "SA-0080") -> tuple[Rule, ...]:
    """Return the layout rules. The cube reads and writes one layout each; only the layout of the left operand
    depends on the target."""
    return (
        R(f"{a}.layout == NZ", code=code, on="a5"),
        R(f"{b}.layout == ZN", code=code),
        R("dst.layout == NZ", code=code),
    )


def _matmul(a: str, b: str) -> tuple[Rule, ...]:
    return *_roles(a, b), *_physical(a, b, "SA-0060", NPU), *_valid(a, b), *_layouts(a, b)


def _gemv(a: str, b: str) -> tuple[Rule, ...]:
    """Return the rules of `_matmul` with one row, except in the C++ simulator. On a2a3, the physical sizes
    may differ (a 16-row dst is usual)."""
    return (
        *_roles(a, b), R(f"{a}.v_row == 1", on=NPU), R("dst.v_row == 1", on=NPU), *_valid(a, b),
        *_physical(a, b, "SA-0060", "a5"), *_layouts(a, b),
    )  # fmt: skip


def _acc(c: str) -> tuple[Rule, ...]:
    return R(f"{c}.loc == ACC"), R(f"valid_le(dst, {c})")


def _bias(single_row: str, fractal: str = "SA-0078") -> tuple[Rule, ...]:
    return (
        R("bias.loc == BIAS"),
        R("bias.rows == 1", code=single_row),
        R("bias.blayout == ROW", code=fractal, on="a5"),
        R("bias.v_col >= dst.v_col"),
    )


def _mx(gemv: bool = False) -> tuple[Rule, ...]:
    """Return the rules of the MX forms. There are two kinds of scale tiles: those of the ISA (scale_left /
    scale_right, one e8m0 per 32 elements of K), with all rules, and those of PTOAS (scaling)."""
    isa, asm = "a_scale.loc == SCALE_LEFT", "a_scale.loc == SCALING"
    return (
        *_roles("a", "b"), *((R("a.v_row == 1", on=NPU), R("dst.v_row == 1", on=NPU)) if gemv else ()), *_valid("a", "b"),
        *_physical("a", "b", "SA-0242", "a5"), *_layouts("a", "b", "SA-0246"),
        R("a_scale.loc in (SCALE_LEFT, SCALING)", on="a5"),
        R("b_scale.loc in (SCALE_RIGHT, SCALING)", on="a5"),
        R("a_scale.v_row == a.v_row"), R("a_scale.v_col * 32 >= a.v_col"),
        R("b_scale.v_row * 32 >= b.v_row"), R("b_scale.v_col == b.v_col"),
        R("a.cols % 64 == 0", code="SA-0243", on="a5", when=isa),
        R("a_scale.dtype == F8E8M0", when=isa),
        R("b_scale.dtype == F8E8M0", when="b_scale.loc == SCALE_RIGHT"),
        R("a_scale.layout == ZZ", on="a5", when=isa),
        R("b_scale.layout == NN", on="a5", when="b_scale.loc == SCALE_RIGHT"),
        R("dst.size <= 262144", on="a5"),
        *((R("a_scale.shape == a.shape", on="a5", when=asm),
           R("b_scale.shape == b.shape", on="a5", when="b_scale.loc == SCALING")) if gemv else ()),
    )  # fmt: skip


# --- witness types ----------------------------------------------------------------------------------------


_BOXED = "blayout=col_major, slayout=row_major"
_ACC = f"!pto.tile_buf<acc, 16x32x{{T}}, VALID32{_BOXED}, fractal=1024>"
_LEFT_NZ = f"!pto.tile_buf<left, 16x64x{{T}}, VALID64{_BOXED}>"
_RIGHT = "!pto.tile_buf<right, 64x32x{T}, slayout=col_major>"
_SCALE_LEFT = "!pto.tile_buf<scale_left, 16x2xf8E8M0FNU, VALID2slayout=row_major, fractal=32>"
_SCALE_RIGHT = "!pto.tile_buf<scale_right, 2x32xf8E8M0FNU, blayout=col_major, slayout=col_major, fractal=32>"
_WITNESS = {
    "a": _LEFT_NZ, "lhs": _LEFT_NZ, "b": _RIGHT, "rhs": _RIGHT, "dst": _ACC, "acc_in": _ACC, "c_in": _ACC,
    "bias": "!pto.tile_buf<bias, 1x32x{T}>", "a_scale": _SCALE_LEFT, "b_scale": _SCALE_RIGHT,
}  # fmt: skip


def _witness(operands: str, gemv: bool = False) -> dict[str, str]:
    """A 16x64 by 64x32 product; one valid row for the vector forms, a ZZ Left tile on a2a3."""
    valid = {f"VALID{k}": f"valid=1x{k}, " if gemv else "" for k in (64, 32, 2)}
    types = {n: _WITNESS[n] for n in operands.split()}
    for name, text in valid.items():
        types = {n: t.replace(name, text) for n, t in types.items()}
    left = {f"{n}@a2a3": t.replace("col_major", "row_major") for n, t in types.items() if n in ("a", "lhs")}
    return {**types, **left}


# --- families ---------------------------------------------------------------------------------------------


def _phased(call: str) -> str:
    """A spelling and the same with the unit-flag phase as a template argument."""
    name, _, rest = call.partition("(")
    return f"{call} | {name}<AccPhase::$phase.C>({rest}"


matrix = Family(
    "matrix-and-matrix-vector", "tile", pipe="M", core="cube", in_place="none", attrs=_phase,
    writes="valid", domain="M x N of dst",
)  # fmt: skip

_DOT = "sum over 0 <= k < K of a[i, k] * b[k, j]"
_NUMERICS = (
    "k ascends from 0; float results use acc = fma(f32(a), f32(b), acc) from 0, integers accumulate in i32"
    " and wrap"
)
_HF32 = "f32 operands use reduced precision only under tsethf32mode / tsettf32mode, on hardware"
_LEFT = "a Left tile is ZZ on a2a3 and NZ on a5; a2a3 does not check operand layouts"
_AFTER = "the full dot product is formed from 0 and the addend joins it once, after it"
_ALIAS = "acc_in and dst are normally one buffer; hardware ignores acc_in and accumulates in dst"

plain = matrix.but(operands="lhs rhs dst:out", combos=_plain_types("dst lhs rhs"), notes=(_NUMERICS,))
acc = matrix.but(
    also="ptoas", operands="acc_in lhs rhs dst:out", combos=_plain_types("dst lhs rhs acc_in"), in_place="acc_in",
    notes=(_NUMERICS, _AFTER, _ALIAS),
)  # fmt: skip
bias = matrix.but(
    also="ptoas", operands="a b bias dst:out", combos=_plain_types("dst a b bias"), notes=(_NUMERICS, _AFTER),
)  # fmt: skip

_MX_DOT = "sum over 0 <= k < K of a[i, k] * b[k, j] * a_scale[i, k // 32] * b_scale[k // 32, j]"
_MX_NOTES = (
    "block size 32 along K; a scale is e8m0 = 2^(e - 127), 0xFF is NaN",
    "per step the four factors are multiplied in f64 and acc = f32(f64(acc) + product), k ascending from 0",
    "a5 only on hardware; there the scale tiles sit at an address derived from the data tile"
    " (tget_scale_addr)",
    "PTOAS has no scale_left/scale_right: its scale tiles have loc=scaling, any dtype and"
    " the shape of their operand, of which the first K/32 columns (rows) count",
)
mx = matrix.but(
    also="ptoas",
    isas=_MX,
    operands="a a_scale b b_scale dst:out",
    combos=_mx_types("dst a b"),
    notes=_MX_NOTES,
)
mx_acc = mx.but(
    operands="c_in a a_scale b b_scale dst:out", combos=_mx_types("dst a b c_in"), in_place="c_in",
    notes=(*_MX_NOTES, _AFTER),
)  # fmt: skip
mx_bias = mx.but(
    operands="a a_scale b b_scale bias dst:out", combos=_mx_types("dst a b bias"),
    notes=(*_MX_NOTES, _AFTER),
)  # fmt: skip

_MX_ACC = (*_acc("c_in"), R("valid_eq(c_in, dst)", on="a5"))
_MX_BIAS = _bias("SA-0247")
_GEMV_MX_BIAS = (R("bias.cols == dst.cols", on="a5"), R("valid_eq(bias, dst)", on="a5"))

_HIF4 = (
    *_roles("a", "b"), *_valid("a", "b"),
    R("a_scale.loc == SCALE_LEFT"), R("b_scale.loc == SCALE_RIGHT"),
    R("a.cols % 64 == 0", code="SA-0243"), R("dst.size <= 262144"),
    R("a_scale.v_row == a.v_row"), R("a_scale.v_col * 16 >= a.v_col"),
    R("b_scale.v_row * 16 >= b.v_row"), R("b_scale.v_col == b.v_col"),
    R("b.layout == ZN", code="SA-0246"), R("dst.layout == NZ", code="SA-0246"),
)  # fmt: skip

ROWS = (
    plain(
        "tmatmul", opcode=0x1032, algorithm="matrix product",
        variant=0, cpp=_phased("TMATMUL($dst, $lhs, $rhs)"),
        doc="Matrix product of a Left and a Right tile; overwrites the accumulator.",
        meaning=f"dst[i, j] = {_DOT}, with a = lhs and b = rhs; the previous dst is ignored",
        rules=_matmul("lhs", "rhs"), types=_witness("lhs rhs dst"), notes=(_LEFT, _HF32),
    ),
    acc(
        "tmatmul.acc", opcode=0x1032, algorithm="matrix product", variant=1, aliases="tmatmul_acc",
        by_hand="the accumulator may be left out in C++",
        accumulates="acc_in",
        cpp=_phased("TMATMUL_ACC($dst, $acc_in, $lhs, $rhs)"),
        doc="Matrix product added to an accumulator.",
        meaning=f"dst[i, j] = acc_in[i, j] + {_DOT}, with a = lhs and b = rhs",
        rules=(*_matmul("lhs", "rhs"), *_acc("acc_in")), types=_witness("acc_in lhs rhs dst"),
        notes=(_LEFT, "the three-operand C++ form is acc_in == dst"),
    ),
    bias(
        "tmatmul.bias", opcode=0x1032, algorithm="matrix product", variant=2, aliases="tmatmul_bias",
        cpp=_phased("TMATMUL_BIAS($dst, $a, $b, $bias)"), doc="Matrix product plus a bias row.",
        meaning=f"dst[i, j] = {_DOT} + bias[0, j]",
        rules=(*_matmul("a", "b"), *_bias("SA-0219")), types=_witness("a b bias dst"), notes=_LEFT,
    ),
    mx(
        "tmatmul.mx", opcode=0x1033, algorithm="matrix product", variant=0, aliases="tmatmul_mx",
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TMATMUL_MX($dst, $a, $a_scale, $b, $b_scale)"),
        doc="Matrix product of block-scaled (MX) operands.", meaning=f"dst[i, j] = {_MX_DOT}",
        rules=_mx(), types=_witness("a a_scale b b_scale dst"),
    ),
    mx_acc(
        "tmatmul.mx.acc", opcode=0x1033, algorithm="matrix product", variant=1, accumulates="c_in",
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TMATMUL_MX($dst, $c_in, $a, $a_scale, $b, $b_scale)"),
        doc="Matrix product of block-scaled (MX) operands added to an accumulator.",
        meaning=f"dst[i, j] = c_in[i, j] + {_MX_DOT}",
        rules=(*_mx(), *_MX_ACC), types=_witness("c_in a a_scale b b_scale dst"),
    ),
    mx_bias(
        "tmatmul.mx.bias", opcode=0x1033, algorithm="matrix product", variant=2,
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TMATMUL_MX($dst, $a, $a_scale, $b, $b_scale, $bias)"),
        doc="Matrix product of block-scaled (MX) operands plus a bias row.",
        meaning=f"dst[i, j] = {_MX_DOT} + bias[0, j]",
        rules=(*_mx(), *_MX_BIAS), types=_witness("a a_scale b b_scale bias dst"),
    ),
    matrix(
        "tmatmul_mx_hif4", opcode=0x1190, algorithm="matrix product: hif4",
        by_hand="an overload of TMATMUL_MX, by element types",
        isas="cpu", operands="a a_scale b b_scale dst:out",
        cpp=_phased("TMATMUL_MX($dst, $a, $a_scale, $b, $b_scale)"),
        doc="Matrix product of HiFloat4 operands with their three-level scales.",
        meaning="dst[i, j] = sum over 0 <= k < K of A(i, k) * B(k, j), accumulated in f32; per 64 elements of"
        " K (group g = k // 64, t = k % 64) A(i, k) = a[i, k] * e6m2(Ea) * 2^Eb(t // 8) * 2^Ec(t // 4),"
        " where a_scale[i, 4g .. 4g+3] = Ea, Eb bits 0..7, Ec bits 0..7, Ec bits 8..15; B likewise with"
        " b_scale[4g .. 4g+3, j]",
        combos=Combos.of("dst a a_scale b b_scale", cpu="f32,f4e1m2,u8,f4e1m2,u8"),
        rules=_HIF4,
        types={
            **_witness("a b dst"),
            "a_scale": "!pto.tile_buf<scale_left, 16x4x{T}, slayout=row_major, fractal=32>",
            "b_scale": _SCALE_RIGHT.replace("2x32xf8E8M0FNU", "4x32x{T}"),
        },
        notes=(
            "an A6 (dav-920r1) instruction: a2a3 and a5 reject it; C++ reaches it as TMATMUL_MX on"
            " hifloat4x2_t tiles",
            "hif4 codes are f4e1m2 codes; the scales are bytes, GM layouts HIF4_A_ZZ and HIF4_B_NN: per 16"
            " rows and 64 elements of K a 64-byte cell of 16 x [Ea, Eb] and then 16 x [Ec low, Ec high]",
            "the scale chain follows tquant_hif4; the exact e6m2 rounding is the hardware's",
            "dst beyond 256 KB: tile over N, floor(L0C / (4 M)) rounded down to 64 columns",
        ),
    ),
    plain(
        "tgemv", opcode=0x102A, algorithm="matrix product", variant=0, cpp=_phased("TGEMV($dst, $lhs, $rhs)"),
        doc="Row vector times matrix; overwrites the accumulator.",
        meaning=f"dst[0, j] = {_DOT}, with i = 0, a = lhs and b = rhs",
        rules=_gemv("lhs", "rhs"), types=_witness("lhs rhs dst", gemv=True),
    ),
    acc(
        "tgemv.acc", opcode=0x102A, algorithm="matrix product", variant=1, aliases="tgemv_acc",
        by_hand="the accumulator may be left out in C++",
        accumulates="acc_in",
        cpp=_phased("TGEMV_ACC($dst, $acc_in, $lhs, $rhs)"), doc="Row vector times matrix, added to an accumulator.",
        meaning=f"dst[0, j] = acc_in[0, j] + {_DOT}, with i = 0, a = lhs and b = rhs",
        rules=(*_gemv("lhs", "rhs"), *_acc("acc_in")),
        types=_witness("acc_in lhs rhs dst", gemv=True),
    ),
    bias(
        "tgemv.bias", opcode=0x102A, algorithm="matrix product", variant=2, aliases="tgemv_bias",
        cpp=_phased("TGEMV_BIAS($dst, $a, $b, $bias)"), doc="Row vector times matrix, plus a bias row.",
        meaning=f"dst[0, j] = {_DOT} + bias[0, j], with i = 0",
        rules=(*_gemv("a", "b"), *_bias("SA-0219")), types=_witness("a b bias dst", gemv=True),
    ),
    mx(
        "tgemv.mx", opcode=0x102A, algorithm="matrix product", variant=3, aliases="tgemv_mx",
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TGEMV_MX($dst, $a, $a_scale, $b, $b_scale)"),
        doc="Row vector times matrix on block-scaled (MX) operands.",
        meaning=f"dst[0, j] = {_MX_DOT}, with i = 0",
        rules=_mx(gemv=True), types=_witness("a a_scale b b_scale dst", gemv=True),
    ),
    mx_acc(
        "tgemv.mx.acc", opcode=0x102A, algorithm="matrix product", variant=4, accumulates="c_in",
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TGEMV_MX($dst, $c_in, $a, $a_scale, $b, $b_scale)"),
        doc="Row vector times matrix on block-scaled (MX) operands, added to an accumulator.",
        meaning=f"dst[0, j] = c_in[0, j] + {_MX_DOT}, with i = 0",
        rules=(*_mx(gemv=True), *_MX_ACC), types=_witness("c_in a a_scale b b_scale dst", gemv=True),
    ),
    mx_bias(
        "tgemv.mx.bias", opcode=0x102A, algorithm="matrix product", variant=5,
        by_hand="overloads are told apart by where their second operand is",
        cpp=_phased("TGEMV_MX($dst, $a, $a_scale, $b, $b_scale, $bias)"),
        doc="Row vector times matrix on block-scaled (MX) operands, plus a bias row.",
        meaning=f"dst[0, j] = {_MX_DOT} + bias[0, j], with i = 0",
        rules=(*_mx(gemv=True), *_MX_BIAS, *_GEMV_MX_BIAS),
        types=_witness("a a_scale b b_scale bias dst", gemv=True),
    ),
)  # fmt: skip
