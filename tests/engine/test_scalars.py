"""Scalar instructions against Python and NumPy arithmetic of the same width."""

from __future__ import annotations

import math
import struct
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling import examples

from pto import isa, parse
from pto.engine.reference import scalars
from pto.engine.reference.instr import IllegalInstruction
from pto.ir.core import Operation

ROWS = tuple(r.name for r in isa.rows() if r.family in ("shared-arith", "shared-math"))

BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


@cache
def operation(line: str, arguments: str) -> Operation:
    module = parse(f"func.func @f({arguments}) {{\n  {line}\n  return\n}}\n")
    return next(op for op in module.walk() if op.name not in ("builtin.module", "func.func"))


def evaluate(name: str, type: str, *values: int | float, extra: str = "", result: str = "") -> object:
    names = ["%x", "%y", "%z"][: len(values)]
    arguments = ", ".join(f"{n}: {type}" for n in names)
    to = f" to {result}" if result else ""
    op = operation(f"%r = {name} {extra}{', '.join(names)} : {type}{to}", arguments)
    return scalars.evaluator(op)(*values)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


ints = st.sampled_from([0, 1, -1, 2, -2, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]) | st.integers(
    -(2**63), 2**63 - 1
)


@pytest.mark.parametrize("type", BITS)
@given(x=ints, y=ints)
@examples(60)
def test_integers_wrap(type: str, x: int, y: int) -> None:
    bits = BITS[type]
    x, y = signed(x, bits), signed(y, bits)
    ux, uy = x & ((1 << bits) - 1), y & ((1 << bits) - 1)
    expected = {
        "addi": x + y, "subi": x - y, "muli": x * y, "andi": ux & uy, "ori": ux | uy, "xori": ux ^ uy,
        "maxsi": max(x, y), "minsi": min(x, y), "maxui": max(ux, uy), "minui": min(ux, uy),
        "shli": ux << uy if uy < bits else 0,
        "shrui": ux >> uy if uy < bits else 0,
        "shrsi": x >> min(uy, bits),
    }  # fmt: skip
    if y:
        toward = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        expected |= {
            "divsi": toward, "remsi": x - toward * y, "divui": ux // uy, "remui": ux % uy, "floordivsi": x // y,
            "ceildivsi": -((-x) // y), "ceildivui": -((-ux) // uy),
        }  # fmt: skip
    for name, value in expected.items():
        assert evaluate(f"arith.{name}", type, x, y) == signed(value, bits), name


@pytest.mark.parametrize("name", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"])
def test_division_by_zero_is_an_error_of_the_program(name: str) -> None:
    with pytest.raises(IllegalInstruction, match="by zero"):
        evaluate(f"arith.{name}", "i32", 5, 0)


@given(x=ints, y=ints)
def test_extended_results(x: int, y: int) -> None:
    x, y = signed(x, 32), signed(y, 32)
    ux, uy = x & 0xFFFFFFFF, y & 0xFFFFFFFF

    def pair(name: str) -> object:
        op = operation(
            f"%a, %b = arith.{name} %x, %y : i32" + (", i1" if "addui" in name else ""), "%x: i32, %y: i32"
        )
        return scalars.evaluator(op)(x, y)

    assert pair("addui_extended") == (signed(x + y, 32), int(ux + uy >= 2**32))
    assert pair("mulsi_extended") == (signed(x * y, 32), signed(x * y >> 32, 32))
    assert pair("mului_extended") == (signed(ux * uy, 32), signed(ux * uy >> 32, 32))


floats = st.floats(width=32) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-149, 2.0**127]
)


def same(a: object, b: float) -> bool:
    assert isinstance(a, float)
    return (math.isnan(a) and math.isnan(b)) or struct.pack("<d", a) == struct.pack("<d", float(b))


