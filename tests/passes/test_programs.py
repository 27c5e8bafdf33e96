"""All passes together on real programs: legal, printable, and with the results they had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.each import together
from tests.examples.test_kernels import KERNELS
from tests.sampling import some
from tests.sanitize import corpus

import pto
from pto.diag import has_errors
from pto.ir.facts import module_profile
from pto.isa import rows
from pto.isa.profiles import ISAS
from pto.passes import Options, compile
from pto.verifier import verify
from pto.witness import witness

from .running import check, runs_alike

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.pto"))


@together("name", KERNELS)
def test_kernels_compute_the_same(name: str) -> None:
    k = KERNELS[name]
    args, expected = k.make(np.random.default_rng(1))
    runs_alike(pto.parse(k.path), args, entry=k.entry, blocks=k.blocks)
    assert expected


#: Those that are synchronised by hand: `nan_of_infinities` is left to the passes.
_SYNCHRONISED = [n for n in corpus.NAMES if not n.startswith("rank_") and n != "nan_of_infinities"]


@together("name", some(_SYNCHRONISED, 6))
def test_correct_programs_stay_correct(name: str) -> None:
    """Programs around synchronisation: what passes leave has the same results and no race."""
    program = corpus.load(f"{name}.good")
    runs_alike(pto.parse(program.text), program.values(), sanitize="all", **program.options)


def test_every_instruction_passes() -> None:
    """A legal program for every row of the table compiles, stays legal and prints as itself."""
    refused: list[str] = []
    every = [(row, isa) for isa in ISAS for row in rows() if row.dialect != "pto" or isa in row.isas]
    for row, isa in some(every, 3, by=lambda one: (one[0].family, one[1])):
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


@together("path", EXAMPLES)
def test_examples_compile(path: Path) -> None:
    module = pto.parse(path)
    profile = module_profile(module)
    if has_errors(verify(module, profile)):
        assert "wrong" in path.name
        return
    ctx, problems = compile(module, profile, Options())
    assert not has_errors(problems)
    check(ctx)
