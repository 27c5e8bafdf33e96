"""The scalar definition of element codes, against other people's implementations and against brute force."""

from __future__ import annotations

import bisect
import itertools
import math
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import EVERY

from pto.isa import encoding
from pto.isa.dtypes import DTYPES, ROUND_MODES
from pto.isa.encoding import convert, decode, encode, round_integral

PEERS = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
SMALL_FLOATS = ("f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2")
ROUNDS = [m for m in ROUND_MODES if m != "NONE"]


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def peer_codes(name: str, values: list[float]) -> list[int]:
    array = np.array(values, np.float32).astype(PEERS[name])
    return [int(c) for c in array.view(f"u{array.dtype.itemsize}")]


# --- decode ---------------------------------------------------------------------------------------------


@together("name", PEERS)
def test_every_code_decodes_like_the_peer(name: str) -> None:
    d = DTYPES[name]
    codes = np.arange(1 << d.bits, dtype=f"u{max(d.bits, 8) // 8}")
    with np.errstate(invalid="ignore"):
        expected = codes.view(PEERS[name]).astype(np.float64)
    wrong = [hex(c) for c in range(1 << d.bits) if not same(decode(name, c), float(expected[c]))]
    assert not wrong


def test_f32_and_f64_decode_like_numpy() -> None:
    rng = np.random.default_rng(1)
    for name, width in (("f32", 32), ("f64", 64)):
        codes = rng.integers(0, 2**width, 3000, dtype=np.uint64).astype(f"u{width // 8}")
        for code, value in zip(codes, codes.view(f"f{width // 8}"), strict=True):
            assert same(decode(name, int(code)), float(value))


# (code, value) of one number per row of the hifloat8 table, and its special values.
HIF8 = [
    (0x00, 0.0), (0x01, 2.0**-22), (0x07, 2.0**-16), (0x81, -(2.0**-22)), (0x08, 1.0), (0x0F, 1.875),
    (0x10, 2.0), (0x18, 0.5), (0x1F, 0.9375), (0x20, 4.0), (0x28, 8.0), (0x30, 0.25), (0x38, 0.125),
    (0x40, 16.0), (0x4F, 224.0), (0x50, 0.0625), (0x60, 256.0), (0x6E, 2.0**15), (0x70, 2.0**-8),
    (0x7E, 2.0**-15), (0x7F, 1.5 * 2.0**-15), (0xEE, -(2.0**15)), (0x6F, math.inf), (0xEF, -math.inf),
    (0x80, math.nan),
]  # fmt: skip


@together(("code", "value"), HIF8)
def test_hif8_layout(code: int, value: float) -> None:
    assert same(decode("hif8", code), value)


def test_hif8_is_a_bijection() -> None:
    values = [decode("hif8", c) for c in range(256)]
    assert len({v for v in values if not math.isnan(v)}) == 255


def test_hif8_and_e1m2_match_the_vendor_library() -> None:
    en = pytest.importorskip("en_dtypes")
    for name, t, bits in (("hif8", en.hifloat8, 8), ("f4e1m2", en.float4_e1m2, 4)):
        codes = np.arange(1 << bits, dtype=np.uint8)
        expected = codes.view(t).astype(np.float32)
        assert all(same(decode(name, int(c)), float(v)) for c, v in zip(codes, expected, strict=True))
    rng = np.random.default_rng(5)
    points = sorted({v for c in range(256) if math.isfinite(v := decode("hif8", c))})
    ties = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    spread = rng.standard_normal(4000) * 2.0 ** rng.integers(-24, 17, 4000)
    values = np.array([*points, *ties, *spread, 40960, 1e9, -1e9, math.inf, -math.inf], np.float32)
    expected = values.astype(en.hifloat8).view(np.uint8)
    assert [encode("hif8", float(v)) for v in values] == [int(c) for c in expected]


def test_fp4_tables() -> None:
    assert [decode("f4e2m1", c) for c in range(8)] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert [decode("f4e1m2", c) for c in range(8)] == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert [decode("s4", c) for c in range(16)] == [*range(8), *range(-8, 0)]


def test_code_out_of_range_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a code of 4 bits for f4e2m1"):
        decode("f4e2m1", 16)
    with pytest.raises(ValueError):
        decode("i8", -1)


# --- encode ---------------------------------------------------------------------------------------------


