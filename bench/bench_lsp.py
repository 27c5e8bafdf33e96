"""Time from a change in an editor to the diagnostics, over the protocol; and to the page of the explorer.

    python bench/bench_lsp.py             # programs of 2,000 lines
    python bench/bench_lsp.py --lines 500
    python bench/bench_lsp.py --explorer --lines 200  # with Chromium and playwright

An edit changes a statement in the middle: it is left unfinished, finished, and followed by a comment. Each
step sends the whole text, and waits for its diagnostics. The time of the processor is that of the server; the
check is that of the whole text in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
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


#: Edits one instruction, and waits until the browser has drawn the answer of the server.
SHOWN = """async step => {
  const edit = document.getElementById("edit"), since = performance.now();
  const shown = new Promise(done => new MutationObserver(() => requestAnimationFrame(() => setTimeout(done)))
    .observe(document.getElementById("state"), {childList: true, characterData: true, subtree: true}));
  const next = step % 2 ? "pto.tmul " : "pto.tsub ";
  edit.value = edit.value.replace(/pto\\.t(add|mul|sub|max) /, next) + `\\n// ${step}`;
  edit.dispatchEvent(new Event("input"));
  await shown;
  return performance.now() - since;
}"""


def explorer(name: str, text: str) -> None:
    from playwright.sync_api import sync_playwright
    from tests.perf.browser import CHROMIUM

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        path = Path(folder) / "k.pto"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pto.cli.main", "explore", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            page = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]).new_page()
            page.goto(server.stderr.readline().strip())
            page.wait_for_selector(":root[data-ready]")
            spans: list[float] = []
            for n in range(2 * STEPS):
                spans.append(page.evaluate(SHOWN, n))
                assert not page.locator(".finding.error").count()
                time.sleep(2)  # a launch follows
            server.terminate()
    lines = text.count("\n")
    print(
        f"{lines} lines of {name:<16} {min(spans):6.0f} ms, median {statistics.median(spans):6.0f} ms",
        flush=True,
    )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--lines", type=int, default=2000)
    p.add_argument("--explorer", action="store_true", help="measure the page of pto explore")
    options = p.parse_args()
    for name, text in programs(options.lines).items():
        (explorer if options.explorer else measure)(name, text)


if __name__ == "__main__":
    main()
