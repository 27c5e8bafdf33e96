"""`pto.kernel`: a function of a program as something to call with arrays.

k = pto.kernel(pto.parse("k.pto"), "vec_add")
k(a, b, out, blocks=24)                      # NumPy arrays; raises pto.DiagnosticError
k.run(a, b, out, sanitize="all").diagnostics # what sanitizers found, without raising
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np

from ..diag import Diagnostic, DiagnosticError, Span, did_you_mean, has_errors
from ..ir.core import Module, Operation, Value
from ..ir.types import MemRefType, PtrType, ScalarType, TileBufType, Type, ViewType
from ..isa.dtypes import DTYPES
from ..isa.profiles import Profile
from ..verify import module_profile, verify
from ..verify.structure import entries
from .elements import ARRAY_DTYPES, Array
from .memory import GlobalMemory, Pointer, View
from .reference.control import Unsupported
from .reference.core import RunError
from .reference.grid import Grid, Watch
from .reference.lower import Program
from .reference.scalars import fit

ENGINES = ("reference",)

#: Arguments that the launch itself fills in where the caller leaves them out.
_SPMD = ("__pypto_spmd_block_idx", "__pypto_spmd_block_num", "__pypto_spmd_subblock_idx")


class Run:
    """What a launch left: its diagnostics (sanitizer reports are among them) and pictures."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.checked: frozenset[str] = frozenset()  # sanitizers that watched
        self.shadow: Any = None
        self.memory_map: Any = None

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)

    def __repr__(self) -> str:
        found = f"{len(self.diagnostics)} diagnostics" if self.diagnostics else "ok"
        return f"<Run {found}{', checked for ' + ', '.join(sorted(self.checked)) if self.checked else ''}>"


class Kernel:
    """A launchable function: one that every core runs, or a pair `X_aic`, `X_aiv`."""

    def __init__(self, module: Module, entry: str | None, target: str | Profile | None, check: bool) -> None:
        self.module = module
        self.profile = module_profile(module, target)
        self.checked = check
        problems = verify(module, self.profile, structure_only=not check)
        if has_errors(problems):
            raise DiagnosticError([p for p in problems if p.severity == "error"])
        self.name, self.functions = _entry(module, entry)
        self.roles = _roles(module, self.functions)
        #: Vector cores of a mixed kernel, unless a launch says otherwise.
        self.subblocks = 1 if _one_lane(module) else 2
        #: Whether its pipes are left for the tools to synchronise: they then run in program order.
        self.in_order = not any(_orders_pipes(op) for op in module.walk())
        self.automatic = self.in_order and not any(_placed(op) for op in module.walk())
        self._programs: dict[bool, Program] = {}
        self.program(False)

    def __repr__(self) -> str:
        return f"<Kernel @{self.name}({', '.join(f'%{a.name}: {a.type}' for a in self.args)})>"

    @property
    def args(self) -> list[Value]:
        """The arguments a caller gives, in order."""
        return list(self.functions[0].regions[0].blocks[0].args)

    def program(self, track: bool) -> Program:
        """The lowered functions; raises where one holds what cannot be executed."""
        found = self._programs.get(track)
        if found is None:
            found = Program(self.module, self.profile, track)
            try:
                for function in self.functions:
                    found.code(str(function.attr("sym_name")))
            except Unsupported as e:
                raise DiagnosticError(e.diagnostics) from None
            self._programs[track] = found
        return found

    def __call__(self, *args: Any, **options: Any) -> Run:
        """Run, and raise `DiagnosticError` where anything is wrong; see `run`."""
        result = self.run(*args, **options)
        if not result.ok:
            raise DiagnosticError([d for d in result.diagnostics if d.severity == "error"])
        return result

    def run(
        self,
        *args: Any,
        blocks: int = 1,
        subblocks: int | None = None,
        sanitize: str | Sequence[str] = (),
        schedule: int | None = None,
        shadow: str | None = None,
        memory_map: bool = False,
        out: TextIO | None = None,
        progress: Callable[[int, int, int], None] | None = None,
        max_steps: int | None = None,
    ) -> Run:
        """One launch on `blocks` blocks.

        Arrays are used in place where they are contiguous. `subblocks` is the number of vector cores of a
        mixed kernel (default 2; 1 where its FIFOs split nothing and it does not ask which one it is on).
        `sanitize` names checks ("race", "undef", "oob", "sync", "all"); `schedule` seeds an adversarial order
        of the pipes; `shadow="f64"` runs a float64 shadow beside; `out` receives what the program prints
        (default: standard output); `max_steps` ends a run that takes more steps; `progress` is called now and
        then with the blocks begun, all blocks and the steps done.
        """
        from .sanitize import observe, parse_names

        _check_options(blocks, subblocks, schedule, max_steps, memory_map)
        result = Run()
        names = parse_names(sanitize)
        if self.automatic and ("race" in names or schedule is not None):
            result.diagnostics.append(_unsynchronised(self))
            schedule = None
        result.checked = names
        gm = GlobalMemory()
        binding = _Binding(self, gm)
        problems = binding.bind(args)
        if problems:
            raise DiagnosticError(problems)
        watch = observe(self.profile, names, shadow, memory_map, result, self.automatic)
        program = self.program(watch is not None and watch.tracks)
        roles = [
            (kind, sub, program.code(str(f.attr("sym_name"))))
            for kind, sub, f in self.roles
            if kind != "vector" or sub < (subblocks or self.subblocks) or len(self.roles) == 1
        ]
        order = None
        if schedule is not None:
            from .sanitize.schedule import Schedule

            order = Schedule(schedule)
        grid = Grid(
            program,
            self.profile,
            gm,
            roles,
            binding.values,
            blocks,
            out or sys.stdout,
            watch or Watch(),
            order,
            progress,
            max_steps,
            self.in_order and order is None,
        )
        try:
            grid.run()
        except RunError as e:
            result.diagnostics.append(e.diagnostic)
        except Exception as e:
            if self.checked:
                raise  # a bug of ours
            result.diagnostics.append(grid.unexpected(e))
        finally:
            binding.write_back()
        if watch is not None:
            watch.finish(grid)
        return result


