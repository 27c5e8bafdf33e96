"""Descriptions of arguments in runs and tests: names, shapes, and sources of values.

The module of the element type makes the arrays: torch, or a module with the same interface.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

#: Functions of a shape and an element type.
_FACTORIES = ("randn", "rand", "zeros", "ones")
CTYPES = ("int64", "int32", "uint64", "uint32", "float", "double")


def module_of(dtype: object) -> Any:
    """Return the array library of an element type."""
    name = str(type(dtype).__module__).partition(".")[0]
    if name == "builtins":
        name = str(getattr(dtype, "__module__", "numpy")).partition(".")[0]
    return sys.modules[name]


def made(shape: object, dtype: object, value: Any, library: Any) -> Any:
    """Return an array with the values of a description."""
    if value is None:
        return library.zeros(shape, dtype=dtype)
    if isinstance(value, int | float):
        return library.full(shape, value, dtype=dtype)
    if hasattr(value, "shape"):
        return value.to(dtype=dtype) if hasattr(value, "to") else value.astype(dtype)
    if any(value is getattr(library, name, None) for name in _FACTORIES):
        return value(shape, dtype=dtype)
    if callable(value):
        return library.as_tensor(value(), dtype=dtype)
    raise TypeError(f"cannot make an array from a {type(value).__name__}")


@dataclass
class TensorSpec:
    """An array. `init_value` is None (zeros), a number, an array, or a function that makes an array."""

    name: str
    shape: list[int]
    dtype: Any
    init_value: object = None
    is_output: bool = False

    def create_tensor(self) -> object:
        return made(self.shape, self.dtype, self.init_value, module_of(self.dtype))


@dataclass
class ScalarSpec:
    """A number; `ctype` is its type as an argument."""

    name: str
    value: int | float
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in CTYPES:
            raise ValueError(
                f"'{self.name}': unknown ctype '{self.ctype}', expected one of {', '.join(CTYPES)}"
            )
