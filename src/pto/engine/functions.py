"""Functions of floats from the compiled module. The reference engine uses the functions of C++, so both have
the same bits (native/include/pto/core/math.hpp).

For f32 numbers, `exp`, `log` and `power` return f32. With `wide` they return f64 before rounding to f32, for
elements below 32 bits that round once. `number` is any function of one or two Python floats.
"""

from __future__ import annotations

import numpy as np

from . import elements
from .elements import Array


def exp(x: Array, wide: bool = False) -> Array:
    return elements.loops().exp_f32(_single(x), wide).reshape(x.shape)


def log(x: Array, wide: bool = False) -> Array:
    return elements.loops().log_f32(_single(x), wide).reshape(x.shape)


def power(x: Array, y: Array, wide: bool = False) -> Array:
    """Return powers of f32 numbers."""
    x, y = np.broadcast_arrays(x, y)
    return elements.loops().pow_f32(_single(x), _single(y), wide).reshape(x.shape)


def power_f64(x: Array, y: Array) -> Array:
    x, y = np.broadcast_arrays(x, y)
    given = (np.ascontiguousarray(a, np.float64).ravel() for a in (x, y))
    return elements.loops().pow_f64(*given).reshape(x.shape)


def number(name: str, single: bool, x: float, y: float = 0.0) -> float:
    """Return a function of f64 numbers, or of f32 ones."""
    return elements.loops().number(name, x, y, single)


def _single(x: Array) -> Array:
    return np.ascontiguousarray(x, np.float32).ravel()
