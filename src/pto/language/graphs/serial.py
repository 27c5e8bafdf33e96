"""The sequential runtime: run tasks one after another on an engine. Its results define the meaning of a
program, and sanitizers run here. `Serial` has the interface that orchestrations expect of a runtime. A tensor
is an array and a window of it.
"""

from __future__ import annotations

import contextlib
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...diag import Diagnostic, DiagnosticError
from ..problems import SHAPE

if TYPE_CHECKING:
    import numpy as np

    from ...diag import Span

    Array = np.ndarray[Any, Any]
    from ..checks.footprint import Footprint


#: Offsets and extents in every dimension.
Box = tuple[tuple[int, ...], tuple[int, ...]]


class SerialTensor:
    """Elements of a contiguous array: offset, extents, strides."""

    __slots__ = ("box", "flat", "of", "offset", "root", "shape", "strides")

    def __init__(
        self,
        root: Array,
        flat: Array,
        offset: int,
        shape: Sequence[int],
        strides: Sequence[int],
        box: Box | None = None,
        of: tuple[str, Span | None] | None = None,
    ) -> None:
        self.root = root
        self.of = of  # for a window: the name of its tensor, and the location of the slice
        self.flat = flat  # the array, flattened
        self.box = box  # its offsets and extents in the array if it is a box
        self.offset = offset
        self.shape = tuple(shape)
        self.strides = tuple(strides)

    def memory(self) -> Array:
        """Return the memory from the first element to the last."""
        span = (
            1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
            if all(self.shape)
            else 0
        )
        return self.flat[self.offset : self.offset + max(span, 0)]

    def at(self, index: Sequence[int]) -> int:
        if len(index) == 1 and len(self.shape) > 1:
            return self.offset + index[0]
        return self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))


def dense(shape: Sequence[int]) -> list[int]:
    out = [1]
    for n in reversed(shape[1:]):
        out.append(out[-1] * n)
    return out[::-1] if shape else []


#: Comparisons of predicates.
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
               ">=": operator.ge}  # fmt: skip


def flat(deps: Sequence[Any]) -> list[Any]:
    """Return the tasks, including those in arrays of tasks."""
    return [t for d in deps for t in (d if isinstance(d, list) else [d])]


class SharedWindows:
    """Memory of ranks that several runs share: the windows of a program in order of creation. With `reset`,
    they are zeroed when a run begins."""

    def __init__(self, reset: bool) -> None:
        self.reset = reset
        self.arrays: list[Array] = []
        self.made = 0  # the number of arrays that were made because no array could be shared
        self._next = 0

    def begin(self) -> None:
        self._next = 0
        self.made += not self.arrays

    def array(self, new: Array) -> Array:
        """Return the shared array to use for a new one."""
        self._next += 1
        if self._next > len(self.arrays):
            self.arrays.append(new)
        elif self.reset:
            self.arrays[self._next - 1][...] = 0
        return self.arrays[self._next - 1]


class Chain:
    """Consecutive calls of a rank by the host. Tasks with windows wait for all tasks with windows of the
    previous call. `join(tasks)` gives a task that waits for several.
    """

    def __init__(self, join: Callable[[list[int]], Any]) -> None:
        self.join = join
        self._now: dict[int, tuple[int, list[int]]] = {}  # by rank: the call, and its tasks
        self._before: dict[int, list[int]] = {}

    def before(self, rank: int, number: int) -> list[int]:
        """Return the tasks that a task of a call waits for."""
        call, tasks = self._now.get(rank, (number, []))
        if call != number:
            self._before[rank] = [self.join(tasks)] if len(tasks) > 1 else tasks
            tasks = []
        self._now[rank] = number, tasks
        return self._before.get(rank, [])

    def add(self, rank: int, task: int) -> None:
        self._now[rank][1].append(task)


