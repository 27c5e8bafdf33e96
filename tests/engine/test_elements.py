"""Arrays of element codes: NumPy and native against the scalar definition, and against each other; and the
conversion element by element, without the native module."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import together
from tests.sampling import examples, some

from pto.engine import elements
from pto.isa import encoding
from pto.isa.dtypes import DTYPES, ROUND_MODES

from . import numpy_twins

BACKENDS = [numpy_twins, elements]
ROUNDS = [m for m in ROUND_MODES if m != "NONE"]
EDGES = [0, 1, 2, 3, 7, 8, 9]


@pytest.fixture(params=["compiled", "element by element"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the native module, and without it."""
    if request.param != "compiled":
        monkeypatch.setattr(elements, "_native", None)


WITH_AND_WITHOUT = pytest.mark.usefixtures("backend")


@cache
def some_codes(name: str) -> np.ndarray:
    """Every code of a small type; edge cases and a seeded sample of a large one."""
    bits = DTYPES[name].bits
    if bits <= 8:
        return np.arange(1 << bits, dtype=np.uint8)
    rng = np.random.default_rng(bits)
    top = (1 << bits) - 1
    edges = [(e + d) & top for e in (0, 1 << (bits - 1), *EDGES) for d in (-2, -1, 0, 1, 2)]
    d = DTYPES[name]
    if d.is_float:
        inf = encoding.INF_CODES[name]
        edges += [c | s for c in (inf - 1, inf, inf + 1) for s in (0, 1 << (bits - 1))]
        small = rng.uniform(-600, 600, 120)
        halves = rng.integers(-140, 140, 60) + 0.5
        limits = [s * m * f for s in (1, -1) for m in (2.0**31, 2.0**63, 65504, 448, 57344, 2.0**15)
                  for f in (1, 1 - 2**-20, 1 + 2**-20, 1.04, 1.0625)]  # fmt: skip
        edges += [encoding.encode(d, float(v), "RINT") for v in (*small, *halves, *limits)]
    else:
        edges += [(1 << k) + e & top for k in range(3, bits) for e in (-1, 0, 1)]
    random = rng.integers(0, top, 50, np.uint64, endpoint=True)
    return np.array([*edges, *random.tolist()], np.uint64).astype(f"u{bits // 8}")


@together("name", DTYPES)
def test_decode_is_the_scalar_decode(name: str) -> None:
    d = DTYPES[name]
    codes = np.arange(1 << d.bits, dtype=f"u{max(d.bits, 8) // 8}") if d.bits <= 16 else some_codes(name)
    expected = [encoding.decode(name, int(c)) for c in codes]
    kinds = [None]
    if d.bits <= 16 or (d.is_float and d.bits == 32):
        kinds += [np.float32, np.float64]
    elif d.bits == 32 or name == "f64":
        kinds += [np.float64]
    for to, by in product(kinds, BACKENDS):
        got = by.decode(name, codes, to)
        assert to is None or got.dtype == to
        np.testing.assert_array_equal(got, np.array(expected, got.dtype))
        if d.is_float:
            sign = ~np.isnan(got)
            assert (np.signbit(got) == np.signbit(np.array(expected, np.float64)))[sign].all()


@pytest.mark.parametrize("name", [n for n, d in DTYPES.items() if d.is_float and d.bits <= 16])
def test_both_give_the_same_nan(name: str) -> None:
    """Bit for bit: quantisation looks at the bits of NaN."""
    codes = np.arange(1 << DTYPES[name].bits).astype(elements.code_dtype(name))
    for to, bits in ((np.float32, np.uint32), (np.float64, np.uint64)):
        a, b = (by.decode(name, codes, to).view(bits) for by in BACKENDS)
        np.testing.assert_array_equal(a, b)


@WITH_AND_WITHOUT
@pytest.mark.parametrize(("name", "to"), [("i64", "f8"), ("u64", "f8"), ("f64", "f4"), ("i32", "f4")])
def test_decode_refuses_to_lose_bits(name: str, to: str) -> None:
    with pytest.raises(ValueError, match="not exact"):
        elements.decode(name, some_codes(name), np.dtype(to))


SMALL = [n for n, d in DTYPES.items() if d.bits <= 8]
WAYS = [(m, s) for m in ROUNDS for s in (False, True)]


def of_each_pair(sources: list[str]) -> list[tuple[str, str, tuple[str, bool]]]:
    """Some roundings and saturations of each pair of types."""
    return some(product(sources, DTYPES, WAYS), 4, by=lambda case: case[:2])


@cache
def _code(dst: str, value: float | int, negative: bool, mode: str, saturate: bool, nan: str) -> int:
    """The scalar encoding; types share many of their values."""
    return encoding.encode(dst, value, mode, saturate, nan)


