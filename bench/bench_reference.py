"""Speed of the reference engine: tile instructions, sanitizers, the scalar unit.

    python bench/bench_reference.py                # all
    python bench/bench_reference.py --instructions # one part: --sanitizers, --timeline, --growth, --scalar
    python bench/bench_reference.py tadd trowsum   # some instructions only

An instruction is timed in a kernel that repeats it, less the same kernel with an empty loop, on tiles of
128x128 f32 or the legal element type and shape nearest to that. Times are those of the processor: the machine
is shared. Nothing fails here; limits are printed beside the measurements.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait count as work

import numpy as np

import pto
from pto import isa
from pto.diag import DiagnosticError
from pto.engine.launch import kernel
from pto.engine.memory import array_of
from pto.engine.reference import registry
from pto.engine.reference.kernel import ReferenceKernel
from pto.ir.attrs import EnumAttr, StrAttr, TypeAttr
from pto.ir.builder import Builder
from pto.ir.core import Block, Module, Region, Value
from pto.ir.types import INDEX, ConvTileType, MemRefType, PtrType, ScalarType, TileBufType, Type, ViewType
from pto.isa.dtypes import DTYPES
from pto.isa.row import Row
from pto.witness.plan import Plan, _legal_dtypes, dtype_choices, forms, plan, violated

LIMIT = 200e-6  # of an instruction
RATIO = 5.0  # of all sanitizers together
MICRO_RATIO = 8.0  # and in programs of vector instructions
TIMELINE_RATIO = 2.0
SIDE = 128

#: Instructions that write text: their time is that of the output.
PRINTS = frozenset({"tprint"})

I64 = ScalarType("i64")


# -- instructions ------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    name: str
    isa: str
    types: str
    seconds: float


def instructions(names: list[str]) -> None:
    rows = [r for r in isa.rows() if r.set in ("tile", "ptoas") and registry.find(r) is not None]
    found: list[Measured] = []
    missing: list[str] = []
    for row in rows:
        if row.name in PRINTS or (names and row.name not in names):
            continue
        made = measure(row)
        if isinstance(made, str):
            missing.append(f"{row.name} ({made})")
        else:
            found.append(made)
    found.sort(key=lambda m: -m.seconds)
    slow = [m for m in found if m.seconds > LIMIT]
    print(f"{len(found)} instructions, {len(slow)} over {LIMIT * 1e6:.0f} us")
    print(f"{'us':>8}  {'instruction':<18} {'column':<6} operands")
    for m in found:
        over = f"  {m.seconds / LIMIT:.1f} x the limit" if m.seconds > LIMIT else ""
        print(f"{m.seconds * 1e6:8.1f}  {m.name:<18} {m.isa:<6} {m.types}{over}")
    if missing:
        print(f"not measured: {', '.join(missing)}")


def measure(row: Row) -> Measured | str:
    """The time of one instruction, or why there is none."""
    why = "no legal instance"
    for made in candidates(row):
        for fill in (True, False):
            try:
                with_it, without = (program(made, body, fill) for body in (True, False))
                args = arguments(with_it)
                run(with_it, args, 1)
            except DiagnosticError as e:
                why = e.diagnostics[0].message
                continue
            seconds = per_step(with_it, without, args)
            return Measured(row.name, made.isa, shown(made) + ("" if fill else " (zeros)"), seconds)
    return why


def run(k: ReferenceKernel, args: list[Any], count: int) -> None:
    result = k.run(*args, count)
    if not result.ok:
        raise DiagnosticError(result.diagnostics)


def per_step(loop: ReferenceKernel, empty: ReferenceKernel, args: list[Any]) -> float:
    """Seconds of one step of a loop, less those of an empty one; the best of several runs."""

    def spent(k: ReferenceKernel, count: int) -> float:
        return clock(lambda: run(k, args, count))

    count = 1
    while (took := spent(loop, count)) < 0.01 and count < 1 << 16:
        count = max(2 * count, int(count * 0.012 / max(took, 1e-4)))
    full, rest = (min(spent(k, count) for _ in range(7)) for k in (loop, empty))
    return max(0.0, full - rest) / count


def clock(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# -- a legal instance of a size ----------------------------------------------------------------------------


def candidates(row: Row) -> Iterator[Plan]:
    """Legal instances, those nearest to 128x128 f32 first."""
    for grow in (matrix, flat, square, larger, lambda made: made):
        for column in [c for c in ("a2a3", "a5", "cpu") if c in row.isas]:
            for choice in sorted(dtype_choices(row, column), key=distance):
                for form in forms(row):
                    made = plan(row, column, choice, form)
                    made = grow(made)
                    if made is not None and not violated(made) and _legal_dtypes(made):
                        yield made
                        break


def distance(choice: dict[str, str]) -> int:
    """Return the distance of a choice of element types from f32."""
    ranks = ("f32", "f16", "bf16", "i32", "i16")
    return sum(ranks.index(d) if d in ranks else len(ranks) for d in choice.values())


def matrix(made: Plan) -> Plan | None:
    """A product of 128x128 matrices, with the scales and the bias that belong to it."""
    left = next((t for ts in made.operands.values() for t in ts if getattr(t, "loc", "") == "left"), None)
    if not isinstance(left, TileBufType) or "dst" not in made.operands:
        return None
    groups = SIDE // left.cols  # elements of one scale stay as many

    def grown(t: Type) -> Type:
        loc = t.loc if isinstance(t, TileBufType) else ""
        if loc in ("scale_left", "scale_right"):
            return resized(t, lambda r, c: (SIDE, c * groups) if loc == "scale_left" else (r * groups, SIDE))
        return resized(t, lambda rows, cols: (SIDE if rows > 1 else 1, SIDE))

    return each(made, grown)


def flat(made: Plan) -> Plan | None:
    """Rows of 2048 elements, where there are only rows."""
    tiles = [t for ts in made.operands.values() for t in ts if isinstance(t, TileBufType)]
    if not tiles or any(t.rows > 1 for t in tiles):
        return None
    most = max(t.cols for t in tiles)
    return each(made, lambda t: resized(t, lambda rows, cols: (rows, cols * 2048 // most)))


def square(made: Plan) -> Plan:
    """Tiles and views of 128x128; a dimension of one stays."""
    return each(
        made, lambda t: resized(t, lambda rows, cols: (SIDE if rows > 1 else 1, SIDE if cols > 1 else 1))
    )


def larger(made: Plan) -> Plan:
    """As much larger as 128x128 is than the 16x64 of the table."""
    return each(
        made,
        lambda t: resized(t, lambda rows, cols: (rows * 8 if rows > 1 else 1, cols * 2 if cols > 1 else 1)),
    )


def each(made: Plan, change: Callable[[Type], Type]) -> Plan:
    return made.replace(operands={n: tuple(map(change, ts)) for n, ts in made.operands.items()})


def resized(type: Type, size: Callable[[int, int], tuple[int, int]]) -> Type:
    if isinstance(type, TileBufType):
        rows, cols = size(type.rows, type.cols)
        v_row, v_col = type.v_row, type.v_col
        if v_row is not None and v_col is not None:
            v_row, v_col = rows if v_row == type.rows else v_row, cols if v_col == type.cols else v_col
        return type.replace(rows=rows, cols=cols, v_row=v_row, v_col=v_col)
    if isinstance(type, ViewType) and len(type.dims) >= 2:
        rows, cols = size(type.dims[-2] or 1, type.dims[-1] or 1)
        return type.replace(dims=(*type.dims[:-2], rows, cols))
    return type


def shown(made: Plan) -> str:
    """The operands in short."""
    words: list[str] = []
    for types in made.operands.values():
        for t in types:
            if isinstance(t, TileBufType):
                valid = f" ({t.v_row}x{t.v_col})" if (t.v_row, t.v_col) != (t.rows, t.cols) else ""
                words.append(f"{t.loc} {t.rows}x{t.cols}x{t.dtype}{valid}")
            elif isinstance(t, ConvTileType | ViewType):
                words.append("x".join(map(str, (*t.dims, t.dtype))))
    return ", ".join(dict.fromkeys(words))


# -- its program -------------------------------------------------------------------------------------------


def program(made: Plan, body: bool, fill: bool) -> ReferenceKernel:
    """Return a kernel that makes the operands and repeats the instruction; its last argument is the count.
    The table has no instruction that makes a convolution tile, so programs with one are not checked."""
    conv = any(isinstance(t, ConvTileType) for ts in made.operands.values() for t in ts)
    return kernel(_Builder(made, fill).build(body), engine="reference", check=not conv)


def arguments(k: ReferenceKernel) -> list[Any]:
    """Arrays of random numbers, for all arguments but the last."""
    rng = np.random.default_rng(0)
    found: list[Any] = []
    for arg in k.args[:-1]:
        dtype = str(arg.type.dtype)  # type: ignore[attr-defined]
        kind = array_of(dtype)
        size = 1 << 18
        if DTYPES[dtype].is_float and kind.itemsize > 1:
            found.append(rng.uniform(0.5, 2.0, size).astype(kind))
        elif dtype == "f8e8m0":  # scales about one
            found.append(rng.integers(126, 129, size, np.uint8).view(kind))
        elif DTYPES[dtype].bits >= 8:  # as a code of a small float about one, as an index within any tile
            found.append(rng.integers(32, 64, size, np.uint8).astype(f"u{kind.itemsize}").view(kind))
        else:
            found.append(rng.integers(0, 256, size, np.uint8).view(kind))
    return found


class _Builder:
    def __init__(self, made: Plan, fill: bool) -> None:
        self.made = made
        self.filled = fill
        self.b = Builder.module({"pto.target_arch": StrAttr(made.isa)})
        self.entry: Block = None  # type: ignore[assignment]

    def build(self, body: bool) -> Module:
        b, made, row = self.b, self.made, self.made.row
        kind = {"pto.kernel_kind": EnumAttr("kernel_kind", row.core)} if row.core else {}
        self.entry = b.func("bench", [], kind)
        values = {
            name: [self.value(name, n, t) for n, t in enumerate(types)]
            for name, types in made.operands.items()
        }
        count = self.entry.add_arg(INDEX, "count")
        loop = b.op("scf.for", lb=b.constant(0), ub=count, step=b.constant(1))
        outer, inner = b.block, Region(loop)
        loop.regions = [inner]
        b.block = inner.add_block()
        b.block.add_arg(INDEX, "i")
        if body:
            b.op(row.full_name, [t for ts in made.results.values() for t in ts], dict(made.attrs), **values)
        b.op("scf.yield")
        b.block = outer
        b.op("func.return")
        function = self.entry.parent.parent  # type: ignore[union-attr]
        assert function is not None
        signature = function.attrs["function_type"].value.replace(
            inputs=tuple(a.type for a in self.entry.args)
        )
        function.attrs["function_type"] = TypeAttr(signature)
        return b.built

    def value(self, name: str, at: int, type: Type) -> Value:
        b = self.b
        if isinstance(type, ScalarType):
            given = self.made.constants.get((name, at), 1.5 if type.is_float else 0)
            return b.constant(given, type)
        if isinstance(type, TileBufType):
            tile = b.op("pto.alloc_tile", [type]).result
            if self.filled:
                self.fill(tile, type, f"{name}{at}")
            return tile
        if isinstance(type, ConvTileType):
            return b.op("pto.alloc_tile", [type]).result
        if isinstance(type, ViewType):
            return self.view(type, self.made.layouts.get(name), f"{name}{at}")
        if type.kind == "async_session":
            scratch = self.value("scratch", 0, TileBufType(ScalarType("i8"), "vec", 1, 256, 1, 256))
            workspace = self.value("workspace", 0, PtrType(ScalarType("i8")))
            return b.op("pto.build_async_session", [type], None, scratch=scratch, workspace=workspace).result
        if isinstance(type, PtrType | MemRefType):
            return self.entry.add_arg(type, f"{name}{at}")
        raise DiagnosticError([pto.Diagnostic("PTO-E2003", f"no operand of type {type} is made here")])

    def view(self, type: ViewType, layout: str | None, name: str) -> Value:
        b = self.b
        pointer = self.entry.add_arg(PtrType(type.elem), name)
        dims = [d or SIDE for d in type.dims]
        strides = [1]
        for d in reversed(dims[1:]):
            strides.insert(0, strides[0] * d)
        shape, steps = ([b.constant(d) for d in values] for values in (dims, strides))
        attrs = {"layout": EnumAttr("layout", layout)} if layout else {}
        whole = b.op(
            "pto.make_tensor_view", [type.replace(name="tensor_view")], attrs, ptr=pointer, shape=shape,
            strides=steps,
        ).result  # fmt: skip
        if type.name == "tensor_view":
            return whole
        zero = [b.constant(0) for _ in dims]
        return b.op("pto.partition_view", [type], None, source=whole, offsets=zero, sizes=shape).result

    def fill(self, tile: Value, type: TileBufType, name: str) -> None:
        """Load random elements; operands of the cube come through L1."""
        if type.loc in ("left", "right", "scale_left", "scale_right"):
            source = type.replace(loc="mat")
            if not type.loc.startswith("scale"):
                source = source.replace(blayout="col_major", slayout="row_major")
            through = self.b.op("pto.alloc_tile", [source]).result
            self.fill(through, source, name)
            self.b.op("pto.tmov", src=through, dst=tile)
        elif type.loc in ("vec", "mat"):
            layout = "dn" if type.loc == "vec" and type.blayout == "col_major" else None
            view = ViewType(type.elem, (type.v_row or type.rows, type.v_col or type.cols))
            self.b.op("pto.tload", src=self.view(view, layout, f"{name}_init"), dst=tile)


# -- sanitizers --------------------------------------------------------------------------------------------

#: Load, two vector instructions and store, over and over, with all the synchronisation they need.
LOOP = """\
!t = !pto.tile_buf<vec, @x@xf32>
!view = !pto.tensor_view<@x@xf32>
!window = !pto.partition_tensor_view<@x@xf32>
module attributes {pto.target_arch = "a3"} {
  func.func @loop(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %side = arith.constant @ : index
    %vx = pto.make_tensor_view %x, shape = [%side, %side], strides = [%side, %c1] : !view
    %vy = pto.make_tensor_view %y, shape = [%side, %side], strides = [%side, %c1] : !view
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%side, %side] : !view -> !window
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%side, %side] : !view -> !window
    %at_a = arith.constant 0 : i64
    %at_b = arith.constant 65536 : i64
    %a = pto.alloc_tile addr = %at_a : !t
    %b = pto.alloc_tile addr = %at_b : !t
    pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
    scf.for %i = %c0 to %n step %c1 {
      pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
      pto.tload ins(%px : !window) outs(%a : !t)
      pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      pto.tadd ins(%a, %a : !t, !t) outs(%b : !t)
      pto.barrier <PIPE_V>
      pto.tmul ins(%b, %a : !t, !t) outs(%b : !t)
      pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      pto.tstore ins(%b : !t) outs(%py : !window)
      pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
    }
    pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]
    return
  }
}
"""


def sanitizers() -> None:
    """Cost of the checks as ratios to a run without any: two loops, then the example kernels."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "kernels"))
    from reference import KERNELS  # type: ignore[import-not-found]

    print(f"sanitizers, as times of a run without (limit for all: {RATIO:g} x)")
    print(f"{'kernel':<18} {'off, ms':>8}" + "".join(f"{c:>8}" for c in CHECKS[1:]))
    for side, count in ((128, 100), (16, 400)):
        arrays = [np.ones((side, side), np.float32) for _ in range(2)]
        k = pto.kernel(
            pto.parse(LOOP.replace("@", str(side)).replace(f"{side}loop", "@loop")), engine="reference"
        )
        compare(f"loop, {side}x{side} tiles", k, [*arrays, count], 1)
    for name, case in KERNELS.items():
        args, _ = case.make(np.random.default_rng(0))
        compare(name, pto.kernel(pto.parse(case.path), case.entry, engine="reference"), args, case.blocks)


