"""Environment variables, and folders with `kernel_config.py` and `golden.py`.

Sections of the description: Environment variables, kernel_config, golden, Runner, Startup, and spec 2.11,
2.12, 6.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto import knobs
from pto.diag import DiagnosticError
from pto.runtime import Run, run
from pto.runtime.folder import load
from pto.runtime.options import options
from pto.runtime.runner import Runner, RunnerOptions

from .header_build import COMPILER
from .seed_kit import bump, vector

DEFAULTS = {"task_window": 65536, "heap": 1 << 30, "dep_pool": 65536, "tensormap_pool": 65536}
VARIABLES = {
    "PTO2_RING_TASK_WINDOW": "task_window",
    "PTO2_RING_HEAP": "heap",
    "PTO2_RING_DEP_POOL": "dep_pool",
    "PTO2_READY_QUEUE_SHARDS": "shards",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "PTO_LOG_LEVEL", "PTO_LOG_FILE", "PA_CASE", "PA_SEQ_LEN"):
        monkeypatch.delenv(name, raising=False)


def small(**more: Any) -> tuple[Run, list[tuple[int, str]]]:
    lines: list[tuple[int, str]] = []
    x = vector(1)
    done = run(
        lambda rt: rt.submit(bump, x),
        block_dim=1,
        threads=1,
        log=lambda level, text: lines.append((level, text)),
        **more,
    )
    assert x[0] == 1
    return done, lines


def test_defaults() -> None:
    """Environment variables: the defaults, silently."""
    done, lines = small()
    assert {name: done.stats[name] for name in DEFAULTS} == DEFAULTS
    assert lines == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PTO2_RING_TASK_WINDOW", "4"),
        ("PTO2_RING_TASK_WINDOW", "16"),
        ("PTO2_RING_TASK_WINDOW", "131072"),
        ("PTO2_RING_HEAP", "1024"),
        ("PTO2_RING_HEAP", "5000"),
        ("PTO2_RING_HEAP", "268435456"),
        ("PTO2_RING_DEP_POOL", "16"),
        ("PTO2_RING_DEP_POOL", "100"),
    ],
)
def test_ring_variables(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables: window a power of 2 >= 4, heap >= 1024, pool >= 16."""
    monkeypatch.setenv(name, text)
    monkeypatch.setenv("PTO_LOG_LEVEL", "info")
    done, lines = small()
    sizes = {**DEFAULTS, VARIABLES[name]: int(text)}
    assert {option: done.stats[option] for option in DEFAULTS} == sizes
    wanted = (
        "[INFO] options: Ring buffer overrides: task_window={task_window} heap={heap} dep_pool={dep_pool}"
    )
    assert lines[0] == (2, wanted.format(**sizes))


