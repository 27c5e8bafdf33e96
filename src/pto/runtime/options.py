"""Options of a run: arguments, then the environment, then defaults; checked for values that cannot work."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .. import knobs
from ..diag import Diagnostic, DiagnosticError
from ..signals import interrupts

MAX_BLOCK_DIM = 24

#: Variables of the rings: option, smallest value, True if it has to be a power of two.
_RINGS = {
    "PTO2_RING_TASK_WINDOW": ("task_window", 4, True),
    "PTO2_RING_HEAP": ("heap", 1024, False),
    "PTO2_RING_DEP_POOL": ("dep_pool", 16, False),
}
#: Numeric options, with the smallest and the largest value.
_NUMBERS = {
    "block_dim": (1, MAX_BLOCK_DIM), "schedulers": (1, 1024), "host_threads": (1, 1024), "shards": (1, 1024),
    "task_window": (4, 1 << 31), "heap": (1024, 1 << 46), "dep_pool": (16, 1 << 31),
    "tensormap_pool": (16, 1 << 31), "stall_seconds": (1, 1 << 31), "seed": (0, (1 << 64) - 1),
}  # fmt: skip
_LEVELS = {"silent": -1, "error": 0, "warn": 1, "info": 2, "debug": 3}


def options(
    given: Mapping[str, Any],
    warn: Callable[[str], object],
    info: Callable[[str], object] = lambda text: None,
) -> dict[str, Any]:
    """Return the options of a run: arguments, then the environment, then defaults. Reject invalid ones."""
    made: dict[str, Any] = {}
    for name, (option, least, power) in _RINGS.items():
        value = _ring(name, least, power, warn)
        if value is not None:
            made[option] = value
    if made:
        sizes = {"task_window": 65536, "heap": 1 << 30, "dep_pool": 65536, **made}
        info("Ring buffer overrides: " + " ".join(f"{name}={size}" for name, size in sizes.items()))
    shards = knobs.get("PTO2_READY_QUEUE_SHARDS")
    if shards:
        if 1 <= _number(shards) <= 4:
            made["shards"] = _number(shards)
        else:
            warn(f"PTO2_READY_QUEUE_SHARDS={shards} is invalid or out of range [1,4], using default 3")
    level = knobs.get("PTO_LOG_LEVEL")
    if level and level.lower() not in _LEVELS:
        warn(f"PTO_LOG_LEVEL={level} invalid (must be one of {', '.join(_LEVELS)}), ignored")
    made.update((k, v) for k, v in given.items() if v is not None)
    made["host_threads"] = made.get("host_threads") or processors()
    # In other threads, and with a signal handler of the user, Ctrl-C does not stop this run.
    here = threading.current_thread() is threading.main_thread()
    made["interrupts"] = here and interrupts(signal.getsignal(signal.SIGINT))
    _check(made)
    return made


def processors() -> int:
    """Return the number of threads that a process may use: PTO_THREADS, or its processors."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(0, min(_number(knobs.get("PTO_THREADS")), 1024)) or own


def _ring(name: str, least: int, power: bool, warn: Callable[[str], object]) -> int | None:
    text = knobs.get(name)
    if not text:
        return None
    value = _number(text)
    if value < least or (power and value & (value - 1)):
        what = f"a power of 2, >= {least}" if power else f"a valid integer >= {least}"
        warn(f"{name}={text} invalid (must be {what}), ignored")
        return None
    return value


def _number(text: str) -> int:
    """Return the number in a variable, or -1."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _check(made: dict[str, Any]) -> None:
    problems: list[str] = []
    for name, (least, most) in _NUMBERS.items():
        if name not in made:
            continue
        value = made[name]
        if not hasattr(value, "__index__"):
            problems.append(f"{name} ({value!r}) must be a whole number")
            continue
        made[name] = value = int(value.__index__())
        if value < least and name != "block_dim":
            problems.append(f"{name} ({value}) must be at least {least}")
        elif not least <= value <= most:
            problems.append(f"{name} ({value}) must be in range [{least}, {most}]")
        elif name == "task_window" and value & (value - 1):
            problems.append(f"{name} ({value}) must be a power of 2")
    if problems:
        raise DiagnosticError([Diagnostic("PTO-E2621", text) for text in problems])


def log_level() -> int:
    """Return the level of PTO_LOG_LEVEL."""
    return _LEVELS.get((knobs.get("PTO_LOG_LEVEL") or "warn").lower(), _LEVELS["warn"])


def log_file() -> Callable[[int, str], object] | None:
    """Return a function that appends lines to the file PTO_LOG_FILE; None without such a file."""
    path = knobs.get("PTO_LOG_FILE")
    if not path:
        return None

    def append(level: int, text: str) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    try:
        open(path, "a", encoding="utf-8").close()
    except OSError as e:
        message = f"PTO_LOG_FILE: cannot write '{path}': {e.strerror}"
        raise DiagnosticError([Diagnostic("PTO-E2621", message)]) from None
    return append


def concurrent_build() -> bool:
    """Return True if aicpu_build_graph runs tasks while it builds the graph."""
    mode = (knobs.get("PTO_AICPU_BUILD_GRAPH_BUILD_MODE") or "1").strip().lower()
    if mode in ("sequential", "concurrent"):
        return mode == "concurrent"
    try:
        return int(mode) != 0
    except ValueError:
        warn(f"PTO_AICPU_BUILD_GRAPH_BUILD_MODE={mode} invalid (0, sequential, 1 or concurrent), using 1")
        return True


def info(text: str) -> None:
    """Print a note about the options of a run of a folder, at log level info."""
    if log_level() >= _LEVELS["info"]:
        print(f"[INFO] options: {text}")


def warn(text: str) -> None:
    """Warn about an invalid variable."""
    print(f"pto runtime: {text}", file=sys.stderr)
