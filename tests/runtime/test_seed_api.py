"""The C++ side of an orchestration: its entry points, its functions, its limits.

Sections of the description: Orchestration API, Required exports, Kernel and orchestration loading, and spec
2.1, 2.2, 2.3, 2.11. The scenarios are in headers/seed_scenarios.cpp; kernels are Python functions.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime.compile import Job, compile_all
from pto.runtime.engine import TaskEngine

from .header_build import COMPILER, HERE
from .test_seed_clusters import cluster_of_core

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
ENTRY = "aicpu_orchestration_entry"
(PARAMETERS, CHUNKS, WORKER, PARAMS, BLOCKS, THROWS, UNWRITTEN, ENDLESS, CLUSTERS, ENDS, LOGS, FUNC) = range(
    12
)


@cache
def library() -> str:
    job = Job("scenarios", str(HERE / "headers/seed_scenarios.cpp"), entry=ENTRY)
    return compile_all([job])[0].path


class Scenario:
    """One run: the marks it left, the slots of each task, the records."""

    def __init__(self, number: int, *more: int, **config: Any) -> None:
        self.marks = np.zeros(64, np.uint64)
        self.calls: list[tuple[str, list[int]]] = []
        engine = TaskEngine({"block_dim": 3, "threads": 2, "profiling": True, **config})
        for func_id, (name, core) in enumerate((("vector", "aiv"), ("cube", "aic"))):
            engine.add_function(func_id, name, core, self.kernel(name))
        self.records = engine.run_orchestration(library(), ENTRY, [number, self.marks.ctypes.data, *more])

    def kernel(self, name: str) -> Any:
        return lambda *slots: self.calls.append((name, list(slots)))


def refused(number: int, *more: int, code: str = "PTO-E2621", **config: Any) -> str:
    with pytest.raises(DiagnosticError) as caught:
        Scenario(number, *more, **config)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    return diagnostic.message


def test_parameters_and_tensors() -> None:
    """Orchestration API, spec 2.3: tensors move into the task; addresses are known when submit returns."""
    done = Scenario(PARAMETERS)
    assert done.marks[10:15].tolist() == [1] * 5
    assert [len(slots) for _, slots in done.calls] == [3, 1]  # a task after orchestration_done, too
    assert done.calls[0][1][2] == -1  # 64-bit scalars
    edges = [(int(e["pred"]), int(e["succ"])) for e in done.records.edges]
    assert edges == [(0, 1)]


@pytest.mark.parametrize("config", [{"threads": 1}, {"threads": 2}, {"seed": 8}])
def test_208_tasks_through_a_window_of_16(config: dict[str, Any]) -> None:
    """Task ring: 16 chunks x 13 tasks, submitted in C++ inside PTO2_SCOPE."""
    done = Scenario(CHUNKS, 13, task_window=16, **config)
    assert len(done.calls) == 208
    assert done.records.stats["task_window_peak"] <= 15


def test_the_deadlock_of_a_scope_names_its_lines() -> None:
    """Deadlock detection: from C++ the places are those of pto2_rt_submit_task and PTO2_SCOPE."""
    text = refused(CHUNKS, 16, code="PTO-E2620", task_window=16)
    assert "FATAL: Flow Control Deadlock Detected!" in text
    source = (HERE / "headers/seed_scenarios.cpp").read_text().splitlines()
    (at,) = {int(n) for n in re.findall(r"submitted at \S+seed_scenarios\.cpp:(\d+)", text)}
    assert "pto2_rt_submit_task" in source[at - 1]
    opened = {int(n) for n in re.findall(r"opened at \S+seed_scenarios\.cpp:(\d+)", text)}
    assert [source[n - 1].strip() for n in opened] == ["PTO2_SCOPE(rt) {"]


def test_worker_types() -> None:
    """Worker types: CUBE 0, VECTOR 1; 2 and 3 have no cores, spec 2.2."""
    assert len(Scenario(WORKER, 1).calls) == 1
    for number in (2, 3):
        assert f"worker type {number} has no cores" in refused(WORKER, number)
    assert "submitted as PTO2_WORKER_CUBE" in refused(WORKER, 0)


def test_64_parameters() -> None:
    """Spec 1: the array of a task has 16, here 64; more is an error, not a write past it."""
    for number in (16, 17, 64):
        assert Scenario(PARAMS, number).calls == [("vector", [7] * number)]
    for number in (65, 80):
        text = refused(PARAMS, number)
        assert f"{number} parameters" in text and "at most 64" in text and "seed_scenarios.cpp:" in text


def test_func_ids() -> None:
    """Spec 1: a task without a kernel is an error that names the func_id."""
    text = refused(FUNC, 31)
    assert "kernel 31" in text and text.endswith("no kernel has this func_id")
    assert "kernel -1" in refused(FUNC, -1)


def test_numbers_of_blocks() -> None:
    """block_incore: submit_block_task takes at least one block."""
    done = Scenario(BLOCKS, 5)
    assert sorted(slots[1:] for _, slots in done.calls) == [[5, b] for b in range(5)]
    for number in (0, -1, 40000):
        assert "32767" in refused(BLOCKS, number)


def test_clusters() -> None:
    """Cluster API: each block's tasks on its own cluster, with block_dim and block_id last."""
    done = Scenario(CLUSTERS, 3)
    tasks = done.records.tasks
    for t in tasks[tasks["cluster"] >= 0]:
        assert cluster_of_core(int(t["core"]), 3) == int(t["cluster"])
    assert len(done.calls) == 9
    for name in ("vector", "cube"):
        assert {tuple(slots[1:]) for n, slots in done.calls if n == name} == {(3, b) for b in range(3)}


