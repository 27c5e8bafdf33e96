"""Folders: the content of kernel_config.py, and runs of a folder on an engine (spec sections 6.1, 6.3)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.diag import DiagnosticError
from pto.runtime import folder
from pto.runtime.runner import Runner, RunnerOptions

from .folder_kit import CONFIG, GOLDEN, FakeEngine, Plan, add_then_multiply, write_folder


def _codes(e: pytest.ExceptionInfo[DiagnosticError]) -> list[str]:
    return [d.code for d in e.value.diagnostics]


# -- reading -------------------------------------------------------------------------------------------------


def test_what_a_folder_says(tmp_path: Path) -> None:
    """Section 6.1: KERNELS, ORCHESTRATION, RUNTIME_CONFIG; relative sources are those of the kernels' folder."""
    root = write_folder(tmp_path / "vector")
    found = folder.load(str(root))
    config, kernels = found.config, str(root / "kernels")
    assert found.name == "vector"
    assert (config.runtime, config.aicpu_threads, config.block_dim) == ("host_build_graph", 3, 3)
    assert [(k.func_id, k.name, k.core_type) for k in config.kernels] == [
        (0, "add", "aiv"),
        (1, "mul", "aiv"),
    ]
    assert [k.source for k in config.kernels] == [os.path.join(kernels, f) for f in ("add.cpp", "mul.cpp")]
    assert (
        config.orchestration == os.path.join(kernels, "orchestration.cpp") and config.entry == "build_graph"
    )
    assert not list(root.rglob("__pycache__")), "the user's folder stays as it is"


def test_both_layouts_and_files_given_apart(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "a")
    flat = tmp_path / "flat"
    (root / "kernels").rename(flat)
    (root / "golden.py").rename(flat / "golden.py")
    assert folder.load(str(flat)).name == "flat"
    (flat / "golden.py").rename(tmp_path / "check.py")
    apart = folder.load(kernels=str(flat), golden=str(tmp_path / "check.py"))
    assert [k.name for k in apart.config.kernels] == ["add", "mul"]


def test_defaults_of_the_runtime(tmp_path: Path) -> None:
    """Section 6.1: host_build_graph, 3 threads, 24 blocks."""
    config = CONFIG[: CONFIG.index("RUNTIME_CONFIG")]
    found = folder.load(str(write_folder(tmp_path / "f", config=config))).config
    assert (found.runtime, found.aicpu_threads, found.block_dim) == ("host_build_graph", 3, 24)
    assert found.environment == {}


def test_environment_of_a_run(tmp_path: Path) -> None:
    """Section 6.1: values of _DIR and _PATH are relative to the kernels' folder; others stay."""
    more = 'RUNTIME_ENV = {"X_DIR": "data", "Y_PATH": "/abs", "PTO2_RING_HEAP": 4096}\n'
    found = folder.load(str(write_folder(tmp_path / "f", config=CONFIG + more))).config.environment
    assert found == {
        "X_DIR": str(tmp_path / "f" / "kernels" / "data"),
        "Y_PATH": "/abs",
        "PTO2_RING_HEAP": "4096",
    }


@pytest.mark.parametrize(("runtime", "entry"), [("tensormap_and_ringbuffer", "aicpu_orchestration_entry"),
                                                ("aicpu_build_graph", "build_graph")])  # fmt: skip
def test_the_entry_point_of_each_runtime(tmp_path: Path, runtime: str, entry: str) -> None:
    """Section 2.1: tensormap_and_ringbuffer ignores function_name; section 4: aicpu_build_graph does not."""
    found = folder.load(str(write_folder(tmp_path / "f")))
    jobs = found.jobs(runtime, "a2a3")
    assert jobs[0].entry == entry and jobs[0].core_type == "" and [j.runtime for j in jobs] == [runtime] * 3


def test_e2601_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="expected a folder, got") as caught:
        folder.load(str(tmp_path / "nothing"))
    assert _codes(caught) == ["PTO-E2601"]
    with pytest.raises(DiagnosticError) as caught:
        folder.load(str(tmp_path))
    assert _codes(caught) == ["PTO-E2601"] * 2
    assert "kernel_config.py" in str(caught.value) and "golden.py" in str(caught.value)


