"""Replacement of `pypto` itself: element types, log levels, and submodules."""

from __future__ import annotations

import enum
from typing import Any

from ...diag import DiagnosticError
from ...language.dtypes import DATA_TYPES, DataType
from .refused import missing

__version__ = "0.1.0"

Error = InternalError = DiagnosticError
globals().update({f"DT_{name}": dtype for name, dtype in DATA_TYPES.items()})


class LogLevel(enum.IntEnum):
    """Log levels of pypto. This package reports all errors at every level."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


_level = [LogLevel.ERROR]


def set_log_level(level: LogLevel) -> None:
    _level[0] = LogLevel(level)


def get_log_level() -> LogLevel:
    return _level[0]


_set_thread_log_level = set_log_level


def _clear_thread_log_level() -> None:
    _level[0] = LogLevel.ERROR


def __getattr__(name: str) -> Any:
    return missing("pypto", name)


__all__ = ["DataType", "Error", "InternalError", "LogLevel", "get_log_level", "set_log_level"]
