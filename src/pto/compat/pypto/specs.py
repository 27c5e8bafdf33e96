"""Descriptions of arguments, as runs and tests give them: names, shapes, and where the values come from.

Arrays are made by the module that the element type is of: torch, or one that looks like it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

#: Functions that are called with a shape and an element type.
_FACTORIES = ("randn", "rand", "zeros", "ones")
CTYPES = ("int64", "int32", "uint64", "uint32", "float", "double")


def module_of(dtype: Any) -> Any:
    """The array library that an element type belongs to."""
    name = str(type(dtype).__module__).partition(".")[0]
    if name == "builtins":
        name = str(getattr(dtype, "__module__", "numpy")).partition(".")[0]
    return sys.modules[name]


def made(shape: Any, dtype: Any, value: Any, library: Any) -> Any:
    """An array from what a description says of its values."""
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
    raise TypeError(f"no array is made from a {type(value).__name__}")


@dataclass
class TensorSpec:
    """An array: `init_value` is None (zeros), a number, an array, or a function that makes one."""

    name: str
    shape: list[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        return made(self.shape, self.dtype, self.init_value, module_of(self.dtype))


@dataclass
class ScalarSpec:
    """A number; `ctype` says how it travels."""

    name: str
    value: int | float
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in CTYPES:
            raise ValueError(f"'{self.name}': no ctype '{self.ctype}', expected one of {', '.join(CTYPES)}")
