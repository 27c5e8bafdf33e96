"""Jobs: kernels and orchestrations that `compile` makes libraries of, or `program` makes ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..isa.profiles import DEFAULT
from ..isa.record import Record

if TYPE_CHECKING:
    from ..ir.core import Module


class Job(Record):
    """One library to make. `core_type` is empty for an orchestration; `entry` is the function of a `.pto`
    program to run, or what an orchestration has to export."""

    name: str
    source: str
    core_type: str = ""
    runtime: str = "tensormap_and_ringbuffer"
    profile: str = DEFAULT
    entry: str = ""
    include_dirs: tuple[str, ...] = ()  # of the user's headers, beside that of the source
    form: str = ""  # CHIP, or what the text of an orchestration says
    config: str = "aicpu_orchestration_config"  # of an orchestration: the function that describes it
    traced: bool = False  # a kernel traces its calls, and an orchestration keeps the frames of its callers
    program: Module | None = None  # of a kernel that is a program in memory

    @property
    def is_program(self) -> bool:
        return self.program is not None or self.source.endswith((".pto", ".ptobc"))
