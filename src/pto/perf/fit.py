"""Fit the parameters of a machine to measurements.

A measurement is a function of the machine that returns the prediction of the model, and the measured number.
Parameters move by factors, so that rates and latencies have the same weight. A penalty keeps them near their
initial values, so parameters without influence on the measurements do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..isa.timing import PARAMETERS, Machine

#: Parameters that a fit does not change.
FIXED = ("mhz", "aic", "aiv", "depth", "l2")
#: Weight of a parameter that moved by a factor of e, relative to an error of 100 %.
_PULL = 0.03
_STEPS = 12


class Measurement(NamedTuple):
    """A measured number, and the prediction of the model for a machine, in the same unit."""

    name: str
    truth: float
    model: Callable[[Machine], float]


class Fit(NamedTuple):
    machine: Machine
    before: list[float]  # relative errors, one per measurement
    after: list[float]
    changed: tuple[str, ...]


def errors(measurements: Sequence[Measurement], machine: Machine) -> list[float]:
    return [m.model(machine) / m.truth - 1 for m in measurements]


def fit(measurements: Sequence[Measurement], machine: Machine, names: Sequence[str] = ()) -> Fit:
    """Return the parameters with the smallest errors. Without names, fit all parameters that affect the
    measurements."""
    import numpy as np

    unknown = [n for n in names if n not in PARAMETERS]
    if unknown:
        raise ValueError(f"unknown parameter {unknown[0]!r}; expected one of {', '.join(PARAMETERS)}")
    start = errors(measurements, machine)
    able = [n for n in (names or PARAMETERS) if n not in FIXED and machine.values[n] > 0]
    slopes = {n: _slope(measurements, machine, n, start) for n in able}
    free = [n for n in able if max(map(abs, slopes[n]), default=0.0) > 1e-3]
    if not free:
        return Fit(machine, start, start, ())

    def at(logs: np.ndarray) -> Machine:
        return machine.with_values(
            {n: machine.values[n] * float(np.exp(v)) for n, v in zip(free, logs, strict=True)},
            "fitted: to measurements of the user",
        )

    def cost(residual: np.ndarray, logs: np.ndarray) -> float:
        return float((residual**2).sum() + _PULL**2 * (logs**2).sum())

    logs = np.zeros(len(free))
    found = np.array(start)
    damping = 0.1
    for _ in range(_STEPS):
        here = at(logs)
        jacobian = np.array([_slope(measurements, here, n, list(found)) for n in free]).T
        # errors, followed by the distances of parameters from their initial values
        left = np.vstack([jacobian, _PULL * np.eye(len(free))])
        right = np.concatenate([found, _PULL * logs])
        normal = left.T @ left
        for _ in range(6):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -left.T @ right)
            tried = np.clip(logs + np.clip(step, -0.7, 0.7), -3.0, 3.0)
            residual = np.array(errors(measurements, at(tried)))
            if cost(residual, tried) < cost(found, logs):
                break
            damping *= 4
        else:
            break
        gained = cost(found, logs) - cost(residual, tried)
        logs, found, damping = tried, residual, max(damping / 4, 1e-4)
        if gained < 1e-7:
            break
    moved = tuple(n for n, v in zip(free, logs, strict=True) if abs(v) > 1e-3)
    best = machine.with_values({n: at(logs).values[n] for n in moved}, "fitted: to measurements of the user")
    return Fit(best, start, errors(measurements, best), moved)


def _slope(
    measurements: Sequence[Measurement], machine: Machine, name: str, now: Sequence[float]
) -> list[float]:
    """Return the derivative of the errors with respect to the logarithm of a parameter."""
    by = 0.02
    moved = machine.with_values({name: machine.values[name] * (1 + by)})
    return [(after - before) / by for before, after in zip(now, errors(measurements, moved), strict=True)]
