"""The Python interface: arguments of kernels, refusals, and resources after a run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import runtime
from pto.runtime import compile as compile_
from pto.runtime import failures

NOTHING = runtime.kernel(lambda x: None, "in", name="nothing")


def _submit(kernel: runtime.Kernel, *values: Any, **more: Any) -> runtime.Run:
    return runtime.run(lambda rt: rt.submit(kernel, *values), block_dim=1, **more)


def _refused(kernel: runtime.Kernel, *values: Any) -> str:
    with pytest.raises(pto.DiagnosticError) as caught:
        _submit(kernel, *values)
    (problem,) = caught.value.diagnostics
    assert problem.code == "PTO-E2621"
    return problem.message


def test_numbers_of_a_python_kernel() -> None:
    """A float is an f32, other scalars are signed 64-bit integers."""
    seen: list[Any] = []
    note = runtime.kernel(lambda *values: seen.extend(values), "float float scalar scalar scalar")
    _submit(note, 1.5, 2, -3, 2**63 - 1, True)
    assert seen == [1.5, 2.0, -3, 2**63 - 1, 1]
    assert isinstance(seen[1], float) and isinstance(seen[2], int)


def test_numbers_of_a_compiled_kernel(tmp_path: Path) -> None:
    """Section 1: floats are packed in the low 32 bits, the upper ones are zero."""
    source = tmp_path / "store.cpp"
    source.write_text("""\
#include <cstdint>
#include "tensor.h"
extern "C" void kernel_entry(int64_t* args) {
  auto* out = reinterpret_cast<TensorData*>(args[2]);
  auto* words = reinterpret_cast<int64_t*>(out->buffer.addr) + out->start_offset;
  words[0] = args[0];
  words[1] = args[1];
}
""")
    out = np.zeros((3, 2), np.int64)
    _submit(runtime.kernel(source, "float scalar out"), -2, -7, out[1])
    assert out.tolist() == [[0, 0], [0xC0000000, -7], [0, 0]]


def test_a_number_for_a_tensor_and_the_reverse() -> None:
    assert _refused(NOTHING, 3) == "expected a tensor for parameter 0 of kernel nothing, got a number"
    number = runtime.kernel(lambda x: None, "scalar", name="number")
    assert (
        _refused(number, np.zeros(4, "f4"))
        == "expected a number for parameter 0 of kernel number, got a tensor"
    )
    assert "expected 1 arguments for kernel nothing, got 2" in _refused(NOTHING, np.zeros(4, "f4"), 1)
    assert "float64" in _refused(NOTHING, np.zeros(4))
    assert "contiguous" in _refused(NOTHING, np.zeros((4, 4), "f4")[:, :2])


def test_a_source_that_does_not_compile_stops_only_those_who_use_it(tmp_path: Path) -> None:
    """Sources are compiled before a run starts; an error in an unused one does not matter."""
    broken = runtime.kernel(tmp_path / "missing.cpp", "in")
    assert _submit(NOTHING, np.zeros(4, "f4")).stats["tasks"] == 1
    with pytest.raises(pto.DiagnosticError, match=r"missing\.cpp"):
        _submit(broken, np.zeros(4, "f4"))


def test_a_changed_source_is_compiled_again(tmp_path: Path) -> None:
    source = tmp_path / "set.cpp"
    kernel = runtime.kernel(source, "out")
    out = np.zeros(1, np.int32)
    for value in (5, 6):
        source.write_text(f"""\
#include <cstdint>
#include "tensor.h"
extern "C" void kernel_entry(int64_t* args) {{
  *reinterpret_cast<int32_t*>(reinterpret_cast<TensorData*>(args[0])->buffer.addr) = {value};
}}
""")
        _submit(kernel, out)
        assert out[0] == value


def test_files_of_a_run(tmp_path: Path) -> None:
    run = _submit(NOTHING, np.zeros(4, "f4"), record=True)
    run.save_trace(str(tmp_path / "trace.json"))
    run.save_swimlane(str(tmp_path / "run.html"), "one task")
    run.save_graph(str(tmp_path / "graph.dot"))
    assert '"nothing' in (tmp_path / "trace.json").read_text()
    assert "one task" in (tmp_path / "run.html").read_text()
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    assert run.summary().startswith("1 task")


def test_without_records_there_is_nothing_to_draw(tmp_path: Path) -> None:
    run = _submit(NOTHING, np.zeros(4, "f4"))
    assert "1 tasks, 0 dependencies in" in run.summary() and "record=True" in run.summary()
    with pytest.raises(pto.DiagnosticError, match="the run was not recorded"):
        run.save_trace(str(tmp_path / "trace.json"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", ["in outt", "in " * 65, "float32"])
def test_roles(arguments: str) -> None:
    with pytest.raises(pto.DiagnosticError, match="use in, out, inout, scalar, float, pipe_in"):
        runtime.kernel(lambda *x: None, arguments)


def test_blocks_that_poll_let_others_run(tmp_path: Path) -> None:
    """Blocks on one thread meet at a counter; each of them polls it with TTEST."""
    source = tmp_path / "meet.cpp"
    source.write_text("""\
