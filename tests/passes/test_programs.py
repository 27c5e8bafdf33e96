"""All passes together on real programs: legal, printable, and with the results they had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.examples.test_kernels import KERNELS
from tests.sanitize import corpus

import pto

from .running import runs_alike

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.pto"))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compute_the_same(name: str) -> None:
    k = KERNELS[name]
    args, expected = k.make(np.random.default_rng(1))
    runs_alike(pto.parse(k.path), args, entry=k.entry, blocks=k.blocks)
    assert expected


@pytest.mark.parametrize("name", corpus.NAMES)
def test_correct_programs_stay_correct(name: str) -> None:
    """Programs around synchronisation: what passes leave has the same results and no race."""
    program = corpus.load(f"{name}.good")
    runs_alike(pto.parse(program.text), program.values(), sanitize="all", **program.options)
