"""Output of programs: tiles and views by rounding exact fractions, scalars as in the C library; trap."""

from __future__ import annotations

import ctypes
import io
import math
import os
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples

from pto.engine.memory import Tile, View
from pto.engine.reference.instr import IllegalInstruction, Instr
from pto.engine.reference.registry import find
from pto.ir.attrs import StrAttr
from pto.ir.types import ScalarType
from pto.isa import encoding
from pto.isa.dtypes import DTYPES
from pto.isa.enums import ENUMS
from pto.witness.plan import Plan

from .programs import CONSTANTS, codes, program, run
from .rows import (
    VALID,
    Case,
    Doubles,
    every_plan,
    mixed_codes,
    random_codes,
    sampled_plans,
    special_codes,
)

ROWS = ("tprint", "print", "trap")

FORMATS = {
    "": (8, 4),
    "Width8_Precision4": (8, 4),
    "Width8_Precision2": (8, 2),
    "Width10_Precision6": (10, 6),
}


@cache
def plans_of(name: str) -> list[Plan]:
    return list(every_plan(name, layouts=False))


# --- tiles and views --------------------------------------------------------------------------------------


def number_text(dtype: str, code: int, width: int, digits: int) -> str:
    """One element: fixed notation of the exact value, ties to even; integers in the width."""
    d = DTYPES[dtype]
    value = encoding.decode(d, code)
    if not d.is_float:
        return str(int(value)).rjust(width)
    if value != value:
        return "nan".rjust(width)
    if value in (math.inf, -math.inf):
        return ("-inf" if value < 0 else "inf").rjust(width)
    negative = value < 0 or (isinstance(value, float) and math.copysign(1, value) < 0)
    scaled = round(abs(Fraction(value)) * 10**digits)
    whole, rest = divmod(scaled, 10**digits)
    return f"{'-' * negative}{whole}.{str(rest).zfill(digits)}".rjust(width)


def expected(dtype: str, table: list[list[int]], cols: int, print_format: str = "") -> str:
    lines = [f"TPRINT {len(table)}x{cols}"]
    lines += [" ".join(number_text(dtype, c, *FORMATS[print_format]) for c in row) for row in table]
    return "".join(line + "\n" for line in lines)


def printed(case: Case, print_format: str = "") -> str:
    if print_format:
        case.op.attrs = {**case.op.attrs, "print_format": StrAttr(print_format)}
    execute = find(case.row)
    assert execute is not None
    with np.errstate(all="ignore"):
        execute(Instr(case.op, case.args, case.core, "V"))
    return case.out.getvalue()


def test_every_type_has_a_plan() -> None:
    found = {str(p.operands["src"][0].dtype) for p in plans_of("tprint")}  # type: ignore[attr-defined]
    assert found >= {"f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2"}
    assert found >= {f"{kind}{bits}" for kind in "iu" for bits in (8, 16, 32, 64)}


def test_tiles() -> None:
    """Every type, location and layout; the valid region and nothing else."""
    for n, plan in enumerate(sampled_plans("tprint")):
        case = Case(plan, seed=n)
        tile = case.args["src"]
        if not isinstance(tile, Tile):
            continue
        filled = mixed_codes(case.rng, tile.dtype, tile.shape)
        case.set("src", filled)
        rows, cols = VALID[n % len(VALID)]
        tile.v_row, tile.v_col = min(rows, tile.rows), min(cols, tile.cols)
        before = tile.buffer.data.copy()
        want = filled[: tile.v_row, : tile.v_col].tolist()
        print_format = list(FORMATS)[n % 4]
        assert printed(case, print_format) == expected(tile.dtype, want, tile.v_col, print_format), plan
        assert np.array_equal(before, tile.buffer.data)


@pytest.mark.parametrize("print_format", FORMATS)
def test_special_values(print_format: str) -> None:
    for plan in plans_of("tprint"):
        case = Case(plan)
        tile = case.args["src"]
        if not isinstance(tile, Tile):
            continue
        special = special_codes(tile.dtype)[: tile.cols]
        filled = np.zeros(tile.shape, np.uint64)
        filled[0, : len(special)] = special
        case.set("src", filled)
        tile.v_row, tile.v_col = 1, len(special)
        assert printed(case, print_format) == expected(tile.dtype, [special], len(special), print_format)