@pytest.mark.parametrize("config", [{"threads": 1}, {"threads": 2}, {"seed": 8}])
def test_a_throwing_orchestration(config: dict[str, Any]) -> None:
    """An exception of the entry is raised in Python; scopes are unwound, the process lives on."""
    assert "the orchestration's own words" in refused(THROWS, code="PTO-E2623", **config)
    assert len(Scenario(CHUNKS, 1, **config).calls) == 16


@pytest.mark.parametrize(("which", "word"), [(0, "INPUT"), (1, "INOUT")])
def test_a_tensor_without_memory(which: int, word: str) -> None:
    """Spec 2.2: the texts of make_input_param and make_inout_param."""
    text = refused(UNWRITTEN, which, code="PTO-E2623")
    assert f"{word} param must have a non-NULL buffer address" in text


def test_more_ends_than_begins() -> None:
    """Spec 2.7: scope stack underflow, from C++."""
    assert "Scope stack underflow" in refused(ENDS) or "outside a scope" in refused(ENDS)


def test_too_few_arguments() -> None:
    """Required exports, spec 2.1: expected_arg_count of aicpu_orchestration_config."""
    engine = TaskEngine({"block_dim": 1})
    with pytest.raises(DiagnosticError, match="arg_count 1 < expected 2"):
        engine.run_orchestration(library(), ENTRY, [0])


def test_an_orchestration_without_the_entry(tmp_path: Path) -> None:
    """Required exports: the name of the entry is fixed; the configuration is optional; void is accepted."""
    missing = tmp_path / "missing.cpp"
    missing.write_text(
        '#include "pto_orchestration_api.h"\nextern "C" void entry(PTO2Runtime*, uint64_t*, int) {}\n'
    )
    with pytest.raises(DiagnosticError, match=f"missing function '{ENTRY}' in the orchestration"):
        compile_all([Job("missing", str(missing), entry=ENTRY)])
    bare = tmp_path / "bare.cpp"
    bare.write_text(missing.read_text().replace(" entry(", f" {ENTRY}("))
    path = compile_all([Job("bare", str(bare), entry=ENTRY)])[0].path
    TaskEngine({"block_dim": 1}).run_orchestration(path, ENTRY, [])


@pytest.mark.parametrize(("level", "count"), [("error", 2), ("warn", 3), ("info", 4), ("debug", 5)])
def test_log_levels(level: str, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Orchestration API, log macros; spec 2.11: PTO_LOG_LEVEL and PTO_LOG_FILE."""
    file = tmp_path / "runtime.log"
    file.write_text("before\n")
    monkeypatch.setenv("PTO_LOG_LEVEL", level)
    monkeypatch.setenv("PTO_LOG_FILE", str(file))
    Scenario(LOGS)
    first, *lines = file.read_text().splitlines()
    assert first == "before"
    mine = [line for line in lines if re.search(r"level -?\d", line)]
    words = ("ERROR", "WARN", "INFO", "DEBUG")
    expected = [f"[{w}] {ENTRY}: level {i}" for i, w in enumerate(words[: count - 1])]
    assert mine == [*expected, f"[ALWAYS] {ENTRY}: level -1"]


ENDLESS_RUN = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with it ignored
sys.path.insert(0, sys.argv[1])
from tests.runtime.test_seed_api import ENDLESS, ENTRY, TaskEngine, library
import numpy as np
marks = np.zeros(64, np.uint64)
engine = TaskEngine({"block_dim": 2, "threads": int(sys.argv[2]), "task_window": 16})
engine._kernels.add_empty(0, "empty")
def tell():
    while marks[0] < 100:
        time.sleep(0.01)
    print("go", flush=True)
threading.Thread(target=tell, daemon=True).start()
try:
    engine.run_orchestration(library(), ENTRY, [ENDLESS, marks.ctypes.data])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_an_endless_orchestration(threads: int) -> None:
    """Ctrl-C also ends an orchestration in C++ that never waits for long."""
    library()
    command = [sys.executable, "-c", ENDLESS_RUN, str(HERE.parents[1]), str(threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
        process.communicate()
    assert (out, process.returncode) == ("interrupted\n", 0), err
