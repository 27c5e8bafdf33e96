"""What stands for `pypto.debug`: names that say what to use instead."""

from __future__ import annotations

from typing import Any

from .refused import missing


def __getattr__(name: str) -> Any:
    return missing("pypto.debug", name)
