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

from .hazards import Hazard
from .kernels import ROLES, Kernel
from .native import concurrent_build, log_level, native
from .session import Session
from .tensors import numpy_type, refuse, shape_of, signed, word_float

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Access = tuple[int, int, bool, Array]  # task, parameter, whether it writes, what

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

    def _hazards(self, sites: Sequence[str]) -> list[Hazard]:
        """Tasks that use the same memory, one of them to write, with no way along edges between them."""
        found: list[Hazard] = []
        after = _reachable(len(self._values), self._edges)
        seen: set[tuple[int, int]] = set()
        for one, other in _meetings(list(self._accesses())):
            if one[0] > other[0]:
                one, other = other, one
            (a, _, wrote_a, _), (b, arg, wrote_b, _) = one, other
            if not (wrote_a or wrote_b) or a == b or (a, b) in seen or after[a] >> b & 1 or after[b] >> a & 1:
                continue
            seen.add((a, b))
            kind = "RAW" if not wrote_b else "WAW" if wrote_a else "WAR"
            found.append(Hazard(kind, a, b, arg, (sites[a], sites[b])))
        return sorted(found, key=lambda h: (h.later, h.earlier))

    def _accesses(self) -> Iterator[Access]:
        for task, (kernel, values) in enumerate(self._values):
            for i, value in enumerate(values):
                if kernel.roles[i] != ROLES["scalar"] and value.size:
                    yield task, i, kernel.roles[i] in _WRITES, value


def _task(given: Any) -> int:
    """The id of a task, as `add_task` gave it."""
    if hasattr(given, "__index__") and -(1 << 31) <= (number := given.__index__()) < 1 << 31:
        return number
    raise refuse(f"{given!r} is no task", "add_task returns its number")


def _reachable(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For every task the set, as bits, of those that come after it. There is no circle."""
    waits, next_of = [0] * count, [[] for _ in range(count)]
    for a, b in edges:
        next_of[a].append(b)
        waits[b] += 1
    order = [t for t in range(count) if not waits[t]]
    for t in order:
        for n in next_of[t]:
            waits[n] -= 1
            if not waits[n]:
                order.append(n)
    after = [0] * count
    for t in reversed(order):
        for n in next_of[t]:
            after[t] |= after[n] | 1 << n
    return after


def _meetings(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses that share memory."""
    import numpy as np

    bounds = getattr(getattr(np.lib, "array_utils", np), "byte_bounds")  # noqa: B009  NumPy 1 has it elsewhere
    limits = sorted(((*bounds(access[3]), access) for access in accesses), key=lambda found: found[:2])
    live: list[tuple[int, Access]] = []
    for low, high, access in limits:
        live = [(end, other) for end, other in live if end > low]
        for _, other in live:
            if _share(other[3], access[3]):
                yield other, access
        live.append((high, access))


def _share(x: Array, y: Array) -> bool:
    import numpy as np

    try:
        return np.shares_memory(x, y, max_work=10_000)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True
