"""All passes together on real programs: legal, printable, and with the results they had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.each import together
from tests.examples.test_kernels import KERNELS
from tests.sanitize import corpus

import pto
from pto.diag import has_errors
from pto.ir.facts import module_profile
from pto.isa import rows
from pto.isa.profiles import ISAS
from pto.passes import Options, compile
from pto.verify import verify
from pto.witness import witness

from .running import check, runs_alike

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.pto"))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compute_the_same(name: str) -> None:
    k = KERNELS[name]
    args, expected = k.make(np.random.default_rng(1))
    runs_alike(pto.parse(k.path), args, entry=k.entry, blocks=k.blocks)
    assert expected


@together("name", [name for name in corpus.NAMES if not name.startswith("rank_")])
def test_correct_programs_stay_correct(name: str) -> None:
    """Programs around synchronisation: what passes leave has the same results and no race."""
    program = corpus.load(f"{name}.good")
    runs_alike(pto.parse(program.text), program.values(), sanitize="all", **program.options)


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_passes(isa: str) -> None:
    """A legal program for every row of the table compiles, stays legal and prints as itself."""
    refused: list[str] = []
    for row in rows():
        if row.dialect == "pto" and isa not in row.isas:
            continue
        module = witness(row, isa)
        profile = module_profile(module)
        if has_errors(verify(module, profile)):
            continue
        ctx, problems = compile(module, profile, Options())
        if has_errors(problems):
            refused.append(row.name)
        else:
            check(ctx)
    assert refused == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_compile(path: Path) -> None:
    module = pto.parse(path)
    profile = module_profile(module)
    if has_errors(verify(module, profile)):
        assert "wrong" in path.name
        return
    ctx, problems = compile(module, profile, Options())
    assert not has_errors(problems)
    check(ctx)
