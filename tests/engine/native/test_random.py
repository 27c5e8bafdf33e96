"""Random programs with control flow on engine native: the bits of the reference engine, alone, on many blocks, and called
from many threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.passes.random_programs import random_program
from tests.seeds import seeds

import pto
from pto.diag import DiagnosticError
from pto.engine.entry import Launchable
from pto.engine.native import machine
from pto.engine.native.kernel import image_of
from pto.isa.profiles import ISAS

from ..kernels import KERNELS


@pytest.mark.seeded
def test_tiles_and_control_flow() -> None:
    """Tiles on top of each other, loops, branches, windows, calls; blocks one after another, as the reference has them."""
    made = [random_program(seed, ISAS[seed % len(ISAS)], wild=seed % 2 == 1) for seed in seeds(range(36))]
    modules = [pto.parse(m.text) for m in made]
    asked = [image_of(Launchable(module, None, None, True)).calls for module in modules]
    machine.functions(list(dict.fromkeys(c for calls in asked for c in calls)))
    for n, (program, module) in enumerate(zip(made, modules, strict=True)):
        blocks = 24 if n % 6 == 0 else 1
        mine, theirs = program.arguments(), program.arguments()
        kernels = pto.kernel(module, engine="native"), pto.kernel(module, engine="reference")
        said = [
            [d.code for d in kernel.run(*args, blocks=blocks).diagnostics if d.severity == "error"]
            for kernel, args in zip(kernels, (mine, theirs), strict=True)
        ]
        assert said[0] == said[1], program.text
        for got, want in zip(mine, theirs, strict=True):
            assert isinstance(got, int) or got.tobytes() == want.tobytes(), program.text


def test_a_thousand_calls_from_threads() -> None:
    case = KERNELS["softmax"]
    k = pto.kernel(pto.parse(case.path), case.entry, engine="native")
    given, want = case.make(np.random.default_rng(2))[0], case.make(np.random.default_rng(2))[0]
    pto.kernel(pto.parse(case.path), case.entry, engine="reference")(*want, blocks=case.blocks)

    def call(n: int) -> bool:
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        k(*args, blocks=case.blocks, threads=1 + n % 2)
        return all(
            a.tobytes() == b.tobytes() for a, b in zip(args, want, strict=True) if isinstance(a, np.ndarray)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(1000)))


def test_calls_that_fail_beside_others() -> None:
    """A launch that ends early on one thread leaves those of others alone."""
    case = KERNELS["vector_add"]
    k = pto.kernel(pto.parse(case.path), case.entry, engine="native")
    given, _ = case.make(np.random.default_rng(2))

    def call(n: int) -> bool:
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        if n % 2:
            args = [a[:1].copy() if isinstance(a, np.ndarray) else a for a in args]
        try:
            k(*args, blocks=case.blocks)
        except DiagnosticError as e:
            return n % 2 == 1 and e.diagnostics[0].code == "PTO-E2101"
        return n % 2 == 0

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(100)))
