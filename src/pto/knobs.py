"""The only reader of environment variables. Each knob has a name, a default and a line of documentation."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
        Knob("PTO_CACHE_DIR", "", "where compiled kernels are kept (default: pto in XDG_CACHE_HOME)"),
        Knob("XDG_CACHE_HOME", "", "the user's cache (default: ~/.cache)"),
        Knob("PTO_REPRODUCER_DIR", "", "where a reproducer of an internal error is written (default: here)"),
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
