"""Tasks of several ranks in one thread: a task that waits for a signal is suspended until the signal arrives.

`Together` is `Serial` for programs whose tasks wait for each other. A task begins when its dependencies have
finished: its `deps`, and tasks that share its tensors (windows of all ranks do not count). The task runs
until it waits; then the next task begins. Tasks that still wait at the end are deadlocked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...diag import Span
from ..checks.footprint import Claim
from ..graphs.serial import COMPARISONS, Chain, Serial, SerialTensor, flat
from ..ir import IN, Function, TensorType
from .order import Order, Task


class _Use:
    """An access of a task to a tensor."""

    def __init__(self, task: LaunchedTask, tensor: SerialTensor, write: bool) -> None:
        self.task = task
        self.write = write
        self.box = tensor.box
        self.span = ((tensor.offset,), (tensor.memory().size,))

    def _both(self, other: _Use) -> Iterator[tuple[int, int, int, int]]:
        """Yield offset and size of both accesses by dimension, as boxes if both are boxes."""
        if self.box is not None and other.box is not None:
            return zip(*self.box, *other.box, strict=True)
        return zip(*self.span, *other.span, strict=True)

    def meets(self, other: _Use) -> bool:
        return (self.write or other.write) and all(
            a < b + m and b < a + n for a, n, b, m in self._both(other)
        )

    def covers(self, other: _Use) -> bool:
        return self.write and all(a <= b and b + m <= a + n for a, n, b, m in self._both(other))


class LaunchedTask(Task):
    """A submitted task and its tensors; `begin` returns its launch."""

    def __init__(self, number: int, name: str, place: Span | None) -> None:
        super().__init__(number, name, place)
        self.before: set[LaunchedTask] = set()
        self.claims: list[tuple[Claim, int]] = []
        self.begin: Callable[[], Any] | None = None
        self.holds: Callable[[], bool] = lambda: True
        self.ended: Callable[..., None] = lambda _: None
        self.launch: Any = None
        self.over = False


class EndedLaunch:
    """A launch that has run to its end at once."""

    moves = 0

    def __init__(self, result: Any) -> None:
        self.result = result

    def go(self) -> bool:
        return True

    def end(self) -> Any:
        return self.result


class Together(Serial):
    """The scheduler. `begin(kernel, arguments, options, watcher)` begins a launch; `ended(result, kernel,
    options)` receives its result. `functions` give the directions of the kernels' parameters."""

    def __init__(
        self, begin: Callable[..., Any], ended: Callable[..., None], places: Sequence[Span | None],
        footprint: Any, functions: Mapping[str, Function], world: int,
    ) -> None:  # fmt: skip
        super().__init__(ended, places, footprint)
        self.begin = begin
        self.functions = functions
        self.order = Order(world)
        self.tasks: list[LaunchedTask] = []
        self.waiting: list[LaunchedTask] = []  # tasks that have not finished
        self.uses: dict[int, list[_Use]] = {}  # by array: accesses that later tasks may have to wait for
        self._roots: list[object] = []  # keeps arrays alive, so that their ids stay unique
        self._manual = False
        self._untracked: set[int] = set()
        self._chain = Chain(self.task_dummy)

    def tensor(
        self, shape: Sequence[int], dtype: str, init: float | None = None, manual_dep: bool = False,
        name: str = "", window: bool = False,
    ) -> SerialTensor:  # fmt: skip
        made = super().tensor(shape, dtype, init, manual_dep, name, window)
        if manual_dep:
            self._roots.append(made.root)
            self._untracked.add(id(made.root))
        return made

    # ---- tasks ----

    def submit(
        self, kernel: Any, *args: Any, at: int = 0,
        predicate: tuple[SerialTensor, Sequence[int], str, int] | None = None, **options: Any,
    ) -> int:  # fmt: skip
        place = self.places[at]
        self.check_windows(args, place)
        function, dispatch = self.functions[kernel.name], options.get("dispatch")
        deps = flat(options.get("deps") or ())
        chained = dispatch if function.attrs.get("windows") else None
        if chained is not None:
            deps += self._chain.before(*chained)
        task = self._task(kernel.name, place, deps)
        if dispatch is not None:
            task.rank = dispatch[0]
        if chained is not None:
            self._chain.add(chained[0], task.number)
        for param, arg in zip(function.params, args, strict=False):
            if param.name in function.attrs.get("windows", ()):
                self.order.window(arg.root, param.name)
        self._depend(task, function, args, options.pop("no_dep", ()))
        if predicate is not None:
            self._test(task, *predicate)
        self._prepare(task, kernel, args, {**options, "place": place})
        self.go()
        return task.number

    def _task(self, name: str, place: Span | None, deps: Sequence[object]) -> LaunchedTask:
        task = LaunchedTask(self.count, name, place)
        self.count += 1
        task.before = {self.tasks[n] for n in flat(deps) if n is not None}
        self.tasks.append(task)
        self.waiting.append(task)
        return task

    def _test(
        self, task: LaunchedTask, x: SerialTensor, index: Sequence[int], word: str, number: int
    ) -> None:
        """Skip a task if a comparison of an element is false after the dependencies of the task."""
        at = x.at(index)
        if not self._manual and id(x.root) not in self._untracked:
            self._use(task, SerialTensor(x.root, x.flat, at, [1], [1]), False)
        task.holds = lambda: COMPARISONS[word](x.flat[at].item(), number)

    def _depend(
        self, task: LaunchedTask, function: Function, args: Sequence[Any], no_dep: Sequence[int]
    ) -> None:
        """Find the tasks that it has to wait for."""
        for number, (param, arg) in enumerate(zip(function.params, args, strict=False)):
            if not isinstance(param.value.type, TensorType) or number in no_dep or self._manual:
                continue
            if id(arg.root) not in self._untracked:
                self._use(task, arg, param.direction != IN)

    def _use(self, task: LaunchedTask, tensor: SerialTensor, write: bool) -> None:
        key = id(tensor.root)
        if key not in self.uses:
            self._roots.append(tensor.root)
        new = _Use(task, tensor, write)
        known = self.uses.setdefault(key, [])
        task.before.update(old.task for old in known if old.task is not task and old.meets(new))
        self.uses[key] = [old for old in known if not new.covers(old)] + [new]

    def _prepare(
        self, task: LaunchedTask, kernel: object, args: Sequence[object], said: dict[str, Any]
    ) -> None:
        memory = [a.memory() if isinstance(a, SerialTensor) else a for a in args]
        if self.footprint is not None:
            task.claims = [(c, c.party) for c in self.footprint.claims]
            if said.get("blocks"):
                task.claims.append((Claim("block", task.place), 0))

        def ended(result: object) -> None:
            if self.footprint is not None and getattr(kernel, "unseen", False):
                for array in memory:
                    if hasattr(array, "nbytes"):
                        self.footprint.wrote(array)
            self.launch(result, kernel, said)

        task.begin = lambda: self.begin(kernel, memory, said, self.order.watcher(task))
        task.ended = ended

    def go(self) -> None:
        """Run every task as far as possible, earlier ones first."""
        went = True
        while went:
            went = False
            for task in [t for t in self.waiting if all(b.over for b in t.before)]:
                moves = task.launch.moves if task.launch is not None else -1
                self._go(task)
                went |= task.over or (task.launch is not None and task.launch.moves != moves)

    def _go(self, task: LaunchedTask, to_the_end: bool = False) -> None:
        if task.launch is None:
            self.order.begins(task, task.before)
            task.begin = task.begin if task.holds() else None
        if task.begin is None:
            self._over(task)
            return
        with contextlib.nullcontext() if self.footprint is None else self.footprint.claimed(task.claims):
            task.launch = task.launch or task.begin()
            over = task.launch.go()
            result = task.launch.end() if over or to_the_end else None
        if result is not None:
            self._over(task)
            task.ended(result)

    def _over(self, task: LaunchedTask) -> None:
        task.over = True
        self.waiting.remove(task)

    def finish(self, wanted: set[LaunchedTask] | None = None) -> None:
        """Finish tasks: `wanted` and their dependencies, or all. Report a task that still waits as
        deadlocked.
        """
        for task in list(self.waiting):
            needed = wanted is None or task in _all_before(wanted)
            if needed and not task.over and all(b.over for b in task.before):
                self._go(task, to_the_end=True)
                self.go()

    # ---- the orchestrator ----

    def _alone(self, x: SerialTensor, index: Sequence[int], write: bool) -> None:
        """Wait for the tasks that access an element."""
        host = LaunchedTask(-1, "", None)
        new = _Use(host, SerialTensor(x.root, x.flat, x.at(index), [1], [1]), write)
        found = {old.task for old in self.uses.get(id(x.root), ()) if old.meets(new)}
        self.finish(found)
        self.order.meets_host(found)

    def read(self, x: SerialTensor, index: Sequence[int], at: int = 0) -> int | float | bool:
        self._alone(x, index, False)
        return super().read(x, index, at)

    def write(self, x: SerialTensor, index: Sequence[int], value: float) -> None:
        self._alone(x, index, True)
        super().write(x, index, value)

    def task_dummy(self, deps: Sequence[object]) -> int | None:
        if deps and not any(d is not None for d in flat(deps)):
            return None
        task = self._task("", None, deps)
        self.go()
        return task.number

    @contextlib.contextmanager
    def manual_scope(self) -> Iterator[None]:
        self._manual = True
        try:
            yield
        finally:
            self._manual = False


def _all_before(tasks: set[LaunchedTask]) -> set[LaunchedTask]:
    """Return tasks and all their dependencies."""
    found, left = set(tasks), list(tasks)
    while left:
        more = left.pop().before - found
        found |= more
        left += more
    return found
