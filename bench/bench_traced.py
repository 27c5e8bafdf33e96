"""C++ under watch: how long a traced kernel takes, and its compilation, as ratios against the plain ones.

python bench/bench_traced.py
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pto
from pto.diag import Source
from pto.engine.cpp import handwritten
from pto.engine.traced.kernel import TracedKernel
from pto.isa.profiles import profile

#: Six instructions on tiles of 64x128, again and again.
KERNEL = """\
#include "pto/pto-inst.hpp"
using namespace pto;
constexpr int kRows = 64, kCols = 128, kCount = kRows * kCols, kBytes = kCount * 4;
__global__ AICORE void many(__gm__ float* a, __gm__ float* c, int32_t n) {
  using Matrix = GlobalTensor<float, Shape<1, 1, 1, kRows, kCols>, Stride<kCount, kCount, kCount, kCols, 1>>;
  using Part = Tile<TileType::Vec, float, kRows, kCols>;
  Matrix ga(a), gc(c);
  Part x, y, z;
  TASSIGN(x, 0);
  TASSIGN(y, kBytes);
  TASSIGN(z, 2 * kBytes);
  for (int i = 0; i < n; ++i) {
    TLOAD(x, ga);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADD(y, x, x);
    pipe_barrier(PIPE_V);
    TMUL(z, y, x);
    pipe_barrier(PIPE_V);
    TEXP(y, z);
    pipe_barrier(PIPE_V);
    TADDS(z, y, 1.0f);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gc, z);
    pipe_barrier(PIPE_ALL);
  }
}
"""
INSTRUCTIONS = 6


def best(run: Callable[[], object], times: int = 3) -> float:
    found = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - started)
    return found


def compiled(source: Source, traced: bool) -> float:
    """Processor seconds of a compilation."""
    entries, _ = handwritten.entries(source, None)
    found = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        with tempfile.TemporaryDirectory() as work:
            built = handwritten.library(source, entries, profile("a2a3"), False, False, work, traced)
        assert built.ok, built.output
        found = min(found, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.cpp")
        path.write_text(KERNEL, encoding="utf-8")
        plain, traced = pto.kernel(str(path)), TracedKernel(str(path))
        a = np.full((64, 128), 0.01, np.float32)
        c = np.zeros_like(a)
        print(f"{'instructions':>12}{'plain, us each':>16}{'traced':>9}{'race':>9}{'all':>9}")
        for n in (100, 400, 1600):
            base = best(lambda n=n: plain(a, c, n))
            row = [best(lambda n=n, s=s: traced.run(a, c, n, sanitize=s)) / base for s in ((), "race", "all")]
            shown = "".join(f"{ratio:>8.1f}x" for ratio in row)
            print(f"{n * INSTRUCTIONS:>12}{base / n / INSTRUCTIONS * 1e6:>16.1f}{shown}")
        source = Source(str(path), KERNEL)
        once, again = compiled(source, False), compiled(source, True)
        print(f"compilation: plain {once:.2f} s, traced {again:.2f} s, {again / once:.2f}x")


if __name__ == "__main__":
    main()
