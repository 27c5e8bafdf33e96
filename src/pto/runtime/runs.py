"""A run of a Python orchestration, and its result."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, did_you_mean, has_errors
from ..engine import journal
from ..engine.sanitize import OF_GRAPHS, asked, checks, parse_names
from ..perf.hazards import Hazard, as_errors, hazards_of, problems, unordered
from ..shown import Shown
from . import recorded
from .extension import extension
from .failures import RunFailure, raise_failure
from .graph import RUNTIMES as GRAPHS
from .graph import Graph
from .options import log_file, log_level, options
from .session import Runtime, Session
from .tensors import refuse
from .virtual import made as virtual_of

if TYPE_CHECKING:
    from ..ir.core import Module
    from ..perf.records import Records

#: Options of all runtimes, and options of the runtime with rings.
_EVERYWHERE = frozenset(("shards", "poison", "stall_seconds"))
_RINGS = frozenset(("task_window", "heap", "dep_pool", "tensormap_pool"))


class Ran(Shown):
    """The result of a run. `hazards` are unordered accesses, if the run was checked for them."""

    records: Records  # tasks, edges, phases and counters; empty unless the run was recorded
    hazards: list[Hazard]
    diagnostics: list[Diagnostic]  # reports of the sanitizers

    def __init__(self, stats: dict[str, Any], recorded: bool) -> None:
        self.stats = stats
        self._recorded = recorded

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary().partition(chr(10))[0].strip()}>"

    def summary(self) -> str:
        """Return a table for the terminal."""
        from ..perf.summary import text

        if not self._recorded:
            done = f"{self.stats['tasks']} tasks, {self.stats['edges']} dependencies"
            spent = f"{self.stats['seconds'] * 1e3:.2f} ms"
            if "virtual_ns" in self.stats:
                spent = f"{self.stats['virtual_ns'] / 1e3:.2f} us of virtual time"
            return f"{done} in {spent}; record=True shows where the time went"
        return text(self.records)

    def save_trace(self, path: str) -> None:
        """Write the run for ui.perfetto.dev or chrome://tracing."""
        from ..perf import trace

        trace.write(self._shown("save_trace"), path)

    def save_swimlane(self, path: str, title: str = "") -> None:
        """Write a page of the run: a lane per core, with the critical path."""
        from ..perf.explorer import tasks

        tasks.write(self._shown("save_swimlane"), path, title or "the run")

    def save_graph(self, path: str) -> None:
        """Write the tasks and their dependencies as DOT."""
        from ..perf import task_graph

        kind = os.path.splitext(path)[1]
        if kind in (".svg", ".png", ".pdf"):
            text = os.path.splitext(path)[0] + ".dot"
            raise refuse(
                f"cannot write '{path}': save_graph writes DOT, the text of a graph",
                f"save_graph('{text}'), then: dot -T{kind[1:]} {text} -o {path}",
            )
        with open(path, "w", encoding="utf-8") as f:
            f.write(task_graph.dot(self._shown("save_graph")))

    def _shown(self, what: str) -> Records:
        if not self._recorded:
            raise refuse(f"cannot use {what}: the run was not recorded", "runtime.run(..., record=True)")
        return self.records


class Replayed(Ran):
    """The result of a run of a saved program."""

    def __init__(self, records: Records, hazards: list[Hazard], recorded: bool) -> None:
        super().__init__(dict(records.stats), recorded)
        self.records = records
        self.hazards = hazards
        #: Reports of the sanitizers in `checked`; `unchecked` are kernels not fully checked, with the reason.
        self.diagnostics: list[Diagnostic] = []
        self.checked: frozenset[str] = frozenset()
        self.unchecked: dict[str, str] = {}

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


