"""Pairs of 4-bit floats: a type of its own in every form of a program, and the same bits on every engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import pto
from pto.asm import FORMS, parse, to_text
from pto.diag import DiagnosticError
from pto.engine.elements import ARRAY_DTYPES

PROGRAM = Path(__file__).parent / "programs" / "pairs.pto"
#: The numbers of f4E2M1, by their codes without a sign.
NUMBERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def test_every_form_keeps_them() -> None:
    module = parse(PROGRAM.read_text())
    assert to_text(module).count("!pto.vreg<256x!pto.f4E2M1x2>") == 4
    for form in FORMS:
        again = parse(to_text(module, form))
        assert to_text(again) == to_text(module)
    back = to_text(pto.from_bytecode(pto.to_bytecode(module, debuginfo=True)))
    assert back.partition("func.func")[2] == to_text(module).partition("func.func")[2]


@pytest.mark.parametrize("engine", ["reference", "native", "cpp"])
def test_pointers_count_pairs(engine: str) -> None:
    if engine == "cpp" and shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler")
    rng = np.random.default_rng(5)
    given, out = (rng.integers(0, 256, 1024, np.uint8) for _ in range(2))
    wide, before = np.zeros(128, ARRAY_DTYPES["bf16"]), out.copy()
    pto.kernel(pto.parse(str(PROGRAM)), engine=engine).run(given, wide, out, 17)
    pairs = given[17 + 64 + 1 : 17 + 64 + 256 : 4]
    codes = np.stack((pairs & 0xF, pairs >> 4), 1).reshape(-1)
    values = [NUMBERS[c & 7] * (-1 if c & 8 else 1) for c in codes.tolist()]
    assert wide.astype(np.float64).tolist() == values
    assert np.signbit(wide.astype(np.float32)).tolist() == [bool(c & 8) for c in codes]
    stored = np.zeros(256, np.uint8)
    stored[2::4] = pairs
    before[3 : 3 + 253] = stored[:253]
    assert (out == before).all()


def test_pointers_to_single_elements_are_refused() -> None:
    text = (
        PROGRAM.read_text()
        .replace(
            "%next = pto.addptr %ub, %c32 : !pto.ptr<!pto.f4E2M1x2, ub> -> !pto.ptr<!pto.f4E2M1x2, ub>",
            "%next = pto.castptr %ub : !pto.ptr<!pto.f4E2M1x2, ub> -> !pto.ptr<f4E2M1FN, ub>",
        )
        .replace("%next[%c32] : !pto.ptr<!pto.f4E2M1x2, ub>", "%next[%c32] : !pto.ptr<f4E2M1FN, ub>")
    )
    with pytest.raises(DiagnosticError, match="vlds: expects source to count pairs of elements of 4 bits"):
        pto.kernel(pto.parse(text), engine="reference")
