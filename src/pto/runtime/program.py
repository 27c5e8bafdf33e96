"""A `.pto` program as a kernel of the task runtime.

Its entry function is emitted as C++ and called with the slots of the task, in order: a pointer is the address
of the first element of the tensor (its start offset included), a view has the shape and the strides of the
tensor, a number is the number. Arguments that a launch fills in by itself (the block, the number of blocks,
the vector core) take no slot. Of a mixed kernel the half of the core type is compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..asm import parse_source
from ..cache import Built
from ..codegen.flow import compiled_cpp
from ..diag import Diagnostic, DiagnosticError
from ..engine.cpp import build, compiler, messages
from ..engine.cpp.build import Unit
from ..engine.entry import SPMD, Launchable
from ..ir.core import Value
from ..ir.types import ScalarType, ViewType
from ..isa.profiles import DEFAULT, PROFILES, Profile
from ..reading import read

if TYPE_CHECKING:
    from .compile import Job

_BODY = "kernel.inc"
_KINDS = {"aic": "cube", "aiv": "vector"}
_DEFINES = {
    "cube": ("__DAV_CUBE__",),
    "vector": ("__DAV_VEC__",),
    "mix": ("__DAV_CUBE__", "__DAV_VEC__"),
}


def build_program(job: Job, flags: Callable[[Profile], Sequence[str]]) -> Built:
    """The library of a program, with flags for its target; raises where it is wrong."""
    kernel = _opened(job)
    profile, module = kernel.profile, kernel.module
    kind, function, _ = _half(kernel, job)
    lowered = kernel.lowered("always")
    tensors = job.runtime == "tensormap_and_ringbuffer"
    every = [*flags(profile), *(["-DPTO2_TENSOR_SLOTS"] if tensors else [])]

    def made(lines: bool) -> Built:
        body = Unit(_BODY, compiled_cpp(lowered, lines))
        flags = [*every, *compiler.header_flags(body.text), compiler.VERIFIED, _runtime_headers()]
        return build.cached([Unit("kernel.cpp", _unit(kind, function))], [body], flags)

    built = made(lines=False)
    if not built.ok:  # once more, so that the compiler names lines of the program
        sources = {s.name: s for s in module.sources}
        raise DiagnosticError(messages.diagnostics(made(True).output, sources, exact=False))
    return built


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
    slots = [a for a in _half(_opened(job), job)[2] if a.name not in SPMD]
    return [str(getattr(a.type, "dtype", "")) if not isinstance(a.type, ScalarType) else "" for a in slots]


def _half(kernel: Launchable, job: Job) -> tuple[str, str, Sequence[Value]]:
    """The kind of core, the call of the function that such a core runs with what its parameters are, and
    these."""
    from ..codegen.cpp.spelling import identifier

    wanted = _KINDS[job.core_type]
    for kind, _, function in kernel.roles:
        if kind in (wanted, "mix"):
            arguments = function.regions[0].blocks[0].args
            _check_views(kernel, job, arguments)
            special = [SPMD.index(a.name) + 1 if a.name in SPMD else 0 for a in arguments]
            name = identifier(str(function.attr("sym_name")))
            return kind, f"PTO2_TASK(body::{name}, {', '.join(map(str, special or [0]))})", arguments
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


def _unit(kind: str, call: str) -> str:
    lines = [f"#define {guard}" for guard in _DEFINES[kind]]
    lines += [
        '#include "pto/pto-inst.hpp"',
        "namespace body {",
        f'#include "{_BODY}"',
        "}  // namespace body",
    ]
    return "\n".join([*lines, '#include "pto2/kernel_entry.hpp"', call, ""])


def _runtime_headers() -> str:
    """Headers of ours that a program is compiled with, beside those that `build.cached` knows."""
    state = hashlib.sha256()
    for path in sorted((compiler.include_dir() / "pto2").rglob("*.h*")):
        state.update(path.read_bytes())
    return f"-DPTO2_HEADERS=0x{state.hexdigest()[:15]}"