@pytest.mark.parametrize(
    ("name", "texts", "rule"),
    [
        (
            "PTO2_RING_TASK_WINDOW",
            ("0", "2", "3", "6", "65537", "-16", "x", "16k", "1e3", "²", "9" * 30),
            "must be a power of 2, >= 4",
        ),
        ("PTO2_RING_HEAP", ("0", "1023", "-1", "1 GB", "0x1000", ""), "must be a valid integer >= 1024"),
        ("PTO2_RING_DEP_POOL", ("0", "15", "-16", "many"), "must be a valid integer >= 16"),
    ],
)
def test_invalid_ring_variables(
    name: str, texts: tuple[str, ...], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables, spec 2.11: a warning, and the default."""
    for text in texts:
        monkeypatch.setenv(name, text)
        done, lines = small()
        assert {option: done.stats[option] for option in DEFAULTS} == DEFAULTS
        warning = (1, f"[WARN] options: {name}={text} invalid ({rule}), ignored")
        assert lines == ([warning] if text else [])


@pytest.mark.parametrize("text", ["1", "2", "3", "4"])
def test_shards(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready queues: PTO2_READY_QUEUE_SHARDS from 1 to 4."""
    monkeypatch.setenv("PTO2_READY_QUEUE_SHARDS", text)
    warnings: list[str] = []
    assert options({}, warnings.append)["shards"] == int(text)
    assert warnings == [] and small()[1] == []


@pytest.mark.parametrize("text", ["0", "5", "-1", "three", "³"])
def test_invalid_shards(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready queues, spec 2.11: the warning names range and default."""
    monkeypatch.setenv("PTO2_READY_QUEUE_SHARDS", text)
    warnings: list[str] = []
    assert "shards" not in options({}, warnings.append)
    rule = "is invalid or out of range [1,4], using default 3"
    assert warnings == [f"PTO2_READY_QUEUE_SHARDS={text} {rule}"]
    small()


def test_what_is_given_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments of a run are stronger than the environment."""
    monkeypatch.setenv("PTO2_RING_TASK_WINDOW", "1024")
    assert small(task_window=8)[0].stats["task_window"] == 8
    assert small()[0].stats["task_window"] == 1024


def test_every_variable_is_a_knob() -> None:
    """Environment variables: all of the table are known to `pto doctor`."""
    for name in (*VARIABLES, "PA_CASE", "PA_SEQ_LEN", "PTO_LOG_LEVEL", "PTO_LOG_FILE"):
        assert knobs.KNOBS[name].doc


def test_log_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spec 2.11: PTO_LOG_FILE is appended to; one that cannot be written is refused."""
    file = tmp_path / "log"
    monkeypatch.setenv("PTO_LOG_FILE", str(file))
    monkeypatch.setenv("PTO2_RING_HEAP", "7")
    for _ in range(2):
        run(lambda rt: None, block_dim=1, threads=1)
    line = "[WARN] options: PTO2_RING_HEAP=7 invalid (must be a valid integer >= 1024), ignored\n"
    assert file.read_text() == 2 * line
    monkeypatch.setenv("PTO_LOG_FILE", str(tmp_path / "no" / "log"))
    with pytest.raises(DiagnosticError, match="PTO_LOG_FILE: cannot write"):
        run(lambda rt: None, block_dim=1, threads=1)


# -- folders -------------------------------------------------------------------------------------------------

CONFIG = """\
KERNELS = [
    {"func_id": 0, "name": "SUM", "source": "aiv/sum.cpp", "core_type": "aiv"},
    {"func_id": LAST, "name": "HUB", "source": "aiv/hub.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {
    "source": "orchestration/orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}
RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,
    "block_dim": 24,
}
RUNTIME_ENV = {"PTO2_RING_TASK_WINDOW": "16"}
"""
KERNEL = """\
#include <cstdint>
#include "tensor.h"
extern "C" void kernel_entry(int64_t* args) {
  auto* x = reinterpret_cast<TensorData*>(args[0]);
  auto* y = reinterpret_cast<TensorData*>(args[1]);
  auto* from = reinterpret_cast<float*>(x->buffer.addr) + x->start_offset;
  auto* to = reinterpret_cast<float*>(y->buffer.addr) + y->start_offset;
  for (uint64_t i = 0; i < x->shapes[0]; i++) to[i] BODY from[i];
}
"""
ORCHESTRATE = """\
#include "pto_orchestration_api.h"
extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(uint64_t*, int) { return {3}; }
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  uint64_t chunks = args[2], shapes[1] = {16}, whole[1] = {16 * chunks};
  Tensor x = make_tensor_external(reinterpret_cast<void*>(args[0]), whole, 1);
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[1]), shapes, 1);
  for (uint64_t c = 0; c < chunks; c++) {
    PTO2_SCOPE(rt) {
      uint64_t at[1] = {16 * c};
      Tensor part = x.view(shapes, at), t = make_tensor(shapes, 1);
      PTOParam hub[] = {make_input_param(part), make_output_param(t)};
      pto2_rt_submit_task(rt, LAST, PTO2_WORKER_VECTOR, hub, 2);
      for (int i = 0; i < 12; i++) {
        PTOParam sum[] = {make_input_param(t), make_inout_param(out)};
        pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, sum, 2);
      }
    }
  }
}
"""
GOLDEN = """\
import ctypes
import numpy as np
ALL_CASES = {"Case1": {"chunks": 1}, "Chunks16": {"chunks": 16}}
DEFAULT_CASE = "Case1"
__outputs__ = ["out"]
def generate_inputs(params):
    n = params["chunks"]
    x = np.arange(16 * n, dtype=np.float32)
    return [("x", x), ("out", np.ones(16, np.float32)), ("n", ctypes.c_int64(n))]
def compute_golden(tensors, params):
    tensors["out"][:] += 12 * tensors["x"].reshape(-1, 16).sum(0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("folder"), "31")


def _write(root: Path, last: str, golden: str = GOLDEN) -> Path:
    texts = {
        "kernels/kernel_config.py": CONFIG.replace("LAST", last),
        "kernels/aiv/sum.cpp": KERNEL.replace("BODY", "+="),
        "kernels/aiv/hub.cpp": KERNEL.replace("BODY", "="),
        "kernels/orchestration/orch.cpp": ORCHESTRATE.replace("LAST", last),
        "golden.py": golden,
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_a_folder_runs(folder: Path) -> None:
    """kernel_config, Runner: 16 chunks x 13 tasks through a window of 16 that RUNTIME_ENV sets; func_id 31;
    outputs start with their host content (spec 2.12)."""
    command = [sys.executable, "-m", "pto.cli.main", "runtime", "run", str(folder), "--all"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Case1" in done.stdout and "Chunks16" in done.stdout
    runner = Runner(load(str(folder)), RunnerOptions(profiling=True, threads=1))
    runner.compile()
    result = runner.run({"name": "Chunks16", "chunks": 16})
    assert result.ok
    assert result.records.stats["task_window"] == 16
    assert result.records.stats["tasks"] == 208
    assert np.bincount(result.records.tasks["task_id"] & 15).tolist() == [13] * 16
    assert knobs.get("PTO2_RING_TASK_WINDOW") == ""  # for the run only


def test_func_ids_end_at_31(tmp_path: Path) -> None:
    """Spec 2.11: func_id < 32, reported at its place."""
    with pytest.raises(DiagnosticError, match=r"func_id \(32\) must be in range \[0, 31\]"):
        load(str(_write(tmp_path, "32")))


def test_32_orchestration_arguments(tmp_path: Path) -> None:
    """Spec 2.11: the orchestration takes at most 32 arguments."""
    many = GOLDEN.replace('("n", ctypes.c_int64(n))', '*[(f"n{i}", ctypes.c_int64(n)) for i in range(31)]')
    runner = Runner(load(str(_write(tmp_path, "5", many))))
    with pytest.raises(DiagnosticError, match=r"too many arguments: 33 \(max 32"):
        runner._check(runner.folder.golden.arguments({"name": "Case1", "chunks": 1}))
