"""Registry of the functions that execute the rows of the table.

For a row with an expression, a function makes the executor; it is registered by the instruction set of the
row and the range (`over`) of the expression. Other rows name an algorithm of `isa/algorithms.py`;
`@executor("sort blocks")` implements one for all rows that name it. `tests/engine/test_coverage.py` checks
that all rows have an executor.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...isa.algorithms import kind_of
from ...isa.row import Row
from .instr import Instr

#: An executor returns the results of its instruction, if it has any.
Execute = Callable[[Instr], Any]
Build = Callable[[Row], Execute]

#: The modules with executors.
MODULES = (
    "elementwise",
    "conversion",
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

#: Functions that make executors: by algorithm, and by instruction set and range of the expression.
_ALGORITHMS: dict[str, Build] = {}
_EXPRESSED: dict[tuple[str, str], Build] = {}
#: Executors that were made, by row.
_EXECUTORS: dict[str, Execute] = {}


def executor(algorithm: str) -> Callable[[Execute], Execute]:
    """Register a function that performs all kinds of an algorithm."""

    def register(function: Execute) -> Execute:
        builder(algorithm)(lambda row: function)
        return function

    return register


def builder(algorithm: str) -> Callable[[Build], Build]:
    """Register a function that makes the executors of rows with an algorithm."""

    def register(function: Build) -> Build:
        if algorithm in _ALGORITHMS:
            raise ValueError(f"two executors for {algorithm}")
        _ALGORITHMS[algorithm] = function
        return function

    return register


def expressed(set: str, over: str = "") -> Callable[[Build], Build]:
    """Register a function that makes the executors of all rows of an instruction set whose expressions have
    the range `over`.
    """

    def register(function: Build) -> Build:
        _EXPRESSED[set, over] = function
        return function

    return register


def known() -> frozenset[str]:
    """Return the algorithms that have an executor."""
    for module in MODULES:
        _load(module)
    return frozenset(_ALGORITHMS)


def find(row: Row) -> Execute | None:
    """Return the executor of a row; None if it has none. Modules are loaded until one of them has it."""
    found = _EXECUTORS.get(row.name)
    if found is None:
        build = _builder(row)
        for module in MODULES:
            if build is not None:
                break
            _load(module)
            build = _builder(row)
        if build is not None:
            found = _EXECUTORS[row.name] = build(row)
    return found


def _builder(row: Row) -> Build | None:
    return _EXPRESSED.get((row.set, row.over)) if row.expr else _ALGORITHMS.get(kind_of(row)[0])


def _load(module: str) -> None:
    import_module(f"{__package__}.{module}")