@together("mode", ROUND_MODES)
@together("name", [n for n, d in DTYPES.items() if d.bits <= 16])
def test_every_code_survives_a_round_trip(name: str, mode: str) -> None:
    d = DTYPES[name]
    step = 1 if d.bits < 16 or (EVERY and mode == "RINT") else 61
    for code in range(0, 1 << d.bits, step):
        value = decode(name, code)
        if isinstance(value, float) and math.isnan(value):
            assert encode(name, value, mode) == encoding.NAN_CODES[name]
        else:
            assert encode(name, value, mode) == code


@cache
def grid(name: str) -> tuple[list[float], list[int]]:
    """Finite values in order and their codes, without negative zero."""
    d = DTYPES[name]
    pairs = {v: c for c in reversed(range(1 << d.bits)) if math.isfinite(v := decode(d, c))}
    values = sorted(pairs)
    return values, [pairs[v] for v in values]


def brute_force(name: str, value: float, mode: str) -> Fraction | None:
    """`value` rounded by looking at its two neighbours; None when it lies beyond the largest ones."""
    values, codes = grid(name)
    x = Fraction(value)
    i = bisect.bisect_left(values, x)
    if i == len(values) or (i == 0 and values[0] != x):
        return None
    if values[i] == x:
        return x
    low, high = Fraction(values[i - 1]), Fraction(values[i])
    if mode == "FLOOR":
        return low
    if mode == "CEIL":
        return high
    inner, outer = (low, high) if x > 0 else (high, low)
    if mode == "TRUNC":
        return inner
    if x - low != high - x:
        return low if x - low < high - x else high
    if mode == "ROUND":
        return outer
    inner_code = codes[i - 1] if inner == low else codes[i]
    # The code's last bit is the significand's, but numbers without mantissa bits have odd significand 1.
    odd = bool(inner_code & 1) if inner and outer != 2 * inner else inner != 0
    return outer if odd == (mode == "RINT") else inner


@together("mode", ROUNDS)
@together("name", SMALL_FLOATS)
def test_rounding_between_every_pair_of_neighbours(name: str, mode: str) -> None:
    values, _ = grid(name)
    for low, high in itertools.pairwise(values):
        for weight in (0.25, 0.5, 0.75):
            x = low + (high - low) * weight
            expected = brute_force(name, x, mode)
            assert expected is not None
            assert decode(name, encode(name, x, mode)) == expected, (x, mode)


@settings(max_examples=150)
@given(
    st.sampled_from([*SMALL_FLOATS, "f16", "bf16"]),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from(ROUNDS),
    st.booleans(),
)
def test_rounding_of_any_float(name: str, value: float, mode: str, saturate: bool) -> None:
    d = DTYPES[name]
    got = decode(d, encode(d, value, mode, saturate))
    if name == "f8e8m0" and value <= 0:
        return
    expected = brute_force(name, value, mode)
    if expected is not None:
        assert got == expected
        if expected == 0 and name not in ("hif8",):
            assert math.copysign(1, got) == math.copysign(1, value)
    elif saturate:
        smallest = 2.0**-127
        assert got == (smallest if d.kind == "e" and value < 1 else math.copysign(d.max_finite, value))
    else:
        assert math.isnan(got) or abs(got) in (d.max_finite, math.inf, 2.0**-127)


@settings(max_examples=80)
@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=20))
def test_nearest_even_matches_the_peers(values: list[float]) -> None:
    for name in PEERS:
        with np.errstate(over="ignore", invalid="ignore"):
            expected = peer_codes(name, values)
        for value, code in zip(values, expected, strict=True):
            if name == "f4e2m1" and math.isnan(value):
                continue  # no NaN in the type: the peer picks a zero
            if name == "f8e8m0" and 0 < abs(value) < 2.0**-126:
                continue  # the peer does not round subnormal values to the nearest
            got = encode(name, value, "RINT")
            assert got == code or (math.isnan(decode(name, got)) and math.isnan(decode(name, code)))


