"""Tasks by name: their dependencies, predicates; arrays of tasks, clusters, manual scopes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.each import together

import pto.language as pl
from pto.diag import DiagnosticError
from pto.language.programs.jit import ProgramClass
from pto.language.programs.lower import texts

ROWS, COLS, STEP = 64, 32, 16
BRANCHES = ROWS // STEP


@pl.jit.incore
def plus(x: pl.Tensor, row: pl.Scalar[pl.INDEX], by: pl.Scalar[pl.FP32], out: pl.InOut[pl.Tensor]):
    """Add to rows of `out` those of `x`, and a number."""
    t = pl.add(pl.load(x, [row, 0], [STEP, COLS]), pl.load(out, [row, 0], [STEP, COLS]))
    return pl.store(pl.add(t, by), [row, 0], out)


@pl.jit.incore
def fill(value: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    return pl.store(pl.full([ROWS, COLS], dtype=pl.FP32, value=value), [0, 0], out)


@pl.jit.incore
def blocks_of(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    row = pl.get_block_idx() * STEP
    return pl.store(pl.mul(pl.load(x, [row, 0], [STEP, COLS]), 2.0), [row, 0], out)


@pl.jit
def phases(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    """Three phases; a task of one waits for all of the phase before."""
    with pl.manual_scope():
        before = pl.array.create(BRANCHES, pl.TASK_ID)
        for _ in pl.range(3):
            tasks = pl.array.create(BRANCHES, pl.TASK_ID)
            for b in pl.parallel(BRANCHES):
                out, task = pl.submit(plus, x, b * STEP, 1.0, out, deps=[before])
                tasks[b] = task
            before = tasks
    return out


@pl.jit
def chains(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    """A chain per branch, all joined at the end: by the results of a parallel loop, and by hand."""
    with pl.manual_scope():
        last = pl.system.task_invalid()
        for b in pl.parallel(BRANCHES):
            last = None
            for _ in pl.range(3):
                out, last = pl.submit(plus, x, b * STEP, 0.5, out, deps=[last])
        made, filled = pl.submit(fill, 4.0)
        both = pl.system.task_dummy(deps=[last, filled])
        for b in pl.parallel(BRANCHES):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice", deps=[both]):
                out[b * STEP : b * STEP + STEP, :] = pl.add(
                    out[b * STEP : b * STEP + STEP, :], made[b * STEP : b * STEP + STEP, :]
                )
    return out


@pl.jit
def gated(x: pl.Tensor, gate: pl.Tensor, out: pl.InOut[pl.Tensor]):
    """Tasks with a predicate, evaluated when they could begin; tasks after one that does not run do not
    wait."""
    out, first = pl.spmd_submit(blocks_of, x, out, core_num=BRANCHES, predicate=(gate[0] > 0))
    for i in pl.range(2):
        with pl.spmd(BRANCHES, deps=[first], predicate=(0 >= gate[i + 1])) as second:
            row = pl.get_block_idx() * STEP
            out[row : row + STEP, :] = pl.add(out[row : row + STEP, :], 3.0)
        first = second
    with pl.cluster():
        plus(pl.no_dep(x), 0, 1.0, out)
    return out


@pl.jit
def snapshots(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    """Arrays are values: the second one does not see what happens to the first."""
    with pl.manual_scope():
        tasks = pl.array.create(2, pl.TASK_ID)
        out, tasks[0] = pl.submit(plus, x, 0, 1.0, out)
        kept = tasks
        more = pl.array.update_element(tasks, 1, tasks[0])
        out, tasks[0] = pl.submit(plus, x, 0, 1.0, out, deps=[pl.array.get_element(kept, 0)])
        out, end = pl.submit(plus, x, 0, 1.0, out, deps=[tasks[i] for i in range(2)])
        pl.submit(plus, x, 0, 1.0, out, deps=[end, more, kept, None])
    return out


RNG = np.random.default_rng(3)
X = RNG.standard_normal((ROWS, COLS)).astype(np.float32)
BEGIN = RNG.standard_normal((ROWS, COLS)).astype(np.float32)


def sums(count: int, by: float, rows: int = ROWS) -> Any:
    out = BEGIN.copy()
    for _ in range(count):
        out[:rows] = (X + out)[:rows] + np.float32(by)
    return out


def gates(*gate: int) -> Any:
    out = X * 2 if gate[0] > 0 else BEGIN.copy()
    for g in gate[1:]:
        out = out + np.float32(3) if g <= 0 else out
    out[:STEP] = X[:STEP] + out[:STEP] + np.float32(1)
    return out


CASES: dict[str, tuple[Any, list[Any], Any]] = {
    "phases": (phases, [X], sums(3, 1.0)),
    "chains": (chains, [X], sums(3, 0.5) + np.float32(4)),
    "snapshots": (snapshots, [X], sums(4, 1.0, STEP)),
    **{
        f"gates {g}": (gated, [X, np.array(g, np.int32)], gates(*g))
        for g in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    },
}


@together("name", CASES)
def test_every_way_of_running(name: str) -> None:
    function, given, expected = CASES[name]
    out = BEGIN.copy()
    compiled = function.compile(*given, out)
    for seed in (None, 0, 1, 2):
        out[:] = BEGIN
        compiled.execute([*given, out], seed=seed, block_dim=3)
        np.testing.assert_array_equal(out, expected)
    out[:] = BEGIN
    result = function.run(*given, out)
    assert result.ok, str(result)
    np.testing.assert_array_equal(out, expected)
    out[:] = BEGIN
    function.interpret(*given, out)
    np.testing.assert_array_equal(out, expected)


def test_edges_are_those_that_are_named() -> None:
    """In manual scopes only deps order tasks; a parallel loop joins its results, and only then."""
    run = phases.compile(X, BEGIN.copy()).execute([X, BEGIN.copy()], record=True)
    assert run.stats["tasks"] == 3 * BRANCHES and run.stats["edges"] == 2 * BRANCHES**2
    run = chains.compile(X, BEGIN.copy()).execute([X, BEGIN.copy()], record=True)
    joins = BRANCHES + 1  # one per iteration of the loop, and the one by hand
    assert run.stats["tasks"] == 3 * BRANCHES + 1 + joins + BRANCHES


@pytest.mark.parametrize("name", ["chains", "snapshots", "gates (0, 0, 1)"])
def test_printed_programs_do_the_same(name: str, tmp_path: Path) -> None:
    """As they were read, and with regions as functions."""
    function, given, expected = CASES[name]
    stages = dict(texts(function.compile(*given, BEGIN.copy()).lowered))
    for stage in ("read", "order"):
        file = tmp_path / f"{stage}.py"
        file.write_text(stages[stage])
        names: dict[str, Any] = {}
        exec(compile(stages[stage], str(file), "exec"), names)
        program = next(v for v in names.values() if isinstance(v, ProgramClass))
        out = BEGIN.copy()
        program.compile(*given, out).execute([*given, out], seed=1)
        np.testing.assert_array_equal(out, expected)


@pl.jit
def waits_for_a_number(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    pl.submit(plus, x, 0, 1.0, out, deps=[3])


@pl.jit
def odd_predicate(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    pl.submit(plus, x, 0, 1.0, out, predicate=(x[0, 0] > 0))


@pl.jit
def no_function(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    pl.submit(x, out)


@pl.jit
def long_array(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    tasks = pl.array.create(2, pl.TASK_ID)
    tasks[0] = 1


@pl.jit.extern(core_type="aiv", source="kernels/nowhere.cpp")
def nowhere(x: pl.InOut[pl.Tensor]): ...


@pl.jit.extern(core_type="gpu", source="kernels/shift.cpp")
def on_gpu(x: pl.InOut[pl.Tensor]): ...


@pl.jit.extern(core_type="mixed", aiv_source="kernels/shift.cpp")
def half(x: pl.InOut[pl.Tensor]): ...


@pl.jit
def no_file(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    nowhere(out)


@pl.jit
def no_core(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    on_gpu(out)


@pl.jit
def no_half(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    half(out)


@pl.jit.extern(core_type="aiv", source="kernels/shift.cpp")
def first(x: pl.InOut[pl.Tensor], y: pl.InOut[pl.Tensor]) -> pl.Tensor: ...


@pl.jit.extern(core_type="aiv", source="kernels/shift.cpp")
def both(x: pl.InOut[pl.Tensor], y: pl.InOut[pl.Tensor]) -> tuple[pl.Tensor, pl.Tensor]: ...


@pl.jit
def of_extern(x: pl.InOut[pl.Tensor], out: pl.InOut[pl.Tensor]):
    x = first(x, out)
    x, out = both(pl.reshape(x, [x.shape[1], x.shape[0]]), out)
    return out


def test_what_functions_in_cpp_return() -> None:
    assert "self.both(" in of_extern.lower(X, BEGIN).as_python()


@together(
    ("function", "code", "words"),
    [
        (waits_for_a_number, "PTO-E3004", "expected tasks in 'deps'"),
        (odd_predicate, "PTO-E3004", "expected a comparison of an integer tensor element with a constant"),
        (no_function, "PTO-E3007", "expected a function of the language for pl.submit"),
        (no_file, "PTO-E3003", "cannot find the source of nowhere"),
        (no_core, "PTO-E3003", "core_type of on_gpu"),
        (no_half, "PTO-E3003", "missing source of half for its aic cores"),
        (long_array, "PTO-E3004", "cannot store this value in Array[2, TASK_ID]"),
    ],
)
def test_refusals(function: Any, code: str, words: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        function.lower(X, BEGIN)
    (problem,) = caught.value.diagnostics
    assert problem.code == code and words in problem.message
    assert problem.span is not None and problem.span.source.name.endswith("test_submit.py")
