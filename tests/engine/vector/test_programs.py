"""Whole kernels of vector micro-instructions on random inputs against NumPy, with every sanitizer silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto

PROGRAMS = Path(__file__).parent / "programs"
Array = np.ndarray[Any, Any]

SEMANTICS = pytest.mark.parametrize("semantics", ["hw", "doc"])


def text_of(name: str) -> str:
    return (PROGRAMS / f"{name}.pto").read_text()


def run(text: str, *args: Any, semantics: str = "hw") -> list[str]:
    """Launch; return the codes of the reports of the sanitizers."""
    result = pto.kernel(pto.parse(text), engine="reference").run(*args, sanitize="all", semantics=semantics)
    return [d.code for d in result.diagnostics]


def numbers(count: int, seed: int) -> Array:
    return (np.random.default_rng(seed).standard_normal(count) * 5).astype(np.float32)


def within(n: int) -> Array:
    """An output of n elements, and some more that nothing may touch."""
    return np.full(n + 32, 7, np.float32)


def check_rest(out: Array, n: int) -> None:
    assert (out[n:] == 7).all()


@SEMANTICS
@pytest.mark.parametrize("n", [1, 8, 63, 64, 65, 200, 1024, 8000])
def test_vadd_tail(n: int, semantics: str) -> None:
    a, b, c = numbers(n, n), numbers(n, n + 1), within(n)
    assert run(text_of("vadd_tail"), a, b, c, n, semantics=semantics) == []
    assert (c[:n] == a + b).all()
    check_rest(c, n)


@SEMANTICS
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 100])
def test_row_sum(rows: int, semantics: str) -> None:
    x, s = numbers(rows * 200, rows).reshape(rows, 200), within(rows)
    assert run(text_of("row_sum_200"), x, s, rows, semantics=semantics) == []
    size = np.abs(x).sum(1, dtype=np.float64)
    assert (np.abs(s[:rows] - x.sum(1, dtype=np.float64)) <= 1e-6 * size).all()
    check_rest(s, rows)


@SEMANTICS
@pytest.mark.parametrize("n", [1, 8, 64, 100, 1000, 8192])
def test_softmax(n: int, semantics: str) -> None:
    x, y = numbers(n, n), within(n)
    assert run(text_of("softmax_row"), x, y, n, semantics=semantics) == []
    e = np.exp(x.astype(np.float64) - x.max())
    np.testing.assert_allclose(y[:n], e / e.sum(), rtol=2e-6, atol=1e-12)
    check_rest(y, n)


@pytest.mark.parametrize("x", [-50.0, 1e30, -np.inf])
def test_softmax_of_large_and_negative_numbers(x: float) -> None:
    """All below zero: lanes behind the end must not win the maximum. An infinite lane has no part."""
    values = np.array([x, -60, -70, -80, -90], np.float32)
    y = within(5)
    assert run(text_of("softmax_row"), values, y, 5) == []
    e = np.exp(values.astype(np.float64) - values.max())
    np.testing.assert_allclose(y[:5], e / e.sum(), rtol=2e-6)


def test_softmax_without_its_barrier() -> None:
    """The exponentials are read back from where they were stored, which only the barrier orders."""
    text, count = re.subn(r"\n *pto\.mem_bar.*", "", text_of("softmax_row"))
    assert count == 1
    assert run(text, numbers(100, 1), within(100), 100) == ["PTO-E2206"]


def test_softmax_without_a_tail_mask() -> None:
    """Exponentials of lanes behind the end are of undefined data, and so is the sum of all."""
    text = text_of("softmax_row").replace("pto.vsub %x, %topb, %m ", "pto.vsub %x, %topb, %all ")
    text = text.replace("pto.vexp %d, %m ", "pto.vexp %d, %all ")
    assert run(text, numbers(100, 1), within(100), 100) == ["PTO-E2203"]
    assert run(text, numbers(128, 1), within(128), 128) == []


@SEMANTICS
@pytest.mark.parametrize("n", [9, 64, 100, 1000])
def test_pointer_pattern(n: int, semantics: str) -> None:
    x, y = numbers(n, n), within(n)
    assert run(text_of("pointer_pattern"), x, y, n, semantics=semantics) == []
    want = np.abs(x)
    want[8] = want[4]
    assert (y[:n] == want).all()
    check_rest(y, n)


def test_pointer_pattern_without_barriers() -> None:
    """It runs, in order; on hardware the scalar store and the vector loads could pass each other."""
    text, count = re.subn(r"\n *pto\.mem_bar.*", "", text_of("pointer_pattern"))
    assert count == 2
    x, y = numbers(200, 3), within(200)
    assert run(text, x, y, 200) == ["PTO-E2206", "PTO-E2206"]
    want = np.abs(x)
    want[8] = want[4]
    assert (y[:200] == want).all()


@SEMANTICS
@pytest.mark.parametrize("n", [1, 63, 64, 65, 256, 300, 1000])
@pytest.mark.parametrize("limit", [-100.0, 0.0, 2.5])
def test_threshold(n: int, limit: float, semantics: str) -> None:
    """Comparison, dense mask streams, mask loads and selection in one kernel."""
    x, y = numbers(n, n), within(n)
    words = -(-n // 64) * 2
    bits = np.full(words + 8, 7, np.uint32)
    assert run(text_of("threshold"), x, y, bits, n, limit, semantics=semantics) == []
    above = x > limit
    assert (y[:n] == np.where(above, x, 0)).all()
    check_rest(y, n)
    dense = np.packbits(np.pad(above, (0, words * 32 - n)), bitorder="little").view(np.uint32)
    assert (bits[:words] == dense).all()
    assert (bits[words:] == 7).all()


def test_threshold_by_bits_nobody_wrote() -> None:
    """A selection by an undefined mask is undefined, where the two choices differ."""
    text = text_of("threshold").replace("pto.plds %um[%at]", "pto.plds %nowhere[%at]")
    made = "%nowhere = pto.castptr %away : i64 -> !pto.ptr<ui32, ub>\n    "
    text = text.replace(
        "%um = pto.castptr", f"%away = arith.constant 196608 : i64\n    {made}%um = pto.castptr"
    )
    bits = np.zeros(4, np.uint32)
    assert run(text, numbers(128, 1), within(128), bits, 128, 0.0) == ["PTO-E2203"]
    assert run(text, np.zeros(128, np.float32), within(128), bits, 128, 0.0) == []


def test_threshold_without_its_flush() -> None:
    """The last bits of the stream stay in the state, and reads in their place are undefined."""
    text, count = re.subn(r"\n *pto\.vstas.*", "", text_of("threshold"))
    assert count == 1
    found = run(text, numbers(128, 1), within(128), np.zeros(4, np.uint32), 128, 0.0)
    assert "PTO-E2203" in found
