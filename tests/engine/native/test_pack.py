"""The pack of the package: the frequent calls of programs, so that no compiler is needed."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import pto
from pto import runtime
from pto.engine.native import machine, packs

from ..kernels import EXAMPLES, KERNELS

pytestmark = pytest.mark.skipif(packs.of_package() is None, reason="set up without a pack")


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_CXX", "/nowhere/c++")
    monkeypatch.setattr(machine, "_found", {})


@pytest.mark.parametrize("name", KERNELS)
def test_examples_need_no_compiler(name: str) -> None:
    case = KERNELS[name]
    args, expected = case.make(np.random.default_rng(1))
    pto.kernel(pto.parse(case.path), case.entry, engine="native")(*args, blocks=case.blocks)
    for index, wanted in expected.items():
        np.testing.assert_allclose(args[index], wanted, rtol=case.rtol, atol=case.atol)


def test_task_graphs_of_programs_need_none() -> None:
    add = runtime.kernel(EXAMPLES / "01_vec_add.pto", "in in out")
    a, b = (np.full((64, 128), n, np.float32) for n in (1, 2))
    c = np.zeros_like(a)
    runtime.run(lambda rt: rt.submit(add, a, b, c))
    assert (c == 3).all()


def test_other_libraries_do_not_find_the_machine() -> None:
    """Else one that was compiled from our headers for other vectors would call its functions."""
    packs.library()
    assert not hasattr(ctypes.CDLL(None), "pto_vm_own")


def test_a_call_that_the_pack_does_not_have_is_named() -> None:
    with pytest.raises(pto.DiagnosticError) as e:
        machine.functions(["float& a0; a0 = a0 + 12345.0f;"])
    (problem,) = e.value.diagnostics
    assert problem.code == "PTO-E2401" and "12345.0f" in str(problem.notes)