@given(x=floats, y=floats, z=floats)
@examples(200)
def test_f32_arithmetic_rounds_once(x: float, y: float, z: float) -> None:
    a, b = np.float32(x), np.float32(y)
    with np.errstate(all="ignore"):
        for name, value in {
            "addf": a + b,
            "subf": a - b,
            "mulf": a * b,
            "divf": a / b,
            "remf": np.fmod(a, b),
        }.items():
            assert same(evaluate(f"arith.{name}", "f32", x, y), float(value)), name
        assert same(evaluate("arith.negf", "f32", x), float(-a))
        assert same(evaluate("math.sqrt", "f32", x), float(np.sqrt(a)))
        for name, reference in (
            ("floor", np.floor),
            ("ceil", np.ceil),
            ("trunc", np.trunc),
            ("roundeven", np.rint),
        ):
            assert same(evaluate(f"math.{name}", "f32", x), float(reference(a))), name
        assert same(evaluate("math.absf", "f32", x), float(abs(a)))
        assert same(evaluate("math.copysign", "f32", x, y), float(np.copysign(a, b)))
        if all(map(math.isfinite, (x, y, z))):
            from fractions import Fraction

            exact = Fraction(x) * Fraction(y) + Fraction(z)
            got = evaluate("math.fma", "f32", x, y, z)
            assert isinstance(got, float)
            if exact and abs(exact) < 2**127:  # nearest f32: no neighbour is closer
                near = np.float32(got)
                gap = abs(Fraction(float(near)) - exact)
                for direction in (-np.inf, np.inf):
                    other = np.nextafter(near, np.float32(direction))
                    assert not math.isfinite(other) or gap <= abs(Fraction(float(other)) - exact)


@given(x=floats, y=floats)
def test_extrema_and_comparisons(x: float, y: float) -> None:
    unordered = math.isnan(x) or math.isnan(y)
    got = evaluate("arith.maximumf", "f32", x, y)
    assert same(got, math.nan) if unordered else got == max(x, y)
    got = evaluate("arith.minnumf", "f32", x, y)
    if unordered:
        assert same(got, y if math.isnan(x) else x)
    else:
        assert got == min(x, y)
    relation = {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x != y}
    for name, holds in relation.items():
        assert evaluate("arith.cmpf", "f32", x, y, extra=f"o{name}, ") == int(holds and not unordered)
        assert evaluate("arith.cmpf", "f32", x, y, extra=f"u{name}, ") == int(holds or unordered)
    assert evaluate("arith.cmpf", "f32", x, y, extra="ord, ") == int(not unordered)
    assert evaluate("arith.cmpf", "f32", x, y, extra="uno, ") == int(unordered)
    assert evaluate("arith.cmpf", "f32", x, y, extra="true, ") == 1


def test_zero_signs_of_extrema() -> None:
    assert same(evaluate("arith.maximumf", "f32", -0.0, 0.0), 0.0)
    assert same(evaluate("arith.minimumf", "f32", 0.0, -0.0), -0.0)


@given(x=ints, y=ints)
def test_integer_comparisons(x: int, y: int) -> None:
    x, y = signed(x, 32), signed(y, 32)
    ux, uy = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    for name, holds in {"slt": x < y, "sle": x <= y, "sgt": x > y, "sge": x >= y, "eq": x == y, "ne": x != y,
                        "ult": ux < uy, "ule": ux <= uy, "ugt": ux > uy, "uge": ux >= uy}.items():  # fmt: skip
        assert evaluate("arith.cmpi", "i32", x, y, extra=f"{name}, ") == int(holds), name


@pytest.mark.parametrize(
    ("name", "source", "result", "value", "expected"),
    [
        ("extsi", "i8", "i32", -5, -5),
        ("extsi", "i1", "i32", 1, -1),
        ("extui", "i8", "i32", -5, 251),
        ("extui", "i1", "i32", 1, 1),
        ("sitofp", "i1", "f32", 1, -1.0),
        ("uitofp", "i1", "f32", 1, 1.0),
        ("index_cast", "i1", "index", 1, -1),
        ("index_castui", "i1", "index", 1, 1),
        ("trunci", "i32", "i8", 0x1FF, -1),
        ("index_cast", "i32", "index", -7, -7),
        ("index_castui", "i32", "index", -7, 2**32 - 7),
        ("sitofp", "i32", "f32", 2**24 + 1, float(2**24)),
        ("sitofp", "i32", "f32", -3, -3.0),
        ("uitofp", "i32", "f32", -1, float(2**32)),
        ("fptosi", "f32", "i32", -2.9, -2),
        ("fptoui", "f32", "i32", 3.9, 3),
        ("extf", "f16", "f32", 1.5, 1.5),
        ("truncf", "f32", "f16", 1.0 + 2**-11, 1.0),
        ("truncf", "f32", "f16", 65520.0, math.inf),
        ("truncf", "f32", "bf16", 1.0 + 2**-8, 1.0),
        ("bitcast", "f32", "i32", -0.0, -(2**31)),
        ("bitcast", "i32", "f32", 0x3F800000, 1.0),
        ("bitcast", "i16", "bf16", 0x3FC0, 1.5),
    ],
)
def test_conversions(name: str, source: str, result: str, value: float, expected: float) -> None:
    got = evaluate(f"arith.{name}", source, value, result=result)
    assert got == expected and isinstance(got, type(expected))


