"""Levels of messages, as programs name them. What our runtime says follows PTO_LOG_LEVEL."""

from __future__ import annotations

import logging

TIMING, NUL = 25, 60
DEFAULT_THRESHOLD = TIMING
DEFAULT_LOG_LEVEL = "timing"
LOG_LEVEL_CHOICES = ("debug", "info", "timing", "warn", "error", "null")
_LEVELS = {"debug": 10, "info": 20, "timing": TIMING, "warn": 30, "warning": 30, "error": 40, "null": NUL}


def get_logger() -> logging.Logger:
    return logging.getLogger("simpler")


def get_current_config() -> int:
    return get_logger().getEffectiveLevel()


def configure_logging(level: str | int = DEFAULT_LOG_LEVEL) -> None:
    number = level if isinstance(level, int) else _LEVELS.get(level.lower(), TIMING)
    get_logger().setLevel(number)


__all__ = [
    "DEFAULT_LOG_LEVEL",
    "DEFAULT_THRESHOLD",
    "LOG_LEVEL_CHOICES",
    "NUL",
    "TIMING",
    "configure_logging",
    "get_current_config",
    "get_logger",
]
