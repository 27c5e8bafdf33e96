"""Jobs: kernels and orchestrations to compile (`compile`) or to prepare (`program`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..isa.profiles import DEFAULT
from ..isa.record import Record

if TYPE_CHECKING:
    from ..ir.core import Module


class Job(Record):
    """One library to make. `core_type` is empty for an orchestration; `entry` is the function to run of a
    `.pto` program, or the symbol that an orchestration has to export."""

    name: str
    source: str
    core_type: str = ""
    runtime: str = "tensormap_and_ringbuffer"
    profile: str = DEFAULT
    entry: str = ""
    include_dirs: tuple[str, ...] = ()  # folders of headers, besides that of the source
    form: str = ""  # CHIP; "": from the text of the orchestration
    config: str = "aicpu_orchestration_config"  # of an orchestration: its configuration function
    traced: bool = False  # a kernel traces its calls, and an orchestration keeps the frames of its callers
    program: Module | None = None  # a kernel as a program in memory

    @property
    def is_program(self) -> bool:
        return self.program is not None or self.source.endswith((".pto", ".ptobc"))