class Run(Ran):
    """The result of a run."""

    def __init__(
        self,
        runtime: Session,
        stats: dict[str, Any],
        recorded: bool,
        checked: bool,
        sanitize: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(stats, recorded)
        self._runtime = runtime
        self._checked = checked
        #: Requested sanitizers.
        self.checked = sanitize

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Reports of the sanitizers."""
        watch, found = self._runtime._watch, []
        if watch is not None:
            raw = self._runtime._run.records()
            found = watch.problems(raw["sites"], raw.get("blank_reads", ()))
        if OF_GRAPHS in self.checked:
            hazards = self.hazards if watch is None else watch.hazards(self.hazards)
            found += as_errors(problems(hazards))
        return found

    def leave_out(self, kernels: Mapping[str, str]) -> None:
        """Record kernels that were not fully checked, with the reason."""
        self._runtime._unwatched.update(kernels)

    @property
    def unchecked(self) -> dict[str, str]:
        """Kernels that the sanitizers did not check completely, with the reason."""
        found, watch = dict(self._runtime._unwatched), self._runtime._watch
        if watch is not None and self.diagnostics is not None:  # executes all blocks
            found.update(watch.unchecked)
        return found

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    @cached_property
    def records(self) -> Records:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Tasks, edges, phases and counters; empty unless the run was recorded."""
        return recorded.records(self._runtime._run.records(), self._names, self.stats)

    @property
    def begin(self) -> int:
        """The start of the run, in nanoseconds of a clock that all runs share."""
        return int(self._runtime._run.records()["start"])

    def window_uses(self) -> list[recorded.WindowUse]:
        """Return the accesses to the arrays that `keep_order` got, if the run was checked for hazards."""
        return recorded.ordered_uses(self._runtime._run.records())

    def order(self) -> list[tuple[int, int]]:
        """Return the dependencies of all tasks, if the run was checked for hazards. Negative numbers are
        points in the run of the orchestrator."""
        return self._runtime._run.order()

    def modules(self) -> list[Module | None]:
        """Return the programs of the kernels, by number."""
        return [kernel.module for kernel in self._runtime._known]

    @property
    def _names(self) -> dict[int, str]:
        names = dict(enumerate(self._runtime._names))
        return {-1: "dummy", **names} if self._runtime._dummies else names

    @cached_property
    def hazards(self) -> list[Hazard]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Unordered accesses, if the run was checked for them."""
        if not self._checked:
            return []
        raw = self._runtime._run.records()
        uses, names = recorded.uses(raw), recorded.names_of(raw, self._names)
        if isinstance(rt := self._runtime, Graph):
            return unordered(uses, raw["sites"], rt._edges, names, rt._declared)
        return hazards_of(rt._run.hazards(), uses, raw["sites"], names)


def run(
    orchestrate: Callable[..., Any],
    *args: Any,
    runtime: str = "tensormap_and_ringbuffer",
    block_dim: int = 24,
    schedulers: int = 3,
    threads: int | None = None,
    record: bool = False,
    check_hazards: bool = False,
    sanitize: str | Sequence[str] | None = None,
    strict_undef: bool | None = None,
    sample: int | str | None = None,
    track_war: bool = False,
    seed: int | None = None,
    log: Callable[[int, str], object] | None = None,
    company: tuple[Any, int, tuple[int, int]] | None = None,
    virtual_time: Any = False,
    durations: Any = None,
    machine: Any = None,
    compute: bool = True,
    **rings: int,
) -> Run:
    """Run `orchestrate(rt, *args)` and all tasks that it submits; return when they are done.

    `runtime` is tensormap_and_ringbuffer, where `rt.submit` finds the dependencies of tasks, or
    host_build_graph or aicpu_build_graph, where `rt.add_task` and `rt.add_successor` define them. `threads`
    is the number of host threads (default: the number of processors). `seed` runs everything on one thread,
    in an order that depends on the seed only. `rings`: task_window, heap, dep_pool, tensormap_pool.
    `check_hazards` looks for unordered accesses (Run.hazards), `track_war` orders them. `sanitize` names
    checks (`pto.engine.sanitize.NAMES`, or "all"; default: PTO_SANITIZE) of C++ kernels, programs and the
    order of tasks. Run.diagnostics has the reports, and Run.unchecked the kernels that were not checked.
    `strict_undef` reports undefined data in tensors between tasks even if it has no effect. `company` is the
    run group: the runs that kernels may wait for, the number of this run in the group, and the memory that
    all of them access (see `ranks`).

    With `virtual_time` kernels take the microseconds of `durations` (a mapping by kernel name, a function of
    a `TaskInfo`, a file), and the runtime those of `machine` (a .toml file; default: a2a3). Times, traces and
    summaries are virtual, and the same on any number of threads. `compute=False` leaves out the computations
    of kernels.
    """
    unknown = set(rings) - _RINGS - _EVERYWHERE
    if unknown:
        raise TypeError(f"run() got an unexpected keyword argument '{min(unknown)}'")
    if runtime not in ("tensormap_and_ringbuffer", *GRAPHS):
        names = ", ".join(("tensormap_and_ringbuffer", *GRAPHS))
        raise refuse(f"unknown runtime {runtime!r}", did_you_mean(str(runtime), GRAPHS) or names)
    if runtime in GRAPHS and (
        useless := [*(["track_war"] if track_war else []), *sorted(_RINGS & set(rings))]
    ):
        raise refuse(f"unsupported option {useless[0]}: {runtime} has explicit edges, and no rings")
    if "poison" in rings:
        rings["poison"] = bool(rings["poison"])
    virtual = virtual_of(virtual_time, durations, machine, compute)
    if virtual is not None and (seed is not None or company is not None):
        what = "seed" if seed is not None else "company"
        raise refuse(f"unsupported {what} in virtual time: its order is fixed", f"leave {what} out")
    names = parse_names(sanitize) if sanitize is not None else asked()
    left_out = {"every kernel": "virtual time"} if names and virtual is not None else {}
    if names and (virtual is not None or company is not None):
        if sanitize is not None:
            raise refuse(
                "unsupported sanitize: it checks runs in real time, of one chip", "leave sanitize out"
            )
        names = frozenset()
    check_hazards = bool(check_hazards) or OF_GRAPHS in names
    recorded = bool(record or check_hazards or names)
    given: dict[str, Any] = {
        "block_dim": block_dim,
        "schedulers": schedulers,
        "host_threads": threads,
        "record": recorded,
        "check_hazards": bool(check_hazards),
        "track_war": bool(track_war),
        "deterministic": seed is not None,
        "seed": seed,
        **({"poison": True} if "undef" in names else {}),
        **rings,
    }
    if company is not None:
        given["company"], given["member"], given["windows"] = company
    if virtual is not None:
        given["virtual_time"] = virtual.options()
    sink = log or log_file() or _print
    verbose = log_level() >= 2

    def say(level: int, word: str) -> Callable[[str], object]:
        return lambda text: sink(level, f"[{word}] options: {text}") if level < 2 or verbose else None

    made = options(given, say(1, "WARN"), say(2, "INFO"))
    kernels = extension().Kernels()
    watched = checks(names, strict_undef, sample) if names else None
    if runtime in GRAPHS:
        rt: Session = Graph(kernels, made, sink, runtime, virtual, watched)
    else:
        rt = Runtime(kernels, made, sink, virtual, watched)

    def build() -> None:
        orchestrate(rt, *args)
        if isinstance(rt, Graph):
            rt._finish()

    try:
        rt._run.run_function(build)
    finally:
        rt.end()
        kernels.forget_functions()
        rt._run.forget_durations()
    sources = {i: k.module or k.source for i, k in enumerate(rt._known) if not callable(k.source)}
    try:
        raise_failure(rt._run, sources, python=True)
    except RunFailure as e:
        if rt._hearing is not None:
            e.stand_at(rt._hearing.failed_at())
        raise
    stats = rt._run.stats()
    done = Run(rt, virtual.told(stats) if virtual is not None else stats, recorded, check_hazards, names)
    done.leave_out(left_out)
    if names and sanitize is None:
        journal.note("finding", getattr(orchestrate, "__name__", "graph"), tuple(done.diagnostics))
    return done


def _print(level: int, text: str) -> None:
    print(text, file=sys.stderr if level in (0, 1) else sys.stdout)