def test_select_and_constants() -> None:
    select = operation("%r = arith.select %c, %x, %y : i32", "%c: i1, %x: i32, %y: i32")
    assert scalars.evaluator(select)(1, 7, 8) == 7
    assert scalars.evaluator(select)(0, 7, 8) == 8
    assert scalars.evaluator(operation("%r = arith.constant 200 : i8", ""))() == -56
    assert scalars.evaluator(operation("%r = arith.constant 0xFF800000 : f32", ""))() == -math.inf
    assert scalars.evaluator(operation("%r = arith.constant true", ""))() == 1
    assert scalars.evaluator(operation("%r = arith.constant 0.1 : f32", ""))() == float(np.float32(0.1))


@given(x=st.floats(-30, 30, width=32))
def test_functions_are_the_nearest_f32_of_the_double_result(x: float) -> None:
    for name, reference in (("exp", math.exp), ("exp2", lambda v: 2.0**v), ("tanh", math.tanh), ("erf", math.erf),
                            ("sin", math.sin), ("cos", math.cos)):  # fmt: skip
        assert evaluate(f"math.{name}", "f32", x) == float(np.float32(reference(x))), name
    if x > 0:
        for name, reference in (
            ("log", math.log),
            ("log2", math.log2),
            ("rsqrt", lambda v: 1 / math.sqrt(v)),
        ):
            assert evaluate(f"math.{name}", "f32", x) == float(np.float32(reference(x))), name
    with np.errstate(all="ignore"):
        away = float(np.float32(math.copysign(math.floor(abs(x) + 0.5), x)))
    assert same(evaluate("math.round", "f32", x), away)


def test_edges_of_functions() -> None:
    cases = {("exp", math.inf): math.inf, ("exp", -math.inf): 0.0, ("exp", 1000.0): math.inf, ("log", 0.0): -math.inf,
             ("log", -1.0): math.nan, ("sqrt", -1.0): math.nan, ("rsqrt", 0.0): math.inf, ("sin", math.inf): math.nan,
             ("tanh", -math.inf): -1.0, ("exp2", 1e9): math.inf}  # fmt: skip
    for (name, value), expected in cases.items():
        assert same(evaluate(f"math.{name}", "f32", value), expected), (name, value)
    powers = [(0.0, -1.0, math.inf), (-0.0, -1.0, -math.inf), (-8.0, 1 / 3, math.nan), (2.0, 1000.0, math.inf),
              (-2.0, 1001.0, -math.inf), (5.0, 0.0, 1.0), (math.nan, 0.0, 1.0)]  # fmt: skip
    for x, y, expected in powers:
        assert same(evaluate("math.powf", "f32", x, y), expected), (x, y)
    assert evaluate("math.absi", "i32", -(2**31)) == -(2**31)


def test_one_bit_is_minus_one_as_a_signed_number() -> None:
    for predicate, expected in (("slt", 1), ("sge", 0), ("ult", 0), ("ugt", 1), ("eq", 0)):
        compare = operation(f"%r = arith.cmpi {predicate}, %x, %y : i1", "%x: i1, %y: i1")
        assert scalars.evaluator(compare)(1, 0) == expected, predicate
    assert [evaluate(f"arith.{n}", "i1", 1, 0) for n in ("maxsi", "minsi", "maxui", "minui")] == [0, 1, 1, 0]
    assert [evaluate(f"arith.{n}", "i1", 1, 1) for n in ("addi", "muli", "xori", "shrsi", "divsi")] == [
        0,
        1,
        0,
        1,
        1,
    ]


def test_a_fused_product_rounds_once() -> None:
    """The exact sum lies just beside a midpoint of f32; a double in between would lose the side."""
    assert evaluate("math.fma", "f32", 2.5, -4.556739539736986e16, 1.0) == -1.1391848419845734e17
