"""f = (a + b + 1) * (a + b + 2) + (a + b), element by element."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__outputs__ = ["f"]
RTOL = ATOL = 1e-5
ALL_CASES = {"Default": {"rows": 128}, "Small": {"rows": 5}}

COLS = 128  # of a tile of the kernels


def generate_inputs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    rng = np.random.default_rng(5)
    n = params["rows"] * COLS
    a, b = rng.uniform(-2, 2, (2, n)).astype(np.float32)
    return [("a", a), ("b", b), ("f", np.zeros(n, np.float32)), ("n", ctypes.c_int64(n))]


def compute_golden(tensors: dict[str, Any], params: dict[str, Any]) -> None:
    s = tensors["a"].astype(np.float64) + tensors["b"]
    tensors["f"][:] = (s + 1) * (s + 2) + s