@settings(max_examples=80)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_to_half_and_single_match_numpy(value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        assert encode("f16", value, "RINT") == int(np.float64(value).astype(np.float16).view(np.uint16))
        assert encode("f32", value, "RINT") == int(np.float64(value).astype(np.float32).view(np.uint32))
    assert decode("f64", encode("f64", value)) == value


# (type, value, mode, saturate, decoded result)
SPECIAL = [
    ("f16", 65519.9, "RINT", False, 65504.0), ("f16", 65520.0, "RINT", False, math.inf),
    ("f16", 65520.0, "ODD", False, 65504.0), ("f16", 70000.0, "TRUNC", False, 65504.0),
    ("f16", 70000.0, "FLOOR", False, 65504.0), ("f16", 70000.0, "CEIL", False, math.inf),
    ("f16", -70000.0, "CEIL", False, -65504.0), ("f16", -70000.0, "FLOOR", False, -math.inf),
    ("f16", 70000.0, "RINT", True, 65504.0), ("f16", math.inf, "RINT", True, 65504.0),
    ("f16", math.inf, "TRUNC", False, math.inf), ("f16", math.nan, "RINT", True, math.nan),
    ("f8e4m3", 464.0, "RINT", False, 448.0), ("f8e4m3", 464.1, "RINT", False, math.nan),
    ("f8e4m3", 1e6, "RINT", True, 448.0), ("f8e4m3", -math.inf, "RINT", True, -448.0),
    ("f8e4m3", -math.inf, "RINT", False, math.nan), ("f8e4m3", 1e6, "TRUNC", False, 448.0),
    ("f8e5m2", 61439.0, "RINT", False, 57344.0), ("f8e5m2", 61440.0, "RINT", False, math.inf),
    ("f8e5m2", -1e9, "RINT", True, -57344.0),
    ("hif8", 40959.0, "NONE", False, 32768.0), ("hif8", 40960.0, "NONE", False, math.inf),
    ("hif8", 40960.0, "RINT", False, 32768.0), ("hif8", 1e9, "NONE", True, 32768.0),
    ("hif8", -math.inf, "NONE", True, -32768.0), ("hif8", 1.0625, "NONE", False, 1.125),
    ("hif8", 1.0625, "RINT", False, 1.0), ("hif8", 2.0**-23, "NONE", False, 2.0**-22),
    ("hif8", 2.0**-23, "RINT", False, 0.0), ("hif8", -0.0, "RINT", False, 0.0),
    ("hif8", math.nan, "RINT", True, math.nan),
    ("f4e2m1", 7.0, "RINT", False, 6.0), ("f4e2m1", math.inf, "RINT", False, 6.0),
    ("f4e2m1", 2.5, "RINT", False, 2.0), ("f4e2m1", 5.0, "RINT", False, 4.0),
    ("f4e2m1", 0.5, "RINT", False, 0.5), ("f4e1m2", 9.0, "RINT", True, 1.75),
    ("f4e1m2", -2.0, "RINT", False, -1.75), ("f4e2m1", math.nan, "RINT", False, 6.0),
    ("f8e8m0", 0.0, "RINT", False, math.nan), ("f8e8m0", 0.0, "RINT", True, 2.0**-127),
    ("f8e8m0", -1.0, "RINT", True, math.nan), ("f8e8m0", 3.0, "RINT", False, 4.0),
    ("f8e8m0", 3.0, "FLOOR", False, 2.0), ("f8e8m0", 3.0, "ODD", False, 2.0),
    ("f8e8m0", 3e38, "RINT", False, math.nan), ("f8e8m0", 3e38, "RINT", True, 2.0**127),
    ("f8e8m0", 1e-45, "TRUNC", False, 2.0**-127),
    ("f64", math.inf, "RINT", True, 1.7976931348623157e308),
]  # fmt: skip


@together(("name", "value", "mode", "saturate", "expected"), SPECIAL)
def test_overflow_and_special_values(
    name: str, value: float, mode: str, saturate: bool, expected: float
) -> None:
    assert same(decode(name, encode(name, value, mode, saturate)), expected)


def test_nan_rule() -> None:
    assert encode("f4e2m1", math.nan, nan="zero") == 0
    assert encode("i8", math.nan, saturate=True) == 127
    assert encode("i8", math.nan, saturate=True, nan="zero") == 0
    assert encode("u32", math.nan, saturate=True) == 2**32 - 1
    with pytest.raises(ValueError, match="unknown NaN rule"):
        encode("i8", 0.0, nan="min")


def test_unknown_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown rounding mode 'UP'"):
        encode("f16", 1.0, "UP")


# --- integers -------------------------------------------------------------------------------------------


@together(
    ("mode", "expected"),
    [
        ("RINT", [-2, -2, 0, 0, 2, 2]),
        ("ROUND", [-3, -2, -1, 1, 2, 3]),
        ("FLOOR", [-3, -2, -1, 0, 1, 2]),
        ("CEIL", [-2, -1, 0, 1, 2, 3]),
        ("TRUNC", [-2, -1, 0, 0, 1, 2]),
        ("NONE", [-2, -1, 0, 0, 1, 2]),
        ("ODD", [-3, -1, -1, 1, 1, 3]),
    ],
)
def test_halves_round_as_the_mode_says(mode: str, expected: list[int]) -> None:
    halves = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    assert [round_integral(x, mode) for x in halves] == expected
    assert [decode("i8", encode("i8", x, mode)) for x in halves] == expected
    assert round_integral(2.75, mode) == (2 if mode in ("FLOOR", "TRUNC", "NONE") else 3)


# What a C cast was observed to give on x86-64, per destination: (value, result).
CASTS = [
    ("i16", 70000.0, 4464), ("i16", math.nan, 0), ("i16", math.inf, 0), ("i16", 3e9, 0),
    ("u16", 70000.0, 4464), ("u16", -1.0, 65535), ("i8", 200.0, -56), ("i8", 3e9, 0), ("u8", 3e9 + 94, 94),
    ("u8", 257.0, 1), ("u8", math.nan, 0), ("i32", 3e9, -(2**31)), ("i32", math.nan, -(2**31)),
    ("i32", -math.inf, -(2**31)), ("u32", 3e9, 3000000000), ("u32", -1.0, 2**32 - 1), ("u32", 2.0**63, 0),
    ("u32", 2.0**32 + 5, 5), ("i64", 1e19, -(2**63)), ("i64", math.nan, -(2**63)), ("u64", 1e19, 10**19),
    ("u64", math.nan, 2**63), ("u64", 2.0**64, 0), ("u64", math.inf, 0), ("u64", -1.0, 2**64 - 1),
    ("s4", 9.0, -7),
]  # fmt: skip


@together(("name", "value", "expected"), CASTS)
def test_out_of_range_without_saturation_is_a_c_cast(name: str, value: float, expected: int) -> None:
    assert decode(name, encode(name, value, "TRUNC")) == expected


@together("name", [n for n, d in DTYPES.items() if d.is_int])
def test_saturation_is_exact_at_both_ends(name: str) -> None:
    low, high = DTYPES[name].int_range
    for value in (math.inf, 2.0**70, Fraction(high) + 1, Fraction(2 * high + 1, 2)):
        assert decode(name, encode(name, value, "ROUND", True)) == high
    for value in (-math.inf, -(2.0**70), Fraction(low) - 1):
        assert decode(name, encode(name, value, "ROUND", True)) == low
    assert decode(name, encode(name, high + 1, saturate=True)) == high
    assert encode(name, high + 1) == encode(name, low)


def test_integers_to_floats_round_once() -> None:
    rng = np.random.default_rng(3)
    values = [*rng.integers(-(2**63), 2**63 - 1, 500), 2**63 - 1, -(2**63), 2**53 + 1, 2**60 + 2**36 + 1]
    for v in values:
        assert encode("f32", int(v), "RINT") == int(np.int64(v).astype(np.float32).view(np.uint32))
        assert encode("f64", int(v), "RINT") == int(np.int64(v).astype(np.float64).view(np.uint64))
    assert decode("f32", encode("f32", 2**24 + 1, "CEIL")) == 2**24 + 2
    assert decode("f16", encode("f16", 70000)) == math.inf
    assert decode("f16", encode("f16", 70000, saturate=True)) == 65504


# --- convert --------------------------------------------------------------------------------------------


def test_equal_types_copy_the_code() -> None:
    assert convert(0xFF81, "bf16", "bf16", "FLOOR", True) == 0xFF81  # a NaN with payload
    assert convert(0x9, "f4e2m1", "f4e2m1", "ROUND") == 0x9


def test_widening_keeps_infinity_even_when_saturating() -> None:
    assert decode("f32", convert(0x7C00, "f16", "f32", saturate=True)) == math.inf
    assert decode("bf16", convert(0xFC00, "f16", "bf16", saturate=True)) == -math.inf
    assert decode("f16", convert(0x7F80, "bf16", "f16", saturate=True)) == 65504
    assert decode("f8e4m3", convert(0x7C, "f8e5m2", "f8e4m3", saturate=True)) == 448
    assert math.isnan(decode("f8e4m3", convert(0x7C, "f8e5m2", "f8e4m3")))


def test_integer_narrowing_wraps_or_clamps() -> None:
    assert decode("i16", convert(0x0001_8000, "i32", "i16")) == -32768
    assert decode("i16", convert(0x0001_8000, "i32", "i16", saturate=True)) == 32767
    assert decode("u8", convert(0xFFFF, "i16", "u8", saturate=True)) == 0
    assert decode("i64", convert(2**64 - 1, "u64", "i64", saturate=True)) == 2**63 - 1
