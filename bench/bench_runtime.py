"""The task runtime: costs of a task, from submission to retirement, and of a run besides.

    python bench/bench_runtime.py [--quick] [--folders] [--plot FILE.svg]

Orchestration and kernels are C++ sources, compiled and loaded as a user's are; the kernel is empty. The peer
is the runtime of simpler, in its simulation; it is not installed, so its published figures on a similar
machine are used. Shortest of several runs, wall time. With --plot only times over the size of the window, as
a picture; with --folders only whole runs of the example folders, with an empty cache and with a full one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from plot import line_chart

from pto.perf.tables import CORE_TYPES
from pto.runtime.compile import Job, compile_all
from pto.runtime.extension import extension
from pto.runtime.options import log_level, options

KERNEL = """
#include <cstdint>
#include <pto/pto-inst.hpp>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) { (void)args; }
"""

# args: kind (0 independent, 1 chain, 2 chain in one scope, 3 blocks one by one, 4 blocks as one task), tasks,
# tasks per scope
ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  static float data[16];
  const uint64_t shape[1] = {16};
  Tensor x = make_tensor_external(data, shape, 1);
  const int kind = (int)args[0];
  const long tasks = (long)args[1], per_scope = (long)args[2];
  for (long done = 0; done < tasks;) {
    PTO2_SCOPE(rt) {
      for (long i = 0; i < per_scope && done < tasks; ++i, ++done) {
        PTOParam params[3];
        if (kind == 3) {
          for (int block = 0; block < 24; ++block) {
            params[0] = make_input_param(x);
            params[1] = make_scalar_param(24);
            params[2] = make_scalar_param(block);
            pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, params, 3);
          }
          continue;
        }
        if (kind == 4) {
          params[0] = make_input_param(x);
          pto2_rt_submit_block_task(rt, 0, PTO2_WORKER_VECTOR, params, 1, 24);
          continue;
        }
        params[0] = kind == 0 ? make_scalar_param(7) : make_inout_param(x);
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, params, 1);
      }
    }
  }
}
"""

#: us per task of the field's runtime: independent and per hop of a chain, by block_dim.
PEER = {3: (4.0, 12.9), 24: (1.8, 85.0)}


def libraries() -> tuple[str, str]:
    folder = Path(tempfile.mkdtemp())
    kernel, orchestration = folder / "empty.cpp", folder / "orchestration.cpp"
    kernel.write_text(KERNEL)
    orchestration.write_text(ORCHESTRATION)
    made = compile_all([
        Job(name="empty", source=str(kernel), core_type="aiv"),
        Job(name="orchestration", source=str(orchestration), entry="aicpu_orchestration_entry"),
    ])  # fmt: skip
    return made[0].path, made[1].path


def run(paths: tuple[str, str], args: list[int], **given: Any) -> dict[str, Any]:
    kernels = extension().Kernels()
    kernels.add_library(0, "empty", CORE_TYPES.index("aiv"), paths[0])
    started = time.perf_counter()
    engine = extension().Tensormap(kernels, options(given, print), log_level(), None)
    engine.run_library(paths[1], args)
    code, text = engine.failure()[:2]
    assert code == 0, text
    return {**engine.stats(), "whole": time.perf_counter() - started}


def best(paths: tuple[str, str], args: list[int], repeat: int = 5, **given: Any) -> float:
    return min(run(paths, args, **given)["seconds"] for _ in range(repeat))


def against(seconds: float, peer: float) -> str:
    return f"; the peer {peer} us, {peer / (1e6 * seconds):.0f} x ours"