CHECKS = ("", "race", "undef", "oob", "overlap", "sync", "all")


def growth() -> None:
    """Cost of the checks for few and for many accesses: ratios that stay mean that it is linear."""
    limits = f"{RATIO:g} x on tiles, {MICRO_RATIO:g} x on registers"
    print(f"sanitizers over the length of a run, by accesses (limits for all: {limits})")
    print(f"{'kernel':<18} {'off, ms':>8}" + "".join(f"{c:>8}" for c in CHECKS[1:]))
    k = pto.kernel(pto.parse(LOOP.replace("@", "16").replace("16loop", "@loop")), engine="reference")
    for count in (3, 300, 15_000):  # seven accesses each
        arrays = [np.ones((16, 16), np.float32) for _ in range(2)]
        compare(f"tiles, {7 * count}", k, [*arrays, count], 1, RATIO, 6 if count < 1000 else 1)
    k = pto.kernel(
        pto.parse(Path(__file__).parents[1] / "examples" / "micro" / "row_sum.pto"), engine="reference"
    )
    for rows, cols in ((1, 512), (500, 640), (2000, 640), (8000, 640)):
        x, s = np.ones((rows, cols), np.float32), np.zeros(rows, np.float32)
        runs = 6 if rows < 100 else 1
        compare(f"row sums, {rows * (3 + cols // 64)}", k, [x, s, rows, cols], 1, MICRO_RATIO, runs)


