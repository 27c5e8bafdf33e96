"""Proofs of kernels of the Python language: in its own lines and names, for all extents."""

from __future__ import annotations

import numpy as np
import pytest

import pto
import pto.language as pl
from pto.proof.prove import PROVED, REFUTED, UNKNOWN

ROWS = pl.dynamic("ROWS")
TILE = 32


@pl.jit
def double(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for r in pl.parallel(0, rows, TILE):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="double_rows"):
            here = pl.min(TILE, rows - r)
            t = pl.load(x, [r, 0], [TILE, 64], valid_shape=[here, 64])
            pl.store(pl.add(t, t), [r, 0], y)
    return y


@pl.jit
def whole(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for r in pl.range(0, rows, TILE):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="whole_rows"):
            t = pl.load(x, [r, 0], [TILE, 64])
            pl.store(pl.add(t, t), [r, 0], y)
    return y


def test_all_extents() -> None:
    proof = double.prove()
    assert proof.verdict == PROVED and proof.ok
    (one,) = proof["double_rows"]
    assert "0 <= ROWS <= 1048576" in one.assumptions


def test_a_tail_that_is_forgotten() -> None:
    proof = whole.prove()
    assert proof.verdict == REFUTED
    assert "may leave its tensor for ROWS = " in str(proof) and "test_language.py:" in str(proof)
    assert whole.prove(assume=["ROWS % 32 == 0"]).ok


def test_arguments_give_missing_types() -> None:
    @pl.jit
    def copy(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y[:] = x
        return y

    x = np.zeros((64, 64), np.float32)
    assert copy.prove(x, x.copy()).ok


def test_a_window_that_may_leave_its_tensor() -> None:
    @pl.jit.incore
    def row(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y[:] = x
        return y

    @pl.jit
    def rows(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        for r in pl.parallel(0, 128, 32):
            row(x[r : r + 32, :], y[r : r + 32, :])
        return y

    x = np.zeros((96, 64), np.float32)
    proof = rows.prove(x, x.copy())
    assert proof.verdict == REFUTED and "may leave its tensor" in str(proof)
    x = np.zeros((128, 64), np.float32)
    assert rows.prove(x, x.copy()).ok


@pl.jit
def stated(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    pl.assume(rows % 32 == 0)
    for r in pl.range(0, rows, TILE):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="stated_rows"):
            t = pl.load(x, [r, 0], [TILE, 64])
            pl.store(pl.add(t, t), [r, 0], y)
    return y


def test_assumptions_in_the_program() -> None:
    """A proof uses them, a call checks them, and the program as text has them."""
    assert stated.prove().ok
    x = np.ones((64, 64), np.float32)
    y = np.zeros_like(x)
    stated(x, y)
    assert (y == 2).all()
    with pytest.raises(Exception, match=r"stated assumes \(\(ROWS % 32\) == 0\)"):
        stated(x[:33].copy(), y[:33].copy())
    with pytest.raises(Exception, match="stated assumes"):
        stated.run(x[:33].copy(), y[:33].copy())
    assert "'assume': ['((ROWS % 32) == 0)']" in stated.compile().lowered.as_python()


def test_assumptions_that_cannot_be() -> None:
    @pl.jit
    def data(x: pl.Tensor[[ROWS, 64], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
        pl.assume(pl.tensor.read(x, [0, 0]) > 1.0)
        y[:] = x
        return y

    with pytest.raises(pto.DiagnosticError, match="expected a condition on extents"):
        data.compile()

    @pl.jit
    def constant(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        pl.assume(x.shape[0] == 3)
        y[:] = x
        return y

    x = np.zeros((64, 64), np.float32)
    with pytest.raises(pto.DiagnosticError, match="the assumption does not hold"):
        constant.compile(x, x.copy())


def test_numbers_that_the_caller_computes() -> None:
    """A program may never give a kernel the values that would break it: this is no refutation."""

    @pl.jit
    def sized(
        x: pl.Tensor[[32, 64], pl.FP32],
        count: pl.Tensor[[1], pl.INT32],
        y: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        n = pl.tensor.read(count, [0])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="sized_rows"):
            t = pl.load(x, [0, 0], [32, 64], valid_shape=[n, 64])
            pl.store(pl.add(t, t), [0, 0], y)
        return y

    proof = sized.prove()
    assert proof.verdict == UNKNOWN and "some number that the caller computes" in str(proof)
