"""Every kernel of examples/kernels compiled: the results of the reference engine.

Elements are the same bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling import some

import pto

from ..kernels import EXAMPLES, KERNELS


def test_no_kernel_is_forgotten() -> None:
    assert {k.file for k in KERNELS.values()} == {p.name for p in (EXAMPLES / "kernels").glob("*.pto")}


@pytest.mark.parametrize("name", some(KERNELS, 3))
def test_compiled_is_as_interpreted(name: str) -> None:
    case = KERNELS[name]
    args, expected = case.make(np.random.default_rng(1))
    exact, _ = case.make(np.random.default_rng(1))
    pto.kernel(pto.parse(case.path), case.entry, engine="cpp")(*args, blocks=case.blocks, threads=2)
    pto.kernel(pto.parse(case.path), case.entry, engine="reference")(*exact, blocks=case.blocks)
    for index, wanted in expected.items():
        np.testing.assert_allclose(args[index], wanted, rtol=case.rtol, atol=case.atol)
    for got, want in zip(args, exact, strict=True):
        if hasattr(got, "shape"):
            assert np.array_equal(got, want)
