"""Whatever happens to a kernel's text, running it ends with results or diagnostics: no exception, no hang."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import numpy as np
import pytest

import pto
from pto import DiagnosticError

KERNELS = Path(__file__).parents[2] / "examples" / "kernels"
PROGRAMS = {"vector_add": None, "softmax": None, "gemm": None, "mixed_fifo": None}
NUMBERS = ("0", "1", "2", "3", "7", "16", "63", "64", "128", "4096", "-1", "65536", "2147483648")
OPTIONS: list[dict[str, object]] = [
    {"sanitize": "all"}, {"schedule": 3}, {"shadow": "f64", "memory_map": True}, {"sanitize": "all", "schedule": 5},
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """A few lines lost, doubled or exchanged, a few numbers changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        at, choice = rng.randrange(len(lines)), rng.random()
        if choice < 0.35:
            del lines[at]
        elif choice < 0.5:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif choice < 0.6:
            lines.insert(at, lines[at])
        else:
            numbers = list(re.finditer(r"\b\d+\b", lines[at]))
            if numbers:
                m = rng.choice(numbers)
                lines[at] = lines[at][: m.start()] + rng.choice(NUMBERS) + lines[at][m.end() :]
    return "\n".join(lines) + "\n"


def values(kernel: object) -> list[object]:
    """An array or a number for every argument."""
    found: list[object] = []
    for argument in kernel.args:  # type: ignore[attr-defined]
        if argument.type.kind == "ptr":
            from pto.engine.memory import array_of

            found.append(np.ones(1 << 14, array_of(str(argument.type.dtype))))
        else:
            found.append(128)
    return found


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_damaged_kernel_ends_well(name: str, checked: bool) -> None:
    text = (KERNELS / f"{name}.pto").read_text(encoding="utf-8")
    rng = random.Random(f"{name} {checked}")
    ran = 0
    for _ in range(40):
        try:
            kernel = pto.kernel(pto.parse(mutated(text, rng)), check=checked, engine="reference")
            kernel.run(*values(kernel), out=io.StringIO(), max_steps=20_000, **rng.choice(OPTIONS))  # type: ignore[arg-type]
            ran += 1
        except DiagnosticError as e:
            assert e.diagnostics
    assert ran > 5, "hardly any mutant ran: the test shows nothing"