def test_e2603_all_mistakes_at_once(tmp_path: Path) -> None:
    """Every wrong value is found in one go and shown where it is written; section 2.11: func_id < 32."""
    text = """\
KERNELS = [
    {"func_id": 32, "source": "a.cpp", "core_type": "aiv"},
    {"func_id": 0, "source": "a.cpp", "core_type": "vector"},
    {"func_id": 1, "core_type": "aic", "include_dirs": "more"},
    {"func_id": 2, "source": "a.cpp", "core_type": "aic"},
    {"func_id": 2, "source": "b.cpp", "core_type": "aic", "nmae": "b"},
    "c.cpp",
]
ORCHESTRATION = {"function_name": "go"}
RUNTIME_CONFIG = {"runtime": "host_build_grahp", "block_dim": 25, "aicpu_thread_num": 0}
"""
    with pytest.raises(DiagnosticError) as caught:
        folder.load(str(write_folder(tmp_path / "f", config=text)))
    found = {(d.span.place[0] if d.span else 0, d.message): d for d in caught.value.diagnostics}
    assert {d.code for d in found.values()} == {"PTO-E2603"}
    expected = [
        (2, "kernel 0: func_id (32) must be in range [0, 31]"),
        (3, "kernel 1: expected 'aic' or 'aiv' for core_type, got 'vector'"),
        (4, "kernel 2: expected either 'source' or 'function'"),
        (4, "kernel 2: expected a list of folders for 'include_dirs'"),
        (6, "func_id 2 is already used by 'a'"),
        (6, "unknown key 'nmae' of kernel 4"),
        (7, "expected a dict for kernel 5, got str"),
        (9, "missing 'source' in ORCHESTRATION"),
        (10, "unknown runtime 'host_build_grahp'"),
        (10, "block_dim (25) must be in range [1, 24]"),
        (10, "aicpu_thread_num (0) must be in range [1, 1024]"),
    ]
    assert sorted(found) == sorted(expected)
    assert found[10, "unknown runtime 'host_build_grahp'"].help == "did you mean 'host_build_graph'?"
    assert found[6, "unknown key 'nmae' of kernel 4"].help == "did you mean 'name'?"


def test_both_files_are_checked(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "f", golden="x = 1 +\n", config="KERNELS = 3\nORCHESTRATION = {}\n")
    with pytest.raises(DiagnosticError) as caught:
        folder.load(str(root))
    assert sorted(_codes(caught)) == ["PTO-E2602", "PTO-E2603"]


def test_names_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        folder.load(str(write_folder(tmp_path / "f", config="")))
    assert [d.message.split()[1] for d in caught.value.diagnostics] == ["KERNELS", "ORCHESTRATION"]


# -- running -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """C++ that all folders below share."""
    return write_folder(tmp_path_factory.mktemp("sources") / "f")


class _Made:
    """Makes engines with a plan, and keeps them."""

    def __init__(self, plan: Plan = add_then_multiply) -> None:
        self.plan = plan
        self.engines: list[FakeEngine] = []

    def __call__(self, config: dict[str, Any]) -> FakeEngine:
        self.engines.append(FakeEngine(config, self.plan))
        return self.engines[-1]


def _runner(root: Path, made: _Made, **options: Any) -> Runner:
    runner = Runner(folder.load(str(root)), RunnerOptions(**options), made)
    runner.compile()
    return runner


def test_a_folder_runs_and_is_compared(tmp_path: Path, sources: Path) -> None:
    made = _Made()
    runner = _runner(write_folder(tmp_path / "f", sources), made, threads=2)
    results = [runner.run(p) for p in runner.folder.golden.choose(every=True)]
    assert [r.name for r in results] == ["Small", "Large"] and all(r.ok for r in results)
    assert [r.comparisons[0].total for r in results] == [8, 1000]
    assert results[0].problems == ()
    assert len(made.engines) == 2, "each case has an engine of its own"
    engine = made.engines[0]
    assert engine.config["runtime"] == "host_build_graph" and engine.config["block_dim"] == 3
    assert engine.config["threads"] == 2 and engine.orchestration is not None
    assert engine.orchestration[1] == "build_graph" and engine.kernels[0][:2] == ("add", "aiv")


