"""Graphs with explicit edges from Python, for host_build_graph and aicpu_build_graph.

    def build(rt, a, b, out):
        c = rt.tensor(a.shape)                     # memory between tasks: a NumPy array
        first = rt.add_task(add, a, b, c)
        second = rt.add_task(add, c, b, out)
        rt.add_successor(first, second)            # the only order between them

    runtime.run(build, a, b, out, runtime="host_build_graph", check_hazards=True)

Tasks get addresses, as on the device; a kernel that is a Python function gets the arrays themselves.
host_build_graph runs the graph when it is complete. aicpu_build_graph runs a task once it is published, while
others are added (with PTO_AICPU_BUILD_GRAPH_BUILD_MODE=0 after all of them).
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..perf.hazards import READ, WRITE, Use
from .extension import extension
from .kernels import ROLES, Kernel
from .options import concurrent_build, log_level
from .session import Session
from .tensors import dtype_number, numpy_type, refuse, shape_of, signed, word_float

if TYPE_CHECKING:
    import numpy as np

    from ..engine.sanitize import Checks
    from .virtual import Virtual

    Array = np.ndarray[Any, Any]

#: Runtimes of this kind, and their maximal number of kernels.
RUNTIMES = {"host_build_graph": 32, "aicpu_build_graph": 64}
_TASKS, _FAN_OUT, _PARAMS = 131072, 512, 16
_WRITES = (ROLES["out"], ROLES["inout"])


class Graph(Session):
    """The builder of a graph with explicit edges: it adds tasks, orders them, and publishes them."""

    def __init__(
        self,
        kernels: Any,
        given: dict[str, Any],
        sink: Any,
        runtime: str,
        virtual: Virtual | None = None,
        sanitize: Checks | None = None,
    ) -> None:
        given = {**given, "concurrent": runtime == "aicpu_build_graph" and concurrent_build()}
        self._run: Any = extension().TaskGraph(kernels, given, log_level(), sink)
        super().__init__(kernels, runtime, virtual, sanitize)
        self._poison = bool(given.get("poison"))
        self._concurrent = bool(given["concurrent"])
        #: Kernel and arguments of every task; arrays live as long as the run.
        self._values: list[tuple[Kernel, list[Any]]] = []
        self._edges: list[tuple[int, int]] = []
        self._fan_out: dict[int, int] = {}
        self._published: set[int] = set()
        self._adding = threading.Lock()  # a builder may have threads
        self._made: set[int] = set()  # addresses of tensors between tasks, if sanitizers need them

    def tensor(self, shape: Sequence[int] | int, dtype: Any = "f32") -> Array:
        """Make memory between tasks: an uninitialized array."""
        import numpy as np

        self._check_open()
        array = np.empty(shape_of(shape), numpy_type(dtype))
        if self._poison:
            array.reshape(-1).view(np.uint8)[:] = 0xFF
        if self._watch is not None:
            self._made.add(array.ctypes.data)
        return array

    def add_task(self, kernel: Kernel, *values: Any) -> int:
        """Add a task and return its id. `values` are NumPy arrays and numbers, in the order of the kernel's
        arguments."""
        with self._adding:
            number = self._numbers.get(id(kernel))
            if number is None:
                if len(self._known) == RUNTIMES[self._runtime]:
                    raise refuse(f"too many kernels: {self._runtime} has at most {RUNTIMES[self._runtime]}")
                if getattr(kernel, "core", "") == "mixed":
                    raise refuse(
                        f"unsupported mixed task: {self._runtime} has no mixed tasks",
                        "use tensormap_and_ringbuffer",
                    )
                number = self._add(kernel)
            self._mark()
            if len(self._values) == _TASKS:
                raise refuse(
                    f"too many tasks: {self._runtime} has at most {_TASKS}", "use tensormap_and_ringbuffer"
                )
            if len(kernel.roles) > _PARAMS:
                raise refuse(f"too many parameters: tasks of {self._runtime} have at most {_PARAMS}")
            if len(values) != len(kernel.roles):
                raise refuse(
                    f"expected {len(kernel.roles)} arguments for kernel {kernel.name}, got {len(values)}"
                )
            kept = [self._value(kernel, i, v) for i, v in enumerate(values)]
            if number in self._elements:
                dtypes = [getattr(v, "dtype", None) for v in kept]
                self._check_elements(kernel, number, dtypes)
            arrays = [i for i, role in enumerate(kernel.roles) if role != ROLES["scalar"]]
            slots = list(kept)
            for i in arrays:
                slots[i] = kept[i].ctypes.data
                address, size = _memory(kept[i])
                if not callable(kernel.source):
                    self._run.add_array(slots[i], address, size)
                if self._watch is not None and address not in self._made:
                    self._watch.outside([(address, size)])
            task = self._run.add_task(number, kernel.core_type, slots)
            self._values.append((kernel, kept))
            return task

    def _value(self, kernel: Kernel, at: int, value: Any) -> Any:
        """Return the stored form of a value: a view of the array, or the 64 bits of a number."""
        import numpy as np

        where = f"parameter {at} of kernel {kernel.name}"
        is_array = isinstance(value, np.ndarray)
        if kernel.roles[at] == ROLES["scalar"]:
            if is_array and value.ndim:
                raise refuse(f"expected a number for {where}, got an array")
            return self._number(kernel, value[()] if is_array else value, at)
        if not is_array:
            raise refuse(f"expected an array for {where}, got {type(value).__name__}", "numpy.asarray(...)")
        if kernel.roles[at] in _WRITES and not value.flags.writeable:
            raise refuse(f"cannot write to {where}: the array is read-only", "pass a copy of the array")
        if not callable(kernel.source):
            dtype_number(value.dtype)
            if not value.flags.c_contiguous:
                message = f"expected a contiguous array for {where}: a task gets only its address"
                raise refuse(message, "numpy.ascontiguousarray(...)")
        kept = value.view(np.ndarray)  # no subclass, and not the caller's object
        if kernel.roles[at] == ROLES["in"]:
            kept.flags.writeable = False  # read-only, because no task would wait for a write
        return kept

    def add_successor(self, earlier: int, later: int) -> None:
        """Start the later task when the earlier one has ended."""
        self._mark()
        earlier, later = self._task(earlier), self._task(later)
        if later in self._published and self._concurrent:
            message = f"cannot add an edge from task {earlier}: task {later} is already published"
            raise refuse(message, "publish a task after the edges into it")
        self._fan_out[earlier] = self._fan_out.get(earlier, 0) + 1
        if self._fan_out[earlier] > _FAN_OUT:
            raise refuse(
                f"too many successors of task {earlier}: at most {_FAN_OUT}", "put a task between them"
            )
        self._run.add_edge(earlier, later)
        self._edges.append((earlier, later))

    #: The name in aicpu_build_graph, where the earlier task may have ended already.
    add_successor_conditional = add_successor

    def publish_task(self, task: int) -> None:
        """Complete the edges into a task: with aicpu_build_graph it may start from now on."""
        self._mark()
        task = self._task(task)
        self._published.add(task)
        self._run.publish(task)

    def _task(self, given: Any) -> int:
        """Check the id of a task, as `add_task` returned it."""
        try:
            task = operator.index(given)
        except TypeError:
            raise refuse(
                f"expected the number of a task, got {given!r}", "pass a result of add_task"
            ) from None
        if not 0 <= task < len(self._values):
            raise refuse(f"unknown task {task}: {len(self._values)} were added so far")
        return task

    def _finish(self) -> None:
        """Publish or check the tasks after everything was added: host_build_graph has no publish call."""
        left = [task for task in range(len(self._values)) if task not in self._published]
        if self._runtime == "host_build_graph":
            for task in left:
                self._published.add(task)
                self._run.publish(task)
        elif left:
            name = self._values[left[0]][0].name
            message = (
                f"task {left[0]} ({name}) was never published: {len(left)} of {len(self._values)} do not run"
            )
            raise refuse(message, "rt.publish_task(task), after the edges into it")

    def __getattr__(self, name: str) -> Any:
        if name in ("submit", "scope", "external", "cluster", "allocate_cluster", "free_cluster"):
            raise AttributeError(
                f"{self._runtime} has no {name}: tasks come from add_task, edges from add_successor"
            )
        raise AttributeError(f"'Graph' object has no attribute '{name}'")

    def _caller(self, kernel: Kernel) -> Callable[..., None]:
        function, roles, floats, known = kernel.source, kernel.roles, kernel.floats, self._values
        assert callable(function), "a source file has no caller"

        def argument(i: int, value: Any) -> Any:
            if roles[i] != ROLES["scalar"]:
                return value.view()
            return word_float(value) if i in floats else signed(value)

        def call(task: int, slots: list[int], *masks: int) -> None:
            function(*(argument(i, value) for i, value in enumerate(known[task][1])))

        return call

    def _declared(self, seen: set[tuple[int, int]]) -> Iterator[Use]:
        """Yield the declared uses of tasks that ran, for parameters without observed accesses of their
        kernel."""
        known = {(id(self._values[task][0]), arg) for task, arg in seen}
        for task in sorted(self._published):
            kernel, values = self._values[task]
            for i, value in enumerate(values):
                if kernel.roles[i] != ROLES["scalar"] and value.size and (id(kernel), i) not in known:
                    use = WRITE if kernel.roles[i] in _WRITES else READ
                    for first, last in _runs(value):
                        yield first, last, task, i, use


def _memory(array: Array) -> tuple[int, int]:
    """Return the address and the size in bytes of the memory that an array is part of."""
    import numpy as np

    while isinstance(array.base, np.ndarray) and array.base.flags.c_contiguous:
        array = array.base
    return array.ctypes.data, array.nbytes


def _runs(array: Array) -> Iterator[tuple[int, int]]:
    """Yield the bytes of an array as contiguous runs."""
    import numpy as np

    dense = array[(..., *(slice(None, None, -1 if s < 0 else 1) for s in array.strides))]  # steps go up
    order = np.argsort([-s for s in dense.strides], kind="stable")
    dense = dense.transpose(order)
    run = dense.itemsize
    while dense.ndim and dense.strides[-1] <= run:
        run = max(run, dense.strides[-1] * (dense.shape[-1] - 1) + run)
        dense = dense[..., 0]
    start = dense.__array_interface__["data"][0]
    for index in np.ndindex(dense.shape):
        at = start + sum(i * s for i, s in zip(index, dense.strides, strict=True))
        yield at, at + run
