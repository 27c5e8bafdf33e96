"""`golden.py` of a folder: the cases, the arguments of a case, and the expected results.

Tensors are NumPy arrays or torch tensors. torch is not required, and only imported if the file does so. If
the file uses torch, every tensor that `compute_golden` gets is a torch tensor, as in the runner of simpler.
Element types that NumPy lacks are those of ml_dtypes.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import knobs
from ..diag import Diagnostic, DiagnosticError, did_you_mean
from ..isa.record import Record
from . import chip
from .tensors import dtype_number
from .userfile import UserFile

Array = np.ndarray[Any, Any]

DEFAULT_TOLERANCE = 1e-5


class GoldenTensor(Record):
    """A tensor of a case: the object for the golden functions, and its memory as an array."""

    name: str
    value: Any
    array: Array
    output: bool = False


class Arguments(Record):
    """The arguments of a run. `slots` are its 64-bit words in order; the name of a tensor stands for its
    address. `scalars` are the numbers with names."""

    tensors: tuple[GoldenTensor, ...]
    scalars: Mapping[str, Any]
    slots: tuple[str | int, ...]

    @property
    def outputs(self) -> list[GoldenTensor]:
        return [t for t in self.tensors if t.output]

    def words(self, addresses: Mapping[str, int]) -> list[int]:
        return [addresses[s] if isinstance(s, str) else s for s in self.slots]

    def chip_words(self, addresses: Mapping[str, int]) -> list[int]:
        """Return the words for an orchestration that takes ChipTaskArgs: the tensors, then the numbers."""
        arrays = {t.name: t.array for t in self.tensors}
        placed = [(addresses[s], arrays[s].nbytes, dtype_number(arrays[s].dtype), arrays[s].shape or (1,))
                  for s in self.slots if isinstance(s, str)]  # fmt: skip
        return chip.words(placed, (s for s in self.slots if not isinstance(s, str)))


class Golden:
    """A `golden.py`, loaded and checked."""

    def __init__(self, path: str) -> None:
        self.file = UserFile(path)
        #: Warnings about the choice of a case.
        self.notes: list[Diagnostic] = []
        self.rtol = float(self._number("RTOL"))
        self.atol = float(self._number("ATOL"))
        self.cases = self._cases()
        self._functions()
        self._outputs()

    # -- cases ---------------------------------------------------------------------------------------------

    def choose(self, case: str | None = None, every: bool = False) -> list[dict[str, Any]]:
        """Return the parameters of the cases to run: all, the named one, the one of PA_CASE, the default, or
        the first."""
        if every:
            return [self._params(name) for name in self.cases]
        wanted = knobs.get("PA_CASE") if case is None and self.file.get("ALL_CASES") else ""
        first = next(iter(self.cases))
        name = case or wanted or self.file.get("DEFAULT_CASE", first)
        if not (case or wanted) and isinstance(name, str) and name not in self.cases:
            self.notes = [
                Diagnostic(
                    "PTO-E2604", f"unknown case '{name}' (DEFAULT_CASE): the first case runs, '{first}'",
                    self.file.span("DEFAULT_CASE"), severity="warning", help=did_you_mean(name, self.cases),
                )
            ]  # fmt: skip
            name = first
        if not isinstance(name, str) or name not in self.cases:
            if case or wanted:
                which, place = "--case" if case else "PA_CASE", None
            else:
                which, place = "DEFAULT_CASE", self.file.span("DEFAULT_CASE")
            self._refuse(
                f"unknown case '{name}' ({which}); available: {', '.join(self.cases)}", place,
                did_you_mean(str(name), self.cases), "PTO-E2604",
            )  # fmt: skip
        return [self._params(name)]

    def _params(self, name: str) -> dict[str, Any]:
        params = {"name": name, **self.cases[name]}
        lengths = knobs.get("PA_SEQ_LEN")
        if lengths and ("context_len" in params or "context_lens_list" in params):
            try:
                values = [int(text) for text in lengths.split(",")]
            except ValueError:
                values = []
            if not values or min(values) < 1:
                self._refuse(f"expected positive numbers separated by commas for PA_SEQ_LEN, got '{lengths}'")
            params["context_lens_list"] = values
            params["context_len"] = max(values)
        return params

    def warnings(self, params: Mapping[str, Any]) -> list[Diagnostic]:
        """Return warnings about the choice of the case, and a warning if PA_SEQ_LEN has more numbers than the
        case has sequences.
        """
        lengths = knobs.get("PA_SEQ_LEN")
        used = params.get("context_lens_list", ())
        batch = params.get("batch")
        if not lengths or (used and (not isinstance(batch, int) or len(used) <= batch)):
            return self.notes
        unused = lengths.split(",")[batch:] if used else lengths.split(",")
        are = "are" if len(unused) > 1 else "is"
        what = f"case {params['name']}: {', '.join(unused)} of PA_SEQ_LEN {are} not used"
        why = f"the case has {batch} sequence{'s' * (batch != 1)}" if used else "the case has no lengths"
        help = "leave it out, or choose another case"
        return [*self.notes, Diagnostic("PTO-E0003", f"{what}: {why}", severity="warning", help=help)]

    def _cases(self) -> dict[str, dict[str, Any]]:
        cases = self.file.get("ALL_CASES", {"Default": {}})
        if not isinstance(cases, Mapping) or not cases:
            self._refuse(
                "expected a dict of cases for ALL_CASES: name -> parameters", self.file.span("ALL_CASES")
            )
        for name, params in cases.items():
            if not isinstance(name, str) or not isinstance(params, Mapping):
                self._refuse(
                    f"case {name!r} of ALL_CASES: expected a name and a dict of parameters",
                    self.file.span("ALL_CASES", name),
                )
        return {name: dict(params) for name, params in cases.items()}

    # -- arguments -----------------------------------------------------------------------------------------

    def arguments(self, params: Mapping[str, Any]) -> Arguments:
        """Return the arguments of a case, made by `generate_inputs`."""
        given = self.file.call(self.file.get("generate_inputs"), "generate_inputs of", dict(params))
        if isinstance(given, list):
            made = self._from_list(given)
        elif isinstance(given, Mapping):
            made = self._from_dict(given)
        else:
            self._inputs(f"returns {_kind(given)}, expected a list of (name, value) pairs")
        if not made.outputs:
            self._refuse(
                "missing output tensors",
                self.file.span("__outputs__"),
                "define __outputs__ = ['tensor_name'], or call outputs 'out' or 'out_' and more",
            )
        return made

    def _from_list(self, given: Sequence[Any]) -> Arguments:
        tensors: list[GoldenTensor] = []
        scalars: dict[str, Any] = {}
        slots: list[str | int] = []
        for at, item in enumerate(given):
            if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
                self._inputs(f"element {at} is {_kind(item)}, expected a pair (name, value)")
            name, value = item
            if name in scalars or any(t.name == name for t in tensors):
                self._inputs(f"gives two values the name '{name}'")
            if isinstance(value, ctypes._SimpleCData):
                scalars[name] = value.value
                slots.append(self._word(name, value))
            else:
                tensors.append(self._tensor(name, value))
                slots.append(name)
        self._known_outputs([t.name for t in tensors])
        return Arguments(tuple(tensors), scalars, tuple(slots))

    def _from_dict(self, given: Mapping[str, Any]) -> Arguments:
        """Read the older form: all addresses, all sizes in bytes, the number of elements of the first
        tensor."""
        order = self.file.get("TENSOR_ORDER") or list(given)
        if not isinstance(order, list | tuple):
            self._refuse("expected a list of names for TENSOR_ORDER", self.file.span("TENSOR_ORDER"))
        for name in order:
            if name not in given:
                self._refuse(
                    f"tensor '{name}' of TENSOR_ORDER is not in the result of generate_inputs",
                    self.file.span("TENSOR_ORDER"),
                    did_you_mean(str(name), given) or f"it has {', '.join(map(str, given))}",
                )
        tensors = {name: self._tensor(name, value) for name, value in given.items()}
        if not tensors:
            self._inputs("returns an empty dict")
        sizes = [tensors[name].array.nbytes for name in order]
        slots = [*order, *sizes, tensors[order[0]].array.size]
        self._known_outputs(list(tensors))
        return Arguments(tuple(tensors.values()), {}, tuple(slots))

    def _tensor(self, name: str, value: Any) -> GoldenTensor:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous()
            return GoldenTensor(name, value, as_array(value), self._is_output(name))
        if not isinstance(value, np.ndarray):
            help = (
                "give tensors as NumPy arrays or torch tensors, scalars as ctypes values: ctypes.c_int64(5)"
            )
            self._inputs(f"gives '{name}' as {_kind(value)}", help)
        if value.dtype.hasobject:
            self._inputs(f"gives '{name}' as an array of Python objects")
        if not _is_numeric(value.dtype):
            self._inputs(f"gives '{name}' as an array of {value.dtype}, expected numbers")
        array = np.ascontiguousarray(value).reshape(value.shape)
        seen = as_torch(array) if torch is not None and self._uses(torch) else array
        return GoldenTensor(name, seen, array, self._is_output(name))

    def _uses(self, torch: Any) -> bool:
        return any(value is torch for value in vars(self.file.module).values())

    def _word(self, name: str, value: Any) -> int:
        if isinstance(value, ctypes.c_float | ctypes.c_double | ctypes.c_longdouble):
            wide = ctypes.c_uint64 if ctypes.sizeof(value) >= 8 else ctypes.c_uint32
            same = ctypes.c_double(value.value) if ctypes.sizeof(value) > 8 else value
            return wide.from_buffer_copy(same).value
        try:
            return int(value.value) & (1 << 64) - 1
        except (TypeError, ValueError):
            self._inputs(f"gives '{name}' as {_kind(value)}, expected a number")

    def _is_output(self, name: str) -> bool:
        named = self.file.get("__outputs__")
        return name in named if named else name == "out" or name.startswith("out_")

    def _known_outputs(self, names: Sequence[str]) -> None:
        for name in self.file.get("__outputs__") or ():
            if name not in names:
                self._refuse(
                    f"unknown tensor '{name}' in __outputs__: generate_inputs does not return it",
                    self.file.span("__outputs__"),
                    did_you_mean(str(name), names) or f"the tensors are {', '.join(names)}",
                )

    # -- results -------------------------------------------------------------------------------------------

    def expected(self, arguments: Arguments, params: Mapping[str, Any]) -> dict[str, Array]:
        """Return the expected outputs. `compute_golden` gets everything by name, with copies of outputs."""
        seen = {t.name: _copy(t.value) if t.output else t.value for t in arguments.tensors}
        values = {**seen, **arguments.scalars}
        self.file.call(self.file.get("compute_golden"), "compute_golden of", values, dict(params))
        return {t.name: self._expected(t.name, values) for t in arguments.outputs}

    def _expected(self, name: str, values: Mapping[str, Any]) -> Array:
        if name not in values:
            self._refuse(f"compute_golden removed '{name}'", self.file.span("compute_golden"))
        try:
            array = as_array(values[name])
        except ValueError:  # nested lists of different lengths
            array = np.array(None)
        if not _is_numeric(array.dtype):
            self._refuse(
                f"compute_golden sets '{name}' to {_kind(values[name])}, expected an array of numbers",
                self.file.span("compute_golden"), "write into it: tensors[name][:] = ...",
            )  # fmt: skip
        return array

    # -- checks --------------------------------------------------------------------------------------------

    def _functions(self) -> None:
        for name, takes in (("generate_inputs", "params"), ("compute_golden", "tensors, params")):
            if not callable(self.file.get(name)):
                self._refuse(f"missing {name}({takes}) in '{self.file.source.name}'", self.file.span(name))

    def _outputs(self) -> None:
        named = self.file.get("__outputs__")
        if named is not None and not isinstance(named, list | tuple | set | frozenset):
            message = f"expected a list of names for __outputs__, got {_kind(named)}"
            self._refuse(message, self.file.span("__outputs__"), "__outputs__ = ['tensor_name']")

    def _number(self, name: str) -> float:
        value = self.file.get(name, DEFAULT_TOLERANCE)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            self._refuse(f"expected a finite non-negative number for {name}, got {value!r}",
                         self.file.span(name))  # fmt: skip
        return value

    def _inputs(self, message: str, help: str = "") -> NoReturn:
        self._refuse(f"generate_inputs {message}", self.file.span("generate_inputs"), help)

    def _refuse(self, message: str, place: Any = None, help: str = "", code: str = "PTO-E2603") -> NoReturn:
        raise DiagnosticError([Diagnostic(code, message, place, help=help)])


def as_array(value: Any) -> Array:
    """Return the memory of a tensor as a NumPy array; element types that NumPy lacks are those of
    ml_dtypes."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach().cpu().contiguous()
    try:
        return value.numpy()
    except TypeError:  # bfloat16 and smaller
        import ml_dtypes

        bits = {1: torch.uint8, 2: torch.int16}[value.element_size()]
        return value.view(bits).numpy().view(getattr(ml_dtypes, str(value.dtype).removeprefix("torch.")))


def as_torch(array: Array) -> Any:
    """Return a torch tensor that shares the memory of an array."""
    import torch  # pyright: ignore[reportMissingImports]

    try:
        return torch.from_numpy(array)
    except TypeError:
        bits = {1: np.uint8, 2: np.int16}[array.dtype.itemsize]
        return torch.from_numpy(array.view(bits)).view(getattr(torch, array.dtype.name))


def _is_numeric(dtype: np.dtype[Any]) -> bool:
    """Return True for numbers of NumPy, or of ml_dtypes, whose types are void in NumPy."""
    return dtype.kind in "biufc" or (dtype.kind == "V" and dtype.type is not np.void)


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value.copy()


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
