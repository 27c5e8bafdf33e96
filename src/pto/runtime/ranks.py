"""Task graphs of several ranks: each rank has its own runtime, and windows that kernels of all ranks access.

    world = runtime.ranks(2)
    data, signal = world.window((1, 8), "i32"), world.window(1, "i32")

    def orchestrate(rt, data, signal, context, out):
        rt.submit(exchange, data, signal, context, out)

    runs = world.run(orchestrate, lambda rank: [data, signal, world.context, outs[rank]], record=True)
    runs.save_trace("ranks.json")

The ranks run concurrently. A kernel that waits for a signal of another rank lets other ranks continue. If no
core of any rank can continue, every rank gets an error with its wait.

A host may run more than one orchestration per rank:

    def steps(host):
        host.submit_group(exchange, lambda rank: [data, signal, world.context, parts[rank]])
        host.submit(add_up, parts, total, rank=0)
        host.call(print, total)

    world.host(steps)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from ..engine.ranks import WINDOW_BYTES, RankContext, Window, World
from .extension import extension
from .host_graph import Bytes, HostGraph
from .options import processors
from .runs import Run, run
from .tensors import refuse

#: The code of a run in which no core can continue.
_STUCK = "PTO-E2624"

Given = Sequence[Sequence[Any]] | Callable[[int], Sequence[Any]]


class RankRuns(list[Run]):
    """The runs of all ranks, by rank."""

    def save_trace(self, path: str) -> None:
        """Write the runs for ui.perfetto.dev or chrome://tracing, the lanes of each rank as a group."""
        _save([(rank, f"rank {rank}", r) for rank, r in enumerate(self)], path)


def _save(runs: Sequence[tuple[int, str, Run]], path: str) -> None:
    """Write a trace of the runs of ranks, with arrows from the writers of a window to its readers."""
    from ..perf import trace
    from ..perf.windows import passed
    from .recorded import window_uses

    first = min((r.begin for _, _, r in runs), default=0)
    shown = [(name, r._shown("save_trace"), r.begin - first) for _, name, r in runs]
    uses = [window_uses(r._runtime._run.records()) for _, _, r in runs]
    found = passed([rank for rank, _, _ in runs], [(r, later) for _, r, later in shown], uses)
    trace.write_several(shown, path, found)


class Submitted:
    """A task that a host submitted to its ranks; `runs` by rank, once it is done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs: dict[int, Run] = {}


class HostRuns(list[Submitted]):
    """The tasks of a host, in submission order."""

    def save_trace(self, path: str) -> None:
        """Write the runs for ui.perfetto.dev or chrome://tracing, by rank."""
        runs = [(rank, f"rank {rank}, {one.name}", r) for one in self for rank, r in one.runs.items()]
        _save(sorted(runs, key=lambda found: found[0]), path)


class Host:
    """The argument of the function of `Ranks.host`. Tasks start when the function returns, or at `wait`.

    A task waits for earlier tasks that have an array in common with it, unless both only read it (`reads`). A
    rank runs one task at a time. Windows add no order; signals do."""

    def __init__(self, world: Ranks, options: dict[str, Any]) -> None:
        self._world = world
        self._options = options
        self._graph = HostGraph(after_readers=True)
        self.submitted = HostRuns()

    def submit(
        self, orchestrate: Callable[..., Any], *args: Any, rank: int, reads: Sequence[Any] = ()
    ) -> Submitted:
        """Run `orchestrate(rt, *args)` and its tasks on a rank."""
        return self.submit_group(orchestrate, [args], [rank], reads)

    def submit_group(
        self,
        orchestrate: Callable[..., Any],
        args: Given,
        ranks: Sequence[int] | None = None,
        reads: Sequence[Any] = (),
    ) -> Submitted:
        """Run an orchestration on several ranks (by default all), which start together."""
        world = self._world.world
        places = list(range(world.ranks)) if ranks is None else [int(r) for r in ranks]
        if wrong := [r for r in places if not 0 <= r < world.ranks]:
            raise refuse(f"unknown rank {wrong[0]}: there are {world.ranks} ranks")
        if len(set(places)) != len(places):
            raise refuse(f"expected each rank once in ranks, got {places}")
        given = [args(rank) for rank in places] if callable(args) else list(args)
        if len(given) != len(places):
            raise refuse(f"expected arguments for {len(places)} ranks, got {len(given)}")
        done = Submitted(getattr(orchestrate, "__name__", "task"))
        bodies = [self._body(orchestrate, rank, mine, done) for rank, mine in zip(places, given, strict=True)]
        self._add(done.name, places, bodies, [a for mine in given for a in mine], reads)
        self.submitted.append(done)
        return done

    def call(self, function: Callable[..., Any], *args: Any, reads: Sequence[Any] = ()) -> None:
        """Call a Python function, which occupies no rank."""
        self._add(
            getattr(function, "__name__", "call"), None, [lambda *_: function(*args)], list(args), reads
        )

    def wait(self) -> None:
        """Run the tasks submitted so far. Afterwards their results are in the arrays."""
        self._graph.run()

    def _body(
        self, orchestrate: Callable[..., Any], rank: int, args: Sequence[Any], done: Submitted
    ) -> Callable[[Any, int], object]:
        world = self._world

        def body(company: Any, member: int) -> None:
            try:
                done.runs[rank] = world.run_one(orchestrate, rank, args, company, member, self._options)
            except DiagnosticError as e:
                raise _failure({rank: e}) from e

        return body

    def _add(
        self,
        name: str,
        places: list[int] | None,
        bodies: Sequence[Callable[[Any, int], object]],
        args: Sequence[Any],
        reads: Sequence[Any],
    ) -> None:
        used = [b for a in args if (b := _bytes(a)) is not None]
        only_read = {_bytes(a) for a in reads}
        self._graph.add(name, places, bodies, used, [b for b in used if b not in only_read])