#include <pto/pto-inst.hpp>
#include "tensor.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  auto* data = reinterpret_cast<TensorData*>(args[0]);
  pto::comm::Signal count(reinterpret_cast<int32_t*>(data->buffer.addr) + data->start_offset);
  pto::comm::TNOTIFY(count, 1, pto::comm::NotifyOp::AtomicAdd);
  while (!pto::comm::TTEST(count, 4, pto::comm::WaitCmp::GE)) {}
}
""")
    count = np.zeros(8, np.int32)
    meet = runtime.kernel(str(source), "inout")
    ways: list[dict[str, Any]] = [{"threads": 1}, {"seed": 1}]
    for way in ways:
        count[:] = 0
        runtime.run(lambda rt: rt.submit(meet, count, blocks=4), **way)
        assert count[0] == 4


@pytest.mark.parametrize("threads", [1, 2])
def test_e2624_a_core_that_waits_for_nobody(tmp_path: Path, threads: int) -> None:
    source = tmp_path / "waits.cpp"
    source.write_text(
        "#include <cstdint>\n#include <pto/pto-inst.hpp>\n"
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) { (void)args; wait_flag_dev(3); }\n'
    )
    waits = runtime.kernel(str(source), "inout", core="aic")
    data = np.zeros(4, np.float32)
    with pytest.raises(pto.DiagnosticError) as caught:
        runtime.run(lambda rt: rt.submit(waits, data), threads=threads)
    problem = caught.value.diagnostics[0]
    assert problem.code == "PTO-E2624"
    # which core took it is the schedulers' business
    assert re.search(r"AIC \d+, task 0: waits for cross-core semaphore 3", problem.message)


def test_e2629_what_must_not_be() -> None:
    error = failures.failed(299, "a ready queue overflowed", None)
    assert isinstance(error, pto.DiagnosticError) and error.diagnostics[0].code == "PTO-E2629"


@pytest.mark.parametrize("name", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_tensors_have_the_elements_that_a_program_says(name: str) -> None:
    example = Path(__file__).parents[2] / "examples" / "01_vec_add.pto"
    add = runtime.kernel(example, "in in out", name="add")
    short = runtime.kernel(example, "in out", name="short")

    def task(rt: Any, kernel: runtime.Kernel, *values: Any) -> None:
        (rt.submit if name == "tensormap_and_ringbuffer" else rt.add_task)(kernel, *values)

    x = np.ones((64, 128), np.float32)
    out = np.zeros_like(x)
    runtime.run(task, add, x, x, out, runtime=name)
    assert (out == 2).all()
    with pytest.raises(
        pto.DiagnosticError, match="expected f32 for parameter 1 of kernel add, got a tensor of int32"
    ):
        runtime.run(task, add, x, x.astype(np.int32), out, runtime=name)
    with pytest.raises(pto.DiagnosticError, match=r"short declares 2 parameters .*takes 3"):
        runtime.run(task, short, x, out, runtime=name)


def test_sources_that_do_not_change_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated run compiles nothing and starts no compiler; an edit of a source or a header is noticed."""
    source, header = tmp_path / "set.cpp", tmp_path / "value.h"
    source.write_text(
        '#include <cstdint>\n#include "value.h"\n#include "tensor.h"\nextern "C" void kernel_entry(int64_t* args) '
        "{ *reinterpret_cast<float*>(reinterpret_cast<TensorData*>(args[0])->buffer.addr) = VALUE; }\n"
    )
    header.write_text("#define VALUE 1\n")
    broken = tmp_path / "broken.cpp"
    broken.write_text("what is this\n")
    kernels = [runtime.kernel(source, "out"), runtime.kernel(broken, "out")]
    asked: list[str] = []
    make = compile_._LibraryPlan.__init__
    monkeypatch.setattr(
        compile_._LibraryPlan,
        "__init__",
        lambda self, job: (asked.append(os.path.basename(job.source)), make(self, job))[1],
    )
    x = np.zeros(1, np.float32)

    def value() -> tuple[float, list[str]]:
        asked.clear()
        runtime.run(lambda rt: rt.submit(kernels[0], x), block_dim=1)
        return float(x[0]), sorted(a for a in asked if a in ("set.cpp", "broken.cpp"))

    assert value() == (1, ["broken.cpp", "set.cpp"])
    assert value() == (1, [])
    header.write_text("#define VALUE 2\n")
    assert value() == (2, ["set.cpp"])
    broken.write_text("what is that\n")
    assert value() == (2, ["broken.cpp"])
    with pytest.raises(pto.DiagnosticError, match="what"):
        runtime.run(lambda rt: rt.submit(kernels[1], x), block_dim=1)
    for path in tmp_path.glob("*"):
        path.unlink()
    with pytest.raises(pto.DiagnosticError, match="no such file"):
        value()


#: Stores a tile that it has not written yet, then fills it.
STALE = """\
!tile = !pto.tile_buf<vec, 8x64xf32>
!view = !pto.partition_tensor_view<8x64xf32>
func.func @stale(%x: !view, %y: !view) attributes {pto.entry} {
  %c4096 = arith.constant 4096 : i64
  %t = pto.alloc_tile addr = %c4096 : !tile
  pto.tstore ins(%t : !tile) outs(%y : !view)
  pto.tload ins(%x : !view) outs(%t : !tile)
  return
}
"""


def test_a_run_begins_with_zeros_in_the_memory_of_cores(tmp_path: Path) -> None:
    """Cores of one run get the memory of those of an earlier one."""
    (tmp_path / "stale.pto").write_text(STALE)
    stale = runtime.kernel(tmp_path / "stale.pto", "in out")
    x, y = np.full((8, 64), 7, np.float32), np.ones((8, 64), np.float32)
    for _ in range(3):
        _submit(stale, x, y)
        assert not y.any()
