"""`simpler` and `simpler_setup` are us, in this process: scene tests and workers run as they are.

import pto.compat.simpler       # before they are imported; `pto python script.py` does it
from simpler.worker import Worker

Orchestrations run on our task runtime, kernels on our cores (`chip.py`); chips are runs of it, side by side
in this process, and communicators are memory that they share (`orchestrator.py`). Where another package of
that name is installed, importing it is refused, as nobody can know which one is meant; `PTO_SIMPLER=shadow`
says ours.
"""

from __future__ import annotations

from ... import knobs
from .finder import install

install(shadow=knobs.get("PTO_SIMPLER") == "shadow")

__all__ = ["install"]
