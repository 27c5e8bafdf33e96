"""Expected results of the kernels of this folder: inputs, outputs, tolerances.

    from reference import KERNELS
    kernel = KERNELS["softmax"]
    args, expected = kernel.make(np.random.default_rng(0))
    pto.kernel(kernel.path, kernel.entry)(*args, blocks=kernel.blocks)
    for index, want in expected.items():
        np.testing.assert_allclose(args[index], want, rtol=kernel.rtol, atol=kernel.atol)

Expectations are plain NumPy in float64, independent of the kernels: no tiles, no online softmax.
`python reference.py FOLDER [NAME...]` saves inputs and expected outputs as .npy files for `pto run`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

#: Arguments of a launch in order (arrays and numbers), and the expected contents of some of them afterwards.
Case = tuple[list[Any], dict[int, np.ndarray]]


@dataclass(frozen=True)
class Kernel:
    """A kernel and how to check it. `make` gives fresh arguments; outputs hold zeros."""

    file: str
    entry: str
    make: Callable[[Generator], Case]
    rtol: float
    atol: float
    blocks: int

    @property
    def path(self) -> Path:
        return Path(__file__).parent / self.file


def vector_add(rng: Generator) -> Case:
    """11 tiles on 3 blocks, the last tile 500 long."""
    n = 10 * 2048 + 500
    a, b = (rng.standard_normal(n, np.float32) for _ in range(2))
    return [a, b, np.zeros_like(a), n], {2: a.astype(np.float64) + b}


def softmax(rng: Generator) -> Case:
    """5 row tiles on 2 blocks, the last one with 6 rows; values that overflow exp without the subtraction."""
    rows = 4 * 16 + 6
    x = (rng.standard_normal((rows, 512)) * 40 + 100).astype(np.float32)
    return [x, np.zeros_like(x), rows], {1: _softmax(x.astype(np.float64))}


def layer_norm(rng: Generator) -> Case:
    rows, eps = 7 * 16, 1e-5
    x = (rng.standard_normal((rows, 512)) * 3 + 1).astype(np.float16)
    gamma, beta = (rng.standard_normal(512, np.float32) for _ in range(2))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + eps)
    return [x, gamma, beta, np.zeros_like(x), rows, eps], {3: scaled * gamma + beta}


def gemm(rng: Generator) -> Case:
    """6 tiles of C on 4 blocks, 3 panels each: the L1 slots come in either order."""
    m, n, k = 256, 384, 384
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    return [a, b, c, m, n, k], {2: a.astype(np.float64) @ b.astype(np.float64)}


def flash_attention(rng: Generator) -> Case:
    """3 blocks of 64 queries over 192 keys."""
    length, dim, blocks = 192, 64, 3
    q, k, v = (rng.standard_normal((length, dim)).astype(np.float16) for _ in range(3))
    scale = dim**-0.5
    slots = (blocks, 4, 64, 64)
    scores, weights, partial = (
        np.zeros(slots, np.float32),
        np.zeros(slots, np.float16),
        np.zeros(slots, np.float32),
    )
    p = _softmax(q.astype(np.float64) @ k.astype(np.float64).T * scale)
    o = np.zeros((length, dim), np.float32)
    return [q, k, v, o, scores, weights, partial, length, scale], {3: p @ v.astype(np.float64)}


def topk(rng: Generator) -> Case:
    """3 rows of 2 chunks. The values of a row are all different, so its order is unique."""
    rows, cols, k = 3, 4096, 64
    x = np.stack([rng.permutation(cols) for _ in range(rows)]).astype(np.float32) / 16 - 100
    order = np.argsort(-x, axis=1)[:, :k]
    best, at = np.zeros((rows, k), np.float32), np.zeros((rows, k), np.uint32)
    return [x, best, at, rows, cols], {1: np.take_along_axis(x, order, 1).astype(np.float64), 2: order}


def quantised_matmul(rng: Generator) -> Case:
    rows, depth, cols = 256, 256, 128
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((rows, depth), (depth, cols)))
    bias = rng.integers(-100_000, 100_000, cols, np.int32)
    # FIX keeps the upper 19 bits of a scale.
    bits = (rng.uniform(1e-5, 1e-4, cols).astype(np.float32).view(np.uint32)) & np.uint32(0xFFFFE000)
    sums = x.astype(np.int64) @ w.astype(np.int64) + bias
    y = np.zeros((rows, cols), np.float16)
    return [x, w, bias, bits.astype(np.uint64), y, rows], {4: sums * bits.view(np.float32).astype(np.float64)}


def mixed_fifo(rng: Generator) -> Case:
    """20 row tiles on 2 blocks: 10 products per FIFO of 8 slots, so that it wraps around."""
    rows, blocks = 20 * 64, 2
    x = rng.standard_normal((rows, 128)).astype(np.float16)
    w = (rng.standard_normal((128, 64)) / 8).astype(np.float16)
    bias = rng.standard_normal(64, np.float32)
    z = x.astype(np.float64) @ w.astype(np.float64) + bias
    slots = np.zeros((blocks, 8, 64, 64), np.float32)
    return [x, w, bias, np.zeros((rows, 64), np.float32), slots, rows], {3: z / (1 + np.exp(-1.702 * z))}


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


KERNELS = {
    make.__name__: Kernel(f"{make.__name__}.pto", make.__name__, make, rtol, atol, blocks)
    for make, rtol, atol, blocks in (
        (vector_add, 1e-7, 1e-7, 3),
        (softmax, 2e-6, 1e-8, 2),
        (layer_norm, 1e-3, 1e-3, 3),  # f16 output
        (gemm, 1e-5, 1e-4, 4),
        (flash_attention, 5e-4, 5e-4, 3),  # f16 weights
        (topk, 0, 0, 2),
        (quantised_matmul, 1e-3, 1e-3, 2),  # f16 output
        (mixed_fifo, 1e-5, 1e-5, 2),
    )
}


def save(folder: Path, name: str) -> None:
    """Arguments as NAME-0.npy, NAME-1.npy, ...; expected outputs as NAME-expected-0.npy, ..."""
    args, expected = KERNELS[name].make(np.random.default_rng(0))
    for index, value in enumerate(args):
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}-{index}.npy", value)
    for index, value in expected.items():
        np.save(folder / f"{name}-expected-{index}.npy", value)


if __name__ == "__main__":
    names = sys.argv[2:] or list(KERNELS)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or not set(names) <= set(KERNELS):
        sys.exit(f"usage: python reference.py FOLDER [NAME...]\nnames: {', '.join(KERNELS)}")
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for each in names:
        save(Path(sys.argv[1]), each)
