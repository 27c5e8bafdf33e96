"""Element types by the numbers that programs and orchestrations have for them."""

from __future__ import annotations

import enum

#: Name, and the name of the type in NumPy or ml_dtypes, in the order of their numbers.
_TYPES = (
    ("FLOAT32", "float32"),
    ("FLOAT16", "float16"),
    ("INT32", "int32"),
    ("INT16", "int16"),
    ("INT8", "int8"),
    ("UINT8", "uint8"),
    ("BFLOAT16", "bfloat16"),
    ("INT64", "int64"),
    ("UINT64", "uint64"),
    ("UINT16", "uint16"),
    ("UINT32", "uint32"),
    ("BOOL", "bool"),
    ("FP8E4M3FN", "float8_e4m3fn"),
    ("FP8E8M0", "float8_e8m0fnu"),
    ("FP4E2M1", "float4_e2m1fn_x2"),
)
_BYTES = (4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1)


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
    FP4E2M1 = 14

    @property
    def nbytes(self) -> int:
        return _BYTES[self.value]


BY_NAME = {array: DataType[name] for name, array in _TYPES}


def dtype_of(dtype: object) -> DataType:
    """That of torch or NumPy; KeyError where there is none."""
    return BY_NAME[str(dtype).removeprefix("torch.")]


def get_element_size(dtype: DataType) -> int:
    return dtype.nbytes
