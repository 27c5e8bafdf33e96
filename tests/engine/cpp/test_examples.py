"""Every kernel of examples/kernels compiled: the results of the reference engine.

Elements are the same bit for bit, except behind exp and sums of products, where the order of additions and
the last bits of a transcendental function are free.
"""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto

FOLDER = Path(__file__).parents[3] / "examples" / "kernels"


def _cases() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("kernels_reference", FOLDER / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.KERNELS


KERNELS = _cases()


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    """All kernels, compiled two at a time."""

    def build(name: str) -> Any:
        return pto.kernel(pto.parse(KERNELS[name].path), KERNELS[name].entry, engine="cpp")

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(KERNELS, pool.map(build, KERNELS), strict=True))


def test_no_kernel_is_forgotten() -> None:
    assert {k.file for k in KERNELS.values()} == {p.name for p in FOLDER.glob("*.pto")}


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_is_as_interpreted(built: dict[str, Any], name: str) -> None:
    case = KERNELS[name]
    args, expected = case.make(np.random.default_rng(1))
    exact, _ = case.make(np.random.default_rng(1))
    built[name](*args, blocks=case.blocks, threads=2)
    pto.kernel(pto.parse(case.path), case.entry)(*exact, blocks=case.blocks)
    for index, wanted in expected.items():
        np.testing.assert_allclose(args[index], wanted, rtol=case.rtol, atol=case.atol)
    for got, want in zip(args, exact, strict=True):
        if hasattr(got, "shape"):
            assert np.array_equal(got, want)
