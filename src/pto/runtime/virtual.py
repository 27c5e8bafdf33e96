"""Virtual time of a run: its durations and overheads, and its statistics for reports.

    runtime.run(orchestrate, a, out, virtual_time=True, durations={"add": 3.2})

Kernels take the time in `durations`, everything around them the time in `overheads`; values are computed as
in real time. The event loop is native (native/runtime/exec/virtual_time.hpp), and the same on any number of
host threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .durations import Durations, Given, Guessed, Model, modelled
from .overheads import RuntimeMachine, read_machine
from .tensors import refuse

if TYPE_CHECKING:
    from .task_times import Timed
    from .task_traces import TraceCollector


class Virtual:
    """The timing of a run. One object may serve several runs."""

    def __init__(
        self,
        durations: Given | Durations = None,
        machine: Any = None,
        compute: bool = True,
        says: str = "",
        listen: bool = True,
    ) -> None:
        """`listen`: time C++ kernels by their traces."""
        self.machine: RuntimeMachine = (
            machine if isinstance(machine, RuntimeMachine) else read_machine(machine)
        )
        self.durations = (
            durations
            if isinstance(durations, Durations)
            else Durations(durations, self.machine.clock_mhz, says)
        )
        self.compute = compute
        self._listen = listen
        self._timed: Timed | None = None
        self._guessed = Guessed()

    def options(self) -> dict[str, Any]:
        """Return options for the extension module."""
        return {"costs": dict(self.machine.costs), "compute": self.compute}

    def listens(self, func_id: int, name: str) -> bool:
        """Return True if a C++ kernel has to be traced, because no table has its duration."""
        return self.compute and self._listen and not self.durations.has(func_id, name)

    def begin(self, run: Any, hearing: TraceCollector | None) -> None:
        """Begin a run with traces."""
        self._guessed.clear()
        self.durations.attach(run)
        if hearing is not None:
            if self._timed is None:
                from .task_times import Timed

                self._timed = Timed(self.machine.cores or None, self._guessed)
            self._timed.listen(hearing)

    def know(
        self,
        run: Any,
        func_id: int,
        name: str,
        program: tuple[Any, str | None, frozenset[int]] | None = None,
        library: str = "",
    ) -> None:
        """Register a kernel of a run. Without a duration of the user, the cost model times it: a program (a
        module or its path, its entry, its float parameters), or a C++ library by its trace."""
        model = self._model(name, program) if program is not None else None
        told = self._timed if library and self.listens(func_id, name) else None
        if told is not None and told.hearing is not None and library not in told.hearing.kernels:
            told.hearing.hear(library, name)
        why = ""
        if library and not self.compute:
            why = "; the cost model needs the trace of a C++ kernel, but nothing is computed"
        self.durations.know(run, func_id, name, model, told, why)

    def _model(self, name: str, program: tuple[Any, str | None, frozenset[int]]) -> Model:
        return modelled(name, *program, self.machine.cores or None, self._guessed)

    def told(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """Return the statistics of a run, with the fields that mark its times as virtual."""
        return {
            **stats,
            "durations": self.durations.says,
            "overheads": self.machine.source or "those of a2a3",
            **({"guessed": str(self._guessed)} if self._guessed else {}),
        }


def made(virtual_time: Any, durations: Any, machine: Any, compute: bool) -> Virtual | None:
    """Return the timing for arguments of `run`; None in real time."""
    if isinstance(virtual_time, Virtual):
        return virtual_time
    if virtual_time:
        return Virtual(durations, machine, compute)
    for name, given in (("durations", durations), ("machine", machine)):
        if given is not None:
            raise refuse(f"cannot use {name} in real time", "runtime.run(..., virtual_time=True)")
    if not compute:
        raise refuse("cannot use compute=False in real time", "runtime.run(..., virtual_time=True)")
    return None
