"""A `.pto` program as a kernel of the task runtime.

It runs on the virtual machine of the package; nothing is compiled. Its entry function takes the slots of the
task, in order: a pointer is the address of the first element of the tensor (its start offset included), a
view has the shape and the strides of the tensor, a number is the number. Arguments that a launch fills in by
itself (the block, the number of blocks, the vector core) take no slot. Of a mixed kernel the half of the core
type runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..asm import parse_source
from ..diag import Diagnostic, DiagnosticError
from ..engine.entry import SPMD, Launchable
from ..engine.native.kernel import image_of
from ..engine.native.task import Task
from ..ir.core import Value
from ..ir.types import ScalarType, ViewType
from ..isa.profiles import DEFAULT, PROFILES
from ..reading import read

if TYPE_CHECKING:
    from .compile import Job

_KINDS = {"aic": "cube", "aiv": "vector"}


def open_program(job: Job) -> Task:
    """A program that is ready to run as a kernel; raises where it is wrong."""
    kernel = _opened(job)
    kind, arguments = _half(kernel, job)
    tensors = job.runtime == "tensormap_and_ringbuffer"
    return Task(image_of(kernel), kernel.profile, kind, arguments, tensors)


def _opened(job: Job) -> Launchable:
    source, problems = read(job.source)
    if source is None:
        raise DiagnosticError(problems)
    module, problems = parse_source(source)
    if module is None:
        raise DiagnosticError(problems)
    # A job that names no target has the default one: a program that says what it is for has its way then.
    own = job.profile == DEFAULT and "pto.target_arch" in module.attrs
    return Launchable(module, job.entry or None, None if own else PROFILES[job.profile], True)


def element_types(job: Job) -> list[str]:
    """What the slots of a task of the program hold: the type of elements, or nothing for a number."""
    slots = [a for a in _half(_opened(job), job)[1] if a.name not in SPMD]
    return [str(getattr(a.type, "dtype", "")) if not isinstance(a.type, ScalarType) else "" for a in slots]


def _half(kernel: Launchable, job: Job) -> tuple[str, Sequence[Value]]:
    """The kind of core, and the arguments of the function that such a core runs."""
    wanted = _KINDS[job.core_type]
    for kind, _, function in kernel.roles:
        if kind in (wanted, "mix"):
            arguments = function.regions[0].blocks[0].args
            _check_views(kernel, job, arguments)
            return kind, arguments
    has = kernel.roles[0][0]
    message = f"@{kernel.name} of '{job.source}' runs on a {has} core, but its core_type is '{job.core_type}'"
    raise DiagnosticError([Diagnostic("PTO-E2603", message)])


def _check_views(kernel: Launchable, job: Job, arguments: Sequence[Value]) -> None:
    """A view takes its size from a tensor; where slots are addresses, the type has to say it."""
    if job.runtime == "tensormap_and_ringbuffer":
        return
    for a in arguments:
        if isinstance(a.type, ViewType) and a.type.elems is None:
            message = f"%{a.name} of @{kernel.name} is a {a.type.name} of unknown size, but {job.runtime} "
            help = "take a pointer and the sizes, or use the runtime tensormap_and_ringbuffer"
            raise DiagnosticError(
                [Diagnostic("PTO-E2610", message + "gives kernels addresses only", help=help)]
            )
