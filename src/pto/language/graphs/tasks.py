"""Orchestrations on the task runtime: tasks run on its cores, ordered by their reads and writes.

`Tasks` has the interface that orchestrations expect, like `Serial`. Every tensor is a window of an array; a
task gets it as a window of a runtime tensor, so that tasks on different parts of an array do not wait for
each other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...runtime.kernels import Kernel, kernel
from ...runtime.session import Runtime
from ...runtime.tensors import MAX_DIMS
from ..ir import IN, OUT, Function, TensorType
from .serial import Chain, Serial, SerialTensor, flat

if TYPE_CHECKING:
    from ...diag import Span
    from ...ir.core import Module

_WORDS = {IN: "in", OUT: "out"}


def task_kernel(function: Function, module: Module) -> Kernel:
    """Return the kernel for tasks of a function."""
    return kernel(module, roles_of(function), core=core_of(module), name=function.name)


def roles_of(function: Function) -> str:
    """Return the role of each parameter of a function in its tasks."""
    words: list[str] = []
    params = {p.value: p for p in function.params}
    for value in function.body.args:
        if isinstance(value.type, TensorType):
            words.append(_WORDS.get(params[value].direction, "inout"))
        else:
            words.append("float" if value.type.dtype.isa == "f32" else "scalar")
    return " ".join(words)


def core_of(module: Module) -> str:
    """Return the core of a kernel: aic, aiv or mixed."""
    kinds = {str(f.attr("pto.kernel_kind") or "") for f in module.functions}
    if len(kinds) > 1:
        return "mixed"
    return "aic" if kinds == {"cube"} else "aiv"


def with_windows(functions: Mapping[str, Function]) -> set[str]:
    """Return functions whose tasks may wait for other ranks."""
    return {name for name, f in functions.items() if f.attrs.get("windows")}


class Tasks(Serial):
    """Submits tasks to a runtime."""

    def __init__(self, rt: Runtime, places: Sequence[Span | None], with_windows: Container[str] = ()) -> None:
        super().__init__(_nobody, places)
        self.rt = rt
        self._cluster: int | None = None
        self.made: list[object] = []  # arrays that live as long as the run
        self.with_windows = with_windows  # functions whose tasks may wait for other ranks
        self._chain = Chain(self.task_dummy)
        #: For tasks of ranks: the rank, and the number of its call by the host.
        self.dispatches: dict[int, tuple[int, int]] = {}
        #: Names and source locations of tasks, and the windows of the run with their names.
        self.submitted: dict[int, tuple[str, Span | None]] = {}
        self.kept: list[tuple[str, object]] = []

    def tensor(
        self, shape: Sequence[int], dtype: str, init: float | None = None, manual_dep: bool = False,
        name: str = "", window: bool = False,
    ) -> SerialTensor:  # fmt: skip
        made = super().tensor(shape, dtype, init, window=window)
        self.made.append(made.root)
        if window:
            self.rt.keep_order(made.root)
            self.kept.append((name, made.root))
        if init is None and not window:
            self.rt.clear(made.root)
        if manual_dep:
            self.rt.external(made.root).manual_dep = True
        return made

    def _window(self, x: SerialTensor) -> object:
        """Return the runtime tensor of a window: exact for a box of its array, else the whole span."""
        if x.box is not None and x.root.ndim <= MAX_DIMS:
            whole = self.rt.external(x.root)
            offsets, sizes = x.box
            sizes = tuple(min(n, have - at) for n, at, have in zip(sizes, offsets, x.root.shape, strict=True))
            return whole if sizes == x.root.shape else whole.view(sizes, offsets)
        flat = self.rt.external(x.flat)
        span = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True))
        return flat.view([span], [x.offset])

    def read(self, x: SerialTensor, index: Sequence[int], at: int = 0) -> int | float:
        place = self.places[at]
        site = (place.source.name, place.line) if place is not None else None
        return self.rt.read(self.rt.external(x.flat), [x.at(index)], site)

    def write(self, x: SerialTensor, index: Sequence[int], value: Any) -> None:
        self.rt.write(self.rt.external(x.flat), [x.at(index)], value)

    def parallel(self, start: int, stop: int, step: int, at: int) -> Iterator[int]:
        return iter(range(start, stop, step))

    def submit(self, kernel: Any, *args: object, at: int = 0, predicate: Any = None, **options: Any) -> int:
        place = self.places[at]
        self.check_windows(args, place)
        values = [self._window(a) if isinstance(a, SerialTensor) else a for a in args]
        if place is not None:
            options["site"] = (place.source.name, place.line)
        if options.get("deps"):
            options["deps"] = flat(options["deps"])
        if predicate is not None:
            tensor, index, word, number = predicate
            options["predicate"] = (self.rt.external(tensor.flat), [tensor.at(index)], word, number)
        if self._cluster is not None and not options.get("blocks") and kernel.core != "mixed":
            options["cluster"] = self._cluster
        dispatch = options.pop("dispatch", None)
        chained = dispatch if kernel.name in self.with_windows else None
        if chained is not None:
            options["deps"] = [*options.get("deps", ()), *self._chain.before(*chained)]
        task = self.rt.submit(kernel, *values, **options)
        self.submitted[task] = kernel.name, place
        if dispatch is not None:
            self.dispatches[task] = dispatch
        if chained is not None:
            self._chain.add(chained[0], task)
        return task

    def task_dummy(self, deps: Sequence[object]) -> int | None:
        return self.rt.task_dummy(flat(deps))

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        with self.rt.scope():
            yield

    @contextlib.contextmanager
    def manual_scope(self) -> Iterator[None]:
        with self.rt.manual_scope():
            yield

    @contextlib.contextmanager
    def cluster(self) -> Iterator[None]:
        """Run the tasks inside on the cores of one cluster; tasks of several blocks, or of both kinds of
        core, have their own clusters."""
        with self.rt.cluster() as self._cluster:
            try:
                yield
            finally:
                self._cluster = None


def _nobody(*_: object) -> None:
    raise AssertionError("the runtime launches tasks")
