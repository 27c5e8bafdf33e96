"""Tasks in ordinary Python: functions of `pl.Role.SubWorker`.

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def verify(y: pl.Tensor[[128, 128], pl.FP32]):
        assert numpy.isfinite(y).all()

Such a function is not read. Its task calls the function with arrays on the memory of its tensors; with torch
tensors if the program was called with any. A function whose body is `...` is bound when the program is
prepared.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...diag import Diagnostic, DiagnosticError
from ...runtime.kernels import Kernel
from ..ir import IN, Function, TensorType
from ..problems import CALL
from .tasks import roles_of

Call = Callable[[list[Any]], Any]


def of_torch(values: Sequence[object]) -> bool:
    """Return True if an argument of a call is a torch tensor, or a worker's copy of one."""
    kinds = [type(v) for v in values] + [type(getattr(v, "dtype", None)) for v in values]
    return any(k.__module__.partition(".")[0] == "torch" for k in kinds)


def caller(function: Function, bound: Call | None, torch: Callable[[], bool]) -> Callable[..., None]:
    """Return the function that the task runs; `bound` replaces the function if it is given."""
    body = function.attrs["python"]

    def call(*given: object) -> None:
        values = _values(function, given, torch())
        if bound is not None:
            bound(values)
        elif function.attrs["unbound"]:
            help = f"bind it: compiled.prepare(callbacks={{{function.name!r}: f}}) calls f(args)"
            raise DiagnosticError(
                [Diagnostic(CALL, f"missing body of {function.name}", function.loc, help=help)]
            )
        else:
            body(*values)

    return call


def python_kernel(function: Function, bound: Call | None, torch: Callable[[], bool]) -> Kernel:
    """Return the kernel that tasks of the function execute on the runtime."""
    return Kernel(caller(function, bound, torch), roles_of(function), name=function.name)


def _values(function: Function, given: Sequence[object], torch: bool) -> list[object]:
    """Return the arguments of a function: arrays of the parameters' shapes, and numbers."""
    numbers = dict(zip(function.body.args, given, strict=True))
    found = {
        param.name: _array(param.value.type, numbers, numbers[param.value], param.direction == IN, torch)
        if isinstance(param.value.type, TensorType)
        else numbers[param.value]
        for param in function.params
    }
    return [found[name] for name in function.attrs["names"]]


def _array(t: TensorType, numbers: dict[Any, Any], memory: Any, read: bool, torch: bool) -> object:
    """Return the memory of a task, from its first element on, as an array of the parameter's type."""
    import numpy as np

    from ...engine.elements import ARRAY_DTYPES
    from .serial import dense

    dtype = np.dtype(ARRAY_DTYPES[t.dtype.isa])
    shape = [numbers.get(d, d) for d in t.shape]
    steps = [numbers.get(d, d) for d in t.strides] if t.strides is not None else dense(shape)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if all(shape) else 0
    start = memory.__array_interface__["data"][0]
    raw: Any = (ctypes.c_char * max(span * dtype.itemsize, 1)).from_address(start)
    found = np.ndarray(shape, dtype, raw, strides=[s * dtype.itemsize for s in steps])
    if torch:
        return as_torch(found)
    found.flags.writeable = not read
    return found


def as_torch(array: Any) -> object:
    """Return the same memory as a torch tensor."""
    torch = sys.modules["torch"]
    name = str(array.dtype)
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    raw = {1: "uint8", 2: "int16"}[array.dtype.itemsize]
    return torch.from_numpy(array.view(raw)).view(getattr(torch, name))


class AlonePython:
    """A Python task in runs of one task after another."""

    unseen = True  # a Python task emits no events
    moves = 0

    def __init__(self, function: Function, bound: Call | None, torch: Callable[[], bool]) -> None:
        self.call = caller(function, bound, torch)
        self.name = self.task = function.name
        self.memory_map = None
        self.diagnostics: list[Diagnostic] = []
        self.checked: frozenset[str] = frozenset()  # Python is not observed
        self.ok = True

    def __call__(self, *args: object, **_: object) -> None:
        self.call(*args)

    def run(self, *args: object, **_: object) -> AlonePython:
        self.call(*args)
        return self

    begin = run

    def go(self) -> bool:
        return True

    def end(self) -> AlonePython:
        return self
