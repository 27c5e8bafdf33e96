"""Objects: machine code with the bits of engine native, read by the tools of the system, called from C, run without its
source; what is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.engine.native.test_native import CASES, ready

import pto
from pto.driver import Options
from pto.engine.native import objects

pytest.importorskip("llvmlite")
EXAMPLES = Path(__file__).parents[2] / "examples"
VEC_ADD = EXAMPLES / "01_vec_add.pto"


@cache
def made(name: str, form: str = "so") -> bytes:
    """A case of engine native as an object."""
    module = pto.parse(CASES[name][0])
    target = pto.kernel(module, CASES[name][1]).profile
    return objects.emitted(module, target, Options(), form, "k.so")


@pytest.mark.parametrize("name", CASES)
def test_as_on_engine_native(name: str, tmp_path: Path) -> None:
    ready()
    program, entry, given, blocks = CASES[name]
    (tmp_path / "k.so").write_bytes(made(name))
    blocks = 24 if name == "vector_add" else blocks
    sets = [[a.copy() if isinstance(a, np.ndarray) else a for a in given] for _ in range(2)]
    pto.kernel(tmp_path / "k.so", entry)(*sets[0], blocks=blocks, threads=2)
    pto.kernel(pto.parse(program), entry, engine="native")(*sets[1], blocks=blocks)
    for mine, theirs in zip(*sets, strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == theirs.tobytes()
