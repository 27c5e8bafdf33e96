"""The only reader of environment variables. Each knob has a name, a default and a line of documentation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .isa.record import Record


class Knob(Record):
    name: str
    default: str
    doc: str
    choices: tuple[str, ...] = ()


KNOBS: dict[str, Knob] = {
    k.name: k
    for k in (
        Knob("PTO_COLOR", "auto", "colour of diagnostics", ("auto", "always", "never")),
        Knob("NO_COLOR", "", "any value switches colour off"),
        Knob("PTO_CXX", "", "C++ compiler, with options (default: g++, clang++, c++)"),
        Knob(
            "PTO_NATIVE_COMPILE",
            "auto",
            "engine native: calls that no pack has are compiled once they are slow, before the first launch "
            "(always), or never",
            ("auto", "always", "never"),
        ),
        Knob("PTO_CACHE_DIR", "", "where compiled kernels are kept (default: pto in XDG_CACHE_HOME)"),
        Knob(
            "PTO_CACHE_SHARED",
            "",
            "a cache of another user's, which is read after one's own; its owner is trusted",
        ),
        Knob("PTO_CACHE_LIMIT", "2G", "bytes of compiled kernels to keep, such as 500M; see pto cache"),
        Knob("XDG_CACHE_HOME", "", "the user's cache (default: ~/.cache)"),
        Knob(
            "XDG_RUNTIME_DIR",
            "",
            "where processes of the user meet (default: pto-UID in the temporary folder)",
        ),
        Knob("PTO_REPRODUCER_DIR", "", "where a reproducer of an internal error is written (default: here)"),
        Knob(
            "PTO_SANITIZE",
            "",
            "default of --sanitize and sanitize=: names, or all; warn: unordered tasks of Python",
        ),
        Knob("PTO_BUILD_DIR", "build_output", "where Python programs that are compiled write their folders"),
        Knob(
            "PTO_REPORT_FILE",
            "",
            "what happens to Python programs is appended to this file, as lines of JSON",
        ),
        Knob("PTO_PYPTO", "", "shadow: stand in for pypto although another package has its name"),
        Knob("PTO_SIMPLER", "", "shadow: stand in for simpler although another package has its name"),
        Knob("PTO2_RING_TASK_WINDOW", "", "task runtime: slots of the task ring (default: 65536)"),
        Knob("PTO2_RING_HEAP", "", "task runtime: bytes of the heap ring (default: 1073741824)"),
        Knob("PTO2_RING_DEP_POOL", "", "task runtime: entries of the dependency pool (default: 65536)"),
        Knob("PTO2_READY_QUEUE_SHARDS", "", "task runtime: ready queues per core type, 1 to 4 (default: 3)"),
        Knob(
            "PTO_AICPU_BUILD_GRAPH_BUILD_MODE",
            "",
            "aicpu_build_graph: 1 concurrent, 0 sequential (default: 1)",
        ),
        Knob("PTO_LOG_LEVEL", "", "messages of the task runtime: error, warn, info, debug (default: warn)"),
        Knob("PTO_LOG_FILE", "", "task runtime: messages are appended to this file"),
        Knob("PTO_NODE", "", "ranks of another launcher: a name that makes one machine stand for several"),
        Knob(
            "PTO_NODE_ADDRESS",
            "",
            "ranks on several machines: the address at which this one listens (default: that of its name)",
        ),
        Knob("PA_CASE", "", "pto runtime run: case to run, where --case is not given"),
        Knob("PA_SEQ_LEN", "", "pto runtime run: sequence lengths of a case, with commas between"),
    )
}

_overrides: dict[str, str] = {}


def get(name: str) -> str:
    """Value of a knob; a value outside its choices falls back to the default."""
    knob = KNOBS[name]
    value = _overrides.get(name, os.environ.get(name, knob.default))
    return knob.default if knob.choices and value not in knob.choices else value


@contextmanager
def override(**values: str) -> Iterator[None]:
    """Set knobs for the duration of a block."""
    for name in values:
        KNOBS[name]
    saved = dict(_overrides)
    _overrides.update(values)
    try:
        yield
    finally:
        _overrides.clear()
        _overrides.update(saved)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the duration of a block, also for native code that reads them."""
    saved = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
