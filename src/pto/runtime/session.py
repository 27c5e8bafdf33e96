"""Build and run a graph of tasks from Python.

    import numpy as np
    from pto import runtime

    add = runtime.kernel(lambda a, b, out: np.add(a, b, out=out), "in in out", name="add")

    def orchestrate(rt, a, b, out):
        with rt.scope():
            c = rt.tensor(a.shape)                 # memory comes from the heap ring when a task writes it
            rt.submit(add, a, b, c)
            rt.submit(add, c, b, out)              # waits for the task that writes c

    run = runtime.run(orchestrate, a, b, out, block_dim=3, record=True)
    print(run.summary())

The orchestration runs on the calling thread while schedulers and cores work on others. Tasks wait for each
other because of the tensors they read and write, never because of the order in which they are submitted.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from .hazards import Hazard, hazards_of
from .native import CORE_TYPES, log_file, log_level, native, options, raise_failure, records

if TYPE_CHECKING:
    import numpy as np

    from .records import Records

    Array = np.ndarray[Any, Any]

#: What a parameter of a kernel is. A scalar is 64 bits, a float is an f32 in the low half of such a slot.
ROLES = {"in": 0, "out": 1, "inout": 2, "scalar": 3, "float": 3}
#: Element types, by their number in the runtime.
DTYPES = ("float32", "float16", "int32", "int16", "int8", "uint8", "bfloat16", "int64", "uint64")
_SHORT = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i16": "int16",
          "i8": "int8", "u8": "uint8", "i64": "int64", "u64": "uint64"}  # fmt: skip
_MAX_PARAMS = 16
_MAX_DIMS = 5
#: Kernels that have to be compiled. A run does so for all of them before it starts: its times are its own.
_sources: weakref.WeakSet[Kernel] = weakref.WeakSet()


class Kernel:
    """What tasks execute: a Python function, or a C++ or `.pto` source, compiled when a run needs it.

    `args` says what each parameter is: in, out, inout, scalar (an integer) or float (an f32).
    """

    def __init__(
        self,
        source: Callable[..., Any] | str | os.PathLike[str],
        args: str,
        core: str = "aiv",
        name: str | None = None,
        entry: str | None = None,
    ) -> None:
        words = args.split()
        unknown = [w for w in words if w not in ROLES]
        if unknown or len(words) > _MAX_PARAMS:
            what = f"unknown role '{unknown[0]}'" if unknown else f"{len(words)} parameters, at most 16"
            raise _refuse(f"kernel arguments '{args}': {what}", "use in, out, inout, scalar and float")
        if core not in CORE_TYPES:
            raise _refuse(f"unknown core type '{core}'", "use aic or aiv")
        self.source = source if callable(source) else os.fspath(source)
        self.roles = bytes(ROLES[w] for w in words)
        self.floats = frozenset(i for i, w in enumerate(words) if w == "float")
        self.core = core
        self.core_type = CORE_TYPES.index(core)
        self.entry = entry
        if not callable(source):
            _sources.add(self)
        self.name = name or (
            str(getattr(source, "__name__", "kernel")) if callable(source) else _stem(os.fspath(source))
        )

    def __repr__(self) -> str:
        return f"<Kernel {self.name} on {self.core}>"


def kernel(
    source: Callable[..., Any] | str | os.PathLike[str],
    args: str,
    core: str = "aiv",
    name: str | None = None,
    entry: str | None = None,
) -> Kernel:
    """A kernel from a Python function, or from the path of a C++ or `.pto` source."""
    return Kernel(source, args, core, name, entry)


def _as_float(value: Any) -> Any:
    """A number for a parameter that is a float; what is none is reported like any other value."""
    return float(value) if hasattr(value, "__float__") and not hasattr(value, "shape") else value


def _check_kinds(kernel: Kernel, values: Sequence[Any], tensor: type) -> None:
    """Refuse a number where a tensor belongs, and the reverse."""
    for i, (role, value) in enumerate(zip(kernel.roles, values, strict=True)):
        if isinstance(value, tensor) == (role == ROLES["scalar"]):
            is_number = role != ROLES["scalar"]
            got, wanted = ("a number", "a tensor") if is_number else ("a tensor", "a number")
            raise _refuse(f"parameter {i} of kernel {kernel.name} is {wanted}, got {got}")


def _stem(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]


def _refuse(message: str, help: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic("PTO-E2621", message, help=help)])


def dtype_number(dtype: Any) -> int:
    """The runtime's number of an element type, given as NumPy's or by name (`f32`, `float32`)."""
    name = _SHORT.get(str(dtype), str(dtype)) if isinstance(dtype, str) else _name(dtype)
    if name not in DTYPES:
        raise _refuse(f"tensors of {name} are unknown", f"expected one of {', '.join(DTYPES)}")
    return DTYPES.index(name)


def _name(dtype: Any) -> str:
    import numpy as np

    return str(np.dtype(dtype))


def _numpy_type(number: int) -> Any:
    import numpy as np

    if DTYPES[number] == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(DTYPES[number])


def array_of(tensor: Any) -> Array:
    """The elements of a tensor as a NumPy array on the same memory."""
    import ctypes

    import numpy as np

    dtype = _numpy_type(tensor.dtype)
    size = tensor.nbytes
    memory = (ctypes.c_char * size).from_address(tensor.address)
    strides = [s * dtype.itemsize for s in tensor.strides]
    return np.ndarray(tensor.shape, dtype, memory, tensor.start_offset * dtype.itemsize, strides)


def slot_arrays(slots: Sequence[int], roles: bytes | None, floats: frozenset[int] = frozenset()) -> list[Any]:
    """Parameters of a task as a Python kernel gets them: arrays for tensors, numbers for scalars."""
    module = native()
    if roles is None:
        return list(slots)
    out: list[Any] = []
    for i, slot in enumerate(slots):
        if i < len(roles) and roles[i] != ROLES["scalar"]:
            out.append(array_of(module.slot_tensor(slot)))
        elif i in floats:
            out.append(struct.unpack("<f", struct.pack("<I", slot & 0xFFFFFFFF))[0])
        else:
            out.append((slot & (1 << 64) - 1 ^ 1 << 63) - (1 << 63))  # signed
    return out


class Runtime:
    """What an orchestration gets: submit tasks, open scopes, make tensors."""

    def __init__(self, kernels: Any, given: dict[str, Any], sink: Any) -> None:
        self._native: Any = native().Tensormap(kernels, given, log_level(), sink)
        self._kernels = kernels
        self._numbers: dict[int, int] = {}
        self._known: list[Kernel] = []
        self._libraries = _compiled()
        self._external: dict[int, tuple[Any, Any]] = {}
        self._tensor_type = native().Tensor

    # -- tensors ---------------------------------------------------------------------------------------

    def tensor(self, shape: Sequence[int] | int, dtype: Any = "f32") -> Any:
        """A tensor without memory: it gets some from the heap ring when it is the output of a task."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(n < 0 for n in shape) or math.prod(shape) >= 2**60 or len(shape) > _MAX_DIMS:
            raise _refuse(f"there is no tensor of shape {shape}", "up to 5 dimensions, none negative")
        return native().make_tensor(0, shape, dtype_number(dtype), None)

    def external(self, array: Array) -> Any:
        """A NumPy array as a tensor on the same memory. Slices of one array are known to share it."""
        found = self._external.get(id(array))
        if found is not None:
            return found[1]
        import numpy as np

        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not array.flags.c_contiguous:
            message = "an external tensor must be contiguous: take a view of the whole array's tensor instead"
            raise _refuse(message, "rt.external(whole).view(shape, offsets)")
        number = dtype_number(array.dtype)
        start = array.ctypes.data - root.ctypes.data
        within = root.flags.c_contiguous and start % array.itemsize == 0
        base, offset = (root.ctypes.data, start // array.itemsize) if within else (array.ctypes.data, 0)
        size = root.nbytes if within else array.nbytes
        tensor = native().make_tensor(base, array.shape or (1,), number, array, offset, size)
        self._external[id(array)] = array, tensor
        return tensor

    # -- tasks -----------------------------------------------------------------------------------------

    def submit(
        self,
        kernel: Kernel,
        *values: Any,
        cluster: int = -1,
        blocks: int = 0,
        clusters: Sequence[int] | None = None,
    ) -> int:
        """Submit a task; its id. Tensors, NumPy arrays and numbers, in the order of the kernel's arguments.

        With `blocks`, one task of that many blocks: the kernel gets the number of blocks and its block as two
        more scalars.
        """
        number = self._numbers.get(id(kernel))
        if number is None:
            number = self._add(kernel)
        frame = sys._getframe(1)
        self._native.set_site(frame.f_code.co_filename, frame.f_lineno)
        kind = self._tensor_type
        if kernel.floats:
            values = tuple(_as_float(v) if i in kernel.floats else v for i, v in enumerate(values))
        made: list[Any] = []
        for value in values:
            if type(value) is not kind and (type(value) is not int or value < 0):
                known = self._external.get(id(value))
                value = known[1] if known is not None else self._value(value)
            made.append(value)
        if len(values) != len(kernel.roles):
            raise _refuse(f"kernel {kernel.name} takes {len(kernel.roles)} arguments, got {len(values)}")
        if clusters is not None and len(clusters) != blocks:
            raise _refuse(f"{len(clusters)} clusters for {blocks} blocks", "give one for each block")
        try:
            return self._native.submit(
                number, kernel.core_type, kernel.roles, made, cluster, blocks, clusters
            )
        except (RuntimeError, TypeError):
            _check_kinds(kernel, made, kind)
            raise

    def _value(self, value: Any) -> Any:
        if isinstance(value, self._tensor_type):
            return value
        if isinstance(value, float):
            return struct.unpack("<I", struct.pack("<f", value))[0]
        if hasattr(value, "ctypes") and hasattr(value, "flags"):
            return self.external(value)
        if hasattr(value, "__index__"):
            return int(value) & (2**64 - 1)
        if hasattr(value, "__float__"):
            return self._value(float(value))
        raise _refuse(
            f"a {type(value).__name__} is no argument of a task", "pass tensors, NumPy arrays and numbers"
        )

    def _add(self, kernel: Kernel) -> int:
        number = len(self._known)
        if callable(kernel.source):
            function, roles, floats = kernel.source, kernel.roles, kernel.floats

            def call(task: int, slots: list[int]) -> None:
                function(*slot_arrays(slots, roles, floats))

            self._kernels.add_function(number, kernel.name, kernel.core_type, call)
        else:
            path = self._libraries.get(kernel) or _libraries([kernel])[kernel]
            self._kernels.add_library(number, kernel.name, kernel.core_type, path)
        self._known.append(kernel)
        self._numbers[id(kernel)] = number
        return number

    # -- scopes and clusters ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Outputs of tasks in the scope may be taken back when it has ended and their readers have run."""
        self._mark()
        self._native.scope_begin()
        try:
            yield
        finally:
            self._native.scope_end()

    def allocate_cluster(self) -> int:
        """Take an AIC and its two AIVs for a group of tasks; waits while none is free."""
        self._mark()
        return self._native.allocate_cluster()

    def free_cluster(self, cluster: int) -> None:
        """Give it back; tasks of the group that have not run yet keep it until the last of them has."""
        self._mark()
        self._native.free_cluster(cluster)

    def _mark(self) -> None:
        """The place in the user's source that the next call comes from."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
            frame = frame.f_back
        self._native.set_site(frame.f_code.co_filename, frame.f_lineno)

    @contextlib.contextmanager
    def cluster(self) -> Iterator[int]:
        """A cluster for as long as the block lasts: `rt.submit(..., cluster=c)`."""
        number = self.allocate_cluster()
        try:
            yield number
        finally:
            self.free_cluster(number)


def _compiled() -> dict[Kernel, str]:
    """Libraries of all kernels there are. What is wrong with one is reported when it is submitted."""
    try:
        return _libraries(list(_sources))
    except DiagnosticError:
        return {}


def _libraries(kernels: Sequence[Kernel]) -> dict[Kernel, str]:
    if not kernels:
        return {}
    from .compile import Job, compile_all

    jobs = [Job(k.name, str(k.source), k.core, entry=k.entry or "") for k in kernels]
    return {k: library.path for k, library in zip(kernels, compile_all(jobs), strict=True)}


class Run:
    """What a run did."""

    def __init__(self, runtime: Runtime, stats: dict[str, Any]) -> None:
        self._runtime = runtime
        self.stats = stats

    @cached_property
    def records(self) -> Records:
        """Tasks, edges, phases and counters; empty unless the run was recorded."""
        names = {i: k.name for i, k in enumerate(self._runtime._known)}
        return records(self._runtime._native.records(), names, self.stats)

    @cached_property
    def hazards(self) -> list[Hazard]:
        """What nothing orders, if the run was checked for it."""
        return hazards_of(self._runtime._native)

    def summary(self) -> str:
        """A table for the terminal."""
        from .summary import text

        if self.stats["tasks"] and not len(self.records.tasks):
            done = f"{self.stats['tasks']} tasks, {self.stats['edges']} dependencies"
            return f"{done} in {self.stats['seconds'] * 1e3:.2f} ms; record=True shows where the time went"
        return text(self.records)

    def save_trace(self, path: str) -> None:
        """Write the run for ui.perfetto.dev or chrome://tracing."""
        from . import trace

        trace.write(self._recorded("save_trace"), path)

    def save_swimlane(self, path: str, title: str = "") -> None:
        """Write a page that shows the run: a lane per core, with the critical path."""
        from . import swimlane

        swimlane.write(self._recorded("save_swimlane"), path, title or "the run")

    def save_graph(self, path: str) -> None:
        """Write the tasks and what they wait for as DOT."""
        from . import graph_text

        with open(path, "w", encoding="utf-8") as f:
            f.write(graph_text.dot(self._recorded("save_graph")))

    def _recorded(self, what: str) -> Records:
        if not len(self.records.tasks):
            raise _refuse(f"{what}: nothing was recorded", "runtime.run(..., record=True)")
        return self.records


def run(
    orchestrate: Callable[..., Any],
    *args: Any,
    block_dim: int = 24,
    schedulers: int = 3,
    threads: int | None = None,
    record: bool = False,
    check_hazards: bool = False,
    track_war: bool = False,
    seed: int | None = None,
    log: Callable[[int, str], object] | None = None,
    **rings: int,
) -> Run:
    """Run `orchestrate(rt, *args)` and all tasks it submits; returns when they are done.

    `threads` are host threads (default: as many as there are processors). `seed` runs everything on one
    thread in an order that the seed decides, the same every time. `rings`: task_window, heap, dep_pool,
    tensormap_pool. `check_hazards` looks for unordered accesses (Run.hazards), `track_war` orders them.
    """
    unknown = set(rings) - {
        "task_window",
        "heap",
        "dep_pool",
        "tensormap_pool",
        "shards",
        "poison",
        "stall_seconds",
    }
    if unknown:
        raise TypeError(f"run() got an unexpected keyword argument '{min(unknown)}'")
    given: dict[str, Any] = {
        "block_dim": block_dim,
        "schedulers": schedulers,
        "host_threads": threads,
        "record": record or check_hazards,
        "check_hazards": check_hazards,
        "track_war": track_war,
        "deterministic": seed is not None,
        "seed": seed or 0,
        **rings,
    }
    sink = log or log_file() or _print
    verbose = log_level() >= 2

    def say(level: int, word: str) -> Callable[[str], object]:
        return lambda text: sink(level, f"[{word}] options: {text}") if level < 2 or verbose else None

    made = options(given, say(1, "WARN"), say(2, "INFO"))
    kernels = native().Kernels()
    runtime = Runtime(kernels, made, sink)
    runtime._native.run_function(lambda: orchestrate(runtime, *args))
    raise_failure(runtime._native)
    return Run(runtime, runtime._native.stats())


def _print(level: int, text: str) -> None:
    print(text, file=sys.stderr if level in (0, 1) else sys.stdout)
