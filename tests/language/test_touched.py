"""Tasks that nothing orders: on elements of their own, and on the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.language import journal

ROWS, COLS = 64, 32


@pl.program
class Stripes:
    @pl.function(type=pl.FunctionType.InCore)
    def stripe(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], row: pl.Scalar[pl.INDEX], more: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ):  # fmt: skip
        t = pl.load(x, [row, 0], [24, COLS], valid_shape=[16 + more, COLS])
        return pl.store(pl.add(t, 1.0), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], more: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ):  # fmt: skip
        with pl.manual_scope():
            for i in pl.parallel(3):
                row: pl.Scalar[pl.INDEX] = i * 16
                out, _ = pl.submit(self.stripe, x, row, more, out)
        return out


@pytest.mark.parametrize("more", [0, 1])
def test_stripes_of_one_tensor(more: int, monkeypatch: Any) -> None:
    monkeypatch.setenv("PTO_SANITIZE", "tasks")
    x, out = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS), np.zeros((ROWS, COLS), np.float32)
    found: list[Any] = []
    with journal.listening(lambda event: found.extend(event.diagnostics)):
        Stripes.compile()(x, more, out)
    np.testing.assert_array_equal(out[: 48 + more], x[: 48 + more] + 1)
    assert {d.code for d in found} == ({"PTO-E2611"} if more else set())
    if more:
        assert "task 1 (stripe)" in str(found[0])
