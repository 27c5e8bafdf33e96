"""Operators of orchestrations: arrays of numbers and of tasks, tasks that run nothing, numbers of cores."""

from __future__ import annotations

from ..dtypes import TASK_ID, DataType
from ..ir import ArrayType, Dim, Number, ScalarType, Value, is_int, is_scalar
from ..ir.build import Build
from ..ir.index import known as index_of
from ..problems import ARGUMENTS, PLACE, TYPE
from .core import Array, Numbers, Scalar, operator

#: Clusters of a chip, each with a cube core and two vector cores.
CLUSTERS = 24


def array_value(b: Build, x: Array, at: str) -> Value:
    if not isinstance(x, Value) or not isinstance(x.type, ArrayType):
        b.fail(TYPE, f"expected an array for '{at}'", at, got=x.type if isinstance(x, Value) else repr(x),
               help="pl.array.create(n, dtype) makes one")  # fmt: skip
    return x


def element(b: Build, x: Value, value: object, at: str) -> object:
    """Check the value of an array element: a number of its type, or a task; None stands for no task."""
    task = x.type.dtype == TASK_ID
    fits = value is None if task and not isinstance(value, Value) else is_scalar(value)
    if isinstance(value, Value):
        fits = isinstance(value.type, ScalarType) and (value.type.dtype == TASK_ID) == task
    if not fits:
        got = value.type if isinstance(value, Value) else repr(value)
        b.fail(TYPE, f"cannot store this value in {x.type}", at, got=got)
    return value


@operator(name="create", level="array")
def create(b: Build, extent: Dim, dtype: DataType) -> Numbers:
    """Create numbers, truth values or tasks on the stack. Task slots begin without a task; numbers are
    uninitialized.
    """
    n = index_of(extent) if is_scalar(extent) else None
    if n is None or n < 1:
        b.fail(ARGUMENTS, "expected a constant length of an array", "extent", got=repr(extent))
    if not isinstance(dtype, DataType) or not (dtype.is_int or dtype == TASK_ID or dtype.isa == "i1"):
        b.fail(TYPE, "expected integers, truth values or tasks for an array", "dtype", got=repr(dtype))
    return b.op("array.create", [ArrayType(dtype, n)], extent=n, dtype=dtype)


@operator(name="get_element", level="array")
def get_element(b: Build, array: Numbers, index: Dim) -> Scalar:
    """Return an element: `array[index]`."""
    x = array_value(b, array, "array")
    return b.op("array.read", [ScalarType(x.type.dtype)], x=x, offset=_inside(b, x.type, index))


@operator(name="update_element", level="array")
def update_element(b: Build, array: Numbers, index: Dim, value: Number | None) -> Numbers:
    """Return the array with another element. On a core this is the same array, elsewhere a copy."""
    x = array_value(b, array, "array")
    made = x if b.in_core else copy(b, x)
    given = element(b, made, value, "value")
    b.append("array.write", [], {"x": made, "offset": _inside(b, x.type, index), "value": given})
    return made


def _inside(b: Build, t: ArrayType, at: Dim) -> Dim:
    known = index_of(at) if is_int(at) else -1
    if not is_int(at) or (known is not None and not 0 <= known < t.extent):
        b.fail(ARGUMENTS, "index out of bounds", "index", expected=f"0 to {t.extent - 1}", got=repr(at))
    return b.as_index(at)


def copy(b: Build, x: Numbers) -> Numbers:
    """Return another array with the same elements."""
    return b.op("array.copy", [x.type], array=x)


@operator(name="task_dummy", level="system")
def task_dummy(b: Build, deps: object = None) -> Scalar:
    """Submit a task without a kernel; a task that waits for it waits for all its `deps`."""
    if b.in_core and not b.exact:
        b.fail(PLACE, "cannot submit a task from a core")
    return b.op("task_dummy", [ScalarType(TASK_ID)], deps=tasks_in(b, deps))


@operator(name="task_invalid", level="system")
def task_invalid(b: Build) -> Scalar:
    """Return no task; a wait for it is a no-op."""
    return b.op("task_invalid", [ScalarType(TASK_ID)])


def tasks_in(b: Build, deps: object) -> list[object]:
    """Return the dependencies of a task: tasks and arrays of them; None stands for no task."""
    given = list(deps) if isinstance(deps, list | tuple) else [] if deps is None else [deps]
    for d in given:
        if d is not None and not (
            isinstance(d, Value) and isinstance(d.type, ScalarType | ArrayType) and d.type.dtype == TASK_ID
        ):
            b.fail(TYPE, "expected tasks in 'deps'", "deps", got=d.type if isinstance(d, Value) else repr(d),
                   help="with pl.at(..) as task; result, task = pl.submit(..)")  # fmt: skip
    return given


@operator(level="system", anywhere=True)
def available_cluster_count(b: Build) -> int:
    """Return the number of clusters: cube cores, each with two vector cores."""
    return CLUSTERS


@operator(level="system", anywhere=True)
def available_aiv_count(b: Build) -> int:
    """Return the number of vector cores."""
    return 2 * CLUSTERS
