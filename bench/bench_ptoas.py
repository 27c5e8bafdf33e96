"""The assembler: costs of an operation from text to C++, of a batch of kernels, and of one call of the tool.

    python bench/bench_ptoas.py [FILE.pto ...]

Without files the kernels of examples/kernels are used, repeated up to 17. Times are those of the processor,
as the machine is shared. The peer is the C++ assembler PTOAS, which starts once per kernel; it is not
installed, so its published cost on a similar machine is used: 20 ms per start and 230 us per line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pto.asm import parse_source
from pto.codegen.cpp import emit
from pto.diag import Source, has_errors
from pto.ir.facts import module_profile
from pto.passes import Options, compile
from pto.verifier import verify

ROOT = Path(__file__).parent.parent
PEER_START, PEER_LINE = 20e-3, 230e-6
BATCH = 17


def kernels() -> list[Path]:
    given = [Path(a) for a in sys.argv[1:]]
    found = given or sorted((ROOT / "examples" / "kernels").glob("*.pto"))
    return (found * BATCH)[: max(BATCH, len(given))]


def once(text: str, name: str, spent: dict[str, float]) -> int:
    """One program from text to C++; the number of its operations."""
    clock = time.process_time

    def step(what: str, start: float) -> float:
        now = clock()
        spent[what] = spent.get(what, 0.0) + now - start
        return now

    at = clock()
    module, problems = parse_source(Source(name, text))
    assert module is not None, problems
    at = step("parse", at)
    profile = module_profile(module)
    found = verify(module, profile)
    at = step("verify", at)
    if has_errors(found):
        raise SystemExit(f"{name}: {found[0].message}")
    ctx, problems = compile(module, profile, Options(insert_sync=True))
    if has_errors(problems):
        raise SystemExit(f"{name}: {problems[0].message}")
    at = step("passes", at)
    emit(ctx.module, profile)
    step("emit", at)
    return sum(1 for _ in module.walk())


def timed(command: list[str], repeat: int = 7) -> tuple[float, float]:
    """Shortest wall and processor time of a command, with compiled modules cached as on a user's machine."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found: list[tuple[float, float]] = []
    for _ in range(repeat):
        start, before = time.perf_counter(), os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        wall, after = time.perf_counter() - start, os.times()
        used = after.children_user - before.children_user + after.children_system - before.children_system
        found.append((wall, used))
    return min(w for w, _ in found), min(u for _, u in found)


def main() -> None:
    paths = kernels()
    texts = [(p.read_text(), p.name) for p in paths]
    lines = [t.count("\n") for t, _ in texts]
    rounds: list[tuple[float, dict[str, float], int]] = []
    for _ in range(5):
        spent: dict[str, float] = {}
        ops = sum(once(text, name, spent) for text, name in texts)
        rounds.append((sum(spent.values()), spent, ops))
    total, spent, ops = min(rounds, key=lambda r: r[0])
    print(f"{len(texts)} kernels, {sum(lines)} lines, {ops} operations, level as written, flags inserted")
    parts = ", ".join(f"{name} {1e6 * t / ops:.0f}" for name, t in spent.items())
    print(f"in process: {1e6 * total / ops:.0f} us per operation ({parts}); limit 300")
    tool = str(Path(sys.executable).with_name("ptoas"))
    peer = sum(PEER_START + PEER_LINE * n for n in lines)
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for i, (text, _) in enumerate(texts):  # names must differ: they name the outputs
            copy = Path(folder, f"kernel_{i}.pto")
            copy.write_text(text)
            copies.append(str(copy))
        for jobs in (1, 2):
            command = [tool, "--enable-insert-sync", f"-j{jobs}", "-o", f"{folder}/out/", *copies]
            wall, used = timed(command)
            print(
                f"batch of {len(copies)}, -j{jobs}: {1e3 * wall:.0f} ms (processor {1e3 * used:.0f}); "
                f"the peer, started for each: {1e3 * peer:.0f} ms, {peer / wall:.1f} x ours; limit 3"
            )
        largest = max(range(len(copies)), key=lines.__getitem__)
        wall, used = timed([tool, "--enable-insert-sync", copies[largest]])
        theirs = PEER_START + PEER_LINE * lines[largest]
        print(f"one call, {lines[largest]} lines: {1e3 * wall:.0f} ms (processor {1e3 * used:.0f}); the peer "
              f"{1e3 * theirs:.0f} ms, ours {wall / theirs:.1f} x; limit 2")  # fmt: skip


if __name__ == "__main__":
    main()
