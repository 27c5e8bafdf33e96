"""A run of a Python orchestration, and what it did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .hazards import Hazard, hazards_of
from .native import log_file, log_level, native, options, raise_failure, records
from .session import Runtime
from .tensors import refuse

if TYPE_CHECKING:
    from .records import Records

_RINGS = frozenset(
    ("task_window", "heap", "dep_pool", "tensormap_pool", "shards", "poison", "stall_seconds")
)  # fmt: skip


class Run:
    """What a run did."""

    def __init__(self, runtime: Runtime, stats: dict[str, Any], recorded: bool) -> None:
        self._runtime = runtime
        self._recorded = recorded
        self.stats = stats

    @cached_property
    def records(self) -> Records:
        """Tasks, edges, phases and counters; empty unless the run was recorded."""
        names = {i: k.name for i, k in enumerate(self._runtime._known)}
        return records(self._runtime._native.records(), names, self.stats)

    @cached_property
    def hazards(self) -> list[Hazard]:
        """What nothing orders, if the run was checked for it."""
        return hazards_of(self._runtime._native)

    def summary(self) -> str:
        """A table for the terminal."""
        from .summary import text

        if not self._recorded:
            done = f"{self.stats['tasks']} tasks, {self.stats['edges']} dependencies"
            return f"{done} in {self.stats['seconds'] * 1e3:.2f} ms; record=True shows where the time went"
        return text(self.records)

    def save_trace(self, path: str) -> None:
        """Write the run for ui.perfetto.dev or chrome://tracing."""
        from . import trace

        trace.write(self._shown("save_trace"), path)

    def save_swimlane(self, path: str, title: str = "") -> None:
        """Write a page that shows the run: a lane per core, with the critical path."""
        from . import swimlane

        swimlane.write(self._shown("save_swimlane"), path, title or "the run")

    def save_graph(self, path: str) -> None:
        """Write the tasks and what they wait for as DOT."""
        from . import graph_text

        with open(path, "w", encoding="utf-8") as f:
            f.write(graph_text.dot(self._shown("save_graph")))

    def _shown(self, what: str) -> Records:
        if not self._recorded:
            raise refuse(f"{what}: nothing was recorded", "runtime.run(..., record=True)")
        return self.records


def run(
    orchestrate: Callable[..., Any],
    *args: Any,
    block_dim: int = 24,
    schedulers: int = 3,
    threads: int | None = None,
    record: bool = False,
    check_hazards: bool = False,
    track_war: bool = False,
    seed: int | None = None,
    log: Callable[[int, str], object] | None = None,
    **rings: int,
) -> Run:
    """Run `orchestrate(rt, *args)` and all tasks it submits; returns when they are done.

    `threads` are host threads (default: as many as there are processors). `seed` runs everything on one
    thread in an order that the seed decides, the same every time. `rings`: task_window, heap, dep_pool,
    tensormap_pool. `check_hazards` looks for unordered accesses (Run.hazards), `track_war` orders them.
    """
    unknown = set(rings) - _RINGS
    if unknown:
        raise TypeError(f"run() got an unexpected keyword argument '{min(unknown)}'")
    recorded = bool(record or check_hazards)
    given: dict[str, Any] = {
        "block_dim": block_dim,
        "schedulers": schedulers,
        "host_threads": threads,
        "record": recorded,
        "check_hazards": bool(check_hazards),
        "track_war": bool(track_war),
        "deterministic": seed is not None,
        "seed": seed,
        **rings,
    }
    sink = log or log_file() or _print
    verbose = log_level() >= 2

    def say(level: int, word: str) -> Callable[[str], object]:
        return lambda text: sink(level, f"[{word}] options: {text}") if level < 2 or verbose else None

    made = options(given, say(1, "WARN"), say(2, "INFO"))
    runtime = Runtime(native().Kernels(), made, sink)
    try:
        runtime._native.run_function(lambda: orchestrate(runtime, *args))
    finally:
        runtime._over = True
    raise_failure(
        runtime._native, {i: k.source for i, k in enumerate(runtime._known) if isinstance(k.source, str)}
    )
    return Run(runtime, runtime._native.stats(), recorded)


def _print(level: int, text: str) -> None:
    print(text, file=sys.stderr if level in (0, 1) else sys.stdout)
