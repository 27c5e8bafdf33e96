"""Tensors of the runtime and NumPy arrays: element types, shapes, and arrays on the memory of a tensor."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..diag import Diagnostic, DiagnosticError
from .extension import extension

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Element types, by their number in the runtime.
DTYPES = (
    "float32", "float16", "int32", "int16", "int8", "uint8", "bfloat16", "int64", "uint64", "uint16",
    "uint32", "bool", "float8_e4m3fn", "float8_e8m0fnu",
)  # fmt: skip
MAX_DIMS = 5
_SHORT = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i16": "int16",
          "i8": "int8", "u8": "uint8", "i64": "int64", "u64": "uint64", "u16": "uint16",
          "u32": "uint32"}  # fmt: skip
_WORD = (1 << 64) - 1


def refuse(message: str, help: str = "") -> DiagnosticError:
    """Return the error for invalid arguments."""
    return DiagnosticError([Diagnostic("PTO-E2621", message, help=help)])


def dtype_number(dtype: Any) -> int:
    """Return the runtime's number of an element type, given as NumPy's or by name (`f32`, `float32`)."""
    name = _SHORT.get(dtype, dtype) if isinstance(dtype, str) else _name(dtype)
    if name not in DTYPES:
        raise refuse(f"unsupported element type {name}", f"expected one of {', '.join(DTYPES)}")
    return DTYPES.index(name)


def _name(dtype: Any) -> str:
    import numpy as np

    try:
        return str(np.dtype(dtype))
    except TypeError:
        return repr(dtype)


def shape_of(given: Any) -> tuple[int, ...]:
    """Return a shape, given as one number or several."""
    wanted = "up to 5 dimensions, each a whole number of at least 0"
    try:
        items = (
            given if isinstance(given, Sequence) else list(given) if hasattr(given, "__iter__") else [given]
        )
        shape = tuple(map(operator.index, items))
    except TypeError:
        raise refuse(f"unsupported shape of a tensor: {given!r}", wanted) from None
    if any(n < 0 for n in shape) or math.prod(shape) >= 2**60 or len(shape) > MAX_DIMS:
        raise refuse(f"unsupported shape of a tensor: {shape}", wanted)
    return shape


def _numpy_type(number: int) -> Any:
    import numpy as np

    if DTYPES[number].startswith(("bfloat", "float8")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, DTYPES[number]))
    return np.dtype(DTYPES[number])


def numpy_type(dtype: Any) -> Any:
    """Return NumPy's type of a runtime element type, given by number or as in `dtype_number`."""
    return _numpy_type(dtype if isinstance(dtype, int) else dtype_number(dtype))


def array_of(tensor: Any) -> Array:
    """Return the elements of a tensor as a NumPy array on the same memory."""
    import ctypes

    import numpy as np

    dtype = _numpy_type(tensor.dtype)
    memory = (ctypes.c_char * tensor.nbytes).from_address(tensor.address)
    strides = [s * dtype.itemsize for s in tensor.strides]
    return np.ndarray(tensor.shape, dtype, memory, tensor.start_offset * dtype.itemsize, strides)


def values_of(
    slots: Sequence[int], tensors: int, inputs: int, floats: frozenset[int] = frozenset()
) -> list[Any]:
    """Return the parameters of a task for a Python kernel: arrays for tensors, numbers for the rest.

    `tensors` has a bit for each tensor, `inputs` for each tensor that is only read. The kernel cannot write
    to inputs, because no task would wait for such a write.
    """
    slot_tensor = extension().slot_tensor
    out: list[Any] = []
    for i, slot in enumerate(slots):
        if tensors >> i & 1:
            array = array_of(slot_tensor(slot))
            if inputs >> i & 1:
                array.flags.writeable = False
            out.append(array)
        else:
            out.append(word_float(slot) if i in floats else signed(slot))
    return out


def index_of(given: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index of an element of a tensor, given as one number or several."""
    try:
        index = tuple(map(operator.index, given if hasattr(given, "__iter__") else [given]))
    except TypeError:
        raise refuse(f"expected an index, got {given!r}", "whole numbers, one for each dimension") from None
    if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
        raise refuse(
            f"index {index} is out of bounds of a tensor of shape {tuple(shape)}",
            "one number for each dimension",
        )
    return index


def element_place(tensor: Any, index: Sequence[int]) -> tuple[int, int]:
    """Return the address of an element of a tensor, and its bytes."""
    size = _numpy_type(tensor.dtype).itemsize
    offset = tensor.start_offset + sum(i * s for i, s in zip(index, tensor.strides, strict=True))
    return tensor.address + offset * size, size


def span_of(array: Any) -> tuple[int, int]:
    """Return the address of an array with positive strides, and the bytes from there to its end."""
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    return array.ctypes.data, last + array.itemsize


def element_of(bits: int, number: int) -> int | float:
    """Decode an element from its bits, by the number of its type."""
    import numpy as np

    dtype = _numpy_type(number)
    value = np.frombuffer(struct.pack("<Q", bits)[: dtype.itemsize], dtype)[0]
    return int(value) if "int" in DTYPES[number] else float(value)


def element_bits(value: Any, number: int) -> int:
    """Return the bits of an element; an integer has to fit."""
    import numpy as np

    dtype, name = _numpy_type(number), DTYPES[number]
    whole = "int" in name
    try:
        made = operator.index(value) if whole else float(value)
    except (TypeError, ValueError):
        raise refuse(f"expected {name}, got {value!r}") from None
    if whole and not np.iinfo(dtype).min <= made <= np.iinfo(dtype).max:
        raise refuse(f"cannot store {made} in {name}: out of range")
    with np.errstate(over="ignore"):
        return int.from_bytes(np.array(made).astype(dtype).tobytes(), "little")


def signed(slot: int) -> int:
    """Return the integer in a slot."""
    return (slot & _WORD ^ 1 << 63) - (1 << 63)


def word_float(slot: int) -> float:
    """Return the f32 in the low half of a slot."""
    return struct.unpack("<f", struct.pack("<I", slot & 0xFFFFFFFF))[0]


def float_word(value: float) -> int:
    """Return a slot with an f32 in its low half; a number that is too large becomes infinite, as in C++."""
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000
