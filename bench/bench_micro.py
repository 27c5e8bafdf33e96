"""Speed of the micro level on the reference engine: vector, predicate and cube micro-instructions, a softmax.

    python bench/bench_micro.py                # every element type of every instruction (2 minutes)
    python bench/bench_micro.py vadd vlds      # some instructions only
    python bench/bench_micro.py --all vcvt     # every value of their attributes, too, and a mask with gaps
    python bench/bench_micro.py --softmax      # the kernel only

An instruction is timed in a loop of its smallest program (`micro_program.py`), less the same loop without
it. Times are those of the processor: the machine is shared. Nothing fails here; limits are printed beside
the measurements.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait count as work

import numpy as np
from micro_program import RECORDS, Program

import pto
from pto import isa
from pto.diag import DiagnosticError
from pto.ir.types import MaskType, PtrType, VRegType
from pto.isa.row import Row
from pto.witness.plan import Plan, make_attribute, plans, violated

LIMIT = 30e-6  # of a vector instruction
SOFTMAX = 3.0  # seconds for 64 Ki elements
SETS = ("vector", "predicate", "cube")

MICRO = Path(__file__).parents[1] / "examples" / "micro"


class Timed(NamedTuple):
    """Times of one form of an instruction."""

    seconds: float
    form: str


def instructions(names: list[str], every: bool) -> None:
    found: list[tuple[Row, list[Timed]]] = []
    missing: list[str] = []
    for row in isa.rows():
        if (row.set in SETS and not names) or row.name in names:
            timed, why = measure(row, every)
            if timed:
                found.append((row, timed))
            missing += why
    found.sort(key=lambda pair: max(pair[1]), reverse=True)
    lanes = [timed for row, timed in found if row.set != "cube"]
    total, over = sum(map(len, lanes)), sum(len(slow(timed)) for timed in lanes)
    print(f"{len(lanes)} instructions on vectors and masks, {total} forms: {over} over {LIMIT * 1e6:.0f} us")
    print("the slowest form of each, and what cube instructions take on whole matrices:")
    for row, timed in found:
        worst = max(timed)
        late = f"  {worst.seconds / LIMIT:.1f} x the limit" if worst.seconds > LIMIT else ""
        count = f"{len(timed)} forms" + (f", {len(slow(timed))} over" if late else "")
        print(f"{worst.seconds * 1e6:8.1f} us  {row.name:12} {worst.form:40} {count}{late}")
        if every:
            for other in sorted(slow(timed), reverse=True)[1:]:
                print(f"{other.seconds * 1e6:8.1f} us  {'':12} {other.form}")
    if missing:
        print(f"not measured: {', '.join(missing)}")


def slow(timed: list[Timed]) -> list[Timed]:
    return [t for t in timed if t.seconds > LIMIT]


def measure(row: Row, every: bool) -> tuple[list[Timed], list[str]]:
    """Return the times of the forms of an instruction, and the forms that cannot run; for a cube instruction
    only the first form that can."""
    found: list[Timed] = []
    missing: list[str] = []
    for made, pattern in forms(row, every):
        try:
            program = Program(made, pattern)
        except DiagnosticError as e:
            missing.append(f"{row.name} {shown(made)} ({e.diagnostics[0].message})")
            continue
        masks = f", {pattern}" if pattern != "PAT_ALL" else ""
        found.append(Timed(per_step(program), shown(made) + masks))
        if row.set == "cube":
            return found, []
    return found, missing


def forms(row: Row, every: bool) -> Iterator[tuple[Plan, str]]:
    """Yield every choice of element types, and the masks; on request other attributes and masks, too."""
    for made in plans(row, "a5" if "a5" in row.isas else row.isas[0]):
        yield made, "PAT_ALL"
        if not every or row.set == "cube":
            continue
        if any(isinstance(t, MaskType) for types in made.operands.values() for t in types):
            yield made, "PAT_M3"
        for attr in row.attrs:
            for value in attr.domain:
                other = made.replace(attrs={**made.attrs, attr.name: make_attribute(attr, value)})
                if other.attrs != made.attrs and not violated(other):
                    yield other, "PAT_ALL"


def shown(made: Plan) -> str:
    """The element types of a form in order, of its operands and then of its results, and its attributes."""
    types = [str(t.dtype) for ts in made.operands.values() for t in ts if isinstance(t, VRegType | PtrType)]
    given = [str(t.dtype) for ts in made.results.values() for t in ts if isinstance(t, VRegType)]
    text = " ".join(dict.fromkeys(types))
    if given and set(given) != set(types):
        text += f" -> {' '.join(dict.fromkeys(given))}"
    if made.row.name == "vmrgsort4":
        text += f", 4 x {RECORDS} records"
    return ", ".join(filter(None, (text, *(f"{name} {a.value}" for name, a in made.attrs.items()))))


def per_step(program: Program) -> float:
    """Seconds of one step of a loop, less those of an empty one; the best of several runs."""
    count = 8
    while (took := clock(lambda n=count: program.launch(n))) < 0.004 and count < 1 << 14:
        count = max(2 * count, int(count * 0.005 / max(took, 1e-4)))
    found = _difference(program, count, 5)
    return found if found < 0.9 * LIMIT else min(found, _difference(program, 2 * count, 10))


def _difference(program: Program, count: int, runs: int) -> float:
    full, rest = (
        min(clock(lambda e=empty: program.launch(count, e)) for _ in range(runs)) for empty in (False, True)
    )
    return max(0.0, full - rest) / count


def clock(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def softmax() -> None:
    """64 Ki elements in 64 rows, written in vector instructions; and what longer rows take in memory."""
    k = pto.kernel(pto.parse(MICRO / "softmax.pto"), engine="reference")
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
    p.add_argument("--all", action="store_true", help="every value of every attribute, and a mask with gaps")
    p.add_argument("--softmax", action="store_true", help="the kernel only")
    options = p.parse_args()
    if not options.softmax:
        instructions(options.names, options.all)
    if not options.names:
        softmax()


if __name__ == "__main__":
    main()
