"""Compiled kernels against NumPy, as ratios of times measured in the same run, on one thread.

    python bench/bench_cpp.py            # all
    python bench/bench_cpp.py gemm exp   # those whose names contain a word

Kernels are compiled as `pto build` compiles them. A call of ours works on tiles that lie on chip, many
times in a row; NumPy gets the same arrays with `out=`, so neither allocates. The last column is the limit
we set ourselves.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from pto.engine.cpp import compiler

KERNELS = """\
#include <pto/pto-inst.hpp>
using namespace pto;

using Block = Tile<TileType::Vec, float, 128, 128>;
using Column = Tile<TileType::Vec, float, 128, 8, BLayout::RowMajor, 128, 1>;
using Row = Tile<TileType::Vec, float, 1, 128>;
using View = GlobalTensor<float, Shape<1, 1, 1, 128, 128>, Stride<1, 1, 1, 128, 1>>;

#define OPERANDS \\
  Block a, b, c; Column sums; Row tops; \\
  TASSIGN(a, 0x0); TASSIGN(b, 0x10000); TASSIGN(c, 0x20000); \\
  TASSIGN(sums, 0x30000); TASSIGN(tops, 0x32000); \\
  View in0(x), in1(y); TLOAD(a, in0); TLOAD(b, in1)
#define KERNEL(name, call) \\
  extern "C" void tile_##name(float* x, float* y, int times) { \\
    OPERANDS; for (int t = 0; t < times; ++t) { call; } }

KERNEL(add, TADD(c, a, b))
KERNEL(mul, TMUL(c, a, b))
KERNEL(maximum, TMAX(c, a, b))
KERNEL(divide, TDIV(c, a, b))
KERNEL(adds, TADDS(c, a, 2.0f))
KERNEL(exp, TEXP(c, a))
KERNEL(log, TLOG(c, a))
KERNEL(sqrt, TSQRT(c, a))
KERNEL(row_sum, TROWSUM(sums, a, c))
KERNEL(row_max, TROWMAX(sums, a, c))
KERNEL(col_max, TCOLMAX(tops, a))
KERNEL(transpose, TTRANS(c, a, b))

// A long array through tiles: load, load, add, store.
using Long = GlobalTensor<float, Shape<1, 1, 1, 64, 128>, Stride<1, 1, 1, 128, 1>>;
using Strip = Tile<TileType::Vec, float, 64, 128>;
extern "C" void stream(float* x, float* y, float* z, long count) {
  Strip a, b, c;
  TASSIGN(a, 0x0);
  TASSIGN(b, 0x8000);
  TASSIGN(c, 0x10000);
  for (long at = 0; at < count; at += 64 * 128) {
    Long in0(x + at), in1(y + at), out(z + at);
    TLOAD(a, in0);
    TLOAD(b, in1);
    TADD(c, a, b);
    TSTORE(out, c);
  }
}

