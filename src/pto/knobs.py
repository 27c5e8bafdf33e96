"""Registry of environment variables, and their only reader. Each knob has a name, a default and a line of
documentation."""

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
        Knob("PTO_COLOR", "auto", "color of diagnostics", ("auto", "always", "never")),
        Knob("NO_COLOR", "", "any value switches color off"),
        Knob("PTO_CXX", "", "C++ compiler, with options (default: g++, clang++, c++)"),
        Knob("PTO_CXXFLAGS", "", "options for C++ kernels and orchestrations, after ours: -g, -O0, -DNAME"),
        Knob(
            "PTO_NATIVE_COMPILE",
            "auto",
            "engine native: compile calls that its packs lack when they are slow (auto), before the first "
            "launch (always), or never",
            ("auto", "always", "never"),
        ),
        Knob("PTO_CACHE_DIR", "", "folder of compiled kernels (default: pto in XDG_CACHE_HOME)"),
        Knob(
            "PTO_CACHE_SHARED",
            "",
            "a cache of another user, which is searched after the cache of this user; its owner is trusted",
        ),
        Knob("PTO_CACHE_LIMIT", "2G", "bytes of compiled kernels to keep, such as 500M; see pto cache"),
        Knob("XDG_CACHE_HOME", "", "cache folder of the user (default: ~/.cache)"),
        Knob(
            "XDG_RUNTIME_DIR",
            "",
            "folder of sockets of the user (default: pto-UID in the temporary folder)",
        ),
        Knob(
            "PTO_REPRODUCER_DIR",
            "",
            "folder for reproducers of internal errors (default: the current folder)",
        ),
        Knob(
            "PTO_SANITIZE",
            "",
            "default of --sanitize and sanitize=: names or all; warn reports unordered tasks of Python",
        ),
        Knob("PTO_SAMPLE", "16", "default of --sample: blocks of each kind that sanitizers check, or all"),
        Knob("PTO_STRICT_UNDEF", "", "any value is the default of --strict-undef"),
        Knob("PTO_BUILD_DIR", "build_output", "folder for the output of compiled Python programs"),
        Knob(
            "PTO_REPORT_FILE",
            "",
            "append the events of Python programs to this file, as lines of JSON",
        ),
        Knob("PTO_PYPTO", "", "shadow: replace pypto even if another package of that name is installed"),
        Knob("PTO_SIMPLER", "", "shadow: replace simpler even if another package of that name is installed"),
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
        Knob("PTO_LOG_FILE", "", "task runtime: append messages to this file"),
        Knob("PTO_THREADS", "", "threads of a process for tasks (default: its processors)"),
        Knob("PTO_NODE", "", "ranks of another launcher: a name that makes one machine stand for several"),
        Knob(
            "PTO_NODE_ADDRESS",
            "",
            "ranks on several machines: address at which this machine listens (default: that of its name)",
        ),
        Knob("PA_CASE", "", "pto runtime run: the case to run without --case"),
        Knob("PA_SEQ_LEN", "", "pto runtime run: sequence lengths of a case, separated by commas"),
    )
}

_overrides: dict[str, str] = {}


def get(name: str) -> str:
    """Return the value of a knob. A value outside its choices falls back to the default."""
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
