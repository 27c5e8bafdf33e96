"""Build a graph of tasks from Python.

    add = runtime.kernel(lambda a, b, out: np.add(a, b, out=out), "in in out", name="add")

    def orchestrate(rt, a, b, out):
        with rt.scope():
            c = rt.tensor(a.shape)                 # memory comes from the heap ring when a task writes it
            rt.submit(add, a, b, c)
            rt.submit(add, c, b, out)              # waits for the task that writes c

    run = runtime.run(orchestrate, a, b, out, block_dim=3, record=True)
    print(run.summary())

The orchestration runs on the calling thread while schedulers and cores work on other threads. Dependencies of
tasks come from the tensors that they read and write, not from the submission order.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..perf.tables import CORE_TYPES
from .extension import extension
from .kernels import (
    ROLES,
    Kernel,
    Pair,
    add,
    add_module,
    check_values,
    compile_early,
    is_program,
    program_elements,
)
from .options import log_level
from .submission import Predicate, comparison, tasks_of, together, untracked
from .tensors import (
    MAX_DIMS,
    dtype_number,
    element_bits,
    element_of,
    element_place,
    float_word,
    index_of,
    numpy_type,
    refuse,
    shape_of,
    span_of,
    values_of,
)

if TYPE_CHECKING:
    import numpy as np

    from ..engine.sanitize import Checks
    from .task_sanitizers import Watch
    from .task_traces import TraceCollector
    from .virtual import Virtual

    Array = np.ndarray[Any, Any]


class Session:
    """The base of the `rt` object of all runtimes: kernels by number, and source locations of the user."""

    _run: Any

    def __init__(
        self,
        kernels: Any,
        runtime: str,
        virtual: Virtual | None = None,
        sanitize: Checks | None = None,
    ) -> None:
        self._kernels = kernels
        self._runtime = runtime
        self._numbers: dict[int, int] = {}
        self._known: list[Kernel] = []  # by number; a mixed kernel has two
        self._names: list[str] = []
        self._dummies = False  # True if there are tasks without a kernel
        # numbers of mixed kernels for the AIC and the AIVs of a cluster
        self._mixed: dict[int, tuple[int, ...]] = {}
        # element types of kernels that are programs; "" for a number
        self._elements: dict[int, list[str]] = {}
        self._virtual = virtual  # durations of kernels in virtual time
        self._hearing: TraceCollector | None = None  # traces of C++ kernels, if requested
        #: The sanitizers of the kernels, and the kernels that they cannot check, with the reason.
        self._watch: Watch | None = None
        self._unwatched: dict[str, str] = {}
        if sanitize is not None:
            self._observe(sanitize)
        compile_early(runtime, self._traced)
        self._over = False  # True after the run
        if virtual is not None:
            virtual.begin(self._run, self._hears(virtual))

    def _hears(self, virtual: Virtual) -> TraceCollector | None:
        if not virtual.compute:
            return None
        from ..isa.profiles import DEFAULT, PROFILES
        from .task_traces import TraceCollector

        self._hearing = TraceCollector(PROFILES[DEFAULT], contents=False)
        return self._hearing

    def _observe(self, checks: Checks) -> None:
        from ..isa.profiles import DEFAULT, PROFILES
        from .task_sanitizers import Watch
        from .task_traces import TraceCollector

        self._hearing = TraceCollector(PROFILES[DEFAULT])
        self._watch = Watch(self._hearing, checks)
        self._watch.begin(None)
        self._watch.outside(())

    def _traced(self, kernel: Kernel) -> bool:
        """Return True if a kernel has to be traced. A half of a mixed task has the name of the task."""
        if self._watch is not None:
            return True
        return self._virtual is not None and not is_program(kernel) and self._virtual.listens(-1, kernel.name)

    def end(self) -> None:
        """End the run of the orchestration."""
        self._over = True
        if self._hearing is not None:
            self._hearing.stop()

    def _caller(self, kernel: Kernel) -> Callable[..., None]:
        """Return the function that the engine calls for a Python kernel; see `Kernels.add_function`."""
        raise NotImplementedError

    def _add(self, kernel: Kernel) -> int:
        if not isinstance(kernel, Kernel):
            raise refuse(
                f"expected a kernel, got {type(kernel).__name__}",
                "runtime.kernel(function_or_path, 'in out')",
            )
        self._check_open()
        number = len(self._known)
        libraries = [""]
        if kernel.module is not None and self._watch is not None and kernel.core != "mixed":
            libraries = [self._add_source(number, kernel)]
            self._elements[number] = program_elements(kernel, self._runtime)
        elif kernel.module is not None:
            if self._watch is not None:
                self._unwatched[kernel.name] = "a program of two halves in one task"
            mixed = add_module(self._kernels, number, kernel, self._runtime)
            self._elements[number] = program_elements(kernel, self._runtime)
            if mixed:
                self._mixed[number] = mixed
        elif isinstance(kernel, Pair):
            libraries = [self._add_source(number + n, half) for n, half in enumerate(kernel.halves)]
            self._mixed[number] = (number, number + 1, number + 1 if kernel.lanes > 1 else -1)
        elif callable(kernel.source):
            if self._watch is not None:
                self._unwatched[kernel.name] = "a Python function"
            self._kernels.add_function(number, kernel.name, kernel.core_type, self._caller(kernel))
        else:
            libraries = [self._add_source(number, kernel)]
            if is_program(kernel):
                self._elements[number] = program_elements(kernel, self._runtime, self._traced(kernel))
        names = [f"{kernel.name}_{core}" for core in CORE_TYPES] if number in self._mixed else [kernel.name]
        self._names += names
        if self._virtual is not None:
            program = None
            if is_program(kernel):  # the halves of a mixed kernel end together
                program = kernel.module or kernel.source, kernel.entry, kernel.floats
            for n, name in enumerate(names):
                library = libraries[min(n, len(libraries) - 1)]
                self._virtual.know(self._run, number + n, name, program, library)
        self._known += [kernel] * len(names)
        self._numbers[id(kernel)] = number
        return number

    def _add_source(self, number: int, kernel: Kernel) -> str:
        try:
            hearing = self._hearing if self._watch is not None else None
            return add(self._kernels, number, kernel, self._runtime, self._traced(kernel), hearing)
        except RuntimeError as e:
            help = "define every function that it calls" if "undefined symbol" in str(e) else ""
            raise refuse(f"kernel {kernel.name} ('{kernel.source}') {e}", help) from None

    def _check_elements(self, kernel: Kernel, number: int, dtypes: Sequence[Any]) -> None:
        """Reject tensors whose elements differ from the program's declaration; `dtypes`: None for a
        number."""
        from ..engine.binding import ARRAY_DTYPES, fits

        for i, (wanted, got) in enumerate(zip(self._elements[number], dtypes, strict=True)):
            if wanted and got is not None and not fits(got, wanted):
                message = (
                    f"expected {wanted} for parameter {i} of kernel {kernel.name}, got a tensor of {got}"
                )
                right = ARRAY_DTYPES.get(wanted)
                raise refuse(message, f"array.astype({right.name!r})" if right is not None else "")

    def _number(self, kernel: Kernel, value: Any, at: int) -> int:
        """Return the 64 bits of a number."""
        where = f"parameter {at} of kernel {kernel.name}"
        try:
            if at in kernel.floats and hasattr(value, "__float__"):
                return float_word(float(value))
            if hasattr(value, "__index__") or str(getattr(value, "dtype", "")) == "bool":
                number = int(value) if hasattr(value, "dtype") else value.__index__()
                if not -(1 << 63) <= number < 1 << 64:
                    raise refuse(f"{where}: {number} does not fit in 64 bits")
                return number & (1 << 64) - 1
            if hasattr(value, "__float__"):
                if kernel.words[at] == "scalar":
                    message = f"expected an integer ('scalar') for {where}, got {value!r}"
                    raise refuse(message, "declare an f32 as 'float'")
                return float_word(float(value))
        except (OverflowError, TypeError, ValueError) as e:
            raise refuse(f"{where}: {e}") from None
        raise refuse(
            f"unsupported argument of a task: {type(value).__name__}",
            "pass tensors, NumPy arrays and numbers",
        )

    def _check_open(self) -> None:
        if self._over:
            raise refuse("cannot add a task: the run has ended")

    def _mark(self, site: tuple[str, int] | None = None) -> None:
        """Set the source location of the next call: the caller's file and line, or `site`."""
        self._check_open()
        if site is not None:
            self._run.set_site(*site)
            return
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
            frame = frame.f_back
        self._run.set_site(frame.f_code.co_filename, frame.f_lineno)