def compare(
    name: str, k: ReferenceKernel, args: list[Any], blocks: int, limit: float = RATIO, runs: int = 6
) -> None:
    """Return a row of the table; the choices alternate, so that a slow moment of the machine hits all of
    them."""
    times = [float("inf")] * len(CHECKS)
    for _ in range(runs):
        for n, checks in enumerate(CHECKS):
            times[n] = min(times[n], clock(lambda c=checks: k.run(*args, blocks=blocks, sanitize=c)))
    ratios = "".join(f"{t / times[0]:8.1f}" for t in times[1:])
    over = "  over the limit" if times[-1] > limit * times[0] else ""
    print(f"{name:<18} {times[0] * 1e3:8.1f}{ratios}{over}")


def best(work: Callable[[], object], repeat: int = 5) -> float:
    work()
    return min(clock(work) for _ in range(repeat))


# -- the scalar unit ---------------------------------------------------------------------------------------

SCALAR = """\
module attributes {pto.target_arch = "a3"} {
  func.func @steps(%n: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (index) {
      %a = arith.muli %i, %c3 : index
      %b = arith.addi %s, %a : index
      %odd = arith.remui %b, %c3 : index
      %zero = arith.cmpi eq, %odd, %c0 : index
      %next = arith.select %zero, %b, %s : index
      scf.yield %next : index
    }
    return
  }
}
"""


