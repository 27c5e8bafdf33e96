"""Mistakes that a type checker reports, one in each line with a comment."""

from __future__ import annotations

import pto
import pto.language as pl


def mistakes(a: pl.Tensor[[16, 16], pl.FP32], t: pl.Tile) -> None:
    x = pl.load(a, [0, 0], [16, 16])
    number: int = pl.exp(x)  # a tile is no number
    tensor: pl.Tensor = pl.exp(x)  # a tile is no tensor
    pl.store(x, [0, 0], 3)  # a number is no tensor
    pl.load("a", [0, 0], [16, 16])  # a string is no tensor
    pl.load(a, ["0", 0], [16, 16])  # a string is no offset
    pl.load(a, [0, 0])  # no shape
    pl.cast(x, "fp16")  # a string is no element type
    pl.exq(x)  # an unknown operator
    print(number, tensor, t)


def options() -> None:
    kernel = pto.kernel("vec_add.pto")
    kernel.run(blocks=2, sanitize="all", timeout=1.5)
    kernel.run(sanitise="all")  # an unknown option
    kernel(blocks="2")  # a string is no number
