"""The functions of core/math.hpp: near enough to the true ones, C's special values, the same bits however they
are compiled, and loops over them that become vector code under the flags of kernels."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto import _native
from pto.engine import elements, functions
from pto.isa.meaning import OPERATIONS

from .instructions import COMPILER, INCLUDE

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
Array = np.ndarray[Any, Any]
F32, F64 = np.float32, np.float64

#: Every so many floats.
STEP = 9973
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 1.5, -2.5, 2.0**23, 2.0**24 + 2, -(2.0**23) - 1, 2.0**-149,
         -(2.0**-149), 2.0**-126, 3.4028234663852886e38, -3.4028234663852886e38, 88.72283, 88.72284, -87.33655, -103.97,
         -103.98, -104.5, 127.0, 128.0, -126.0, -149.0, -150.0, np.inf, -np.inf, np.nan, 0.99999994, 1.0000001]  # fmt: skip
UNARY = ("exp", "exp2", "log", "log2", "tanh", "sin", "cos", "erf")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def sample() -> Array:
    """Floats of all sizes, and the edges."""
    bits = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(F32), np.array(EDGES, F32)])


def distance(got: Array, true: Array) -> float:
    """The largest distance from f64 values, in units in the last place of an f32; special values have to be equal."""
    near = true.astype(F32)
    special = ~np.isfinite(near) | (true == 0)
    assert np.array_equal(got[special], near[special], equal_nan=True)
    assert (np.signbit(got) == np.signbit(near))[special & ~np.isnan(near)].all()
    unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(true[~special]))[1], -125) - 24)
    return float((np.abs(got[~special].astype(F64) - true[~special]) / unit).max())


def test_functions_of_floats_are_near_the_true_ones() -> None:
    x = sample()
    for name, got in (("exp", functions.exp(x)), ("log", functions.log(x))):
        assert distance(got, getattr(np, name)(x.astype(F64))) <= 0.5 + 1e-6 <= OPERATIONS[name].error + 1e-6
    rng = np.random.default_rng(1)
    a, b = np.repeat(np.array(EDGES, F32), len(EDGES)), np.tile(np.array(EDGES, F32), len(EDGES))
    base = np.exp2(rng.uniform(-4, 4, 50000)).astype(F32)
    power = (rng.uniform(-150, 150, 50000) / np.log2(base)).astype(F32)
    a, b = np.concatenate([a, x[:-1], base, -base]), np.concatenate([b, x[1:], power, np.rint(power)])
    assert distance(functions.power(a, b), np.power(a.astype(F64), b.astype(F64))) <= OPERATIONS["pow"].error


def test_powers_halfway_between_two_elements() -> None:
    """They are exact before they are rounded: squares of f32 numbers, cubes of all bf16 numbers."""
    odd = np.concatenate([np.arange(4097, 5793, 2).astype(F32), sample()])
    squares = (odd.astype(F64) ** 2).astype(F32)
    assert np.array_equal(functions.power(odd, F32(2)), squares, equal_nan=True)
    x = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(ml_dtypes.bfloat16).astype(F32)
    x = x[(np.abs(x) > 2.0**-40) & (np.abs(x) < 2.0**40)]
    cubes = x.astype(F64) * x * x
    assert np.array_equal(functions.power(x, F32(3), True), cubes)
    assert np.array_equal(
        elements.encode("bf16", cubes), elements.encode("bf16", functions.power(x, F32(3), True))
    )


def test_short_elements_are_the_nearest_ones() -> None:
    """All f16 and bf16 numbers, where they are rounded once."""
    codes = np.arange(2**16, dtype=np.uint32).astype(np.uint16)
    for dtype, kind in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        x = codes.view(kind).astype(F32)
        for name, function in (("exp", functions.exp), ("log", functions.log)):
            true = getattr(np, name)(x.astype(F64))
            assert np.array_equal(elements.encode(dtype, function(x, True)), elements.encode(dtype, true)), (
                dtype,
                name,
            )


#: Largest and smallest arguments for which the library of this machine is a truth, and where it has to be near.
RANGES = {"exp": (-700, 700), "exp2": (-1000, 1000), "log": (0, 1e300), "log2": (0, 1e300), "tanh": (-20, 20),
          "sin": (-1e15, 1e15), "cos": (-1e15, 1e15)}  # fmt: skip


def test_functions_of_doubles() -> None:
    """Against wider ones of the library, where it has such; else its own are good to two units or so."""
    rng = np.random.default_rng(2)
    bound = 0.501 if np.finfo(np.longdouble).nmant > 60 else 3
    for name, (low, high) in RANGES.items():
        x = np.concatenate(
            [rng.uniform(low, high, 100), np.abs(rng.normal(size=100)), 1 + rng.normal(size=40) * 1e-9]
        )
        got = np.array([_native.number(name, v) for v in x.tolist()])
        true = getattr(np, name)(x.astype(np.longdouble))
        units = np.abs(got - true) / np.spacing(np.abs(true.astype(F64)))
        assert float(units.max()) <= bound, name
    assert _native.number("sin", 2.0**1000) == pytest.approx(-0.15920170308624246, rel=1e-15)
    # erf(1) and others, from tables
    for x, want in (
        (1.0, 0.8427007929497149),
        (0.25, 0.27632639016823696),
        (3.0, 0.9999779095030014),
        (6.0, 1.0),
    ):
        assert _native.number("erf", x) == want and _native.number("erf", -x) == -want
    for name, value, want in (("log", 0.0, -np.inf), ("log2", 8.0, 3.0), ("exp2", -1074.0, 2.0**-1074), ("exp", 710.0, np.inf),
                              ("tanh", 1e-300, 1e-300), ("cos", 0.0, 1.0), ("exp", -746.0, 0.0)):  # fmt: skip
        assert _native.number(name, value) == want, name
    for name in UNARY:
        assert np.isnan(_native.number(name, np.nan)) and np.isnan(
            _native.number(name, np.nan, single=True)
        ), name
    # Exact powers, and one that lies halfway between two doubles.
    x, y = (
        np.array([3.0, -3.0, 7.0, 824432008.0, 10.0, 2.0]),
        np.array([33.0, 33.0, -1.0, 2.0, 22.0, -1074.0]),
    )
    want = [3.0**33, -(3.0**33), 1 / 7, 679688135814912064.0, 1e22, 2.0**-1074]
    assert functions.power_f64(x, y).tolist() == want
    a, b = np.repeat(np.array(EDGES), len(EDGES)), np.tile(np.array(EDGES), len(EDGES))
    got, want = functions.power_f64(a, b), np.power(a, b)
    assert (
        np.allclose(got, want, rtol=3e-16, atol=0, equal_nan=True) and (np.isinf(got) == np.isinf(want)).all()
    )
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


SOURCE = """\
#include "pto/core/math.hpp"
namespace m = pto::detail::math;
#define ONE(name) \\
  extern "C" void name(const double* x, const double*, float* f, double* d, int n) { \\
    for (int i = 0; i < n; ++i) f[i] = m::name((float)x[i]), d[i] = m::name(x[i]); }
