"""Hostile inputs for every reader, for as long as there is time:

    python -m tests.fuzz.run --minutes 10 [--count N] [--reader NAME] [--jobs 2] [--seed N] [--keep DIR]

Readers get the same CPU time each, so that quick ones read many inputs. Each kind of failure is shown once, cut down
to a small input, which `--keep` also writes to a folder; such an input belongs in the tests together with the fix.
`--reader NAME --seed N --count 1` replays one.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .batches import Child, Failure, Reader, shrunk
from .readers import READERS

_SECONDS = 3.0  # of a batch


class Tally:
    """The inputs of a reader so far, and their results."""

    def __init__(self, reader: Reader, seed: int) -> None:
        self.reader = reader
        self.next = seed
        self.done = 0
        self.seconds = 0.0
        self.outcomes: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def batch(self, most: float) -> range:
        """The seeds of the next batch, about as many as `_SECONDS` allow."""
        rate = self.done / self.seconds if self.seconds else 10 / _SECONDS
        count = int(max(1, min(rate * _SECONDS, 3 * self.done + 10, most)))
        self.next += count
        return range(self.next - count, self.next)

    def row(self) -> str:
        rate = self.done / self.seconds if self.seconds else 0.0
        shares = (
            ", ".join(f"{name} {count / self.done:.0%}" for name, count in self.outcomes.most_common())
            if self.done
            else ""
        )
        return f"{self.reader.name:<14}{self.done:>10,}{self.seconds:>9.0f}{rate:>9.0f}{self.kinds.total():>10}  {shares}"


class Search:
    """Run batches of all readers in some processes, until `over` is true."""

    def __init__(
        self, tallies: list[Tally], jobs: int, keep: Path | None, most: float = float("inf")
    ) -> None:
        self.tallies, self.jobs, self.keep, self.most = tallies, jobs, keep, most
        self._planned = 0

    def run(self, over: Callable[[], bool]) -> None:
        running: dict[int, tuple[Child, Tally]] = {}
        while True:
            while len(running) < self.jobs and not over() and self._planned < self.most:
                busy = [t for _, t in running.values()]
                tally = min(self.tallies, key=lambda t: t.seconds + _SECONDS * busy.count(t))
                seeds = tally.batch(self.most - self._planned)
                self._planned += len(seeds)
                child = Child(tally.reader, seeds)
                running[child.pipe] = child, tally
            if not running:
                return
            ready, _, _ = select.select(list(running), [], [], 5.0)
            for pipe in ready:
                self._take(*running.pop(pipe))
            for child, _ in running.values():
                child.look()

    def _take(self, child: Child, tally: Tally) -> None:
        found = child.result()
        tally.done += found.done
        tally.seconds += found.seconds
        tally.outcomes += found.outcomes
        for failure in found.failures:
            tally.kinds[failure.kind] += 1
            if tally.kinds[failure.kind] == 1:
                self._show(tally.reader, failure)

    def _show(self, reader: Reader, failure: Failure) -> None:
        try:
            data = reader.input(failure.seed)
        except Exception as e:
            print(f"\n{reader.name}, seed {failure.seed}: no input could be made: {e!r}", flush=True)
            return
        small = shrunk(reader, data, failure.kind)
        print(
            f"\n{reader.name}, seed {failure.seed}: {failure.kind}\n{failure.message[:500]}\n---- {len(small)} of {len(data)} bytes"
        )
        print(small[:3000].decode("utf-8", "replace") if reader.is_text else repr(small[:600]), flush=True)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{reader.name}-{failure.seed}").write_bytes(small)


def main() -> int:
    p = argparse.ArgumentParser(
        prog="python -m tests.fuzz.run", description="Give readers hostile inputs for a while."
    )
    p.add_argument("--minutes", type=float, default=1.0)
    p.add_argument("--count", type=int, help="inputs in all, instead of minutes")
    p.add_argument("--reader", action="append", choices=READERS, help="only this one (several allowed)")
    p.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    p.add_argument("--seed", type=int, default=0, help="first seed of every reader (default: 0)")
    p.add_argument("--keep", type=Path, help="folder for the inputs that fail")
    options = p.parse_args()
    tallies = [Tally(READERS[name], options.seed) for name in options.reader or READERS]
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # readers write their files here
        for tally in tallies:  # once, for all processes
            tally.reader.read(tally.reader.corpus()[0])
        os.chdir(here)
    begin = time.monotonic()
    end = float("inf") if options.count is not None else begin + 60 * options.minutes
    search = Search(
        tallies, options.jobs, options.keep, float("inf") if options.count is None else options.count
    )
    try:
        search.run(lambda: time.monotonic() > end)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"\n{'reader':<14}{'inputs':>10}{'CPU s':>9}{'per s':>9}{'failures':>10}  outcomes")
    print("\n".join(tally.row() for tally in tallies))
    failed = sum(t.kinds.total() for t in tallies)
    kinds = sum(len(t.kinds) for t in tallies)
    took = time.monotonic() - begin
    print(f"{sum(t.done for t in tallies):,} inputs in {took:.0f} s, {failed} failures of {kinds} kinds")
    for tally in tallies:
        for kind, count in tally.kinds.most_common():
            print(f"{count:6}  {tally.reader.name}: {kind}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
