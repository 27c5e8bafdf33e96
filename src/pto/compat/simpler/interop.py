"""Torch tensors as arguments."""

from __future__ import annotations

from typing import Any

from .buffers import Tensor
from .dtypes import DataType, dtype_of
from .task_interface import as_tensor


def torch_dtype_to_datatype(dtype: Any) -> DataType:
    return dtype_of(dtype)


def make_chip_tensor_arg(tensor: Any) -> Tensor:
    return as_tensor(tensor)


def make_tensor_arg(*given: Any) -> Tensor:
    """Return an argument for a tensor, the last parameter. Earlier versions had no worker before it."""
    return as_tensor(given[-1])
