"""A script that imports from the package that it is in."""

import pypto.language as pl
import torch

from .sizes import COLS, ROWS


@pl.jit
def double(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = pl.add(x, x)
    return y


if __name__ == "__main__":
    x, y = torch.ones((ROWS, COLS)), torch.zeros((ROWS, COLS))
    double(x, y)
    assert (y == x + x).all()
