"""The Python language: what importing, decorating, a first call and a call of something known cost.

    python bench/bench_language.py

Goals are those of the project; nothing fails here. Times of processes are the fastest of several.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pto.language as pl

KERNEL = """
import pto.language as pl

@pl.jit
def k(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [32, 128])
        b = pl.load(y, [0, 0], [32, 128])
{body}
        pl.store(a, [0, 0], out)
    return out
"""


def program(lines: int) -> str:
    """A kernel of so many lines."""
    steps = (
        "a = pl.add(a, b)",
        "b = pl.mul(b, 0.5)",
        "a = pl.exp(pl.mul(a, -0.001))",
        "a = pl.maximum(a, b)",
    )
    return KERNEL.format(body="\n".join(f"        {steps[i % len(steps)]}" for i in range(lines - 8)))


def loaded(text: str, folder: str, name: str) -> object:
    path = Path(folder, f"{name}.py")
    path.write_text(text, encoding="utf-8")
    sys.path.insert(0, folder)
    return __import__(name)


def best(work: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def shown(what: str, seconds: float, goal: float) -> None:
    unit, factor = ("us", 1e6) if goal < 1e-3 else ("ms", 1e3)
    print(
        f"{what:44} {seconds * factor:10.1f} {unit}   <= {goal * factor:.0f} {unit} "
        f"{'met' if seconds <= goal else 'MISSED'}"
    )


def main() -> None:
    python = [sys.executable, "-c"]
    empty = best(lambda: subprocess.run([*python, "pass"], check=True))
    whole = best(lambda: subprocess.run([*python, "import pto.language"], check=True))
    shown("import pto.language, less starting Python", whole - empty, 0.120)
    x = np.ones((32, 128), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        first = loaded(program(30), folder, "first30")
        shown("decoration", best(lambda: pl.jit(first.k.__wrapped__)), 0.001)  # type: ignore[attr-defined]

        def fresh() -> None:
            first.k._cache.clear()  # type: ignore[attr-defined]
            first.k(x, x, np.zeros_like(x))  # type: ignore[attr-defined]

        shown("first call of 30 lines", best(fresh), 0.150)
        out = np.zeros_like(x)
        many = best(lambda: [first.k(x, x, out) for _ in range(100)]) / 100  # type: ignore[attr-defined]
        kernel = first.k.compile(x, x, out).kernels(None)  # type: ignore[attr-defined]
        (launch,) = kernel.values()
        alone = (
            best(lambda: [launch(x.reshape(-1), x.reshape(-1), out.reshape(-1)) for _ in range(100)]) / 100
        )
        shown("call of something known, less its kernel", many - alone, 50e-6)
        for lines, goal in ((125, 0.5), (250, 1.0), (500, 2.0)):
            long = loaded(program(lines), folder, f"long{lines}")
            shown(f"lowering {lines} lines", best(lambda long=long: long.k.lower(x, x, out), 3), goal)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
