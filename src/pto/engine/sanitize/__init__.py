"""Sanitizers: what is wrong with a program although it runs."""

from __future__ import annotations

from typing import Any


def observe(profile: Any, sanitize: Any, shadow: Any, memory_map: Any, result: Any) -> Any:
    return None
