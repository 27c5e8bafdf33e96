"""Programs as kernels of the task runtime: a `.pto` file, or a module in memory.

The program runs on the virtual machine of the package; nothing is compiled. Its entry function takes the
slots of the task, in order: a pointer is the address of the first element of the tensor (its start offset
included), a view has the shape and the strides of the tensor, a number is the number. Arguments that a launch
sets (the block, the number of blocks, the vector core) take no slot. For a mixed kernel, the half of the core
type runs; with core type `mixed` both halves run, each with the slots from the first one on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from ..asm import parse_source
from ..codegen.cpp.spelling import identifier
from ..codegen.flow import compiled_cpp
from ..diag import Diagnostic, DiagnosticError
from ..engine.cpp import launcher
from ..engine.entry import SPMD, Launchable
from ..engine.native.kernel import image_of
from ..engine.native.task import NativeTask, packed
from ..image.generic import Origins
from ..ir.core import Module, Operation, Value
from ..ir.types import MemRefType, ScalarType, ViewType
from ..isa.profiles import DEFAULT, PROFILES
from ..isa.record import Record
from ..reading import read
from .jobs import Job

#: Kinds of core that run a kernel, by its declared core type.
_KINDS = {"aic": ("cube",), "aiv": ("vector",), "mixed": ("cube", "vector")}


class RuntimeProgram(Record):
    """A module that is ready to run: the tasks of each kind of core, the element types of slots, and the
    number of vector cores of a cluster."""

    tasks: tuple[NativeTask, ...]
    elements: list[str]
    lanes: int = 1


_programs: WeakKeyDictionary[Module, dict[tuple[str, ...], RuntimeProgram]] = WeakKeyDictionary()


def program_of(module: Module, entry: str, core: str, runtime: str) -> RuntimeProgram:
    """Return a module as a kernel, cached as long as the module lives."""
    known = _programs.setdefault(module, {})
    key = (entry, core, runtime)
    if key not in known:
        kernel = Launchable(module, entry or None, None, True)
        found = [_half(kernel, module.source.name, kind, core, runtime) for kind in _KINDS[core]]
        _check_shared(kernel, [args for _, args in found])
        origins: Origins = []
        image, tensors = image_of(kernel, origins), runtime == "tensormap_and_ringbuffer"
        tasks = tuple(
            NativeTask(image, kernel.profile, kind, args, tensors, _meets(module), origins)
            for kind, args in found
        )
        known[key] = RuntimeProgram(
            tasks, _elements(max((args for _, args in found), key=len)), kernel.subblocks
        )
    return known[key]


def _check_shared(kernel: Launchable, halves: Sequence[Sequence[Value]]) -> None:
    """Check that the halves of a task have the same element types in their common slots."""
    for n, held in enumerate(zip(*map(_elements, halves), strict=False)):
        if len(set(held)) > 1:
            message = f"the halves of @{kernel.name} share their parameters, but parameter {n} "
            holds = " and ".join(h or "a number" for h in held)
            help = "give both halves all parameters, in the same order"
            loc = kernel.functions[-1].loc
            raise DiagnosticError(
                [Diagnostic("PTO-E2603", f"{message}holds {holds}", loc and loc.head, help=help)]
            )


def operation_at(module: Module, mark: int) -> Operation | None:
    """Return the operation of a module that a core was executing when it failed (`Module.mark`)."""
    return next((op for op in module.walk() if module.mark(op) == mark), None)


def open_program(job: Job) -> NativeTask:
    """Return a program that is ready to run as a kernel; raise if it is invalid."""
    kernel = _opened(job)
    kind, arguments = _half(kernel, job.source, _KINDS[job.core_type][0], job.core_type, job.runtime)
    tensors = job.runtime == "tensormap_and_ringbuffer"
    origins: Origins = []
    image = image_of(kernel, origins)
    return NativeTask(image, kernel.profile, kind, arguments, tensors, _meets(kernel.module), origins)


def traced_source(job: Job) -> tuple[str, str, Launchable]:
    """Return a program as traced C++: the unit to compile, its `kernel.inc`, and the kernel. Raise if the
    program is invalid."""
    kernel = _opened(job)
    kind, arguments = _half(kernel, job.source, _KINDS[job.core_type][0], job.core_type, job.runtime)
    function = next(f for k, _, f in kernel.roles if k == kind)
    text = compiled_cpp(kernel.lowered_as_run(), lines=True)
    name = identifier(str(function.attr("sym_name")))
    unit = launcher.task(kind, name, list(map(_parameter, arguments)), launcher.BODY, text)
    return unit, text, kernel


def _parameter(argument: Value) -> str:
    """Return an argument as a value of `pto2::Parameter`."""
    name, shape, stride = json.dumps(f"%{argument.name}"), [1] * 5, [0] * 5
    if argument.name in SPMD:
        kind = ("block", "blocks", "subblock")[SPMD.index(argument.name)]
    elif isinstance(argument.type, ScalarType):
        kind = "number"
    elif isinstance(argument.type, ViewType | MemRefType):
        kind = "view"
        if isinstance(argument.type, ViewType):
            shape, stride = packed(argument.type)
    else:
        kind = "pointer"
    shown = "}, {".join(", ".join(map(str, numbers)) for numbers in (shape, stride))
    return f"{{pto2::Parameter::{kind}, {name}, {{nullptr, {{{shown}}}}}}}"


def _meets(module: Module) -> bool:
    """Return True if there is a grid barrier: all blocks of such a kernel have to start together."""
    return any(op.name == "pto.syncall" for op in module.walk())


def _opened(job: Job) -> Launchable:
    module = job.program if job.program is not None else _read(job.source)
    # A job without a target has the default one; then the target of the program applies.
    own = job.profile == DEFAULT and "pto.target_arch" in module.attrs
    return Launchable(module, job.entry or None, None if own else PROFILES[job.profile], True)


def _read(path: str) -> Module:
    source, problems = read(path)
    if source is None:
        raise DiagnosticError(problems)
    module, problems = parse_source(source)
    if module is None:
        raise DiagnosticError(problems)
    return module


def element_types(job: Job) -> list[str]:
    """Return the element types of the slots of a task; "" for a number."""
    kernel = _opened(job)
    return _elements(_half(kernel, job.source, _KINDS[job.core_type][0], job.core_type, job.runtime)[1])


def _elements(arguments: Sequence[Value]) -> list[str]:
    slots = [a for a in arguments if a.name not in SPMD]
    return [str(getattr(a.type, "dtype", "")) if not isinstance(a.type, ScalarType) else "" for a in slots]


def _half(
    kernel: Launchable, source: str, wanted: str, core: str, runtime: str
) -> tuple[str, Sequence[Value]]:
    """Return the kind of core, and the arguments of the function for this kind of core."""
    for kind, _, function in kernel.roles:
        if kind == wanted or (kind == "mix" and core != "mixed"):
            arguments = function.regions[0].blocks[0].args
            _check_views(kernel, runtime, arguments)
            return kind, arguments
    has = kernel.roles[0][0]
    message = f"@{kernel.name} of '{source}' runs on a {has} core, but its core_type is '{core}'"
    function = kernel.functions[0]
    raise DiagnosticError([Diagnostic("PTO-E2603", message, function.loc and function.loc.head)])


def _check_views(kernel: Launchable, runtime: str, arguments: Sequence[Value]) -> None:
    """Reject views without a static size where slots are addresses: only a tensor has a size."""
    if runtime == "tensormap_and_ringbuffer":
        return
    for a in arguments:
        if isinstance(a.type, ViewType) and a.type.elems is None:
            message = f"%{a.name} of @{kernel.name} is a {a.type.name} of unknown size, but {runtime} "
            help = "take a pointer and the sizes, or use the runtime tensormap_and_ringbuffer"
            raise DiagnosticError([Diagnostic("PTO-E2610", message + "passes addresses only", help=help)])
