"""Element types by their numbers in programs and orchestrations, which are those of the runtime."""

from __future__ import annotations

import enum

from ...runtime.tensors import DTYPES, numpy_type


class DataType(enum.Enum):
    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    INT16 = 3
    INT8 = 4
    UINT8 = 5
    BFLOAT16 = 6
    INT64 = 7
    UINT64 = 8
    UINT16 = 9
    UINT32 = 10
    BOOL = 11
    FP8E4M3FN = 12
    FP8E8M0 = 13
    FP4E2M1 = 14  # two numbers per byte; the element is the byte

    @property
    def nbytes(self) -> int:
        return 1 if self is DataType.FP4E2M1 else numpy_type(self.value).itemsize


#: Name of the type in NumPy, ml_dtypes or torch -> element type.
BY_NAME = {name: DataType(number) for number, name in enumerate((*DTYPES, "float4_e2m1fn_x2"))}


def dtype_of(dtype: object) -> DataType:
    """Return the element type for a type of torch or NumPy; raise KeyError if there is none."""
    return BY_NAME[str(dtype).removeprefix("torch.")]


def get_element_size(dtype: DataType) -> int:
    return dtype.nbytes
