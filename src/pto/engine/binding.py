"""Arguments of a launch: check the values of the caller, and convert them to those of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..diag import Diagnostic, DiagnosticError, Span
from ..ir.assumptions import assumptions_of
from ..ir.core import Value
from ..ir.types import MemRefType, PtrType, ScalarType, TileBufType, Type, ViewType
from ..isa.dtypes import DTYPES
from ..isa.scalars import fit
from .elements import ARRAY_DTYPES, Array
from .entry import SPMD, Launchable
from .memory import WINDOWS_BASE, Buffer, DealtPointer, GlobalMemory, Pointer, View
from .ranks import RankContext, Window, World


class Windows:
    """The windows of all ranks in the memory of a launch. `base` is the address that kernels see for the
    windows of rank 0.
    """

    def __init__(self, world: World, gm: GlobalMemory, base: int = WINDOWS_BASE) -> None:
        self.world = world
        self.base = base
        self._buffers: dict[tuple[Window, int], Buffer] = {}
        for n, window in enumerate(world.windows):
            for rank in range(world.ranks):
                at = rank * world.stride + window.offset
                made = gm.add_window(f"window {n} of rank {rank}", window[rank], at, rank)
                self._buffers[window, rank] = made

    def named(self, window: Window, rank: int, name: str) -> Buffer:
        """Return the window of a rank, named after its argument."""
        found = self._buffers[window, rank]
        if found.name.startswith("window"):
            found.name = name
        return found


class Binding:
    """Arguments of a launch as values of the program; with several ranks, those of one rank."""

    def __init__(
        self, kernel: Launchable, gm: GlobalMemory, windows: Windows | None = None, rank: int = 0
    ) -> None:
        self.kernel = kernel
        self.blocks: int | None = None
        self.gm = gm
        self.rank = rank
        self._windows = windows
        #: Values by function.
        self.values: dict[str, list[Any]] = {}
        self._copies: list[tuple[Array, Array]] = []

    def bind(self, args: Sequence[object]) -> list[Diagnostic]:
        problems: list[Diagnostic] = []
        params = self.kernel.args
        given = list(args)
        spare = [p for p in params if p.name in SPMD]
        if len(given) == len(params) - len(spare) and spare:
            params = [p for p in params if p not in spare]
        if len(given) != len(params):
            shown = ", ".join(f"%{p.name}: {p.type}" for p in params)
            return [self._problem(
                "PTO-E2011",
                f"expected {len(params)} arguments for '@{self.kernel.name}', got {len(given)}", None,
                expected=f"({shown})", got=f"{len(given)}", help="give one value per argument, in this order",
            )]  # fmt: skip
        bound: dict[Value, object] = {}  # names may be missing
        for param, value in zip(params, given, strict=True):
            made = self._value(param, value)
            if isinstance(made, Diagnostic):
                problems.append(made)
            else:
                bound[param] = made
        if problems:
            return problems
        self._spread([bound.get(p, p.name) for p in self.kernel.args])
        return self._assumed({p.name: value for p, value in bound.items()})

    def _assumed(self, values: Mapping[str, object]) -> list[Diagnostic]:
        """Check the assumptions of the program about its parameters."""
        given = assumptions_of(self.kernel.functions)
        if not given:
            return []
        numbers: dict[str, int] = {}
        for name, value in values.items():
            if isinstance(value, View):
                numbers.update((f"{name}.shape[{n}]", d) for n, d in enumerate(value.dims))
            elif isinstance(value, Pointer):
                left = value.buffer.data.size - value.offset
                numbers[f"{name}.size"] = left * 8 // DTYPES[value.dtype].bits
            elif isinstance(value, int):
                numbers[name] = value
        if self.blocks is not None:
            numbers["blocks"] = self.blocks
        return [
            self._problem(
                "PTO-E2019", f"'@{self.kernel.name}' assumes {one.text}", None,
                expected=one.text, got=", ".join(f"{n} = {numbers[n]}" for n in one.names),
                help="give other values, or take the condition out of pto.assume",
            )
            for one in given if numbers.keys() >= {*one.names} and not one.holds(numbers)
        ]  # fmt: skip

    def _spread(self, first: list[Any]) -> None:
        """Spread the values of the first function to all functions. Values that the launch fills in are
        matched by name, the others by position.
        """
        named = [(p.name, value) for p, value in zip(self.kernel.args, first, strict=True)]
        of = {name: value for name, value in named if name in SPMD}
        given = [value for name, value in named if name not in SPMD]
        for function in self.kernel.functions:
            mine = function.regions[0].blocks[0].args
            rest = iter(given)
            values: list[Any] = [
                of.get(p.name, p.name) if p.name in SPMD else next(rest, p.name) for p in mine
            ]
            for at in self.kernel.dealt:
                held = values[at]
                values[at] = DealtPointer(held.buffer, held.offset, held.dtype, held.name)
            self.values[str(function.attr("sym_name"))] = values

    def _problem(self, code: str, message: str, param: Value | None, **facts: str) -> Diagnostic:
        span: Span | None = None
        function = self.kernel.functions[0]
        if function.loc is not None:
            named = function.loc.find(f"%{param.name}") if param is not None else None
            span = named or function.loc.head
        return Diagnostic(code, self._with_rank(message), span, **facts)

    def _with_rank(self, message: str) -> str:
        """Add the rank to a message if there are several ranks."""
        return f"{message} (rank {self.rank})" if self._windows is not None else message

    def _value(self, param: Value, value: Any) -> Diagnostic | int | float | Pointer | View:
        type = param.type
        if isinstance(type, ScalarType):
            return self._scalar(param, type, value)
        if isinstance(type, PtrType) and type.space == "gm":
            array = self._array(param, type, value)
            if isinstance(array, Diagnostic):
                return array
            return Pointer(self._mapped(param, value, array), 0, type.elem.counted, param.name)
        if isinstance(type, ViewType) or (isinstance(type, MemRefType) and not type.local):
            array = self._array(param, type, value)
            if isinstance(array, Diagnostic):
                return array
            problem = self._dims(param, type, array)
            if problem is not None:
                return problem
            strides = [1]
            for d in reversed(array.shape[1:]):
                strides.insert(0, strides[0] * d)
            buffer = self._mapped(param, value, array)
            return View(
                buffer, 0, array.shape, tuple(strides[: array.ndim]), str(type.dtype), None, param.name
            )
        what = "an on-chip tile" if isinstance(type, TileBufType) else f"a value of type {type}"
        return self._problem(
            "PTO-E2014",
            f"cannot pass {what} for argument %{param.name}: a launch passes arrays and scalars only",
            param,
            help="run the function that calls this one, or let the program load the tile itself",
        )

    def _mapped(self, param: Value, value: object, array: Array) -> Buffer:
        if self._windows is None:
            return self.gm.add(f"%{param.name}", array)
        name = f"%{param.name} of rank {self.rank}"
        if isinstance(value, Window):
            return self._windows.named(value, self.rank, name)
        return self.gm.add(name, array)

    def _of_ranks(self, value: object) -> Any:
        """Return the value of a rank for a window, or for the structure of its communicator."""
        if self._windows is not None and isinstance(value, Window) and value.world is self._windows.world:
            return value[self.rank]
        if self._windows is not None and isinstance(value, RankContext):
            return self._windows.world.context_of(self.rank, self._windows.base)
        return value

    def _scalar(self, param: Value, type: ScalarType, value: Any) -> Diagnostic | int | float:
        if hasattr(value, "item") and getattr(value, "size", 1) == 1:
            value = value.item()
        if isinstance(value, bool):
            value = int(value)
        wants = "a number" if type.is_float else "an integer"
        if not isinstance(value, int | float) or (isinstance(value, float) and not type.is_float):
            return self._problem(
                "PTO-E2013", f"expected {wants} for argument %{param.name}", param, expected=str(type),
                got=_describe(value),
            )  # fmt: skip
        if type.is_float:
            fits = abs(value) <= sys.float_info.max or isinstance(value, float)
        else:  # unsigned values fit, too
            fits = fit(str(type))(value) == value or 0 <= value < 1 << (type.bits or 64)
        if not fits:
            return self._problem(
                "PTO-E2013", f"argument %{param.name} does not fit {type}", param, expected=str(type),
                got=_describe(value),
            )  # fmt: skip
        return fit(str(type))(value)

    def _array(self, param: Value, type: Type, value: Any) -> Array | Diagnostic:
        dtype = str(type.dtype)  # type: ignore[attr-defined]
        what = f"an array of {dtype}" if dtype else "an array"
        value = self._of_ranks(value)
        if not isinstance(value, np.ndarray):
            if not (hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")):
                return self._problem(
                    "PTO-E2012",
                    f"expected {what} for argument %{param.name}",
                    param,
                    expected=what,
                    got=_describe(value),
                )
            value = np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
        array: Array = np.asarray(value)  # not np.matrix, which cannot become flat
        if dtype and not fits(array.dtype, dtype):
            right = ARRAY_DTYPES.get(dtype)
            hint = (
                f"convert it: array.astype({right.name!r})"
                if right is not None
                else f"give its bytes as uint8 ({dtype} has no NumPy type)"
            )
            return self._problem(
                "PTO-E2012", f"expected an array of {dtype} for argument %{param.name}", param,
                expected=dtype, got=str(array.dtype), help=hint,
            )  # fmt: skip
        if array.flags.c_contiguous:
            return array
        for other, dense in self._copies:  # given twice: both arguments are the same memory
            if _same_memory(array, other):
                return dense
        dense = np.ascontiguousarray(array)
        dense.flags.writeable = array.flags.writeable
        self._copies.append((array, dense))
        return dense

    def _dims(self, param: Value, type: ViewType | MemRefType, array: Array) -> Diagnostic | None:
        wanted = type.dims
        if len(wanted) == array.ndim and all(
            w is None or w == n for w, n in zip(wanted, array.shape, strict=True)
        ):
            return None
        shown = "x".join("?" if d is None else str(d) for d in wanted)
        return self._problem(
            "PTO-E2015", f"argument %{param.name} has the wrong shape", param, expected=shown,
            got="x".join(str(n) for n in array.shape) or "a scalar",
        )  # fmt: skip

    def write_back(self) -> None:
        """Copy results into the arrays that could not be used in place."""
        for original, dense in self._copies:
            if original.flags.writeable:
                original[...] = dense


def bound(
    args: Sequence[Any], gm: GlobalMemory, world: World | None, base: int,
    make: Callable[[GlobalMemory, Windows | None, int], Binding], blocks: int,
) -> list[Binding]:  # fmt: skip
    """Return the arguments of every rank, or of a launch without ranks; raise if some are wrong."""
    if world is None:
        bindings, given = [make(gm, None, 0)], [args]
    else:
        windows = Windows(world, gm, base)
        bindings, given = [make(gm, windows, rank) for rank in range(world.ranks)], list(args)
    for binding in bindings:
        binding.blocks = blocks
    problems = [
        problem for binding, own in zip(bindings, given, strict=True) for problem in binding.bind(own)
    ]
    if problems:
        raise DiagnosticError(problems)
    return bindings


def _same_memory(a: Array, b: Array) -> bool:
    return (a.__array_interface__["data"][0], a.shape, a.strides, a.dtype) == (
        b.__array_interface__["data"][0], b.shape, b.strides, b.dtype
    )  # fmt: skip


def fits(have: np.dtype[np.generic], dtype: str) -> bool:
    """Return True if an array of type `have` can hold elements of a type: the same type, or its raw bits."""
    info = DTYPES[dtype]
    right = ARRAY_DTYPES.get(dtype)
    if right is not None and have == right:
        return True
    if info.bits < 8:
        return have in (np.uint8, np.int8)
    if have.kind in "iu" and have.itemsize * 8 == info.bits:
        return info.is_int or info.bits == 8 or have.kind == "u"
    return have == np.bool_ and info.is_int and info.bits == 8


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {'x'.join(map(str, value.shape))}"
    return f"{type(value).__name__} {value!r}"[:60]