def test_outputs_start_with_their_content_and_tensors_stay_apart(tmp_path: Path, sources: Path) -> None:
    """Section 2.12: an output is given its initial content; golden starts from the same."""

    def accumulate(engine: FakeEngine, args: list[int]) -> None:
        a, _, f, n = args
        assert all(at % 64 == 0 for at in args[:3])
        engine.task(0, f, a, f, n)

    text = GOLDEN.replace("np.zeros(n, np.float32)", "np.full(n, 7, np.float32)").replace(
        '(tensors["a"] + tensors["b"]) * tensors["b"]', 'tensors["f"] + tensors["a"]'
    )
    runner = _runner(write_folder(tmp_path / "f", sources, golden=text), _Made(accumulate))
    for _ in range(2):
        assert runner.run({"name": "Small", "n": 8}).ok


def test_a_result_that_differs(tmp_path: Path, sources: Path) -> None:
    def wrong(engine: FakeEngine, args: list[int]) -> None:
        engine.task(0, args[0], args[1], args[2], args[3])

    result = _runner(write_folder(tmp_path / "f", sources), _Made(wrong)).run({"name": "Small", "n": 8})
    assert not result.ok and [p.code for p in result.problems] == ["PTO-E2606"]
    assert (result.problems[0].got, result.comparisons[0].max_abs) == ("5", 10.0)


def test_e2607_stray_writes(tmp_path: Path, sources: Path) -> None:
    """A kernel that writes past its tensor is found although the results are right."""

    def long(engine: FakeEngine, args: list[int]) -> None:
        a, b, f, n = args
        engine.task(0, a, b, f, n + 1)
        engine.task(1, f, b, f, n)
        engine.task(0, a, a, b - 4, 1)

    result = _runner(write_folder(tmp_path / "f", sources), _Made(long)).run({"name": "Small", "n": 8})
    assert not result.ok and all(c.ok for c in result.comparisons)
    assert [p.code for p in result.problems] == ["PTO-E2607"] * 2
    assert "outside of 'b': 1 bytes before its start" in result.problems[0].message
    assert re.search("outside of 'f': byte 3[2-5]; size 32 bytes", result.problems[1].message)


def test_an_input_that_is_written_to_is_a_warning(tmp_path: Path, sources: Path) -> None:
    def scratch(engine: FakeEngine, args: list[int]) -> None:
        add_then_multiply(engine, args)
        engine.task(0, args[0], args[0], args[0], args[3])

    result = _runner(write_folder(tmp_path / "f", sources), _Made(scratch)).run({"name": "Small", "n": 8})
    assert result.ok and [(p.code, p.severity) for p in result.problems] == [("PTO-E2607", "warning")]
    assert "'a' was written to" in result.problems[0].message


def test_e2609_a_failing_engine(tmp_path: Path, sources: Path) -> None:
    def fail(engine: FakeEngine, args: list[int]) -> None:
        raise RuntimeError("task 7 failed")

    result = _runner(write_folder(tmp_path / "f", sources), _Made(fail)).run({"name": "Small", "n": 8})
    assert not result.ok and result.problems[0].code == "PTO-E2609"
    assert "task 7 failed" in result.problems[0].message


