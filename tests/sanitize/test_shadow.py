"""The float64 shadow: the first departure at the right instruction and element, and silence where all is well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto

Array = np.ndarray[Any, Any]

KERNEL = """!tile = !pto.tile_buf<vec, 8x16x{dtype}>
!view = !pto.partition_tensor_view<8x16x{dtype}>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%x: !view, %y: !view) attributes {{pto.entry}} {{
    %one = arith.constant 1.0 : {dtype}
    %zero = arith.constant 0.0 : {dtype}
    %t = pto.alloc_tile : !tile
    %u = pto.alloc_tile : !tile
    pto.tload ins(%x : !view) outs(%t : !tile)
{body}
    pto.tstore ins(%t : !tile) outs(%y : !view)
    return
  }}
}}
"""
FIRST = 10  # line of the first instruction of the body

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def op(name: str, source: str = "%t", target: str = "%t", scalar: str = "", dtype: str = "f16") -> str:
    more = f", {scalar}" if scalar else ""
    kind = f", {dtype}" if scalar else ""
    return f"    pto.{name} ins({source}{more} : !tile{kind}) outs({target} : !tile)"


def both(name: str, a: str = "%t", b: str = "%t", target: str = "%t") -> str:
    return f"    pto.{name} ins({a}, {b} : !tile, !tile) outs({target} : !tile)"


def run(x: Array, *body: str, dtype: str = "f16") -> Any:
    x = x.astype(TYPES[dtype])
    kernel = pto.kernel(pto.parse(KERNEL.format(dtype=dtype, body="\n".join(body))), engine="reference")
    return kernel.run(x, np.zeros_like(x), shadow="f64")


def spike(at: tuple[int, int], value: float, other: float = 0.0) -> Array:
    x = np.full((8, 16), other)
    x[at] = value
    return x


def found(result: Any) -> list[tuple[str, int, str]]:
    """Code, line and message of what was reported."""
    return [(d.code, d.span.place[0], d.message) for d in result.diagnostics]


# -- departures --------------------------------------------------------------------------------------------


def test_cancellation_is_found_where_it_happens() -> None:
    """1 + x loses x, but stays close to 1; the subtraction is what shows it."""
    result = run(spike((3, 5), 1e-4), op("tadds", scalar="%one"), op("tsubs", scalar="%one"))
    ((code, line, message),) = found(result)
    assert (code, line) == ("PTO-E2301", FIRST + 1)
    assert "tsubs" in message and "element (3, 5) of %t" in message
    (d,) = result.diagnostics
    assert d.expected.startswith("0.0001") and d.got == "0 (f16)"
    assert "1 of 128 elements" in d.help


def test_only_the_first_departure_is_reported() -> None:
    lines = [op("tadds", scalar="%one"), op("tsubs", scalar="%one"), op("tneg"), both("tadd")]
    assert [line for _, line, _ in found(run(spike((0, 0), 1e-4), *lines))] == [FIRST + 1]


@pytest.mark.parametrize(("dtype", "small"), [("f16", 1e-4), ("bf16", 1e-3), ("f32", 1e-8)])
def test_every_type_has_its_own_measure(dtype: str, small: float) -> None:
    lines = [op("tadds", scalar="%one", dtype=dtype), op("tsubs", scalar="%one", dtype=dtype)]
    assert [f[:2] for f in found(run(spike((7, 15), small), *lines, dtype=dtype))] == [
        ("PTO-E2301", FIRST + 1)
    ]
    assert found(run(spike((7, 15), 0.5), *lines, dtype=dtype)) == []


def test_what_a_type_explains_is_not_reported() -> None:
    rng = np.random.default_rng(5)
    lines = [op("texp"), op("tsqrt"), both("tmul"), op("tlog"), both("tadd"), op("trelu")]
    for dtype in ("f16", "f32"):
        assert found(run(rng.uniform(0.1, 1, (8, 16)), *lines, dtype=dtype)) == [], dtype


def test_twins_follow_copies_and_views() -> None:
    """The error of the first instruction is carried through a move; the departure is still found at the end."""
    result = run(
        spike((2, 2), 1e-4),
        op("tadds", scalar="%one"),
        op("tmov", target="%u"),
        op("tsubs", "%u", scalar="%one"),
    )
    assert [f[:2] for f in found(result)] == [("PTO-E2301", FIRST + 2)]


def test_a_new_load_ends_an_old_error() -> None:
    result = run(
        spike((2, 2), 1e-4), op("tadds", scalar="%one"), "    pto.tload ins(%x : !view) outs(%t : !tile)",
        op("tneg"),
    )  # fmt: skip
    assert found(result) == []


def test_bits_start_anew() -> None:
    """Results that are computed from bit patterns have no twin: the shadow takes them unchanged."""
    bits = "!pto.tile_buf<vec, 8x16xi16>"
    lines = [
        op("tadds", scalar="%one"),
        f"    %b = pto.bitcast %t : !tile -> {bits}",
        f"    pto.tnot ins(%b : {bits}) outs(%b : {bits})",
        f"    pto.tnot ins(%b : {bits}) outs(%b : {bits})",
        op("tsubs", scalar="%one"),
    ]
    assert found(run(spike((2, 2), 1e-4), *lines)) == []


# -- infinities and NaN ------------------------------------------------------------------------------------


def test_overflow_is_found_where_it_happens() -> None:
    result = run(spike((4, 1), 4e4, 1.0), op("tneg"), both("tadd"), op("tabs"))
    ((code, line, message),) = found(result)
    assert (code, line) == ("PTO-E2302", FIRST + 1)
    assert "an infinity appears: element (4, 1) of %t" in message
    (d,) = result.diagnostics
    assert d.expected == "-80000 (float64)" or d.expected.startswith("-8")
    assert d.got == "-inf (f16)" and "are not finite" in d.help


def test_an_infinity_that_exact_arithmetic_has_too_is_none() -> None:
    assert found(run(spike((4, 1), 0.0, 1.0), op("trecip"))) == []


@pytest.mark.parametrize(
    ("body", "line", "value"),
    [
        ([op("tneg"), op("tlog")], FIRST + 1, 1.0),
        ([op("tneg"), op("tsqrt")], FIRST + 1, 4.0),
        ([both("tsub", target="%u"), both("tdiv", "%u", "%u")], FIRST + 1, 3.0),
    ],
)
def test_a_nan_is_found_where_it_is_made(body: list[str], line: int, value: float) -> None:
    """Also where float64 has one as well."""
    x = np.full((8, 16), value)
    x[:, :] = -value if "tsub" not in body[0] else value
    if "tsub" not in body[0]:
        x[6, 2] = value  # the only element that tneg makes negative
    ((code, at, message),) = found(run(x, *body, op("tabs")))
    assert (code, at) == ("PTO-E2302", line)
    assert "NaN appears" in message
    assert f"element ({'6, 2' if 'tsub' not in body[0] else '0, 0'})" in message


def test_a_nan_that_comes_in_is_no_news() -> None:
    assert found(run(spike((1, 1), np.nan, 1.0), op("tneg"), both("tadd"))) == []


# -- the histogram -----------------------------------------------------------------------------------------


def test_exact_results_count_as_such() -> None:
    result = run(np.arange(128).reshape(8, 16), both("tadd"), op("tneg"))
    counts = result.shadow.histogram["f16"]
    assert counts[0] == 4 * 128  # load, two instructions, store
    assert counts[1:].sum() == 0


def test_errors_are_counted_in_units_of_the_last_place() -> None:
    """x + 1 with x of a third of a unit: a third below one; then twice that, then exact copies."""
    result = run(np.full((8, 16), 2.0**-10 / 3), op("tadds", scalar="%one"))
    counts = result.shadow.histogram["f16"]
    # rounding to f16: load 0; 1 + 2^-10/3 -> 1, an error of a third of 2^-10: at most half a unit; the store too
    assert counts[0] == 128 and counts[2] == 0
    assert counts[1:4].sum() == 2 * 128 and counts.sum() == 3 * 128


def test_lost_results_have_a_row_of_their_own() -> None:
    result = run(spike((4, 1), 4e4, 1.0), both("tadd"))
    assert result.shadow.histogram["f16"][21] == 2  # the sum and its store
    text = result.shadow.text()
    assert text.splitlines()[0] == "error in units of the last place, elements by type"
    assert "NaN/inf" in text and "f16" in text


def test_the_shadow_changes_no_result() -> None:
    x = np.random.default_rng(2).standard_normal((8, 16)).astype(np.float16)
    kernel = pto.kernel(pto.parse(KERNEL.format(dtype="f16", body=op("texp"))), engine="reference")
    plain, shadowed = np.zeros_like(x), np.zeros_like(x)
    kernel.run(x, plain)
    kernel.run(x, shadowed, shadow="f64")
    assert plain.tobytes() == shadowed.tobytes()


def test_no_floats_no_histogram() -> None:
    text = KERNEL.format(dtype="i32", body="").replace("1.0 : i32", "1 : i32").replace("0.0 : i32", "0 : i32")
    x = np.ones((8, 16), np.int32)
    result = pto.kernel(pto.parse(text), engine="reference").run(x, np.zeros_like(x), shadow="f64")
    assert result.ok and result.shadow.text() == "no floating-point results"


def test_what_was_rounded_to_a_coarse_type_is_held_to_that_type() -> None:
    """A value rounded to f16 on purpose may be that far off in the f32 results made of it."""
    f32, f16 = "!pto.tile_buf<vec, 4x16xf32>", "!pto.tile_buf<vec, 4x16xf16>"

    def program(middle: str) -> str:
        return f"""module attributes {{pto.target_arch = "a3"}} {{
func.func @k(%n: i64) {{
  %third = arith.constant 0.333333343 : f32
  %a = pto.alloc_tile : {f32}
  %b = pto.alloc_tile : {f16}
  %c = pto.alloc_tile : {f32}
  pto.texpands ins(%third : f32) outs(%a : {f32})
  {middle}
  pto.tmul ins(%c, %c : {f32}, {f32}) outs(%c : {f32})
  return
}}
}}
"""

    rounded = f"""pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {f32}) outs(%b : {f16})
  pto.tcvt ins(%b {{rmode = #pto<round_mode RINT>}} : {f16}) outs(%c : {f32})
  pto.tsub ins(%c, %a : {f32}, {f32}) outs(%a : {f32})
  pto.tmuls ins(%c, %third : {f32}, f32) outs(%c : {f32})"""
    kernel = pto.kernel(pto.parse(program(rounded)), engine="reference")
    result = kernel.run(0, shadow="f64")
    assert [d.code for d in result.diagnostics] == ["PTO-E2301"]  # the difference is all rounding error
    assert "tsub" in result.diagnostics[0].message
    silent = program(rounded.replace(f"  pto.tsub ins(%c, %a : {f32}, {f32}) outs(%a : {f32})\n", ""))
    assert pto.kernel(pto.parse(silent), engine="reference").run(0, shadow="f64").ok


CPP = """#include "pto/pto-inst.hpp"
using namespace pto;
template <class T>
AICORE void log1p_of(T& t) {
  TADDS(t, t, (half)1.0f);
  pipe_barrier(PIPE_V);
  TLOG(t, t);
}
__global__ AICORE void log1p(__gm__ half* x, __gm__ half* y) {
  using All = GlobalTensor<half, Shape<1, 1, 1, 16, 128>, Stride<2048, 2048, 2048, 128, 1>>;
  All from(x), to(y);
  Tile<TileType::Vec, half, 16, 128> t;
  TASSIGN(t, 0x0);
  TLOAD(t, from);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  log1p_of(t);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  TSTORE(to, t);
}
"""


def test_cpp_departs_where_the_program_does(tmp_path: Path) -> None:
    """The same computation in C++ has the same twins, and is reported at its line and in its words."""
    source = tmp_path / "k.cpp"
    source.write_text(CPP)
    x = np.random.default_rng(0).uniform(0, 0.01, (16, 128)).astype(np.float16)
    of_cpp, of_pto = (
        pto.kernel(str(file)).run(x, np.zeros_like(x), shadow="f64")
        for file in (source, Path(__file__).parents[2] / "examples" / "14_cancellation.pto")
    )
    assert of_cpp.shadow.text() == of_pto.shadow.text()
    (got,), (want,) = of_cpp.diagnostics, of_pto.diagnostics
    assert (got.code, got.expected, got.got, got.help) == (want.code, want.expected, want.got, want.help)
    assert got.span is not None and got.span.place[0] == 7
    assert got.message == "TLOG: first departure from the float64 shadow: element (0, 0) of 't'"
