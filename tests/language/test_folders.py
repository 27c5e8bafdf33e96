"""Programs as folders: C++ over the PTO2 API computes the results of the runtime from Python, and of tasks
that run one after another; and a folder needs only itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.diag import DiagnosticError
from pto.language.programs.call import Compiled
from pto.runtime import folder as runtime_folder
from pto.runtime.runner import Runner, RunnerOptions

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
M = pl.dynamic("M")
STEP, COLS = 16, 32
ROWS = 5 * STEP


@pl.jit.incore
def scaled(a: pl.Tensor, by: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    m, n = a.shape
    return pl.store(pl.mul(pl.load(a, [0, 0], [m, n]), by), [0, 0], out)


@pl.jit.incore
def added(a: pl.Tensor, b: pl.Tensor, out: pl.InOut[pl.Tensor]):
    m, n = a.shape
    t = pl.add(pl.load(a, [0, 0], [m, n]), pl.load(b, [0, 0], [m, n]))
    return pl.store(pl.add(t, pl.load(out, [0, 0], [m, n])), [0, 0], out)


@pl.jit.incore
def blocks(x: pl.Tensor, first: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor]):
    row = first + pl.get_block_idx() * STEP
    return pl.store(pl.add(pl.load(x, [row, 0], [STEP, COLS]), 0.25), [row, 0], out)


@pl.jit.extern(core_type="aiv", source="kernels/shift.cpp", include_dirs=["kernels/more"])
def shifted(x: pl.InOut[pl.Tensor], by: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INDEX]): ...


@pl.jit.extern(core_type="mixed", source="kernels/halves.cpp")
def halves(x: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INDEX]): ...


@pl.jit
def everything(
    x: pl.Tensor[[M, COLS], pl.FP32],
    w: pl.Tensor,
    stack: pl.Tensor,
    lengths: pl.Tensor,
    counts: pl.InOut[pl.Tensor],
    out: pl.InOut[pl.Tensor[[M, COLS], pl.FP32]],
):
    rows = pl.tensor.dim(x, 0)
    total = 0
    now = pl.create_tensor([STEP, COLS], dtype=pl.FP32, init_value=0.5)
    for i in pl.range(rows // STEP):
        n = pl.read(lengths, [i])
        part = x[i * STEP : i * STEP + STEP, :]
        after = pl.create_tensor([STEP, COLS], dtype=pl.FP32)
        if n % 3 == 0:
            after = scaled(part, pl.cast(n, pl.FP32) / 4.0, after)
        else:
            if n > 5:
                after = scaled(part, 2.0, after)
            else:
                added(now, part, out[i * STEP : i * STEP + STEP, :])
                after = scaled(now, -1.0, after)
        added(after, now, out[i * STEP : i * STEP + STEP, :])
        now = after
        total = pl.max(total + n * 2 - 1, 3)
        counts[i] = n * n
    for j in pl.parallel(4, 0, -2):
        page = stack[j - 1, 1]
        turned = pl.transpose(page, 0, 1)
        added(pl.reshape(stack[j - 2, 0, :, :], [STEP, COLS]), page, out[0:STEP, :])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="turn"):
            out[STEP : 2 * STEP, 0:STEP] = pl.add(out[STEP : 2 * STEP, 0:STEP], turned[0:STEP, :])
    at = 0
    while at < total:
        at = at + 7
    counts[5] = pl.cast(at, pl.INT32)
    with pl.spmd(rows // STEP) as spread:
        blocks(x, 0, out)
    _, moved = pl.submit(shifted, out[STEP : 3 * STEP, :], 1.5, 2 * STEP * COLS)
    halves(out[2 * STEP : 3 * STEP, :], STEP * COLS)
    with pl.manual_scope():
        tasks = pl.array.create(2, pl.TASK_ID)
        before = tasks
        for b in pl.parallel(2):
            _, task = pl.submit(
                added, x[0:STEP, :], now, out[b * STEP : b * STEP + STEP, :], deps=[spread, moved]
            )
            tasks[b] = task
        both = pl.system.task_dummy(deps=[tasks, before])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product", deps=[both]):
            y = pl.matmul(x[0:STEP, :], w)
            out[0:STEP, :] = pl.add(out[0:STEP, :], pl.mul(y, 0.5))
    return out


RNG = np.random.default_rng(5)


def samples() -> list[Any]:
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in ((ROWS, COLS), (COLS, COLS)))
    stack = RNG.standard_normal((4, 2, STEP, COLS)).astype(np.float32)
    return [
        x,
        w,
        stack,
        np.array([3, 7, 2, 9, 8], np.int32),
        np.zeros(6, np.int32),
        np.ones((ROWS, COLS), np.float32),
    ]


def test_every_form_computes_the_same(kept_place: Path) -> None:
    place = kept_place
    given = samples()
    compiled = everything.compile(*given)
    serial = [a.copy() for a in given]
    result = everything.run(*serial)
    assert result.ok, str(result)
    compiled.save(place, *given)
    saved = Compiled.load(place)
    assert saved.param_names == ["x", "w", "stack", "lengths", "counts", "out"]
    assert [p.name for p in saved.params if p.direction != "in"] == ["counts", "out"]
    for run in (compiled, saved):
        for seed in (None, 0, 1, 2):
            values = [a.copy() for a in given]
            ran = run.execute(values, seed=seed, block_dim=2, record=False)
            for name, a, b in zip(saved.param_names, values, serial, strict=True):
                assert a.tobytes() == b.tobytes(), (type(run).__name__, seed, name)
        assert len(run.execute([a.copy() for a in given], record=True).records.tasks)
        assert "record=True shows" in ran.summary()  # both forms give the same kind of thing
        with pytest.raises(DiagnosticError, match="save_graph writes DOT"):
            ran.save_graph(str(place / "graph.svg"))
    _the_runner_agrees(place)
    _other_extents(saved, given)


def _the_runner_agrees(folder: Path) -> None:
    """`pto runtime run`, with golden.py; sites of tasks are lines of this file."""
    read = runtime_folder.load(str(folder))
    runner = Runner(read, RunnerOptions(seed=4, block_dim=3, profiling=True))
    runner.compile()
    (params,) = read.golden.choose()
    case = runner.run(params)
    assert case.ok and [c.name for c in case.comparisons] == ["counts", "out"], case.problems
    text = (folder / "orchestration/everything.cpp").read_text()
    assert 'test_folders.py";' in text and "PTO2_SCOPE(PTO2ScopeMode::MANUAL)" in text
    assert sorted(p.name for p in (folder / "kernels").iterdir()) == ["aiv", "extern", "mix"]
    dumps = sorted(p.name for p in (folder / "passes_dump").iterdir())
    assert dumps[0] == "00_after_read.py" and dumps[-1].endswith("_after_mixed.py")
    assert "product: mixed" in (folder / "report/kernels.txt").read_text()


def _other_extents(saved: Any, given: list[Any]) -> None:
    """An extent that a call decides is not that of the samples."""
    few = [a[: 3 * STEP].copy() if a.shape[0] == ROWS else a.copy() for a in given]
    same = [a.copy() for a in few]
    saved(*few)
    everything(*same)
    assert few[-1].tobytes() == same[-1].tobytes()


@pl.jit
def only_halves(x: pl.InOut[pl.Tensor]):
    shifted(halves(x, 64), 0.5, 8)


def test_kernels_in_cpp() -> None:
    x = np.zeros((1, 64), np.float32)
    expected = np.array([1.5] * 8 + [1] * 24 + [2] * 32, np.float32)[None]
    compiled = only_halves.compile(x)
    for seed in (None, 0, 1):
        x[:] = 0
        compiled.execute([x], seed=seed)
        np.testing.assert_array_equal(x, expected)
    x[:] = 0
    assert only_halves.run(x).ok
    np.testing.assert_array_equal(x, expected)


@pl.jit.incore
def one_kernel(x: pl.Tensor[[M, COLS], pl.FP32], w: pl.Tensor, out: pl.Out[pl.Tensor[[M, COLS], pl.FP32]]):
    """On both kinds of core, and with an extent that a call decides: its caller brings memory and the
    extent."""
    for r in pl.range(0, pl.tensor.dim(x, 0), STEP):
        out[r : r + STEP, :] = pl.add(pl.matmul(x[r : r + STEP, :], w), 1.0)
    return out


def test_a_program_of_one_kernel(kept_place: Path) -> None:
    x, w, *_ = samples()
    out, expected = np.zeros_like(x), np.zeros_like(x)
    one_kernel(x, w, expected)
    np.testing.assert_allclose(expected, x @ w + 1, rtol=1e-5, atol=1e-5)
    one_kernel.compile(x, w, out).save(kept_place)
    Compiled.load(kept_place)(x, w, out)
    assert out.tobytes() == expected.tobytes()


def test_wrong_arguments_and_folders(tmp_path: Path, kept_place: Path) -> None:
    given, place = samples(), kept_place
    kernel = scaled_alone.compile(given[1], given[1].copy())
    kernel.save(place)  # no orchestration: one is made; without samples there is no golden.py
    with pytest.raises(
        DiagnosticError, match=r"missing golden.py(?s:.*)help: .*compiled.save\(folder, a, b, out\)"
    ):
        runtime_folder.load(str(place))
    _written_in_one_step(kernel, tmp_path / "again")
    saved = pl.Compiled.load(place)
    out = np.zeros_like(given[1])
    saved(given[1], out)
    np.testing.assert_array_equal(out, given[1] * 2)
    for args, words in [
        ([given[1], given[1].astype(np.int32)], "expected f32 for 'out' of scaled_alone"),
        ([given[1], given[0]], "shape of 'out' of scaled_alone does not match"),
        ([given[1].T, given[1]], "expected contiguous memory for 'a'"),
    ]:
        with pytest.raises(DiagnosticError) as caught:
            saved(*args)
        assert words in caught.value.diagnostics[0].message
    for program in (saved, kernel):
        with pytest.raises(DiagnosticError, match=r"out\[...\] = c"):  # a copy alone loses the result
            program(given[1], out.T)
    for program in (saved, kernel):
        np.testing.assert_array_equal(
            program(given[1]), given[1] * 2
        )  # a write-only argument may be left out
        with pytest.raises(TypeError, match=r"scaled_alone\(a, out\) takes 2 arguments, or 1 .*; got 0"):
            program()
    with pytest.raises(DiagnosticError, match=r"missing program\.json"):
        Compiled.load(tmp_path)
    other = json.loads((place / "program.json").read_text())
    (tmp_path / "program.json").write_text(json.dumps({**other, "format": 99}))
    with pytest.raises(DiagnosticError, match="another version"):
        Compiled.load(tmp_path)
    with pytest.raises(DiagnosticError, match="more arguments than a folder may have"):
        many.compile(*[given[1]] * 34).save(tmp_path)


def _written_in_one_step(kernel: Any, place: Path) -> None:
    """A reader of a folder during a save sees whole files: each save has other content."""
    kernel.save(place)
    with contextlib.ExitStack() as held:
        files = [held.enter_context(path.open()) for path in place.rglob("*") if path.is_file()]
        kernel.save(place)
        assert len(files) >= 5
        for file in files:
            assert os.stat(file.name).st_ino != os.fstat(file.fileno()).st_ino, file.name
            assert file.read() == Path(file.name).read_text()


@pl.jit.incore
def scaled_alone(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.mul(pl.load(a, [0, 0], [COLS, COLS]), 2.0), [0, 0], out)


@pl.jit
def many(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30, x31, x32, out: pl.InOut[pl.Tensor]):  # fmt: skip
    scaled(x0, 2.0, out)
