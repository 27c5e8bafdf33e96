"""The dictionaries of the reference engine agree with the table of operations, and a wrong entry is found."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sampling import some

from pto.engine import elements
from pto.engine.reference import meaning as arrays
from pto.engine.reference.instr import IllegalInstruction, Instr
from pto.engine.reference.scalars import REAL
from pto.isa import encoding, meaning
from pto.isa.dtypes import DTYPES
from pto.isa.meaning import OPERATIONS
from pto.isa.scalars import WHOLE, fit

from .operations import DIVIDING, TYPES, operands, probe, truth, unlike, values
from .rows import Array, Case, column_plans


@pytest.fixture(scope="module")
def instr() -> Instr:
    case = Case(column_plans("tadd", "cpu")[0])
    return Instr(case.op, case.args, case.core, "V")


def of_arrays(i: Instr, name: str, dtype: str) -> Array:
    """The codes of a probe, computed with arrays."""
    numbers = arrays.Numbers(i, dtype)
    given = {
        letter: arrays.computed(i.decoded(dtype, v))
        for letter, v in zip(operands(name), values(name, dtype), strict=True)
    }
    with np.errstate(all="ignore"):
        found = i.encoded(np.asarray(arrays.Meaning(probe(name))(numbers, given)), dtype)
    return found.view(elements.code_dtype(dtype))


def of_numbers(name: str, dtype: str) -> Array:
    """The codes of a probe, computed one by one."""
    entries, _ = BACKENDS["real numbers" if dtype[0] == "f" else "whole numbers"]
    known = {n: make(DTYPES[dtype].bits) for n, make in entries.items()}
    function, fits = meaning.function(probe(name), tuple(operands(name)), known), fit(dtype)
    out: list[int] = []
    for given in zip(*(v.tolist() for v in values(name, dtype)), strict=True):
        try:
            out.append(encoding.encode(DTYPES[dtype], fits(function(*given))))
        except ZeroDivisionError:
            if name not in DIVIDING:
                raise
            out.append(0)  # a zero divisor
    return np.array(out, np.uint64).astype(elements.code_dtype(dtype))


def tried(backend: dict[str, Any], types: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(n, t) for n in backend for t in types if truth(n, t) is not None]


#: Backends: their dictionary, the types that they compute, and how.
BACKENDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "arrays": (arrays.OPERATIONS, TYPES),
    "whole numbers": (WHOLE, ("i32",)),
    "real numbers": (REAL, ("f32",)),
}


def evaluate(backend: str, i: Instr) -> Callable[[str, str], Array]:
    return (lambda n, t: of_arrays(i, n, t)) if backend == "arrays" else of_numbers


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_operation(backend: str, instr: Instr) -> None:
    entries, types = BACKENDS[backend]
    found = tried(entries, types)
    assert {n for n, _ in found} == set(entries)
    wrong = [(n, t) for n, t in found if unlike(n, t, evaluate(backend, instr)(n, t))]
    assert wrong == []


#: Of truth values, or as such, these are the same.
SAME = {
    "both": ("mul", "min", "minnum", "bit_and"),
    "either": ("max", "maxnum", "bit_or", "add"),
    "not_equal": ("sub", "bit_xor"),
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_entry_shows(backend: str, instr: Instr, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any operation in the place of any other with as many operands."""
    entries, types = BACKENDS[backend]
    unnoticed: list[tuple[str, str]] = []
    pairs = [
        (name, other) for name, other in itertools.permutations(entries, 2)
        if other not in SAME.get(name, ()) and OPERATIONS[other].arity == OPERATIONS[name].arity
    ]  # fmt: skip
    for name, other in some(pairs, 8, by=lambda pair: pair[0]):
        with monkeypatch.context() as patch:
            patch.setitem(entries, name, entries[other])
            if not any(_shows(backend, instr, name, t) for t in types if truth(name, t) is not None):
                unnoticed.append((name, other))
    assert not unnoticed, unnoticed


def _shows(backend: str, i: Instr, name: str, dtype: str) -> bool:
    try:
        return unlike(name, dtype, evaluate(backend, i)(name, dtype))
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, IllegalInstruction):
        return True  # of these values it is not even computed
