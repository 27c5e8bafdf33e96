"""Which function executes which row of the table.

Family modules register executors with `@executor("name", ...)`; a regular family builds them from the
`meaning` of its rows. `tests/engine/test_coverage.py` walks the table for holes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...isa.row import Row
from .instr import Instr

#: An executor gives the results of its instruction where it has any.
Execute = Callable[[Instr], Any]

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
_BUILDERS: dict[str, Callable[[Row], Execute]] = {}
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


def builder(*names: str) -> Callable[[Callable[[Row], Execute]], Callable[[Row], Execute]]:
    """Register a function that makes the executors of the named rows from their meaning."""

    def register(function: Callable[[Row], Execute]) -> Callable[[Row], Execute]:
        for name in names:
            _BUILDERS[name] = function
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
    if found is None and row.name in _BUILDERS:
        found = _EXECUTORS[row.name] = _BUILDERS[row.name](row)
    return found