def main() -> None:
    parser = argparse.ArgumentParser(description="What a task costs.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the tasks")
    parser.add_argument(
        "--plot", metavar="FILE.svg", help="draw times over the size of the window, nothing else"
    )
    parser.add_argument("--folders", action="store_true", help="whole runs of the examples, nothing else")
    given = parser.parse_args()
    quick = given.quick
    if given.folders:
        folders(1 if quick else 5)
        return
    paths = libraries()
    n = 100_000 if quick else 1_000_000
    if given.plot:
        Path(given.plot).write_text(windows(paths, n // 4))
        return
    for blocks in (1, 3, 24):
        t = best(paths, [0, n, 1000], block_dim=blocks) / n
        peer = against(t, PEER[blocks][0]) if blocks in PEER else ""
        print(
            f"independent tasks, block_dim {blocks}: {1e9 * t:.0f} ns, {1e-6 / t:.2f} M/s{peer}; limit 1 M/s"
        )
    for blocks in (3, 24):
        each = sorted(run(paths, [1, n, 1000], block_dim=blocks)["seconds"] / n for _ in range(5))
        print(
            f"chain, block_dim {blocks}: {1e9 * each[0]:.0f} ns per hop, worst of 5 runs {1e9 * each[-1]:.0f}"
            f"{against(each[0], PEER[blocks][1])}; limit 1 us"
        )
    t = best(paths, [2, 65_000, 65_000])
    print(
        f"chain of 65,000 in one scope, default pools: {t:.3f} s; limit 0.2 (the peer: 10-85 s, wrong result)"
    )
    t = min(run(paths, [0, 1, 1])["whole"] for _ in range(20))
    print(f"a run of one task, start to end: {1e3 * t:.2f} ms{against(t, 45e3)}; limit 5")
    each, batch = (best(paths, [kind, n // 24, 100]) / (n // 24) for kind in (3, 4))
    print(f"24 blocks: as tasks {1e6 * each:.2f} us, as one {1e6 * batch:.2f} us, {each / batch:.1f} x")
    for threads in (1, 2):
        t = best(paths, [0, n, 1000], host_threads=threads)
        print(f"independent tasks, {threads} host thread(s): {1e9 * t / n:.0f} ns per task")
    print("window: " + ", ".join(
        f"{w} {1e9 * best(paths, [0, n // 4, min(w // 2, 1000)], 3, task_window=w) / (n // 4):.0f}"
        for w in (16, 64, 256, 1024, 4096, 16384, 65536)) + "  ns per task")  # fmt: skip
    many = n if quick else 10_000_000
    run(paths, [0, n, 1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    t = run(paths, [0, many, 1000])["seconds"]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{many:,} tasks through a window of 65536: {t:.2f} s, {grown:.1f} MiB more than {n:,} tasks")
    python(20_000 if quick else 200_000)
    folders(1)


def windows(paths: tuple[str, str], n: int) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for name, kind, blocks in (
        ("chain", 1, 24),
        ("independent, 24 blocks", 0, 24),
        ("independent, 3 blocks", 0, 3),
    ):
        for power in range(4, 17):
            scope = min(1 << power >> 1, 1000)
            seconds = best(paths, [kind, n, scope], 3, block_dim=blocks, task_window=1 << power)
            series.setdefault(name, []).append((1 << power, 1e9 * seconds / n))
            print(f"{name}, window {1 << power}: {1e9 * seconds / n:.0f} ns")
    return line_chart("Time per task over the task window", "tasks in the window", "ns per task", series)


def folders(repeat: int) -> None:
    """`pto runtime run` of every example folder, as processes: all runs, since the limits are for each."""
    examples = Path(__file__).resolve().parent.parent / "examples" / "runtime"
    command = [str(Path(sys.executable).with_name("pto")), "runtime", "run"]

    def timed(folder: Path, cache: str) -> float:
        started = time.perf_counter()
        environment = {**os.environ, "PTO_CACHE_DIR": cache}
        subprocess.run([*command, str(folder)], check=True, env=environment, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    print("a folder end to end, s: cold, limit 3 (the peer: 14-52, nothing cached); warm, limit 0.5")
    for golden in sorted(examples.glob("*/golden.py")):
        cold, warm = [], []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(timed(golden.parent, cache))
                warm.append(timed(golden.parent, cache))
        texts = [", ".join(f"{t:.2f}" for t in sorted(times)) for times in (cold, warm)]
        print(f"{golden.parent.name}: cold {texts[0]}; warm {texts[1]}")


def python(tasks: int) -> None:
    """Submission from Python; the kernel is the compiled one."""
    import numpy as np

    from pto import runtime

    folder = Path(tempfile.mkdtemp())
    (folder / "empty.cpp").write_text(KERNEL)
    kernel = runtime.kernel(str(folder / "empty.cpp"), "inout")
    data = np.zeros(16, np.float32)

    def orchestrate(rt: Any) -> None:
        for _ in range(tasks // 1000):
            with rt.scope():
                for _ in range(1000):
                    rt.submit(kernel, data)

    seconds = min(runtime.run(orchestrate).stats["seconds"] for _ in range(3))
    print(f"Python: {tasks / seconds:,.0f} tasks/s; limit 200,000")


if __name__ == "__main__":
    main()