def _bytes(value: Any) -> Bytes | None:
    """Return the memory of an array or of a tensor of another library; None for other arguments."""
    if not hasattr(value, "__array__"):
        return None
    import numpy as np

    array = np.asarray(value)
    low = high = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return low, low
    for count, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (count - 1) * stride
        else:
            high += (count - 1) * stride
    return low, high + array.itemsize


class Ranks:
    """A number of ranks, with their windows and runs."""

    def __init__(self, count: int, window_bytes: int = WINDOW_BYTES) -> None:
        self.world = World(count, window_bytes)
        #: Placeholder for the communication context of a rank among arguments; see `pto.ranks`.
        self.context = self.world.context

    def window(self, shape: int | Sequence[int], dtype: str = "f32") -> Window:
        """Allocate zeroed memory of this shape on every rank; `window[rank]` is the array of one rank."""
        return self.world.window(shape, dtype)

    def run(self, orchestrate: Callable[..., Any], args: Given, **options: Any) -> RankRuns:
        """Run `orchestrate(rt, *args)` for every rank, and all tasks that it submits. `args` are the
        arguments per rank, or a function that returns them: arguments of `runtime.run`, windows, and
        `context`. Options are those of `runtime.run`; `threads` are per rank."""
        count = self.world.ranks
        given = [args(rank) for rank in range(count)] if callable(args) else list(args)
        if len(given) != count:
            raise ValueError(f"expected arguments for {count} ranks, got {len(given)}")
        _no_seed(options)
        company = extension().Company()
        members = [company.join() for _ in range(count)]
        done: dict[int, Run | BaseException] = {}

        def one(rank: int) -> None:
            try:
                done[rank] = self.run_one(orchestrate, rank, given[rank], company, members[rank], options)
            except BaseException as e:
                done[rank] = e
            finally:
                company.leave(members[rank])

        others = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(1, count)]
        for thread in others:
            thread.start()
        one(0)  # on this thread, so that Ctrl-C ends it
        for thread in others:
            thread.join()
        failed = {rank: e for rank, e in sorted(done.items()) if isinstance(e, BaseException)}
        if failed:
            raise _failure(failed)
        return RankRuns(r for rank, r in sorted(done.items()) if isinstance(r, Run))

    def host(self, steps: Callable[[Host], Any], **options: Any) -> HostRuns:
        """Call `steps(host)`, and run all tasks that it submits; see `Host`. Options are those of
        `runtime.run`, for every task."""
        _no_seed(options)
        host = Host(self, options)
        steps(host)
        host.wait()
        return host.submitted

    def run_one(
        self,
        orchestrate: Callable[..., Any],
        rank: int,
        args: Sequence[Any],
        company: Any,
        member: int,
        options: dict[str, Any],
    ) -> Run:
        """Run one rank, as a member of a run group."""
        count = self.world.ranks
        windows = self.world.address, count * self.world.stride
        threads = options.get("threads") or max(1, processors() // count)
        values = [self._of(rank, value) for value in args]
        return run(
            orchestrate, *values, company=(company, member, windows), **{**options, "threads": threads}
        )

    def _of(self, rank: int, value: Any) -> Any:
        """Return an argument in the form for one rank."""
        if isinstance(value, Window):
            if value.world is not self.world:
                raise refuse("expected a window of these ranks", "make it with their window()")
            return value[rank]
        return self.world.context_of(rank, self.world.address) if isinstance(value, RankContext) else value


def _no_seed(options: dict[str, Any]) -> None:
    if options.get("seed") is not None:
        raise refuse("unsupported seed: ranks run concurrently, in no fixed order", "leave out seed")


def _failure(failed: dict[int, BaseException]) -> BaseException:
    """Return the error of a run. It names the failed ranks, except ranks that were stuck only because another
    rank failed.
    """
    for e in failed.values():
        if not isinstance(e, DiagnosticError):
            return e
    found: list[tuple[int, Diagnostic]] = [
        (rank, d) for rank, e in failed.items() if isinstance(e, DiagnosticError) for d in e.diagnostics
    ]
    cause = [(rank, d) for rank, d in found if d.code != _STUCK] or found
    for rank, d in cause:
        d.message = f"rank {rank}: {d.message}"
    error = DiagnosticError([d for _, d in cause])
    error.__cause__ = failed[cause[0][0]].__cause__
    return error


def ranks(count: int, window_bytes: int = WINDOW_BYTES) -> Ranks:
    """Make ranks to run task graphs on; see `Ranks`."""
    return Ranks(count, window_bytes)
