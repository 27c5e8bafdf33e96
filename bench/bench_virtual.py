"""Virtual time: events of a graph per second of the host.

    python bench/bench_virtual.py [--quick]

Orchestrations are C++; kernels take a fixed time and are not executed, so this is the event loop with the
schedulers, queues and rings that it shares with every run. An event is a core that ends, a round of a
scheduler, a task that is handed on, or a watermark that moves. It has no peer; the limit is 1 M/s.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench_runtime import libraries

from pto.perf.tables import CORE_TYPES
from pto.runtime.extension import extension
from pto.runtime.options import log_level, options
from pto.runtime.virtual import Virtual


def run(paths: tuple[str, str], args: list[int], us: float, **given: Any) -> tuple[float, dict[str, Any]]:
    kernels = extension().Kernels()
    kernels.add_library(0, "empty", CORE_TYPES.index("aiv"), paths[0])
    virtual = {"virtual_time": Virtual({"empty": us}, compute=False).options()}
    engine = extension().Tensormap(kernels, options({**given, **virtual}, print), log_level(), None)
    engine.set_duration(0, round(us * 1e3))
    started = time.process_time()  # one thread: work of other processes does not count
    engine.run_library(paths[1], args)
    seconds = time.process_time() - started
    code, text = engine.failure()[:2]
    assert code == 0, text
    return seconds, engine.stats()


def main() -> None:
    parser = argparse.ArgumentParser(description="Events of virtual time per second.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the tasks")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    paths = libraries()
    for name, args, us in (
        ("independent tasks of 10 us", [0, n, 1000], 10.0),
        ("independent tasks of 100 us", [0, n, 1000], 100.0),
        ("a chain of tasks of 2 us", [1, n, 1000], 2.0),
        ("24 blocks as one task", [4, n // 24, 100], 10.0),
    ):
        for record in (False, True):
            found = [run(paths, args, us, record=record) for _ in range(3)]
            seconds, stats = min(found, key=lambda f: f[0])
            rate, each = stats["events"] / seconds / 1e6, stats["events"] / n
            faster = stats["virtual_ns"] / 1e9 / seconds
            print(
                f"{name}{', recorded' if record else ''}: {rate:.2f} M events/s, {1e9 * seconds / n:.0f} ns "
                f"and {each:.1f} events per task, {faster:.2f} s of virtual time per second; limit 1 M/s"
            )


if __name__ == "__main__":
    main()
