"""A script of a user of `pto.language`, for type checkers alone: annotations, operators and results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import pto
import pto.language as pl
import pto.language.distributed as pld

ROWS, COLS = 64, 128
N = pl.dynamic("N")


@pl.jit
def scaled(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[ROWS, N * 2], pl.FP32],
    factor: pl.Scalar[pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    both: pl.InOut[pl.Tensor],
) -> pl.Tensor:
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(0, ROWS, 16):
            x = pl.load(a, [r, 0], [16, COLS])
            y = pl.load(
                b, [r, 0], [16, COLS], valid_shape=[pl.min(16, ROWS - r), COLS], target_memory=pl.Mem.Vec
            )
            total = pl.exp(x + y * factor)
            total = pl.add(total, pl.row_expand_mul(total, pl.row_sum(total)))
            total = pl.add(2.0, total)
            half = pl.cast(total, pl.FP16, mode="rint")
            out = pl.store(pl.cast(half, pl.FP32), [r, 0], out)
    return out


@pl.jit.incore
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]) -> pl.Tensor:
    return pl.store(pl.matmul(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16])), [0, 0], c)


@pl.program
class Model:
    @pl.function(type=pl.FunctionType.InCore)
    def core(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor:
        return pl.store(pl.abs(pl.load(x, [0, 0], [16, 16])), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor:
        return self.core(x, y)


def rank(
    data: pld.DistributedTensor[[1, COLS], pl.FP32], flags: pld.DistributedTensor[[4], pl.INT32]
) -> None:
    pld.system.notify(flags, peer=1, offsets=[0], value=1)
    pl.store(pld.remote_load(data, 1, [0, 0], [1, COLS]), [0, 0], data)


def kinds(tensor: pl.Tensor, tile: pl.Tile) -> None:
    """The kinds of results: a mistake in one of them is reported below."""
    stored: pl.Tensor = pl.store(pl.exp(tile), [0, 0], tensor)
    scratch: pl.Tile = pl.row_sum(pl.matmul(tile, pl.load(tensor, [0, 0], [16, 16])))
    created: pl.Tensor = pl.add(stored, pl.tensor.create([16, 16], dtype=pl.FP32))
    print(created, scratch, pl.read(stored, [0, 0]) > 0, pl.micro.vlds(tile))


def run(x: npt.NDArray[np.float32]) -> float:
    out = np.zeros_like(x)
    scaled(x, x, 2.0, out, out)
    print(scaled.explain(x, x, 2.0, out, out), scaled.name)
    module = pto.parse("vec_add.pto")
    for d in pto.verify(module, target="a3"):
        print(d.code, d.message)
    print(pto.to_text(module), len(pto.to_bytecode(module)))
    pto.kernel(module, "vec_add")(x, x, out)
    return float(out[0, 0])
