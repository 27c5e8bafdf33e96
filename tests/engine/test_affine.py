"""Affine maps on every engine: 64-bit arithmetic that wraps, and one diagnostic for a divisor that is not positive."""

from __future__ import annotations

import numpy as np
import pytest

import pto

from .programs import program

ROWS = ("affine.apply",)
ENGINES = ("reference", "native", "cpp")
LOW, HIGH = -(1 << 63), (1 << 63) - 1
#: Maps of %a, %b and %n, and their values over whole numbers.
MAPS = {
    "affine_map<(d0, d1)[s0] -> (d0 * 4 + d1 - s0 * 3 + 7)>": lambda a, b, n: a * 4 + b - n * 3 + 7,
    "affine_map<(x, y)[step] -> (x floordiv step)>": lambda a, b, n: a // n,
    "affine_map<(x, y)[step] -> (x ceildiv step)>": lambda a, b, n: -(-a // n),
    "affine_map<(x, y)[step] -> (x mod step)>": lambda a, b, n: a % n,
    "affine_map<(x, y)[s] -> ((x - y) mod 7 + (x + 1) floordiv 3 - y ceildiv 5)>": lambda a, b, n: (
        wrap(a - b) % 7 + wrap(a + 1) // 3 - -(-b // 5)
    ),
    "affine_map<(x, y)[s] -> (-(x * s) floordiv 2)>": lambda a, b, n: wrap(-wrap(a * n)) // 2,
    "affine_map<(x, y)[s] -> (x * 9223372036854775807)>": lambda a, b, n: a * HIGH,
}  # fmt: skip


def wrap(value: int) -> int:
    return ((value - LOW) % (1 << 64)) + LOW


def _text(maps: list[str]) -> str:
    lines: list[str] = []
    for k, text in enumerate(maps):
        lines += [
            f"%c{k} = arith.constant {k} : index",
            f"%r{k} = affine.apply {text}(%a, %b)[%n]",
            f"%i{k} = arith.index_cast %r{k} : index to i64",
            f"pto.store_scalar %i{k}, %out[%c{k}] : !pto.ptr<i64>, i64",
        ]
    return program("\n".join(lines), "%out: !pto.ptr<i64>, %a: index, %b: index, %n: index")


@pytest.mark.parametrize("engine", ENGINES)
def test_maps_compute_the_same_on_every_engine(engine: str) -> None:
    kernel = pto.kernel(pto.parse(_text(list(MAPS))), engine=engine)
    for given in ((5, 3, 2), (-5, 3, 2), (7, -9, 100), (LOW, HIGH, 3), (HIGH, LOW, HIGH), (LOW, LOW, 1)):
        out = np.zeros(len(MAPS), np.int64)
        assert kernel.run(out, *given).ok
        assert out.tolist() == [wrap(of(*given)) for of in MAPS.values()], given


@pytest.mark.parametrize("engine", ENGINES)
def test_a_divisor_that_is_not_positive_is_reported(engine: str) -> None:
    for kind in ("floordiv", "ceildiv", "mod"):
        text = _text([f"affine_map<(x, y)[s] -> (x {kind} (s - 4))>"])
        kernel = pto.kernel(pto.parse(text), engine=engine)
        for n in (4, 1, LOW + 4):
            (found,) = kernel.run(np.zeros(1, np.int64), 1, 2, n).diagnostics
            assert found.code == "PTO-E2102" and found.span is not None
            assert found.message == f"affine.apply: a divisor of {n - 4}, which must be positive"
            assert "affine.apply" in text.splitlines()[found.span.line - 1]
        assert kernel.run(np.zeros(1, np.int64), 1, 2, 5).ok
