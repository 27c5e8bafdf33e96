"""Speed of memory planning, and the memory it needs beside plain first fit.

    python bench/bench_planner.py              # programs of 250 to 4000 instructions
    python bench/bench_planner.py FILE...      # the tiles of programs in auto mode

Bytes are those of the highest tile: `first fit` puts each tile, in the order of the first writes, at the
lowest place that is free while it is needed; `least` is the largest use at one step.
"""

from __future__ import annotations

import sys
import time

import pto
from pto.diag import has_errors
from pto.ir.clone import clone
from pto.ir.core import Module
from pto.ir.facts import module_profile
from pto.passes import Options, plan_memory
from pto.passes.memory.pack import Item, conflicts, load, place, smallest, top
from pto.passes.memory.placements import MemoryPlan
from pto.passes.pipeline import PassContext

TILE, VIEW = "!pto.tile_buf<vec, 16x64xf32>", "!pto.partition_tensor_view<16x64xf32>"
BODY = f"""\
%a@ = pto.alloc_tile : {TILE}
%b@ = pto.alloc_tile : {TILE}
pto.tload ins(%in : {VIEW}) outs(%a@ : {TILE})
pto.tadd ins(%a@, %a@ : {TILE}, {TILE}) outs(%b@ : {TILE})
pto.tmul ins(%a#, %b@ : {TILE}, {TILE}) outs(%b@ : {TILE})
pto.tstore ins(%b@ : {TILE}) outs(%out : {VIEW})
"""
LOOP = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\nscf.for %i = %c0 to %c1 step %c1 {\n"


def program(count: int, loop: bool) -> Module:
    """`count` instructions on tiles that do not fit without sharing."""
    groups = "".join(BODY.replace("@", str(k)).replace("#", str(max(0, k - 3))) for k in range(count // 4))
    body = f"{LOOP}{groups}}}\n" if loop else groups
    return pto.parse(f"module {{\nfunc.func @k(%in: {VIEW}, %out: {VIEW}) {{\n{body}return\n}}\n}}\n")


def plan(module: Module) -> tuple[PassContext, float]:
    """The plan and the CPU time it took, the best of three."""
    runs: list[tuple[float, PassContext]] = []
    for _ in range(3):
        ctx = PassContext(clone(module), module_profile(module, None), Options())
        start = time.process_time()
        plan_memory.run(ctx)
        runs.append((time.process_time() - start, ctx))
    return runs[0][1], min(seconds for seconds, _ in runs)


def rows(ctx: PassContext) -> list[tuple[str, str, int, int, int, int]]:
    """(buffer, sharing, highest address, first fit, least that works, in use at one step) of every buffer."""
    assert isinstance(ctx.plan, MemoryPlan)
    out: list[tuple[str, str, int, int, int, int]] = []
    for function in ctx.plan.functions.values():
        for space in function.spaces.values():
            items = [
                Item(t.storage.footprint, t.storage.align, [(t.first, t.last)])
                for t in space.tiles
                if t.spans
            ]
            if items:
                order, clash = range(len(items)), conflicts(items)
                plain = top(items, place(items, clash, order, 1 << 40)[0])
                least = load(items)[0]
                works = smallest(items, clash, order, least)
                out.append(
                    (f"{space.title} of @{function.name}", space.sharing, space.top, plain, works, least)
                )
    return out


def main() -> None:
    files = sys.argv[1:]
    if not files:
        print(f"{'instructions':>12} {'operations':>11} {'in a loop':>9} {'us/operation':>13}  sharing")
        for loop in (False, True):
            for count in (250, 500, 1000, 2000, 4000):
                module = program(count, loop)
                operations = sum(1 for _ in module.walk())
                ctx, seconds = plan(module)
                each = seconds / operations * 1e6
                print(f"{count:>12} {operations:>11} {loop!s:>9} {each:>13.1f}  {rows(ctx)[0][1]}")
        print("the aim is at most 60 us per operation, and hardly more for long programs")
        return
    print(f"{'top':>8} {'first fit':>9} {'works':>8} {'least':>8}  buffer")
    for path in files:
        ctx, _ = plan(pto.parse(path))
        if has_errors(ctx.diagnostics):
            print(f"{path}: does not fit")
            continue
        for name, sharing, highest, plain, works, least in rows(ctx):
            print(f"{highest:>8} {plain:>9} {works:>8} {least:>8}  {name}, sharing: {sharing} ({path})")


if __name__ == "__main__":
    main()
