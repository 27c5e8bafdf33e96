"""How long C++ kernels take in virtual time: the cost model on what each task did.

A kernel in C++ is no program that could be timed ahead. So in virtual time it is compiled to tell of its
calls, executed when it begins, and takes what the timeline of these calls takes (`isa/costs`,
`perf/timeline`), without a launch, on a core by itself.

Tasks that told the same take the same: what a core tells is all that its timeline is made of. What differs
and has no cost is left out of the comparison: addresses of global memory, for only the sizes of arrays count
(what exceeds L2 is slower), and those of objects in C++, for only which of them are the same counts. Contents
of memory count by what the kernel did because of them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..diag import DiagnosticError
from ..engine.traced.types import Layouts, names
from .alike import rename
from .durations import Guess, Guessed, guess_of
from .told import Block, Execution, Hearing

if TYPE_CHECKING:
    from ..perf.timeline.timeline import Timeline


class Timed:
    """Microseconds of blocks of tasks. What it knows serves several runs."""

    def __init__(self, machine: str | None, guessed: Guessed) -> None:
        self._machine = machine
        self._guessed = guessed
        self._known: dict[bytes, tuple[float, Guess]] = {}
        self._of_run: dict[tuple[int, int], float] = {}
        self._layouts: Layouts = {}
        self.hearing: Hearing | None = None

    @property
    def simulated(self) -> int:
        """How many different blocks there were."""
        return len(self._known)

    def listen(self, hearing: Hearing) -> None:
        """A run begins."""
        self.hearing = hearing
        self._of_run.clear()
        self._layouts.clear()

    def us(self, task: int, block: int) -> float | None:
        """Of a block that has been executed; None where it told nothing."""
        found = self._of_run.get((task, block))
        if found is not None:  # the other half of a mixed one
            return found
        assert self.hearing is not None, "nobody listens"
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

    def _timeline(self, hearing: Hearing, cores: Block, block: int) -> Timeline:
        from ..engine.sanitize import recorder, watching

        recording = recorder(self._machine or True, hearing.profile, True)
        result = Execution(hearing, cores, block).run(
            watching(frozenset(), None, False, (), recording), dry=True
        )
        if not result.ok or result.timeline is None:
            raise DiagnosticError(list(result.diagnostics))
        return result.timeline


def _digest(cores: Block, layouts: Layouts) -> bytes:
    """What the time of a block follows from."""
    found = hashlib.blake2b(digest_size=16)
    for key in sorted(cores):
        core = cores[key]
        found.update(repr((key, core.library, [a.size for a in core.arrays])).encode())
        words = core.numbers()
        told = names(core.words, layouts)
        rename(words, told.objects + told.addresses + told.contents)
        found.update(words.tobytes())
    return found.digest()