def test_e2608_no_native_module(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pto._runtime", None)
    monkeypatch.delattr("pto._runtime", raising=False)  # where another test has loaded it
    runner = Runner(folder.load(str(write_folder(tmp_path / "f", sources))))
    runner.compile()
    result = runner.run({"name": "Small", "n": 8})
    assert not result.ok and [p.code for p in result.problems] == ["PTO-E2608"]


def test_the_environment_is_that_of_the_run_only(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIT_VALUE", "before")
    monkeypatch.delenv("KIT_OTHER", raising=False)
    seen: list[tuple[str | None, str | None]] = []

    def look(engine: FakeEngine, args: list[int]) -> None:
        seen.append((os.environ.get("KIT_VALUE"), os.environ.get("KIT_OTHER")))
        raise RuntimeError("whatever happens")

    more = 'RUNTIME_ENV = {"KIT_VALUE": "during", "KIT_OTHER": 1}\n'
    _runner(write_folder(tmp_path / "f", sources, config=CONFIG + more), _Made(look)).run(
        {"name": "S", "n": 8}
    )
    assert seen == [("during", "1")]
    assert os.environ["KIT_VALUE"] == "before" and "KIT_OTHER" not in os.environ


def test_a_python_function_as_kernel(tmp_path: Path, sources: Path) -> None:
    text = CONFIG.replace('"source": "mul.cpp"', '"function": times').replace(
        "KERNELS", "def times(*slots): calls.append(slots)\ncalls = []\nKERNELS", 1
    )
    made = _Made(lambda engine, args: engine.task(1, 4, 5))
    runner = _runner(write_folder(tmp_path / "f", sources, config=text), made)
    runner.run({"name": "Small", "n": 8})
    kernel = made.engines[0].kernels[1]
    assert kernel[:2] == ("times", "aiv") and kernel[2].__globals__["calls"] == [(4, 5)]


TASK = """\
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int count) {
  (void)count;
  const uint64_t shape[] = {2, args[2] / 2};
  Tensor x = make_tensor_external(reinterpret_cast<void*>(args[0]), shape, 2);
  Tensor y = make_tensor_external(reinterpret_cast<void*>(args[1]), shape, 2);
  PTOParam params[] = {make_input_param(x), make_scalar_param(args[3]), make_output_param(y)};
  pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, params, 3);
}
"""
TASK_CONFIG = """\
def scale(x, factor, out):
    out[:] = x * factor
KERNELS = [{"func_id": 0, "core_type": "aiv", "function": scale, "args": "in float out"}]
ORCHESTRATION = {"source": "task.cpp"}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "block_dim": 1}
"""
TASK_GOLDEN = """\
import ctypes
import numpy as np
__outputs__ = ["y"]
def generate_inputs(params):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    return [("x", x), ("y", np.zeros_like(x)), ("n", ctypes.c_int64(8)), ("factor", ctypes.c_float(0.5))]
def compute_golden(tensors, params):
    tensors["y"][:] = tensors["x"] * 0.5
    tensors["x"][:] = 0
"""


def test_a_python_function_gets_arrays_and_golden_may_change_its_inputs(tmp_path: Path) -> None:
    """For tensormap_and_ringbuffer, which has the tensors: as in runtime.kernel, numbers by `args`. A change
    of an input by compute_golden in its own copy is not a write of the run."""
    write_folder(tmp_path / "f", golden=TASK_GOLDEN, config=TASK_CONFIG)
    (tmp_path / "f" / "kernels" / "task.cpp").write_text(TASK)
    runner = Runner(folder.load(str(tmp_path / "f")))
    runner.compile()
    result = runner.run({"name": "Default"})
    assert result.ok and not result.problems


PIPED = """\
#include "pto_orchestration_api.h"
static_assert(PTOParamType::PIPE_IN == PTOParamType::INPUT && PTOParamType::PIPE_OUT == PTOParamType::OUTPUT);
#if 0
extern "C" void aicpu_orchestration_entry(PTO2Runtime*, uint64_t*, int) {}
#endif
#define ENTRY extern "C" int aicpu_orchestration_entry
ENTRY(PTO2Runtime* rt, uint64_t* args, int) {
  const uint64_t shape[] = {8};
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[0]), shape, 1);
  PTO2_SCOPE(rt) {
    const int32_t cluster = pto2_rt_allocate_cluster(rt);
    Tensor pipe = make_pipe();
    PTOParam push[] = {make_pipe_out_param(pipe)};
    pto2_rt_submit_task_clustered(rt, 0, PTO2_WORKER_CUBE, push, 1, cluster);
    PTOParam pop[] = {make_pipe_in_param(pipe), make_output_param(out)};
    pto2_rt_submit_task_clustered(rt, 1, PTO2_WORKER_VECTOR, pop, 2, cluster);
    pto2_rt_free_cluster(rt, cluster);
  }
  return static_cast<int>(args[1]);
}
"""
PIPED_CONFIG = """\
fifo = []
def push(pipe):
    fifo.append(7)
def pop(pipe, out):
    out[:] = fifo.pop()
KERNELS = [
    {"func_id": 0, "core_type": "aic", "function": push, "args": "pipe_out"},
    {"func_id": 1, "core_type": "aiv", "function": pop, "args": "pipe_in out"},
]
ORCHESTRATION = {"source": "task.cpp"}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "block_dim": 1, "aicpu_thread_num": 8}
"""
PIPED_GOLDEN = """\
import ctypes
import numpy as np
def generate_inputs(params):
    return [("out", np.zeros(8, np.float32)), ("code", ctypes.c_int64(params.get("code", 0)))]
def compute_golden(tensors, params):
    tensors["out"][:] = 7
"""


def test_pipes_thread_limit_return_value_and_an_output_without_outputs(tmp_path: Path) -> None:
    """Four lines of the documents at once, as they share what takes long: the compiler."""
    write_folder(tmp_path / "f", golden=PIPED_GOLDEN, config=PIPED_CONFIG)
    (tmp_path / "f" / "kernels" / "task.cpp").write_text(PIPED)
    runner = Runner(folder.load(str(tmp_path / "f")))
    runner.compile()
    result = runner.run({"name": "Default"})
    assert result.ok and [c.name for c in result.comparisons] == ["out"]
    (warned,) = result.problems
    assert warned.severity == "warning"
    assert warned.message == "aicpu_thread_num is 8, but a device has 4 AICPU threads"
    failed = runner.run({"name": "Default", "code": 7}).problems[0]
    assert failed.code == "PTO-E2623" and "aicpu_orchestration_entry failed with code 7" in failed.message


def test_e2603_roles_of_a_python_function(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "f", config=TASK_CONFIG.replace("in float out", "in flaot out"))
    with pytest.raises(DiagnosticError, match="unknown role 'flaot'"):
        folder.load(str(path))
    path = write_folder(tmp_path / "g", config=TASK_CONFIG.replace('"tensormap_and_ringbuffer"', "['a']"))
    with pytest.raises(DiagnosticError, match="unknown runtime"):
        folder.load(str(path))


def test_too_many_arguments(tmp_path: Path, sources: Path) -> None:
    """Section 2.11: 32 arguments in tensormap_and_ringbuffer."""
    text = GOLDEN.replace('("n", ctypes.c_int64(n))]', '*((f"s{i}", ctypes.c_int64(i)) for i in range(30))]')
    runner = Runner(
        folder.load(str(write_folder(tmp_path / "f", sources, golden=text))),
        RunnerOptions("tensormap_and_ringbuffer"),
        _Made(),
    )
    result = runner.run({"name": "Small", "n": 8})
    assert "too many arguments: 33 (max 32" in result.problems[0].message


def test_an_exception_of_golden_is_the_result_of_its_case(tmp_path: Path, sources: Path) -> None:
    text = GOLDEN.replace("(tensors[", "(tensorz[")
    result = _runner(write_folder(tmp_path / "f", sources, golden=text), _Made()).run(
        {"name": "Small", "n": 8}
    )
    assert (
        not result.ok and result.problems[0].code == "PTO-E2602" and "tensorz" in result.problems[0].message
    )
    assert result.problems[0].span is not None


def test_memory_of_odd_sizes() -> None:
    from pto.runtime.golden import GoldenTensor
    from pto.runtime.memory import TensorMemory

    arrays = [np.arange(n, dtype=np.uint8) for n in (0, 1, 4095, 4097)] + [np.array(3.5)]
    memory = TensorMemory([GoldenTensor(str(i), a, a) for i, a in enumerate(arrays)])
    assert all(np.array_equal(memory.array(str(i)), a) for i, a in enumerate(arrays))
    assert memory.array("4").shape == () and memory.strays() == [] and memory.changed_inputs() == []
    memory.array("2")[4094] ^= 1
    assert memory.changed_inputs() == ["2"]


def test_golden_of_the_folder_around(tmp_path: Path, sources: Path) -> None:
    """Several configurations share a golden.py that lies beside their folders."""
    around = write_folder(tmp_path / "f", sources)
    (around / "kernels").rename(around / "host")
    found = folder.load(str(around / "host"))
    assert found.name == "f/host" and found.golden.cases.keys() == {"Small", "Large"}
    (around / "host" / "golden.py").write_text((around / "golden.py").read_text().replace("Large", "Own"))
    assert "Own" in folder.load(str(around / "host")).golden.cases  # its own comes first
