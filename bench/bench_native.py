"""Engine native against NumPy and engine cpp, measured in turns in one run, beside the goals of the engine.

    python bench/bench_native.py            # all
    python bench/bench_native.py exp gemm   # lines whose names contain a word

Operations work on tiles that lie on chip, many times in a row, less a launch that does none; NumPy gets the
same arrays with `out=`. What is compared is the fastest of many short runs. Nothing fails here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import native_programs as programs
import numpy as np

import pto
from pto.engine.native.machine import MachineProgram
from pto.image.lower import lowered_image

ARM = os.uname().machine == "aarch64"
ROUNDS = 25
Work = Callable[[], object]


def best(
    works: Sequence[Work], rounds: int = ROUNDS, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the seconds of the fastest run of each. Runs alternate: a slow moment of the machine hits all of
    them. For long runs on one thread, the time is that of the processor: other processes may be at work
    too."""
    times = [float("inf")] * len(works)
    for work in works:
        work()
    for _ in range(rounds):
        for n, work in enumerate(works):
            start = clock()
            work()
            times[n] = min(times[n], clock() - start)
    return times


class Table:
    """Lines as they are measured: ours, the peers, our share of NumPy's time, the goal."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.missed = 0
        print(f"{'':32} {'native':>10} {'numpy':>10} {'cpp':>10}   {'/ numpy':>7}  goal")

    def wants(self, name: str) -> bool:
        return not self.words or any(w in name for w in self.words)

    def line(
        self, name: str, ours: float, goal: float, peer: float = 0.0, cpp: float = 0.0, within: float = 0.0
    ) -> None:
        """`goal` is a share of the peer's time; `within` are seconds."""
        met = ours <= within if within else ours <= goal * peer
        self.missed += not met
        share = f"{ours / peer:7.2f}" if peer else f"{'':7}"
        aim = f"<= {shown(within).strip()}" if within else f"<= {goal:.2f}"
        shares = " ".join(shown(t) if t else f"{'':10}" for t in (ours, peer, cpp))
        print(f"{name:32} {shares}   {share}  {aim:10} {'met' if met else 'MISSED'}", flush=True)


def shown(seconds: float) -> str:
    for unit, factor in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:7.2f} {unit}"
    return f"{seconds:7.2f} s "


def both(text: str) -> list[Any]:
    """A program on engine native and on engine cpp."""
    return [pto.kernel(pto.parse(text), engine=name) for name in ("native", "cpp")]


def per_step(
    text: str, args: Sequence[Any], times: int, peer: Work | None = None, rounds: int = ROUNDS
) -> list[float]:
    """Seconds of one step of a loop: native, cpp, NumPy."""
    kernels = both(text)
    works: list[Work] = [lambda k=k, n=n: k.run(*args, n) for k in kernels for n in (times, 0)]
    if peer is not None:
        works.append(lambda: [peer() for _ in range(times)])
    found = best(works, rounds)
    return [(found[0] - found[1]) / times, (found[2] - found[3]) / times, found[-1] / times]


# -- from text to result ------------------------------------------------------------------------------------


def first_result(table: Table) -> None:
    """A kernel of 100 tile operations without addresses: planned and synchronised, too. What it calls has
    been found before, as it is with the pack of the package."""
    text = programs.of_operations(100)
    x, y, z = (np.ones((16, 64), np.float32) for _ in range(3))
    kernel = pto.kernel(pto.parse(text), engine="native")

    def first() -> None:
        pto.kernel(pto.parse(text), engine="native")(x, y, z)

    done = kernel.lowered("always")
    roles = {kind: done.module.functions[0] for kind, _, _ in kernel.roles}

    def image() -> None:
        MachineProgram(lowered_image("k", done.module, done.profile, roles.items()), done.profile)

    whole, parsed, made, called = best([first, lambda: pto.parse(text), image, lambda: kernel(x, y, z)], 15)
    table.line("first result, 100 operations", whole, 0, within=25e-3)
    table.line("  parsing alone", parsed, 0, within=4e-3)
    table.line("  image alone", made, 0, within=3e-3)
    table.line("  called again", called, 0, within=1e-3)


def launch(table: Table) -> None:
    empty = programs.kernel(", ".join(f"%{p}: !pto.ptr<f32>" for p in "xyz"), {}, [])
    x, y, z = (np.ones((16, 64), np.float32) for _ in range(3))
    times = 200
    native, cpp = best([lambda k=k: [k(x, y, z) for _ in range(times)] for k in both(empty)])
    table.line("launch", native / times, 0, cpp=cpp / times, within=5e-6)


