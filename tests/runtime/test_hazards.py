"""Accesses that nothing orders, in folders with a C++ orchestration."""

from __future__ import annotations

import re
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
def folder(kept_place: Path) -> str:
    for name, text in (("graph.cpp", ORCHESTRATION), ("kernel_config.py", CONFIG), ("golden.py", GOLDEN)):
        (kept_place / name).write_text(text)
    return str(kept_place)


def test_e2611_a_reader_and_a_later_writer(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """TensorMap: readers are not recorded (spec 2.5), so that nothing orders a writer behind them."""
    assert main(["run", folder]) == 0
    assert "PTO-E2611" not in capsys.readouterr().err
    assert main(["run", folder, "--check-hazards"]) == 0  # a warning: the result is right
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "PTO-E2611" in x]
    assert "warning[PTO-E2611]: WAR: task 2 (nothing) at " in line
    assert "graph.cpp:11 writes, as parameter 0, memory that task 1 (nothing) at " in line
    assert "graph.cpp:9 reads" in line


HELPERS = """\
#include "pto_orchestration_api.h"
static void submit(PTO2Runtime* rt, PTOParam* params, int count) {
  pto2_rt_submit_task(rt, 0, PTO2_WORKER_VECTOR, params, count);
}
template <class... More>
static void reads(PTO2Runtime* rt, Tensor& from, More... to) {
  PTOParam params[] = {make_input_param(from), make_output_param(to)...};
  submit(rt, params, 1 + sizeof...(to));
}
extern "C" void aicpu_orchestration_entry(PTO2Runtime* rt, uint64_t* args, int) {
  pto2_rt_init_tensor_pool(rt);
  const uint64_t shape[] = {8};
  Tensor out = make_tensor_external(reinterpret_cast<void*>(args[0]), shape, 1), x = make_tensor(shape, 1);
  PTOParam make[] = {make_output_param(x)};
  submit(rt, make, 1);
  reads(rt, x, out);
  const auto change = [&] {
    PTOParam params[] = {make_inout_param(x)};
    submit(rt, params, 1);
  };
  change();
}
"""
GRAPH = """\
#include "runtime.h"
static int task(Runtime* runtime, void* memory) {
  uint64_t args[] = {reinterpret_cast<uint64_t>(memory)};
  return runtime->add_task(args, 1, 0, CoreType::AIV);
}
extern "C" int build(Runtime* runtime, uint64_t* args, int) {
  void* memory = runtime->host_api.device_malloc(32);
  task(runtime, memory);
  task(runtime, memory);
  return 0;
}
"""
KERNEL = """\
#include <pto/pto-inst.hpp>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  pto::Tile<pto::TileType::Vec, float, 1, 8> t;
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 1, 8>, pto::Stride<8, 8, 8, 8, 1>> x(
      reinterpret_cast<__gm__ float*>(args[0]));
  TASSIGN(t, 0x0);
  TSTORE(x, t);
}
"""


def test_helpers_and_their_callers_have_names(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tasks of one line are distinguished by the calls that lead to it: of helpers, lambdas, templates."""
    Path(folder, "graph.cpp").write_text(HELPERS)
    assert main(["run", folder, "--check-hazards"]) == 0
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "PTO-E2611" in x]
    entry = "in aicpu_orchestration_entry"
    assert re.sub(r"at \S*graph", "at graph", line) == (
        "warning[PTO-E2611]: WAR: task 2 (nothing) at graph.cpp:3 in submit, called at graph.cpp:19 "
        f"{entry}, called at graph.cpp:21 {entry} writes, as parameter 0, memory that task 1 (nothing) at graph.cpp:3 "
        f"in submit, called at graph.cpp:8 in reads, called at graph.cpp:16 {entry} reads, and no "
        "dependency orders them"
    )


def test_callers_in_a_graph_of_the_host(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG.replace('"function": lambda *slots: None', '"source": "kernel.cpp"')
    config = config.replace("aicpu_orchestration_entry", "build")
    files = {
        "graph.cpp": GRAPH,
        "kernel.cpp": KERNEL,
        "kernel_config.py": config.replace("tensormap_and_ringbuffer", "host_build_graph"),
    }
    for name, text in files.items():
        Path(folder, name).write_text(text)
    assert main(["run", folder, "--check-hazards"]) == 0
    shown = capsys.readouterr().err
    said = r"WAW: task 1 \(nothing\) at \S*graph.cpp:4 in task, called at \S*graph.cpp:9 in build writes"
    assert re.search(
        said + r".* task 0 \(nothing\) at .*graph.cpp:8 in build writes, and no dependency", shown
    ), shown


def test_track_war_orders_them(folder: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dot = tmp_path / "graph.dot"
    for option, edges in ((), 2), (("--track-war",), 3):
        assert main(["run", folder, "--check-hazards", "--graph", str(dot), *option]) == 0
        assert dot.read_text().count("->") == edges
        assert ("PTO-E2611" in capsys.readouterr().err) == (not option)
