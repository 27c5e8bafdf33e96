"""The C++ calls for tasks with all options (headers/task_scenarios.cpp): the same as in Python."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime.compile import Job, compile_all
from pto.runtime.engine import TaskEngine

from .header_build import COMPILER, HERE

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
ENTRY = "aicpu_orchestration_entry"
MANUAL, MEMORY, PREDICATES, MIXED, WRONG = 0, 1, 2, 3, 10
SCHEDULES: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, *({"seed": s} for s in range(4))]


@cache
def library() -> str:
    return compile_all([Job("tasks", str(HERE / "headers/task_scenarios.cpp"), entry=ENTRY)])[0].path


def run(number: int, **config: Any) -> tuple[Any, Any, list[tuple[Any, ...]]]:
    """The 64 numbers after a run, its records, and the numbers that tasks of BUMP got besides."""
    x = np.zeros(64, np.uint64)
    engine = TaskEngine({"block_dim": 2, "profiling": True, **config})
    more: list[tuple[Any, ...]] = []

    def bump(t: Any, *rest: Any) -> None:
        if t.flags.writeable:
            t += 1
        more.append(rest)

    engine.add_function(0, "bump", "aiv", bump)
    engine.add_function(1, "cube", "aic", lambda t, *rest: np.add(t, 100, out=t))
    engine.add_function(2, "double", "aiv", lambda t: np.multiply(t, 2, out=t))
    return x, engine.run_orchestration(library(), ENTRY, [number, x.ctypes.data]), more


@pytest.mark.parametrize("how", SCHEDULES, ids=str)
def test_scenarios(how: dict[str, Any]) -> None:
    x, records, _ = run(MANUAL, **how)
    assert set(x) == {3}
    edges = {(int(e["pred"]), int(e["succ"])) for e in records.edges}
    chain = {(2 * i, 2 * i + 1) for i in range(4)} | {(2 * i + 1, 8) for i in range(4)} | {(8, 9)}
    assert edges == chain and set(records.edges["kind"]) == {3}

    x, _, more = run(MEMORY, **how)
    assert x.tolist() == [8] * 5 + [100] + [8] * 26 + [14] * 32
    (rest,) = [m for m in more if m]
    assert np.array_equal(rest[0].shape, [64])
    bits = int(np.float32(1.5).view(np.uint32))
    assert [v & 0xFFFFFFFF for v in rest[1:]] == [bits, 0xFFFFFFFF, 3]

    x, _, _ = run(PREDICATES, **how)
    holds = [(f == 0, f != 0, f > 0, f < 0, f >= 0, f <= 0) for f in (-1, 0, 1)]
    assert [x[8 * i + 1 : 8 * i + 7].astype(bool).tolist() for i in range(3)] == [list(h) for h in holds]

    x, records, _ = run(MIXED, **how)
    assert set(x) == {100 + 2 + 2 * 100 + 2 + 2 * 100}
    assert [int((records.tasks["task_id"] == t).sum()) for t in range(3)] == [3, 4, 2]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "dependency 7 is not an earlier task"),
        (1, "more dependencies than CoreTaskArgsWithDeps has room for"),
        (2, "99 blocks cannot start together: there are 4 cores"),
        (3, "element 64 of 64 in dimension 0"),
        (4, "wrong: no more (code 9)"),
        (5, "an automatic scope is opened at"),
        (6, "a predicate without a tensor"),
        (7, "add_dep: dependencies have been set with set_dependencies"),
    ],
)
def test_misuse(number: int, words: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        run(WRONG + number, threads=2)
    (problem,) = caught.value.diagnostics
    assert words in problem.message and "task_scenarios.cpp:" in problem.message