def operations(table: Table) -> None:
    count, times = 50, 4000
    native, cpp, _ = per_step(programs.of_scalars(count), [np.zeros(1, np.int32)], times)
    table.line("operation on numbers", native / count, 0, cpp=cpp / count, within=5e-9)
    native, cpp, _ = per_step(programs.of_registers(count), [], times // 2)
    table.line("vector instruction, 64 lanes", native / count, 0, cpp=cpp / count, within=40e-9)


def start(table: Table) -> None:
    """Compare a process that runs a kernel with one that imports NumPy, in processor time. Python may keep
    compiled modules: otherwise every run of a fresh checkout would compile all of them."""
    example = Path(__file__).parents[1] / "examples" / "01_vec_add.pto"
    tool = str(Path(sys.executable).with_name("pto"))
    ours = [tool, "run", str(example), "--engine", "native", "--", *["f32:64x128"] * 3]
    peer = [sys.executable, "-c", "import numpy"]
    took = {0: float("inf"), 1: float("inf")}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for n, command in [*enumerate((ours, peer))] * 8:
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        after = os.times()
        spent = sum(after[2:4]) - sum(before[2:4])
        took[n] = min(took[n], spent)
    table.line("pto run, against import numpy", took[0], 2.5, took[1])


# -- tiles --------------------------------------------------------------------------------------------------


def tiles(table: Table) -> None:
    rng = np.random.default_rng(0)
    exact = 0.6 if ARM else 1.3
    column = np.empty(128, np.float32)
    one: dict[str, tuple[str, str, Callable[..., object], float]] = {
        "add": ("tadd", "a b", np.add, 0.8),
        "sub": ("tsub", "a b", np.subtract, 0.8),
        "mul": ("tmul", "a b", np.multiply, 0.8),
        "max": ("tmax", "a b", np.maximum, 0.8),
        "add scalar": ("tadds", "a two", lambda x, _, out: np.add(x, np.float32(2), out=out), 0.8),
        "exp": ("texp", "a", lambda x, _, out: np.exp(x, out=out), exact),
        "log": ("tlog", "a", lambda x, _, out: np.log(x, out=out), exact),
        "row sum": ("trowsum", "a c", lambda x, _, out: np.sum(x, axis=1, out=column), 0.4),
        "row max": ("trowmax", "a c", lambda x, _, out: np.max(x, axis=1, out=column), 0.4),
        "transpose": ("ttrans", "a b", lambda x, _, out: np.copyto(out, x.T), 0.8),
    }
    small = ("add", "mul", "max", "add scalar")
    cases = [(name, (128, 128), "f32", one[name][3]) for name in one]
    cases += [(name, (16, 64), "f32", 0.3) for name in small]
    cases += [(name, (128, 128), "f16", 0.1) for name in ("add", "sub", "mul")]
    for what, shape, dtype, goal in cases:
        name = f"{what} {shape[0]}x{shape[1]} {dtype}"
        if not table.wants(name):
            continue
        call, ins, peer, _ = one[what]
        x, y = (
            (rng.random(shape, np.float32) + np.float32(0.5)).astype(np.dtype(f"f{int(dtype[1:]) // 8}"))
            for _ in "xy"
        )
        z = np.empty_like(x)
        text = programs.in_tiles([(call, ins, "s" if "row" in what else "c")], shape, dtype)
        native, cpp, numpy = per_step(
            text, [x, y, z], 50 if shape[0] > 16 else 500, lambda p=peer, x=x, y=y, z=z: p(x, y, out=z)
        )
        table.line(name, native, goal, numpy, cpp)


def softmax(table: Table) -> None:
    x = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    z, top, total = np.empty_like(x), np.empty((64, 1), np.float32), np.empty((64, 1), np.float32)

    def peer() -> None:
        np.max(x, axis=1, keepdims=True, out=top)
        np.subtract(x, top, out=z)
        np.exp(z, out=z)
        np.sum(z, axis=1, keepdims=True, out=total)
        np.divide(z, total, out=z)

    calls = [
        ("trowmax", "a b", "s"), ("trowexpandsub", "a s", "c"), ("texp", "c", "c"), ("trowsum", "c b", "u"),
        ("trowexpanddiv", "c u", "c"),
    ]  # fmt: skip
    text = programs.in_tiles(calls, (64, 512))
    native, cpp, numpy = per_step(text, [x, x, z.copy()], 10, peer)
    table.line("softmax 64x512 f32", native, 0.6, numpy, cpp)


# -- products and memory ------------------------------------------------------------------------------------


def product(table: Table) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))
    wide_a, wide_b, c = a.astype(np.float32), b.astype(np.float32), np.zeros((128, 128), np.float32)
    d = np.zeros_like(c)
    native, cpp, numpy = per_step(programs.product(), [a, b, c], 10, lambda: np.matmul(wide_a, wide_b, out=d))
    table.line("tmatmul 128^3 f16 -> f32", native, 1 / 1.1, numpy, cpp)


