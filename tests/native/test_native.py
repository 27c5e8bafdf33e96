"""The compiled module itself: same types as the table, clear errors for any argument, no GIL in the loops."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from tests.each import together
from tests.sampling import EVERY

from pto import _native
from pto.engine import elements
from pto.isa import encoding
from pto.isa.dtypes import DTYPES

from ..engine import numpy_twins


def test_the_module_knows_the_table() -> None:
    assert dict(_native.dtypes()) == {d.name: d.bits for d in DTYPES.values()}


@together("mode", ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"])
@together("dst", [n for n, d in DTYPES.items() if d.name not in ("f32", "i1")])
def test_floats_convert_like_numpy(dst: str, mode: str) -> None:
    rng = np.random.default_rng(11)
    size = 100_000 if EVERY else 4_000
    codes = rng.integers(0, 2**32, 2 * size, np.uint64).astype(np.uint32)
    near = (rng.standard_normal(size) * 2.0 ** rng.integers(-30, 70, size)).astype(np.float32)
    values = np.concatenate([codes, near.view(np.uint32)])
    for saturate in (False, True):
        a = numpy_twins.convert(values, "f32", dst, mode, saturate)
        b = elements.convert(values, "f32", dst, mode, saturate)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [0, 1, 3, 7, 31, 1023, 1024, 1025, 4099])
def test_every_length_is_handled(count: int) -> None:
    values = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    for name in ("f16", "f8e4m3", "hif8", "i16"):
        got = _native.encode(name, values, "RINT", True)
        expected = [encoding.encode(name, float(v), "RINT", True) for v in values]
        assert got.tolist() == expected
    assert _native.decode("f16", _native.encode("f16", values), True).shape == (count,)


BAD = [
    (lambda: _native.decode("f17", np.zeros(1, np.uint8)), "unknown element type 'f17'"),
    (lambda: _native.decode("f16", np.zeros(1, np.uint8)), "unsigned integers of 2 bytes"),
    (lambda: _native.decode("f16", np.zeros(1, np.float16)), "unsigned integers of 2 bytes"),
    (lambda: _native.decode("i64", np.zeros(1, np.uint64), True), "not exact"),
    (lambda: _native.decode("f64", np.zeros(1, np.uint64)), "not exact"),
    (lambda: _native.decode("i32", np.zeros(1, np.uint32)), "not exact"),
    (lambda: _native.encode("f16", np.zeros(1, np.int32)), "float32 or float64"),
    (lambda: _native.encode("f16", np.zeros(1, np.float32), "NONE"), "unknown rounding mode 'NONE'"),
    (lambda: _native.encode("f16", np.zeros(1, np.float32), nan="x"), "unknown NaN rule 'x'"),
    (lambda: _native.convert("f16", "x", np.zeros(1, np.uint16)), "unknown element type 'x'"),
    (lambda: _native.dot_f32(np.zeros((2, 3), "f4"), np.zeros((4, 2), "f4")), "3 columns, b has 4 rows"),
    (lambda: _native.dot_f64(np.zeros((2, 3)), np.zeros((2, 2))), "3 columns, b has 2 rows"),
    (lambda: _native.fold("f32", np.zeros((2, 3), np.float32), False), "not to f32"),
    (lambda: _native.fold("f16", np.zeros((0, 3), np.float32), False), "at least one row"),
    (lambda: _native.sort_blocks(np.zeros((2, 3), "u4"), np.zeros((1, 3), "u4")), "differ in shape"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_arguments_are_value_errors(call: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_loops_run_without_the_gil() -> None:
    """A Python thread makes progress while a conversion runs. Nobody takes the lock away from this thread: only the
    conversion can give it up."""
    codes = np.zeros(4_000_000, np.uint8)
    inside = False
    seen, stop = threading.Event(), threading.Event()

    def look() -> None:
        while not stop.wait(0.0005):
            if inside:
                seen.set()

    before = sys.getswitchinterval()
    thread = threading.Thread(target=look)
    thread.start()
    sys.setswitchinterval(600)
    try:
        for _ in range(1000):  # the system may not let the other thread run in time
            inside = True
            _native.convert("hif8", "i8", codes)
            inside = False
            if seen.is_set():
                break
            time.sleep(0.001)
    finally:
        sys.setswitchinterval(before)
        stop.set()
        thread.join()
    assert seen.is_set()
