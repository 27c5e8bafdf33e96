"""Speed and memory of the assembler, as figures and as ratios to a peer measured in the same run.

    python bench/bench_assembler.py            # all
    python bench/bench_assembler.py --ops 2000 # one size only

Peer: xDSL reading the generic form of the same program (a Python MLIR parser; it does not verify PTO rules).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TILE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, "
    "slayout=none_box, fractal=512, pad=0>"
)
HEAD = """\
module attributes {pto.target_arch = "a3"} {
  func.func @k(%arg0: !pto.ptr<f32>, %arg1: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %arg0, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
"""
WHOLE = "!pto.tensor_view<?x?xf32>"
VIEW = "!pto.partition_tensor_view<16x64xf32>"
BODY = f"""\
    %i@ = arith.addi %c0, %c1 : index
    %p@ = pto.partition_view %v, offsets = [%c0, %i@], sizes = [%c16, %c64] : {WHOLE} -> {VIEW}
    %a@ = pto.alloc_tile : {TILE}
    %b@ = pto.alloc_tile : {TILE}
    pto.tload ins(%p@ : {VIEW}) outs(%a@ : {TILE})
    pto.tadd ins(%a@, %a@ : {TILE}, {TILE}) outs(%b@ : {TILE})
    pto.tmul ins(%a@, %b@ : {TILE}, {TILE}) outs(%b@ : {TILE})
    pto.tstore ins(%b@ : {TILE}) outs(%p@ : {VIEW})
"""


def program(ops: int) -> str:
    """A straight-line kernel of about `ops` operations, written the long way generated code is."""
    groups = "".join(BODY.replace("@", str(k)) for k in range(max(1, (ops - 9) // 8)))
    return f"{HEAD}{groups}    return\n  }}\n}}\n"


def best(work: Callable[[], object], repeat: int = 5) -> float:
    """Shortest CPU time of several runs: the machine is shared."""
    times: list[float] = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def in_process(ops: int) -> None:
    from pto.asm import parse_source, to_text
    from pto.diag import Source
    from pto.verifier import verify

    source = Source("bench", program(ops))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    module, _ = parse_source(source)
    assert module is not None
    verify(module)
    count = sum(1 for _ in module.walk())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    repeat = 5 if ops <= 20000 else 1
    parsing = best(lambda: parse_source(source), repeat)
    checking = best(lambda: verify(module), repeat)
    printing = best(lambda: to_text(module), repeat)
    print(
        f"{count:>7} operations: parse {parsing / count * 1e6:5.1f} + verify {checking / count * 1e6:5.1f} = "
        f"{(parsing + checking) / count * 1e6:5.1f} us per operation, print {printing / count * 1e6:5.1f}; "
        f"peak memory {grown / count:4.2f} KiB per operation"
    )
    if ops <= 2000:
        against_xdsl(to_text(module, "generic"), count, parsing + checking)


def against_xdsl(generic: str, count: int, ours: float) -> None:
    try:
        from xdsl.context import Context
        from xdsl.dialects import arith, builtin, func
        from xdsl.parser import Parser
    except ImportError:
        print("        peer: xdsl is not installed")
        return

    def peer() -> None:
        context = Context(allow_unregistered=True)
        for dialect in (builtin.Builtin, arith.Arith, func.Func):
            context.load_dialect(dialect)
        Parser(context, generic).parse_module()

    theirs = best(peer, 3)
    ratio = f"{theirs / ours:.1f} x our parse + verify"
    print(f"        xDSL parse alone {theirs / count * 1e6:.1f} us per operation: {ratio}")


def wall(command: list[str], repeat: int = 15) -> float:
    """Shortest wall time, with compiled modules cached as on a user's machine."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        times.append(time.perf_counter() - start)
    return min(times)


def command_line() -> None:
    """Wall time of the tools, next to the bare interpreter: that part is not ours."""
    tool = str(Path(sys.executable).parent / "ptoas")
    bare = wall([sys.executable, "-c", "pass"])
    with tempfile.TemporaryDirectory() as folder:
        kernel = Path(folder, "kernel.pto")
        kernel.write_text(program(160))
        rows = {
            "python -c pass": bare,
            "import pto": wall([sys.executable, "-c", "import pto"]),
            "ptoas --version": wall([tool, "--version"]),
            f"ptoas on {len(program(160).splitlines())} lines": wall([tool, str(kernel)]),
        }
    for name, seconds in rows.items():
        print(f"{name:<22} {seconds * 1e3:6.1f} ms   {seconds / bare:4.1f} x the interpreter's start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, help="one program size only (default: 2000, 20000, 200000)")
    options = parser.parse_args()
    for ops in [options.ops] if options.ops else [160, 2000, 20000, 200000]:
        # A process of its own, so that peak memory is that of this size.
        if options.ops:
            in_process(ops)
        else:
            subprocess.run([sys.executable, __file__, "--ops", str(ops)], check=True)
    if not options.ops:
        command_line()


if __name__ == "__main__":
    main()