def gemm(table: Table) -> None:
    size = 1024
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    wide_a, wide_b, c = a.astype(np.float32), b.astype(np.float32), np.zeros((size, size), np.float32)
    d = np.zeros_like(c)
    kernels = both(Path(__file__).with_name("gemm.pto").read_text())
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            parts = [slice(n * size // threads, (n + 1) * size // threads) for n in range(threads)]

            def peer(parts: list[slice] = parts, pool: ThreadPoolExecutor = pool) -> None:
                list(pool.map(lambda p: np.matmul(wide_a[p], wide_b, out=d[p]), parts))

            works: list[Work] = [
                lambda k=k, t=threads: k(a, b, c, size, size, size, blocks=8, threads=t) for k in kernels
            ]
            clock = time.process_time if threads == 1 else time.perf_counter
            native, cpp, numpy = best([*works, peer], 8, clock)
        name = f"gemm 1024^3 f16 -> f32, {threads} thread{'s' * (threads > 1)}"
        table.line(name, native, 1 / 0.85, numpy, cpp)
    assert np.allclose(c, d, rtol=1e-3, atol=1e-2)


def attention(table: Table) -> None:
    length, dim = 1024, 128
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((length, dim)).astype(np.float16) for _ in range(3))
    scale, blocks = dim**-0.5, 1
    slots = blocks, 32768
    fifos = [np.zeros(slots, t) for t in (np.float32, np.float16, np.float32)]
    o = np.zeros((length, dim), np.float32)
    wide = [x.astype(np.float32) for x in (q, k, v)]
    scores = np.empty((length, length), np.float32)

    def peer() -> Any:
        np.matmul(wide[0], wide[1].T, out=scores)
        np.multiply(scores, np.float32(scale), out=scores)
        np.subtract(scores, scores.max(axis=1, keepdims=True), out=scores)
        np.exp(scores, out=scores)
        np.divide(scores, scores.sum(axis=1, keepdims=True), out=scores)
        return scores @ wide[2]

    works: list[Work] = [
        lambda k_=kernel: k_(q, k, v, o, *fifos, length, scale, blocks=blocks, threads=1)
        for kernel in both(Path(__file__).with_name("flash_attention.pto").read_text())
    ]
    native, cpp, numpy = best([*works, peer], 8, time.process_time)
    assert np.allclose(o, peer(), rtol=1e-2, atol=1e-2)
    table.line("flash attention 1024x128", native, 1, numpy, cpp)


def stream(table: Table) -> None:
    rows = 1 << 17  # of 128: 64 MB an array
    x, y, z = (np.ones((rows, 128), np.float32) for _ in range(3))
    works: list[Work] = [lambda k=k: k(x, y, z, rows) for k in both(programs.stream())]
    native, cpp, numpy = best([*works, lambda: np.add(x, y, out=z)], 8, time.process_time)
    assert (z == 2).all()
    table.line("load, load, add, store 64 MB", native, 1 / 0.6, numpy, cpp)


PARTS: tuple[tuple[str, Callable[[Table], None]], ...] = (
    ("first result, 100 operations", first_result),
    ("launch", launch),
    ("operation on numbers, vector instruction", operations),
    ("pto run, import numpy, start", start),
    ("", tiles),
    ("softmax 64x512 f32", softmax),
    ("tmatmul 128^3 f16 -> f32", product),
    ("gemm 1024^3 f16 -> f32", gemm),
    ("flash attention 1024x128", attention),
    ("load, load, add, store 64 MB, stream", stream),
)


def main() -> None:
    table = Table(sys.argv[1:])
    for name, part in PARTS:
        if not name or table.wants(name):
            part(table)
    print(f"{table.missed} goals missed" if table.missed else "all goals met")


if __name__ == "__main__":
    main()
