"""The PTO2 task runtime from Python: graphs of kernels, their runs, and pictures of them."""

from __future__ import annotations

from .session import Hazard, Kernel, Run, Runtime, kernel, run

__all__ = ["Hazard", "Kernel", "Run", "Runtime", "kernel", "run"]
