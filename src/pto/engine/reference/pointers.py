"""Scalar access to memory: load_scalar, store_scalar, memref.load and memref.store, on the scalar unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...isa.dtypes import DTYPES
from ..elements import Array
from ..memory import Pointer, View
from .instr import IllegalInstruction, Instr
from .registry import executor


def _number(values: Array, dtype: str) -> float | int:
    value = values.reshape(()).item()
    return float(value) if DTYPES[dtype].is_float else int(value)


def _element(i: Instr) -> Pointer:
    """Return a pointer to `ptr[offset]`; the offset may be negative."""
    place: Pointer | View = i.arg("ptr")
    return (place.pointer if isinstance(place, View) else place).moved(i.arg("offset"))


_HERE = np.zeros(1, np.intp)


@executor("load scalar")
def load_scalar(i: Instr) -> object:
    place = _element(i)
    return _number(i.values_at(place, _HERE), place.dtype)


@executor("store scalar")
def store_scalar(i: Instr) -> None:
    place = _element(i)
    i.store_at(place, _HERE, _array(i.arg("value"), place.dtype))


def _array(value: Any, dtype: str) -> Array:
    if DTYPES[dtype].is_float:
        return np.array([value], np.float64)
    return np.array([value & (2**64 - 1)], np.uint64).view(np.int64)


@executor("load element")
def memref_load(i: Instr) -> object:
    view: View = i.arg("memref")
    return _number(i.values_at(view, _place(view, i.arg("indices"))), view.dtype)


@executor("store element")
def memref_store(i: Instr) -> None:
    view: View = i.arg("memref")
    i.store_at(view, _place(view, i.arg("indices")), _array(i.arg("value"), view.dtype))


def _place(view: View, indices: list[int]) -> Any:
    """Return the offset of an element. Raise unless there is one index per dimension, inside the sizes."""
    if len(indices or []) != len(view.dims) or not all(
        0 <= n < d for n, d in zip(indices, view.dims, strict=True)
    ):
        at, size = (", ".join(map(str, numbers)) for numbers in (indices or [], view.dims))
        raise IllegalInstruction(f"index [{at}] is outside the sizes [{size}] of %{view.name}")
    return np.array([sum(n * s for n, s in zip(indices, view.strides, strict=True))], np.intp)
