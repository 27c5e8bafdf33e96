"""Which function executes which row of the table.

Rows with an expression get an executor built from it, by the function for their instruction set and for what
the expression ranges over; the others name theirs with `@executor("name", ...)`.
`tests/engine/test_coverage.py` walks the table for holes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...isa.row import Row
from .instr import Instr

#: An executor gives the results of its instruction where it has any.
Execute = Callable[[Instr], Any]
Build = Callable[[Row], Execute]

#: Modules that hold executors.
MODULES = (
    "elementwise",
    "conversion",
    "compare",
    "reduce",
    "expand",
    "load_store",
    "moves",
    "matmul",
    "gather",
    "sort",
    "quantise",
    "generate",
    "part",
    "pointers",
    "fixpipe",
    "convolution",
    "configure",
    "dma",
    "comm",
    "debug",
    "cube.mad",
    "cube.moves",
    "cube.fixpipe",
    "vector.arithmetic",
    "vector.memory",
    "vector.gather",
    "vector.streams",
    "vector.predicates",
    "vector.predicate_memory",
    "vector.select",
    "vector.convert",
    "vector.reduce",
    "vector.rearrange",
    "vector.special",
    "vector.sorting",
)

_EXECUTORS: dict[str, Execute] = {}
_BUILDERS: dict[str, Build] = {}
_EXPRESSED: dict[tuple[str, str], Build] = {}
_loaded = False


def executor(*names: str) -> Callable[[Execute], Execute]:
    """Register a function for the named rows."""

    def register(function: Execute) -> Execute:
        for name in names:
            if name in _EXECUTORS:
                raise ValueError(f"two executors for {name}")
            _EXECUTORS[name] = function
        return function

    return register


def builder(*names: str) -> Callable[[Build], Build]:
    """Register a function that makes the executors of the named rows."""

    def register(function: Build) -> Build:
        _BUILDERS.update(dict.fromkeys(names, function))
        return function

    return register


def expressed(set: str, over: str = "") -> Callable[[Build], Build]:
    """Register a function that makes the executors of all rows of a set whose expression ranges over that."""

    def register(function: Build) -> Build:
        _EXPRESSED[set, over] = function
        return function

    return register


def find(row: Row) -> Execute | None:
    """The executor of a row; None where it has none."""
    global _loaded
    if not _loaded:
        for module in MODULES:
            import_module(f"{__package__}.{module}")
        _loaded = True
    found = _EXECUTORS.get(row.name)
    if found is None:
        build = _BUILDERS.get(row.name) or (_EXPRESSED.get((row.set, row.over)) if row.expr else None)
        if build is not None:
            found = _EXECUTORS[row.name] = build(row)
    return found
