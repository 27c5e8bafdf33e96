"""`explain` and a run agree on what nothing orders: examples, graphs of tests, and graphs made at random."""

from __future__ import annotations

import random
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import each
from tests.sampling import EVERY
from tests.seeds import seeds

from pto.language.problems import LanguageWarning

from .agreement import Compared, comparing
from .test_touched import Stripes, overwrites

EXAMPLES = Path(__file__).parents[2] / "examples"
GRAPHS = ("03_gemm", "04_graph", "06_paged_attention")  # of the examples


def test_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Compared] = []

    def run(name: str) -> None:
        monkeypatch.setattr(sys, "argv", [name])
        with comparing(found):
            runpy.run_path(str(EXAMPLES / "python" / f"{name}.py"), run_name="__main__")

    each(run, GRAPHS)
    assert len(found) == len(GRAPHS) and not any(c.wrong or c.found for c in found), found


def test_of_graphs_with_hazards() -> None:
    x, y, z = np.ones((3, 16, 32), np.float32)
    found: list[Compared] = []
    with comparing(found), warnings.catch_warnings():
        warnings.simplefilter("ignore", LanguageWarning)
        overwrites().compile().run([x, y, z])
        for more in (0, 1):  # in a manual scope, of which explain says nothing
            Stripes.compile().run([np.ones((64, 32), np.float32), more, np.zeros((64, 32), np.float32)])
    assert not any(c.wrong for c in found), found
    assert found[0].explained == found[0].found and len(found[0].found) == 1


HEAD = """\
import pto.language as pl


@pl.jit.incore
def copy(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, 1.0)
    return b


@pl.jit.incore
def add(a: pl.Tensor, b: pl.InOut[pl.Tensor]):
    b[:] = pl.add(a, b)
    return b


@pl.jit
def graph(x: pl.Tensor, y: pl.InOut[pl.Tensor], z: pl.InOut[pl.Tensor]):
"""


def source(seed: int) -> str:
    """A graph of random calls on windows of three tensors and of one that it makes."""
    rng = random.Random(seed)
    lines = ["t = pl.create_tensor([64, 32], dtype=pl.FP32)", "t = copy(x, t)"]
    known = ["x", "y", "z", "t"]
    for _ in range(rng.randint(2, 5)):
        kernel, (a, b) = rng.choice(("copy", "add")), rng.sample(known, 2)
        while b == "x":
            a, b = rng.sample(known, 2)
        way = rng.randrange(4)
        if way == 0:
            lines.append(f"{b} = {kernel}({a}, {b})")
        elif way == 1:
            one, other = rng.randrange(0, 49, 16), rng.randrange(0, 49, 8)
            lines.append(f"{kernel}({a}[{one} : {one + 16}, :], {b}[{other} : {other + 16}, :])")
        else:
            word = ("range", "parallel")[way - 2]
            lines.append(f"for i in pl.{word}(0, 64, 16):")
            lines.append(f"    {kernel}({a}[i : i + 16, :], {b}[i : i + 16, :])")
    return HEAD + "".join(f"    {line}\n" for line in [*lines, "return z"])


@pytest.mark.seeded
def test_of_random_graphs(tmp_path: Path) -> None:
    some = 0

    def check(seed: int) -> None:
        nonlocal some
        path = tmp_path / f"graph{seed}.py"
        path.write_text(source(seed))
        function: Any = runpy.run_path(str(path))["graph"]
        found: list[Compared] = []
        with comparing(found), warnings.catch_warnings():
            warnings.simplefilter("ignore", LanguageWarning)
            function(*np.ones((3, 64, 32), np.float32))
        (compared,) = found
        some += bool(compared.found)
        assert not compared.wrong, f"{compared.wrong}\n{source(seed)}"

    each(check, seeds(range(200 if EVERY else 16)))
    assert some, "no graph has a hazard"
