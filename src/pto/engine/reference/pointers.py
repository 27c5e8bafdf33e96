"""Scalar access to memory: load_scalar, store_scalar, memref.load and memref.store, on the scalar unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...isa.dtypes import DTYPES
from ..memory import View
from .instr import Instr
from .registry import executor


def _number(values: Any, dtype: str) -> Any:
    value = values.reshape(()).item()
    return float(value) if DTYPES[dtype].is_float else int(value)


@executor("load_scalar")
def load_scalar(i: Instr) -> Any:
    return _number(i.values_at("ptr", np.array([i.arg("offset")], np.intp)), i.dtype("ptr"))


@executor("store_scalar")
def store_scalar(i: Instr) -> None:
    i.store_at("ptr", np.array([i.arg("offset")], np.intp), _array(i.arg("value"), i.dtype("ptr")))


def _array(value: Any, dtype: str) -> Any:
    if DTYPES[dtype].is_float:
        return np.array([value], np.float64)
    return np.array([value & (2**64 - 1)], np.uint64).view(np.int64)


@executor("memref.load")
def memref_load(i: Instr) -> Any:
    view: View = i.arg("memref")
    return _number(i.values_at(view, _place(view, i.arg("indices"))), view.dtype)


@executor("memref.store")
def memref_store(i: Instr) -> None:
    view: View = i.arg("memref")
    i.store_at(view, _place(view, i.arg("indices")), _array(i.arg("value"), view.dtype))


def _place(view: View, indices: list[int]) -> Any:
    return np.array([sum(n * s for n, s in zip(indices or [], view.strides, strict=False))], np.intp)