def scalar_convert(code: int, src: str, dst: str, mode: str, saturate: bool, nan: str) -> int:
    """`encoding.convert`, without what does not matter: a mode where nothing is rounded, a rule for NaN of others."""
    if src == dst:
        return code
    value = encoding.decode(src, code)
    if isinstance(value, int):
        return _code(dst, value, False, "NONE" if DTYPES[dst].is_int else mode, saturate, "max")
    saturate = saturate and not encoding.keeps_infinity(src, dst)
    if math.isnan(value):
        return _code(dst, math.nan, False, mode, saturate, nan)
    return _code(dst, value, math.copysign(1, value) < 0, mode, saturate, "max")


def assert_converts(
    codes: np.ndarray, src: str, dst: str, mode: str, saturate: bool, nan: str, want: list[int]
) -> None:
    expected = np.array(want, elements.code_dtype(dst))
    for by in BACKENDS:
        got = by.convert(codes, src, dst, mode, saturate, nan)
        assert got.dtype == expected.dtype
        bad = np.flatnonzero(got != expected)[:5]
        assert not bad.size, [
            (by.__name__, mode, saturate, hex(codes[i]), hex(got[i]), hex(expected[i])) for i in bad
        ]


@together(("src", "dst", "way"), of_each_pair(SMALL))
def test_every_small_code_converts_as_the_scalar_does(src: str, dst: str, way: tuple[str, bool]) -> None:
    """Every rounding, saturation and rule for NaN."""
    codes = np.arange(1 << DTYPES[src].bits, dtype=np.uint8)
    mode, saturate = way
    for nan in encoding.NAN_RULES if DTYPES[src].nan else encoding.NAN_RULES[:1]:
        want = [scalar_convert(int(c), src, dst, mode, saturate, nan) for c in codes]
        assert_converts(codes, src, dst, mode, saturate, nan, want)
    assert want == [encoding.convert(int(c), src, dst, mode, saturate, nan) for c in codes]


@together(("src", "dst", "way"), of_each_pair([n for n in DTYPES if n not in SMALL]))
def test_convert_is_the_scalar_convert(src: str, dst: str, way: tuple[str, bool]) -> None:
    k, (mode, saturate) = WAYS.index(way), way
    nan = encoding.NAN_RULES[k // 2 % 2]
    codes = some_codes(src) if mode == "RINT" else some_codes(src)[k % 3 :: 3]
    want = [encoding.convert(int(c), src, dst, mode, saturate, nan) for c in codes]
    assert_converts(codes, src, dst, mode, saturate, nan, want)


@together(("src", "dst", "way"), of_each_pair(["f16", "bf16", "i16", "u16"]))
def test_every_16_bit_code_converts_alike(src: str, dst: str, way: tuple[str, bool]) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    a, b = (by.convert(codes, src, dst, *way) for by in BACKENDS)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in SMALL if DTYPES[n].is_float])
def test_encode_between_all_neighbours(name: str) -> None:
    """Every number of a small type, the middles between them, their neighbours in f32, and numbers out of
    range."""
    known = elements.decode(name, np.arange(1 << DTYPES[name].bits, dtype=np.uint8), np.float64)
    known = np.unique(known[np.isfinite(known)])
    known = np.concatenate([known, known[-1:] * 1.25, known[:1] * 1.25, [0.0, -0.0, 2.0**-149, 1e38]])
    middles = ((np.sort(known)[1:] + np.sort(known)[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(to)) for to in (-np.inf, np.inf)]
    special = np.array([np.inf, -np.inf, np.nan], np.float32)
    values = np.concatenate([known.astype(np.float32), middles, *beside, special])
    signs = np.signbit(values).tolist()
    for mode, saturate in WAYS:
        for nan in encoding.NAN_RULES:
            rules = ["max"] * (len(signs) - 1) + [nan]  # it is for the last one only
            expected = [
                _code(name, v, negative, mode, saturate, rule)
                for v, negative, rule in zip(values.tolist(), signs, rules, strict=True)
            ]
            for by in BACKENDS:
                got = by.encode(name, values, mode, saturate, nan)
                np.testing.assert_array_equal(
                    got, np.array(expected, np.uint8), f"{by.__name__} {mode} {saturate} {nan}"
                )


@examples(60)
@given(
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.floats(width=32), min_size=1, max_size=12),
    st.sampled_from(ROUND_MODES),
    st.booleans(),
    st.sampled_from(encoding.NAN_RULES),
)
def test_encode_is_the_scalar_encode(
    name: str, values: list[float], mode: str, saturate: bool, nan: str
) -> None:
    expected = [encoding.encode(name, v, mode, saturate, nan) for v in values]
    for kind in (np.float32, np.float64):
        for by in BACKENDS:
            got = by.encode(name, np.array(values, kind), mode, saturate, nan)
            assert [int(c) for c in got] == expected, (kind, by.__name__)


