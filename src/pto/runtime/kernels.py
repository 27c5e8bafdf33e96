"""Kernels of a Python orchestration: the code of tasks, and the roles of its parameters."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import knobs
from ..diag import DiagnosticError
from ..ir.core import Module
from ..ir.facts import halves
from ..perf.tables import CORE_TYPES
from ..reading import is_text, parse
from .tensors import refuse

if TYPE_CHECKING:
    from ..engine.native.task import NativeTask
    from .compile import CompiledJob, Job
    from .program import RuntimeProgram
    from .task_traces import TraceCollector

#: Roles of parameters. A scalar is 64 bits, a float is an f32 in the low half of such a slot.
ROLES = {"in": 0, "out": 1, "inout": 2, "scalar": 3, "float": 3, "pipe_in": 0, "pipe_out": 1}
MAX_PARAMS = 64
#: Cores of a kernel: one core of a type, or the cores of a cluster together.
_CORES = (*CORE_TYPES, "mixed")
#: Kernels to compile. A run compiles all of them before it starts, so that its time has no compilation.
_sources: weakref.WeakSet[Kernel] = weakref.WeakSet()


class Kernel:
    """The code of tasks: a Python function, a C++ or `.pto` source, compiled when a run needs it, or a
    program in memory (a `pto.Module`, or its text), which the driver completes like a file.

    `args` has a role per parameter: in, out, inout, scalar (an integer) or float (an f32); pipe_in and
    pipe_out for a FIFO of a cluster that the kernel pops from or pushes to (`Runtime.pipe`). A kernel on
    `core="mixed"` is a program of a cube and a vector half: a task runs both, on one cluster.
    """

    def __init__(
        self,
        source: Callable[..., Any] | str | os.PathLike[str] | Module,
        args: str,
        core: str = "aiv",
        name: str | None = None,
        entry: str | None = None,
        include_dirs: Sequence[str] = (),
    ) -> None:
        words = roles(args)
        if core not in _CORES:
            raise refuse(f"unknown core type {core!r}", "use 'aic', 'aiv' or 'mixed'")
        if not callable(source) and not isinstance(source, str | os.PathLike | Module):
            raise refuse(
                f"expected a kernel, got {type(source).__name__}",
                "give a function, the path of a source, or a program",
            )
        #: The program, if it is in memory.
        self.module = _module(source, core)
        self.source = (
            self.module.source.name
            if self.module is not None
            else source
            if callable(source)
            else os.fspath(source)  # type: ignore[arg-type]
        )
        self.words = words
        self.roles = bytes(ROLES[w] for w in words)
        self.floats = frozenset(i for i, w in enumerate(words) if w == "float")
        self.core = core
        self.core_type = _CORES.index(core)
        self.entry = entry
        self.include_dirs = tuple(include_dirs)
        if not callable(source) and self.module is None:
            _sources.add(self)
        self.name = name or (
            entry or _entry_name(self.module)
            if self.module is not None
            else str(getattr(source, "__name__", "kernel"))
            if callable(source)
            else _stem(str(self.source))
        )

    def __repr__(self) -> str:
        return f"<Kernel {self.name} on {self.core}>"


class Pair(Kernel):
    """Two kernels in C++, for the AIC and the AIVs of a cluster: a task runs both, on the same arguments.
    `lanes` is the number of AIVs."""

    def __init__(self, aic: Kernel, aiv: Kernel, name: str, lanes: int = 1) -> None:
        self.module = None
        self.source = aic.source
        self.words, self.roles, self.floats = aic.words, aic.roles, aic.floats
        self.core, self.core_type = "mixed", _CORES.index("mixed")
        self.entry, self.include_dirs, self.name = None, (), name
        self.halves = (aic, aiv)
        self.lanes = lanes


def _module(source: Any, core: str) -> Module | None:
    """Return the program of a kernel in memory; for both halves, also the program of a file."""
    if isinstance(source, Module):
        return source
    if callable(source):
        if core == "mixed":
            raise refuse("cannot run a function on core='mixed'", "give a program of two halves")
        return None
    if is_text(source):
        return parse(source)
    if core != "mixed":
        return None
    if not os.fspath(source).endswith((".pto", ".ptobc")):
        raise refuse(f"expected a .pto of two halves for core='mixed', got '{os.fspath(source)}'")
    return parse(source)


def _entry_name(module: Module) -> str:
    """Return the name of a program in memory: that of its only function, or of its halves."""
    functions = {str(f.attr("sym_name")): f for f in module.functions}
    names = [*halves(functions), *functions]
    return names[0] if names else "kernel"


def kernel(
    source: Callable[..., Any] | str | os.PathLike[str] | Module,
    args: str,
    core: str = "aiv",
    name: str | None = None,
    entry: str | None = None,
) -> Kernel:
    """Make a kernel from a Python function, from the path of a C++ or `.pto` source, or from a program in
    memory."""
    return Kernel(source, args, core, name, entry)


def roles(args: Any) -> list[str]:
    """Return the role of each parameter."""
    help = "use in, out, inout, scalar, float, pipe_in and pipe_out"
    if not isinstance(args, str):
        raise refuse(f"kernel arguments {args!r}: expected a text such as 'in in out'", help)
    words = args.split()
    unknown = [w for w in words if w not in ROLES]
    if unknown or len(words) > MAX_PARAMS:
        what = f"unknown role '{unknown[0]}'" if unknown else f"{len(words)} parameters, at most {MAX_PARAMS}"
        raise refuse(f"kernel arguments '{args}': {what}", help)
    return words


def check_values(kernel: Kernel, values: Sequence[Any], tensor: type) -> None:
    """Reject a number for a tensor parameter, and the reverse."""
    for i, (word, value) in enumerate(zip(kernel.words, values, strict=True)):
        wanted = "a number" if ROLES[word] == ROLES["scalar"] else "a tensor"
        got = "a tensor" if isinstance(value, tensor) else "a number"
        if wanted != got:
            raise refuse(f"expected {wanted} for parameter {i} of kernel {kernel.name}, got {got}")


def _stem(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]


class _CompiledKernel:
    """The compiled form of a kernel for a runtime, valid until one of its files changes."""

    def __init__(self, made: CompiledJob, files: Sequence[str], began: int) -> None:
        self.path, self.task = made.path, made.task  # both are empty if the compilation failed
        self.program, self.sources = made.program, files
        # A file that was changed after the start may be older in the library: its stamp matches no file.
        stamps = {file: _stamp(file) for file in files}
        self.files = {file: s if not s or max(s[:2]) < began else (-1,) for file, s in stamps.items()}
        self.around = _around()
        self.elements: list[str] | None = None

    def holds(self, kernel: Kernel) -> bool:
        """Return True if the files and the environment have not changed."""
        return (
            self.around == _around()
            and os.path.abspath(str(kernel.source)) in self.files
            and all(_stamp(file) == stamp for file, stamp in self.files.items())
            and (not self.path or os.path.exists(self.path))
        )


_made: weakref.WeakKeyDictionary[Kernel, dict[str, _CompiledKernel]] = weakref.WeakKeyDictionary()


def _stamp(file: str) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _around() -> tuple[str, ...]:
    return *(knobs.get(name) for name in ("PTO_CXX", "PTO_CXXFLAGS", "PTO_CACHE_DIR")), os.environ.get(
        "PATH", ""
    )


def _known(kernel: Kernel, runtime: str, traced: bool = False) -> _CompiledKernel | None:
    found = _made.get(kernel, {}).get(_variant(kernel, runtime, traced))
    return found if found is not None and found.holds(kernel) else None


def _variant(kernel: Kernel, runtime: str, traced: bool) -> str:
    """Return the key for a kernel compiled for a runtime."""
    return f"{runtime}, traced" if traced else runtime


def is_program(kernel: Kernel) -> bool:
    return kernel.module is not None or str(kernel.source).endswith((".pto", ".ptobc"))


def _job(kernel: Kernel, runtime: str, traced: bool = False) -> Job:
    from .compile import Job

    return Job(
        kernel.name, str(kernel.source), kernel.core, runtime, entry=kernel.entry or "",
        include_dirs=kernel.include_dirs, traced=traced, program=kernel.module,
    )  # fmt: skip


def compile_early(runtime: str, traced: Callable[[Kernel], bool] = lambda kernel: False) -> None:
    """Compile all existing kernels in parallel, those that are `traced` with tracing. Problems of a kernel
    are reported when it is submitted."""
    wanted = [k for k in list(_sources) if _known(k, runtime, traced(k)) is None]
    if not wanted:
        return
    from .compile import compile_each

    began = time.time_ns()
    with contextlib.suppress(DiagnosticError):  # no compiler
        jobs = [_job(k, runtime, traced(k)) for k in wanted]
        for kernel, made in zip(wanted, compile_each(jobs), strict=True):
            files = made.files or (os.path.abspath(str(kernel.source)),)
            _made.setdefault(kernel, {})[_variant(kernel, runtime, traced(kernel))] = _CompiledKernel(
                made, files, began
            )


def add(
    kernels: Any,
    number: int,
    kernel: Kernel,
    runtime: str,
    traced: bool = False,
    hearing: TraceCollector | None = None,
) -> str:
    """Add a kernel to those of a runtime; compile it if needed, or raise. Return the path of its library, if
    it has one. `hearing` gets the traces of a kernel that is `traced`."""
    known = _known(kernel, runtime, traced)
    if known is None or not (known.path or known.task):
        from .compile import compile_all

        began = time.time_ns()
        (made,) = compile_all([_job(kernel, runtime, traced)])
        known = _CompiledKernel(made, made.files, began)
        _made.setdefault(kernel, {})[_variant(kernel, runtime, traced)] = known
    if known.task is not None:
        add_task(kernels, number, kernel.name, kernel.core_type, known.task)
        return ""
    from ..engine.compiled.library import name_to_load  # not for orchestrations of Python functions

    with name_to_load(known.path) as file:
        kernels.add_library(number, kernel.name, kernel.core_type, file)
    if hearing is not None and traced:
        hearing.hear(known.path, kernel.name, known.sources, known.program)
    return known.path


def add_module(kernels: Any, number: int, kernel: Kernel, runtime: str) -> tuple[int, ...]:
    """Add a kernel that is a program in memory; add its halves one after another. For a mixed kernel return
    the numbers for the AIC and the AIVs of a cluster.
    """
    made = _program(kernel, runtime)
    mixed = kernel.core == "mixed"
    for n, task in enumerate(made.tasks):
        name = f"{kernel.name}_{CORE_TYPES[n]}" if mixed else kernel.name
        add_task(kernels, number + n, name, n if mixed else kernel.core_type, task)
    return (number, number + 1, number + 1 if made.lanes > 1 else -1) if mixed else ()


def _program(kernel: Kernel, runtime: str) -> RuntimeProgram:
    from .program import program_of

    assert kernel.module is not None, "a kernel in a file"
    return program_of(kernel.module, kernel.entry or "", kernel.core, runtime)


def add_task(kernels: Any, number: int, name: str, core_type: int, task: NativeTask) -> None:
    """Add a kernel that is a program."""
    kernels.add_program(
        number, name, core_type, task.function, task.address, task.abi, task.places, task.meets, task
    )


def program_elements(kernel: Kernel, runtime: str, traced: bool = False) -> list[str]:
    """Return the element types of the parameters of a `.pto` kernel, whose library exists. Raise if their
    number differs from the declared one."""
    if kernel.module is not None:
        found = _program(kernel, runtime).elements
    else:
        known = _made[kernel][_variant(kernel, runtime, traced)]
        if known.elements is None:
            from .program import element_types

            known.elements = element_types(_job(kernel, runtime))
        found = known.elements
    if len(found) != len(kernel.words):
        raise refuse(
            f"kernel {kernel.name} declares {len(kernel.words)} parameters ('{' '.join(kernel.words)}'), "
            f"the function of '{kernel.source}' takes {len(found)}"
        )
    return found
