"""Log levels with the names of simpler. PTO_LOG_LEVEL sets the level of the task runtime."""

from __future__ import annotations

import logging

TIMING, NUL = 25, 60
DEFAULT_THRESHOLD = TIMING
DEFAULT_LOG_LEVEL = "timing"
LOG_LEVEL_CHOICES = ["debug", "info", "timing", "warn", "error", "null"]
_LEVELS = {"debug": 10, "info": 20, "timing": TIMING, "warn": 30, "warning": 30, "error": 40, "null": NUL}


def get_logger() -> logging.Logger:
    return logging.getLogger("simpler")


def _normalize_threshold(threshold: int) -> int:
    return min((n for n in _LEVELS.values() if n >= threshold), default=NUL)


def get_current_config() -> int:
    return _normalize_threshold(get_logger().getEffectiveLevel())


def parse_level(level: str | int) -> int:
    """Return a level by its name; an unknown name is the default level."""
    return level if isinstance(level, int) else _LEVELS.get(level.lower(), TIMING)


def configure_logging(log_level: str | int = DEFAULT_LOG_LEVEL) -> None:
    get_logger().setLevel(parse_level(log_level))


__all__ = [
    "DEFAULT_LOG_LEVEL",
    "DEFAULT_THRESHOLD",
    "LOG_LEVEL_CHOICES",
    "NUL",
    "TIMING",
    "configure_logging",
    "get_current_config",
    "get_logger",
    "parse_level",
]