@examples(80)
@given(st.sampled_from(sorted(DTYPES)), st.floats(), st.sampled_from(ROUND_MODES), st.booleans())
def test_encode_of_doubles(name: str, value: float, mode: str, saturate: bool) -> None:
    expected = encoding.encode(name, value, mode, saturate)
    for by in BACKENDS:
        assert int(by.encode(name, np.array([value]), mode, saturate)[0]) == expected


@examples(60)
@given(
    st.sampled_from(["i64", "u64"]),
    st.integers(0, 2**64 - 1),
    st.sampled_from([n for n in DTYPES if DTYPES[n].is_float]),
    st.sampled_from(ROUND_MODES),
    st.booleans(),
)
def test_wide_integers_round_once(src: str, code: int, dst: str, mode: str, saturate: bool) -> None:
    expected = encoding.convert(code, src, dst, mode, saturate)
    for by in BACKENDS:
        got = by.convert(np.array([code], np.uint64), src, dst, mode, saturate)
        assert int(got[0]) == expected


@WITH_AND_WITHOUT
def test_encode_of_integer_arrays() -> None:
    got = elements.encode("i8", np.array([127, 128, -129], np.int32), saturate=True)
    assert got.tolist() == [127, 127, 128]
    got = elements.encode("f32", np.array([-1], np.int8))
    assert got.tolist() == [0xBF800000]
    assert elements.encode("i8", np.array([-1], np.int8)).tolist() == [255]


@WITH_AND_WITHOUT
def test_shapes_are_kept() -> None:
    values = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    codes = elements.encode("f16", values[:, ::-1])
    assert codes.shape == (2, 3, 4)
    back = elements.decode("f16", codes)
    np.testing.assert_array_equal(back, values[:, ::-1].astype(np.float16).astype(np.float32))
    assert elements.encode("f16", np.zeros((0, 3), np.float32)).shape == (0, 3)


@WITH_AND_WITHOUT
@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3", "i8"])
def test_rows_take_the_short_way(name: str) -> None:
    values = elements.decode("f32", some_codes("f32"))
    wide = elements.decode("f32", some_codes("f32"), np.float64)
    for row in (values, values[::-3], wide, wide[:0]):
        for mode, saturate, nan in (("NONE", False, "max"), ("TRUNC", True, "zero")):
            with np.errstate(all="ignore"):  # as the engine calls it
                got = elements.encode_row(name, row, mode, saturate, nan)
                want = numpy_twins.encode(name, row, mode, saturate, nan)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="rounding mode"):
        elements.encode_row(name, values, "UP")


@WITH_AND_WITHOUT
def test_bad_arguments_are_value_errors() -> None:
    with pytest.raises(ValueError, match="f16 codes are uint16"):
        elements.decode("f16", np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="rounding mode"):
        elements.encode("f16", np.zeros(3, np.float32), "UP")
    with pytest.raises(ValueError, match="NaN rule"):
        elements.encode("f16", np.zeros(3, np.float32), nan="min")
    with pytest.raises(ValueError, match="cannot encode"):
        elements.encode("f16", np.zeros(3, np.complex64))


def test_a_missing_module_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "_native", None)
    assert not elements.has_compiled()
    assert elements.encode("f16", np.ones(1, np.float32)).tolist() == [0x3C00]
    with pytest.raises(ImportError, match=r"pto\._native"):
        elements.loops()


def test_types_that_the_module_was_compiled_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """They convert element by element; every other type stays with the compiled loops."""
    values = np.array([1.5, -3.0], np.float32)
    codes = elements.encode("hif8", values)
    monkeypatch.setattr(elements, "_NEWER", frozenset({"hif8"}))
    monkeypatch.delitem(elements._WIDE, "hif8")
    monkeypatch.setattr(elements, "_native", SimpleNamespace())  # it must not be used
    assert elements.encode("hif8", values).tolist() == codes.tolist()
    assert elements.decode("hif8", codes).tolist() == values.tolist()
    assert elements.convert(codes, "hif8", "f32").tolist() == values.view(np.uint32).tolist()
    with pytest.raises(AttributeError, match="encode"):
        elements.encode("f16", values)


def test_wide_types_that_the_module_was_compiled_without(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = elements.encode("bf16", np.array([1.5, -3.0, np.nan], np.float32))
    monkeypatch.setattr(elements, "_native", None)
    np.testing.assert_array_equal(elements.decode("bf16", codes), [1.5, -3.0, np.nan])
