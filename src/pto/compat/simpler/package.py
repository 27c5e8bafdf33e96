"""Replacement of `simpler` itself."""

from __future__ import annotations

import importlib
from typing import Any

from .logs import DEFAULT_THRESHOLD, NUL, TIMING, get_current_config, get_logger
from .modules import MODULES

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Worker":
        return importlib.import_module("pto.compat.simpler.worker").Worker
    if f"simpler.{name}" in MODULES:
        return importlib.import_module(f"simpler.{name}")
    raise AttributeError(f"module 'simpler' has no attribute '{name}'")


__all__ = ["DEFAULT_THRESHOLD", "NUL", "TIMING", "get_current_config", "get_logger"]
