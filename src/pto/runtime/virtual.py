"""Virtual time: what a run needs for it, as the extension module takes it, and as reports tell it.

    runtime.run(orchestrate, a, out, virtual_time=True, durations={"add": 3.2})

Kernels take the time that `durations` says, everything around them what `overheads` says; values are computed
as ever. The event loop is native (native/runtime/exec/virtual_time.hpp), and the same on any number of host
threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .durations import Durations, Given, Model, modelled
from .overheads import Machine, read_machine
from .tensors import refuse


class Virtual:
    """How a run is timed. One may serve several runs."""

    def __init__(
        self, durations: Given | Durations = None, machine: Any = None, compute: bool = True, says: str = ""
    ) -> None:
        self.machine: Machine = machine if isinstance(machine, Machine) else read_machine(machine)
        self.durations = (
            durations
            if isinstance(durations, Durations)
            else Durations(durations, self.machine.clock_mhz, says)
        )
        self.compute = compute

    def options(self) -> dict[str, Any]:
        """For the extension module."""
        return {"costs": dict(self.machine.costs), "compute": self.compute}

    def know(self, run: Any, func_id: int, name: str, kernel: Any) -> None:
        """A kernel of a run; of a program, the cost model knows what the user does not say."""
        model = None
        program = kernel.module if kernel.module is not None else kernel.source
        is_program = kernel.module is not None or str(program).endswith((".pto", ".ptobc"))
        if is_program and not callable(kernel.source):  # the halves of a mixed one end together
            model = self.model(program, kernel.entry, kernel.floats)
        self.durations.know(run, func_id, name, model)

    def model(self, program: Any, entry: str | None = None, floats: frozenset[int] = frozenset()) -> Model:
        """The cost model of a program."""
        return modelled(program, entry, floats, self.machine.cores or None)

    def told(self, stats: Mapping[str, Any]) -> dict[str, Any]:
        """What the statistics of a run have besides: they tell every view that times are virtual."""
        return {
            **stats,
            "durations": self.durations.says,
            "overheads": self.machine.source or "those of a2a3",
        }


def made(virtual_time: Any, durations: Any, machine: Any, compute: bool) -> Virtual | None:
    """What the arguments of `run` say."""
    if isinstance(virtual_time, Virtual):
        return virtual_time
    if virtual_time:
        return Virtual(durations, machine, compute)
    for name, given in (("durations", durations), ("machine", machine)):
        if given is not None:
            raise refuse(f"{name} is for virtual time", "runtime.run(..., virtual_time=True)")
    if not compute:
        raise refuse("compute=False is for virtual time", "runtime.run(..., virtual_time=True)")
    return None
