"""Tasks that nothing orders: on elements of their own, and on the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto.language as pl
from pto.engine import journal
from pto.language.checks.footprint import Footprint, RunArray
from pto.language.graphs.graph import ordered
from pto.language.problems import LanguageWarning

ROWS, COLS = 64, 32


@pl.program
class Stripes:
    @pl.function(type=pl.FunctionType.InCore)
    def stripe(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], row: pl.Scalar[pl.INDEX], more: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ):  # fmt: skip
        t = pl.load(x, [row, 0], [24, COLS], valid_shape=[16 + more, COLS])
        return pl.store(pl.add(t, 1.0), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], more: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ):  # fmt: skip
        with pl.manual_scope():
            for i in pl.parallel(3):
                row: pl.Scalar[pl.INDEX] = i * 16
                out, _ = pl.submit(self.stripe, x, row, more, out)
        return out


@pytest.mark.parametrize("more", [0, 1])
def test_stripes_of_one_tensor(more: int, monkeypatch: Any) -> None:
    monkeypatch.setenv("PTO_SANITIZE", "tasks")
    x, out = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS), np.zeros((ROWS, COLS), np.float32)
    found: list[Any] = []
    with journal.listening(lambda event: found.extend(event.diagnostics)):
        Stripes.compile()(x, more, out)
    np.testing.assert_array_equal(out[: 48 + more], x[: 48 + more] + 1)
    assert {d.code for d in found} == ({"PTO-E2611"} if more else set())
    if more:
        assert "task 1 (stripe)" in str(found[0])


@pytest.mark.parametrize("how", ["all", "tasks"])
@pytest.mark.parametrize("more", [0, 1])
def test_under_watch_they_are_errors(more: int, how: str) -> None:
    x, out = np.ones((ROWS, COLS), np.float32), np.zeros((ROWS, COLS), np.float32)
    found = Stripes.compile().run([x, more, out], sanitize=how).diagnostics
    assert {(d.code, d.severity) for d in found if d.code == "PTO-E2611"} == (
        {("PTO-E2611", "error")} if more else set()
    )


def overwrites() -> Any:
    """Return a new program: a program warns when it is compiled first."""

    @pl.program
    class Overwrites:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, a: pl.Tensor[[16, 32], pl.FP32], b: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
            return pl.store(pl.load(a, [0, 0], [16, 32]), [0, 0], b)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, new: pl.Tensor[[16, 32], pl.FP32], x: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
            old: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ):  # fmt: skip
            old = self.copy(x, old)
            x = self.copy(new, x)
            return x

    return Overwrites


def test_a_writer_does_not_wait_for_readers() -> None:
    """No device lets it wait: only the sanitizer reports it, and the arguments stay as they were."""
    with pytest.warns(LanguageWarning, match="overwrites 'x', which an earlier task may still use"):
        program = overwrites().compile()
    new, x, old = (np.full((16, 32), n, np.float32) for n in (1, 2, 3))
    (found,) = program.run([new, x, old], sanitize="all").diagnostics
    assert found.code == "PTO-E2611" and "WAR: task 1" in found.message and found.severity == "error"
    assert (x == 1).all() and (old == 2).all()
    assert program.execute([new, x, old], seed=1, check_hazards=True).hazards


@pl.jit
def thrice(new: pl.Tensor, x: pl.InOut[pl.Tensor], old: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        old[:] = x[:] + 0.0
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = new[:] + 0.0
    with pl.at(level=pl.Level.CORE_GROUP):
        old[:] = new[:] + 1.0
    return x


def test_explain_and_a_run_agree() -> None:
    """An output waits for the earlier writer of `old`; no task waits for the reader of `x`."""
    arrays = [np.full((16, 32), n, np.float32) for n in (1, 2, 3)]
    lines = thrice.explain(*arrays).splitlines()
    assert (
        lines[3].endswith("out old  after [1] (old)")
        and "not ordered: [2] overwrites x, which [1] uses" in lines[4]
    )
    assert not lines[5]
    with pytest.warns(LanguageWarning, match="overwrites 'x'"):
        (found,) = thrice.run(*arrays, sanitize="tasks").diagnostics
    assert "WAR: task 1" in found.message and (arrays[2] == 2).all()


@pytest.mark.parametrize("door", ["__call__", "run", "compile", "lower", "sanitize"])
def test_a_warning_points_at_the_line_of_the_user(door: str) -> None:
    """The line that calls, at every door; the text names the line of the program."""
    arrays = [np.full((16, 48), n, np.float32) for n in (1, 2, 3)]
    thrice._cache.clear()
    options = {"sanitize": "all"} if door == "sanitize" else {}
    enter = getattr(thrice, "run" if options else door)
    with pytest.warns(LanguageWarning, match=r"test_touched\.py:\d+:10: warning\[PTO-E3015\]") as found:
        enter(*arrays, **options)
    line = Path(__file__).read_text().splitlines()[found[0].lineno - 1]
    assert found[0].filename == __file__ and line.strip() == "enter(*arrays, **options)"


@pl.program
class Waits:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, a: pl.Tensor[[16, 32], pl.FP32], b: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        return pl.store(pl.load(a, [0, 0], [16, 32]), [0, 0], b)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[16, 32], pl.FP32], given: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
        x: pl.Out[pl.Tensor[[16, 32], pl.FP32]], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        z: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        given = self.copy(a, given)
        for _ in pl.range(2):
            for _ in pl.parallel(2):
                x = self.copy(a, x)
        for _ in pl.parallel(2):
            y = self.copy(a, y)
        z = self.copy(a, z)
        z = self.copy(a, z)
        return z


def test_outputs_that_wait_for_earlier_writers() -> None:
    """Inout parameters, in sequential loops, after a writer in the same function."""
    assert list(ordered(Waits.compile().entry).values()) == [[1], [1], [], [], [1]]


def test_elements_of_many_tensors() -> None:
    """The owner of a byte does not depend on the number of tensors, their order, or empty ones."""
    whole = np.zeros((16, 8), np.float32)
    touched = Footprint([RunArray("whole", whole, True), RunArray("half", whole[8:], True)])
    made = [np.zeros((i % 3, 64), np.float32) for i in range(300)]
    for i, array in enumerate(made):
        touched.made(f"t{i}", array)
    touched.wrote(whole[:8])
    touched.wrote(whole[8:12])
    for array in made[::2]:
        touched.wrote(array[:1])
    for i, array in enumerate(made):
        for row in range(len(array)):
            before = len(touched.diagnostics)
            touched.reads(array[row : row + 1], None)
            found = [d.message for d in touched.diagnostics[before:]]
            assert found == ([] if i % 2 == row == 0 else [f"t{i}[{row}, 0] is read before it is written"])
    touched.diagnostics.clear()
    touched.holes({})
    assert [d.message.partition(" are")[0] for d in touched.diagnostics] == [
        "32 of 128 elements of output 'whole'",
        "32 of 64 elements of output 'half'",
    ]
