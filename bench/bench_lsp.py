"""Time from a change in an editor to the diagnostics, over the protocol.

    python bench/bench_lsp.py             # programs of 2,000 lines
    python bench/bench_lsp.py --lines 500

An edit changes a statement in the middle: it is left unfinished, finished, and followed by a comment. Each
step sends the whole text, and waits for its diagnostics. The time of the processor is that of the server; the
check is that of the whole text in this process.
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

STEPS = 8


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


def edits(text: str) -> dict[str, str]:
    """The text after each edit."""
    lines = text.split("\n")
    n = next(n for n in range(len(lines) // 2, len(lines)) if "pto.t" in lines[n] and "outs" in lines[n])
    line = lines[n]
    kinds = {"unfinished": line[: len(line) // 2], "finished": line, "comment": f"{line} // so"}
    return {kind: "\n".join([*lines[:n], new, *lines[n + 1 :]]) for kind, new in kinds.items()}


def measure(name: str, text: str) -> None:
    spans: dict[str, list[float]] = {kind: [] for kind in edits(text)}
    work_of: dict[str, list[float]] = {kind: [] for kind in spans}

    async def work(editor: Editor) -> None:
        await editor.open(text)
        for _ in range(STEPS):
            for kind, new in edits(text).items():
                before, start = editor.seconds, time.perf_counter()
                found = await editor.change(new)
                spans[kind].append(time.perf_counter() - start)
                work_of[kind].append(editor.seconds - before)
                assert any(d.severity == 1 for d in found) == (kind == "unfinished"), found
                await asyncio.sleep(0.3)  # a person types

    edit(work)
    alone = bench_assembler.best(lambda: check_source(Source("k.pto", text)))
    print(f"{text.count(chr(10))} lines of {name}; the whole check {1e3 * alone:.0f} ms")
    for kind, seconds in work_of.items():
        wall, used = statistics.median(spans[kind]), statistics.mean(seconds)
        print(f"{kind:>14} {1e3 * wall:6.0f} ms, processor {1e3 * used:6.1f} ms", flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--lines", type=int, default=2000)
    for name, text in programs(p.parse_args().lines).items():
        measure(name, text)


if __name__ == "__main__":
    main()
