"""Property tests with fresh seeds, round after round: what `make fuzz` runs.

    python -m tests.fuzz.rounds --minutes 10 [--jobs 3] [--seed N] [-- pytest arguments]

Every process collects the tests once and then runs all of them again and again, each round with the next seed. A
test that fails is shown once, with the command that replays it, and left out of later rounds. What was found belongs
into the tests as a plain one, together with the mend.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import threading
import time
from typing import IO, Any

import pytest
from tests import seeds

PROFILE = "--hypothesis-profile=fuzz"
REPLAY = "replay: "


def replay(nodeid: str, seed: int) -> str:
    return f"python -m pytest '{nodeid}' {PROFILE} --hypothesis-seed={seed}"


class Rounds:
    """A pytest plugin: property tests only, in rounds until a moment of the monotonic clock, or so many of them."""

    def __init__(self, first: int, step: int, end: float = float("inf"), rounds: int | None = None) -> None:
        self.seeds = itertools.islice(itertools.count(first, step), rounds)
        self.end = end
        self.seed = first
        self.failed: dict[str, int] = {}
        self.examined = 0
        self.terminal: Any = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from hypothesis import is_hypothesis_test  # pytest wants to be there first

        items[:] = [
            i for i in items if is_hypothesis_test(getattr(i, "obj", None)) or i.get_closest_marker("seeded")
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from hypothesis import core

        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        self.terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        left = list(session.items)
        for seed in self.seeds:
            self.seed = seed
            core.global_force_seed = seeds.fuzz_round = seed
            for item, following in zip(left, [*left[1:], left[0]], strict=True):
                if time.monotonic() > self.end:
                    return True
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self.examined += 1
            left = [item for item in left if item.nodeid not in self.failed]
            self.say(f"seed {seed}: {len(left)} pass" if left else "all tests have failed")
            if not left:
                break
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = self.seed
            self.say(REPLAY + replay(report.nodeid, self.seed))

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str]:
        return report.outcome if report.failed or report.when == "call" else "", "", ""

    def pytest_sessionfinish(self) -> None:
        self.say(f"{self.examined} tests, seeds to {self.seed}, {len(self.failed)} fail")

    def say(self, line: str) -> None:
        self.terminal.write_line(line)


def worker(first: int, step: int, end: float, arguments: list[str]) -> int:
    plugin = Rounds(first, step, end)
    status = pytest.main(["-q", "-p", "no:xdist", "-p", "no:cacheprovider", PROFILE, *arguments], [plugin])
    return 1 if plugin.failed or status not in (0, 1) else 0


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.fuzz.rounds", description=__doc__.partition("\n")[0])
    p.add_argument("--minutes", type=float, default=10.0)
    p.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a processor)"
    )
    p.add_argument("--seed", type=int, help="the first seed (default: the time)")
    p.add_argument("--end", type=float, help=argparse.SUPPRESS)
    p.add_argument("arguments", nargs="*", help="for pytest")
    options = p.parse_args()
    if options.end is not None:
        return worker(options.seed, options.jobs, options.end, options.arguments)
    seed = int(time.time()) if options.seed is None else options.seed
    end = time.monotonic() + 60 * options.minutes
    print(
        f"property tests for {options.minutes:g} minutes in {options.jobs} processes, seeds from {seed}",
        flush=True,
    )
    command = [sys.executable, "-m", "tests.fuzz.rounds", f"--end={end}", f"--jobs={options.jobs}"]
    running = [
        subprocess.Popen(
            [*command, f"--seed={seed + k}", "--", *options.arguments], stdout=subprocess.PIPE, text=True
        )
        for k in range(options.jobs)
    ]
    replays: list[str] = []
    readers = [threading.Thread(target=echo, args=(process.stdout, replays)) for process in running]
    for reader in readers:
        reader.start()
    try:
        status = max(process.wait() for process in running)
    except KeyboardInterrupt:
        for process in running:
            process.wait()
        status = 130
    for reader in readers:
        reader.join()
    print(f"{len(replays)} failures in all", *sorted(replays), sep="\n", flush=True)
    return status


def echo(lines: IO[str] | None, replays: list[str]) -> None:
    """Print the output of a process as it comes; keep the replay commands of its failures, to print them at
    the end."""
    for line in lines or ():
        print(line, end="", flush=True)
        if line.startswith(REPLAY):
            replays.append(line.removeprefix(REPLAY).strip())


if __name__ == "__main__":
    sys.exit(main())
