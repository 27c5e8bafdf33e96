"""Build a graph with explicit edges from Python, for host_build_graph and aicpu_build_graph.

    def build(rt, a, b, out):
        c = rt.tensor(a.shape)                     # memory between tasks: a NumPy array
        first = rt.add_task(add, a, b, c)
        second = rt.add_task(add, c, b, out)
        rt.add_successor(first, second)            # nothing else orders them

    runtime.run(build, a, b, out, runtime="host_build_graph", check_hazards=True)

Tasks get addresses, here as on the device; a kernel that is a Python function gets the arrays themselves.
host_build_graph runs the graph when it is complete. aicpu_build_graph runs a task from the moment it is
published, while others are added (with PTO_AICPU_BUILD_GRAPH_BUILD_MODE=0 after all of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .hazards import READ, WRITE, Use
from .kernels import ROLES, Kernel
from .native import concurrent_build, log_level, native
from .session import Session
from .tensors import numpy_type, refuse, shape_of, signed, word_float

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Runtimes of this kind, and how many kernels each knows.
RUNTIMES = {"host_build_graph": 32, "aicpu_build_graph": 64}
_TASKS = 131072
_WRITES = (ROLES["out"], ROLES["inout"])


class Graph(Session):
    """What builds a graph with explicit edges: add tasks, order them, publish them."""

    def __init__(self, kernels: Any, given: dict[str, Any], sink: Any, runtime: str) -> None:
        given = {**given, "concurrent": runtime == "aicpu_build_graph" and concurrent_build()}
        self._native: Any = native().TaskGraph(kernels, given, log_level(), sink)
        super().__init__(kernels, runtime)
        self._poison = bool(given.get("poison"))
        self._values: list[
            tuple[Kernel, tuple[Any, ...]]
        ] = []  # of every task; arrays live as long as the run
        self._edges: list[tuple[int, int]] = []

    def tensor(self, shape: Sequence[int] | int, dtype: Any = "f32") -> Array:
        """Memory between tasks: an array that nobody has written to yet."""
        import numpy as np

        self._check_open()
        array = np.empty(shape_of(shape), numpy_type(dtype))
        if self._poison:
            array.reshape(-1).view(np.uint8)[:] = 0xFF
        return array

    def add_task(self, kernel: Kernel, *values: Any) -> int:
        """Add a task; its id. NumPy arrays and numbers, in the order of the kernel's arguments."""
        number = self._numbers.get(id(kernel))
        if number is None:
            if len(self._known) == RUNTIMES[self._runtime]:
                raise refuse(f"{self._runtime} knows at most {RUNTIMES[self._runtime]} kernels")
            number = self._add(kernel)
        self._mark()
        if len(self._values) == _TASKS:
            raise refuse(f"{self._runtime} has room for {_TASKS} tasks", "use tensormap_and_ringbuffer")
        if len(values) != len(kernel.roles):
            raise refuse(f"kernel {kernel.name} takes {len(kernel.roles)} arguments, got {len(values)}")
        slots = [self._slot(kernel, i, v) for i, v in enumerate(values)]
        task = self._native.add_task(number, kernel.core_type, slots)
        self._values.append((kernel, values))
        return task

    def _slot(self, kernel: Kernel, at: int, value: Any) -> int:
        import numpy as np

        is_array = isinstance(value, np.ndarray)
        if kernel.roles[at] == ROLES["scalar"]:
            if is_array and value.ndim:
                raise refuse(f"parameter {at} of kernel {kernel.name} is a number, got an array")
            return self._number(kernel, value, at)
        if not is_array:
            got = type(value).__name__
            raise refuse(
                f"parameter {at} of kernel {kernel.name} is an array, got {got}", "numpy.asarray(...)"
            )
        if kernel.roles[at] in _WRITES and not value.flags.writeable:
            message = f"parameter {at} of kernel {kernel.name} is written to, but read-only"
            raise refuse(message, "give the task a copy of the array")
        if not value.flags.c_contiguous and not callable(kernel.source):
            message = (
                f"parameter {at} of kernel {kernel.name} must be contiguous: a task gets its address only"
            )
            raise refuse(message, "numpy.ascontiguousarray(...)")
        return value.ctypes.data

    def add_successor(self, earlier: int, later: int) -> None:
        """The later task starts when the earlier one has ended."""
        self._mark()
        earlier, later = _task(earlier), _task(later)
        self._native.add_edge(earlier, later)
        self._edges.append((earlier, later))

    #: As aicpu_build_graph calls it: a task that has ended already counts as well.
    add_successor_conditional = add_successor

    def publish_task(self, task: int) -> None:
        """All edges into the task are there: with aicpu_build_graph it may start from now on."""
        self._mark()
        self._native.publish(_task(task))

    def _finish(self) -> None:
        """After everything was added: host_build_graph has no word for publishing."""
        if self._runtime == "host_build_graph":
            for task in range(len(self._values)):
                self._native.publish(task)

    def _caller(self, kernel: Kernel) -> Callable[..., None]:
        function, roles, floats, known = kernel.source, kernel.roles, kernel.floats, self._values
        assert callable(function), "a source is a library"

        def argument(i: int, slot: int, value: Any) -> Any:
            if roles[i] == ROLES["scalar"]:
                return word_float(slot) if i in floats else signed(slot)
            if roles[i] != ROLES["in"] or not value.flags.writeable:
                return value
            seen = value.view()
            seen.flags.writeable = False  # nobody would wait for it
            return seen

        def call(task: int, slots: list[int], *masks: int) -> None:
            values = known[task][1]
            function(*(argument(i, slot, values[i]) for i, slot in enumerate(slots)))

        return call

    def _declared(self) -> Iterator[Use]:
        """What tasks say they use. Parts of an array that have others between them are told one by one."""
        for task, (kernel, values) in enumerate(self._values):
            for i, value in enumerate(values):
                if kernel.roles[i] != ROLES["scalar"] and value.size:
                    use = WRITE if kernel.roles[i] in _WRITES else READ
                    for first, last in _runs(value):
                        yield first, last, task, i, use


def _task(given: Any) -> int:
    """The id of a task, as `add_task` gave it."""
    if hasattr(given, "__index__") and -(1 << 31) <= (number := given.__index__()) < 1 << 31:
        return number
    raise refuse(f"{given!r} is no task", "add_task returns its number")


def _runs(array: Array) -> Iterator[tuple[int, int]]:
    """The bytes of an array, as runs that have no gaps."""
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