def scalar() -> None:
    k = pto.kernel(pto.parse(SCALAR), engine="reference")
    count = 100_000
    steps = 5 * count
    for checks in ("", "all"):
        seconds = best(lambda c=checks: k.run(count, sanitize=c), 3)
        rate = f"{steps / seconds / 1e6:5.2f} M operations/s, {count / seconds / 1e6:5.2f} M iterations/s"
        print(f"scalar loop of 5 operations, sanitizers {checks or 'off':<4} {rate}")


def timeline() -> None:
    """Measure the cost of a timeline, from short kernels to long ones, alternating so that both see the same
    machine."""
    examples = Path(__file__).parents[1] / "examples"
    single, half = np.zeros((1024, 128), np.float32), np.zeros((512, 512), np.float16)
    cases = (
        ("06_loop_double_buffer.pto", [single, single.copy()]),
        ("18_waits.pto", [single, single.copy()]),
        ("kernels/gemm.pto", [half, half.copy(), np.zeros((512, 512), np.float32), 512, 512, 512]),
    )
    print(f"timelines, limit {TIMELINE_RATIO:g} x")
    for name, args in cases:
        k = kernel(pto.parse(examples / name), engine="reference")
        events = len(k.run(*args, timeline=True).timeline.trace)
        times = [
            (
                clock(lambda k=k, a=args: k.run(*a)),
                clock(lambda k=k, a=args: k.run(*a, timeline=True).timeline.us),
            )
            for _ in range(25)
        ]
        plain, timed = min(t for t, _ in times), min(t for _, t in times)
        spent = f"{1e3 * plain:8.2f} ms {1e3 * timed:8.2f} ms {timed / plain:6.2f} x"
        print(f"  {name:<28}{events:6} events {spent}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="instructions (default: all)")
    parts = {
        "instructions": instructions, "sanitizers": sanitizers, "timeline": timeline, "growth": growth,
        "scalar": scalar,
    }  # fmt: skip
    for part in parts:
        parser.add_argument(f"--{part}", action="store_true", help=f"{part} only")
    options = parser.parse_args()
    wanted = [p for p in parts if getattr(options, p)] or list(parts)[: 1 if options.names else None]
    for part in wanted:
        if part == "instructions":
            instructions(options.names)
        else:
            parts[part]()  # type: ignore[operator]
        print()


if __name__ == "__main__":
    main()
