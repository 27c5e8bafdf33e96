"""Arguments of calls: arrays and numbers, their types in the language, and their form as NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

from ...diag import Diagnostic, DiagnosticError
from ...isa.dtypes import DTYPES
from ..declare import Declared
from ..dtypes import BY_ISA, DataType
from ..ir import IN, ScalarType, TensorType
from ..problems import CALL, Problem
from ..reader.source import surroundings
from ..types import Annotation, DynVar

#: Element types of arrays: the names of NumPy and torch, and those of the table.
NAMES = {
    **{d.array: d.name for d in DTYPES.values() if d.array and d.name in BY_ISA},
    "bool": "u8", "float4_e2m1fn_x2": "f4e2m1",
}  # fmt: skip


class WrongArguments(TypeError):
    """A call whose arguments do not match the function's parameters."""


def refuse(message: str, help: str = "", expected: str = "", got: str = "") -> DiagnosticError:
    return DiagnosticError([Diagnostic(CALL, message, help=help, expected=expected, got=got)])


def element_type(value: object) -> DataType | None:
    """Return the element type of an array by the name of its dtype; None if the language has no such type."""
    return BY_ISA.get(NAMES.get(dtype_name(getattr(value, "dtype", "")), ""))


def dtype_name(dtype: object) -> str:
    """Return the name of an element type, which is the same for NumPy and torch."""
    return str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")


def is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and value.shape != ()


