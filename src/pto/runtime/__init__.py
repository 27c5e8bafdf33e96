"""The PTO2 task runtime from Python: graphs of kernels, their runs, and pictures of them."""

from __future__ import annotations

from ..perf.hazards import Hazard
from .durations import TaskInfo
from .graph import Graph
from .kernels import Kernel, kernel
from .ranks import RankRuns, ranks
from .runs import Run, run
from .session import Runtime
from .variations import what_if

__all__ = [
    "Graph",
    "Hazard",
    "Kernel",
    "RankRuns",
    "Run",
    "Runtime",
    "TaskInfo",
    "kernel",
    "ranks",
    "run",
    "what_if",
]
