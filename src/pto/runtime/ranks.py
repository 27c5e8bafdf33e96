"""Task graphs of several ranks: each has a runtime of its own, on windows that the kernels of all reach.

    world = runtime.ranks(2)
    data, signal = world.window((1, 8), "i32"), world.window(1, "i32")

    def orchestrate(rt, data, signal, context, out):
        rt.submit(exchange, data, signal, context, out)

    runs = world.run(orchestrate, lambda rank: [data, signal, world.context, outs[rank]], record=True)
    runs.save_trace("ranks.json")

The runs go on side by side. A kernel that waits for a signal of another rank lets the others go on; where no
core of any rank can, all of them are told what they wait for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..diag import Diagnostic, DiagnosticError
from ..engine.ranks import WINDOW_BYTES, Context, Window, World
from .extension import extension
from .runs import Run, run
from .tensors import refuse

#: The code of a run in which no core can go on.
_STUCK = "PTO-E2624"

Given = Sequence[Sequence[Any]] | Callable[[int], Sequence[Any]]


class RankRuns(list[Run]):
    """What the runs of all ranks did, by rank."""

    def save_trace(self, path: str) -> None:
        """Write them for ui.perfetto.dev or chrome://tracing, the lanes of one rank below another's."""
        from ..perf import trace

        first = min(r.begin for r in self)
        trace.write_several(
            [(f"rank {n}", r._shown("save_trace"), r.begin - first) for n, r in enumerate(self)], path
        )


class Ranks:
    """A number of ranks, their windows, and runs on them."""

    def __init__(self, count: int, window_bytes: int = WINDOW_BYTES) -> None:
        self.world = World(count, window_bytes)
        #: Stands for the structure of a rank among arguments; see `pto.ranks`.
        self.context = self.world.context

    def window(self, shape: int | Sequence[int], dtype: str = "f32") -> Window:
        """Memory of that shape for every rank, zero at first; `window[rank]` is the array of one."""
        return self.world.window(shape, dtype)

    def run(self, orchestrate: Callable[..., Any], args: Given, **options: Any) -> RankRuns:
        """Run `orchestrate(rt, *args)` for every rank and all tasks that they submit. `args` are the
        arguments of each rank, or a function that gives them: what `runtime.run` takes, windows, and
        `context`. Options are those of `runtime.run`; `threads` are those of each rank."""
        count = self.world.ranks
        given = [args(rank) for rank in range(count)] if callable(args) else list(args)
        if len(given) != count:
            raise ValueError(f"arguments for {len(given)} ranks, but there are {count}")
        if options.get("seed") is not None:
            raise refuse("ranks run side by side, in no order that a seed decides", "leave out seed")
        options.setdefault("threads", max(1, (os.cpu_count() or 1) // count))
        company = extension().Company()
        members = [company.join() for _ in range(count)]
        windows = self.world.address, count * self.world.stride
        done: dict[int, Run | BaseException] = {}

        def one(rank: int) -> None:
            try:
                values = [self._of(rank, value) for value in given[rank]]
                done[rank] = run(orchestrate, *values, company=(company, members[rank], windows), **options)
            except BaseException as e:
                done[rank] = e
            finally:
                company.leave(members[rank])

        others = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(1, count)]
        for thread in others:
            thread.start()
        one(0)  # here, so that Ctrl-C ends it
        for thread in others:
            thread.join()
        failed = {rank: e for rank, e in sorted(done.items()) if isinstance(e, BaseException)}
        if failed:
            raise _failure(failed)
        return RankRuns(r for rank, r in sorted(done.items()) if isinstance(r, Run))

    def _of(self, rank: int, value: Any) -> Any:
        """An argument as a rank has it."""
        if isinstance(value, Window):
            if value.world is not self.world:
                raise refuse("a window of other ranks", "make it with window() of these")
            return value[rank]
        return self.world.context_of(rank, self.world.address) if isinstance(value, Context) else value


def _failure(failed: dict[int, BaseException]) -> BaseException:
    """What the ranks failed of: who fails of something else leaves others stuck."""
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
    """Ranks to run task graphs on; see `Ranks`."""
    return Ranks(count, window_bytes)
