"""F = exp(B @ W1 + B @ W2) with B = sqrt(log(A)): f16 in, f32 out."""

from __future__ import annotations

from typing import Any

import numpy as np

__outputs__ = ["f"]
RTOL = ATOL = 1e-3
ALL_CASES = {"Default": {"scale": 1 / 256}}

SIZE = 128  # of the square matrices; fixed in the kernels


def generate_inputs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    rng = np.random.default_rng(11)
    a = rng.uniform(2, 50, (SIZE, SIZE)).astype(np.float16)
    w1, w2 = (rng.uniform(-1, 2, (2, SIZE, SIZE)) * params["scale"]).astype(np.float16)
    return [("a", a), ("w1", w1), ("w2", w2), ("f", np.zeros((SIZE, SIZE), np.float32))]


def compute_golden(tensors: dict[str, Any], params: dict[str, Any]) -> None:
    a, w1, w2 = (tensors[name].astype(np.float64) for name in ("a", "w1", "w2"))
    b = np.sqrt(np.log(a))
    tensors["f"][:] = np.exp(b @ w1 + b @ w2)