def _check_options(blocks: Any, subblocks: Any, schedule: Any, max_steps: Any, memory_map: Any) -> None:
    """Options that a caller may get wrong, as errors that name them."""
    for name, value, least in (("blocks", blocks, 1), ("max_steps", max_steps, 1), ("schedule", schedule, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"{name} is a whole number from {least} on, got {value!r}")
    if subblocks not in (None, 1, 2):
        raise ValueError(f"subblocks is 1 or 2, got {subblocks!r}")
    if not isinstance(memory_map, bool):
        raise ValueError(
            f"memory_map is True or False, got {memory_map!r}; the result's memory_map can be drawn"
        )


def kernel(
    module: Module, entry: str | None = None, engine: str = "reference", target: str | Profile | None = None,
    check: bool = True,
) -> Kernel:  # fmt: skip
    """A kernel of a module; `entry` may be left out where there is only one, `check=False` skips legality."""
    if not isinstance(module, Module):
        raise TypeError(f"kernel takes a module, got {type(module).__name__}: call pto.parse first")
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; one of {', '.join(ENGINES)}")
    return Kernel(module, entry, target, check)


# -- which functions run, and on which cores ---------------------------------------------------------------


def _entry(module: Module, entry: str | None) -> tuple[str, list[Operation]]:
    functions = {str(f.attr("sym_name")): f for f in module.functions if f.regions and f.regions[0].blocks}
    pairs = [n.removesuffix("_aic") for n in functions if n.endswith("_aic") and f"{n[:-4]}_aiv" in functions]
    if entry is not None:
        entry = entry.removeprefix("@")
        if entry in functions:
            return entry, [functions[entry]]
        if entry in pairs:
            return entry, [functions[f"{entry}_aic"], functions[f"{entry}_aiv"]]
        known = [*pairs, *functions]
        raise DiagnosticError([
            Diagnostic("PTO-E2001", f"no function '@{entry}' to run", help=did_you_mean(entry, known)
                       or f"the program has {', '.join('@' + n for n in known) or 'no functions'}")
        ])  # fmt: skip
    marked = entries(functions)
    if len(marked) == 1:
        return str(marked[0].attr("sym_name")), marked
    if len(pairs) == 1 and len(functions) == 2:
        return pairs[0], [functions[f"{pairs[0]}_aic"], functions[f"{pairs[0]}_aiv"]]
    known = ", ".join("@" + n for n in functions)
    what = "several functions could be run" if functions else "the program has no function to run"
    raise DiagnosticError(
        [Diagnostic("PTO-E2001", what, help=f"name one with --entry: {known}" if known else "")]
    )


def _roles(module: Module, functions: list[Operation]) -> list[tuple[str, int, Operation]]:
    """(kind of core, sub-block, function) for every core of a block."""
    if len(functions) == 2:
        aic, aiv = functions
        return [("cube", 0, aic), ("vector", 0, aiv), ("vector", 1, aiv)]
    function = functions[0]
    kinds = _kinds(module, function)
    if kinds == {"cube", "vector"}:
        return [("cube", 0, function), ("vector", 0, function), ("vector", 1, function)]
    return [(kinds.pop() if len(kinds) == 1 else "mix", 0, function)]


def _kinds(module: Module, function: Operation) -> set[str]:
    """Kinds of core a function names: its own, its sections', those of what it calls."""
    functions = {str(f.attr("sym_name")): f for f in module.functions}
    found: set[str] = set()
    waiting = [function]
    while waiting:
        at = waiting.pop()
        own = at.attr("pto.kernel_kind")
        if own is not None:
            found.add(str(own))
            continue
        for op in at.walk():
            if op.name in ("pto.section.cube", "pto.section.vector"):
                found.add(op.name.rpartition(".")[2])
            elif op.name == "func.call":
                callee = functions.pop(str(op.attr("callee")), None)
                if callee is not None:
                    waiting.append(callee)
    return found


def _one_lane(module: Module) -> bool:
    """Whether a mixed kernel is written for one vector core: its FIFOs split nothing, and it never asks which
    of two it runs on."""
    splits = [
        op.attr("split") or 0
        for op in module.walk()
        if op.row is not None and op.row.name.startswith(("tpush", "tpop")) and "split" in op.row.attr_index
    ]
    asks = any(op.name in ("pto.get_subblock_idx", "pto.get_subblock_num") for op in module.walk())
    takes = any(
        a.name == _SPMD[2] for f in module.functions for r in f.regions for b in r.blocks[:1] for a in b.args
    )
    return bool(splits) and not any(splits) and not asks and not takes


#: Synchronisation between cores, which a program also carries that leaves its pipes to the tools.
_BETWEEN_CORES = (
    "set_cross_core", "wait_flag_dev", "set_intra_block", "wait_intra_core", "sync.set", "sync.wait",
)  # fmt: skip


def _orders_pipes(op: Operation) -> bool:
    return op.row is not None and op.row.family == "pipeline-sync" and op.row.name not in _BETWEEN_CORES


def _placed(op: Operation) -> bool:
    return op.name == "pto.alloc_tile" and op.get("addr") is not None


def _unsynchronised(kernel: Kernel) -> Diagnostic:
    function = kernel.functions[0]
    end = kernel.module.source.text.find("\n", function.start, function.end)
    span = Span(kernel.module.source, function.start, end) if end >= 0 else None
    return Diagnostic(
        "PTO-E2206",
        f"'@{kernel.name}' has neither synchronisation nor addresses: its pipes run in program order and "
        "their races are not checked",
        span,
        severity="warning",
        help="check the program that has its synchronisation inserted",
    )


# -- arguments ---------------------------------------------------------------------------------------------


class _Binding:
    """Arguments of a launch as the values the program sees."""

    def __init__(self, kernel: Kernel, gm: GlobalMemory) -> None:
        self.kernel = kernel
        self.gm = gm
        #: Values by function.
        self.values: dict[str, list[Any]] = {}
        self._copies: list[tuple[Array, Array]] = []

    def bind(self, args: Sequence[Any]) -> list[Diagnostic]:
        problems: list[Diagnostic] = []
        params = self.kernel.args
        given = list(args)
        spare = [p for p in params if p.name in _SPMD]
        if len(given) == len(params) - len(spare) and spare:
            params = [p for p in params if p not in spare]
        if len(given) != len(params):
            shown = ", ".join(f"%{p.name}: {p.type}" for p in params)
            return [self._problem(
                "PTO-E2011", f"'@{self.kernel.name}' takes {len(params)} arguments, got {len(given)}", None,
                expected=f"({shown})", got=f"{len(given)}", help="give one value per argument, in this order",
            )]  # fmt: skip
        bound: dict[str, Any] = {}
        for param, value in zip(params, given, strict=True):
            made = self._value(param, value)
            if isinstance(made, Diagnostic):
                problems.append(made)
            else:
                bound[param.name] = made
        if problems:
            return problems
        first = [bound.get(p.name, p.name) for p in self.kernel.args]
        for function in self.kernel.functions:
            mine = function.regions[0].blocks[0].args
            values = [*first, *[p.name for p in mine[len(first) :]]][: len(mine)]
            self.values[str(function.attr("sym_name"))] = values
        return []

    def _problem(self, code: str, message: str, param: Value | None, **facts: str) -> Diagnostic:
        span: Span | None = None
        function = self.kernel.functions[0]
        source = self.kernel.module.source
        if function.end:
            end = source.text.find("\n", function.start, function.end)
            span = Span(source, function.start, end if end >= 0 else function.end)
            if param is not None:
                at = source.text.find(f"%{param.name}", function.start, function.end)
                if at >= 0:
                    span = Span(source, at, at + len(param.name) + 1)
        return Diagnostic(code, message, span, **facts)

    def _value(self, param: Value, value: Any) -> Any:
        type = param.type
        if isinstance(type, ScalarType):
            return self._scalar(param, type, value)
        if isinstance(type, PtrType) and type.space == "gm":
            array = self._array(param, type, value)
            if isinstance(array, Diagnostic):
                return array
            return Pointer(self.gm.add(f"%{param.name}", array), 0, str(type.dtype), param.name)
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
            buffer = self.gm.add(f"%{param.name}", array)
            return View(
                buffer, 0, array.shape, tuple(strides[: array.ndim]), str(type.dtype), None, param.name
            )
        what = "on-chip tile" if isinstance(type, TileBufType) else f"value of type {type}"
        return self._problem(
            "PTO-E2014",
            f"argument %{param.name} is an {what}: a launch can pass arrays and scalars only",
            param,
            help="run the function that calls this one, or let the program load the tile itself",
        )

    def _scalar(self, param: Value, type: ScalarType, value: Any) -> Any:
        if hasattr(value, "item") and getattr(value, "size", 1) == 1:
            value = value.item()
        if isinstance(value, bool):
            value = int(value)
        wants = "a number" if type.is_float else "an integer"
        if not isinstance(value, int | float) or (isinstance(value, float) and not type.is_float):
            return self._problem(
                "PTO-E2013", f"argument %{param.name} is {wants} of type {type}", param, expected=str(type),
                got=_describe(value),
            )  # fmt: skip
        if type.is_float:
            fits = abs(value) <= sys.float_info.max or isinstance(value, float)
        else:  # an unsigned reading is fine
            fits = fit(str(type))(value) == value or 0 <= value < 1 << (type.bits or 64)
        if not fits:
            return self._problem(
                "PTO-E2013", f"argument %{param.name} does not fit {type}", param, expected=str(type),
                got=_describe(value),
            )  # fmt: skip
        return fit(str(type))(value)

    def _array(self, param: Value, type: Type, value: Any) -> Array | Diagnostic:
        dtype = str(type.dtype)  # type: ignore[attr-defined]
        if not isinstance(value, np.ndarray):
            if not (hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")):
                return self._problem(
                    "PTO-E2012",
                    f"argument %{param.name} is an array of {dtype}",
                    param,
                    expected=f"an array of {dtype}",
                    got=_describe(value),
                )
            value = np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
        array: Array = np.asarray(value)  # no subclass: a matrix never becomes flat
        if not _fits(array.dtype, dtype):
            right = ARRAY_DTYPES.get(dtype)
            hint = (
                f"convert it: array.astype({right.name!r})"
                if right is not None
                else f"give its bytes as uint8 ({dtype} has no NumPy type)"
            )
            return self._problem(
                "PTO-E2012", f"argument %{param.name} holds {dtype}, the array holds {array.dtype}", param,
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


def _same_memory(a: Array, b: Array) -> bool:
    return (a.__array_interface__["data"][0], a.shape, a.strides, a.dtype) == (
        b.__array_interface__["data"][0], b.shape, b.strides, b.dtype
    )  # fmt: skip


def _fits(have: np.dtype[Any], dtype: str) -> bool:
    """Whether an array of `have` can stand for elements of a type: the same, or its raw bits."""
    info = DTYPES[dtype]
    right = ARRAY_DTYPES.get(dtype)
    if right is not None and have == right:
        return True
    if info.bits < 8:
        return have in (np.uint8, np.int8)
    if have.kind in "iu" and have.itemsize * 8 == info.bits:
        return info.is_int or info.bits == 8 or have.kind == "u"
    return have == np.bool_ and info.is_int and info.bits == 8


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {'x'.join(map(str, value.shape))}"
    return f"{type(value).__name__} {value!r}"[:60]