def bound(declared: Declared, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments by parameter name."""
    if declared.kind == "inline":
        raise refuse(f"cannot call {declared.name} from Python: a function with @pl.jit.inline exists only "
            "in its callers",
                     help="call it in a function with @pl.jit")  # fmt: skip
    try:
        found = declared.signature.bind(*args, **kwargs)
    except TypeError as e:
        text = f"{declared.name}({', '.join(declared.signature.parameters)}): {e}"
        raise WrongArguments(text + _outputs(declared, len(args) + len(kwargs))) from None
    found.apply_defaults()
    return dict(found.arguments)


def _outputs(declared: Declared, given: int) -> str:
    """Return a help text for callers that expect results to be returned, because outputs are arguments."""
    missing = list(declared.signature.parameters)[given:]
    written = [n for n in missing if n in declared.annotations and declared.annotations[n].direction != IN]
    return f"; pass an array for {' and '.join(written)}, which the call writes into" if written else ""


def types_of(declared: Declared, given: Mapping[str, object]) -> list[TensorType | float | int]:
    """Return a tensor type per array, whose extents are numbers or `DynVar`s, and numbers unchanged."""
    try:
        _ = declared.annotations
    except Problem as problem:
        raise DiagnosticError([problem.diagnostic]) from None
    own = _extents(declared, given)
    return [_type(declared, name, value, own) for name, value in given.items()]


def with_extents(types: Sequence[object], given: Sequence[Any] | None, usual: int) -> list[object]:
    """Replace dynamic extents by numbers: those of the arguments, or `usual` without arguments."""
    found: list[object] = []
    for n, t in enumerate(types):
        if isinstance(t, TensorType):
            sizes = given[n].shape if given is not None else None
            shape = [
                d if not isinstance(d, DynVar) else int(sizes[i]) if sizes is not None else d.of(usual)
                for i, d in enumerate(t.shape)
            ]
            t = t.replace(shape=tuple(shape))
        found.append(t)
    return found


def _extents(declared: Declared, given: Mapping[str, Any]) -> dict[tuple[str, int], DynVar]:
    """Return a `DynVar` by parameter and dimension for dynamic extents that differ within a call.

    A dynamic extent has one value per call. If the arrays disagree and the body of the function does not use
    the name, later arrays get separate extents.
    """
    known: dict[str, tuple[str, int]] = {}
    own: dict[tuple[str, int], DynVar] = {}
    for name, value in given.items():
        said = declared.annotations.get(name)
        for axis, want in enumerate((said.shape if said is not None else None) or ()):
            if not isinstance(want, DynVar) or len(getattr(value, "shape", ())) <= axis:
                continue
            size = want.solved(int(value.shape[axis]))
            if size is None:
                raise refuse(f"cannot solve {want.name} for the extent of '{name}' of {declared.name}",
                             got=str(value.shape[axis]))  # fmt: skip
            first, before = known.setdefault(want.base, (name, size))
            if size == before:
                continue
            if dynamic_names(declared, {want.base}):
                raise refuse(f"{want.base} of {declared.name} has two different extents",
                             got=f"{before} in '{first}' and {size} in '{name}'")  # fmt: skip
            own[name, axis] = DynVar(f"{want.name}_of_{name}")
    return own


def dynamic_names(declared: Declared, wanted: Container[str]) -> dict[str, DynVar]:
    """Return the names in the body of a function that stand for these dynamic extents."""
    code = declared.function.__code__
    find = surroundings(declared.function, declared.enclosing)
    found: dict[str, DynVar] = {}
    for name in (*code.co_names, *code.co_freevars):
        try:
            value = find(name)
        except KeyError:
            continue
        if isinstance(value, DynVar) and value.base in wanted:
            found[name] = value
    return found


def _type(
    declared: Declared, name: str, value: object, own: dict[tuple[str, int], DynVar]
) -> TensorType | float | int:
    said = declared.annotations.get(name)
    if hasattr(value, "shape") and hasattr(value, "dtype") and getattr(value, "shape", ()) != ():
        return _tensor(declared, name, value, said, own)
    value = number(value)
    what = {None: "an array or a number", "scalar": "a number"}.get(said and said.kind, "an array")
    if not isinstance(value, int | float) or what == "an array":
        got = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
        raise refuse(f"expected {what} for '{name}' of {declared.name}", got=got,
                     help=_array_of(name, value, said) if what != "a number" else "")  # fmt: skip
    whole = said is not None and (said.dtype.is_int if said.dtype is not None else int in said.extras)
    if whole and not float(value).is_integer():
        raise refuse(f"expected a whole number for '{name}' of {declared.name}", got=repr(value))
    if said is not None and said.dtype is not None:
        return float(value) if said.dtype.is_float else int(value) if said.dtype.is_int else value
    return value


def _array_of(name: str, value: object, said: Annotation | None) -> str:
    """Return a help text: how to make an array of an argument that is not an array."""
    floats = isinstance(value, float) or "." in repr(value)
    usual = said.dtype.isa if said is not None and said.dtype is not None else "f32" if floats else "i32"
    word = next((n for n, isa in NAMES.items() if isa == usual), "float32")
    dtype = _of_library(word, "numpy")
    if said is not None and said.direction != IN:
        return f"{name} = numpy.zeros(shape, {dtype}) before the call, which writes into it"
    if isinstance(value, int | float):
        return f"numpy.full(shape, {value!r}, {dtype}), or {name}: pl.Scalar[pl.{BY_ISA[usual].name}]"
    return (
        f"numpy.array({name}, {dtype})"
        if isinstance(value, list | tuple)
        else "a NumPy array or a torch tensor"
    )


def number(value: Any) -> Any:
    """Return the Python number of a zero-dimensional array or a ctypes number; other values unchanged."""
    if isinstance(value, int | float):
        return value
    if hasattr(value, "item"):
        return value.item()
    return getattr(value, "value", value)


class RuntimeNumber:
    """`pl.RUNTIME`, given in place of a number: the number is not a constant, each call passes it."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = RuntimeNumber()


def annotated_types(
    declared: Declared, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> list[object]:
    """Return the types of a program that is compiled without arguments, from the parameters' annotations.
    Numbers that are given are constants; calls pass the others."""
    try:
        annotations = declared.annotations
    except Problem as problem:
        raise DiagnosticError([problem.diagnostic]) from None
    try:
        given = declared.signature.bind_partial(*args, **kwargs).arguments
    except TypeError as e:
        text = f"{declared.name}({', '.join(declared.signature.parameters)}): {e}"
        raise WrongArguments(text) from None
    found: list[object] = []
    for name, parameter in declared.signature.parameters.items():
        said = annotations.get(name)
        usual = RUNTIME if parameter.default is parameter.empty else parameter.default
        value = given.get(name, RUNTIME)
        if value is not RUNTIME:
            found.append(_type(declared, name, value, {}))
        elif usual is not RUNTIME and name not in given:
            found.append(usual)
        elif said is None or said.dtype is None or (said.kind != "scalar" and said.shape is None):
            raise refuse(f"missing type of '{name}' of {declared.name}",
                         help="give arguments, or write pl.Tensor[[rows, cols], pl.FP32]")  # fmt: skip
        elif said.kind == "scalar":
            found.append(ScalarType(said.dtype))
        else:
            found.append(TensorType(said.dtype, tuple(said.shape or ()), layout=said.layout))
    return found


def extents_of(array: Any, dtype: DataType | None) -> list[int]:
    """Return the shape of an array in elements; two 4-bit elements share a byte."""
    shape = [int(n) for n in array.shape]
    if dtype is not None and dtype.bits == 4:
        shape[-1] *= 2
    return shape


def _tensor(
    declared: Declared, name: str, value: Any, said: Annotation | None, own: dict[tuple[str, int], DynVar]
) -> TensorType:
    dtype = element_type(value)
    if dtype is None:
        wide = str(value.dtype) in ("float64", "torch.float64")
        raise refuse(f"unsupported element type {value.dtype} of '{name}' of {declared.name}",
                     help=_of_type(name, value, said, "float32") if wide else "")  # fmt: skip
    if said is not None and said.kind == "scalar":
        raise refuse(f"expected a number for '{name}' of {declared.name}",
                     got=f"an array of shape {tuple(value.shape)}",
                     help=f"{name}.item()" if math.prod(value.shape) == 1 else "")  # fmt: skip
    shape: list[Any] = extents_of(value, dtype)
    if said is not None and said.dtype is not None and said.dtype != dtype:
        same = said.dtype.is_int and dtype.is_int and said.dtype.bits == dtype.bits
        if not same:
            raise refuse(f"expected {said.dtype.name} for '{name}' of {declared.name}", got=str(value.dtype),
                         help=_of_type(name, value, said, said.dtype.isa))  # fmt: skip
        dtype = said.dtype
    if said is not None and said.shape is not None:
        wanted = ", ".join(d.name if isinstance(d, DynVar) else str(d) for d in said.shape)
        if len(said.shape) != len(shape):
            ones = said.shape[: len(said.shape) - len(shape)]
            raise refuse(
                f"expected {len(said.shape)} dimensions for '{name}' of {declared.name}",
                expected=f"[{wanted}]",
                got=str(shape),
                help=f"{name}[{'None, ' * len(ones)}...]" if ones and all(d == 1 for d in ones) else "",
            )
        for axis, want in enumerate(said.shape):
            if isinstance(want, DynVar):
                shape[axis] = own.get((name, axis), want)
            elif want != shape[axis]:
                raise refuse(f"shape of '{name}' of {declared.name} does not match", expected=f"[{wanted}]",
                             got=str(list(value.shape)))  # fmt: skip
    return TensorType(dtype, tuple(shape), layout="ND" if said is None else said.layout)


def _of_type(name: str, value: object, said: Annotation | None, wanted: str) -> str:
    """Return a help text: how to convert an array to another element type. An output is not converted,
    because the results would go to the copy.
    """
    word = next((n for n, isa in NAMES.items() if wanted in (n, isa)), "")
    if not word:
        return ""
    library = type(value).__module__.partition(".")[0]
    dtype = _of_library(word, library)
    if said is not None and said.direction != IN:
        return f"make an array of {dtype}: the call writes into it"
    return f"{name}.{'to' if library == 'torch' else 'astype'}({dtype})"


def _of_library(word: str, library: str) -> str:
    """Return an element type as a user of the library writes it."""
    if library == "numpy":
        import numpy as np

        library = "numpy" if hasattr(np, word) else "ml_dtypes"
    return f"{library}.{word}"


def as_numpy(value: Any) -> Any:
    """Return the same memory as a NumPy array."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "memory"):  # a buffer of a worker
        return value.memory
    if type(value).__module__.partition(".")[0] == "torch":
        return _from_torch(value)
    return np.asarray(value)


def in_place(value: object, name: str, written: bool) -> Any:
    """Return the memory of an argument, which must be contiguous: programs work in place."""
    array = as_numpy(value)
    if array.flags.c_contiguous:
        return array
    dense = f"numpy.ascontiguousarray({name})"
    help = f"pass a copy, then copy its content back: c = {dense}; ..; {name}[...] = c" if written else dense
    raise refuse(f"expected contiguous memory for '{name}'", help)


def _from_torch(value: Any) -> Any:
    import ml_dtypes
    import numpy as np
    import torch  # pyright: ignore[reportMissingImports]

    name = str(value.dtype).removeprefix("torch.")
    value = value.detach()
    if name.endswith("_x2"):
        return value.view(torch.uint8).numpy()
    if hasattr(ml_dtypes, name):
        raw = torch.int16 if value.element_size() == 2 else torch.uint8
        return value.view(raw).numpy().view(np.dtype(getattr(ml_dtypes, name)))
    return value.numpy()
