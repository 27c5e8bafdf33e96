"""Torch tensors as arguments."""

from __future__ import annotations

from .buffers import Tensor
from .dtypes import DataType, dtype_of
from .task_interface import as_tensor


def torch_dtype_to_datatype(dtype: DataType) -> DataType:
    return dtype_of(dtype)


def make_chip_tensor_arg(tensor: object) -> Tensor:
    return as_tensor(tensor)


def make_tensor_arg(*given: object) -> Tensor:
    """Return an argument for a tensor, the last parameter. Earlier versions had no worker before it."""
    return as_tensor(given[-1])
