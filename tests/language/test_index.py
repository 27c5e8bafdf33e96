"""Sums of scalars: their value before a run agrees with the run."""

from __future__ import annotations

import pytest
from tests.each import together

from pto.language.dtypes import DATA_TYPES, DataType
from pto.language.ir import Block, ScalarType, Value, index
from pto.language.ir.build import Build

TYPES = [DATA_TYPES[n] for n in ("INT8", "UINT8", "INT16", "INT32", "UINT32", "INT64", "UINT64", "INDEX")]


@pytest.fixture
def b() -> Build:
    return Build(Block())


def unknown(dtype: DataType) -> Value:
    return Value(ScalarType(dtype))


def const(b: Build, value: int, dtype: DataType) -> Value:
    return b.op("const", [ScalarType(dtype)], value=value, dtype=dtype)


def cast(b: Build, x: Value, dtype: DataType) -> Value:
    return b.op("scalar.cast", [ScalarType(dtype)], x=x, dtype=dtype)


def wrapped(x: int, dtype: DataType) -> int:
    low = x % (1 << dtype.bits)
    return low - (1 << dtype.bits) if not dtype.name.startswith("U") and low >> (dtype.bits - 1) else low


@together("dtype", TYPES)
@together("x", (0, 1, -1, 100, 127, 128, 255, 2**31, 2**40, -(2**63)))
def test_known_numbers_are_those_of_a_run(dtype: DataType, x: int) -> None:
    b = Build(Block())
    given, n = const(b, x, dtype), wrapped(x, dtype)
    assert index.known(given) == n
    for other in TYPES:
        assert index.known(cast(b, given, other)) == wrapped(n, other)
    for name, rhs, result in (
        ("add", given, n + n),
        ("mul", given, n * n),
        ("sub", 7, n - 7),
        ("add", 300, n + 300),
    ):
        assert index.known(b.new_scalar(name, (given, rhs), dtype)) == wrapped(result, dtype), name
    assert index.known(b.new_scalar("neg", (given,), dtype)) == wrapped(-n, dtype)


def test_a_conversion_is_the_same_number_if_the_type_has_it(b: Build) -> None:
    kept = {(a.name, c.name) for a in TYPES for c in TYPES if index.same(x := unknown(a), cast(b, x, c))}
    assert ("INT32", "INDEX") in kept and ("UINT32", "INDEX") in kept and ("INT64", "INDEX") in kept
    assert not kept & {
        ("INDEX", "INT32"),
        ("INT32", "UINT32"),
        ("UINT8", "INT8"),
        ("UINT64", "INDEX"),
        ("INT8", "UINT64"),
    }


def test_differences_below_zero(b: Build) -> None:
    signed, unsigned = unknown(DATA_TYPES["INT32"]), unknown(DATA_TYPES["UINT32"])
    assert b.scalar("max", signed, b.scalar("sub", signed, 1)) is signed
    assert b.scalar("max", unsigned, b.scalar("sub", unsigned, 1)) is not unsigned
    assert b.scalar("sub", b.scalar("add", unsigned, 1), b.scalar("add", unsigned, 3)) == 2**32 - 2
    assert index.known_difference(b.scalar("add", signed, 16), signed) == 16
