"""Element types as the language spells them: `pl.FP32`, `pl.INT8`, `pl.INDEX`, `pl.TASK_ID`."""

from __future__ import annotations

from ..isa.dtypes import DTYPES
from ..isa.record import Record
from ..isa.scalars import fit


class DataType(Record):
    """An element type. `isa` is its name in the instruction table; index, i1 and task are scalars only."""

    name: str
    isa: str

    @property
    def bits(self) -> int:
        return DTYPES[self.isa].bits if self.isa in DTYPES else 4 if self.only_named else 64

    @property
    def only_named(self) -> bool:
        """Return True if programs can name the type but no instruction supports it."""
        return self.isa in _ONLY_NAMED

    @property
    def is_float(self) -> bool:
        return _ONLY_NAMED.get(self.isa) == "f" or (self.isa in DTYPES and DTYPES[self.isa].is_float)

    @property
    def is_int(self) -> bool:
        """Return True for whole numbers; truth values and tasks are not numbers."""
        if self.isa in ("index", "i1"):
            return self.isa == "index"
        return _ONLY_NAMED.get(self.isa) == "i" or (self.isa in DTYPES and DTYPES[self.isa].is_int)

    @property
    def is_unsigned(self) -> bool:
        return self.isa.startswith("u")

    @property
    def integer(self) -> str:
        """Return the spelling of an integer type with or without a sign."""
        return f"{'ui' if self.is_unsigned else 'i'}{self.bits}"

    def wrapped(self, value: int) -> int:
        """Wrap a number to this integer type, as the engines do."""
        return int(fit(self.integer)(value))

    def get_byte(self) -> int:
        """Return the bytes of an element; a 4-bit element counts as a byte."""
        return max(1, self.bits // 8)

    def __repr__(self) -> str:
        return f"pl.{self.name}"


#: Types of four bits that the language names and the table lacks: f for floats, i for integers.
_ONLY_NAMED = {"hif4": "f", "u4": "i"}

_NAMES = {
    "FP32": "f32", "FP16": "f16", "BF16": "bf16", "FP8E4M3FN": "f8e4m3", "FP8E5M2": "f8e5m2",
    "FP8E8M0": "f8e8m0", "HF8": "hif8", "FP4": "f4e2m1", "INT4": "s4", "INT8": "i8", "INT16": "i16",
    "INT32": "i32", "INT64": "i64", "UINT8": "u8", "UINT16": "u16", "UINT32": "u32", "UINT64": "u64",
    "HF4": "hif4", "UINT4": "u4", "BOOL": "i1", "INDEX": "index", "TASK_ID": "task",
}  # fmt: skip

#: Element types by their name in the language, and by their name in the table.
DATA_TYPES: dict[str, DataType] = {name: DataType(name, isa) for name, isa in _NAMES.items()}
BY_ISA: dict[str, DataType] = {d.isa: d for d in DATA_TYPES.values()}
for _name, _dtype in DATA_TYPES.items():  # pl.DataType.FP32 is pl.FP32
    setattr(DataType, _name, _dtype)

FP32 = DATA_TYPES["FP32"]
INT32 = DATA_TYPES["INT32"]
INT64 = DATA_TYPES["INT64"]
INDEX = DATA_TYPES["INDEX"]
BOOL = DATA_TYPES["BOOL"]
TASK_ID = DATA_TYPES["TASK_ID"]


def promoted(a: DataType, b: DataType) -> DataType:
    """Return the common type of two array types: floats before integers, wider before narrower, signed
    first."""
    if a == b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.isa[0] != "u" else b
