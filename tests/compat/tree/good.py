"""A program as the field writes them; it is run as a script."""

import sys
import time

import pypto.language as pl
import torch
from pypto.runtime import RunConfig


@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [16, 64])
        y = pl.load(b, [0, 0], [16, 64])
        pl.store(pl.add(x, y), [0, 0], c)
    return c


if __name__ == "__main__":
    a, b, c = torch.randn((16, 64)), torch.ones((16, 64)), torch.zeros((16, 64))
    add(a, b, c, config=RunConfig(platform="a2a3"))
    begin = time.process_time()
    while time.process_time() < begin + 0.3:
        pass  # the golden
    add(a, b, c, config=RunConfig(platform="a2a3"))
    assert (c == a + b).all()
    print("arguments", sys.argv[1:])