class Serial:
    """Runs a task when it is submitted, by `launch(kernel, arguments, options)`. The options are those of the
    task, and the `place` of its submission."""

    def __init__(
        self, launch: Callable[..., None], places: Sequence[Span | None] = (),
        footprint: Footprint | None = None,
    ) -> None:  # fmt: skip
        self.launch = launch
        self.places = places
        self.footprint = footprint  # observes claims of independence
        self.windows: SharedWindows | None = None
        self.count = 0

    def wrap(self, array: Array) -> SerialTensor:
        flat = array.reshape(-1)
        box = ((0,) * array.ndim, tuple(array.shape))
        return SerialTensor(array, flat, 0, array.shape, dense(array.shape), box)

    def tensor(
        self, shape: Sequence[int], dtype: str, init: float | None = None, manual_dep: bool = False,
        name: str = "", window: bool = False,
    ) -> SerialTensor:  # fmt: skip
        import numpy as np

        from ...engine.elements import ARRAY_DTYPES

        array = np.zeros(tuple(shape), ARRAY_DTYPES[dtype])
        if window and self.windows is not None:
            return self.wrap(self.windows.array(array))
        if init is not None:
            array[...] = init
        elif self.footprint is not None and name:
            self.footprint.made(name, array)
        return self.wrap(array)

    def check_windows(self, args: Sequence[object], place: Span | None) -> None:
        """Reject window arguments that exceed their array. Rows may exceed the end, because the engine
        reports an access there. Other dimensions would wrap to the next row.
        """
        for x in args:
            if not isinstance(x, SerialTensor) or x.box is None:
                continue
            for axis, (start, size, whole) in enumerate(zip(*x.box, x.root.shape, strict=True)):
                if start < 0 or (start + size > whole and (axis or start >= whole)):
                    name, cut = x.of or ("", None)
                    d = Diagnostic(
                        SHAPE,
                        f"window exceeds dimension {axis}" + (f" of '{name}'" if name else ""),
                        cut or place,
                        expected=f"within {whole}",
                        got=f"{start} to {start + size}",
                        help="pass the whole tensor and load the tail with valid_shape=, "
                        "or choose another step",
                    )
                    if cut is not None and place is not None:
                        d.notes.append(("the window is passed to a task here", place))
                    raise DiagnosticError([d])

    def view(
        self, x: SerialTensor, shape: Sequence[int], offset: Sequence[int], at: int, name: str,
        drop: Sequence[int] = (),
    ) -> SerialTensor:  # fmt: skip
        """Return a window of a named tensor."""
        start = x.offset + sum(o * s for o, s in zip(offset, x.strides, strict=True))
        kept = [i for i in range(len(shape)) if i not in drop]
        box = None
        if x.box is not None and len(x.box[0]) == len(offset):
            box = (tuple(a + o for a, o in zip(x.box[0], offset, strict=True)), tuple(shape))
        of = x.of[0] if x.of else name, self.places[at] if self.places else None
        return SerialTensor(
            x.root, x.flat, start, [shape[i] for i in kept], [x.strides[i] for i in kept], box, of
        )

    def reshape(self, x: SerialTensor, shape: Sequence[int]) -> SerialTensor:
        return SerialTensor(x.root, x.flat, x.offset, shape, dense(shape))

    def transpose(self, x: SerialTensor, a: int, b: int) -> SerialTensor:
        order = list(range(len(x.shape)))
        order[a], order[b] = order[b], order[a]
        return SerialTensor(
            x.root, x.flat, x.offset, [x.shape[i] for i in order], [x.strides[i] for i in order]
        )

    def read(self, x: SerialTensor, index: Sequence[int], at: int = 0) -> int | float | bool:
        n = x.at(index)
        if self.footprint is not None:
            self.footprint.reads(x.flat[n : n + 1], self.places[at])
        return x.flat[n].item()

    def together(self, *ranks: Generator[Any, Any, None]) -> None:
        """Run the orchestrators of several ranks interleaved, each up to its next read of an element. Then
        the other ranks have submitted the tasks that its tasks may wait for.
        """
        waiting: deque[tuple[Any, Any, list[Any]]] = deque((rank, None, []) for rank in ranks)
        while waiting:
            rank, wanted, claims = waiting.popleft()
            held = contextlib.nullcontext() if self.footprint is None else self.footprint.with_claims(claims)
            with held, contextlib.suppress(StopIteration):
                asks = rank.send(None if wanted is None else self.read(*wanted))
                waiting.append((rank, asks, claims))

    def write(self, x: SerialTensor, index: Sequence[int], value: float) -> None:
        at = x.at(index)
        x.flat[at] = value
        if self.footprint is not None:
            self.footprint.wrote(x.flat[at : at + 1])

    def parallel(self, start: int, stop: int, step: int, at: int) -> Iterator[int]:
        """Iterate over a loop that is declared independent."""
        if self.footprint is None:
            yield from range(start, stop, step)
            return
        with self.footprint.claim("iteration", self.places[at]) as claim:
            for i in range(start, stop, step):
                claim.party = i
                yield i

    def submit(
        self, kernel: object, *args: object, at: int = 0,
        predicate: tuple[SerialTensor, Sequence[int], str, int] | None = None, **options: Any,
    ) -> int:  # fmt: skip
        place = self.places[at] if self.places else None
        self.check_windows(args, place)
        options.pop("ordered", None)  # not needed: tasks run one after another
        memory = [a.memory() if isinstance(a, SerialTensor) else a for a in args]
        self.count += 1
        if predicate is not None and not self._holds(*predicate):
            return self.count - 1
        if self.footprint is not None and options.get("blocks"):
            with self.footprint.claim("block", place):
                self.launch(kernel, memory, {**options, "place": place})
        else:
            self.launch(kernel, memory, {**options, "place": place})
        # the task may have written all of the tensor
        if self.footprint is not None and getattr(kernel, "unseen", False):
            for array in memory:
                if hasattr(array, "nbytes"):
                    self.footprint.wrote(array)
        return self.count - 1

    def _holds(self, x: SerialTensor, index: Sequence[int], word: str, number: int) -> bool:
        return COMPARISONS[word](self.read(x, index), number)

    def task_dummy(self, deps: Sequence[object]) -> int | None:
        """Submit a task without a kernel. Return None if there are deps and none of them is a task."""
        if deps and not any(d is not None for d in flat(deps)):
            return None
        self.count += 1
        return self.count - 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        yield

    manual_scope = cluster = scope
