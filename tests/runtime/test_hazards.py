"""Accesses that nothing orders, in folders with a C++ orchestration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cli.runtime import main

ORCHESTRATION = """\
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const uint64_t shape[] = {8};
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[0]), shape, 1), x = make_tensor(shape, 1);
  PTOParam make[] = {make_output_param(x)};
  pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, make, 1);
  PTOParam read[] = {make_input_param(x), make_output_param(out)};
  pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, read, 2);
  PTOParam change[] = {make_inout_param(x)};
  pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, change, 1);
}
"""
CONFIG = """\
KERNELS = [{"func_id": 0, "core_type": "aiv", "function": lambda *slots: None, "name": "nothing"}]
ORCHESTRATION = {"source": "graph.cpp", "function_name": "aicpu_orchestration_entry"}
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "block_dim": 1}
"""
GOLDEN = """\
import numpy as np
__outputs__ = ["out"]
def generate_inputs(params): return [("out", np.zeros(8, np.float32))]
def compute_golden(tensors, params): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name, text in (("graph.cpp", ORCHESTRATION), ("kernel_config.py", CONFIG), ("golden.py", GOLDEN)):
        (tmp_path / name).write_text(text)
    return str(tmp_path)


def test_e2611_a_reader_and_a_later_writer(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """TensorMap: readers are not recorded (spec 2.5), so that nothing orders a writer behind them."""
    assert main(["run", folder]) == 0
    assert "PTO-E2611" not in capsys.readouterr().err
    assert main(["run", folder, "--check-hazards"]) == 0  # a warning: the result is what it should be
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "PTO-E2611" in x]
    assert "warning[PTO-E2611]: WAR: task 2 (nothing) at " in line
    assert "graph.cpp:11 writes, as parameter 0, what task 1 (nothing) at " in line
    assert "graph.cpp:9 reads" in line


def test_track_war_orders_them(folder: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dot = tmp_path / "graph.dot"
    for option, edges in ((), 2), (("--track-war",), 3):
        assert main(["run", folder, "--check-hazards", "--graph", str(dot), *option]) == 0
        assert dot.read_text().count("->") == edges
        assert ("PTO-E2611" in capsys.readouterr().err) == (not option)
