"""Durations of C++ kernels in virtual time: the cost model, applied to the trace of each task.

A C++ kernel cannot be timed in advance, unlike a program. In virtual time it is compiled with tracing and
executed when it starts. Its duration is that of the timeline of the traced calls (`isa/costs`,
`perf/timeline`), without a launch, on a core by itself.

Tasks with equal traces have equal durations, because a timeline is built from the trace only. The comparison
leaves out parts without cost: addresses of global memory, of which only the sizes of arrays count (an array
that exceeds L2 is slower), and addresses of objects in C++, of which only identity counts. Contents of memory
affect a duration only through the traced calls.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..diag import DiagnosticError
from ..engine.traced.types import Layouts, names
from .durations import Guess, Guessed, guess_of
from .equal_tasks import rename
from .task_traces import Block, Execution, TraceCollector

if TYPE_CHECKING:
    from ..perf.timeline.timeline import Timeline


class Timed:
    """Microseconds of blocks of tasks. The cached durations serve several runs."""

    def __init__(self, machine: str | None, guessed: Guessed) -> None:
        self._machine = machine
        self._guessed = guessed
        self._known: dict[bytes, tuple[float, Guess]] = {}
        self._of_run: dict[tuple[int, int], float] = {}
        self._layouts: Layouts = {}
        self.hearing: TraceCollector | None = None

    @property
    def simulated(self) -> int:
        """The number of different blocks."""
        return len(self._known)

    def listen(self, hearing: TraceCollector) -> None:
        """Begin a run."""
        self.hearing = hearing
        self._of_run.clear()
        self._layouts.clear()

    def us(self, task: int, block: int) -> float | None:
        """Return the microseconds of an executed block; None for a block without a trace."""
        found = self._of_run.get((task, block))
        if found is not None:  # the time includes the other half of a mixed kernel
            return found
        assert self.hearing is not None, "no run has begun"
        cores = self.hearing.take(task, block)
        if not cores:
            return None
        key = _digest(cores, self._layouts)
        if key not in self._known:
            timeline = self._timeline(self.hearing, cores, block)
            self._known[key] = timeline.machine.us(timeline.kernel_cycles), guess_of(timeline)
        us, guess = self._known[key]
        self._of_run[task, block] = us
        name = ", ".join(dict.fromkeys(self.hearing.kernels[c.library] for c in cores.values()))
        self._guessed.note(name, guess)
        return us

    def _timeline(self, hearing: TraceCollector, cores: Block, block: int) -> Timeline:
        from ..engine.sanitize import recorder, watching

        recording = recorder(self._machine or True, hearing.profile, True)
        result = Execution(hearing, cores, block).run(
            watching(frozenset(), None, False, (), recording), dry=True
        )
        if not result.ok or result.timeline is None:
            raise DiagnosticError(list(result.diagnostics))
        return result.timeline


def _digest(cores: Block, layouts: Layouts) -> bytes:
    """Return the digest of everything that the duration of a block depends on."""
    found = hashlib.blake2b(digest_size=16)
    for key in sorted(cores):
        core = cores[key]
        found.update(repr((key, core.library, [a.size for a in core.arrays])).encode())
        words = core.numbers()
        told = names(core.words, layouts)
        rename(words, told.objects + told.addresses + told.contents)
        found.update(words.tobytes())
    return found.digest()
