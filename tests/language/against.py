"""Functions of the language against NumPy in float64, on both engines, under all sanitizers: on one of the targets, in
`make matrix` on both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from tests.sampling import EVERY

Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
TARGETS = ("a3", "a5")
_ROUNDING = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 1e-3, BF16: 8e-3}


def array(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Some numbers of a type; of no type that has few of them, large ones."""
    rng = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def check(
    function: Any, given: Sequence[Array], shape: Sequence[int], dtype: Any, expected: Callable[..., Array],
    targets: Sequence[str] = TARGETS, slack: float = 4.0,
) -> None:  # fmt: skip
    """Run a function whose last parameter is its result."""
    wide = [x.astype(np.int64 if x.dtype.kind in "iu" else np.float64) for x in given]
    want = expected(*wide)
    scale = max(1.0, float(np.abs(want).max()))
    for target in targets if EVERY else [targets[len(function.__name__) % len(targets)]]:
        native, reference = np.full(shape, 7, dtype), np.full(shape, 7, dtype)
        function.run(*given, native, target=target, engine="native")
        for report in function.run(*given, reference, target=target, engine="reference", sanitize="all"):
            assert report.ok, (target, report.diagnostics)
        assert native.tobytes() == reference.tobytes(), target
        rounding = slack * _ROUNDING.get(np.dtype(dtype), 0.0)
        np.testing.assert_allclose(native.astype(np.float64), want, rtol=rounding, atol=rounding * scale)
