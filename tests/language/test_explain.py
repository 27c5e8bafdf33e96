"""`k.explain(...)`: the graph as far as it is known before a run, memory and flags."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import pto.language as pl

X = np.zeros((64, 64), np.float32)


@pl.jit.incore
def double(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    b[:] = pl.add(a, a)
    return b


@pl.jit.incore
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    c[:] = pl.matmul(a, b)
    return c


@pl.jit
def graph(x: pl.Tensor, flags: pl.Tensor, y: pl.Out[pl.Tensor]):
    now = pl.create_tensor([64, 64], dtype=pl.FP32)
    now = double(x, now)
    for _ in pl.range(3):
        after = pl.create_tensor([64, 64], dtype=pl.FP32)
        after = product(now, x, after)
        now = after
    for r in pl.parallel(0, 64, 16):
        if pl.read(flags, [r]) > 0:
            double(now[r : r + 16, :], y[r : r + 16, :])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="last"):
        y[0:16, :] = pl.exp(y[0:16, :])
    return y


def test_the_graph_and_the_kernels() -> None:
    first = graph.declared.function.__code__.co_firstlineno
    text = graph.explain(X, np.zeros(64, np.int32), X.copy())
    tasks, *kernels = text.split("\n\n@")
    assert tasks.splitlines() == [
        "graph(x, flags, y) for a2a3: 4 calls of 4 kernels",
        f"  [1] double (vector, line {first + 3})  in x  out now",
        "  for _ in pl.range(3):",
        f"    [2] product (cube, line {first + 6})  in now, x  out after  after [1] (now), "
        "[2] of earlier iterations (after)",
        "  for r in pl.parallel(0, 64, 16):",
        "    if pl.read(flags, [r]) > 0:",
        f"      [3] double_0 (vector, line {first + 10})  in now  out y  after [1] (now), [2] (after)",
        f"  [4] last (vector, line {first + 11})  inout y  after [3] (y?)",
    ]
    assert [k.split(":")[0] for k in kernels] == [
        "double (vector)", "product (cube)", "double_0 (vector)", "last (vector)",
    ]  # fmt: skip
    assert kernels[0].startswith(
        "double (vector): 2 flags and 1 barrier inserted\n  UB of @double: 32768 of 196608"
    )
    assert "%a_tile  64x64xf32" in kernels[0] and "L0C of @product" in kernels[1]


def test_a_kernel_alone_has_no_graph() -> None:
    text = double.explain(X, X.copy())
    assert text.startswith("@double (vector): 2 flags")
    assert "%add " in text  # a tile that has no name is called what computes it


def test_lines_of_other_files_name_them(tmp_path: Path) -> None:
    """And only those."""
    (tmp_path / "far.py").write_text(
        "import pto.language as pl\n\n\n@pl.jit.inline\ndef far(x):\n    return pl.exp(x) * 2.0\n"
    )
    far = runpy.run_path(str(tmp_path / "far.py"))["far"]

    @pl.jit.incore
    def near(a: pl.Tensor, b: pl.Out[pl.Tensor]):
        b[:] = far(a) + a

    rows = [line for line in near.explain(X, X.copy()).splitlines() if "64x64xf32" in line]
    line = near.declared.function.__code__.co_firstlineno + 2
    assert [("of far.py" in r, f" {line} " in r) for r in rows] == [
        (True, False), (True, False), (True, False), (False, True),
    ]  # fmt: skip