// 512 x 512 x 512 of f16 into f32, by tiles of 128, with all the moves that a kernel does.
constexpr int T = 128, N = 512;
using Half = GlobalTensor<half, Shape<1, 1, 1, T, T>, Stride<1, 1, 1, N, 1>>;
using Float = GlobalTensor<float, Shape<1, 1, 1, T, T>, Stride<1, 1, 1, N, 1>>;
using Mat = Tile<TileType::Mat, half, T, T, BLayout::ColMajor, T, T, SLayout::RowMajor>;
extern "C" void gemm(half* a, half* b, float* c) {
  Mat ma, mb;
  TileLeft<half, T, T> left;
  TileRight<half, T, T> right;
  TileAcc<float, T, T> acc;
  TASSIGN(ma, 0x0);
  TASSIGN(mb, 0x8000);
  TASSIGN(left, 0x0);
  TASSIGN(right, 0x0);
  TASSIGN(acc, 0x0);
  for (int i = 0; i < N; i += T) {
    for (int j = 0; j < N; j += T) {
      for (int k = 0; k < N; k += T) {
        Half ga(a + i * N + k), gb(b + k * N + j);
        TLOAD(ma, ga);
        TLOAD(mb, gb);
        TMOV(left, ma);
        TMOV(right, mb);
        if (k == 0) {
          TMATMUL(acc, left, right);
        } else {
          TMATMUL_ACC(acc, left, right);
        }
      }
      Float gc(c + i * N + j);
      TSTORE(gc, acc);
    }
  }
}
"""


def compiled(folder: Path) -> tuple[ctypes.CDLL, float]:
    """The kernels, and how long the compiler took."""
    source, made = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(KERNELS)
    found = compiler.find()
    # The launcher hides unused symbols; here every kernel is needed.
    flags = [f for f in found.flags if f != "-fvisibility=hidden"]
    start = time.perf_counter()
    command = [*found.command, *flags, "-shared", f"-I{compiler.include_dir()}", str(source), "-o", str(made)]
    common = compiler.common(found)
    if common is not None:
        command += [compiler.LINKED, common.path]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made)), time.perf_counter() - start


def best(f: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest run: the machine is shared."""
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def pointer(x: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def line(name: str, ours: float, peer: float, limit: float) -> None:
    verdict = "" if ours <= limit * peer else "   over the limit"
    times = f"{ours * 1e6:9.2f} us   numpy {peer * 1e6:9.2f} us"
    print(f"{name:28} {times}   {ours / peer:5.2f} x   (<= {limit}){verdict}")


def in_cache(lib: ctypes.CDLL, wanted: Callable[[str], bool]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.random((128, 128), np.float32) + np.float32(0.5) for _ in range(2))
    z, column, row = np.empty_like(x), np.empty(128, np.float32), np.empty(128, np.float32)
    table: list[tuple[str, str, Callable[[], object], float]] = [
        ("add 128x128 f32", "add", lambda: np.add(x, y, out=z), 1.5),
        ("mul 128x128 f32", "mul", lambda: np.multiply(x, y, out=z), 1.5),
        ("max 128x128 f32", "maximum", lambda: np.maximum(x, y, out=z), 1.5),
        ("div 128x128 f32", "divide", lambda: np.divide(x, y, out=z), 1.5),
        ("add scalar 128x128 f32", "adds", lambda: np.add(x, np.float32(2), out=z), 1.5),
        ("exp 128x128 f32", "exp", lambda: np.exp(x, out=z), 1.5),
        ("log 128x128 f32", "log", lambda: np.log(x, out=z), 2.0),
        ("sqrt 128x128 f32", "sqrt", lambda: np.sqrt(x, out=z), 1.5),
        ("row sum 128x128 f32", "row_sum", lambda: np.sum(x, axis=1, out=column), 2.0),
        ("row max 128x128 f32", "row_max", lambda: np.max(x, axis=1, out=column), 2.0),
        ("column max 128x128 f32", "col_max", lambda: np.max(x, axis=0, out=row), 2.0),
        ("transpose 128x128 f32", "transpose", lambda: np.copyto(z, x.T), 1.5),
    ]
    times = 50
    for name, kernel, peer, limit in table:
        if wanted(name):
            call = getattr(lib, f"tile_{kernel}")
            a, b = pointer(x), pointer(y)
            ours = best(lambda c=call, p=a, q=b: c(p, q, times), 40) / times
            theirs = best(lambda f=peer: [f() for _ in range(times)], 40) / times
            line(name, ours, theirs, limit)


def streaming(lib: ctypes.CDLL) -> None:
    count = 1 << 24
    x, y, z = (np.ones(count, np.float32) for _ in range(3))
    lib.stream.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
    ours = best(lambda: lib.stream(x.ctypes.data, y.ctypes.data, z.ctypes.data, count), 5)
    assert (z == 2).all()
    peer = best(lambda: np.add(x, y, out=z), 5)
    line("load, load, add, store 64 MB", ours, peer, 1.5)
    print(f"{'':28} {3 * 4 * count / ours / 1e9:9.1f} GB/s numpy {3 * 4 * count / peer / 1e9:9.1f} GB/s")


def product(lib: ctypes.CDLL) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    c, d = np.zeros((512, 512), np.float32), np.zeros((512, 512), np.float32)
    ours = best(lambda: lib.gemm(pointer(a), pointer(b), pointer(c)), 30)
    peer = best(lambda: np.matmul(wide_a, wide_b, out=d), 30)
    assert np.allclose(c, d, rtol=1e-3, atol=1e-3)
    line("gemm 512^3 f16 -> f32", ours, peer, 2.0)
    flops = 2 * 512**3
    share = f"{peer / ours:.0%} of its sgemm"
    print(f"{'':28} {flops / ours / 1e9:9.1f} GFLOP/s numpy {flops / peer / 1e9:6.1f} GFLOP/s   {share}")


def main() -> None:
    words = sys.argv[1:]

    def wanted(name: str) -> bool:
        return not words or any(w in name for w in words)

    with tempfile.TemporaryDirectory(prefix="pto-bench-") as folder:
        lib, seconds = compiled(Path(folder))
        print(f"compiled in {seconds:.1f} s")
        in_cache(lib, wanted)
        if wanted("load, load, add, store"):
            streaming(lib)
        if wanted("gemm"):
            product(lib)


if __name__ == "__main__":
    main()