def test_what_it_looks_like() -> None:
    """The text itself, once."""
    plan = next(p for p in plans_of("tprint") if "f32" in str(p.operands["src"][0]))
    case = Case(plan)
    values = np.array([[1.5, -0.0, np.nan], [np.inf, -np.inf, 1e6]], np.float32)
    case.set("src", values.view(np.uint32), (2, 3))
    want = "TPRINT 2x3\n  1.5000  -0.0000      nan\n     inf     -inf 1000000.0000\n"
    assert printed(case) == want


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5,), (1,)), ((5,), (3,)), ((3, 4), (4, 1)), ((3, 4), (9, 2)), ((2, 3, 4), (12, 4, 1)), ((2, 3, 4), (20, 6, 1)),
    ((2, 1, 3, 4), (30, 12, 4, 1)), ((2, 2, 1, 3, 2), (24, 12, 6, 2, 1)), ((0, 4), (4, 1)), ((4, 0), (1, 1)),
    ((2, 0, 3), (3, 3, 1)),
]  # fmt: skip


@together(("dims", "strides"), SHAPES)
@together("dtype", ["f32", "f16", "i8", "i32", "u64", "f4e2m1"])
def test_views(dims: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
    """A row of text per index of all dimensions but the last."""
    case = Case(plans_of("tprint")[0])
    count = 1 + sum((d - 1) * s for d, s in zip(dims, strides, strict=True)) if 0 not in dims else 0
    flat = random_codes(case.rng, dtype, (1, count + count % 2))
    bytes_ = np.zeros(flat.size * DTYPES[dtype].bits // 8, np.uint8)
    case.args["src"] = place = View(case.core.gm.add("x", bytes_), 0, dims, strides, dtype, None, "x")
    place.pointer.region(1, flat.size).store(place.buffer.data, flat)
    lines = [[int(flat[0, sum(np.multiply(index, strides))]) for index in row] for row in _rows(dims)]
    assert printed(case) == expected(dtype, lines, dims[-1])


def _rows(dims: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    return [[(*outer, n) for n in range(dims[-1])] for outer in np.ndindex(*dims[:-1])]


@pytest.mark.parametrize("layout", [name.upper() for name in ENUMS["layout"].values])
def test_views_of_every_layout(layout: str) -> None:
    """Each is printed as the matrix it shows; what shows none, in index order. Nothing raises."""
    dims = (2, 2, 2, 16, 2)
    if layout.startswith("MX"):
        dims = (1, 2, 2, 16, 2) if layout in ("MX_A_ZZ", "MX_B_NN") else (1, 1, 2, 16, 2)
    count = math.prod(dims)
    case = Case(plans_of("tprint")[0])
    data = np.arange(count, dtype=np.int32)
    strides = tuple(math.prod(dims[n + 1 :]) for n in range(5))
    case.args["src"] = View(case.core.gm.add("x", data.copy()), 0, dims, strides, "i32", layout, "x")
    if layout == "NDC1HWC0":  # its last dimension is followed by C0 elements
        case.args["src"].buffer.grow(count * 4 * 16)
        case.args["src"].strides = tuple(8 * s for s in strides)
    first, *lines = printed(case).splitlines()
    rows, cols = (int(n) for n in first.split()[1].split("x"))
    assert len(lines) == rows and all(len(line.split()) == cols for line in lines)
    if layout != "NDC1HWC0":
        assert sorted(int(n) for line in lines for n in line.split()) == data.tolist()
    if layout == "NZ":
        want = data.reshape(dims).transpose(2, 3, 0, 1, 4).reshape(32, 8)
        assert [[int(n) for n in line.split()] for line in lines] == want.tolist()


def test_a_view_of_six_dimensions() -> None:
    case = Case(plans_of("tprint")[0])
    buffer = case.core.gm.add("x", np.zeros(4, np.int32))
    case.args["src"] = View(buffer, 0, (1, 1, 1, 1, 2, 2), (4, 4, 4, 4, 2, 1), "i32", None, "x")
    with pytest.raises(IllegalInstruction, match="at most 5 dimensions, got 6"):
        printed(case)


def test_tprint_in_a_shadow_run_prints_the_same() -> None:
    for plan in plans_of("tprint"):
        texts: list[str] = []
        for port in (None, Doubles()):
            case = Case(plan)
            case.core.port = port or case.core.port
            if isinstance(case.args["src"], Tile):
                case.random("src")
            texts.append(printed(case))
        assert texts[0] == texts[1]


@given(n=st.integers(0, 10**6), value=st.floats(width=32), print_format=st.sampled_from(sorted(FORMATS)))
@examples(200)
def test_any_number(n: int, value: float, print_format: str) -> None:
    plan = next(p for p in plans_of("tprint") if "f32" in str(p.operands["src"][0]))
    case = Case(plan)
    chosen = np.array([[value, n / 10**4]], np.float32).view(np.uint32)
    case.set("src", chosen, (1, 2))
    assert printed(case, print_format) == expected("f32", chosen.tolist(), 2, print_format)


# --- scalars ----------------------------------------------------------------------------------------------


def shown(text: str, value: Any, type: str = "i32") -> str:
    plan = plans_of("print")[0]
    case = Case(plan.replace(operands={"scalar": (ScalarType(type),)}))
    case.op.attrs = {**case.op.attrs, "format": StrAttr(text)}
    case.args = {"scalar": value}
    execute = find(case.row)
    assert execute is not None
    execute(Instr(case.op, case.args, case.core, "S"))
    return case.out.getvalue()


@together(
    ("text", "value", "type", "want"),
    [
        ("%d", 5, "i32", "5"),
        ("%d\n", -5, "i64", "-5\n"),
        ("x = %i;", 5, "i8", "x = 5;"),
        ("", 1.5, "f32", "1.500000"),
        ("", 2, "i32", "2.000000"),  # an empty format is %f
        ("100%%", 5, "i32", "100%"),
        ("%%d", 5, "i32", "%d"),
        ("%%%d%%", 5, "i32", "%5%"),
        ("%", 5, "i32", "%"),
        ("%d%", 5, "i32", "5%"),
        ("% ", 5, "i32", "% "),
        ("plain", 5, "i32", "plain"),
        ("%q %d", 5, "i32", "%q 5"),
        ("%d %d %f", 5, "i32", "5 %d %f"),  # one value, the first conversion
        ("%*d", 5, "i32", "%*d"),
        ("%n", 5, "i32", "%n"),
        ("%1$d", 5, "i32", "%1$d"),
        ("%s", 5, "i32", "5"),
        ("[%6s]", 5, "i32", "[     5]"),
        ("[%-6s]", 5, "i32", "[5     ]"),
        ("%p", 5, "i32", "5"),
        ("%c", 65, "i32", "A"),
        ("%c", 65 + 256, "i32", "A"),
        ("%c", -191, "i32", "A"),
        ("[%3c]", 65, "i8", "[  A]"),
        ("%u", -1, "i32", "4294967295"),
        ("%lu", -1, "i64", "18446744073709551615"),
        ("%x", -1, "i8", "ffffffff"),
        ("%hhx", -1, "i8", "ff"),
        ("%hhd", 200, "i32", "-56"),
        ("%hd", 65535, "i32", "-1"),
        ("%u", 255, "ui8", "255"),
        ("%d", 2**64 - 1, "ui64", "18446744073709551615"),
        ("%lld", -(2**63), "i64", "-9223372036854775808"),
        ("%#o|", 8, "i32", "010|"),
        ("%#x", 0, "i32", "0"),
        ("%+u", 1, "i32", "1"),
        ("%d", 1, "i1", "1"),
        ("%d", 1.5, "f32", "1.500000"),
        ("%8d", 1.5, "f32", "1.500000"),
        ("%d", math.nan, "f32", "nan"),
        ("%x", math.inf, "f32", "inf"),
        ("%c", -math.inf, "f16", "-inf"),
        ("%s", 0.25, "bf16", "0.250000"),
        ("%f", math.nan, "f32", "nan"),
        ("%F", math.inf, "f32", "INF"),
        ("%06.1f", math.inf, "f32", "   inf"),
        ("%.1f", 7, "i32", "7.0"),
        ("%a", 1.5, "f32", "1.500000"),
        ("%a", 3, "i32", "3.000000"),
        ("%99999d", 5, "i32", "%99999d"),
        ("%.9999f", 5.0, "f32", "%.9999f"),
        ("a\\nb\\t%d", 5, "i32", "a\nb\t5"),
        ("ünïcödé %d", 5, "i32", "ünïcödé 5"),
    ],
)
def test_formats(text: str, value: Any, type: str, want: str) -> None:
    assert shown(text, value, type) == want


@given(text=st.text(alphabet="%dixXofFeEgGcspauhlzL*$.+- #0123456789\\nq", max_size=12), data=st.data())
@examples(150)
def test_no_format_raises(text: str, data: st.DataObject) -> None:
    type = data.draw(st.sampled_from(["i1", "i8", "i32", "i64", "ui64", "f16", "f32"]))
    if type.startswith("f"):
        value: Any = data.draw(st.floats(width=16 if type == "f16" else 32))
    else:
        bits = int(type.lstrip("ui"))
        low = 0 if type.startswith("u") or bits == 1 else -(1 << (bits - 1))
        value = data.draw(st.integers(low, low + (1 << bits) - 1))
    assert isinstance(shown(text, value, type), str)


def _printf(text: str, value: Any) -> str:
    buffer = ctypes.create_string_buffer(4096)
    ctypes.CDLL(None).snprintf(buffer, ctypes.c_size_t(4096), text.encode(), value)
    return buffer.value.decode()


@pytest.mark.skipif(os.name != "posix", reason="needs the C library")
@given(
    flags=st.text(alphabet="-+ #0", max_size=3), width=st.sampled_from(["", "1", "7", "12"]),
    precision=st.sampled_from(["", ".", ".0", ".1", ".3", ".10"]), kind=st.sampled_from("diouxXeEfFgG"), data=st.data(),
)  # fmt: skip
@examples(200)
def test_as_the_c_library(flags: str, width: str, precision: str, kind: str, data: st.DataObject) -> None:
    if kind in "eEfFgG":
        value: Any = data.draw(
            st.one_of(st.floats(width=32, allow_nan=False), st.sampled_from([0.0, -0.0, 0.5, 2.5]))
        )
        text = f"<%{flags}{width}{precision}{kind}>"
        assert shown(text, value, "f32") == _printf(text, ctypes.c_double(value))
        return
    length, bits = data.draw(st.sampled_from([("", 32), ("h", 32), ("hh", 32), ("l", 64), ("ll", 64)]))
    number = st.one_of(st.integers(-3, 9), st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    value = data.draw(number)
    text = f"<%{flags}{width}{precision}{length}{kind}>"
    assert shown(text, value, f"i{bits}") == _printf(
        text, (ctypes.c_int if bits == 32 else ctypes.c_longlong)(value)
    )


# --- whole programs ---------------------------------------------------------------------------------------


def output(body: str, arguments: str = "", *args: Any, **options: Any) -> tuple[list[str], str]:
    out = io.StringIO()
    result = run(program(body, arguments), *args, out=out, **options)
    return codes(result), out.getvalue()


def test_a_trap_ends_the_program() -> None:
    body = """%n = arith.constant 3 : i32
    pto.print ins("before %d\\n", %n : i32)
    pto.trap
    pto.print ins("after %d\\n", %n : i32)"""
    assert output(body) == (["PTO-E2105"], "before 3\n")


def test_a_trap_of_a_branch_not_taken() -> None:
    body = """%n = arith.constant 3 : i32
    %no = arith.constant false
    scf.if %no {
    pto.trap
    }
    pto.print ins("%d", %n : i32)"""
    assert output(body) == ([], "3")


def test_a_trap_of_one_block_names_it() -> None:
    body = """%b = pto.get_block_idx
    %one = arith.constant 1 : i64
    %is = arith.cmpi eq, %b, %one : i64
    scf.if %is {
    pto.trap
    }"""
    out = io.StringIO()
    result = run(program(body, ""), blocks=3, out=out)
    assert codes(result) == ["PTO-E2105"] and "block 1" in result.diagnostics[0].message


def test_a_program_that_prints_a_tile_and_a_view() -> None:
    tile = "!pto.tile_buf<vec, 2x8xf32, valid=2x3>"
    body = f"""{CONSTANTS}
    %v = pto.make_tensor_view %x, shape = [%c2, %c3], strides = [%c3, %c1] : !pto.tensor_view<?x?xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c2, %c3] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<2x3xf32>
    %t = pto.alloc_tile : {tile}
    pto.tload ins(%p : !pto.partition_tensor_view<2x3xf32>) outs(%t : {tile})
    pto.tprint ins(%t : {tile}) {{print_format = "Width8_Precision2"}}
    pto.tprint ins(%p : !pto.partition_tensor_view<2x3xf32>)
    pto.tprint ins(%v : !pto.tensor_view<?x?xf32>)"""
    x = np.array([[1, 2, 3], [-4, 0.125, 1e3]], np.float32)
    table = [[int(n) for n in row] for row in x.view(np.uint32)]
    two = expected("f32", table, 3, "Width8_Precision2")
    found, text = output(body, "%x: !pto.ptr<f32>", x)
    assert (found, text) == ([], two + 2 * expected("f32", table, 3))


def test_printing_a_view_outside_of_its_array_is_a_diagnostic() -> None:
    body = f"""{CONSTANTS}
    %v = pto.make_tensor_view %x, shape = [%c2, %c3], strides = [%c10, %c1] : !pto.tensor_view<?x?xf32>
    pto.tprint ins(%v : !pto.tensor_view<?x?xf32>)"""
    assert output(body, "%x: !pto.ptr<f32>", np.zeros(6, np.float32)) == (["PTO-E2101"], "")
