"""C = A @ B for a batch of row-major matrices of f32."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__outputs__ = ["c"]
RTOL = ATOL = 1e-4
ALL_CASES = {
    "Default": {"batch": 2, "m": 256, "k": 256, "n": 256},
    "Small": {"batch": 1, "m": 64, "k": 192, "n": 128},
}
DEFAULT_CASE = "Default"


def generate_inputs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    rng = np.random.default_rng(7)
    batch, m, k, n = (params[name] for name in ("batch", "m", "k", "n"))
    a = rng.standard_normal((batch, m, k), np.float32)
    b = rng.standard_normal((batch, k, n), np.float32)
    c = np.zeros((batch, m, n), np.float32)
    sizes = [(name, ctypes.c_int64(params[name])) for name in ("batch", "m", "k", "n")]
    return [("a", a), ("b", b), ("c", c), *sizes]


def compute_golden(tensors: dict[str, Any], params: dict[str, Any]) -> None:
    tensors["c"][:] = tensors["a"].astype(np.float64) @ tensors["b"].astype(np.float64)