ONE(exp) ONE(exp2) ONE(log) ONE(log2) ONE(tanh) ONE(sin) ONE(cos) ONE(erf)
extern "C" void pow(const double* x, const double* y, float* f, double* d, int n) {
  for (int i = 0; i < n; ++i) f[i] = m::pow((float)x[i], (float)y[i]), d[i] = m::pow(x[i], y[i]); }
"""


@needs_compiler
def test_no_option_changes_a_bit(tmp_path: Path) -> None:
    """Not optimised, and with products fused into sums wherever a compiler may."""
    source, library = tmp_path / "math.cpp", tmp_path / "math.so"
    source.write_text(SOURCE)
    compiled(source, library, "-O0", "-ffp-contract=fast", "-shared", "-fPIC", "-fno-builtin")
    made = ctypes.CDLL(str(library))
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [EDGES, rng.normal(size=1500) * 10, rng.integers(0, 2**32, 500).astype(np.uint32).view(F32)]
    )
    y = np.concatenate([EDGES[::-1], rng.normal(size=2000) * 3])
    single, wide = np.zeros(x.size, F32), np.zeros(x.size)
    for name in (*UNARY, "pow"):
        getattr(made, name)(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, single, wide)), x.size)
        for got, kind in ((single, True), (wide, False)):
            want = [_native.number(name, a, b, kind) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
            assert np.array_equal(got, np.array(want, got.dtype), equal_nan=True), (name, kind)
        if name in ("exp", "log"):  # the loops
            assert np.array_equal(single, getattr(functions, name)(x.astype(F32)), equal_nan=True)
        if name == "pow":
            assert np.array_equal(single, functions.power(x.astype(F32), y.astype(F32)), equal_nan=True)


MANY = """\
#include "pto/core/vector_math.hpp"
#ifdef PTO_VECTOR_MATH
extern "C" long exp_many(long n, float* out, const float* in) { return pto::detail::math::exp_many(n, out, in); }
extern "C" long log_many(long n, float* out, const float* in) { return pto::detail::math::log_many(n, out, in); }
#endif
"""


@needs_compiler
def test_vectors_by_hand_have_the_same_bits(tmp_path: Path) -> None:
    """Floats of all sizes, and all between 1 and 2: of these a logarithm has all the parts that it looks up."""
    source, library = tmp_path / "many.cpp", tmp_path / "many.so"
    source.write_text(MANY)
    compiled(source, library, "-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
    made = ctypes.CDLL(str(library))
    if not hasattr(made, "exp_many"):
        pytest.skip("this processor has none")
    for x in (sample(), np.arange(0x3F800000, 0x40000000, dtype=np.uint32).view(F32)):
        for name in ("exp", "log"):
            got = np.zeros(x.size, F32)
            done = getattr(made, f"{name}_many")(
                ctypes.c_long(x.size), *(ctypes.c_void_p(a.ctypes.data) for a in (got, x))
            )
            want = getattr(functions, name)(x)
            assert x.size - 16 < done <= x.size
            assert np.array_equal(got[:done].view(np.uint32), want[:done].view(np.uint32)), name


LOOPS = """\
#include "pto/core/math.hpp"
#define LOOP(name, call) extern "C" void name(float* __restrict out, const float* a, const float* b, int n) { \\
  for (int i = 0; i < n; ++i) out[i] = pto::detail::math::call; }
"""
CALLS = ("exp(a[i])", "log(a[i])", "sqrt(a[i])", "rsqrt(a[i])", "pow(a[i], b[i])")


@needs_compiler
def test_loops_become_vector_code(tmp_path: Path) -> None:
    if COMPILER is None or "g++" not in COMPILER:
        pytest.skip("asks g++ what it vectorised")
    source = tmp_path / "loops.cpp"
    head = LOOPS.count("\n")
    source.write_text(LOOPS + "".join(f"LOOP(f{k}, {call})\n" for k, call in enumerate(CALLS)))
    machine = ("-march=haswell",) if platform.machine() == "x86_64" else ()
    flags = ("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fno-math-errno", "-fno-trapping-math")
    said = compiled(source, tmp_path / "loops.o", *flags, *machine, "-c", "-fopt-info-vec")
    for k, call in enumerate(CALLS):
        assert f"loops.cpp:{head + k + 1}:" in said, f"{call}: {said}"


def compiled(source: Path, target: Path, *flags: str) -> str:
    """Compile; return the messages of the compiler."""
    assert COMPILER is not None
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", *flags, f"-I{INCLUDE}"]
    done = subprocess.run(
        [*command, str(source), "-o", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    return done.stderr
