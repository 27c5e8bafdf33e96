"""Speed of sync insertion, and how many flags it needs.

    python bench/bench_sync.py              # programs of 100 to 4000 operations, straight and in loops
    python bench/bench_sync.py FILE...      # programs that have addresses and no flags

`per op` is CPU time over all operations of the program, constants and views included; the best of three runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pto
from pto.ir.clone import clone
from pto.ir.core import Module
from pto.ir.facts import module_profile
from pto.passes import Options, PassContext, insert_sync
from pto.passes.insert_sync import SyncReport

TILE, VIEW = "!pto.tile_buf<vec, 16x64xf32>", "!pto.partition_tensor_view<16x64xf32>"
HEAD = """\
module attributes {pto.target_arch = "a3"} {
func.func @k(%x: !pto.tensor_view<?x64xf32>, %y: !pto.tensor_view<?x64xf32>, %n: index) {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c16 = arith.constant 16 : index
%c64 = arith.constant 64 : index
"""
BODY = f"""\
%r@ = arith.constant # : index
%w@ = pto.partition_view %x, offsets = [%r@, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> {VIEW}
%v@ = pto.partition_view %y, offsets = [%r@, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> {VIEW}
pto.tload ins(%w@ : {VIEW}) outs(%a$ : {TILE})
pto.tadd ins(%a$, %a$ : {TILE}, {TILE}) outs(%b$ : {TILE})
pto.tmul ins(%a$, %b$ : {TILE}, {TILE}) outs(%b$ : {TILE})
pto.tstore ins(%b$ : {TILE}) outs(%v@ : {VIEW})
"""
BUFFERS = 8


def program(count: int, depth: int) -> Module:
    """About `count` operations on a ring of tiles, within `depth` loops."""
    tiles = "".join(
        f"%at{n} = arith.constant {4096 * n} : i64\n"
        f"%{'ab'[n % 2]}{n // 2} = pto.alloc_tile addr = %at{n} : {TILE}\n"
        for n in range(2 * BUFFERS)
    )
    body = "".join(
        BODY.replace("@", str(k)).replace("$", str(k % BUFFERS)).replace("#", str(16 * k))
        for k in range(max(1, (count - 4 * BUFFERS) // 7))
    )
    loops = "".join(f"scf.for %i{d} = %c0 to %n step %c1 {{\n" for d in range(depth))
    return pto.parse(f"{HEAD}{tiles}{loops}{body}{'}' * depth}\nreturn\n}}\n}}\n")


def timed(module: Module) -> tuple[float, SyncReport]:
    profile = module_profile(module, None)
    best, report = 1e9, SyncReport()
    for _ in range(3):
        ctx = PassContext(clone(module), profile, Options(insert_sync=True))
        start = time.process_time()
        report = insert_sync.run(ctx)
        best = min(best, time.process_time() - start)
    return best, report


def show(name: str, module: Module) -> None:
    ops = sum(1 for _ in module.walk())
    seconds, report = timed(module)
    print(
        f"{name:32} {ops:6} ops  {seconds * 1e3:8.1f} ms  {seconds / ops * 1e6:6.1f} us per op  "
        f"{report.flags:5} flags  {report.barriers:4} barriers  {report.repaired + report.given_up} repairs"
    )


def main() -> None:
    if sys.argv[1:]:
        for path in sys.argv[1:]:
            show(Path(path).name, pto.parse(Path(path)))
        return
    for depth in (0, 1, 3):
        for count in (100, 500, 1000, 2000, 4000):
            show(f"{count} operations in {depth} loops", program(count, depth))


if __name__ == "__main__":
    main()
