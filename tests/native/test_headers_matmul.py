"""Matrix products of the C++ headers against the reference engine: bit for bit, on shapes that packing
and register blocks go wrong on."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tests.made import compiled
from tests.sampling import EVERY, some

from pto.engine.memory import Tile
from pto.engine.reference.matmul import fused_dot
from pto.isa.dtypes import DTYPES
from pto.witness.plan import Plan

from ..engine.rows import Array, Case, mixed_codes, random_codes, some_plans
from .instructions import COMPILER, DEFINES, ELEMENTS, FLAGS, INCLUDE, Unit, complaints, difference

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

ROWS = (
    "tmatmul", "tmatmul.acc", "tmatmul.bias", "tmatmul.mx", "tmatmul.mx.acc", "tmatmul.mx.bias",
    "tmatmul_mx_hif4", "tgemv", "tgemv.acc", "tgemv.bias", "tgemv.mx", "tgemv.mx.acc", "tgemv.mx.bias",
)  # fmt: skip

#: Valid (M, K, N) of the 16x64 by 64x32 operands.
SIZES = ((16, 64, 32), (5, 37, 19), (1, 64, 32), (16, 33, 1), (7, 1, 3), (0, 8, 32), (3, 8, 0), (4, 0, 5))


def call(plan: Plan) -> str:
    """The C++ of a plan; every other one with the phase of the accumulator."""
    parts = plan.row.name.replace("_", ".").split(".")
    name = parts[0].upper()
    a, b = ("lhs", "rhs") if "lhs" in plan.operands else ("a", "b")
    phase = "<AccPhase::Final>" if len(str(plan.operands)) % 2 else ""
    if "a_scale" in plan.operands:
        c_in, bias = "c_in, " * ("c_in" in plan.operands), ", bias" * ("bias" in plan.operands)
        return f"{name}_MX{phase}(dst, {c_in}a, a_scale, b, b_scale{bias})"
    if "acc_in" in plan.operands:
        return f"{name}_ACC{phase}(dst, acc_in, {a}, {b})"
    if "bias" in plan.operands:
        return f"{name}_BIAS{phase}(dst, {a}, {b}, bias)"
    return f"{name}{phase}(dst, {a}, {b})"


def filled(plan: Plan, k: int) -> Case:
    """Numbers of all sizes with special ones among them, modest ones, or extreme scales."""
    case = Case(plan, k)
    rng = np.random.default_rng(k)
    for name in case.args:
        place = case.tile(name)
        codes = (
            mixed_codes(rng, place.dtype, place.shape)
            if k % 2
            else random_codes(rng, place.dtype, place.shape)
        )
        if place.dtype == "f8e8m0" and k % 3:
            codes = rng.integers(117, 138, place.shape)
        case.set(name, codes)
    m, depth, n = SIZES[k % len(SIZES)]
    if plan.row.name.startswith("tgemv") and plan.isa != "cpu":
        m = min(m, 1)
    lhs, rhs = ("lhs", "rhs") if "lhs" in case.args else ("a", "b")
    valid = {
        lhs: (m, depth),
        rhs: (depth, n),
        "dst": (m, n),
        "acc_in": (m, n),
        "c_in": (m, n),
        "bias": (1, n),
    }
    for name, (r, c) in valid.items():
        if name in case.args:
            case.tile(name).v_row, case.tile(name).v_col = r, c
    return case


def is_usable(plan: Plan) -> bool:
    """Return True if C++ has these element types, and tiles of these shapes in these layouts."""
    tiles = [t for t in Case(plan).args.values() if isinstance(t, Tile)]
    boxed = {"ND": lambda t: t.cols, "DN": lambda t: t.rows}
    lines = [boxed[t.layout](t) * t.bits for t in tiles if t.layout in boxed]
    return all(t.dtype in ELEMENTS for t in tiles) and all(n % 256 == 0 for n in lines)


@pytest.mark.parametrize("group", [ROWS[:3], ROWS[3:7], ROWS[7:]] if EVERY else [ROWS])
def test_products_equal_the_reference(group: tuple[str, ...], tmp_path: Path) -> None:
    by_isa: dict[str, list[tuple[Plan, str]]] = defaultdict(list)
    for name in group:
        for number, plan in enumerate(some_plans(name)):  # element types come first, then layouts
            few = name.startswith("tgemv") or "." in name
            if is_usable(plan) and (number < (3 if few else 11) or number % 12 == 0 or plan.isa == "a5"):
                by_isa[plan.isa].append((plan, call(plan)))
    bad: list[str] = []
    count = 0
    for isa, found in by_isa.items():
        entries = some(found, 3, by=lambda entry: entry[1])
        unit = Unit(isa, entries, tmp_path, ["ops/calls.hpp"], ["-march=native"])
        for number, (plan, text) in enumerate(entries):
            for k in range(number % 2, len(SIZES), 2):
                unlike = difference(unit, number, filled(plan, k))
                count += 1
                if unlike is not None:
                    bad.append(
                        f"{isa} {text} {[str(t[0]) for t in plan.operands.values()]} {SIZES[k]}: {unlike}"
                    )
                    break
    assert not bad, "\n".join(bad)
    assert count > 30


# --- the product itself -------------------------------------------------------------------------------------

DIRECT = """\
#include <cstdint>
#include "pto/ops/calls.hpp"
using namespace pto::detail;
// Both ways to pack an operand: as it lies, and as the transpose of its transpose.
template <class T>
Place<T> matrix(const T* data, int rows, int cols, bool by_rows, T* turned) {
  if (by_rows) return dense_place(const_cast<T*>(data), cols, 0, 0);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) turned[c * rows + r] = data[r * cols + c];
  return pto::detail::turned(dense_place(turned, rows, 0, 0));
}
template <bool Whole, bool RowsA, bool RowsB, class T>
void run(int m, int n, int k, const T* a, const T* b, float* f, int32_t* i) {
  const struct { int n; float* f; int32_t* i; } out{n, f, i};
  using Out = decltype(out);
  gemm::Sink sink{[](const void* context, bool first, int row, int rows, int c,
                     const float (*x)[gemm::kWidth], int count) {
    const Out& out = *static_cast<const Out*>(context);
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < count; ++j) {
        const int at = (row + r) * out.n + c + j;
        if (Whole) out.i[at] = (first ? 0 : out.i[at]) + static_cast<int32_t>(x[r][j]);
        else out.f[at] = x[r][j];
      }
    }
  }, &out};
  if (!Whole && RowsA) sink.out = {f, n, 0, 62};  // whole blocks go straight there
  T* const room = new T[static_cast<size_t>(m) * k + static_cast<size_t>(k) * n + 1];
  multiply_places(m, n, k, matrix(a, m, k, RowsA, room), matrix(b, k, n, RowsB, room + m * k), sink);
  delete[] room;
}
extern "C" void dot(int how, int m, int n, int k, const float* a, const float* b, float* out) {
  if (how == 0) run<false, true, true>(m, n, k, a, b, out, nullptr);
  if (how == 1) run<false, false, true>(m, n, k, a, b, out, nullptr);
  if (how == 2) run<false, true, false>(m, n, k, a, b, out, nullptr);
  if (how == 3) run<false, false, false>(m, n, k, a, b, out, nullptr);
}
extern "C" void whole(int m, int n, int k, const uint8_t* a, const uint8_t* b, int32_t* out) {
  run<true, true, false>(m, n, k, a, b, nullptr, out);
}
"""

#: m, n, k: a register block and its neighbours, one line, nothing, many panels.
SHAPES = ((8, 32, 16), (9, 33, 17), (7, 31, 15), (1, 1, 1), (1, 100, 64), (50, 1, 5), (6, 16, 300), (64, 64, 0),
          (13, 8, 257), (130, 70, 40))  # fmt: skip


def library(folder: Path, *flags: str) -> ctypes.CDLL:
    assert COMPILER is not None
    source = folder / "direct.cpp"
    source.write_text(DIRECT)
    made = folder / f"direct{len(list(folder.iterdir()))}.so"
    command = [COMPILER, *FLAGS, "-O2", *flags, f"-I{INCLUDE}"]
    done = compiled(command, source, made)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(made))


def pointer(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def matrix(rng: np.random.Generator, rows: int, cols: int) -> Array:
    return (rng.standard_normal((rows, cols)) * 2.0 ** rng.integers(-20, 20, (rows, cols))).astype(np.float32)


@pytest.mark.parametrize("machine", [("-march=native",), ()])
def test_a_chain_of_fused_steps_bit_for_bit(machine: tuple[str, ...], tmp_path: Path) -> None:
    """Also where the machine has none."""
    # Without contraction: the steps are fused because they say so.
    lib = library(tmp_path, *machine)
    rng = np.random.default_rng(1)
    for m, n, k in SHAPES:
        a, b = matrix(rng, m, k), matrix(rng, k, n)
        want = fused_dot(a, b)
        for how in range(4):
            out = np.full((m, n), np.nan, np.float32)
            lib.dot(how, m, n, k, pointer(a), pointer(b), pointer(out))
            assert (out == want).all(), (m, n, k, how)


def test_integers_are_exact_at_any_depth(tmp_path: Path) -> None:
    lib = library(tmp_path, "-march=native")
    rng = np.random.default_rng(3)
    for m, n, k in (*SHAPES, (3, 40, 4000)):
        a, b = (rng.integers(200, 256, shape, np.uint8) for shape in ((m, k), (k, n)))
        out = np.full((m, n), -1, np.int32)
        lib.whole(m, n, k, pointer(a), pointer(b), pointer(out))
        assert (out == a.astype(np.int64) @ b.astype(np.int64)).all(), (m, n, k)


# --- refusals -----------------------------------------------------------------------------------------------

BAD = {
    "SA-0225": "Tile<TileType::Right, half, 16, 16, BLayout::ColMajor, 16, 16, SLayout::RowMajor> a; Right b; Acc c;",
    "SA-0227": "Left a; TileLeft<half, 16, 16> b; Acc c;",
    "SA-0226": "Left a; Right b; Tile<TileType::Mat, float, 16, 16> c;",
    "SA-0185": "Left a; Right b; TileAcc<int32_t, 16, 16> c;",
}


def test_bad_products_do_not_compile() -> None:
    types = "using Left = TileLeft<half, 16, 16>; using Right = TileRight<half, 16, 16>; using Acc = TileAcc<float, 16, 16>;"
    bodies = [f"{types} {body} TMATMUL(c, a, b);" for body in BAD.values()]
    for code, said in zip(BAD, complaints(["ops/calls.hpp"], bodies, DEFINES["a2a3"]), strict=True):
        assert f"[PTO][{code}]" in said, said[:2000]


def test_every_element_type_of_a_product_is_tried() -> None:
    seen = {str(p.operands["lhs"][0].dtype) for p in some_plans("tmatmul")}
    assert {"f32", "f16", "bf16", "i8", "u8", "f8e4m3", "hif8"} <= seen <= DTYPES.keys()
