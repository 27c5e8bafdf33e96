"""Time from a change in an editor to the diagnostics, over the protocol.

    python bench/bench_lsp.py             # programs of 2,000 lines
    python bench/bench_lsp.py --lines 500

Each step adds a comment in the middle of a program, sends the whole text, and waits for its diagnostics. The
time of the processor is that of the server, and that of the same check in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
import bench_assembler  # noqa: E402
from tests.lsp.client import Editor, edit  # noqa: E402

from pto.checking import check_source  # noqa: E402
from pto.diag import Source  # noqa: E402

STEPS = 15


def repeated(name: str, lines: int) -> str:
    """An example with its function repeated."""
    text = (ROOT / f"examples/kernels/{name}.pto").read_text(encoding="utf-8")
    start = text.rindex("\n", 0, text.index("func.func")) + 1
    end = text.rindex("\n  }\n") + 5
    function = text[start:end]
    entry = re.search(r"func.func @(\w+)", function)
    assert entry is not None
    count = max(1, (lines - text.count("\n")) // function.count("\n") + 1)
    return (
        text[:start] + "".join(function.replace(f"@{entry[1]}", f"@f{k}") for k in range(count)) + text[end:]
    )


def programs(lines: int) -> dict[str, str]:
    kernels = ("flash_attention", "layer_norm", "topk")
    return {"straight": bench_assembler.program(lines), **{name: repeated(name, lines) for name in kernels}}


def measure(name: str, text: str) -> None:
    middle = text.index("\n", len(text) // 2)
    spans: list[float] = []
    work_of: list[float] = []

    async def work(editor: Editor) -> None:
        await editor.open(text)
        for step in range(STEPS):
            before, start = editor.seconds, time.perf_counter()
            found = await editor.change(f"{text[:middle]} // {step}{text[middle:]}")
            spans.append(time.perf_counter() - start)
            work_of.append(editor.seconds - before)
            assert not any(d.severity == 1 for d in found), found
            await asyncio.sleep(0.3)  # a person types

    edit(work)
    alone = bench_assembler.best(lambda: check_source(Source("k.pto", text)))
    print(
        f"{text.count(chr(10)):7} lines of {name:<16} {1e3 * min(spans):6.1f} ms, median "
        f"{1e3 * statistics.median(spans):6.1f} ms; processor {1e3 * statistics.mean(work_of):6.1f} ms, "
        f"the check alone {1e3 * alone:6.1f} ms"
    )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--lines", type=int, default=2000)
    for name, text in programs(p.parse_args().lines).items():
        measure(name, text)


if __name__ == "__main__":
    main()