class Runtime(Session):
    """The `rt` object of an orchestration: it submits tasks, opens scopes, makes tensors."""

    def __init__(
        self,
        kernels: Any,
        given: dict[str, Any],
        sink: Any,
        virtual: Virtual | None = None,
        sanitize: Checks | None = None,
    ) -> None:
        try:
            self._run: Any = extension().Tensormap(kernels, given, log_level(), sink)
        except MemoryError:
            raise refuse("cannot allocate rings of this size: out of memory", "make them smaller") from None
        super().__init__(kernels, "tensormap_and_ringbuffer", virtual, sanitize)
        self._poison = bool(given.get("poison"))
        self._blank: set[int] = set()  # addresses of uninitialized arrays
        self._external: dict[int, tuple[Any, Any]] = {}
        self._read_only = False  # True if an external array is read-only
        self._tensor_type = extension().Tensor

    def __getattr__(self, name: str) -> Any:
        if name in ("add_task", "add_successor", "add_successor_conditional", "publish_task"):
            raise AttributeError(
                f"tensormap_and_ringbuffer has no {name}: submit adds tasks, and tensors order them; "
                "runtime.run(..., runtime='host_build_graph') has it"
            )
        raise AttributeError(f"'Runtime' object has no attribute '{name}'")

    # -- tensors ---------------------------------------------------------------------------------------

    def tensor(self, shape: Sequence[int] | int, dtype: Any = "f32", manual_dep: bool = False) -> Any:
        """Make a tensor without memory: it gets memory from the heap ring as the output of a task. With
        `manual_dep`, it adds no dependencies."""
        made = extension().make_tensor(0, shape_of(shape), dtype_number(dtype), None)
        if manual_dep:
            made.manual_dep = True
        return made

    def alloc(self, shape: Sequence[int] | int, dtype: Any = "f32", manual_dep: bool = False) -> Any:
        """Make a tensor with memory, so that several tasks may write views of it. Its lifetime is that of an
        output of a task without a kernel."""
        self._mark()
        made = self.tensor(shape, dtype, manual_dep)
        self._dummies = True
        out = bytes([ROLES["out"]])
        self._run.submit_more(-1, 1, out, (made,), -1, 0, None, [], 0, None, False, None)
        return made

    def pipe(self) -> Any:
        """Make a token for the content of a FIFO between tasks of a cluster: the task that pops waits for the
        task that pushes.
        """
        return self.tensor(1, "i32")

    def external(self, array: Array) -> Any:
        """Return a NumPy array as a tensor on the same memory. Slices of one array share its memory."""
        found = self._external.get(id(array))
        if found is not None:
            return found[1]
        import numpy as np

        if not isinstance(array, np.ndarray):
            raise refuse(f"expected a NumPy array, got {type(array).__name__}", "numpy.asarray(...)")
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not array.flags.c_contiguous:
            message = (
                "expected a contiguous array for an external tensor; make a view of the whole array's tensor"
            )
            raise refuse(message, "rt.external(whole).view(shape, offsets)")
        if array.ndim > MAX_DIMS:
            raise refuse(f"unsupported shape of a tensor: {array.shape}", "up to 5 dimensions")
        number = dtype_number(array.dtype)
        start = array.ctypes.data - root.ctypes.data
        within = root.flags.c_contiguous and start % array.itemsize == 0
        base, offset = (root.ctypes.data, start // array.itemsize) if within else (array.ctypes.data, 0)
        size = root.nbytes if within else array.nbytes
        tensor = extension().make_tensor(base, array.shape or (1,), number, array, offset, size)
        self._external[id(array)] = array, tensor
        if self._watch is not None and base not in self._blank:
            self._watch.outside([(base, size)])
            self._watch.given(base, size)
        self._read_only |= not array.flags.writeable
        return tensor

    def keep_order(self, array: Array) -> None:
        """Keep the accesses to an array with their order, if the run looks for hazards."""
        self._run.keep_order(array.ctypes.data, array.ctypes.data + array.nbytes)

    def clear(self, array: Array) -> None:
        """Mark an array as an uninitialized tensor between tasks, for the sanitizer `undef`."""
        if self._poison:
            array.view("u1")[...] = 0xFF
            self._blank.add(array.ctypes.data)

    # -- tasks -----------------------------------------------------------------------------------------

    def submit(
        self,
        kernel: Kernel,
        *values: Any,
        cluster: int = -1,
        blocks: int = 0,
        clusters: Sequence[int] | None = None,
        deps: Iterable[int | None] = (),
        no_dep: Iterable[int] = (),
        ordered: Collection[int] = (),
        sync_start: bool = False,
        predicate: Predicate | None = None,
        site: tuple[str, int] | None = None,
    ) -> int:
        """Submit a task and return its id. `values` are tensors, NumPy arrays and numbers, in the order of
        the kernel's arguments.

        With `blocks`, the task has that many blocks: the kernel gets the number of blocks and its block as
        two more scalars; a program reads them with `pto.get_block_idx`. With `sync_start` all blocks have a
        core at the same time. `deps` are further tasks to wait for, `no_dep` parameters without dependencies,
        `ordered` outputs that wait for earlier writers, as inout parameters do. The task runs only if its
        `predicate`, `(tensor, index, ">", 0)`, holds when all its dependencies are done. `site` is the file
        and line for reports, if not the caller's.
        """
        number = self._numbers.get(id(kernel))
        if number is None:
            number = self._add(kernel)
        if site is None:
            frame = sys._getframe(1)
            site = frame.f_code.co_filename, frame.f_lineno
        self._run.set_site(*site)
        kind = self._tensor_type
        if len(values) != len(kernel.roles):
            raise refuse(
                f"expected {len(kernel.roles)} arguments for kernel {kernel.name}, got {len(values)}"
            )
        made: list[Any] = []
        for value in values:
            if type(value) is not kind and (type(value) is not int or not 0 <= value < 1 << 64):
                known = self._external.get(id(value))
                value = known[1] if known is not None else self._value(kernel, len(made), value)
            elif kernel.floats and len(made) in kernel.floats:
                value = self._value(kernel, len(made), value)
            made.append(value)
        if clusters is not None and len(clusters) != blocks:
            raise refuse(
                f"expected a cluster for each of {blocks} blocks, got {len(clusters)}", "clusters=[..]"
            )
        if self._read_only:
            self._check_writable(kernel, made)
        if number in self._elements:
            dtypes = [numpy_type(v.dtype) if type(v) is kind else None for v in made]
            self._check_elements(kernel, number, dtypes)
        roles = kernel.roles
        if ordered:
            roles = bytes(ROLES["inout"] if i in ordered else role for i, role in enumerate(roles))
        try:
            if deps or no_dep or sync_start or predicate is not None or number in self._mixed:
                return self._run.submit_more(
                    number, kernel.core_type, roles, made, cluster, blocks, clusters, tasks_of(deps),
                    untracked(kernel, no_dep), self._mixed.get(number), together(sync_start, blocks),
                    comparison(predicate, self._tensor),
                )  # fmt: skip
            return self._run.submit(number, kernel.core_type, roles, made, cluster, blocks, clusters)
        except (RuntimeError, TypeError) as e:
            problem = e
        check_values(kernel, made, kind)
        self._check_open()
        raise problem

    def _value(self, kernel: Kernel, at: int, value: Any) -> Any:
        """Convert a value for the extension module: a tensor, or the 64 bits of a number."""
        if isinstance(value, self._tensor_type):
            return value
        if hasattr(value, "ctypes") and hasattr(value, "flags") and hasattr(value, "base"):
            return self.external(value)
        return self._number(kernel, value, at)

    def task_dummy(self, deps: Iterable[int | None] = ()) -> int | None:
        """Submit a task without a kernel: a task that depends on it depends on all its `deps`. Return None if
        there are deps and all of them are None, because there is no task to wait for.
        """
        self._mark()
        given = list(deps)
        tasks = tasks_of(given)
        if given and not tasks:
            return None
        self._dummies = True
        return self._run.submit_more(-1, 1, b"", (), -1, 0, None, tasks, 0, None, False, None)

    def wait_for(
        self,
        signal: Any,
        value: int,
        compare: str = ">=",
        *,
        gives: Sequence[Any] = (),
        deps: Iterable[int | None] = (),
    ) -> int:
        """Submit a task that needs no core and ends when a comparison of `signal`, an array or tensor of one
        integer, with a value holds. Use it to wait for data of another rank. Later tasks wait for it if they
        read tensors in `gives`, or depend on it."""
        self._mark()
        if self._virtual is not None:
            raise refuse(
                "unsupported wait_for in virtual time: other ranks have real time", "leave out virtual_time"
            )
        cell = self._tensor(signal)
        if math.prod(cell.shape) != 1:
            raise refuse(
                f"expected a signal of one element for wait_for, got shape {tuple(cell.shape)}", "signal[0:1]"
            )
        tensors = [self._tensor(given) for given in gives]
        self._dummies = True
        roles = bytes([ROLES["inout"]] * len(tensors))
        holds = comparison((signal, [0] * len(cell.shape), compare, value), self._tensor)
        return self._run.submit_more(
            -1, 1, roles, tensors, -1, 0, None, tasks_of(deps), 0, None, False, holds, True
        )

    def _check_writable(self, kernel: Kernel, values: Sequence[Any]) -> None:
        for i, (word, value) in enumerate(zip(kernel.words, values, strict=True)):
            if word in ("out", "inout") and isinstance(value, self._tensor_type):
                owner = value.owner
                if owner is not None and not owner.flags.writeable:
                    message = f"cannot write to parameter {i} of kernel {kernel.name}: the array is read-only"
                    raise refuse(message, "pass a copy of the array")

    def _caller(self, kernel: Kernel) -> Callable[..., None]:
        function, floats = kernel.source, kernel.floats
        tensors = sum(1 << i for i, r in enumerate(kernel.roles) if r != ROLES["scalar"])
        inputs = sum(1 << i for i, r in enumerate(kernel.roles) if r == ROLES["in"])
        assert callable(function), "a source file has no caller"

        def call(task: int, slots: list[int], *masks: int) -> None:
            values = values_of(slots, tensors, inputs, floats)
            function(*values)
            if self._watch is not None:
                for value in values:
                    if getattr(value, "size", 0) and value.flags.writeable:
                        self._watch.given(*span_of(value))

        return call

    # -- elements ----------------------------------------------------------------------------------------

    def _tensor(self, value: Any) -> Any:
        return value if isinstance(value, self._tensor_type) else self.external(value)

    def read(
        self, tensor: Any, index: Sequence[int] | int, site: tuple[str, int] | None = None
    ) -> int | float:
        """Return an element of a tensor or an array, after the tasks that write it have run. `site` is the
        file and line for reports, if not the caller's."""
        self._mark(site)
        found = self._tensor(tensor)
        return element_of(self._run.load(found, index_of(index, found.shape)), found.dtype)

    def write(self, tensor: Any, index: Sequence[int] | int, value: float) -> None:
        """Set an element of a tensor or an array, after the tasks that write or read it have run. Tasks that
        are submitted later see it."""
        self._mark()
        found = self._tensor(tensor)
        if found.owner is not None and not found.owner.flags.writeable:
            raise refuse("cannot write an element: the array is read-only", "pass a copy of the array")
        at = index_of(index, found.shape)
        self._run.store(found, at, element_bits(value, found.dtype))
        if self._watch is not None:
            self._watch.given(*element_place(found, at))

    # -- scopes and clusters ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope: outputs of its tasks may be freed after it has ended and their readers have run."""
        self._mark()
        self._run.scope_begin()
        try:
            yield
        finally:
            self._run.scope_end()

    @contextlib.contextmanager
    def manual_scope(self) -> Iterator[None]:
        """Open a scope without automatic dependencies: its tasks wait only for their `deps`, and tensors do
        not make later tasks wait for them.
        """
        self._mark()
        self._run.scope_begin(True)
        try:
            yield
        finally:
            self._run.scope_end()

    def allocate_cluster(self) -> int:
        """Reserve an AIC and its two AIVs for a group of tasks; wait while none is free."""
        self._mark()
        return self._run.allocate_cluster()

    def free_cluster(self, cluster: int) -> None:
        """Release a cluster; tasks of the group that have not run yet keep it until the last of them has."""
        self._mark()
        self._run.free_cluster(cluster)

    @contextlib.contextmanager
    def cluster(self) -> Iterator[int]:
        """Reserve a cluster for the duration of the `with` block: `rt.submit(..., cluster=c)`."""
        number = self.allocate_cluster()
        try:
            yield number
        finally:
            self.free_cluster(number)
