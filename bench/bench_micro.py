"""Speed of the micro level on the reference engine: vector, predicate and cube micro-instructions, a softmax.

    python bench/bench_micro.py                # all
    python bench/bench_micro.py vadd vlds      # some instructions only
    python bench/bench_micro.py --softmax      # the kernel only

An instruction is timed in a loop of its smallest program, less the same loop without it. Times are those of
the processor: the machine is shared. Nothing fails here; limits are printed beside what was measured.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait count as work

import numpy as np

import pto
from pto import isa
from pto.diag import DiagnosticError
from pto.engine.launch import Kernel, kernel
from pto.ir.builder import Builder
from pto.ir.core import Block, Module, Operation, Region, replace_uses
from pto.ir.types import INDEX, PtrType, ScalarType
from pto.isa import row as find_row
from pto.isa.row import Row
from pto.witness.plan import Plan, plans
from pto.witness.programs import build

LIMIT = 30e-6  # of a vector instruction
SOFTMAX = 3.0  # seconds for 64 Ki elements
SETS = ("vector", "predicate", "cube")
FOUR_LISTS = 0xF01  # one merge of four lists, for vmrgsort4
I64 = ScalarType("i64")

MICRO = Path(__file__).parents[1] / "examples" / "micro"


def instructions(names: list[str]) -> None:
    found: list[tuple[float, str]] = []
    missing: list[str] = []
    for row in isa.rows():
        if (row.set in SETS and not names) or row.name in names:
            made = measure(row)
            if isinstance(made, str):
                missing.append(f"{row.name} ({made})")
            else:
                found.append((made, row.name))
    found.sort(reverse=True)
    slow = sum(seconds > LIMIT for seconds, _ in found)  # cube instructions multiply whole matrices
    print(f"{len(found)} instructions, {slow} over {LIMIT * 1e6:.0f} us")
    for seconds, name in found:
        over = f"  {seconds / LIMIT:.1f} x the limit" if seconds > LIMIT else ""
        print(f"{seconds * 1e6:8.1f} us  {name}{over}")
    if missing:
        print(f"not measured: {', '.join(missing)}")


def measure(row: Row) -> float | str:
    """Seconds of one instruction, or why there are none."""
    why = "no legal instance"
    for made in plans(row, "a5" if "a5" in row.isas else row.isas[0]):
        for apart, number in ((True, 0), (True, 1), (False, 0), (True, FOUR_LISTS)):
            try:
                loop, empty = (repeated(made, body, apart) for body in (True, False))
                launch(loop, number, 1)
            except DiagnosticError as e:
                why = e.diagnostics[0].message
            else:
                return per_step(loop, empty, number)
    return why


def per_step(loop: Kernel, empty: Kernel, number: int) -> float:
    """Seconds of one step of a loop, less those of an empty one; the best of several runs."""
    count = 1
    while (took := clock(lambda n=count: launch(loop, number, n))) < 0.01 and count < 1 << 14:
        count = max(2 * count, int(count * 0.012 / max(took, 1e-4)))
    full, rest = (min(clock(lambda k=k: launch(k, number, count)) for _ in range(5)) for k in (loop, empty))
    return max(0.0, full - rest) / count


def launch(k: Kernel, number: int, count: int) -> None:
    args: list[Any] = []
    for param in k.args[:-1]:
        t = param.type
        if isinstance(t, PtrType):
            args.append(np.zeros(1 << 16, np.uint8))
        else:
            args.append(1.0 if isinstance(t, ScalarType) and t.is_float else number)
    result = k.run(*args, count)
    if not result.ok:
        raise DiagnosticError(result.diagnostics)


def clock(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def repeated(made: Plan, body: bool, apart: bool) -> Kernel:
    """The smallest program of an instruction with a loop around it; its last argument is how often. Its
    pointers lead to different places, or to one."""
    module = build(made)
    function = module.functions[-1]
    entry = function.regions[0].blocks[0]
    op = next(o for o in function.walk() if o.row is not None and o.row.name == made.row.name)
    _place_pointers(entry, function, apart)
    times = entry.add_arg(INDEX, "times")
    _loop(op, times, body)
    _signature(module, function, entry)
    return kernel(module, str(function.attr("sym_name")), target=made.isa, check=False)  # type: ignore[return-value]


def _place_pointers(entry: Block, function: Operation, apart: bool) -> None:
    """On-chip pointers are no arguments of a launch: each gets an address of its own."""
    region = function.regions[0]
    kept: list[Any] = []
    at: dict[str, int] = {}
    for arg in entry.args:
        if isinstance(arg.type, PtrType) and arg.type.space != "gm":
            scratch = Block()
            b = Builder(scratch)
            made = b.op("pto.castptr", [arg.type], addr=b.constant(at.get(arg.type.space, 0), I64)).result
            made.name = arg.name
            for n, new in enumerate(scratch.ops):
                new.parent = entry
                entry.ops.insert(n, new)
            replace_uses(region, arg, made)
            if apart:
                at[arg.type.space] = at.get(arg.type.space, 0) + (8192 if arg.type.space == "ub" else 1024)
        else:
            kept.append(arg)
    entry.args[:] = kept
    for n, arg in enumerate(entry.args):
        arg.index = n


def _loop(op: Operation, times: Any, body: bool) -> None:
    block = op.parent
    assert block is not None
    scratch = Block()
    b = Builder(scratch)
    loop = b.op("scf.for", lb=b.constant(0), ub=times, step=b.constant(1))
    region = Region(loop)
    inner = region.add_block()
    inner.add_arg(INDEX, "i")
    loop.regions = [region]
    at = block.ops.index(op)
    block.ops[at : at + 1] = scratch.ops
    for new in scratch.ops:
        new.parent = block
    if body:
        inner.append(op)
    inner.append(Operation("scf.yield", find_row("scf.yield"), [], segments=(0,)))


def _signature(module: Module, function: Operation, entry: Block) -> None:
    from pto.ir.attrs import TypeAttr

    signature = function.attrs["function_type"].value.replace(inputs=tuple(a.type for a in entry.args))
    function.attrs["function_type"] = TypeAttr(signature)


def softmax() -> None:
    """64 Ki elements in 64 rows, written in vector instructions; and what longer rows take in memory."""
    k = pto.kernel(pto.parse(MICRO / "softmax.pto"))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 1024)).astype(np.float32)
    y = np.zeros_like(x)
    seconds = min(clock(lambda: k(x, y, 64, 1024)) for _ in range(3))
    print(f"softmax of 64 Ki elements: {seconds:.2f} s (limit {SOFTMAX:.0f} s)")
    start = time.perf_counter()
    e = np.exp(x - x.max(axis=1, keepdims=True))
    want = e / e.sum(axis=1, keepdims=True)
    numpy = time.perf_counter() - start
    print(f"  {seconds / max(numpy, 1e-9):.0f} x NumPy, largest difference {np.abs(y - want).max():.1e}")
    for name in ("race", "all"):
        took = clock(lambda name=name: k.run(x, y, 64, 1024, sanitize=name))
        print(f"  with --sanitize {name}: {took:.2f} s, {took / seconds:.1f} x")
    peaks: list[int] = []
    for rows in (8, 64):
        tracemalloc.start()
        k(x[:rows], y[:rows], rows, 1024)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(f"  peak memory of 8 and of 64 rows: {peaks[0] / 1024:.0f} and {peaks[1] / 1024:.0f} KiB")


def main() -> None:
    p = argparse.ArgumentParser(description="Speed of the micro level.")
    p.add_argument("names", nargs="*", help="instructions to time (default: all)")
    p.add_argument("--softmax", action="store_true", help="the kernel only")
    options = p.parse_args()
    if not options.softmax:
        instructions(options.names)
    if not options.names:
        softmax()


if __name__ == "__main__":
    main()
