"""Cost of sanitizers: a checked launch on engine native and on the reference engine, as multiples of a plain
launch on engine native, all in one run, on one thread: times are those of the processor.

    python bench/bench_sanitizers.py           # all
    python bench/bench_sanitizers.py gemm add  # lines whose names contain a word

Engine native repeats a launch on the reference engine where its screens cannot decide; `by` names the engine
that decided. Goals: race <= 4x and all <= 8x for tile kernels, all <= 25x for kernels of vector registers.
The lines `python` are whole calls of programs of the Python language.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np

import pto

EXAMPLES = Path(__file__).parents[1] / "examples"
RNG = np.random.default_rng(1)


def _f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def _gemm() -> list[Any]:
    a, b = (RNG.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((512, 512), np.float32), 512, 512, 512]


def _add(n: int) -> list[Any]:
    return [_f32(n), _f32(n), np.zeros(n, np.float32), n]


def _softmax() -> list[Any]:
    return [_f32(256, 512), np.zeros((256, 512), np.float32), 256]


def _registers() -> list[Any]:
    return [_f32(16, 512), np.zeros((16, 512), np.float32), 16, 512]


def _python_add() -> list[Any]:
    return [_f32(64, 128), _f32(64, 128), np.zeros((64, 128), np.float32)]


def _python_gemm() -> list[Any]:
    a, b = RNG.standard_normal((256, 320)), RNG.standard_normal((320, 192))
    return [a.astype(np.float16), b.astype(np.float16), np.zeros((256, 192), np.float32)]


#: Name, program, arguments, blocks, goals of race and all.
LINES: tuple[tuple[str, str, Callable[[], list[Any]], int, float, float], ...] = (
    ("gemm 512^3 f16 -> f32", "kernels/gemm.pto", _gemm, 4, 4, 8),
    ("add of 20480 f32", "kernels/vector_add.pto", lambda: _add(20480), 3, 4, 8),
    ("add of 2^20 f32", "kernels/vector_add.pto", lambda: _add(1 << 20), 4, 4, 8),
    ("softmax 256x512, tiles", "kernels/softmax.pto", _softmax, 4, 4, 8),
    ("softmax 16x512, registers", "micro/softmax.pto", _registers, 1, 25, 25),
    ("python: add of 64x128", "python/01_vector_add.py vector_add", _python_add, 1, 8, 8),
    ("python: gemm, 12 tasks", "python/03_gemm.py gemm", _python_gemm, 1, 8, 8),
)


def seconds(work: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


#: Runs a program with a selection of sanitizers, on the default or on the reference engine; returns the
#: engine that decided.
Run = Callable[[str, bool], str]


def runs(file: str, args: list[Any], blocks: int) -> tuple[Callable[[], object], Run]:
    """Return a plain run of a program, and its runs under sanitizers."""
    if " " in file:
        path, name = file.split()
        function = run_path(str(EXAMPLES / path))[name]

        def call(names: str, reference: bool) -> str:
            result = function.run(*args, sanitize=names, **({"engine": "reference"} if reference else {}))
            return min(left.engine for left in result.launches)

        return lambda: function(*args), call
    kernel, oracle = pto.kernel(EXAMPLES / file), pto.kernel(EXAMPLES / file, engine="reference")

    def launch(names: str, reference: bool) -> str:
        return (oracle if reference else kernel).run(*args, blocks=blocks, sanitize=names).engine

    return partial(kernel.run, *args, blocks=blocks), launch


def measured(file: str, args: list[Any], blocks: int) -> tuple[float, list[float], str, float]:
    """Return the seconds of a plain launch; the costs of race and all, with the engine that decided; and the
    cost of all on the reference engine."""
    run, checked = runs(file, args, blocks)
    plain = seconds(run, 25)
    by = checked("all", False)
    rounds = 15 if by == "native" else 1
    costs = [seconds(lambda names=names: checked(names, False), rounds) / plain for names in ("race", "all")]
    return plain, costs, by, seconds(lambda: checked("all", True), 1) / plain


def main() -> None:
    words = sys.argv[1:]
    print(f"{'':28} {'plain':>9} {'race':>8} {'all':>8}  by         {'all, reference':>14}   goals")
    for name, file, make, blocks, race, every in LINES:
        if words and not any(word in name for word in words):
            continue
        plain, costs, by, today = measured(file, make(), blocks)
        met = "met" if costs[0] <= race and costs[1] <= every else "MISSED"
        print(
            f"{name:28} {plain * 1e6:6.0f} us {costs[0]:7.1f}x {costs[1]:7.1f}x  {by:10} {today:13.0f}x"
            f"   <= {race:.0f}x, <= {every:.0f}x  {met}",
            flush=True,
        )


if __name__ == "__main__":
    main()
