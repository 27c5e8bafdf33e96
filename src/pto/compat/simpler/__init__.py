"""Provide `simpler` and `simpler_setup` from this package in this process, so that scene tests and workers
run unchanged.

Orchestrations run on the task runtime of this package, and kernels on its cores (`chip.py`). Several chips
are concurrent runs in this process, and communicators are memory that they share (`orchestrator.py`). If
another package of that name is installed, the import fails, because the intended package is unknown;
`PTO_SIMPLER=shadow` selects this package.
"""

from __future__ import annotations

from ... import knobs
from .finder import install

install(shadow=knobs.get("PTO_SIMPLER") == "shadow")

__all__ = ["install"]
