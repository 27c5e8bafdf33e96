"""Random programs: executed, compiled for every engine and written with NumPy they give the same bits, sanitizers
have nothing to say, and every stage prints as a program that reads back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.language import fixed_points, mutants, random_programs
from tests.sampling import EVERY
from tests.seeds import seeds

import pto.language as pl
from pto.diag import DiagnosticError


@pytest.mark.seeded
def test_random_programs() -> None:
    for seed in seeds(range(4 if EVERY else 1)):
        check(seed)


@pytest.mark.seeded
def test_mutants_are_refused_with_diagnostics() -> None:
    """Any text in a function gives a program or a diagnostic."""
    for base in seeds(range(4 if EVERY else 1)):
        case = random_programs.make(base)
        for n in range(12):
            text = mutants.mutant(case.program, Random(base * 12 + n))
            try:
                pl.parse(text).lower(*case.args)
            except DiagnosticError as e:
                assert e.diagnostics
            except Exception as e:
                raise AssertionError(text) from e


def check(seed: int) -> None:
    case = random_programs.make(seed)
    ins = case.args[:2]
    wanted, native, reference, executed = ([x.copy() for x in case.args[2:]] for _ in range(4))
    try:
        with np.errstate(all="ignore"):
            case.numpy(*ins, *wanted, np, wanted[0].dtype.type)
        case.kernel.interpret(*ins, *executed)
        case.kernel.run(*ins, *native, engine="native")
        reports = case.kernel.run(*ins, *reference, engine="reference", sanitize="all")
        assert [str(d) for d in reports.diagnostics if d.severity == "error"] == []
        for name, found in (("interpret", executed), ("native", native), ("reference", reference)):
            for a, b in zip(wanted, found, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)
        fixed_points.check(case.kernel, *ins, *native)
    except Exception as e:
        raise AssertionError(f"seed {seed}\n{case.text}") from e
