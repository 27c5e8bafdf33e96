"""Kernels of a Python orchestration: what tasks execute, and what their parameters are."""

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
    from ..engine.native.task import Task
    from .compile import CompiledJob, Job
    from .program import Program
    from .told import Hearing

#: What a parameter of a kernel is. A scalar is 64 bits, a float is an f32 in the low half of such a slot.
ROLES = {"in": 0, "out": 1, "inout": 2, "scalar": 3, "float": 3, "pipe_in": 0, "pipe_out": 1}
MAX_PARAMS = 64
#: What a kernel runs on: a core of a type, or the cores of a cluster at one time.
_CORES = (*CORE_TYPES, "mixed")
#: Kernels that have to be compiled. A run does so for all of them before it starts: its times are its own.
_sources: weakref.WeakSet[Kernel] = weakref.WeakSet()


class Kernel:
    """What tasks execute: a Python function, a C++ or `.pto` source, compiled when a run needs it, or a
    program in memory (a `pto.Module`, or its text), for which the driver does what it leaves to the tools.

    `args` says what each parameter is: in, out, inout, scalar (an integer) or float (an f32);
    pipe_in and pipe_out for a FIFO of a cluster that it pops from or pushes to (`Runtime.pipe`).
    A kernel on `core="mixed"` is a program of a cube and a vector half: a task runs both, on one cluster.
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
                f"a {type(source).__name__} is no kernel",
                "give a function, the path of a source, or a program",
            )
        #: The program, where it is in memory.
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
    `lanes` says on how many AIVs."""

    def __init__(self, aic: Kernel, aiv: Kernel, name: str, lanes: int = 1) -> None:
        self.module = None
        self.source = aic.source
        self.words, self.roles, self.floats = aic.words, aic.roles, aic.floats
        self.core, self.core_type = "mixed", _CORES.index("mixed")
        self.entry, self.include_dirs, self.name = None, (), name
        self.halves = (aic, aiv)
        self.lanes = lanes


def _module(source: Any, core: str) -> Module | None:
    """The program of a kernel that is one in memory; where both halves run, that of a file as well."""
    if isinstance(source, Module):
        return source
    if callable(source):
        if core == "mixed":
            raise refuse("a function runs on one core", "give a program of two halves to core='mixed'")
        return None
    if is_text(source):
        return parse(source)
    if core != "mixed":
        return None
    if not os.fspath(source).endswith((".pto", ".ptobc")):
        raise refuse(f"'{os.fspath(source)}' is no program: a kernel on core='mixed' is a .pto of two halves")
    return parse(source)


def _entry_name(module: Module) -> str:
    """What a program in memory is called: by its only function, or by that of its halves."""
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
    """A kernel from a Python function, from the path of a C++ or `.pto` source, or from a program in
    memory."""
    return Kernel(source, args, core, name, entry)


def roles(args: Any) -> list[str]:
    """The words that say what each parameter is."""
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
    """Refuse a number where a tensor belongs, and the reverse."""
    for i, (word, value) in enumerate(zip(kernel.words, values, strict=True)):
        wanted = "a number" if ROLES[word] == ROLES["scalar"] else "a tensor"
        got = "a tensor" if isinstance(value, tensor) else "a number"
        if wanted != got:
            raise refuse(f"parameter {i} of kernel {kernel.name} is {wanted}, got {got}")


def _stem(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]


class _Made:
    """What became of a kernel for a runtime, as long as the files it was made from stay what they are."""

    def __init__(self, made: CompiledJob, files: Sequence[str], began: int) -> None:
        self.path, self.task = made.path, made.task  # neither where it failed
        self.program, self.sources = made.program, files
        # What was changed since it began, in nanoseconds, may be older in the library: that is none of these.
        stamps = {file: _stamp(file) for file in files}
        self.files = {file: s if not s or max(s[:2]) < began else (-1,) for file, s in stamps.items()}
        self.around = _around()
        self.elements: list[str] | None = None

    def holds(self, kernel: Kernel) -> bool:
        """Whether it still is what would be made."""
        return (
            self.around == _around()
            and os.path.abspath(str(kernel.source)) in self.files
            and all(_stamp(file) == stamp for file, stamp in self.files.items())
            and (not self.path or os.path.exists(self.path))
        )


_made: weakref.WeakKeyDictionary[Kernel, dict[str, _Made]] = weakref.WeakKeyDictionary()


def _stamp(file: str) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _around() -> tuple[str, ...]:
    return knobs.get("PTO_CXX") or "", knobs.get("PTO_CACHE_DIR") or "", os.environ.get("PATH", "")


def _known(kernel: Kernel, runtime: str, traced: bool = False) -> _Made | None:
    found = _made.get(kernel, {}).get(_variant(kernel, runtime, traced))
    return found if found is not None and found.holds(kernel) else None


def _variant(kernel: Kernel, runtime: str, traced: bool) -> str:
    """Return a name for what is made of a kernel for a runtime."""
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
    """Compile all kernels there are, several at a time, those that are `traced` to tell of their calls. What
    is wrong with one is reported when it is submitted."""
    wanted = [k for k in list(_sources) if _known(k, runtime, traced(k)) is None]
    if not wanted:
        return
    from .compile import compile_each

    began = time.time_ns()
    with contextlib.suppress(DiagnosticError):  # there is no compiler
        jobs = [_job(k, runtime, traced(k)) for k in wanted]
        for kernel, made in zip(wanted, compile_each(jobs), strict=True):
            files = made.files or (os.path.abspath(str(kernel.source)),)
            _made.setdefault(kernel, {})[_variant(kernel, runtime, traced(kernel))] = _Made(
                made, files, began
            )


def add(
    kernels: Any,
    number: int,
    kernel: Kernel,
    runtime: str,
    traced: bool = False,
    hearing: Hearing | None = None,
) -> str:
    """Add a kernel to those of a runtime, made for it, or raise; return its library, if it has one. `hearing`
    listens to a kernel that is `traced`."""
    known = _known(kernel, runtime, traced)
    if known is None or not (known.path or known.task):
        from .compile import compile_all

        began = time.time_ns()
        (made,) = compile_all([_job(kernel, runtime, traced)])
        known = _Made(made, made.files, began)
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
    """Add a kernel that is a program in memory, its halves one after the other; the numbers of what runs on
    the AIC and the AIVs of a cluster, if it is mixed."""
    made = _program(kernel, runtime)
    mixed = kernel.core == "mixed"
    for n, task in enumerate(made.tasks):
        name = f"{kernel.name}_{CORE_TYPES[n]}" if mixed else kernel.name
        add_task(kernels, number + n, name, n if mixed else kernel.core_type, task)
    return (number, number + 1, number + 1 if made.lanes > 1 else -1) if mixed else ()


def _program(kernel: Kernel, runtime: str) -> Program:
    from .program import program_of

    assert kernel.module is not None, "a kernel in a file"
    return program_of(kernel.module, kernel.entry or "", kernel.core, runtime)


def add_task(kernels: Any, number: int, name: str, core_type: int, task: Task) -> None:
    """Add a kernel that is a program."""
    kernels.add_program(
        number, name, core_type, task.function, task.address, task.abi, task.places, task.meets, task
    )


def program_elements(kernel: Kernel, runtime: str, traced: bool = False) -> list[str]:
    """What the parameters of a kernel that is a `.pto` program hold; raises where there are others than it
    was said to have. Its library is there."""
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
            f"kernel {kernel.name} has {len(kernel.words)} parameters ('{' '.join(kernel.words)}'), "
            f"the function of '{kernel.source}' takes {len(found)}"
        )
    return found
