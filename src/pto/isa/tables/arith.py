"""Scalar arithmetic shared with MLIR: the `arith` dialect, and the `math` functions of kernels.

Expressions read integers as signed; an integer result wraps to its type. In `cpp`, `$T` is the C++ type of
the first result, `$S` that of the first operand, a leading `u` makes it unsigned, `$B` is the unsigned
integer of the width of `$T`, and `$W` the integer of twice the width. `index` has 64 bits in the engines and
is int32_t in C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..row import Attr, Family, Row
from ..rules import R

_OVERFLOW = Attr(
    "overflowFlags", "str", "none", keyword=True, many=True, hint=True, choices=("none", "nsw", "nuw"),
    doc="promises that the result does not wrap; `#arith.overflow<..>` in a dictionary",
)  # fmt: skip
_FAST = Attr(
    "fastmath", "str", "none", keyword=True, many=True, hint=True,
    choices=("none", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast"),
    doc="relaxations of floating-point rules; `#arith.fastmath<..>` in a dictionary",
)  # fmt: skip

#: Predicates in the order of their integers, which the generic form and the bytecode contain.
CMPI = "eq ne slt sle sgt sge ult ule ugt uge".split()
CMPF = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()


def _predicate(values: Sequence[str]) -> Attr:
    return Attr("predicate", "str", required=True, choices=tuple(values), keyword=True, doc="the comparison")


_SAME = R("rhs.type == lhs.type")
_ONE_TYPE = "attr-dict : type($lhs)"

_shared: dict[str, Any] = dict(effect="pure", scope="any", repeatable=True)

_int2 = Family(
    "shared-arith", "scalar", **_shared, operands="lhs=int rhs=int", results="result=int",
    infer={"result": "$lhs"}, format=f"$lhs, $rhs {_ONE_TYPE}", rules=(_SAME,),
    types={"lhs": "i32", "rhs": "i32"},
)  # fmt: skip
_wrap2 = _int2.but(attrs=(_OVERFLOW,), format=f"$lhs, $rhs [overflow<$overflowFlags>] {_ONE_TYPE}")
_float2 = _int2.but(
    operands="lhs=float rhs=float", results="result=float", attrs=(_FAST,),
    format=f"$lhs, $rhs [fastmath<$fastmath>] {_ONE_TYPE}", types={"lhs": "f32", "rhs": "f32"},
)  # fmt: skip
_float1 = Family(
    "shared-arith", "scalar", **_shared, operands="operand=float", results="result=float", attrs=(_FAST,),
    infer={"result": "$operand"}, format="$operand [fastmath<$fastmath>] attr-dict : type($operand)",
    types={"operand": "f32"},
)  # fmt: skip
_cast = Family(
    "shared-arith", "scalar", **_shared, format="$src attr-dict : type($src) to type($result)",
)  # fmt: skip

_ZERO = "A zero divisor is undefined."
_SHIFT = "A count of at least the bit width is undefined."
_ONCE = "f16 and bf16 are computed in f32 and rounded once."


def _unsigned(op: str) -> str:
    return f"($T) ((u$T) $lhs {op} (u$T) $rhs)"


def _pick(condition: str) -> str:
    return f"({condition}) ? $lhs : $rhs"


def _ieee_pick(compare: str, zero: str) -> str:
    """Maximum or minimum that returns a NaN operand and orders the zeros (their sign bits combine)."""
    bits = f"ptoas_bitcast<$T>(($B) (ptoas_bitcast<$B>($lhs) {zero} ptoas_bitcast<$B>($rhs)))"
    return (
        "($lhs != $lhs) ? $lhs : ($rhs != $rhs) ? $rhs : "
        f"($lhs == $rhs) ? {bits} : ($lhs {compare} $rhs) ? $lhs : $rhs"
    )


INTEGER = (
    _wrap2("arith.addi", opcode=0x2000, expr="lhs + rhs", cpp=_unsigned("+"), doc="Integer sum; wraps."),
    _wrap2("arith.subi", opcode=0x2008, expr="lhs - rhs", cpp=_unsigned("-"),
           doc="Integer difference; wraps."),
    _wrap2("arith.muli", opcode=0x2006, expr="lhs * rhs", cpp=_unsigned("*"), doc="Integer product; wraps."),
    _int2("arith.divsi", opcode=0x2010, expr="quot(lhs, rhs)", cpp="$lhs / $rhs",
          doc="Signed quotient, rounded toward zero.",
          notes=(_ZERO, "The smallest value divided by -1 is undefined.")),
    _int2("arith.divui", opcode=0x2011, expr="unsigned(lhs) // unsigned(rhs)", cpp=_unsigned("/"), notes=_ZERO,
          doc="Unsigned quotient, rounded toward zero."),
    _int2("arith.remsi", opcode=0x2012, expr="rem(lhs, rhs)", cpp="$lhs % $rhs", notes=_ZERO,
          doc="Signed remainder; has the sign of the dividend."),
    _int2("arith.remui", opcode=0x2013, expr="unsigned(lhs) % unsigned(rhs)", cpp=_unsigned("%"), notes=_ZERO,
          doc="Unsigned remainder."),
    _int2("arith.ceildivsi", opcode=0x2001, expr="ceildiv(lhs, rhs)",
          cpp="$lhs / $rhs + ($T) ($lhs % $rhs != 0 && ($lhs < 0) == ($rhs < 0))", notes=_ZERO,
          doc="Signed quotient, rounded up."),
    _int2("arith.ceildivui", opcode=0x2014, expr="ceildiv(unsigned(lhs), unsigned(rhs))",
          cpp="($T) ((u$T) $lhs / (u$T) $rhs + (u$T) ((u$T) $lhs % (u$T) $rhs != 0))",
          doc="Unsigned quotient, rounded up.",
          notes=(_ZERO, "The reference assembler prints `a + (b - 1) / b`, which is wrong.")),
    _int2("arith.floordivsi", opcode=0x2015, expr="lhs // rhs",
          cpp="$lhs / $rhs - ($T) ($lhs % $rhs != 0 && ($lhs < 0) != ($rhs < 0))", notes=_ZERO,
          doc="Signed quotient, rounded down."),
    _int2("arith.andi", opcode=0x2016, expr="lhs & rhs", cpp=_unsigned("&"), doc="Bitwise and."),
    _int2("arith.ori", opcode=0x2017, expr="lhs | rhs", cpp=_unsigned("|"), doc="Bitwise or."),
    _int2("arith.xori", opcode=0x2018, expr="lhs ^ rhs", cpp=_unsigned("^"), doc="Bitwise exclusive or."),
    _wrap2("arith.shli", opcode=0x2019, expr="lhs << rhs", cpp=_unsigned("<<"), notes=_SHIFT,
           doc="Left shift; zeros come in."),
    _int2("arith.shrsi", opcode=0x201A, expr="lhs >> rhs", cpp="$lhs >> $rhs", notes=_SHIFT,
          doc="Arithmetic right shift; copies of the sign come in."),
    _int2("arith.shrui", opcode=0x201B, expr="unsigned(lhs) >> rhs", cpp=_unsigned(">>"), notes=_SHIFT,
          doc="Logical right shift; zeros come in."),
    _int2("arith.maxsi", opcode=0x201C, expr="max(lhs, rhs)", cpp=_pick("$lhs > $rhs"),
          doc="Signed maximum."),
    _int2("arith.minsi", opcode=0x201D, expr="min(lhs, rhs)", cpp=_pick("$lhs < $rhs"),
          doc="Signed minimum."),
    _int2("arith.maxui", opcode=0x201E, expr="max(unsigned(lhs), unsigned(rhs))", cpp=_pick("(u$T) $lhs > (u$T) $rhs"),
          doc="Unsigned maximum."),
    _int2("arith.minui", opcode=0x2005, expr="min(unsigned(lhs), unsigned(rhs))", cpp=_pick("(u$T) $lhs < (u$T) $rhs"),
          doc="Unsigned minimum."),
    _int2("arith.addui_extended", opcode=0x201F, results="sum=int overflow=i1",
          infer={"sum": "$lhs", "overflow": "i1"},
          types={"lhs": "i32", "rhs": "i32", "sum": "i32", "overflow": "i1"},
          format="$lhs, $rhs attr-dict : type($sum), type($overflow)", rules=R("sum.type == lhs.type"),
          expr="sum = lhs + rhs; overflow = carries(lhs, rhs)",
          cpp="$sum = ($T) ((u$T) $lhs + (u$T) $rhs); $overflow = (u$T) $sum < (u$T) $lhs",
          doc="Unsigned sum with its carry as an i1."),
    _int2("arith.mulsi_extended", opcode=0x2020, results="low=int high=int",
          infer={"low": "$lhs", "high": "$lhs"}, expr="low = lhs * rhs; high = mul_high(lhs, rhs)",
          cpp="$low = ($T) ((u$T) $lhs * (u$T) $rhs); $high = ($T) ((($W) $lhs * ($W) $rhs) >> (8 * sizeof($T)))",
          doc="Signed product of double width, as its low and high halves."),
    _int2("arith.mului_extended", opcode=0x2021, results="low=int high=int",
          infer={"low": "$lhs", "high": "$lhs"}, expr="low = lhs * rhs; high = mul_high(unsigned(lhs), unsigned(rhs))",
          cpp="$low = ($T) ((u$T) $lhs * (u$T) $rhs); "
              "$high = ($T) (((u$W) (u$T) $lhs * (u$W) (u$T) $rhs) >> (8 * sizeof($T)))",
          doc="Unsigned product of double width, as its low and high halves."),
)  # fmt: skip

FLOAT = (
    _float2("arith.addf", opcode=0x2022, expr="lhs + rhs", cpp="$lhs + $rhs", doc="Floating-point sum.",
            notes="Documented, yet the reference assembler has no lowering for it."),
    _float2("arith.subf", opcode=0x2023, expr="lhs - rhs", cpp="$lhs - $rhs",
            doc="Floating-point difference."),
    _float2("arith.mulf", opcode=0x2024, expr="lhs * rhs", cpp="$lhs * $rhs", doc="Floating-point product."),
    _float2("arith.divf", opcode=0x2025, expr="lhs / rhs", cpp="$lhs / $rhs",
            doc="Floating-point quotient; division by zero gives an infinity or NaN."),
    _float2("arith.remf", opcode=0x2026, expr="fmod(lhs, rhs)", cpp="fmodf($lhs, $rhs)",
            doc="Floating-point remainder; has the sign of the dividend."),
    _float2("arith.maximumf", opcode=0x2027, expr="max(lhs, rhs)", cpp=_ieee_pick(">", "&"),
            doc="Larger operand; NaN if either is NaN, and -0 is less than +0."),
    _float2("arith.minimumf", opcode=0x2028, expr="min(lhs, rhs)", cpp=_ieee_pick("<", "|"),
            doc="Smaller operand; NaN if either is NaN, and -0 is less than +0."),
    _float2("arith.maxnumf", opcode=0x2029, expr="maxnum(lhs, rhs)",
            cpp="($lhs != $lhs) ? $rhs : ($rhs != $rhs) ? $lhs : ($lhs > $rhs) ? $lhs : $rhs",
            doc="Larger operand; a NaN loses against a number."),
    _float2("arith.minnumf", opcode=0x202A, expr="minnum(lhs, rhs)",
            cpp="($lhs != $lhs) ? $rhs : ($rhs != $rhs) ? $lhs : ($lhs < $rhs) ? $lhs : $rhs",
            doc="Smaller operand; a NaN loses against a number."),
    _float1("arith.negf", opcode=0x202B, expr="-operand", cpp="-$operand",
            doc="Floating-point negation: flips the sign bit, also of zeros and NaNs."),
)  # fmt: skip

OTHER = (
    Family("shared-arith", "scalar", **_shared)(
        "arith.constant", opcode=0x2003, algorithm="constant",
        results="result=scalar|index|vector", format="custom",
        attrs=Attr("value", "any", required=True, doc="typed literal; the result has its type"),
        types={"result": "i32", "attr:value": "0 : i32"}, meaning="value", cpp="const $T $result = $value;",
        doc="Constant of an integer, index or floating-point type.",
        notes=("Text: `arith.constant [attr-dict] LITERAL : TYPE`; `true` and `false` need no type.",
               "A float may be written as its bits, `0xFF800000 : f32`; infinities and NaNs always are.",
               "A dense vector constant only carries the literal list of another instruction."),
    ),
    _int2(
        "arith.cmpi", opcode=0x2002, results="result=i1", infer={"result": "i1"},
        attrs=_predicate(CMPI),
        format=f"$predicate, $lhs, $rhs {_ONE_TYPE}",
        types={"lhs": "i32", "rhs": "i32", "attr:predicate": "slt"},
        expr="compare_int(predicate, lhs, rhs)", cpp="$lhs $predicate $rhs",
        doc="Integer comparison by a signed or unsigned predicate.",
        notes=("`$predicate` is spelled as the C++ operator; unsigned predicates cast both operands first.",
               "The v0 bytecode has numbers for eq ne slt sle sgt sge only."),
    ),
    _float2(
        "arith.cmpf", opcode=0x202C, results="result=i1", infer={"result": "i1"},
        attrs=_predicate(CMPF),
        format=f"$predicate, $lhs, $rhs [fastmath<$fastmath>] {_ONE_TYPE}",
        types={"lhs": "f32", "rhs": "f32", "attr:predicate": "olt"},
        expr="compare_float(predicate, lhs, rhs)",
        cpp="$lhs $predicate $rhs",
        doc="Floating-point comparison; ordered predicates fail and unordered ones hold on NaN.",
        notes="`$predicate` is spelled as the C++ operator; an unordered one as the negated opposite.",
    ),
    Family("shared-arith", "scalar", **_shared)(
        "arith.select", opcode=0x2007,
        operands="condition=i1 true_value=scalar|index|ptr|memref false_value=scalar|index|ptr|memref",
        results="result=scalar|index|ptr|memref", infer={"result": "$true_value"},
        format="$condition, $true_value, $false_value attr-dict : type($true_value)",
        rules=R("false_value.type == true_value.type"),
        types={"condition": "i1", "true_value": "i32", "false_value": "i32"},
        expr="where(condition, true_value, false_value)", cpp="$condition ? $true_value : $false_value",
        doc="One of two values, by an i1; both are evaluated.",
        notes="Tiles, vector registers and masks have their own select instructions.",
    ),
)  # fmt: skip

_NO_INDEX = (R("src.kind != 'index'"), R("result.kind != 'index'"))
_WIDER = R("result.bits > src.bits")
_NARROWER = R("result.bits < src.bits")
_INDEX = R("(src.kind == 'index') != (result.kind == 'index')")
_ROUNDING = Attr(
    "roundingmode", "str", "to_nearest_even", keyword=True,
    choices=("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"),
    doc="rounding; C++ has the default only",
)  # fmt: skip
_RANGE = "A value outside the range of the result, or NaN, is undefined."


def _convert(name: str, opcode: int, kinds: str, types: str, cpp: str, doc: str, **own: Any) -> Row:
    """A cast row; `kinds` and `types` are the source's and the result's."""
    source, result = kinds.split()
    return _cast(
        f"arith.{name}", opcode=opcode, operands=f"src={source}", results=f"result={result}", cpp=cpp,
        doc=doc, types=dict(zip(("src", "result"), types.split(), strict=True)), **own,
    )  # fmt: skip


CASTS = (
    _convert("extsi", 0x202D, "int int", "i32 i64", "($T) $src", "Widen a signed integer.", expr="src",
             rules=(*_NO_INDEX, _WIDER), notes="An i1 source reads as 0 or -1: C++ `-($T) $src`."),
    _convert("extui", 0x202E, "int int", "i32 i64", "($T) (u$S) $src", "Widen an unsigned integer.",
             expr="unsigned(src)", rules=(*_NO_INDEX, _WIDER)),
    _convert("trunci", 0x202F, "int int", "i64 i32", "($T) $src",
             "Narrow an integer by dropping its high bits.", expr="src",
             rules=(*_NO_INDEX, _NARROWER), attrs=_OVERFLOW,
             format="$src [overflow<$overflowFlags>] attr-dict : type($src) to type($result)",
             notes="An i1 result keeps the lowest bit: C++ `($src & 1) != 0`."),
    _convert("extf", 0x2030, "float float", "f16 f32", "($T) $src", "Widen a floating-point value, exactly.",
             expr="src", rules=_WIDER, attrs=_FAST,
             format="$src [fastmath<$fastmath>] attr-dict : type($src) to type($result)"),
    _convert("truncf", 0x2031, "float float", "f32 f16", "($T) $src",
             "Narrow a floating-point value with one rounding.", algorithm="scalar conversion",
             meaning="result = src rounded by roundingmode",
             rules=_NARROWER, attrs=(_ROUNDING, _FAST),
             format="$src [$roundingmode] [fastmath<$fastmath>] attr-dict : type($src) to type($result)",
             notes="Overflow gives an infinity where the type has one."),
    _convert("sitofp", 0x2032, "int float", "i32 f32", "($T) $src",
             "Signed integer to floating point, rounded to nearest even.", expr="src",
             rules=_NO_INDEX[0], notes="An i1 source reads as 0 or -1: C++ `($T) -(int32_t) $src`."),
    _convert("uitofp", 0x2033, "int float", "i32 f32", "($T) (u$S) $src",
             "Unsigned integer to floating point, rounded to nearest even.", expr="unsigned(src)",
             rules=_NO_INDEX[0]),
    _convert("fptosi", 0x2034, "float int", "f32 i32", "($T) $src",
             "Floating point to signed integer, rounded toward zero.", meaning="result = trunc(src)",
             algorithm="scalar conversion: signed",
             rules=_NO_INDEX[1], notes=_RANGE),
    _convert("fptoui", 0x2035, "float int", "f32 i32", "($T) (u$T) $src",
             "Floating point to unsigned integer, rounded toward zero.", meaning="result = trunc(src)",
             algorithm="scalar conversion: unsigned",
             rules=_NO_INDEX[1], notes=_RANGE),
    _convert("index_cast", 0x2004, "int int", "index i32", "($T) $src",
             "Between index and an integer; widens with the sign, narrows by dropping high bits.",
             expr="src", rules=_INDEX),
    _convert("index_castui", 0x2036, "int int", "index i32", "($T) (u$S) $src",
             "Between index and an integer; widens with zeros, narrows by dropping high bits.",
             expr="unsigned(src)", rules=_INDEX),
    _convert("bitcast", 0x2037, "scalar scalar", "f32 i32", "ptoas_bitcast<$T>($src)",
             "The same bits read as another type of the same width.", meaning="result = bits of src",
             algorithm="scalar bits",
             rules=R("result.bits == src.bits")),
)  # fmt: skip

_EXTENSION = "An extension of ours: the reference assembler does not register the math dialect."
_math1 = _float1.but(family="shared-math", notes=(_ONCE, _EXTENSION))
_math2 = _float2.but(family="shared-math", notes=(_ONCE, _EXTENSION))


def _function(name: str, opcode: int, expr: str, cpp: str, doc: str) -> Row:
    return _math1(f"math.{name}", opcode=opcode, expr=expr, cpp=cpp, doc=doc)


MATH = (
    _function("exp", 0x2080, "exp(operand)", "expf($operand)", "Natural exponential."),
    _function("exp2", 0x2081, "exp2(operand)", "exp2f($operand)", "Power of two."),
    _function("log", 0x2082, "log(operand)", "logf($operand)", "Natural logarithm; -inf at zero, NaN below."),
    _function("log2", 0x2083, "log2(operand)", "log2f($operand)", "Base-two logarithm; -inf at zero, NaN below."),
    _function("sqrt", 0x2084, "sqrt(operand)", "sqrtf($operand)", "Square root; NaN below zero."),
    _function("rsqrt", 0x2085, "1 / sqrt(operand)", "ptoas_rsqrtf($operand)",
              "Reciprocal square root; infinite at zero, NaN below."),
    _function("absf", 0x2086, "abs(operand)", "fabsf($operand)", "Floating-point magnitude: clears the sign bit."),
    _math1.but(attrs=(), notes=(_EXTENSION,))(
        "math.absi", opcode=0x2087, operands="operand=int", results="result=int", types={"operand": "i32"},
        format="$operand attr-dict : type($operand)", expr="abs(operand)",
        cpp="($operand < 0) ? ($T) (-(u$T) $operand) : $operand",
        doc="Signed integer magnitude; the smallest value maps to itself."),
    _function("floor", 0x2088, "floor(operand)", "floorf($operand)", "Round down to an integral value."),
    _function("ceil", 0x2089, "ceil(operand)", "ceilf($operand)", "Round up to an integral value."),
    _function("round", 0x208A, "round_away(operand)", "roundf($operand)",
              "Round to the nearest integral value, halves away from zero."),
    _function("roundeven", 0x208B, "rint(operand)", "rintf($operand)",
              "Round to the nearest integral value, halves to even."),
    _function("trunc", 0x208C, "trunc(operand)", "truncf($operand)", "Round toward zero to an integral value."),
    _function("tanh", 0x208D, "tanh(operand)", "tanhf($operand)", "Hyperbolic tangent."),
    _function("sin", 0x208E, "sin(operand)", "sinf($operand)", "Sine of an angle in radians."),
    _function("cos", 0x208F, "cos(operand)", "cosf($operand)", "Cosine of an angle in radians."),
    _function("erf", 0x2090, "erf(operand)", "erff($operand)", "Gauss error function."),
    _math2("math.powf", opcode=0x2091, expr="pow(lhs, rhs)", cpp="powf($lhs, $rhs)",
           doc="Power with a real exponent."),
    _math2("math.copysign", opcode=0x2092, expr="copysign(lhs, rhs)", cpp="copysignf($lhs, $rhs)",
           doc="Magnitude of the first operand with the sign of the second."),
    _math1.but(notes=(_EXTENSION,))(
        "math.fma", opcode=0x2093, operands="a=float b=float c=float", infer={"result": "$a"},
        format="$a, $b, $c [fastmath<$fastmath>] attr-dict : type($a)",
        rules=(R("b.type == a.type"), R("c.type == a.type")), types={"a": "f32", "b": "f32", "c": "f32"},
        expr="fma(a, b, c)", cpp="fmaf($a, $b, $c)", doc="Product plus addend with a single rounding."),
)  # fmt: skip

ROWS = (*INTEGER, *FLOAT, *OTHER, *CASTS, *MATH)
